"""What recall reads from the graph: light candidates by channel, then what won, whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import neo4j.vector

from graphmem.domain.entity import Entity, EntityRef
from graphmem.domain.identity import Owner
from graphmem.domain.memory import Memory
from graphmem.domain.recall import EntityGraph, EntityMemories, Filters
from graphmem.domain.times import LATEST
from graphmem.store.driver import Graph, Row
from graphmem.store.rows import entity_of, memory_of, read_fact, read_times, seconds_of

Vector = Sequence[float]

_ENTITY_TIMES = ("created_at", "updated_at")

REACH = 300
"""How far a vector index looks around for the nearest, which is as far as it is asked for: of the exact 20 nearest
among 10,000 facts of a user, 300 rows held 99.85 %, 100 rows 98.4 %, for one millisecond less."""

MOST_EDGES = 200
"""An entity with more facts than this is no way to any of them in particular."""


class FoundFact(NamedTuple):
    """A fact as a channel returns it: what ranking needs and no more; times in milliseconds since 1970.

    `context` are the names, tags and messages that come with the statement.
    """

    uuid: str
    memory_id: str
    score: float
    content: str
    context: str
    type: str
    tags: Sequence[str]
    importance: float
    strength: float
    decay_rate: float
    accessed: int
    valid_from: int
    message_ids: Sequence[str]

    @property
    def text(self) -> str:
        """The statement and its context."""
        return f"{self.content}\n{self.context}"


class FoundByText(NamedTuple):
    """Facts by the text of a question: those that share its words, and those around the entities it names.

    Of the latter those of the rarer entities come first. `write_version` is the user's, as the query saw it.
    """

    write_version: int
    by_words: list[FoundFact]
    around: list[FoundFact]


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message as a channel returns it."""

    message_id: str
    score: float


@dataclass(frozen=True, slots=True)
class MessageWords:
    """What a message says, who says it, and its likeness (cosine) to a question."""

    message_id: str
    content: str
    speaker: str | None
    likeness: float


@dataclass(frozen=True, slots=True)
class EntityName:
    """An entity's names."""

    id: str
    name: str
    type: str
    aliases: Sequence[str]
    is_user: bool


class SearchStore:
    """The reading side of the graph for recall; every call names its user and both times."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    # Channels

    async def facts_by_vector(self, owner: Owner, vector: Vector, filters: Filters, limit: int) -> list[FoundFact]:
        """Return the facts nearest to a vector; through the index where it can apply all the filters."""
        given = {"group_ids": owner.readable, "vector": _packed(vector), "limit": limit}
        near = {**given, **_numbers(filters.times), "reach": max(REACH, limit)}
        if not filters.fits_index:
            times = {**filters.times, **filters.attributes}
            found = await self._graph.value("search.facts_by_vector_scan", **given, **times)
        elif filters.domain is None:
            found = await self._graph.value("search.facts_by_vector", **near)
        else:
            found = await self._graph.value("search.facts_by_vector_within", **near, domain=filters.domain)
        return list(map(FoundFact._make, found))

    async def facts_by_text(
        self, owner: Owner, words: str | None, named_ids: Sequence[str], filters: Filters, limit: int
    ) -> FoundByText:
        """Return the facts that a full-text query finds and those around the entities named."""
        write_version, by_words, around = await self._graph.value(
            "search.facts_by_text",
            words=[words] if words else [],
            named_ids=list(named_ids),
            most_edges=MOST_EDGES,
            limit=limit,
            group_ids=owner.readable,
            **_numbers(filters.times),
            **filters.attributes,
        )
        return FoundByText(write_version, *(list(map(FoundFact._make, found)) for found in (by_words, around)))

    async def messages_by_vector(
        self, owner: Owner, vector: Vector, known_at: datetime, limit: int
    ) -> list[FoundMessage]:
        """Return the messages nearest to a vector."""
        given = {"group_ids": owner.readable, "vector": _packed(vector), "limit": limit}
        if known_at < LATEST:
            found = await self._graph.value("search.messages_by_vector_scan", **given, known_at=known_at)
        else:
            found = await self._graph.value("search.messages_by_vector", **given, reach=max(REACH, limit))
        return [FoundMessage(*each) for each in found]

    async def messages_by_words(self, owner: Owner, words: str, known_at: datetime, limit: int) -> list[FoundMessage]:
        """Return the messages that a full-text query finds."""
        found = await self._graph.value(
            "search.messages_by_words", words=words, group_ids=owner.readable, limit=limit, known_at=known_at
        )
        return [FoundMessage(*each) for each in found]

    # What was found, more closely

    async def whole(self, uuids: Sequence[str], now: datetime) -> list[Memory]:
        """Return facts as callers see them, in the order given."""
        if not uuids:
            return []
        found = await self._graph.value("search.facts_whole", uuids=list(uuids))
        memories = {each[0]["uuid"]: _memory_of(each, now) for each in found}
        return [memories[uuid] for uuid in uuids if uuid in memories]

    async def fact_likeness(self, uuids: Sequence[str], vectors: Sequence[Vector]) -> dict[str, list[float]]:
        """Return the exact cosines of facts with each vector, by uuid."""
        if not uuids or not vectors:
            return {}
        return dict(
            await self._graph.value("search.fact_likeness", uuids=list(uuids), vectors=list(map(_packed, vectors)))
        )

    async def message_words(
        self, owner: Owner, message_ids: Sequence[str], vector: Vector | None, known_at: datetime
    ) -> list[MessageWords]:
        """Return what messages known at a time say and their exact cosines with a vector (0 without one)."""
        if not message_ids:
            return []
        found = await self._graph.value(
            "search.message_likeness",
            group_ids=owner.readable,
            message_ids=list(message_ids),
            vector=_packed(vector) if vector else None,
            known_at=known_at,
        )
        return [MessageWords(*each) for each in found]

    # Entities

    async def names(self, owner: Owner, limit: int) -> list[EntityName]:
        """Return the names of up to `limit` entities the user can read."""
        found = await self._graph.value("search.names", group_ids=owner.readable, limit=limit)
        return [EntityName(*each) for each in found]

    async def names_by_words(self, owner: Owner, words: str, limit: int) -> list[EntityName]:
        """Return entities whose names or aliases a full-text query finds."""
        found = await self._graph.value("search.names_by_words", group_ids=owner.readable, words=words, limit=limit)
        return [EntityName(*each) for each in found]

    async def entities_with_facts(
        self, owner: Owner, entity_ids: Sequence[str], start: datetime, end: datetime, limit: int
    ) -> list[EntityMemories]:
        """Return entities in the order given, with up to `limit` facts each that hold at a time in `[start, end)`."""
        if not entity_ids:
            return []
        found = await self._graph.value(
            "search.entities_with_facts",
            group_ids=owner.readable,
            entity_ids=list(entity_ids),
            valid_before=end,
            valid_after=start + timedelta(microseconds=1),
            limit=limit,
        )
        by_id = {
            stored["uuid"]: EntityMemories(
                entity=_entity_of(stored, times, count), memories=[_memory_of(each, start) for each in facts]
            )
            for stored, times, count, facts in found
        }
        return [by_id[each] for each in entity_ids if each in by_id]

    async def core_facts(
        self, owner: Owner, least_importance: float, start: datetime, end: datetime, limit: int
    ) -> list[Memory]:
        """Return the profile facts of at least that importance that hold at some moment of `[start, end)`."""
        found = await self._graph.value(
            "search.core_facts",
            group_ids=owner.readable,
            min_importance=least_importance,
            valid_before=end,
            valid_after=start + timedelta(microseconds=1),
            limit=limit,
        )
        return [_memory_of(each, start) for each in found]

    async def graph(
        self, owner: Owner, entity_id: str, filters: Filters, depth: int, limit: int, now: datetime
    ) -> EntityGraph:
        """Return what lies within `depth` steps of an entity: up to `limit` facts, the nearer first."""
        edges: dict[str, Memory] = {}
        reached, frontier = {entity_id}, {entity_id}
        for _ in range(depth):
            found = await self._graph.value(
                "search.edges_of",
                entity_ids=sorted(frontier),
                group_ids=owner.readable,
                limit=limit - len(edges),
                **filters.times,
            )
            edges.update((each[0]["uuid"], _memory_of(each, now)) for each in found)
            frontier = {key for each in found for key in (each[2], each[3])} - reached
            reached |= frontier
            if not frontier or len(edges) >= limit:
                break
        stored = await self._graph.value("search.entities_whole", group_ids=owner.readable, ids=sorted(reached))
        return EntityGraph(nodes=[_entity_of(*each) for each in stored], edges=list(edges.values()))


def _packed(vector: Vector) -> neo4j.vector.Vector:
    """Return a vector as Neo4j's own, which is sent in one piece."""
    return neo4j.vector.Vector.from_native(list(map(float, vector)), "f32")


def _numbers(times: Mapping[str, datetime]) -> dict[str, list[int]]:
    """Return times as seconds since 1970 and microseconds."""
    return {name: seconds_of(moment) for name, moment in times.items()}


def _memory_of(found: Sequence[Any], now: datetime) -> Memory:
    """Return a memory from its properties, its times, its subject and object and the entities it names."""
    properties, times, subject_id, object_id, entities = found
    names = {key: EntityRef(id=key, name=name, type=kind) for key, name, kind in entities}
    return memory_of(
        read_fact({"fact": properties, "times": times, "subject_id": subject_id, "object_id": object_id}), names, now
    )


def _entity_of(properties: Row, times: Sequence[int | None], memory_count: int) -> Entity:
    return entity_of({**properties, **read_times(_ENTITY_TIMES, times)}, memory_count)
