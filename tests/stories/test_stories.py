"""Stories of the systems that graphmem takes up, as a caller lives them: over HTTP, with a model that answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from graphmem.app.bootstrap import Services
from graphmem.runtime.times import utc_now
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.ingestion.conftest import candidate, extraction, turn
from tests.ingestion.test_tool_extraction import call, calls
from tests.models.scripted_server import ScriptedServer, fails, replies
from tests.stories.conftest import answer

USER = "/v1/users/john"
SUMMARY: dict[str, Any] = {
    "title": "API timeout",
    "summary": "Summary of Issue #1234: an API timeout was diagnosed, more memory fixed it, issue resolved.",
    "takeaways": ["John fixed the API timeout of issue #1234 by increasing memory."],
    "topics": ["api-timeout"],
    "sentiment": 0.4,
}


@pytest.fixture
async def john(talking_address: str, talking: Services, tenant: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client whose messages a model reads."""
    key = await talking.keys.create(tenant, ApiKeyIn(name="quinn", role=KeyRole.ADMIN))
    headers = {"Authorization": f"Bearer {key.key}"}
    async with httpx.AsyncClient(base_url=talking_address, headers=headers, timeout=60) as client:
        yield client


async def say(client: httpx.AsyncClient, text: str, **fields: Any) -> dict[str, Any]:
    """Send one message and return the finished job of its extraction."""
    turn = {"role": "user", "content": text, **fields.pop("turn", {})}
    sent = await client.post(f"{USER}/messages", json={"messages": [turn], "wait": True, **fields})
    assert (sent.status_code, sent.json().get("status") in {"succeeded", "skipped"}) == (200, True), sent.text
    job: dict[str, Any] = sent.json()
    return job


async def build_context(client: httpx.AsyncClient, question: str, **fields: Any) -> dict[str, Any]:
    context: dict[str, Any] = (await client.post(f"{USER}/context", json={"question": question, **fields})).json()
    return context


@pytest.mark.req("QUINN-03")
async def test_python_on_linux_is_recalled_for_deployment_help_and_left_out_of_cooking(
    john: httpx.AsyncClient, model: ScriptedServer
) -> None:
    environment = "John's project runs in Python on a Linux server"
    answer(model, extraction(candidate(environment, domain="coding")))
    await say(john, "My project is in Python running on a Linux server.", session_id="first")
    [memory] = (await john.get(f"{USER}/memories")).json()["items"]
    assert (memory["content"], memory["scope"], memory["domain"]) == (environment, "domain", "coding")

    help_wanted = await build_context(john, "The deployment isn't working, can you help debug?", domain="coding")
    assert f"- {environment}" in help_wanted["preamble"]
    of_session = await john.post(f"{USER}/sessions", json={"session_id": "mail", "domain": "coding"})
    assert of_session.status_code == 201, of_session.text
    in_session = await build_context(john, "The deployment isn't working, can you help debug?", session_id="mail")
    assert f"- {environment}" in in_session["preamble"]
    assert (await build_context(john, "Which pan do I need for an omelette?"))["memories"] == []
    assert (await build_context(john, "Any idea for dinner?", domain="cooking"))["memories"] == []

    moved = await john.patch(f"{USER}/memories/{memory['id']}", json={"domain": None})
    assert (moved.json()["scope"], moved.json()["domain"]) == ("profile", None)
    assert environment in (await build_context(john, "Any idea for dinner?", domain="cooking"))["preamble"]


async def summarized(client: httpx.AsyncClient, session_id: str) -> dict[str, Any]:
    """Wait until a session has a summary."""
    for _ in range(600):
        session: dict[str, Any] = (await client.get(f"{USER}/sessions/{session_id}")).json()
        if session["summary"]:
            return session
        await asyncio.sleep(0.3)
    raise AssertionError("there is no summary")


@pytest.mark.req("QUINN-07", "QUINN-37")
async def test_summarise_this_and_remember_it_reaches_the_whole_session_and_comes_back_by_its_ticket(
    john: httpx.AsyncClient, model: ScriptedServer
) -> None:
    await john.post(f"{USER}/sessions", json={"session_id": "support", "metadata": {"ticket_id": "1234"}})
    before = {"session_id": "support", "extract": False}
    for sent in (
        {"role": "user", "content": "My API calls time out."},
        {"role": "assistant", "content": "More memory?"},
    ):
        await john.post(f"{USER}/messages", json={"messages": [sent], **before})
    answer(model, extraction(summarize=True), SUMMARY)
    await say(john, "That fixed it. Quinn, summarise this discussion and remember it for later.", session_id="support")
    assert (await summarized(john, "support"))["summary"] == SUMMARY["summary"]
    assert "My API calls time out." in str(model.requests[-1]), "the summary reads the session from its beginning"

    memories = (await john.get(f"{USER}/memories", params={"session_id": "support"})).json()["items"]
    by_tag = {memory["tags"][0]: memory for memory in memories}
    assert by_tag.keys() == {"summary", "topic", "takeaway"}
    assert by_tag["summary"]["metadata"]["ticket_id"] == "1234"
    takeaway = by_tag["takeaway"]["content"]
    assert takeaway in (await build_context(john, "My API is slow again", session_id="later"))["preamble"]

    for question in ("This is similar to issue #1234 we had.", "Is it like ticket 1234?"):
        context = await build_context(john, question, session_id="later")
        assert context["related_sessions"][0]["session_id"] == "support", question
        assert SUMMARY["summary"] in context["preamble"], question


@pytest.mark.req("QUINN-07")
async def test_a_conversation_is_summed_up_on_request_once_and_remembered(
    john: httpx.AsyncClient, talking: Services, tenant: str, model: ScriptedServer
) -> None:
    turns = [{"role": "user", "content": "My API calls time out."}, {"role": "assistant", "content": "More memory?"}]
    await john.post(f"{USER}/messages", json={"session_id": "support", "messages": turns, "extract": False})
    answer(model, SUMMARY)
    path = f"{USER}/sessions/support/summarize"
    summed_up, again = [(await john.post(path, json={"wait": True})).json() for _ in range(2)]
    assert (summed_up["status"], again["status"]) == ("succeeded", "skipped")
    assert (await john.get(f"{USER}/sessions/support")).json()["summary"] == SUMMARY["summary"]
    assert len(model.requests) == 1, "the same conversation is summed up once"
    memories = (await john.get(f"{USER}/memories")).json()["items"]
    assert {SUMMARY["summary"], SUMMARY["takeaways"][0]} <= {memory["content"] for memory in memories}


@pytest.mark.req("QUINN-38")
async def test_a_knowledge_base_is_asked_only_where_memory_does_not_suffice_and_is_pointed_to_afterwards(
    john: httpx.AsyncClient,
) -> None:
    asked: list[str] = []

    async def find_pointers(question: str) -> list[str]:
        knowledge = (await build_context(john, question))["personalization_hints"]["knowledge"]
        if not knowledge["sufficient"]:
            asked.append(question)
            article = {"content": "New firmware fixes error 49 of the printer", "metadata": {"kb_article": "42"}}
            await john.post(f"{USER}/memories", json={"memories": [article]})
        pointers: list[str] = knowledge["pointers"]
        return pointers

    question = "How do I fix error 49 of the printer?"
    assert await find_pointers(question) == []
    assert await find_pointers(question) == ["42"]
    assert asked == [question]


@pytest.mark.req("UMB-03")
async def test_a_quote_of_its_source_outlives_the_message(john: httpx.AsyncClient, model: ScriptedServer) -> None:
    then = utc_now() - timedelta(days=60)
    said = "I've been really into sailing lately."
    turns = [
        {"role": "user", "content": said if not number else f"Turn {number}", "timestamp": then.isoformat()}
        for number in range(11)
    ]
    answer(model, extraction(candidate("John is into sailing")), {**SUMMARY, "takeaways": [], "topics": []})
    body = {"session_id": "boats", "messages": turns, "wait": True}
    assert (await john.post(f"{USER}/messages", json=body)).json()["status"] == "succeeded"
    await john.post(f"{USER}/sessions/boats/summarize", json={"wait": True})
    await john.post("/v1/admin/maintenance", json={"tasks": ["compress"]})
    for _ in range(600):
        if not (await john.get(f"{USER}/sessions/boats/messages")).json()["items"]:
            break
        await asyncio.sleep(0.3)
    [archive] = (await john.get(f"{USER}/sessions/boats/archives")).json()["items"]
    assert archive["message_count"] == 11
    memories = (await john.get(f"{USER}/memories", params={"type": "fact"})).json()["items"]
    assert [memory["source"]["quote"] for memory in memories] == [said]


async def trigger(client: httpx.AsyncClient, session_id: str) -> str:
    """Trigger the extraction of a session by tool calls, wait for its end, and return the id of its own session."""
    body = {"session_id": session_id, "user_id": "john"}
    started = (await client.post("/_admin/trigger-memory-extraction-v2", json=body)).json()
    assert started["triggered"] is True
    for _ in range(600):
        job = (await client.get(f"/v1/jobs/{started['job_id']}")).json()
        if job["status"] in ("succeeded", "skipped", "failed"):
            break
        await asyncio.sleep(0.3)
    assert job["status"] == "succeeded", job
    return str(started["message"]).removeprefix("Memory extraction triggered, session ID: ")


@pytest.mark.req("CASH-01", "CASH-02", "CASH-07", "CASH-12", "CASH-14", "CASH-15", "CASH-17", "CASH-21")
async def test_what_an_adviser_learns_by_hand_opens_the_next_conversation(
    john: httpx.AsyncClient, model: ScriptedServer
) -> None:
    turns = [
        {"role": "user", "content": "I prefer weekly spending summaries"},
        {"role": "assistant", "content": "I'll remember that preference."},
        {"role": "user", "content": "Also, I run a small bakery. I have $512 in my account."},
    ]
    await john.post(f"{USER}/messages", json={"session_id": "chat", "messages": turns, "extract": False})
    assert (await john.get(f"{USER}/memories")).json()["items"] == [], "chat alone extracts nothing"
    before = (await john.get(f"{USER}/sessions/chat")).json()

    said = [
        call("Prefers weekly spending summaries", topic_tags=["COMMUNICATION_PREFERENCES"]),
        call("Runs a small bakery business", "FACTUAL_INFO", confidence=0.95, topic_tags=["BAKING"]),
        call("User has $512 in the account", "FACTUAL_INFO"),
        call("User sent $20 to Alex on 26 November", "FACTUAL_INFO"),
    ]
    runs = []
    for _ in range(2):
        model.requests.clear()
        model.steps = [calls(*said), replies("That is all."), replies(json.dumps({"decisions": []}))]
        runs.append(await trigger(john, "chat"))
    assert len({"chat", *runs}) == 3
    assert (await john.get(f"{USER}/sessions/chat")).json() == before, "the source is untouched"
    memories = (await john.get(f"{USER}/memories")).json()["items"]
    assert {memory["content"] for memory in memories} == {
        "Prefers weekly spending summaries",
        "Runs a small bakery business",
    }
    assert {"COMMUNICATION_PREFERENCES", "OTHER"} <= {tag for memory in memories for tag in memory["tags"]}
    context = await build_context(john, "How is my business doing?", session_id="tomorrow")
    lines = context["preamble"].splitlines()
    assert lines[0] == "## Information about this user from past conversations:"
    assert {"- Prefers weekly spending summaries", "- Runs a small bakery business"} <= set(lines)
    assert "512" not in context["preamble"]


@pytest.mark.req("CASH-22")
async def test_a_request_about_the_answer_at_hand_is_gone_with_its_session(
    john: httpx.AsyncClient, model: ScriptedServer
) -> None:
    small_talk = extraction(turns=[turn(1, "small_talk")])
    answer(model, small_talk)
    assert (await say(john, "The chart above in blue, please.", session_id="now"))["status"] == "skipped"
    assert (await john.get(f"{USER}/memories")).json()["items"] == []
    for _ in range(600):
        [message] = (await john.get(f"{USER}/sessions/now/messages")).json()["items"]
        if message["intent"]:
            break
        await asyncio.sleep(0.3)
    assert "blue" not in (await build_context(john, "Which colour has the chart?", session_id="later"))["preamble"]


@pytest.mark.req("UMB-05", "UMB-20")
async def test_an_interest_that_is_stated_twice_is_a_memory(john: httpx.AsyncClient, model: ScriptedServer) -> None:
    interest = candidate("John is interested in sailing", type="inferred_interest", predicate="INTERESTED_IN")
    counts = []
    for said in ("I've been really into sailing lately.", "Sailing is what I do on Sundays now."):
        answer(model, extraction(interest), {"decisions": [], "same_entities": []})
        await say(john, said)
        counts.append(len((await john.get(f"{USER}/memories")).json()["items"]))
    assert counts == [0, 1]


@pytest.mark.req("UMB-02", "UMB-06", "UMB-14", "UMB-15", "UMB-16", "UMB-18", "UMB-19")
async def test_what_is_said_of_bob_is_linked_found_merged_and_superseded(
    john: httpx.AsyncClient, model: ScriptedServer
) -> None:
    async def save(*contents: str, **fields: Any) -> list[dict[str, Any]]:
        memories = [{"content": content, **fields} for content in contents]
        saved = await john.post(f"{USER}/memories", json={"memories": memories})
        results: list[dict[str, Any]] = saved.json()["results"]
        return results

    await save("Bob likes coffee", "Alice likes tea")
    bob = {"name": "Bob", "type": "Person"}
    acme, engineering = await save("Bob works at Acme", "Bob is in engineering", subject=bob)
    found = (await john.get(f"{USER}/entities/lookup", params={"q": "How is Bob?"})).json()["entities"]
    known = {memory["content"] for memory in found[0]["memories"]}
    assert known == {"Bob works at Acme", "Bob is in engineering", "Bob likes coffee"}

    both = {"action": "MERGE", "memory_ids": [acme["memory"]["id"], engineering["memory"]["id"]], "verified": True}
    people = [result["memory"]["id"] for result in await save("Bob likes coffee", "Alice likes tea")]
    proposals = [
        {**both, "content": "Bob works in engineering at Acme", "reason": "one job"},
        {"action": "MERGE", "memory_ids": people, "content": "Bob likes coffee and Alice likes tea", "verified": True},
    ]
    body = {"user_id": "john", "proposals": proposals, "wait": True}
    run = (await john.post("/v1/admin/consolidations", json=body)).json()
    assert [proposal["verdict"] for proposal in run["proposals"]] == ["executed", "refused"]
    merged = run["proposals"][0]["result_id"]
    assert (await john.get(f"{USER}/memories/{merged}")).json()["content"] == "Bob works in engineering at Acme"

    (newco,) = await save("Bob now works at NewCo", subject=bob, supersedes=[merged])
    assert newco["superseded"] == [merged]
    old = (await john.get(f"{USER}/memories/{merged}")).json()
    assert (old["status"], old["superseded_by"]) == ("superseded", newco["memory"]["id"])


@pytest.mark.req("UMB-01")
async def test_waiting_for_a_model_that_fails_answers_the_job_that_waits(
    john: httpx.AsyncClient, model: ScriptedServer
) -> None:
    model.steps = [fails(429, **{"retry-after": "3600"})]
    turn = {"id": "m1", "role": "user", "content": "I like tea"}
    body = {"session_id": "wait", "messages": [turn], "wait": True}
    sent = await john.post(f"{USER}/messages", json=body)
    job = sent.json()
    assert (sent.status_code, job["status"], bool(job["reason"])) == (202, "queued", True)
    answer(model, extraction(candidate("John likes tea")))
    await john.post(f"/v1/jobs/{job['id']}/retry")
    again = await john.post(f"{USER}/messages", json=body)
    assert (again.status_code, again.json()["id"], again.json()["status"]) == (200, job["id"], "succeeded")
    once_more = await john.post(f"{USER}/messages", json=body)
    assert (once_more.status_code, once_more.json()["id"]) == (200, job["id"])
