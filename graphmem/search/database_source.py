"""The database as a source of candidates: light ones by channel, then the winners in full."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import neo4j.vector
import numpy as np

from graphmem.conversations.message_mapping import message_from_columns
from graphmem.conversations.session import Message
from graphmem.memories.entity import NamedEntity
from graphmem.memories.entity_mapping import entity_from_columns
from graphmem.memories.entity_profile import EntityProfile
from graphmem.memories.fact import memory_from_columns
from graphmem.memories.filters import FactFilters
from graphmem.memories.memory import Memory
from graphmem.memories.reinforcement import with_retrieval_states
from graphmem.memories.vectors import StoredVectors
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.migrations import FACT_TEXT_FIELDS, MESSAGE_TEXT_FIELDS, NAME_TEXT_FIELDS
from graphmem.runtime.field_types import Vector
from graphmem.runtime.times import MICROSECOND, from_micros, to_epoch_pair
from graphmem.search.entity_graph import load_profiles
from graphmem.search.fact_candidate import FactCandidate
from graphmem.search.models import EntityMemories, MessageCandidate, MessageContent, SourceName
from graphmem.search.source import (
    MAX_COMPUTED_FACTS,
    MAX_ENTITY_DEGREE,
    MAX_FOLLOWED_ENTITIES,
    MAX_INCOMING_FACTS,
    MAX_OUTGOING_FACTS,
    MAX_START_FACTS,
)
from graphmem.tenants.owners import MessageName, message_ids_of, message_name
from graphmem.tenants.scopes import ReadState
from graphmem.text.lucene import build_lucene_query

ANN_CANDIDATES = 300
"""Candidates that a vector index is asked for at least.

Measured on 10,000 facts of a user: 300 candidates contain 99.85 % of the exact 20 nearest facts, 100 contain 98.4 % and
take one millisecond less.
"""


class DatabaseSource:
    """The memory of one user in the database."""

    name: SourceName = "database"

    def __init__(self, graph: Graph, vectors: StoredVectors, state: ReadState) -> None:
        self._graph = graph
        self._vectors = vectors
        self._scope = state.scope
        self._groups = state.scope.group_ids
        self.state = state

    # Channels

    async def find_facts_by_vector(self, vector: Vector, filters: FactFilters, limit: int) -> list[FactCandidate]:
        """Return the facts nearest to a vector, best first; from the index when it can apply all the filters."""
        params = {
            "group_ids": self._groups,
            "vector": _to_neo4j_vector(vector),
            "limit": limit,
        }
        if not filters.is_fully_indexable:
            found = await self._graph.fetch_value_from_any_member(
                "search.scan_facts_by_vector", **params, **filters.readable_params, filters=filters.attribute_params
            )
            return list(map(FactCandidate.from_columns, found))
        params |= filters.as_of_params
        params["ann_limit"] = max(ANN_CANDIDATES, limit)
        if filters.attributes.domain is None:
            found = await self._graph.fetch_value_from_any_member("search.find_facts_by_vector", **params)
        else:
            found = await self._graph.fetch_value_from_any_member(
                "search.find_domain_facts_by_vector", **params, domain=filters.attributes.domain
            )
        return list(map(FactCandidate.from_columns, found))

    async def find_facts_by_text(self, words: Sequence[str], filters: FactFilters, limit: int) -> list[FactCandidate]:
        """Return the facts that a full-text query finds, best first, without their similarity."""
        found = await self._graph.fetch_value_from_any_member(
            "search.find_facts_by_text",
            words=self._lucene_query(words, FACT_TEXT_FIELDS),
            limit=limit,
            group_ids=self._groups,
            **filters.readable_params,
            filters=filters.attribute_params,
        )
        return list(map(FactCandidate.from_columns, found))

    async def find_facts_around_entities(
        self,
        entity_ids: Sequence[str],
        vector: Vector | None,
        filters: FactFilters,
        limit: int,
    ) -> list[FactCandidate]:
        """Return the facts up to three steps around entities, best first by their similarity and that of the way."""
        found = await self._graph.fetch_value_from_any_member(
            "search.find_facts_around_entities",
            named_entity_ids=list(entity_ids),
            vector=_to_neo4j_vector(vector) if vector else None,
            max_degree=MAX_ENTITY_DEGREE,
            max_start=MAX_START_FACTS,
            max_outgoing=MAX_OUTGOING_FACTS,
            max_incoming=MAX_INCOMING_FACTS,
            max_followed=MAX_FOLLOWED_ENTITIES,
            max_computed=MAX_COMPUTED_FACTS,
            limit=limit,
            group_ids=self._groups,
            **filters.readable_params,
            filters=filters.attribute_params,
        )
        return list(map(FactCandidate.from_columns, found))

    async def find_messages_by_vector(self, vector: Vector, filters: FactFilters, limit: int) -> list[MessageCandidate]:
        """Return the messages nearest to a vector, best first."""
        params = {"group_ids": self._groups, "vector": _to_neo4j_vector(vector), "limit": limit}
        if not filters.reads_all_messages:
            found = await self._graph.fetch_value_from_any_member(
                "search.scan_messages_by_vector", **params, **filters.message_params
            )
        else:
            found = await self._graph.fetch_value_from_any_member(
                "search.find_messages_by_vector", **params, ann_limit=max(ANN_CANDIDATES, limit)
            )
        return [MessageCandidate(*columns) for columns in found]

    async def find_messages_by_words(
        self, words: Sequence[str], filters: FactFilters, limit: int
    ) -> list[MessageCandidate]:
        """Return the messages that a full-text query finds, best first."""
        found = await self._graph.fetch_value_from_any_member(
            "search.find_messages_by_words",
            words=self._lucene_query(words, MESSAGE_TEXT_FIELDS),
            group_ids=self._groups,
            limit=limit,
            **filters.message_params,
        )
        return [MessageCandidate(*columns) for columns in found]

    # Details of candidates

    async def fact_similarities(self, uuids: Iterable[str], vectors: Sequence[Vector]) -> dict[str, list[float]]:
        """Return the cosines of facts with each vector, by uuid; those without a vector are left out."""
        return await self._vectors.similarities(self._scope, "facts", uuids, vectors)

    async def message_similarities(
        self, message_ids: Iterable[str], vectors: Sequence[Vector]
    ) -> dict[str, list[float]]:
        """Return the cosines of messages with each vector, by id; those without a vector are left out."""
        return await self._vectors.similarities(self._scope, "messages", message_ids, vectors)

    async def load_memories(self, uuids: Sequence[str], now: datetime) -> dict[str, Memory]:
        """Return versions as callers see them at `now`, by uuid; those that no longer exist are left out."""
        if not uuids:
            return {}
        found = await self._graph.fetch_value_from_any_member(
            "search.load_memories", group_ids=self._groups, uuids=list(uuids)
        )
        return {columns[0]["uuid"]: memory_from_columns(columns, now) for columns in found}

    async def load_messages(self, keys: Sequence[str]) -> dict[str, Message]:
        """Return messages by key (`tenants.owners.message_key`); those that no longer exist are left out."""
        if not keys:
            return {}
        found = await self._graph.fetch_value_from_any_member(
            "search.load_messages", group_ids=self._groups, message_ids=message_ids_of(keys)
        )
        wanted = frozenset(keys)
        return {key: message_from_columns(columns) for key, columns in found if key in wanted}

    async def load_message_contents(self, message_ids: Sequence[str], filters: FactFilters) -> list[MessageContent]:
        """Return the texts of messages within the times of the filters, but for those of which something was caught."""
        if not message_ids:
            return []
        found = await self._graph.fetch_value_from_any_member(
            "search.load_message_contents",
            group_ids=self._groups,
            message_ids=message_ids_of(message_ids),
            **filters.message_params,
        )
        wanted = frozenset(message_ids)
        return [MessageContent(*columns) for columns in found if columns[0] in wanted]

    # Entities

    async def list_entity_names(self, limit: int) -> list[NamedEntity]:
        """Return up to `limit` entities that the user can read, with their names."""
        found = await self._graph.fetch_value_from_any_member(
            "search.list_entity_names", group_ids=self._groups, limit=limit
        )
        return [NamedEntity(*columns) for columns in found]

    async def find_entity_names(self, words: Sequence[str], limit: int) -> list[NamedEntity]:
        """Return entities whose names or aliases a full-text query finds."""
        lucene = self._lucene_query(words, NAME_TEXT_FIELDS)
        found = await self._graph.fetch_value_from_any_member(
            "search.find_entity_names", group_ids=self._groups, words=lucene, limit=limit
        )
        return [NamedEntity(*columns) for columns in found]

    def _lucene_query(self, words: Sequence[str], fields: Sequence[str]) -> str:
        return build_lucene_query(words, self._scope.group_keys, fields)

    async def load_entities_with_facts(
        self, entity_ids: Sequence[str], filters: FactFilters, until: datetime, limit: int
    ) -> list[EntityMemories]:
        """Return entities in the order given, each with up to `limit` facts that pass the filters.

        A fact is valid at the time of the filters or at one from there to `until`.
        """
        if not entity_ids:
            return []
        found = await self._graph.fetch_value_from_any_member(
            "search.load_entities_with_facts",
            group_ids=self._groups,
            named_entity_ids=list(entity_ids),
            **{**filters.readable_params, **({} if filters.any_validity else {"valid_at": to_epoch_pair(until)})},
            filters=filters.attribute_params,
            limit=limit,
        )
        return _entities_with_memories(entity_ids, found, filters.valid_at)

    async def load_profiles(self, entity_ids: Sequence[str], filters: FactFilters) -> dict[str, EntityProfile]:
        """Return the profiles of entities, by their ids, as of the times of filters."""
        return await load_profiles(self._graph, self._groups, entity_ids, filters)

    async def list_profile_facts(self, domain: str | None, start: datetime, end: datetime, limit: int) -> list[Memory]:
        """Return the facts of the profile, and of a domain, that are valid at a time in `[start, end)`."""
        found = await self._graph.fetch_value_from_any_member(
            "search.list_profile_facts",
            group_ids=self._groups,
            domain=domain,
            valid_before=end,
            valid_after=start + MICROSECOND,
            limit=limit,
        )
        return [memory_from_columns(columns, start) for columns in found]

    async def load_shown(
        self, memories: Sequence[Memory], message_ids: Sequence[str], now: datetime
    ) -> tuple[dict[str, Memory], dict[MessageName, datetime]]:
        """Return memories with the strength and access count that they have at `now`, and when messages were said."""
        if not memories and not message_ids:
            return {}, {}
        states, said = await self._graph.fetch_value_from_any_member(
            "search.load_shown",
            group_ids=self._groups,
            ids=[memory.id for memory in memories],
            message_ids=list(dict.fromkeys(message_ids)),
        )
        times = {message_name(key): from_micros(micros) for key, micros in said}
        return with_retrieval_states(memories, states, now), times


def _entities_with_memories(
    entity_ids: Sequence[str], found: Sequence[Sequence[Any]], now: datetime
) -> list[EntityMemories]:
    by_id = {
        stored["uuid"]: EntityMemories(
            entity=entity_from_columns(stored, times, memory_count),
            memories=[memory_from_columns(columns, now) for columns in facts],
        )
        for stored, times, memory_count, facts in found
    }
    return [by_id[entity_id] for entity_id in entity_ids if entity_id in by_id]


def _to_neo4j_vector(vector: Vector) -> neo4j.vector.Vector:
    """Return a vector as Neo4j's own type, which is sent in one piece."""
    return neo4j.vector.Vector.from_numpy(np.asarray(vector, dtype=np.float32))
