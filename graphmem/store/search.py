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
from graphmem.domain.search_models import EntityGraph, EntityMemories, FactFilters
from graphmem.domain.times import AS_OF_NOW
from graphmem.store.driver import Graph, Row
from graphmem.store.fact_mapping import entity_from_node, fact_from_row, memory_from_fact, parse_times, to_epoch_pair

Vector = Sequence[float]

_ENTITY_TIME_FIELDS = ("created_at", "updated_at")

ANN_CANDIDATES = 300
"""How far a vector index looks around for the nearest, which is as far as it is asked for: of the exact 20 nearest
among 10,000 facts of a user, 300 rows held 99.85 %, 100 rows 98.4 %, for one millisecond less."""

MAX_ENTITY_DEGREE = 200
"""An entity with more facts than this is no way to any of them in particular."""


class FactCandidate(NamedTuple):
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
    last_accessed_ms: int
    valid_from: int
    message_ids: Sequence[str]

    @property
    def text(self) -> str:
        """The statement and its context."""
        return f"{self.content}\n{self.context}"


class TextCandidates(NamedTuple):
    """Facts by the text of a question: those that share its words, and those around the entities it names.

    Of the latter those of the rarer entities come first. `write_version` is the user's, as the query saw it.
    """

    write_version: int
    by_words: list[FactCandidate]
    near_entities: list[FactCandidate]


@dataclass(frozen=True, slots=True)
class MessageCandidate:
    """A message as a channel returns it."""

    message_id: str
    score: float


@dataclass(frozen=True, slots=True)
class MessageContent:
    """What a message says, who says it, and its similarity (cosine) to a question."""

    message_id: str
    content: str
    speaker: str | None
    similarity: float


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

    async def find_facts_by_vector(
        self, owner: Owner, vector: Vector, filters: FactFilters, limit: int
    ) -> list[FactCandidate]:
        """Return the facts nearest to a vector; through the index where it can apply all the filters."""
        given = {"group_ids": owner.readable_group_ids, "vector": _to_neo4j_vector(vector), "limit": limit}
        near = {**given, **_to_epoch_pairs(filters.time_params), "ann_limit": max(ANN_CANDIDATES, limit)}
        if not filters.is_fully_indexable:
            times = {**filters.time_params, **filters.attribute_params}
            found = await self._graph.fetch_value("search.scan_facts_by_vector", **given, **times)
        elif filters.domain is None:
            found = await self._graph.fetch_value("search.find_facts_by_vector", **near)
        else:
            found = await self._graph.fetch_value("search.find_domain_facts_by_vector", **near, domain=filters.domain)
        return list(map(FactCandidate._make, found))

    async def find_facts_by_text(
        self, owner: Owner, words: str | None, named_entity_ids: Sequence[str], filters: FactFilters, limit: int
    ) -> TextCandidates:
        """Return the facts that a full-text query finds and those around the entities named."""
        write_version, by_words, near_entities = await self._graph.fetch_value(
            "search.find_facts_by_text",
            words=[words] if words else [],
            named_entity_ids=list(named_entity_ids),
            max_degree=MAX_ENTITY_DEGREE,
            limit=limit,
            group_ids=owner.readable_group_ids,
            **_to_epoch_pairs(filters.time_params),
            **filters.attribute_params,
        )
        return TextCandidates(
            write_version, *(list(map(FactCandidate._make, found)) for found in (by_words, near_entities))
        )

    async def find_messages_by_vector(
        self, owner: Owner, vector: Vector, known_at: datetime, limit: int
    ) -> list[MessageCandidate]:
        """Return the messages nearest to a vector."""
        given = {"group_ids": owner.readable_group_ids, "vector": _to_neo4j_vector(vector), "limit": limit}
        if known_at < AS_OF_NOW:
            found = await self._graph.fetch_value("search.scan_messages_by_vector", **given, known_at=known_at)
        else:
            found = await self._graph.fetch_value(
                "search.find_messages_by_vector", **given, ann_limit=max(ANN_CANDIDATES, limit)
            )
        return [MessageCandidate(*each) for each in found]

    async def find_messages_by_words(
        self, owner: Owner, words: str, known_at: datetime, limit: int
    ) -> list[MessageCandidate]:
        """Return the messages that a full-text query finds."""
        found = await self._graph.fetch_value(
            "search.find_messages_by_words",
            words=words,
            group_ids=owner.readable_group_ids,
            limit=limit,
            known_at=known_at,
        )
        return [MessageCandidate(*each) for each in found]

    # What was found, more closely

    async def load_memories(self, uuids: Sequence[str], now: datetime) -> list[Memory]:
        """Return facts as callers see them, in the order given."""
        if not uuids:
            return []
        found = await self._graph.fetch_value("search.load_memories", uuids=list(uuids))
        memories = {each[0]["uuid"]: _memory_from_row(each, now) for each in found}
        return [memories[uuid] for uuid in uuids if uuid in memories]

    async def compute_fact_similarities(
        self, uuids: Sequence[str], vectors: Sequence[Vector]
    ) -> dict[str, list[float]]:
        """Return the exact cosines of facts with each vector, by uuid."""
        if not uuids or not vectors:
            return {}
        return dict(
            await self._graph.fetch_value(
                "search.compute_fact_similarities", uuids=list(uuids), vectors=list(map(_to_neo4j_vector, vectors))
            )
        )

    async def load_message_contents(
        self, owner: Owner, message_ids: Sequence[str], vector: Vector | None, known_at: datetime
    ) -> list[MessageContent]:
        """Return what messages known at a time say and their exact cosines with a vector (0 without one)."""
        if not message_ids:
            return []
        found = await self._graph.fetch_value(
            "search.load_message_contents",
            group_ids=owner.readable_group_ids,
            message_ids=list(message_ids),
            vector=_to_neo4j_vector(vector) if vector else None,
            known_at=known_at,
        )
        return [MessageContent(*each) for each in found]

    # Entities

    async def list_entity_names(self, owner: Owner, limit: int) -> list[EntityName]:
        """Return the names of up to `limit` entities the user can read."""
        found = await self._graph.fetch_value(
            "search.list_entity_names", group_ids=owner.readable_group_ids, limit=limit
        )
        return [EntityName(*each) for each in found]

    async def find_entity_names(self, owner: Owner, words: str, limit: int) -> list[EntityName]:
        """Return entities whose names or aliases a full-text query finds."""
        found = await self._graph.fetch_value(
            "search.find_entity_names", group_ids=owner.readable_group_ids, words=words, limit=limit
        )
        return [EntityName(*each) for each in found]

    async def load_entities_with_facts(
        self, owner: Owner, entity_ids: Sequence[str], start: datetime, end: datetime, limit: int
    ) -> list[EntityMemories]:
        """Return entities in the order given, with up to `limit` facts each that hold at a time in `[start, end)`."""
        if not entity_ids:
            return []
        found = await self._graph.fetch_value(
            "search.load_entities_with_facts",
            group_ids=owner.readable_group_ids,
            entity_ids=list(entity_ids),
            valid_before=end,
            valid_after=start + timedelta(microseconds=1),
            limit=limit,
        )
        by_id = {
            stored["uuid"]: EntityMemories(
                entity=_entity_from_row(stored, times, count),
                memories=[_memory_from_row(each, start) for each in facts],
            )
            for stored, times, count, facts in found
        }
        return [by_id[each] for each in entity_ids if each in by_id]

    async def list_core_facts(
        self, owner: Owner, min_importance: float, start: datetime, end: datetime, limit: int
    ) -> list[Memory]:
        """Return the profile facts of at least that importance that hold at some moment of `[start, end)`."""
        found = await self._graph.fetch_value(
            "search.list_core_facts",
            group_ids=owner.readable_group_ids,
            min_importance=min_importance,
            valid_before=end,
            valid_after=start + timedelta(microseconds=1),
            limit=limit,
        )
        return [_memory_from_row(each, start) for each in found]

    async def load_entity_graph(
        self, owner: Owner, entity_id: str, filters: FactFilters, depth: int, limit: int, now: datetime
    ) -> EntityGraph:
        """Return what lies within `depth` steps of an entity: up to `limit` facts, the nearer first."""
        edges: dict[str, Memory] = {}
        reached, frontier = {entity_id}, {entity_id}
        for _ in range(depth):
            found = await self._graph.fetch_value(
                "search.list_entity_edges",
                entity_ids=sorted(frontier),
                group_ids=owner.readable_group_ids,
                limit=limit - len(edges),
                **filters.time_params,
            )
            edges.update((each[0]["uuid"], _memory_from_row(each, now)) for each in found)
            frontier = {key for each in found for key in (each[2], each[3])} - reached
            reached |= frontier
            if not frontier or len(edges) >= limit:
                break
        stored = await self._graph.fetch_value(
            "search.load_entities", group_ids=owner.readable_group_ids, ids=sorted(reached)
        )
        return EntityGraph(nodes=[_entity_from_row(*each) for each in stored], edges=list(edges.values()))


def _to_neo4j_vector(vector: Vector) -> neo4j.vector.Vector:
    """Return a vector as Neo4j's own, which is sent in one piece."""
    return neo4j.vector.Vector.from_native(list(map(float, vector)), "f32")


def _to_epoch_pairs(times: Mapping[str, datetime]) -> dict[str, list[int]]:
    """Return times as seconds since 1970 and microseconds."""
    return {name: to_epoch_pair(moment) for name, moment in times.items()}


def _memory_from_row(found: Sequence[Any], now: datetime) -> Memory:
    """Return a memory from its properties, its times, its subject and object and the entities it names."""
    properties, times, subject_id, object_id, entities = found
    names = {key: EntityRef(id=key, name=name, type=kind) for key, name, kind in entities}
    return memory_from_fact(
        fact_from_row({"fact": properties, "times": times, "subject_id": subject_id, "object_id": object_id}),
        names,
        now,
    )


def _entity_from_row(properties: Row, times: Sequence[int | None], memory_count: int) -> Entity:
    return entity_from_node({**properties, **parse_times(_ENTITY_TIME_FIELDS, times)}, memory_count)
