"""Where candidates come from: what search and lookup ask of one user's memory, wherever it is held."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from graphmem.conversations.session import Message
from graphmem.memories.entity import EntityProfile, NamedEntity
from graphmem.memories.filters import FactFilters
from graphmem.memories.memory import Memory
from graphmem.memories.names import EntityMention, MentionKind
from graphmem.runtime.field_types import Vector
from graphmem.runtime.times import EPOCH, MICROSECOND
from graphmem.search.candidates import Candidates
from graphmem.search.evidence import MessageTexts
from graphmem.search.models import EntityMemories, SourceName
from graphmem.tenants.owners import MessageName, Owner
from graphmem.tenants.spaces import Reader, ReadScope
from graphmem.text.time_expressions import TimeRange

MAX_GRAPH_ENTITIES = 20
"""Most named entities around which the graph channel searches; the most certain ones are chosen."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a search asks of a source; `limit` is the number of rows that a channel is asked for.

    `text` is what is searched for: the question as it was `asked` or, if that asks for an overview, its topic. Some
    parts are tasks, so that a source may begin before they are known. `mentions` and `vectors` are None where no step
    needs them; the vectors are those of the text and, for a search with messages, of its focus. `reads_past` says
    whether a past time that the question names is searched, because the caller names no valid time.
    """

    asked: str
    text: str
    is_overview: bool
    now: datetime
    filters: FactFilters
    limit: int
    words: Sequence[str]
    searches_graph: bool
    mentions: asyncio.Task[list[EntityMention]] | None
    vectors: asyncio.Task[list[Vector]] | None
    time_ranges: asyncio.Task[list[TimeRange]]
    reads_past: bool

    async def vector(self) -> Vector | None:
        """Return the vector of the text; None where no channel searches by meaning."""
        return (await self.vectors)[0] if self.vectors else None

    async def focus(self) -> Vector | None:
        """Return the vector of the focus of the text; None where no step compares with it."""
        vectors = await self.vectors if self.vectors else []
        return vectors[1] if len(vectors) > 1 else None

    async def named(self) -> list[EntityMention]:
        """Return the entities that the text names, where facts are searched around them."""
        return await self.mentions if self.mentions and self.searches_graph else []

    async def graph_entities(self) -> list[str]:
        """Return the ids of the entities around which facts are searched; words such as "I" name none."""
        named = [mention.id for mention in await self.named() if mention.kind is not MentionKind.SELF_REFERENCE]
        return named[:MAX_GRAPH_ENTITIES]

    async def past(self) -> TimeRange | None:
        """Return the past time that is asked about, from the start of the first one named to the end of the last."""
        now = int(self.now.timestamp() * 1000)
        past = [named for named in await self.time_ranges if named.end <= now] if self.reads_past else []
        if not past:
            return None
        return TimeRange(min(named.start for named in past), max(named.end for named in past))

    async def filters_of_past(self) -> FactFilters | None:
        """Return the filters for what held at some time in the past that is asked about; None where none is."""
        past = await self.past()
        if past is None or self.filters.any_validity:
            return None
        start, end = (EPOCH + timedelta(milliseconds=time) for time in (past.start, past.end))
        return replace(self.filters, valid_since=start, valid_at=end - MICROSECOND)

    async def close(self) -> None:
        """Cancel the tasks that still run, because another step failed."""
        tasks = [task for task in (self.mentions, self.vectors, self.time_ranges) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class CandidateSource(Protocol):
    """The memories of one reader as of a state or later. Both time axes and every filter apply before any limit.

    Sources only choose candidates; all that is computed of them later is the same for all sources, so that equal
    candidates give equal answers. By words, sources choose differently where more facts or messages than the limit
    contain one: the database prefers what is rare among all users, a copy in memory what is rare among those of the
    reader.
    """

    @property
    def name(self) -> SourceName:
        """Where the memory is held."""

    @property
    def state(self) -> ReadScope:
        """The states of the groups that the user reads; the source has everything written before."""

    # Candidates

    async def find_facts(self, question: Question) -> Candidates:
        """Return the facts that each channel finds: those nearest to the vector, with the words, and around entities.

        If the question names a past time, they include the facts that held at some time in it.
        """

    async def find_messages(self, question: Question) -> list[str]:
        """Return the keys of the messages nearest to the vector, and of those with any of the words."""

    async def load_message_texts(
        self, keys: Sequence[str], vector: Vector | None, filters: FactFilters
    ) -> MessageTexts:
        """Return messages within the times of the filters, without those that are quarantined in part."""

    async def load_memories(self, uuids: Sequence[str], now: datetime) -> dict[str, Memory]:
        """Return versions as callers see them at `now`, by uuid; those that no longer exist are left out."""

    async def load_messages(self, keys: Sequence[str]) -> dict[str, Message]:
        """Return messages by key (`tenants.owners.message_key`); those that no longer exist are left out."""

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
