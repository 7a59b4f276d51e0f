"""Compares what a copy in memory and the database answer about one user."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from random import Random

import numpy as np

from graphmem.memories.entity import NamedEntity
from graphmem.memories.filters import FactFilters, MemoryFilters
from graphmem.memories.memory import Memory
from graphmem.memories.vectors import StoredVectors
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph
from graphmem.runtime.times import utc_now
from graphmem.search.database_source import DatabaseSource
from graphmem.search.fact_candidate import FactCandidate
from graphmem.search.resident.copies import ResidentCopies
from graphmem.search.resident.source import ResidentSource
from graphmem.tenants.owners import Owner
from graphmem.tenants.rights import Rights
from graphmem.tenants.trust import DEFAULT_ORDER, STATED_KINDS

ALL = 1_000
CHOSEN_APART = {"include_contested", "include_superseded", "valid_as_of", "known_as_of", "entity"}
"""Filters that are chosen beside those by what a memory has."""

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
    database = DatabaseSource(graph, StoredVectors(graph), memory.state)
    names = await database.list_entity_names(ALL)
    assert _by_id(await memory.list_entity_names(ALL)) == _by_id(names)
    everything = FactFilters(valid_at=utc_now(), any_validity=True, includes_contested=True)
    everyone = await database.load_entities_with_facts([entity.id for entity in names], everything, utc_now(), ALL)
    known = [stored for entity in everyone for stored in entity.memories]
    for filters in [everything, *_random_filters(random, known, [entity.id for entity in names])]:
        await _compare_channels(memory, database, embedder, random.choice(questions), filters, names, random)
        await _compare_lookups(memory, database, filters, names)


async def _compare_channels(
    memory: ResidentSource,
    database: DatabaseSource,
    embedder: Embedder,
    question: str,
    filters: FactFilters,
    names: Sequence[NamedEntity],
    random: Random,
) -> None:
    (vector,) = await embedder.embed([question], query=True)
    words, limit = question.lower().split(), random.choice([3, ALL])
    named = [entity.id for entity in random.sample(list(names), min(2, len(names)))]
    near = [await source.find_facts_by_vector(vector, filters, limit) for source in (memory, database)]
    _assert_same_facts(*near)
    by_words = [await source.find_facts_by_text(words, filters, ALL) for source in (memory, database)]
    assert {fact.uuid for fact in by_words[0]} == {fact.uuid for fact in by_words[1]}
    around = [await source.find_facts_around_entities(named, vector, filters, ALL) for source in (memory, database)]
    _assert_same_facts(*around)
    messages = [await source.find_messages_by_vector(vector, filters, limit) for source in (memory, database)]
    for ours, theirs in zip(*messages, strict=True):
        assert abs(ours.score - theirs.score) < TOLERANCE
    said = [await source.find_messages_by_words(words, filters, ALL) for source in (memory, database)]
    ids = [{message.message_id for message in found} for found in said]
    assert ids[0] == ids[1]
    contents = [await source.load_message_contents(sorted(ids[1]), filters) for source in (memory, database)]
    assert sorted(contents[0], key=repr) == sorted(contents[1], key=repr)
    assert await memory.load_messages(sorted(ids[1])) == await database.load_messages(sorted(ids[1]))
    uuids = [fact.uuid for fact in by_words[1]]
    cosines = [await source.fact_similarities(uuids, [vector]) for source in (memory, database)]
    assert cosines[0].keys() == cosines[1].keys()
    assert np.allclose([cosines[0][uuid] for uuid in uuids], [cosines[1][uuid] for uuid in uuids], atol=TOLERANCE)
    now = utc_now()
    assert await memory.load_memories(uuids, now) == await database.load_memories(uuids, now)


async def _compare_lookups(
    memory: ResidentSource, database: DatabaseSource, filters: FactFilters, names: Sequence[NamedEntity]
) -> None:
    ids, until, now = [entity.id for entity in names], filters.valid_at + timedelta(minutes=5), utc_now()
    looked_up = [await source.load_entities_with_facts(ids, filters, until, ALL) for source in (memory, database)]
    assert looked_up[0] == looked_up[1]
    assert await memory.load_profiles(ids, filters) == await database.load_profiles(ids, filters)
    for domain in (None, filters.attributes.domain):
        profiles = [
            await source.list_profile_facts(domain, now, now + timedelta(hours=1), ALL) for source in (memory, database)
        ]
        assert profiles[0] == profiles[1]
    shown = profiles[1]
    said = sorted({message_id for stored in shown for message_id in stored.source.message_ids})
    assert await memory.load_shown(shown, said, now) == await database.load_shown(shown, said, now)


def _assert_same_facts(ours: Sequence[FactCandidate], theirs: Sequence[FactCandidate]) -> None:
    """Assert that facts and scores are the same but for rounding, by which equal ones may change places."""
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert abs(mine.score - other.score) < TOLERANCE
    last = min((fact.score for fact in theirs), default=0.0) + TOLERANCE
    by_uuid = {fact.uuid: fact for fact in ours}
    for other in (fact for fact in theirs if fact.score > last):
        mine = by_uuid[other.uuid]
        assert mine._replace(score=0.0, similarity=None) == other._replace(score=0.0, similarity=None)
        assert (mine.similarity is None) == (other.similarity is None)


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
