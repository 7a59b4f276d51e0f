"""Copies in memory as a source of candidates; every answer equals the database's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime
from heapq import nlargest
from itertools import chain
from operator import itemgetter, methodcaller

import numpy as np
from numpy.typing import NDArray

from graphmem.conversations.session import Message
from graphmem.memories.entity import EntityProfile, EntityRef, NamedEntity
from graphmem.memories.fact_store import with_retrieval_states
from graphmem.memories.filters import FactFilters
from graphmem.memories.memory import Memory
from graphmem.memories.vectors import StoredVectors
from graphmem.neo4j.driver import Graph
from graphmem.runtime.field_types import Vector
from graphmem.search.bm25 import Scores
from graphmem.search.candidates import (
    Candidates,
    Channel,
    Mask,
    Ranking,
    best_rows,
    merge_channels,
    number_rows,
    unit_vector,
)
from graphmem.search.evidence import MessageTexts
from graphmem.search.models import SourceName
from graphmem.search.resident.fact_table import FactTable, FactTables, ResidentFact
from graphmem.search.resident.group_copy import GroupCopy
from graphmem.search.source import CandidateSource, Question
from graphmem.search.walk import WalkEdge, WalkStep, walk
from graphmem.tenants.owners import MessageName, Owner, message_key
from graphmem.tenants.spaces import ReadScope


class ResidentSource(CandidateSource):
    """One reader's memory in copies of the groups read; lookups and profiles come from the database."""

    name: SourceName = "memory"

    def __init__(self, graph: Graph, vectors: StoredVectors, state: ReadScope, copies: Sequence[GroupCopy]) -> None:
        super().__init__(graph, vectors, state)
        self._copies = copies

    # Candidates

    async def find_facts(self, question: Question) -> Candidates:
        """Return the facts found by each channel, including those of a past time named by the question."""
        vector, focus = await question.vector(), await question.focus()
        facts = FactTables([copy.facts for copy in self._copies])
        similarities = np.full(len(facts.facts), np.nan) if vector is None else facts.join(_cosines_with(_unit(vector)))
        word_scores = facts.join(methodcaller("word_scores", question.words)) if question.words else None
        channels: dict[Channel, Ranking] = {}
        for filters in (question.filters, question.filters_of_past):
            if filters is None:
                continue
            held = facts.join(methodcaller("mask_of_times", filters))
            matching = facts.join(methodcaller("mask_of_attributes", filters))
            mask = held & matching
            found: dict[Channel, Ranking] = {}
            if vector is not None:
                found["semantic"] = _best(mask & ~np.isnan(similarities), (1.0 + similarities) / 2.0, question.limit)
            if word_scores is not None:
                found["keyword"] = _best(mask & (word_scores > 0), word_scores, question.limit)
            if question.searches_graph:
                edges = _ResidentEdges(facts, similarities, held, matching, self._user_ids)
                found["graph"] = Ranking.of(await walk(edges, question.graph_entities, question.limit))
            channels = merge_channels(channels, found) if channels else found
        rows, channels = number_rows(channels)
        return Candidates(
            facts=[facts.facts[row] for row in rows.tolist()],
            numbers=facts.numbers(rows),
            similarities=similarities[rows],
            focus_similarities=np.full(len(rows), np.nan) if focus is None else facts.cosines(_unit(focus), rows),
            channels=channels,
        )

    async def find_messages(self, question: Question) -> list[str]:
        """Return the keys of the messages nearest to the vector, and of those with any of the words."""
        tables = [copy.messages for copy in self._copies]
        masks = [table.mask(question.filters) for table in tables]
        vector, limit = await question.vector(), question.limit
        near, said = [], []
        for table, mask in zip(tables, masks, strict=True):
            near += table.find_by_vector(_unit(vector), mask, limit) if vector is not None else []
            said += table.find_by_words(question.words, mask, limit) if question.words else []
        found = chain(*(nlargest(limit, scored, key=itemgetter(0)) for scored in (near, said)))
        return list(dict.fromkeys(key for _, key in found))

    async def load_message_texts(
        self, keys: Sequence[str], vector: Vector | None, filters: FactFilters
    ) -> MessageTexts:
        """Return messages within the times of the filters, without those that are partly quarantined."""
        unit = None if vector is None else _unit(vector)
        found = [copy.messages.texts(keys, unit, copy.messages.mask(filters)) for copy in self._copies]
        messages = [message for texts in found for message in texts.messages]
        return MessageTexts(messages, np.concatenate([texts.similarities for texts in found]))

    async def load_memories(self, uuids: Sequence[str], now: datetime) -> dict[str, Memory]:
        """Return memories at `now` by version uuid; those that no longer exist are left out."""
        found = {uuid: self._find(uuid) for uuid in uuids}
        return {uuid: fact.to_memory(self._refs_of(fact), now) for uuid, fact in found.items() if fact is not None}

    async def load_messages(self, keys: Sequence[str]) -> dict[str, Message]:
        """Return messages by key (`tenants.owners.message_key`); those that no longer exist are left out."""
        found = ((key, copy.messages.get(key)) for copy in self._copies for key in keys)
        return {key: message for key, message in found if message is not None}

    # Entities, profiles, and data that changes without a write

    async def list_entity_names(self, limit: int) -> list[NamedEntity]:
        """Return up to `limit` entities that the user can read, with their names."""
        return [entity for copy in self._copies for entity in copy.named_entities][:limit]

    async def load_profiles(self, entity_ids: Sequence[str], filters: FactFilters) -> dict[str, EntityProfile]:
        """Return the profiles of entities valid as of the filters' times, from the database if there are any."""
        tables = [copy.facts for copy in self._copies]
        profiled = [entity_id for entity_id in entity_ids if any(table.has_profile(entity_id) for table in tables)]
        return await super().load_profiles(profiled, filters)

    async def load_shown(
        self, memories: Sequence[Memory], message_ids: Sequence[str], now: datetime
    ) -> tuple[dict[str, Memory], dict[MessageName, datetime]]:
        """Return memories with their strength and access count at `now`, and the times when messages were said."""
        believed = (copy.facts.believed(memory.id) for memory in memories for copy in self._copies)
        states = [fact.retrieval_state for fact in believed if fact is not None]
        said = {
            (Owner.from_group_id(copy.group_id).space, message_id): time
            for copy in self._copies
            for message_id in message_ids
            if (time := copy.messages.time_said(message_key(copy.group_id, message_id))) is not None
        }
        return with_retrieval_states(memories, states, now), said

    def _find(self, uuid: str) -> ResidentFact | None:
        return next((fact for copy in self._copies if (fact := copy.facts.get(uuid)) is not None), None)

    @property
    def _user_ids(self) -> frozenset[str]:
        return frozenset(chain.from_iterable(copy.user_ids for copy in self._copies))

    def _refs_of(self, fact: ResidentFact) -> dict[str, EntityRef]:
        wanted = (*fact.ends, *fact.entity_ids)
        return {key: copy.refs[key] for key in wanted for copy in self._copies if key in copy.refs}


class _ResidentEdges:
    """Facts of tables as edges; those that `held` are found, `similarities` are those to the question."""

    def __init__(self, facts: FactTables, similarities: Scores, held: Mask, matching: Mask, user_ids: Set[str]) -> None:
        self._facts = facts
        self._similarities = similarities
        self._held = held
        self._matching = matching
        self.user_ids = user_ids

    async def find(self, ways: Mapping[str, float], step: WalkStep, seen: Sequence[int], limit: int) -> list[WalkEdge]:
        """Return the edges of a step from entities, without the rows `seen`, in no particular order."""
        origins: dict[int, list[str]] = {}
        for entity_id in ways:
            for row in self._followed(entity_id, step):
                origins.setdefault(row, []).append(entity_id)
        for row in seen:
            origins.pop(row, None)
        found = np.fromiter(origins, np.int64, len(origins))
        rows = found[self._held[found]]
        columns = (rows.tolist(), self._matching[rows].tolist(), self._similarities[rows].tolist())
        return [
            WalkEdge(row, fact.ends, origins[row], matches, fact.rank, None if math.isnan(similarity) else similarity)
            for row, matches, similarity in zip(*columns, strict=True)
            for fact in [self._facts.facts[row]]
        ]

    def _followed(self, entity_id: str, step: WalkStep) -> Set[int]:
        """Return the rows of the facts to follow from an entity."""
        outgoing, incoming = self._facts.outgoing(entity_id), self._facts.incoming(entity_id)
        if max(len(outgoing), len(incoming)) > step.max_degree or len({*outgoing, *incoming}) > step.max_degree:
            return set()
        followed = set(outgoing) if len(outgoing) <= step.max_outgoing else set()
        return followed.union(incoming) if len(incoming) <= step.max_incoming else followed


def _best(mask: Mask, scores: Scores, limit: int) -> Ranking:
    """Return the rows of a mask with the highest scores; in a tie, the earlier row comes first."""
    rows = np.flatnonzero(mask)
    best = best_rows(rows, scores[rows], limit)
    return Ranking(best, scores[best])


def _cosines_with(vector: NDArray[np.float32]) -> Callable[[FactTable], Scores]:
    return methodcaller("cosines", vector)


def _unit(vector: Vector) -> NDArray[np.float32]:
    return unit_vector(vector, len(vector))
