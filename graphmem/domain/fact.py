"""A fact: one version row of a memory, as it lies on an edge between two entities."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from graphmem.domain.memory import MemoryStatus, MemoryType, Scope
from graphmem.domain.times import MAX_TIME, MIN_TIME, interval_contains


@dataclass(frozen=True, slots=True)
class Fact:
    """One believed version of a memory; `expired_at` says when the belief ended.

    Valid time is `[valid_at, invalid_at)`, known time `[created_at, expired_at)`; None is open. A `retired` version
    is believed no longer to stand for itself (it was merged, archived or reverted): it stays readable on request but
    holds at no time. `claimed_invalid_at` is the end its writer gave, kept so that a supersession can be undone.
    """

    uuid: str
    memory_id: str
    version: int
    group_id: str
    subject_id: str
    predicate: str
    content: str
    content_hash: str
    type: MemoryType
    scope: Scope
    created_at: datetime
    first_created_at: datetime
    updated_at: datetime
    decay_rate: float
    object_id: str | None = None
    entity_ids: tuple[str, ...] = ()
    domain: str | None = None
    tags: tuple[str, ...] = ()
    confidence: float = 0.9
    importance: float = 0.5
    strength: float = 0.5
    access_count: int = 0
    last_accessed_at: datetime | None = None
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    claimed_invalid_at: datetime | None = None
    expired_at: datetime | None = None
    expires_at: datetime | None = None
    status: MemoryStatus = MemoryStatus.ACTIVE
    retired: bool = False
    superseded_by: str | None = None
    supersedes: tuple[str, ...] = ()
    associations: tuple[str, ...] = ()
    source_kind: str = "api"
    session_id: str | None = None
    message_ids: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()
    immutable: bool = False
    single_valued: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    active_hash: str | None = None
    search_text: str = ""
    end_status: MemoryStatus | None = None
    ended_reason: str | None = None
    ended_by: str | None = None
    actor: str | None = None

    @property
    def valid_from(self) -> datetime:
        """The never-null start of the valid interval."""
        return self.valid_at or MIN_TIME

    @property
    def valid_to(self) -> datetime:
        """The never-null end of the valid interval; expiry ends recall as invalidity does."""
        if self.retired:
            return self.valid_from
        return max(self.valid_from, min(self.invalid_at or MAX_TIME, self.expires_at or MAX_TIME))

    @property
    def known_to(self) -> datetime:
        """The never-null end of the known interval."""
        return self.expired_at or MAX_TIME

    @property
    def effective_start(self) -> datetime:
        """The start by which single-valued facts are ordered: an unknown one counts from when it was first told."""
        return self.valid_at or self.first_created_at

    @property
    def is_never_valid(self) -> bool:
        """Whether the valid interval is empty."""
        return self.valid_from >= self.valid_to

    @property
    def dedup_key(self) -> str:
        """What makes two statements the same one: the normalised content about the same subject."""
        return f"{self.content_hash}:{self.subject_id}"

    def is_valid_at(self, instant: datetime) -> bool:
        """Return whether the fact is valid at `instant`."""
        return interval_contains(self.valid_from, self.valid_to, instant)

    def with_active_hash(self, now: datetime) -> Fact:
        """Return the fact with `active_hash` set if it is current at `now`, and without it otherwise."""
        current = self.expired_at is None and self.is_valid_at(now)
        return replace(self, active_hash=self.dedup_key if current else None)

    def status_at(self, now: datetime) -> MemoryStatus:
        """Return the status a reader sees at `now`: a supersession counts from its valid time on."""
        if self.end_status is not None:
            return self.end_status
        if self.status is MemoryStatus.SUPERSEDED and not self.retired and self.valid_to > now:
            return MemoryStatus.ACTIVE
        return self.status
