"""Where candidates come from: what search and lookup ask of one user's memory, wherever it is held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from graphmem.conversations.session import Message
from graphmem.memories.entity import NamedEntity
from graphmem.memories.entity_profile import EntityProfile
from graphmem.memories.filters import FactFilters
from graphmem.memories.memory import Memory
from graphmem.runtime.field_types import Vector
from graphmem.search.fact_candidate import FactCandidate
from graphmem.search.models import EntityMemories, MessageCandidate, MessageContent, SourceName
from graphmem.tenants.owners import MessageName, Owner
from graphmem.tenants.scopes import Reader, ReadState

# How far every source follows facts around entities.

MAX_ENTITY_DEGREE = 200
"""Most facts of a named entity around which facts are searched: more do not lead to any of them in particular."""

MAX_START_FACTS = 40
"""Most facts of the named entities from which further steps are made."""

MAX_COMPUTED_FACTS = 100
"""Most facts of one step whose similarity to the question is computed, at 0.07 ms each."""

MAX_OUTGOING_FACTS = 50
"""Most facts of which an entity on the way is the subject for these to be followed."""

MAX_INCOMING_FACTS = 15
"""Most facts of which an entity on the way is the object for these to be followed."""

MAX_FOLLOWED_ENTITIES = 30
"""Most entities that are followed at one step; those whose way is most similar to the question are chosen."""


class CandidateSource(Protocol):
    """The memories of one reader as of a state or later. Both time axes and every filter apply before any limit.

    The channels only choose candidates: what is known of a candidate and how it is scored later is the same in every
    source, so that equal candidates give equal answers. By words, sources choose differently where more facts or
    messages than the limit contain one: the database prefers what is rare among all users, a copy in memory what is
    rare among those of the reader.
    """

    @property
    def name(self) -> SourceName:
        """Where the memory is held."""

    @property
    def state(self) -> ReadState:
        """The states of the groups that the user reads; the source has everything written before."""

    # Channels

    async def find_facts_by_vector(self, vector: Vector, filters: FactFilters, limit: int) -> list[FactCandidate]:
        """Return the facts nearest to a vector, best first."""

    async def find_facts_by_text(self, words: Sequence[str], filters: FactFilters, limit: int) -> list[FactCandidate]:
        """Return the facts that contain any of the words, best first, without their similarity."""

    async def find_facts_around_entities(
        self, entity_ids: Sequence[str], vector: Vector | None, filters: FactFilters, limit: int
    ) -> list[FactCandidate]:
        """Return the facts up to three steps around entities, best first by their similarity and that of the way."""

    async def find_messages_by_vector(self, vector: Vector, filters: FactFilters, limit: int) -> list[MessageCandidate]:
        """Return the messages nearest to a vector, best first."""

    async def find_messages_by_words(
        self, words: Sequence[str], filters: FactFilters, limit: int
    ) -> list[MessageCandidate]:
        """Return the messages that contain any of the words, best first."""

    # Details of candidates

    async def fact_similarities(self, uuids: Iterable[str], vectors: Sequence[Vector]) -> dict[str, list[float]]:
        """Return the cosines of facts with each vector, by uuid; those without a vector are left out."""

    async def message_similarities(
        self, message_ids: Iterable[str], vectors: Sequence[Vector]
    ) -> dict[str, list[float]]:
        """Return the cosines of messages with each vector, by id; those without a vector are left out."""

    async def load_memories(self, uuids: Sequence[str], now: datetime) -> dict[str, Memory]:
        """Return versions as callers see them at `now`, by uuid; those that no longer exist are left out."""

    async def load_messages(self, keys: Sequence[str]) -> dict[str, Message]:
        """Return messages by key (`tenants.owners.message_key`); those that no longer exist are left out."""

    async def load_message_contents(self, message_ids: Sequence[str], filters: FactFilters) -> list[MessageContent]:
        """Return the texts of messages within the times of the filters, but for those of which something was caught."""

    # Entities and profiles

    async def list_entity_names(self, limit: int) -> list[NamedEntity]:
        """Return up to `limit` entities that the user can read, with their names."""

    async def find_entity_names(self, words: Sequence[str], limit: int) -> list[NamedEntity]:
        """Return entities whose names or aliases contain any of the words."""

    async def load_entities_with_facts(
        self, entity_ids: Sequence[str], filters: FactFilters, until: datetime, limit: int
    ) -> list[EntityMemories]:
        """Return entities in the order given, each with up to `limit` facts that pass the filters.

        A fact is valid at the time of the filters or at one from there to `until`.
        """

    async def load_profiles(self, entity_ids: Sequence[str], filters: FactFilters) -> dict[str, EntityProfile]:
        """Return the profiles of entities that hold as of the times of filters, by the ids of the entities."""

    async def list_profile_facts(self, domain: str | None, start: datetime, end: datetime, limit: int) -> list[Memory]:
        """Return the facts of the profile, and of a domain, that are valid at a time in `[start, end)`."""

    async def load_shown(
        self, memories: Sequence[Memory], message_ids: Sequence[str], now: datetime
    ) -> tuple[dict[str, Memory], dict[MessageName, datetime]]:
        """Return memories, by id, with what retrievals have changed of them as of `now`, and when messages were said.

        Retrievals are counted without a new write version, so that caches keep what they hold. An earlier version of a
        memory stays as it is.
        """


class CandidateSources(Protocol):
    """Opens the source of a user for one request."""

    async def open(self, reader: Reader) -> CandidateSource:
        """Return a source that has everything written to the groups of a reader before they were read."""

    async def close(self) -> None:
        """Drop everything that is held."""

    async def discard_user(self, owner: Owner) -> None:
        """Remove everything that is held of a user."""

    async def count_user(self, owner: Owner) -> int:
        """Return how much is held of a user."""
