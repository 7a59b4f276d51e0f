"""Copies in memory as a source of candidates; every answer is that of the database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import nlargest
from operator import attrgetter, itemgetter

import numpy as np
from numpy.typing import NDArray

from graphmem.conversations.session import Message
from graphmem.memories.entity import EntityRef, NamedEntity
from graphmem.memories.entity_profile import EntityProfile
from graphmem.memories.filters import FactFilters
from graphmem.memories.memory import Memory
from graphmem.memories.reinforcement import with_retrieval_states
from graphmem.runtime.field_types import Vector
from graphmem.runtime.times import MICROSECOND, to_micros, utc_now
from graphmem.search.fact_candidate import FactCandidate
from graphmem.search.models import EntityMemories, MessageCandidate, MessageContent, SourceName
from graphmem.search.resident.columns import unit_vector
from graphmem.search.resident.fact_table import ResidentFact, rank_by_importance
from graphmem.search.resident.group_copy import GroupCopy
from graphmem.search.resident.walk import Walk
from graphmem.tenants.owners import MessageName, Owner, message_key
from graphmem.tenants.scopes import ReadScope
from graphmem.text.names import name_words

_by_score = attrgetter("score")

PROFILE_SCOPES = ("profile", "global")
"""The scopes whose memories are part of a profile."""


class ResidentSource:
    """The memory of one user in copies of the groups that the user reads."""

    name: SourceName = "memory"

    def __init__(self, state: ReadScope, copies: Sequence[GroupCopy]) -> None:
        self.state = state
        self._copies = copies

    # Channels

    async def find_facts_by_vector(self, vector: Vector, filters: FactFilters, limit: int) -> list[FactCandidate]:
        """Return the facts nearest to a vector, best first."""
        tables, unit = [copy.facts for copy in self._copies], _unit(vector)
        found = [fact for table in tables for fact in table.find_by_vector(unit, table.mask(filters), limit)]
        return [
            fact.candidate._replace(score=(1.0 + similarity) / 2.0, similarity=similarity)
            for similarity, fact in _best(found, limit)
        ]

    async def find_facts_by_text(self, words: Sequence[str], filters: FactFilters, limit: int) -> list[FactCandidate]:
        """Return the facts that contain any of the words, best first, without their similarity."""
        tables = [copy.facts for copy in self._copies]
        found = [fact for table in tables for fact in table.find_by_text(words, table.mask(filters), limit)]
        return [fact.candidate._replace(score=score) for score, fact in _best(found, limit)]

    async def find_facts_around_entities(
        self, entity_ids: Sequence[str], vector: Vector | None, filters: FactFilters, limit: int
    ) -> list[FactCandidate]:
        """Return the facts up to three steps around entities, best first by their similarity and that of the way."""
        if not entity_ids:
            return []
        return Walk(self._copies, _unit(vector) if vector else None, filters).find(entity_ids, limit)

    async def find_messages_by_vector(self, vector: Vector, filters: FactFilters, limit: int) -> list[MessageCandidate]:
        """Return the messages nearest to a vector, best first."""
        tables = [copy.messages for copy in self._copies]
        unit = _unit(vector)
        found = [message for table in tables for message in table.find_by_vector(unit, table.mask(filters), limit)]
        return nlargest(limit, found, key=_by_score)

    async def find_messages_by_words(
        self, words: Sequence[str], filters: FactFilters, limit: int
    ) -> list[MessageCandidate]:
        """Return the messages that contain any of the words, best first."""
        tables = [copy.messages for copy in self._copies]
        found = [message for table in tables for message in table.find_by_words(words, table.mask(filters), limit)]
        return nlargest(limit, found, key=_by_score)

    # Details of candidates

    async def fact_similarities(self, uuids: Iterable[str], vectors: Sequence[Vector]) -> dict[str, list[float]]:
        """Return the cosines of facts with each vector, by uuid; those without a vector are left out."""
        if not vectors:
            return {}
        units, missing = _units(vectors), list(uuids)
        cosines: dict[str, list[float]] = {}
        for copy in self._copies:
            known = {uuid: fact for uuid in missing if (fact := copy.facts.get(uuid)) is not None}
            missing = [uuid for uuid in missing if uuid not in known]
            with_vector = {uuid: fact for uuid, fact in known.items() if copy.facts.has_vector(fact)}
            computed = copy.facts.similarities([*with_vector.values()], units)
            cosines |= dict(zip(with_vector, computed, strict=True))
        return cosines

    async def message_similarities(
        self, message_ids: Iterable[str], vectors: Sequence[Vector]
    ) -> dict[str, list[float]]:
        """Return the cosines of messages with each vector, by id; those without a vector are left out."""
        if not vectors:
            return {}
        units, wanted = _units(vectors), list(message_ids)
        cosines: dict[str, list[float]] = {}
        for copy in self._copies:
            cosines |= copy.messages.similarities(wanted, units)
        return cosines

    async def load_memories(self, uuids: Sequence[str], now: datetime) -> dict[str, Memory]:
        """Return versions as callers see them at `now`, by uuid; those that no longer exist are left out."""
        found = {uuid: self._find(uuid) for uuid in uuids}
        return {uuid: fact.to_memory(self._refs_of(fact), now) for uuid, fact in found.items() if fact is not None}

    async def load_messages(self, keys: Sequence[str]) -> dict[str, Message]:
        """Return messages by key (`tenants.owners.message_key`); those that no longer exist are left out."""
        found = ((key, copy.messages.get(key)) for copy in self._copies for key in keys)
        return {key: message for key, message in found if message is not None}

    async def load_message_contents(self, message_ids: Sequence[str], filters: FactFilters) -> list[MessageContent]:
        """Return the texts of messages within the times of the filters, but for those of which something was caught."""
        tables = [copy.messages for copy in self._copies]
        return [message for table in tables for message in table.contents(message_ids, table.mask(filters))]

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
        if not filters.any_validity:
            widened = replace(filters, valid_since=filters.valid_since or filters.valid_at, valid_at=until)
        else:
            widened = filters
        masks = {copy.facts: copy.facts.mask(widened) for copy in self._copies}
        now = to_micros(utc_now())
        entities = (
            next((found for copy in self._copies if (found := copy.entity(entity_id, now))), None)
            for entity_id in entity_ids
        )
        return [
            EntityMemories(entity=entity, memories=self._most_important(facts, filters.valid_at, limit))
            for entity in entities
            if entity is not None
            for facts in [[fact for fact in self._about(entity.id) if masks[fact.table][fact.row]]]
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

    def _about(self, entity_id: str) -> list[ResidentFact]:
        return [fact for copy in self._copies for fact in copy.facts.about_entity(entity_id).values()]

    def _refs_of(self, fact: ResidentFact) -> dict[str, EntityRef]:
        wanted = (*fact.ends, *fact.properties["entity_ids"])
        return {key: copy.refs[key] for key in wanted for copy in self._copies if key in copy.refs}

    def _most_important(self, facts: Sequence[ResidentFact], now: datetime, limit: int) -> list[Memory]:
        ordered = sorted(facts, key=rank_by_importance)
        return [fact.to_memory(self._refs_of(fact), now) for fact in ordered[:limit]]


def _best(found: list[tuple[float, ResidentFact]], limit: int) -> list[tuple[float, ResidentFact]]:
    """Return the facts with the highest scores, best first; of equal ones the earlier comes first."""
    return sorted(found, key=itemgetter(0), reverse=True)[:limit]


def _unit(vector: Vector) -> NDArray[np.float32]:
    return unit_vector(vector, len(vector))


def _units(vectors: Sequence[Vector]) -> NDArray[np.float32]:
    return np.stack([_unit(vector) for vector in vectors])
