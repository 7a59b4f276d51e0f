"""The context for the model's prompt and what it is made of, over HTTP."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from datetime import timedelta
from typing import Any

import httpx
import pytest

from graphmem.domain.times import utc_now

USER = "/v1/users/mara"
CONTEXT_FIELDS = {
    "preamble", "token_count", "conversation_summary", "recent_messages", "active_contexts", "user_preferences",
    "behavioral_patterns", "related_sessions", "personalization_hints", "memories",
}  # fmt: skip
PREFERENCE_FIELDS = {
    "id", "user_id", "preference_type", "preference_key", "preference_value", "confidence_score", "learned_from",
    "frequency", "last_observed", "created_at", "updated_at",
}  # fmt: skip
PATTERN_FIELDS = {
    "id", "user_id", "pattern_type", "pattern_description", "pattern_data", "confidence_score", "occurrence_count",
    "first_detected", "last_detected", "is_active",
}  # fmt: skip
CONTEXT_ITEM_FIELDS = {
    "id", "session_id", "user_id", "context_type", "context_key", "context_value", "relevance_score", "expires_at",
    "created_at",
}  # fmt: skip


async def wait_for_items(client: httpx.AsyncClient, what: str) -> list[dict[str, Any]]:
    """What the worker has learned; it learns after the response to the messages."""
    for _ in range(100):
        items: list[dict[str, Any]] = (await client.get(f"{USER}/{what}")).json()["items"]
        if items:
            return items
        await asyncio.sleep(0.1)
    raise AssertionError(f"there are no {what}")


@pytest.mark.req("TRUE-04", "TRUE-05", "TRUE-06", "TRUE-09")
async def test_preferences_and_patterns_are_learned_and_used_in_context(agent: httpx.AsyncClient) -> None:
    now = utc_now()
    turns: list[dict[str, Any]] = [
        {
            "role": "user", "content": f"What did I spend on food, week {day}?", "intent": "spending_analysis",
            "entities": {"category": "food"}, "timestamp": (now - timedelta(days=day)).isoformat(),
        }
        for day in range(6, 0, -1)
    ]  # fmt: skip
    turns.append({"role": "user", "content": "Please answer in Spanish. My budget is $400."})
    await agent.post(f"{USER}/memories", json={"memories": [{"content": "Mara is vegetarian"}]})
    stored = await agent.post(f"{USER}/messages", json={"session_id": "s", "messages": turns, "extract": False})
    assert (stored.status_code, stored.json()["job_id"]) == (202, None)

    (preference,) = await wait_for_items(agent, "preferences")
    assert preference.keys() == PREFERENCE_FIELDS
    assert preference["preference_value"] == {"language": "Spanish"}
    patterns = {pattern["pattern_type"]: pattern for pattern in await wait_for_items(agent, "patterns")}
    assert "query_frequency" in patterns
    assert all(pattern.keys() == PATTERN_FIELDS for pattern in patterns.values())
    items = await wait_for_items(agent, "contexts")
    assert all(item.keys() == CONTEXT_ITEM_FIELDS for item in items)
    assert (await agent.get(f"{USER}/contexts", params={"session_id": "another"})).json()["items"] == []

    asked = {"question": "What shall we cook?", "session_id": "s", "token_budget": 300, "top": 3, "sources": True}
    answer = await agent.post(f"{USER}/context", json=asked)
    context = answer.json()
    assert (answer.status_code, context.keys()) == (200, CONTEXT_FIELDS)
    assert context["token_count"] <= 300
    assert context["preamble"].startswith(
        "## Information about this user from past conversations:\n- Mara is vegetarian"
    )
    assert "Answer in Spanish." in context["preamble"]
    assert [message["content"] for message in context["recent_messages"]] == [
        message["content"] for message in turns[-5:]
    ]
    assert context["conversation_summary"]["message_count"] == 7
    assert {item["id"] for item in context["active_contexts"]} == {item["id"] for item in items}


@pytest.mark.req("TRUE-12")
async def test_question_over_budget_or_empty_is_422(agent: httpx.AsyncClient) -> None:
    for wrong in (
        {"question": "word " * 100, "token_budget": 50},
        {"question": " "},
        {"question": "x", "token_budget": 0},
        {"question": "x", "top": 51},
        {},
    ):
        refused = await agent.post(f"{USER}/context", json=wrong)
        assert (refused.status_code, bool(refused.json()["errors"])) == (422, True), wrong


@pytest.mark.req("TRUE-22")
async def test_feedback_updates_preferences(agent: httpx.AsyncClient) -> None:
    turns = [
        {"role": "user", "content": "Could you please chart it?", "intent": "trend"},
        {"role": "assistant", "content": "Done."},
    ]
    stored = await agent.post(f"{USER}/messages", json={"session_id": "s", "messages": turns, "extract": False})
    rated = f"{USER}/messages/{stored.json()['message_ids'][1]}/feedback"
    for score, status in ((0, 422), (6, 422), (5, 200)):
        assert (await agent.post(rated, json={"score": score})).status_code == status
    learned = {preference["preference_type"] for preference in await wait_for_items(agent, "preferences")}
    assert learned == {"communication", "visualization", "topics"}


METRIC_TYPES = {
    "message_storage_time_seconds": "histogram",
    "context_extraction_time_seconds": "histogram",
    "semantic_search_latency_seconds": "histogram",
    "pattern_detection_count_total": "counter",
    "preference_updates_total": "counter",
    "cache_hit_rate": "gauge",
    "memory_size_bytes": "gauge",
    "compression_ratio": "gauge",
}


async def read_metrics(admin: httpx.AsyncClient) -> dict[str, float]:
    """The value of each metric, over all its labels."""
    values: dict[str, float] = defaultdict(float)
    for line in (await admin.get("/metrics")).text.splitlines():
        if sample := re.match(r"graphmem_(\w+)(?:\{[^}]*\})? (\S+)$", line):
            values[sample[1]] += float(sample[2])
    return values


@pytest.mark.req("TRUE-26")
async def test_memory_metrics_count_what_happens(agent: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
    text = (await admin.get("/metrics")).text
    assert [name for name, kind in METRIC_TYPES.items() if f"# TYPE graphmem_{name} {kind}" not in text] == []
    before = await read_metrics(admin)
    turns = [{"role": "user", "content": "Please answer in Spanish."}]
    await agent.post(f"{USER}/messages", json={"messages": turns, "extract": False})
    await agent.post(f"{USER}/search", json={"query": "tea"})
    await wait_for_items(agent, "preferences")
    after = await read_metrics(admin)
    for name in ("message_storage_time_seconds_count", "semantic_search_latency_seconds_count"):
        assert after[name] >= before[name] + 1, name
    for name in ("context_extraction_time_seconds_count", "preference_updates_total"):
        assert after[name] >= before[name] + 1, name
    assert after["memory_size_bytes"] > 0
    assert 0 <= after["cache_hit_rate"] <= 1
