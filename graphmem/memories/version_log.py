"""The versions of memories created by one write, without loss of earlier ones. Pure."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import replace
from datetime import datetime

from graphmem.memories.fact import Fact
from graphmem.memories.memory import MemoryStatus
from graphmem.runtime.errors import Conflict, ImmutableMemory, NotFound
from graphmem.runtime.times import MICROSECOND

MAX_QUOTED = 100
"""Maximum characters of a statement that an error quotes."""

MERGED_REASON = "merged"
"""The end reason of a memory that a consolidation run merged into another one."""

CLOSED_REASON = "carried out, given up or replaced"
"""The end reason of a plan that a consolidation run closed because of another memory."""

REWRITTEN_REASON = "rewritten"
"""The end reason of a version of a profile that a consolidation run replaced."""

RESTATED_REASON = "stated again"
"""The end reason of a version whose statement was repeated with new details."""

REVERTED_REASON = "reverted"
"""The end reason of a memory that a revert reopened or retired."""

HOLDS_REASON = "resolved: it holds"
"""The end reason of a contested version resolved as holding, and of the versions that it ended."""

REFUTED_REASON = "resolved: it does not hold"
"""The end reason of a contested version resolved as not holding."""

CONTESTED_REASON = "contested by a more trusted source"
"""The end reason of a version contradicted by a late arrival from a more trusted source."""

SETTLED_REASON = "stated by a source that is trusted as much or more"
"""The end reason of a contested version whose statement became a memory of its own."""


class LatestVersions:
    """The latest version of each memory, in the order in which the memories were added."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._facts: dict[str, Fact] = {}
        self._places: dict[str, int] = {}
        self._ids_by_key: dict[Hashable, set[str]] = defaultdict(set)
        for fact in facts:
            self.put(fact)

    def __getitem__(self, memory_id: str) -> Fact:
        return self._facts[memory_id]

    def __contains__(self, memory_id: object) -> bool:
        return memory_id in self._facts

    def get(self, memory_id: str | None) -> Fact | None:
        """Return the latest version of a memory, or None for an unknown one."""
        return self._facts.get(memory_id) if memory_id else None

    def values(self) -> list[Fact]:
        """Return all latest versions."""
        return list(self._facts.values())

    def put(self, fact: Fact) -> None:
        """Make a fact the latest version of its memory."""
        self._unlist(fact.memory_id)
        self._places.setdefault(fact.memory_id, len(self._places))
        self._facts[fact.memory_id] = fact
        for key in _keys(fact):
            self._ids_by_key[key].add(fact.memory_id)

    def remove(self, memory_id: str) -> None:
        """Remove a memory."""
        self._unlist(memory_id)
        del self._facts[memory_id]

    def that_state(self, fact: Fact) -> list[Fact]:
        """Return the versions that state the same."""
        return self._with_keys([fact.dedup_key])

    def that_say(self, fact: Fact) -> list[Fact]:
        """Return the versions with the same content and the same subject."""
        return self._with_keys([_content_key(fact)])

    def that_may_compete(self, fact: Fact) -> list[Fact]:
        """Return the versions that state the same or have the same subject and predicate."""
        return self._with_keys([fact.dedup_key, (fact.subject_id, fact.predicate)])

    def _with_keys(self, keys: Iterable[Hashable]) -> list[Fact]:
        ids = {memory_id for key in keys for memory_id in self._ids_by_key.get(key, ())}
        return [self._facts[memory_id] for memory_id in sorted(ids, key=self._places.__getitem__)]

    def _unlist(self, memory_id: str) -> None:
        if known := self._facts.get(memory_id):
            for key in _keys(known):
                self._ids_by_key[key].discard(memory_id)


def _keys(fact: Fact) -> tuple[Hashable, ...]:
    """Return the keys for finding a fact: the statement, the subject and predicate, and the content."""
    return fact.dedup_key, (fact.subject_id, fact.predicate), _content_key(fact)


def _content_key(fact: Fact) -> Hashable:
    return "content", fact.content_hash, fact.subject_id


class VersionLog:
    """The latest versions of some memories, and the versions of them that a write by `actor` creates.

    `created` and `changed` hold the versions to store, by uuid; `vector_source_uuid` names, for a created version
    without a vector of its own, the stored version whose vector it copies. `now` is the time of the latest change: each
    change gets the next microsecond, so that no version is believed for an empty interval.
    """

    def __init__(self, facts: Iterable[Fact], now: datetime, actor: str | None = None) -> None:
        self.latest = LatestVersions(facts)
        self.now = now
        self.actor = actor
        self.created: dict[str, Fact] = {}
        self.changed: dict[str, Fact] = {}
        self.vector_source_uuid: dict[str, str] = {}

    def ensure_unique(self, fact: Fact, others: Iterable[Fact]) -> None:
        """Raise Conflict if one of `others` is current and states the same as `fact`.

        A version that states the same but is no longer valid loses its active hash.
        """
        for other in others:
            if other.memory_id == fact.memory_id or not fact.active_hash or other.active_hash != fact.active_hash:
                continue
            if other.is_valid_at(self.now):
                raise Conflict(f"The same statement is already current as {other.memory_id}.")
            lapsed = replace(other, active_hash=None)
            self.latest.put(lapsed)
            self._record(lapsed)

    def next_time(self) -> datetime:
        """Return the time of the next change, a microsecond after the last one."""
        self.now += MICROSECOND
        return self.now

    def get_latest(self, memory_id: str) -> Fact:
        """Return the latest version of a memory; raise NotFound if it is unknown."""
        try:
            return self.latest[memory_id]
        except KeyError:
            raise NotFound("There is no such memory.") from None

    def get_mutable(self, memory_id: str) -> Fact:
        """Return the latest version of a memory; raise NotFound for an unknown one, ImmutableMemory for a fixed one."""
        fact = self.get_latest(memory_id)
        ensure_mutable(fact)
        return fact

    def add_version(self, fact: Fact, vector_source: str | None = None) -> Fact:
        """Create a version; it gets the active hash if it is current."""
        fact = fact.with_active_hash(self.now)
        self.ensure_unique(fact, self.latest.that_state(fact))
        self.latest.put(fact)
        self.created[fact.uuid] = fact
        if vector_source is not None:
            self.vector_source_uuid[fact.uuid] = self.vector_source_uuid.get(vector_source, vector_source)
        return fact

    def add_next_version(
        self, fact: Fact, changed: Fact, reason: str, by: str | None, *, needs_new_vector: bool = False
    ) -> Fact:
        """End the version `fact` for a reason and create its next version with the attributes of `changed`."""
        now = self.now
        if fact.created_at >= now:
            now = self.next_time()
        self.end_version(fact, now, reason, by)
        next_version = replace(
            changed,
            uuid=str(uuid.uuid4()),
            version=fact.version + 1,
            created_at=now,
            updated_at=now,
            actor=self.actor,
        )
        return self.add_version(next_version, None if needs_new_vector else fact.uuid)

    def retire_version(
        self, fact: Fact, reason: str, by: str | None, status: MemoryStatus, *, superseded_by: str | None
    ) -> Fact:
        """Create a fact's next version, which is never valid."""
        retired = replace(
            fact, retired=True, status=status, superseded_by=superseded_by, ended_reason=reason, ended_by=by
        )
        return self.add_next_version(fact, retired, reason, by)

    def end_version(self, fact: Fact, now: datetime, reason: str, by: str | None) -> Fact:
        """End the belief in a version at `now`, recording the `reason` and the cause `by`."""
        ended = replace(fact, expired_at=now, ended_reason=reason, ended_by=by, active_hash=None)
        self._record(ended)
        return ended

    def replace_in_place(self, fact: Fact) -> Fact:
        """Replace the latest version; only attributes that state nothing about the world may differ."""
        fact = replace(fact, active_hash=self.latest[fact.memory_id].active_hash)
        self.latest.put(fact)
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
            "replaced. Save the new statement as a separate memory, without `supersedes` and `single_valued`, or let "
            "an admin hard-delete this one."
        )


def without_end(fact: Fact) -> Fact:
    """Return a fact as a version that nothing has ended."""
    return replace(fact, ended_reason=None, ended_by=None)
