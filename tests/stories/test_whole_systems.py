"""Each of the described systems from its first message to its last, as its users live it.

No step sets what a description does not mention, with one exception: the product profile `finance`, by which a
financial assistant tells graphmem what its intents mean.
"""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest

from graphmem.app.bootstrap import Services
from graphmem.models.embedder import Embedder
from graphmem.runtime.settings import Settings
from graphmem.runtime.times import utc_now
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.consolidation.test_analysis import action
from tests.consolidation.verifications import carried, checked
from tests.ingestion.conftest import candidate, decision, extraction, reconciliation, turn
from tests.mcp.conftest import serve_tools
from tests.models.scripted_server import Exchange, ScriptedServer, Step, replies
from tests.stories.conftest import answer

FINANCE_TENANT = "truefi"


@pytest.fixture(scope="module")
async def profiled(
    settings: Settings, embedder: Embedder, model: ScriptedServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Services, str]]:
    """Services of which one tenant is a financial assistant, and their address."""
    changes = {"profiles": [f"{FINANCE_TENANT}:finance"]}
    changed = model.configure(settings, tmp_path_factory.mktemp("whole"), **changes)
    async with Services.open(changed, embedder=embedder) as services, serve_tools(services, changed) as address:
        yield services, address


class Caller:
    """A program that keeps its user's memory over HTTP."""

    def __init__(self, client: httpx.AsyncClient, user: str) -> None:
        self.client, self.user = client, user

    async def send(self, method: str, path: str, headers: dict[str, str] | None = None, **body: Any) -> Any:
        url = path if path.startswith("/") else f"/v1/users/{self.user}/{path}"
        sent = await self.client.request(method, url, json=body, headers=headers)
        assert sent.is_success, (path, sent.text)
        return sent.json() if sent.content else None

    async def get(self, path: str, **params: Any) -> Any:
        got = await self.client.get(f"/v1/users/{self.user}/{path}", params=params)
        assert got.is_success, (path, got.text)
        return got.json()

    async def say(self, *turns: str | dict[str, Any], session_id: str = "talk") -> dict[str, Any]:
        """Send turns of the user, wait for their extraction, and return its job."""
        messages = [turn if isinstance(turn, dict) else {"role": "user", "content": turn} for turn in turns]
        job: dict[str, Any] = await self.send("POST", "messages", session_id=session_id, messages=messages, wait=True)
        assert job["status"] in ("succeeded", "skipped"), job
        return job

    async def ask(self, question: str | None = None, **fields: Any) -> dict[str, Any]:
        context: dict[str, Any] = await self.send("POST", "context", question=question, **fields)
        return context

    async def memories(self, **params: Any) -> list[str]:
        return [memory["content"] for memory in (await self.get("memories", **params))["items"]]


async def open_caller(profiled: tuple[Services, str], tenant: str) -> Caller:
    services, address = profiled
    user = f"u{uuid.uuid4().hex[:8]}"
    key = await services.keys.create(tenant, ApiKeyIn(name=user, role=KeyRole.ADMIN))
    headers = {"Authorization": f"Bearer {key.key}"}
    return Caller(httpx.AsyncClient(base_url=address, headers=headers, timeout=60), user)


@pytest.fixture
async def caller(profiled: tuple[Services, str], tenant: str) -> AsyncIterator[Caller]:
    caller = await open_caller(profiled, tenant)
    yield caller
    await caller.client.aclose()


@pytest.mark.req("GO-01", "GO-02", "GO-04", "GO-05", "GO-07", "GO-10", "GO-12", "GO-16")
async def test_go_memory_inserts_skips_and_deletes_what_is_outdated(caller: Caller, model: ScriptedServer) -> None:
    async def insert(*contents: str, key: str) -> dict[str, Any]:
        roles = ("user", "model")
        turns = [{"role": roles[number % 2], "content": content} for number, content in enumerate(contents)]
        headers = {"Idempotency-Key": key}
        sent = await caller.send("POST", "/v1/memories", headers, userId=caller.user, messages=turns)
        return await finished(caller, sent["job_id"])

    key = uuid.uuid4().hex
    answer(model, extraction(home("New York"), keywords=["home", "New York"]))
    first, again = await asyncio.gather(*(insert("I live in New York.", "Nice!", key=f"{key}-1") for _ in range(2)))
    assert (first["id"], len(model.requests)) == (again["id"], 1), "the same request is processed once"

    answer(model, extraction())
    skipped = await insert("Good morning!", "Hello!", key=f"{key}-2")
    assert (skipped["status"], skipped["receipt"]["llm_calls"]) == ("skipped", 1)

    answer(model, extraction(home("London")), reconciliation(decision(1, "supersede", 1)))
    moved = await insert("I have moved from New York to London.", "Congratulations!", key=f"{key}-3")
    assert moved["receipt"]["llm_calls"] == 2
    second = json.dumps(model.requests[-1])
    assert "User lives in New York" in second
    assert not [action["memory_id"] for action in first["actions"] if action["memory_id"] in second], (
        "integers, not ids"
    )
    assert await caller.memories() == ["User lives in London"]
    core = (await caller.get("profile"))["core"]
    assert [memory["content"] for memory in core] == ["User lives in London"]
    await caller.send("DELETE", f"memories/{core[0]['id']}")
    assert (await caller.get("profile"))["core"] == []


def home(place: str) -> dict[str, Any]:
    return candidate(f"User lives in {place}", importance=0.9)


async def finished(caller: Caller, job_id: str) -> dict[str, Any]:
    for _ in range(1200):
        job: dict[str, Any] = await caller.send("GET", f"/v1/jobs/{job_id}")
        if job["status"] in ("succeeded", "skipped", "failed"):
            return job
        await asyncio.sleep(0.3)
    raise AssertionError(job)


@pytest.mark.req(
    "QUINN-02", "QUINN-03", "QUINN-09", "QUINN-23", "QUINN-27", "QUINN-39", "QUINN-42", "QUINN-43", "QUINN-44"
)
async def test_quinn_answers_e_mails_of_one_user_over_months(caller: Caller, model: ScriptedServer) -> None:
    alpha = {"subject": {"name": "Project Alpha", "type": "Project"}, "predicate": "DUE_ON", "single_valued": True}
    rex = {"predicate": "HAS_PET", "object": {"name": "Rex", "type": "Dog"}}
    formal = {**turn(1, "set_tone"), "wishes": [wish("style", "formal"), wish("language", "Spanish")]}
    casual = {**turn(1, "set_tone"), "wishes": [wish("style", "casual")]}
    learned = [
        (
            "I prefer if you communicate in a formal tone, and please respond in Spanish.",
            extraction(
                candidate("User prefers a formal tone and answers in Spanish", type="preference"), turns=[formal]
            ),
        ),
        (
            "My project is in Python running on a Linux server.",
            extraction(candidate("User's project environment: Python on Linux", domain="coding")),
        ),
        ("My dog Rex keeps me busy.", extraction(candidate("User has a dog named Rex", **rex))),
        (
            "Project Alpha is due on June 30, 2025.",
            extraction(
                candidate(
                    "Project Alpha is due on 30 June 2025", object={"name": "30 June 2025", "type": "Date"}, **alpha
                )
            ),
        ),
    ]
    for number, (said, read) in enumerate(learned):
        answer(model, read, reconciliation())
        await caller.say(said, session_id=f"mail-{number}")

    assert await learned_style(caller, "formal") == "Spanish"
    answer(model, extraction(turns=[casual]))
    await caller.say("Actually, you can use a casual tone with me.", session_id="mail-5")
    assert await learned_style(caller, "casual") == "Spanish", "the language stays"

    deployment = await caller.ask("The deployment isn't working, can you help debug?", session_id="help")
    assert "Python on Linux" in deployment["preamble"]
    assert "Python on Linux" not in (await caller.ask("What shall I cook for dinner?", session_id="meal"))["preamble"]

    answer(
        model,
        extraction(
            candidate("Project Alpha is due on 15 July 2025", object={"name": "15 July 2025", "type": "Date"}, **alpha)
        ),
        reconciliation(decision(1, "supersede", 1)),
    )
    await caller.say("The deadline of Project Alpha moved to July 15, 2025.", session_id="mail-6")
    preamble = (await caller.ask("What's the deadline for Project Alpha?", session_id="due"))["preamble"]
    assert ("15 July 2025" in preamble, "30 June" in preamble) == (True, False)
    [due] = [memory for memory in (await caller.get("memories"))["items"] if "July" in memory["content"]]
    [before] = [await caller.get(f"memories/{key}") for key in due["supersedes"]]
    assert (before["content"], before["superseded_by"]) == ("Project Alpha is due on 30 June 2025", due["id"])

    [saved] = (
        await caller.send(
            "POST",
            "memories",
            memories=[{"content": "User's anniversary is on 10 October", "type": "personal_info", "importance": 0.9}],
        )
    )["results"]
    assert saved["action"] == "insert", "what is confirmed aloud is stored"
    assert "10 October" in (await caller.ask("Do you know what special date is coming up for me?"))["preamble"]

    free = await caller.ask("I finally have some free time now.", session_id="later")
    assert free["personalization_hints"]["personal_touches"] == ["User has a dog named Rex"]
    assert free["personalization_hints"]["greeting"].startswith("Welcome back")
    reply = await caller.send("POST", "sessions/mail-6/enhance", reply="The deadline is 15 July.", sources=[due["id"]])
    assert reply["text"].endswith(f"This rests on what you told me on {utc_now():%Y-%m-%d}.")


def wish(about: str, value: str) -> dict[str, str]:
    return {"about": about, "value": value, "polarity": "for"}


async def learned_style(caller: Caller, style: str) -> str | None:
    """Wait until answers are to have a style, which is learned in the background; return the language of answers."""
    for _ in range(600):
        hints = (await caller.ask("Can you draft a reply?", session_id="draft"))["personalization_hints"]
        if hints["communication_style"] == style:
            return str(hints["language"])
        await asyncio.sleep(0.5)
    raise AssertionError(hints)


@pytest.mark.req(
    "TRUE-07",
    "TRUE-08",
    "TRUE-09",
    "TRUE-14",
    "TRUE-15",
    "TRUE-17",
    "TRUE-18",
    "TRUE-19",
    "TRUE-20",
    "TRUE-21",
    "TRUE-22",
    "TRUE-23",
    "TRUE-24",
    "TRUE-26",
    "TRUE-28",
)
async def test_truefi_learns_from_two_weeks_of_questions_about_money(
    profiled: tuple[Services, str], model: ScriptedServer
) -> None:
    caller = await open_caller(profiled, FINANCE_TENANT)
    now, told_ids = utc_now(), []
    for day in range(12):
        at = now - timedelta(days=11 - day, minutes=5)
        asked = {
            "role": "user",
            "content": f"Hey, is $45 for dining stuff too much, day {day}?",
            "intent": "spending_analysis",
            "entities": {"category": "dining", "amount": 40},
            "timestamp": at.isoformat(),
        }
        told = {
            "role": "assistant",
            "content": "You spent $40 on dining.",
            "timestamp": (at + timedelta(seconds=9)).isoformat(),
            "sql_executed": "SELECT 1",
            "query_results": {"n": 1},
            "execution_time_ms": 12,
        }
        sent = await caller.send("POST", "messages", session_id=f"day-{day}", messages=[asked, told], extract=False)
        told_ids.append(sent["message_ids"][1])
    await caller.send("POST", "/v1/admin/maintenance", tasks=["prune"])

    for _ in range(600):
        context = await caller.ask("How is my dining budget?", session_id="day-11", intent="spending_analysis")
        if context["active_contexts"]:
            break
        await asyncio.sleep(0.5)
    assert context["conversation_summary"]["topics_discussed"] == ["spending_analysis"]
    assert {item["context_type"] for item in context["active_contexts"]} >= {"entity_category", "amount_reference"}
    patterns = {pattern["pattern_type"]: pattern for pattern in context["behavioral_patterns"]}
    assert patterns["query_frequency"]["confidence_score"] == pytest.approx(12 / 30)
    concern = patterns["spending_concern"]
    assert (concern["pattern_data"]["category"], concern["confidence_score"]) == ("dining", 1.0)

    for reply in told_ids[:2]:
        await caller.send("POST", f"messages/{reply}/feedback", score=5)
    [style] = [one for one in await items(caller, "preferences") if one["preference_type"] == "communication"]
    assert (style["preference_value"]["style"], style["confidence_score"], style["frequency"]) == ("casual", 0.7, 2)
    await caller.send("POST", f"messages/{told_ids[2]}/feedback", score=1)
    [weaker] = [one for one in await items(caller, "patterns") if one["pattern_type"] == "spending_concern"]
    assert weaker["confidence_score"] < 1.0, "a bad rating weakens the pattern behind the reply"

    draft = "Your spending on dining is stable."
    enhanced = (await caller.send("POST", "sessions/day-11/enhance", reply=draft))["text"]
    assert enhanced.startswith("As we discussed, your spending on dining is stable.")
    found = (await caller.send("POST", "messages/search", query="dining"))["results"]
    assert (len(found), found == sorted(found, key=lambda hit: -hit["similarity_score"])) == (5, True)

    old = (now - timedelta(days=40)).isoformat()
    turns = [{"role": "user", "content": f"Old question {number}", "timestamp": old} for number in range(11)]
    await caller.send("POST", "messages", session_id="old", messages=turns, extract=False)
    answer(model, {"title": "Old", "summary": "Old questions.", "takeaways": [], "topics": [], "sentiment": 0.0})
    await caller.send("POST", "/v1/admin/maintenance", tasks=["compress"])
    for _ in range(1200):
        if not await items(caller, "sessions/old/messages"):
            break
        await asyncio.sleep(0.3)
    [archive] = await items(caller, "sessions/old/archives")
    assert (archive["message_count"], archive["summary"]) == (11, "Old questions.")
    metrics = (await caller.client.get("/metrics")).text
    assert {name for name in METRICS if name not in metrics} == set()
    await caller.client.aclose()


METRICS = [
    *("message_storage_time", "context_extraction_time", "pattern_detection_count", "preference_updates"),
    *("cache_hit_rate", "memory_size_bytes", "compression_ratio", "semantic_search_latency"),
]


async def items(caller: Caller, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await caller.get(path))["items"]
    return found


@pytest.mark.req("UMB-01", "UMB-05", "UMB-08", "UMB-10", "UMB-13", "UMB-14", "UMB-15", "UMB-18", "UMB-20")
async def test_umber_remembers_a_day_and_merges_it_at_night(caller: Caller, model: ScriptedServer) -> None:
    bob = {"subject": {"name": "Bob", "type": "Person"}}
    interest = candidate(
        "User is interested in sailing",
        type="inferred_interest",
        predicate="INTERESTED_IN",
        object={"name": "sailing", "type": "Activity"},
    )
    day = [
        ("Coffee is my jam", [candidate("User likes coffee", type="preference")]),
        ("I've been really into sailing lately. Any good spots near Boston?", [interest]),
        ("What does a small boat cost? I love sailing.", [interest]),
        (
            "Bob works at Acme",
            [
                candidate(
                    "Bob works at Acme", predicate="WORKS_AT", object={"name": "Acme", "type": "Organization"}, **bob
                )
            ],
        ),
        (
            "Bob is in engineering",
            [
                candidate(
                    "Bob is in engineering",
                    predicate="DEPARTMENT",
                    object={"name": "engineering", "type": "Department"},
                    **bob,
                )
            ],
        ),
    ]
    for number, (said, read) in enumerate(day):
        answer(model, extraction(*read), reconciliation())
        await caller.say(said, session_id=f"chat-{number}")
    assert {"User likes coffee", "User is interested in sailing", "Bob works at Acme"} <= {*await caller.memories()}

    [found] = (await caller.get("entities/lookup", q="How is Bob?"))["entities"]
    assert {memory["content"] for memory in found["memories"]} == {"Bob works at Acme", "Bob is in engineering"}

    acme, department, both = "Bob works at Acme", "Bob is in engineering", BOTH
    model.steps = [
        by_numbers(lambda of: {"steps": ["one job"], "contradictions": [], "actions": [job(of(acme), of(department))]}),
        by_numbers(
            lambda of: {"proposals": [checked(statements=[same(of(acme), acme), same(of(department), department)])]}
        ),
    ]
    model.requests.clear()
    run = await caller.send("POST", "/v1/admin/consolidations", user_id=caller.user, wait=True)
    assert [(one["verdict"], one["reason"]) for one in run["proposals"]] == [("executed", None)]
    assert (both in await caller.memories(), acme in await caller.memories()) == (True, False)
    undone = await caller.send("POST", f"/v1/admin/consolidations/{run['id']}/rollback")
    assert undone["conflicts"] == []
    assert {acme, department} <= {*await caller.memories()}

    answer(
        model,
        extraction(
            candidate(
                "Bob now works at NewCo", predicate="WORKS_AT", object={"name": "NewCo", "type": "Organization"}, **bob
            )
        ),
        reconciliation(decision(1, "supersede", 1)),
    )
    await caller.say("Bob now works at NewCo", session_id="tomorrow")
    preamble = (await caller.ask("Where does Bob work?"))["preamble"]
    assert ("NewCo" in preamble, "Bob works at Acme" in preamble) == (True, False)
    past = await caller.memories(include_superseded=True)
    assert acme in past, "what was superseded is kept for audit"


BOTH = "Bob works in engineering at Acme"


def job(*memories: int) -> dict[str, Any]:
    return action("MERGE", memories=list(memories), content=BOTH, reason="one job")


def same(number: int, statement: str) -> dict[str, Any]:
    return carried(number, (statement, BOTH))


def by_numbers(answer_with: Callable[[Callable[[str], int]], dict[str, Any]]) -> Step:
    """Answer with the numbers that the prompt gives statements."""

    def step(exchange: Exchange) -> None:
        prompt = exchange.body["messages"][-1]["content"]

        def number_of(statement: str) -> int:
            found = re.search(rf"\[M(\d+)\][^\n]*{re.escape(statement)}", prompt)
            assert found, prompt
            return int(found[1])

        replies(json.dumps(answer_with(number_of)))(exchange)

    return step
