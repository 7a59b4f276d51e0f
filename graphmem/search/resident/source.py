"""Copies in memory as a source of candidates; every answer is that of the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import nlargest
from itertools import chain
from operator import attrgetter, itemgetter, methodcaller

import numpy as np
from numpy.typing import NDArray

from graphmem.conversations.session import Message
from graphmem.memories.entity import EntityProfile, EntityRef, NamedEntity
from graphmem.memories.fact_store import with_retrieval_states
from graphmem.memories.filters import FactFilters
from graphmem.memories.memory import Memory
from graphmem.runtime.field_types import Vector
from graphmem.runtime.times import MICROSECOND, to_micros, utc_now
from graphmem.search.candidates import Candidates, Channel, Ranking, number_rows
from graphmem.search.columns import Mask, Scores, best_rows, unit_vector
from graphmem.search.evidence import MessageTexts
from graphmem.search.models import EntityMemories, SourceName
from graphmem.search.resident.fact_table import FactTable, FactTables, ResidentFact
from graphmem.search.resident.group_copy import GroupCopy
from graphmem.search.source import Question
from graphmem.search.walk import Walk
from graphmem.tenants.owners import MessageName, Owner, message_key
from graphmem.tenants.spaces import ReadScope
from graphmem.text.names import name_words

PROFILE_SCOPES = ("profile", "global")
"""The scopes whose memories are part of a profile."""


class ResidentSource:
    """The memory of one user in copies of the groups that the user reads."""

    name: SourceName = "memory"

    def __init__(self, state: ReadScope, copies: Sequence[GroupCopy]) -> None:
        self.state = state
        self._copies = copies

    # Candidates

    async def find_facts(self, question: Question) -> Candidates:
        """Return the facts that each channel finds, with those of a past time that the question names."""
        vector, focus = await question.vector(), await question.focus()
        entity_ids, past = await question.graph_entities(), await question.filters_of_past()
        facts = FactTables([copy.facts for copy in self._copies])
        similarities = np.full(len(facts.facts), np.nan) if vector is None else facts.join(_cosines_with(_unit(vector)))
        word_scores = facts.join(methodcaller("word_scores", question.words)) if question.words else None
        channels: dict[Channel, Ranking] = {}
        for filters in (question.filters, past):
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
                walk = Walk(facts, similarities, held, matching, self._user_ids)
                found["graph"] = walk.find(entity_ids, question.limit)
            channels = {name: channels[name].merged(found[name]) if channels else found[name] for name in found}
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
        """Return messages within the times of the filters, without those that are quarantined in part."""
        unit = None if vector is None else _unit(vector)
        found = [copy.messages.texts(keys, unit, copy.messages.mask(filters)) for copy in self._copies]
        messages = [message for texts in found for message in texts.messages]
        return MessageTexts(messages, np.concatenate([texts.similarities for texts in found]))

    async def load_memories(self, uuids: Sequence[str], now: datetime) -> dict[str, Memory]:
        """Return versions as callers see them at `now`, by uuid; those that no longer exist are left out."""
        found = {uuid: self._find(uuid) for uuid in uuids}
        return {uuid: fact.to_memory(self._refs_of(fact), now) for uuid, fact in found.items() if fact is not None}

    async def load_messages(self, keys: Sequence[str]) -> dict[str, Message]:
        """Return messages by key (`tenants.owners.message_key`); those that no longer exist are left out."""
        found = ((key, copy.messages.get(key)) for copy in self._copies for key in keys)
        return {key: message for key, message in found if message is not None}

    # Entities and profiles

    async def list_entity_names(self, limit: int) -> list[NamedEntity]:
        """Return up to `limit` entities that the user can read, with their names."""
        return [entity for copy in self._copies for entity in copy.named_entities()][:limit]

    async def find_entity_names(self, words: Sequence[str], limit: int) -> list[NamedEntity]:
        """Return entities whose names or aliases contain any of the words."""
        wanted = frozenset(part for word in words for part in name_words(word))
        named = (
            entity
            for copy in self._copies
            for entity in copy.named_entities()
            if any(not wanted.isdisjoint(name_words(name)) for name in (entity.name, *entity.aliases))
        )
        return [entity for entity, _ in zip(named, range(limit), strict=False)]

    async def load_entities_with_facts(
        self, entity_ids: Sequence[str], filters: FactFilters, until: datetime, limit: int
    ) -> list[EntityMemories]:
        """Return entities in the order given, each with up to `limit` facts that pass the filters.

        A fact is valid at the time of the filters or at one from there to `until`.
        """
        if not entity_ids:
            return []
        if not filters.any_validity:
            widened = replace(filters, valid_since=filters.valid_since or filters.valid_at, valid_at=until)
        else:
            widened = filters
        facts, now = FactTables([copy.facts for copy in self._copies]), to_micros(utc_now())
        mask = facts.join(methodcaller("mask_of_times", widened)) & facts.join(
            methodcaller("mask_of_attributes", widened)
        )
        entities = (
            next((found for copy in self._copies if (found := copy.entity(entity_id, now))), None)
            for entity_id in entity_ids
        )
        return [
            EntityMemories(entity=entity, memories=self._most_important(passing, filters.valid_at, limit))
            for entity in entities
            if entity is not None
            for passing in [[facts.facts[row] for row in facts.about(entity.id) if mask[row]]]
        ]

    async def load_profiles(self, entity_ids: Sequence[str], filters: FactFilters) -> dict[str, EntityProfile]:
        """Return the profiles of entities, by their ids, as of the times of filters."""
        times = FactFilters(valid_at=filters.valid_at, known_at=filters.known_at)
        found = (copy.facts.find_profile(entity_id, times) for copy in self._copies for entity_id in entity_ids)
        return {profile.entity_id: profile for profile in found if profile is not None}

    async def list_profile_facts(self, domain: str | None, start: datetime, end: datetime, limit: int) -> list[Memory]:
        """Return the facts of the profile, and of a domain, that are valid at a time in `[start, end)`."""
        filters = FactFilters(valid_at=end - MICROSECOND, valid_since=start)
        facts = [
            copy.facts.facts[row]
            for copy in self._copies
            for row in np.flatnonzero(
                copy.facts.mask_of_times(filters)
                & copy.facts.is_statement
                & copy.facts.in_scope_or_domain(PROFILE_SCOPES, domain)
            )
        ]
        return self._most_important(facts, start, limit)

    async def load_shown(
        self, memories: Sequence[Memory], message_ids: Sequence[str], now: datetime
    ) -> tuple[dict[str, Memory], dict[MessageName, datetime]]:
        """Return memories with the strength and access count that they have at `now`, and when messages were said."""
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

    def _most_important(self, facts: Sequence[ResidentFact], now: datetime, limit: int) -> list[Memory]:
        ordered = sorted(facts, key=attrgetter("rank"))
        return [fact.to_memory(self._refs_of(fact), now) for fact in ordered[:limit]]


def _best(mask: Mask, scores: Scores, limit: int) -> Ranking:
    """Return the rows of a mask with the highest scores; of equal ones the earlier comes first."""
    rows = np.flatnonzero(mask)
    best = best_rows(rows, scores[rows], limit)
    return Ranking(best, scores[best])


def _cosines_with(vector: NDArray[np.float32]) -> Callable[[FactTable], Scores]:
    return methodcaller("cosines", vector)


def _unit(vector: Vector) -> NDArray[np.float32]:
    return unit_vector(vector, len(vector))
