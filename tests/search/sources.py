"""Compares what a copy in memory and the database answer about one user."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from random import Random

import numpy as np
import pytest

from graphmem.memories.entity import NamedEntity
from graphmem.memories.filters import FactFilters, MemoryFilters
from graphmem.memories.memory import Memory
from graphmem.memories.names import EntityMention, MentionKind
from graphmem.memories.vectors import StoredVectors
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph
from graphmem.runtime.field_types import Vector
from graphmem.runtime.times import utc_now
from graphmem.search.candidates import Candidates, FactRow
from graphmem.search.resident.copies import ResidentCopies
from graphmem.search.resident.source import ResidentSource
from graphmem.search.source import CandidateSource, Question
from graphmem.tenants.owners import Owner
from graphmem.tenants.rights import Rights
from graphmem.tenants.trust import DEFAULT_ORDER, STATED_KINDS

ALL = 1_000
CHOSEN_APART = {"include_contested", "include_superseded", "valid_as_of", "known_as_of", "entity"}
"""Filters that are chosen besides those by what a memory has."""

TOLERANCE = 2e-5
"""By how much cosines may differ that were computed in another order."""


def open_copies(graph: Graph) -> ResidentCopies:
    """Return copies in memory that are large enough for every user of a test."""
    return ResidentCopies(graph, StoredVectors(graph), Rights(graph), utc_now, max_bytes=400_000_000)


async def open_resident(copies: ResidentCopies, owner: Owner) -> ResidentSource:
    """Return the source in memory of a user, once the copies are loaded."""
    async with asyncio.timeout(60):
        while not isinstance(source := await copies.open(owner), ResidentSource):
            await copies.finish_loading()
    return source


async def compare_sources(
    copies: ResidentCopies, graph: Graph, embedder: Embedder, owner: Owner, questions: Sequence[str], random: Random
) -> None:
    """Assert that a copy in memory answers everything as the database does, with some random filters."""
    memory = await open_resident(copies, owner)
    database = CandidateSource(graph, StoredVectors(graph), memory.state)
    names = await database.list_entity_names(ALL)
    assert _by_id(await memory.list_entity_names(ALL)) == _by_id(names)
    everything = FactFilters(valid_at=utc_now(), any_validity=True, includes_contested=True)
    everyone = await database.load_entities_with_facts([entity.id for entity in names], everything, utc_now(), ALL)
    known = [stored for entity in everyone for stored in entity.memories]
    for filters in [everything, *_random_filters(random, known, [entity.id for entity in names])]:
        await _compare_channels(memory, database, embedder, random.choice(questions), filters, names, random)
        await _compare_shown(memory, database, filters, names)


async def _compare_channels(
    memory: ResidentSource,
    database: CandidateSource,
    embedder: Embedder,
    question: str,
    filters: FactFilters,
    names: Sequence[NamedEntity],
    random: Random,
) -> None:
    (vector,) = await embedder.embed([question], query=True)
    words, limit = question.lower().split(), random.choice([3, ALL])
    named = [entity.id for entity in random.sample(list(names), min(2, len(names)))]
    near = [await source.find_facts(ask(filters, limit, vector)) for source in (memory, database)]
    _assert_same_ranking(near, "semantic")
    asked = ask(filters, ALL, vector, words, named)
    found = [await source.find_facts(asked) for source in (memory, database)]
    _assert_same_facts(*found)
    _assert_same_ranking(found, "semantic")
    _assert_same_ranking(found, "graph")
    ours, theirs = (facts.channels["keyword"].rows for facts in found)
    assert {found[0].facts[row].uuid for row in ours} == {found[1].facts[row].uuid for row in theirs}
    said = [await source.find_messages(asked) for source in (memory, database)]
    assert {*said[0]} == {*said[1]}
    nearest = [await source.find_messages(ask(filters, limit, vector)) for source in (memory, database)]
    assert len(nearest[0]) == len(nearest[1])
    texts = [await source.load_message_texts(sorted(said[1]), vector, filters) for source in (memory, database)]
    by_key = [
        dict(zip([message.message_id for message in messages], cosines, strict=True)) for messages, cosines in texts
    ]
    assert by_key[0] == pytest.approx(by_key[1], abs=TOLERANCE)
    assert sorted(texts[0].messages, key=repr) == sorted(texts[1].messages, key=repr)
    assert await memory.load_messages(sorted(said[1])) == await database.load_messages(sorted(said[1]))
    uuids, now = [fact.uuid for fact in found[1].facts], utc_now()
    assert await memory.load_memories(uuids, now) == await database.load_memories(uuids, now)


async def _compare_shown(
    memory: ResidentSource, database: CandidateSource, filters: FactFilters, names: Sequence[NamedEntity]
) -> None:
    ids, now = [entity.id for entity in names], utc_now()
    assert await memory.load_profiles(ids, filters) == await database.load_profiles(ids, filters)
    shown = await database.list_profile_facts(filters.attributes.domain, now, now + timedelta(hours=1), ALL)
    said = sorted({message_id for stored in shown for message_id in stored.source.message_ids})
    assert await memory.load_shown(shown, said, now) == await database.load_shown(shown, said, now)


def ask(
    filters: FactFilters,
    limit: int,
    vector: Vector | None = None,
    words: Sequence[str] = (),
    entity_ids: Sequence[str] = (),
) -> Question:
    """Return what a search asks of a source, with a vector, words and entities of which each may be absent."""

    async def embed(vector: Vector) -> list[Vector]:
        return [vector, vector]

    mentions = [EntityMention(entity_id, MentionKind.FULL_NAME, 0, 1, False) for entity_id in entity_ids]
    return Question(
        asked="",
        text="",
        is_overview=False,
        now=utc_now(),
        filters=filters,
        limit=limit,
        words=words,
        searches_graph=bool(entity_ids),
        named=mentions,
        time_ranges=(),
        vectors=asyncio.create_task(embed(vector)) if vector is not None else None,
        reads_past=False,
    )


def _assert_same_facts(ours: Candidates, theirs: Candidates) -> None:
    """Assert that the facts of both sources, and all that ranking reads of them, are the same except for rounding."""
    rows = {fact.uuid: row for row, fact in enumerate(ours.facts)}
    assert rows.keys() == {fact.uuid for fact in theirs.facts}
    same = [rows[fact.uuid] for fact in theirs.facts]
    names = [field.name for field in fields(FactRow) if field.compare]
    for row, other in zip(same, theirs.facts, strict=True):
        assert [getattr(ours.facts[row], name) for name in names] == [getattr(other, name) for name in names]
    for mine, column in zip(ours.numbers, theirs.numbers, strict=True):
        assert mine[same].tolist() == column.tolist()
    for mine, column in (
        (ours.similarities, theirs.similarities),
        (ours.focus_similarities, theirs.focus_similarities),
    ):
        assert np.allclose(mine[same], column, atol=TOLERANCE, equal_nan=True)


def _assert_same_ranking(found: Sequence[Candidates], channel: str) -> None:
    """Assert that facts and scores are the same except for rounding, by which equal ones may change places."""
    ours, theirs = found
    assert ours.channels.keys() == theirs.channels.keys()
    if channel not in theirs.channels:
        return
    mine, other = ours.channels[channel], theirs.channels[channel]
    assert np.allclose(mine.scores, other.scores, atol=TOLERANCE)
    last = other.scores.min(initial=np.inf) + TOLERANCE
    known = {ours.facts[row].uuid for row in mine.rows}
    assert {theirs.facts[row].uuid for row, score in zip(*other, strict=True) if score > last} <= known


def _by_id(entities: Sequence[NamedEntity]) -> dict[str, NamedEntity]:
    return {entity.id: entity for entity in entities}


def _random_filters(random: Random, known: Sequence[Memory], entity_ids: Sequence[str]) -> Iterator[FactFilters]:
    """Yield filters by what some memories have, as of times around those of the memories."""
    times = [at for memory in known for at in (memory.valid_at, memory.invalid_at, memory.created_at) if at]
    for _ in range(2):
        one = random.choice(known) if known else None
        given: dict[str, object] = {}
        if one is not None:
            options: dict[str, object] = {
                "types": [str(one.type)],
                "tags": {random.choice(["any", "all", "none"]): one.tags[:2]},
                "domain": one.domain,
                "scope": one.scope,
                "min_confidence": one.confidence,
                "min_importance": one.importance,
                "created_after": one.created_at,
                "created_before": one.created_at + timedelta(microseconds=1),
                "metadata": dict(list(one.metadata.items())[:1]),
                "source_kind": one.source.kind,
                "min_trust": random.choice(STATED_KINDS),
                "speaker": one.source.speaker,
                "agent": random.choice(["cli", "nobody"]),
                "session_id": one.source.session_id,
                "subtype": one.subtype,
            }
            assert options.keys() | CHOSEN_APART == MemoryFilters.model_fields.keys(), "a filter is not compared"
            chosen = random.sample(sorted(options), random.randint(0, 2))
            given = {name: options[name] for name in chosen if options[name] is not None}
        filters = MemoryFilters.model_validate({**given, "include_contested": random.random() < 0.4})
        if times and random.random() < 0.5:
            filters = filters.model_copy(update={"valid_as_of": random.choice(times)})
        if times and random.random() < 0.5:
            filters = filters.model_copy(update={"known_as_of": random.choice(times)})
        about = random.sample(list(entity_ids), 1) if entity_ids and random.random() < 0.3 else None
        resolved = filters.resolve(about, _some_time(random, times), DEFAULT_ORDER)
        if random.random() < 0.2:
            resolved = FactFilters(
                valid_at=resolved.valid_at, valid_since=resolved.valid_at - timedelta(days=400), attributes=filters
            )
        yield resolved


def _some_time(random: Random, times: Sequence[datetime]) -> datetime:
    return random.choice([utc_now(), *times])
