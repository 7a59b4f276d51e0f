"""The candidates that a search requests from one reader's memory, and the database as their source.

Sources only choose candidates; everything computed from them is the same for all sources, so that equal candidates give
equal answers. By words, sources choose differently if more facts or messages than the limit contain one: the database
prefers words that are rare among all users, a copy in memory words that are rare among the reader's groups.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import reduce
from itertools import chain
from typing import Any, Self

import numpy as np

from graphmem.conversations.session import Message
from graphmem.conversations.stored import message_from_columns
from graphmem.memories.entity import EntityProfile, NamedEntity, entity_from_columns, profile_from_columns
from graphmem.memories.fact import memory_from_columns
from graphmem.memories.fact_store import with_retrieval_states
from graphmem.memories.filters import FactFilters
from graphmem.memories.memory import Memory
from graphmem.memories.names import EntityMention, MentionKind
from graphmem.memories.vectors import StoredVectors
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.driver_values import pack_vector
from graphmem.neo4j.migrations import FACT_TEXT_FIELDS, MESSAGE_TEXT_FIELDS, NAME_TEXT_FIELDS
from graphmem.runtime.field_types import Vector
from graphmem.runtime.times import EPOCH, MICROSECOND, from_micros, to_epoch_pair
from graphmem.search.candidates import (
    Candidates,
    Channel,
    FactNumbers,
    FactRow,
    Ranking,
    Rows,
    merge_channels,
    number_rows,
)
from graphmem.search.evidence import MessageText, MessageTexts
from graphmem.search.models import EntityMemories, SourceName
from graphmem.search.walk import WalkEdge, WalkStep, walk
from graphmem.tenants.owners import MessageName, message_ids_of, message_name
from graphmem.tenants.spaces import ReadScope
from graphmem.text.time_expressions import TimeRange
from graphmem.text.tokenising import build_lucene_query

MAX_GRAPH_ENTITIES = 20
"""Maximum named entities around which the graph channel searches, the most certain ones."""


@dataclass(frozen=True, slots=True)
class Question:
    """A search's request to a source; `limit` is the number of rows requested per channel.

    `text` is the text to search for: the question as `asked` or, if that asks for an overview, its topic. `named` are
    the entities that the text names, empty if no step needs them. `vectors` are those of the text and, for a search
    with messages, of its focus; they are a task, so that a source may begin before they are known, and None if no step
    needs them. `reads_past` says whether a past time named by the question is searched, because the caller names no
    valid time.
    """

    asked: str
    text: str
    is_overview: bool
    now: datetime
    filters: FactFilters
    limit: int
    words: Sequence[str]
    searches_graph: bool
    named: Sequence[EntityMention]
    time_ranges: Sequence[TimeRange]
    vectors: asyncio.Task[list[Vector]] | None
    reads_past: bool

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the task if it is still running because another step failed."""
        if self.vectors:
            self.vectors.cancel()
            await asyncio.gather(self.vectors, return_exceptions=True)

    async def vector(self) -> Vector | None:
        """Return the vector of the text, or None if no channel searches by meaning."""
        return (await self.vectors)[0] if self.vectors else None

    async def focus(self) -> Vector | None:
        """Return the vector of the text's focus, or None if no step compares with it."""
        vectors = await self.vectors if self.vectors else []
        return vectors[1] if len(vectors) > 1 else None

    @property
    def graph_entities(self) -> list[str]:
        """The ids of the entities around which facts are searched; words such as "I" do not count as naming one."""
        named = self.named if self.searches_graph else ()
        return [mention.id for mention in named if mention.kind is not MentionKind.SELF_REFERENCE][:MAX_GRAPH_ENTITIES]

    @property
    def past(self) -> TimeRange | None:
        """The past time in question, from the start of the first one named to the end of the last."""
        now = int(self.now.timestamp() * 1000)
        past = [named for named in self.time_ranges if named.end <= now] if self.reads_past else []
        if not past:
            return None
        return TimeRange(min(named.start for named in past), max(named.end for named in past))

    @property
    def filters_of_past(self) -> FactFilters | None:
        """The filters for facts that held at some moment of the past time in question, or None if there is none."""
        if (past := self.past) is None or self.filters.any_validity:
            return None
        start, end = (EPOCH + timedelta(milliseconds=time) for time in (past.start, past.end))
        return replace(self.filters, valid_since=start, valid_at=end - MICROSECOND)


ANN_CANDIDATES = 300
"""Minimum candidates requested from a vector index.

Measured on 10,000 facts of a user: 300 candidates contain 99.85 % of the exact 20 nearest facts, 100 contain 98.4 % and
take one millisecond less.
"""


class CandidateSource:
    """One reader's memory in the database. Both time axes and every filter apply before any limit.

    `state` has the states of the reader's groups; the source includes everything written before they were read.
    """

    name: SourceName = "database"

    def __init__(self, graph: Graph, vectors: StoredVectors, state: ReadScope) -> None:
        self._graph = graph
        self._vectors = vectors
        self._scope = state
        self._groups = state.group_ids
        self.state = state

    # Candidates

    async def find_facts(self, question: Question) -> Candidates:
        """Return the facts found by each channel, including those of a past time named by the question."""
        fetched = _FetchedFacts()
        asked = [filters for filters in (question.filters, question.filters_of_past) if filters]
        found = await asyncio.gather(*(self._ask_channels(question, filters, fetched) for filters in asked))
        rows, channels = number_rows(reduce(merge_channels, found))
        facts, similarities = [fetched.facts[row] for row in rows.tolist()], np.array(fetched.similarities)[rows]
        vectors = await question.vectors if question.vectors else []
        compared = facts if len(vectors) > 1 else [facts[row] for row in np.flatnonzero(np.isnan(similarities))]
        cosines = await self._vectors.similarities(self._scope, "facts", [fact.uuid for fact in compared], vectors)
        nothing = (math.nan, math.nan)
        computed = np.array([(*cosines.get(fact.uuid, ()), *nothing)[:2] for fact in facts]).reshape(-1, 2)
        return Candidates(
            facts=facts,
            numbers=fetched.numbers(rows),
            similarities=np.where(np.isnan(similarities), computed[:, 0], similarities),
            focus_similarities=computed[:, 1],
            channels=channels,
        )

    async def _ask_channels(
        self, question: Question, filters: FactFilters, fetched: _FetchedFacts
    ) -> dict[Channel, Ranking]:
        """Return the results of each channel with some filters; a channel that needs no vector does not wait for it."""
        asked = {
            "semantic": self._find_by_vector(question, filters) if question.vectors else None,
            "keyword": self._find_by_text(question, filters) if question.words else None,
            "graph": self._find_around_entities(question, filters) if question.searches_graph else None,
        }
        names = [name for name, finding in asked.items() if finding]
        found = await asyncio.gather(*(finding for finding in asked.values() if finding))
        return {name: fetched.add(rows) for name, rows in zip(names, found, strict=True)}

    async def _find_by_vector(self, question: Question, filters: FactFilters) -> list[Any]:
        """Return the facts nearest to the vector, from the index if it can apply all the filters."""
        params: dict[str, Any] = {
            "group_ids": self._groups,
            "vector": pack_vector(await question.vector()),
            "limit": question.limit,
        }
        if not filters.is_fully_indexable:
            return await self._fetch(
                "search.scan_facts_by_vector", **params, **filters.readable_params, filters=filters.attribute_params
            )
        params |= filters.as_of_params
        params["ann_limit"] = max(ANN_CANDIDATES, question.limit)
        if filters.attributes.domain is None:
            return await self._fetch("search.find_facts_by_vector", **params)
        return await self._fetch("search.find_domain_facts_by_vector", **params, domain=filters.attributes.domain)

    async def _find_by_text(self, question: Question, filters: FactFilters) -> list[Any]:
        """Return the facts found by a full-text query, without their similarity."""
        return await self._fetch(
            "search.find_facts_by_text",
            words=self._lucene_query(question.words, FACT_TEXT_FIELDS),
            limit=question.limit,
            group_ids=self._groups,
            **filters.readable_params,
            filters=filters.attribute_params,
        )

    async def _find_around_entities(self, question: Question, filters: FactFilters) -> list[Any]:
        """Return the facts up to four steps around the entities named by the question."""
        edges = _FetchedEdges(self._graph, self._groups, await question.vector(), filters)
        best = await walk(edges, question.graph_entities, question.limit)
        if not best:
            return []
        uuids = [edges.uuid(row) for row, _ in best]
        found = await self._fetch("search.load_candidates", group_ids=self._groups, uuids=uuids)
        by_uuid = {columns[2]: columns for columns in found}
        return [
            [score, edges.similarity(row), *by_uuid[uuid][2:]]
            for (row, score), uuid in zip(best, uuids, strict=True)
            if uuid in by_uuid
        ]

    async def find_messages(self, question: Question) -> list[str]:
        """Return the keys of the messages nearest to the vector, and of those with any of the words."""
        found = await asyncio.gather(self._find_messages_by_vector(question), self._find_messages_by_words(question))
        return list(dict.fromkeys(chain.from_iterable(found)))

    async def _find_messages_by_vector(self, question: Question) -> list[str]:
        vector, filters, limit = await question.vector(), question.filters, question.limit
        if vector is None:
            return []
        params = {"group_ids": self._groups, "vector": pack_vector(vector), "limit": limit}
        if filters.reads_all_messages:
            params["ann_limit"] = max(ANN_CANDIDATES, limit)
            found = await self._fetch("search.find_messages_by_vector", **params)
        else:
            found = await self._fetch("search.scan_messages_by_vector", **params, **filters.message_params)
        return [key for key, _ in found]

    async def _find_messages_by_words(self, question: Question) -> list[str]:
        if not question.words:
            return []
        found = await self._fetch(
            "search.find_messages_by_words",
            words=self._lucene_query(question.words, MESSAGE_TEXT_FIELDS),
            group_ids=self._groups,
            limit=question.limit,
            **question.filters.message_params,
        )
        return [key for key, _ in found]

    async def load_message_texts(
        self, keys: Sequence[str], vector: Vector | None, filters: FactFilters
    ) -> MessageTexts:
        """Return messages within the times of the filters, without those that are partly quarantined."""
        if not keys:
            return MessageTexts([], np.zeros(0))
        cosines, found = await asyncio.gather(
            self._vectors.similarities(self._scope, "messages", keys, [] if vector is None else [vector]),
            self._fetch(
                "search.load_message_contents",
                group_ids=self._groups,
                message_ids=message_ids_of(keys),
                **filters.message_params,
            ),
        )
        wanted = frozenset(keys)
        messages = [MessageText(*columns) for columns in found if columns[0] in wanted]
        return MessageTexts(messages, np.array([cosines.get(message.message_id, (0.0,))[0] for message in messages]))

    async def load_memories(self, uuids: Sequence[str], now: datetime) -> dict[str, Memory]:
        """Return memories at `now` by version uuid; those that no longer exist are left out."""
        if not uuids:
            return {}
        found = await self._fetch("search.load_memories", group_ids=self._groups, uuids=list(uuids))
        return {columns[0]["uuid"]: memory_from_columns(columns, now) for columns in found}

    async def load_messages(self, keys: Sequence[str]) -> dict[str, Message]:
        """Return messages by key (`tenants.owners.message_key`); those that no longer exist are left out."""
        if not keys:
            return {}
        found = await self._fetch("search.load_messages", group_ids=self._groups, message_ids=message_ids_of(keys))
        wanted = frozenset(keys)
        return {key: message_from_columns(columns) for key, columns in found if key in wanted}

    # Entities

    async def list_entity_names(self, limit: int) -> list[NamedEntity]:
        """Return up to `limit` entities that the user can read, with their names."""
        found = await self._fetch("search.list_entity_names", group_ids=self._groups, limit=limit)
        return [NamedEntity(*columns) for columns in found]

    async def find_entity_names(self, words: Sequence[str], limit: int) -> list[NamedEntity]:
        """Return entities whose names or aliases a full-text query finds."""
        lucene = self._lucene_query(words, NAME_TEXT_FIELDS)
        found = await self._fetch("search.find_entity_names", group_ids=self._groups, words=lucene, limit=limit)
        return [NamedEntity(*columns) for columns in found]

    async def load_entities_with_facts(
        self, entity_ids: Sequence[str], filters: FactFilters, until: datetime, limit: int
    ) -> list[EntityMemories]:
        """Return entities in the given order, each with up to `limit` facts that pass the filters.

        A fact is valid at the time of the filters or at some moment from there to `until`.
        """
        if not entity_ids:
            return []
        until_pair = {} if filters.any_validity else {"valid_at": to_epoch_pair(until)}
        found = await self._fetch(
            "search.load_entities_with_facts",
            group_ids=self._groups,
            named_entity_ids=list(entity_ids),
            **{**filters.readable_params, **until_pair},
            filters=filters.attribute_params,
            limit=limit,
        )
        by_id = {
            stored["uuid"]: EntityMemories(
                entity=entity_from_columns(stored, times, memory_count),
                memories=[memory_from_columns(columns, filters.valid_at) for columns in facts],
            )
            for stored, times, memory_count, facts in found
        }
        return [by_id[entity_id] for entity_id in entity_ids if entity_id in by_id]

    async def load_profiles(self, entity_ids: Sequence[str], filters: FactFilters) -> dict[str, EntityProfile]:
        """Return the profiles of entities, by entity id, as of the times of filters."""
        return await load_profiles(self._graph, self._groups, entity_ids, filters)

    async def list_profile_facts(self, domain: str | None, start: datetime, end: datetime, limit: int) -> list[Memory]:
        """Return the facts of the profile, and of a domain, that are valid at some moment in `[start, end)`."""
        found = await self._fetch(
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
        """Return memories with their strength and access count at `now`, and the times when messages were said."""
        if not memories and not message_ids:
            return {}, {}
        states, said = await self._fetch(
            "search.load_shown",
            group_ids=self._groups,
            ids=[memory.id for memory in memories],
            message_ids=list(dict.fromkeys(message_ids)),
        )
        times = {message_name(key): from_micros(micros) for key, micros in said}
        return with_retrieval_states(memories, states, now), times

    def _fetch(self, name: str, **parameters: Any) -> Awaitable[list[Any]]:
        return self._graph.fetch_value_from_any_member(name, **parameters)

    def _lucene_query(self, words: Sequence[str], fields: Sequence[str]) -> str:
        return build_lucene_query(words, self._scope.group_keys, fields)


async def load_profiles(
    graph: Graph, group_ids: Sequence[str], entity_ids: Sequence[str], filters: FactFilters
) -> dict[str, EntityProfile]:
    """Return profiles as of the times of filters, without those based on a memory that has changed or does not hold."""
    if not entity_ids:
        return {}
    found = await graph.fetch_value(
        "profiles.load", group_ids=list(group_ids), entity_ids=list(entity_ids), **filters.as_of_params
    )
    profiles = [profile_from_columns(*columns) for columns in found]
    return {profile.entity_id: profile for profile in profiles}


class _FetchedEdges:
    """The facts that queries find at entities, as edges by row."""

    def __init__(self, graph: Graph, group_ids: Sequence[str], vector: Vector | None, filters: FactFilters) -> None:
        self._graph = graph
        self._fixed = {
            "group_ids": group_ids,
            "vector": pack_vector(vector),
            **filters.readable_params,
            "filters": filters.attribute_params,
        }
        self._edges: list[WalkEdge] = []
        self._user_ids: set[str] = set()

    @property
    def user_ids(self) -> Set[str]:
        """The ids of the entities that stand for a user, among the ends of the edges found so far."""
        return self._user_ids

    def uuid(self, row: int) -> str:
        """Return the uuid of a fact."""
        return self._edges[row].rank[2]

    def similarity(self, row: int) -> float | None:
        """Return the similarity of a fact to the question."""
        return self._edges[row].similarity

    async def find(self, ways: Mapping[str, float], step: WalkStep, seen: Sequence[int], limit: int) -> list[WalkEdge]:
        """Return the first `limit` edges of a step from entities, without the rows `seen`."""
        found = await self._graph.fetch_value_from_any_member(
            "search.find_edges",
            **self._fixed,
            ways=[[entity_id, way] for entity_id, way in ways.items()],
            seen=[self.uuid(row) for row in seen],
            max_degree=step.max_degree,
            max_outgoing=step.max_outgoing,
            max_incoming=step.max_incoming,
            limit=limit,
        )
        start = len(self._edges)
        for uuid, subject_id, object_id, user_ids, origins, matches, similarity, importance, known_from in found:
            rank = (-importance, -known_from, uuid)
            self._edges.append(WalkEdge(len(self._edges), (subject_id, object_id), origins, matches, rank, similarity))
            self._user_ids.update(user_ids)
        return self._edges[start:]


class _FetchedFacts:
    """A table of the distinct facts that queries have found."""

    def __init__(self) -> None:
        self.facts: list[FactRow] = []
        self.similarities: list[float] = []
        self._numbers: list[Sequence[float]] = []
        self._rows: dict[str, int] = {}

    def add(self, found: Sequence[Sequence[Any]]) -> Ranking:
        """Add the facts found by a query, as described by the fragment `fact_candidate`; return their rows."""
        rows = np.fromiter(map(self._add, found), np.int64, len(found))
        return Ranking(rows, np.array([columns[0] for columns in found], np.float64))

    def _add(self, columns: Sequence[Any]) -> int:
        _, similarity, uuid, memory_id, content, context, kind, tags, message_ids, entity_ids, trust_kind = columns[:11]
        row = self._rows.setdefault(uuid, len(self.facts))
        if row == len(self.facts):
            self.facts.append(
                FactRow(
                    uuid=uuid,
                    memory_id=memory_id,
                    content=content,
                    context=context,
                    type=kind,
                    tags=tags,
                    message_ids=message_ids,
                    entity_ids=entity_ids,
                    trust_kind=trust_kind,
                )
            )
            self._numbers.append(columns[11:])
            self.similarities.append(math.nan)
        if similarity is not None:
            self.similarities[row] = similarity
        return row

    def numbers(self, rows: Rows) -> FactNumbers:
        """Return the numbers of some rows."""
        importance, strength, decay_rate, *times = np.array(self._numbers, np.float64).reshape(-1, 6)[rows].T
        return FactNumbers(importance, strength, decay_rate, *(time.astype(np.int64) for time in times))
