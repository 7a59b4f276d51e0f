"""What fits comes first, however often other memories were read, and what held then for questions about a time."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from graphmem.app.bootstrap import Services
from graphmem.app.components import RetrievalComponents
from graphmem.conversations.session import MessagesIn
from graphmem.memories.fact_store import FactStore
from graphmem.memories.memory import MemoryIn
from graphmem.neo4j.driver import Graph
from graphmem.runtime.errors import GraphmemError, ModelUnavailable
from graphmem.runtime.settings import Settings
from graphmem.search.models import SearchQuery, SearchResponse
from graphmem.tenants.owners import Owner
from tests.conftest import FakeClock
from tests.search.test_search import found, save


async def read(memory: Services, owner: Owner, query: str, times: int) -> None:
    for _ in range(times):
        await memory.retrieval.search(owner, SearchQuery(query=query))
    await memory.retrieval.flush()


@pytest.mark.req("UMB-07", "UMB-08", "QUINN-30")
async def test_what_was_read_often_does_not_hide_what_answers(memory: Services, owner: Owner) -> None:
    tea, boat = "Mara drinks jasmine tea every morning", "Mara repairs her wooden boat in the harbour"
    await save(memory, owner, {"content": tea}, {"content": boat})
    await read(memory, owner, "which jasmine tea does Mara drink every morning?", 12)
    for question in (
        "what does Mara repair?",
        "where is the boat?",
        "is the boat made of wood?",
        "what does she do in the harbour?",
        "does Mara own a ship?",
    ):
        assert (await found(memory, owner, question))[0] == boat, question


@pytest.mark.req("QUINN-19", "QUINN-30", "QUINN-34")
async def test_importance_does_not_hide_what_answers(memory: Services, owner: Owner) -> None:
    finn = {"subject": {"name": "Finn", "type": "Person"}}
    await save(
        memory,
        owner,
        {"content": "Finn is allergic to penicillin", "importance": 0.95, **finn},
        {"content": "Finn's dog is called Pixel", **finn},
        {"content": "Finn works as a carpenter", **finn},
        {"content": "Finn lives in Bergen", **finn},
        {"content": "Finn plays handball on Thursdays", **finn},
    )
    assert await found(memory, owner, "What is Finn's dog called?", limit=1) == ["Finn's dog is called Pixel"]


@pytest.mark.req("UMB-08")
async def test_a_search_strengthens_only_what_stands_out(memory: Services, owner: Owner) -> None:
    tea, boat = await save(memory, owner, {"content": "Mara drinks jasmine tea"}, {"content": "Mara repairs a boat"})
    answer = await memory.retrieval.search(owner, SearchQuery(query="which tea does Mara drink?"))
    assert {hit.memory.id for hit in answer} == {tea, boat}
    await memory.retrieval.search(owner, SearchQuery(query="which tea does Mara drink?", reinforce=False))
    await memory.retrieval.flush()
    assert (await memory.memories.get(owner, tea)).access_count == 1
    assert (await memory.memories.get(owner, boat)).access_count == 0


@pytest.mark.req("QUINN-30", "UMB-07")
async def test_scores_fall_whatever_moves_memories(memory: Services, owner: Owner) -> None:
    chain = (("Zephyr", "BUILT_BY", "Halvorsen"), ("Halvorsen", "LIVES_IN", "Tromsø"), ("Tromsø", "LIES_IN", "Norway"))
    said = ("Zephyr was built by Halvorsen", "Halvorsen lives in Tromsø", "Tromsø lies in Norway")
    linked = [
        {"content": content, "subject": {"name": start}, "predicate": predicate, "object": {"name": end}}
        for content, (start, predicate, end) in zip(said, chain, strict=True)
    ]
    others: list[dict[str, Any]] = [
        {"content": f"The boat {name} was built in its owner's country", "importance": number / 10, "tags": [name]}
        for number, name in enumerate(("Aurora", "Boreas", "Calypso", "Doris", "Electra", "Fortuna", "Galatea"))
    ]
    await save(memory, owner, *linked, *others)
    question = "in which country does the builder of the boat Zephyr live?"
    query = SearchQuery(query=question, limit=9, explain=True, persona={"doris": 100.0, "boreas": 0.0})
    await read(memory, owner, "the boat Calypso", 9)
    answer = await memory.retrieval.search(owner, query)
    scores = [hit.score for hit in answer]
    assert scores == sorted(scores, reverse=True)
    assert set(said) <= {hit.content for hit in answer}
    for hit in answer:
        assert hit.explain
        assert hit.score == pytest.approx(hit.explain.fit, abs=0.05)


QUESTIONS: Sequence[tuple[str, str]] = (
    ("What is the dog called?", "Mara's dog is called Biscuit"),
    ("Which instrument does Mara play?", "Mara plays the cello"),
    ("What is Mara allergic to?", "Mara is allergic to hazelnuts"),
    ("Where does her brother live?", "Mara's brother lives in Uppsala"),
    ("What does Mara grow on the balcony?", "Mara grows basil on the balcony"),
    ("Which car does Mara drive?", "Mara drives an old blue Volvo"),
    ("When is the dentist?", "Mara sees the dentist on 3 May"),
    ("Which language is she learning?", "Mara is learning Portuguese"),
    ("What does Mara collect?", "Mara collects postcards of lighthouses"),
    ("Which team does she support?", "Mara supports the football team of Malmö"),
)


async def first_answers(memory: Services, owner: Owner) -> list[str]:
    return [(await found(memory, owner, question))[0] for question, _ in QUESTIONS]


@pytest.mark.req("UMB-07", "UMB-08")
async def test_many_searches_change_no_first_answer(memory: Services, owner: Owner) -> None:
    await save(memory, owner, *({"content": content} for _, content in QUESTIONS))
    new = await first_answers(memory, owner)
    assert new == [content for _, content in QUESTIONS]
    for question, _ in QUESTIONS:
        await read(memory, owner, question, 3)
    assert await first_answers(memory, owner) == new
    await read(memory, owner, QUESTIONS[0][0], 50)
    assert await first_answers(memory, owner) == new


NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
BOB = {"subject": {"name": "Bob", "type": "Person"}}


async def search_on_a_day_in_june(memory: Services, owner: Owner, query: str, **options: Any) -> SearchResponse:
    components = replace(memory.components, clock=FakeClock(NOW))
    search = RetrievalComponents.build(components).search
    return await search.search(owner, SearchQuery(query=query, reinforce=False, **options))


async def save_jobs(memory: Services, owner: Owner) -> None:
    turns = [
        {"id": "acme", "role": "user", "content": "Bob works at Acme now.", "timestamp": "2014-02-01T12:00:00Z"},
        {"id": "globex", "role": "user", "content": "Bob works at Globex now.", "timestamp": "2019-02-01T12:00:00Z"},
    ]
    await memory.messages.add(owner, MessagesIn.model_validate({"messages": turns, "extract": False}))
    job = {"predicate": "WORKS_AT", "single_valued": True, **BOB}
    await save(
        memory,
        owner,
        {"content": "Bob works at Initech", "valid_at": "2010-02-01T00:00:00Z", **job},
        {
            "content": "Bob works at Acme",
            "valid_at": "2014-02-01T00:00:00Z",
            "source": {"message_ids": ["acme"]},
            **job,
        },
        {
            "content": "Bob works at Globex",
            "valid_at": "2019-02-01T00:00:00Z",
            "source": {"message_ids": ["globex"]},
            **job,
        },
        {"content": "Bob collects stamps", **BOB},
    )


@pytest.mark.req("UMB-07", "QUINN-24")
async def test_a_question_that_names_a_time_finds_what_held_then(memory: Services, owner: Owner) -> None:
    await save_jobs(memory, owner)
    for question, job in (
        ("Where did Bob work in 2016?", "Bob works at Acme"),
        ("Where did Bob work in May 2012?", "Bob works at Initech"),
        ("Where did Bob work in 2020?", "Bob works at Globex"),
        ("Where does Bob work?", "Bob works at Globex"),
        ("Where does Bob work this year?", "Bob works at Globex"),
    ):
        answer = await search_on_a_day_in_june(memory, owner, question)
        assert answer.results[0].content == job, question
        scores = [hit.score for hit in answer]
        assert scores == sorted(scores, reverse=True)
    held = (await search_on_a_day_in_june(memory, owner, "Where did Bob work in 2016?")).results[0].memory
    assert held.invalid_at == datetime(2019, 2, 1, tzinfo=UTC)
    now = await search_on_a_day_in_june(memory, owner, "Where does Bob work?")
    assert {hit.content for hit in now} == {"Bob works at Globex", "Bob collects stamps"}
    then = await search_on_a_day_in_june(
        memory, owner, "Where did Bob work in 2016?", valid_as_of="2020-01-01T00:00:00Z"
    )
    assert "Bob works at Acme" not in {hit.content for hit in then}, "the caller's time comes first"


@pytest.mark.req("QUINN-24")
async def test_each_channel_finds_what_held_then_and_so_does_the_evidence(memory: Services, owner: Owner) -> None:
    await save_jobs(memory, owner)
    question = "Where did Bob work in 2016?"
    for channel in ("semantic", "keyword", "graph"):
        alone = {name: name == channel for name in ("semantic", "keyword", "graph")}
        answer = await search_on_a_day_in_june(memory, owner, question, **alone)
        contents = [hit.content for hit in answer]
        assert contents[0] == "Bob works at Acme", channel
        assert "Bob works at Initech" not in contents, channel
    answer = await search_on_a_day_in_june(memory, owner, question, include_messages=True)
    assert answer.evidence[0].message_id == "acme"


@pytest.mark.req("QUINN-24")
async def test_sixty_later_versions_do_not_hide_the_one_that_held_then(memory: Services, owner: Owner) -> None:
    moves: list[dict[str, Any]] = [
        {
            "content": f"Bob lives in house number {number} of Harbour Street",
            "predicate": "LIVES_IN",
            "single_valued": True,
            "valid_at": datetime(1960 + number, 1, 1, tzinfo=UTC),
            **BOB,
        }
        for number in range(61)
    ]
    await save(memory, owner, *moves)
    answer = await search_on_a_day_in_june(
        memory, owner, "In which house of Harbour Street did Bob live in 1975?", limit=3
    )
    assert answer.results[0].content == "Bob lives in house number 15 of Harbour Street"


@pytest.mark.req("QUINN-41")
async def test_what_others_did_at_that_time_is_not_found(memory: Services, owner: Owner) -> None:
    await save_jobs(memory, Owner(owner.tenant, "other"))
    await memory.memories.save(owner, [MemoryIn(content="Mara likes rain")])
    answer = await search_on_a_day_in_june(memory, owner, "Where did Bob work in 2016?")
    assert [hit.content for hit in answer] == ["Mara likes rain"]


class UnavailableEmbedder:
    """An embedder whose model fails."""

    model, dimension = "none", 384

    async def open(self) -> None: ...

    async def aclose(self) -> None: ...

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        raise ModelUnavailable("The embedder does not answer.")


async def test_a_search_that_fails_leaves_no_task_behind(memory: Services, owner: Owner, database: Settings) -> None:
    """Names and vectors are found by tasks of their own; here both fail."""
    assert database.neo4j_uri
    assert database.neo4j_password
    password = database.neo4j_password.get_secret_value()
    closed = Graph(database.neo4j_uri, database.neo4j_user, password, database="not-open")
    facts = FactStore(closed, memory.components.entities, memory.components.clock)
    components = replace(memory.components, graph=closed, facts=facts, embedder=UnavailableEmbedder())
    search = RetrievalComponents.build(components).search
    unretrieved: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: unretrieved.append(context))
    try:
        with pytest.raises(GraphmemError):
            await search.search(owner, SearchQuery(query="what about Bob?"))
        gc.collect()
        await asyncio.sleep(0)
        assert unretrieved == []
    finally:
        loop.set_exception_handler(None)
        await closed.close()
