"""The context for the model's prompt and what it is made of, over HTTP."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from datetime import timedelta
from typing import Any

import httpx
import pytest

from graphmem.app.bootstrap import Services
from graphmem.runtime.times import utc_now

USER = "/v1/users/mara"
CONTEXT_FIELDS = {
    "context_id", "preamble", "token_count", "conversation_summary", "recent_messages", "active_contexts",
    "user_preferences",
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
    for _ in range(600):
        items: list[dict[str, Any]] = (await client.get(f"{USER}/{what}")).json()["items"]
        if items:
            return items
        await asyncio.sleep(0.3)
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
    await agent.post(f"{USER}/messages/search", json={"query": "tea"})
    await wait_for_items(agent, "preferences")
    after = await read_metrics(admin)
    assert after["semantic_search_latency_seconds_count"] >= before["semantic_search_latency_seconds_count"] + 2
    for name in (
        "message_storage_time_seconds_count",
        "context_extraction_time_seconds_count",
        "preference_updates_total",
    ):
        assert after[name] >= before[name] + 1, name
    assert after["memory_size_bytes"] > 0
    text = (await admin.get("/metrics")).text
    rates = dict(re.findall(r'graphmem_cache_hit_rate\{cache="(\w+)"\} (\S+)', text))
    answers, parts = {"context", "lookup", "profile"}, {"entity_names", "embedded_texts", "stored_vectors", "resident"}
    assert rates.keys() == answers | parts
    assert all(0 <= float(rate) <= 1 for rate in rates.values())


@pytest.mark.req("CASH-17", "CASH-18")
async def test_a_conversation_starts_with_a_context_without_a_question(agent: httpx.AsyncClient) -> None:
    await agent.post(f"{USER}/sessions", json={"session_id": "earlier", "title": "the trip to Oslo"})
    loop = {"content": "Mara wants to book a hotel in Oslo", "type": "open_loop"}
    cooking = {"content": "Mara cooks without garlic", "domain": "cooking"}
    await agent.post(f"{USER}/memories", json={"memories": [{"content": "Mara is vegetarian"}, loop, cooking]})
    context = (await agent.post(f"{USER}/context", json={})).json()
    assert context["preamble"].startswith("## Information about this user from past conversations:\n- ")
    assert {memory["content"] for memory in context["memories"]} == {"Mara is vegetarian", loop["content"]}
    assert "say so in passing" not in context["preamble"], "asked for with sources only"
    hints = context["personalization_hints"]
    assert hints["greeting"] == "Welcome back! Last time we talked about the trip to Oslo."
    assert hints["open_loops"] == [loop["content"]]
    inside = (await agent.post(f"{USER}/context", json={"domain": "cooking"})).json()
    assert cooking["content"] in {memory["content"] for memory in inside["memories"]}
    assert inside["context_id"] != context["context_id"]


@pytest.mark.req("UMB-06")
async def test_context_lookup_and_message_search_answer_as_of_both_times(agent: httpx.AsyncClient) -> None:
    def lives_in(city: str, since: str) -> dict[str, Any]:
        anna = {"name": "Anna", "type": "Person"}
        return {
            "content": f"Anna lives in {city}", "subject": anna, "predicate": "LIVES_IN", "single_valued": True,
            "object": {"name": city, "type": "City"}, "valid_at": f"{since}T00:00:00Z",
        }  # fmt: skip

    before = utc_now().isoformat()
    for city, since in (("Rome", "2020-01-01"), ("Oslo", "2024-01-01")):
        await agent.post(f"{USER}/memories", json={"memories": [lives_in(city, since)]})
    turns = [
        {"role": "user", "content": "Anna called from Rome", "timestamp": "2021-05-01T10:00:00Z"},
        {"role": "user", "content": "Anna called from Oslo", "timestamp": "2025-05-01T10:00:00Z"},
    ]
    await agent.post(f"{USER}/messages", json={"session_id": "s", "messages": turns, "extract": False})
    then = {"valid_as_of": "2022-01-01T00:00:00Z"}

    async def look_up(**times: str) -> list[str]:
        answer = await agent.get(f"{USER}/entities/lookup", params={"q": "Where is Anna?", **times})
        return [memory["content"] for found in answer.json()["entities"] for memory in found["memories"]]

    async def search_messages(**times: str) -> list[str]:
        answer = await agent.post(f"{USER}/messages/search", json={"query": "Anna called", **times})
        return sorted(hit["message"]["content"] for hit in answer.json()["results"])

    async def build(**times: str) -> dict[str, Any]:
        asked = {"question": "Where does Anna live?", "session_id": "s", **times}
        found: dict[str, Any] = (await agent.post(f"{USER}/context", json=asked)).json()
        return found

    assert await look_up() == ["Anna lives in Oslo"]
    assert await look_up(**then) == ["Anna lives in Rome"]
    assert await look_up() == ["Anna lives in Oslo"]
    assert await look_up(known_as_of=before) == []
    assert await search_messages() == ["Anna called from Oslo", "Anna called from Rome"]
    assert await search_messages(**then) == ["Anna called from Rome"]
    assert await search_messages(known_as_of=before) == []
    past = await build(**then)
    assert [message["content"] for message in past["recent_messages"]] == ["Anna called from Rome"]
    assert "Oslo" not in past["preamble"]
    assert "Anna lives in Oslo" in (await build())["preamble"]
    assert (await build(known_as_of=before))["memories"] == []


@pytest.mark.req("UMB-08")
@pytest.mark.parametrize(("is_immutable", "confidence"), [(False, 0.92), (True, 0.9)])
async def test_a_lookup_strengthens_what_it_returns_unless_it_is_not_to(
    agent: httpx.AsyncClient, services: Services, is_immutable: bool, confidence: float
) -> None:
    """Of an immutable memory, the confidence stays as its writer stated it."""
    memory = {"content": "Mara likes tea", "immutable": is_immutable}
    saved = await agent.post(f"{USER}/memories", json={"memories": [memory]})
    path = f"{USER}/memories/{saved.json()['results'][0]['memory']['id']}"
    before = (await agent.get(path)).json()
    await agent.get(f"{USER}/entities/lookup", params={"q": "mara", "reinforce": False})
    await services.retrieval.flush()
    assert (await agent.get(path)).json() == before
    await agent.get(f"{USER}/entities/lookup", params={"q": "mara"})
    await services.retrieval.flush()
    after = (await agent.get(path)).json()
    assert (after["access_count"], round(after["strength"], 3)) == (1, 0.55)
    assert after["confidence"] == pytest.approx(confidence)
    assert after["last_accessed_at"]


@pytest.mark.req("UMB-08", "UMB-06")
async def test_cached_reads_show_the_strength_and_the_count_of_now(
    agent: httpx.AsyncClient, services: Services
) -> None:
    memory = {"content": "Mara likes tea", "importance": 0.9}
    await agent.post(f"{USER}/memories", json={"memories": [memory]})

    async def look_up() -> tuple[str, int, float]:
        answer = (await agent.get(f"{USER}/entities/lookup", params={"q": "mara", "reinforce": False})).json()
        [found] = answer["entities"][0]["memories"]
        return answer["cache"], found["access_count"], round(found["strength"], 3)

    async def read_profile() -> tuple[str, int]:
        answer = (await agent.get(f"{USER}/profile")).json()
        return answer["cache"], answer["core"][0]["access_count"]

    async def build_context() -> int:
        answer = (await agent.post(f"{USER}/context", json={})).json()
        count: int = answer["memories"][0]["access_count"]
        return count

    assert (await look_up(), await read_profile(), await build_context()) == (("miss", 0, 0.5), ("miss", 0), 0)
    for _ in range(3):
        await agent.post(f"{USER}/search", json={"query": "What does Mara like?"})
        await services.retrieval.flush()
    assert (await look_up(), await read_profile(), await build_context()) == (("hit", 3, 0.65), ("hit", 3), 3)


@pytest.mark.req("GO-12", "QUINN-33")
async def test_the_profile_is_read_by_key_and_every_write_changes_it(agent: httpx.AsyncClient) -> None:
    async def read(**domain: str) -> dict[str, Any]:
        found: dict[str, Any] = (await agent.get(f"{USER}/profile", params=domain)).json()
        return found

    name = {"content": "Mara is called Mimi", "importance": 0.9}
    taste = {"content": "Mara likes tea", "type": "preference"}
    cooking: dict[str, Any] = {"content": "Mara cooks without garlic", "domain": "cooking", "importance": 0.9}
    await agent.post(f"{USER}/memories", json={"memories": [name, taste, cooking]})
    first, again = await read(), await read()
    assert (first["cache"], again["cache"]) == ("miss", "hit")
    contents = {kind: [memory["content"] for memory in memories] for kind, memories in again["memories"].items()}
    assert contents == {"fact": [name["content"]], "preference": [taste["content"]]}
    assert [memory["content"] for memory in again["core"]] == [name["content"]]
    assert cooking["content"] in str((await read(domain="cooking"))["memories"])
    [core] = again["core"]
    await agent.delete(f"{USER}/memories/{core['id']}")
    assert (await read())["core"] == []


@pytest.mark.req("TRUE-04")
async def test_stated_context_items_are_used_until_they_expire_or_are_deleted(agent: httpx.AsyncClient) -> None:
    goal = {"type": "goal", "key": "house", "value": "Buy a house in 2028", "relevance": 0.9, "ttl": 3600}
    stated = await agent.post(f"{USER}/contexts", json=goal)
    assert stated.status_code == 201, stated.text
    assert stated.json().keys() == CONTEXT_ITEM_FIELDS
    again = await agent.post(f"{USER}/contexts", json={**goal, "value": "Buy a flat in 2027"})
    assert again.json()["id"] == stated.json()["id"]
    await agent.post(f"{USER}/contexts", json={"type": "preference", "key": "tone", "value": "Answer briefly."})
    context = (await agent.post(f"{USER}/context", json={})).json()
    assert context["personalization_hints"]["goals"] == ["Buy a flat in 2027"]
    assert "The user's goals: Buy a flat in 2027." in context["preamble"]
    assert "Answer briefly." in context["preamble"]
    assert (await agent.delete(f"{USER}/contexts/{again.json()['id']}")).status_code == 204
    assert (await agent.delete(f"{USER}/contexts/{again.json()['id']}")).status_code == 404
    assert (await agent.post(f"{USER}/context", json={})).json()["personalization_hints"]["goals"] == []
    for wrong, status in (
        ({**goal, "session_id": "unknown"}, 404),
        ({**goal, "ttl": 0}, 422),
        ({**goal, "value": "card 4111 1111 1111 1111"}, 422),
    ):
        assert (await agent.post(f"{USER}/contexts", json=wrong)).status_code == status, wrong


@pytest.mark.req("TRUE-22")
async def test_learned_intents_come_back_with_the_queries_that_answered_them(agent: httpx.AsyncClient) -> None:
    query = "SELECT sum(amount) FROM spending WHERE category = 'food'"
    turns = [
        {"role": "user", "content": "What did I spend on food?", "intent": "spending_analysis"},
        {"role": "assistant", "content": "It was $120.", "sql_executed": query},
    ]
    stored = await agent.post(f"{USER}/messages", json={"session_id": "s", "messages": turns, "extract": False})
    await agent.post(f"{USER}/messages/{stored.json()['message_ids'][1]}/feedback", json={"score": 5})
    [intent] = (await agent.get(f"{USER}/intents")).json()["items"]
    assert (intent["intent"], intent["positive"], intent["successful_queries"]) == ("spending_analysis", 1, [query])
    asked = {"question": "And on books?", "intent": "spending_analysis"}
    hints = (await agent.post(f"{USER}/context", json=asked)).json()["personalization_hints"]
    assert hints["successful_queries"] == [query]


@pytest.mark.req("TRUE-20", "QUINN-37", "QUINN-39")
async def test_a_draft_reply_names_its_sources_and_the_session_it_continues(agent: httpx.AsyncClient) -> None:
    await agent.post(f"{USER}/sessions", json={"session_id": "printer", "title": "printer trouble"})
    turns = [{"role": "user", "content": "What about my spending?", "intent": "spending_analysis"}]
    stored = await agent.post(f"{USER}/messages", json={"session_id": "s", "messages": turns, "extract": False})
    path = f"{USER}/sessions/s/enhance"
    draft = {"reply": "Your spending fell.", "sources": [stored.json()["message_ids"][0], "KB article 42"]}
    enhanced = (await agent.post(path, json=draft)).json()
    today = f"{utc_now():%Y-%m-%d}"
    assert enhanced == {
        "text": (f"Your spending fell.\n\nThis rests on what you told me on {today}. Sources: KB article 42."),
        "applied": ["sources"],
    }
    asked = {"reply": "Reset the fuser.", "question": "Last time we talked about the printer, what was the fix?"}
    opened = (await agent.post(path, json=asked)).json()
    assert opened["text"] == f"As we discussed on {today} (printer trouble):\n\nReset the fuser."
    assert (await agent.post(f"{USER}/sessions/unknown/enhance", json={"reply": "x"})).status_code == 404


@pytest.mark.req("TRUE-19")
async def test_found_messages_have_a_similarity_that_falls_with_the_distance(agent: httpx.AsyncClient) -> None:
    turns = [{"role": "user", "content": content} for content in ("I pay rent on the first", "The cat sleeps")]
    await agent.post(f"{USER}/messages", json={"session_id": "s", "messages": turns, "extract": False})
    query = {"query": "I pay rent on the first"}
    results = (await agent.post(f"{USER}/messages/search", json=query)).json()["results"]
    similarity = {hit["message"]["content"]: hit["similarity_score"] for hit in results}
    assert similarity["I pay rent on the first"] > 0.6
    assert similarity.get("The cat sleeps", 0) < similarity["I pay rent on the first"]


@pytest.mark.req("UMB-07")
async def test_the_persona_of_a_user_weighs_searches_that_give_none(agent: httpx.AsyncClient) -> None:
    plan = {"content": "Mara will drink tea in Kyoto", "type": "plan"}
    taste = {"content": "Mara likes to drink tea", "type": "preference"}
    await agent.post(f"{USER}/memories", json={"memories": [plan, taste]})

    async def best(**options: Any) -> str:
        found = await agent.post(f"{USER}/search", json={"query": "drink tea", "reinforce": False, **options})
        content: str = found.json()["results"][0]["memory"]["content"]
        return content

    for favourite, other in ((plan, taste), (taste, plan)):
        weights = {favourite["type"]: 5.0, other["type"]: 0.1}
        stored = await agent.post(f"{USER}/persona", json={"weights": weights})
        assert stored.json() == (await agent.get(f"{USER}/persona")).json() == {"weights": weights}
        assert await best() == favourite["content"]
        assert await best(persona={other["type"]: 5.0, favourite["type"]: 0.1}) == other["content"]
    assert (await agent.post(f"{USER}/persona", json={"weights": {"plan": -1}})).status_code == 422


@pytest.mark.req("QUINN-30", "QUINN-34")
async def test_results_are_ordered_by_a_score_that_falls(agent: httpx.AsyncClient) -> None:
    finn = {"name": "Finn", "type": "Person"}
    said = ("Finn is allergic to penicillin", "Finn's dog is called Pixel", "Finn lives in Bergen", "Finn plays chess")
    memories = [{"content": content, "subject": finn, "importance": 0.2} for content in said]
    memories[0]["importance"] = 0.95
    await agent.post(f"{USER}/memories", json={"memories": memories})
    for question in ("What is Finn's dog called?", "Where does Finn live?", "What does Finn play?", "Finn"):
        for persona in ({}, {"fact": 100.0}):
            asked = {"query": question, "persona": persona, "explain": True}
            found = (await agent.post(f"{USER}/search", json=asked)).json()
            assert found["reranked"] is False
            scores = [hit["score"] for hit in found["results"]]
            assert scores == sorted(scores, reverse=True)
            assert all(abs(hit["score"] - hit["explain"]["fit"]) < 0.05 for hit in found["results"])
    found = (await agent.post(f"{USER}/search", json={"query": "What is Finn's dog called?", "limit": 1})).json()
    assert [hit["memory"]["content"] for hit in found["results"]] == ["Finn's dog is called Pixel"]
