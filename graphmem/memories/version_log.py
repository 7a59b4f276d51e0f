"""The versions that one write changes and creates, before they are stored. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from graphmem.memories.fact import Fact
from graphmem.runtime.errors import Conflict, ImmutableMemory, NotFound
from graphmem.runtime.times import MICROSECOND

MAX_QUOTED = 100
"""Characters of a statement that an error quotes."""


class VersionLog:
    """The latest versions of some memories, and the versions that a write makes of them.

    `created` and `changed` hold the versions to store, by uuid; `vector_source_uuid` names, for a created version
    without a vector of its own, the stored version whose vector it copies. Every change gets the next microsecond, so
    that no version is believed for an empty interval.
    """

    def __init__(self, facts: Iterable[Fact], now: datetime, actor: str | None = None) -> None:
        self._latest = {fact.memory_id: fact for fact in facts}
        self._now = now
        self._actor = actor
        self.created: dict[str, Fact] = {}
        self.changed: dict[str, Fact] = {}
        self.vector_source_uuid: dict[str, str] = {}

    @property
    def now(self) -> datetime:
        """The time of the latest change."""
        return self._now

    def ensure_unique(self, fact: Fact, others: Iterable[Fact]) -> None:
        """Raise Conflict when one of `others` is current and states the same as `fact`.

        One that states the same and is no longer valid gives its active hash up.
        """
        for other in others:
            if other.memory_id == fact.memory_id or not fact.active_hash or other.active_hash != fact.active_hash:
                continue
            if other.is_valid_at(self._now):
                raise Conflict(f"The same statement is already current as {other.memory_id}.")
            lapsed = replace(other, active_hash=None)
            self._latest[other.memory_id] = lapsed
            self._record(lapsed)

    def _next_time(self) -> datetime:
        self._now += MICROSECOND
        return self._now

    def _get_latest(self, memory_id: str) -> Fact:
        try:
            return self._latest[memory_id]
        except KeyError:
            raise NotFound("There is no such memory.") from None

    def _get_mutable(self, memory_id: str) -> Fact:
        fact = self._get_latest(memory_id)
        ensure_mutable(fact)
        return fact

    def _add_version(self, fact: Fact, vector_source: str | None = None) -> Fact:
        """Create a version; it claims the active hash when it is current."""
        fact = fact.with_active_hash(self._now)
        self.ensure_unique(fact, self._latest.values())
        self._latest[fact.memory_id] = fact
        self.created[fact.uuid] = fact
        if vector_source is not None:
            self.vector_source_uuid[fact.uuid] = self.vector_source_uuid.get(vector_source, vector_source)
        return fact

    def _add_next_version(
        self, fact: Fact, changed: Fact, reason: str, by: str | None, *, needs_new_vector: bool = False
    ) -> Fact:
        """End the version `fact` for a reason and create its next version with the attributes of `changed`."""
        now = self._now
        if fact.created_at >= now:
            now = self._next_time()
        self._end_version(fact, now, reason, by)
        next_version = replace(
            changed,
            uuid=str(uuid.uuid4()),
            version=fact.version + 1,
            created_at=now,
            updated_at=now,
            actor=self._actor,
        )
        return self._add_version(next_version, None if needs_new_vector else fact.uuid)

    def _end_version(self, fact: Fact, now: datetime, reason: str, by: str | None) -> Fact:
        ended = replace(fact, expired_at=now, ended_reason=reason, ended_by=by, active_hash=None)
        self._record(ended)
        return ended

    def _replace_in_place(self, fact: Fact) -> Fact:
        """Replace the latest version; only attributes that claim nothing about the world may differ."""
        fact = replace(fact, active_hash=self._latest[fact.memory_id].active_hash)
        self._latest[fact.memory_id] = fact
        self._record(fact)
        return fact

    def _record(self, fact: Fact) -> None:
        (self.created if fact.uuid in self.created else self.changed)[fact.uuid] = fact


def ensure_mutable(fact: Fact) -> None:
    """Raise ImmutableMemory for an immutable fact."""
    if fact.immutable:
        content = fact.content if len(fact.content) <= MAX_QUOTED else f"{fact.content[: MAX_QUOTED - 1]}…"
        raise ImmutableMemory(
            f"{fact.memory_id} is immutable: “{content}” cannot be changed, ended or "
            "replaced. Save what is new as a memory beside it, without `supersedes` and `single_valued`, or have an "
            "admin erase it by a hard delete."
        )
