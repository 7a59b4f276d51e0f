"""What a night did to the memories of a case, as plain values to be scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """The latest version of a memory; `active` is false once it was superseded, deleted or archived."""

    id: str
    content: str
    active: bool = True
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    superseded_by: str | None = None


@dataclass(frozen=True, slots=True)
class StoredEntity:
    """An entity with its name and then its aliases."""

    id: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExecutedMerge:
    """The memories that a run made one, and the id of the one."""

    memory_ids: tuple[str, ...]
    result_id: str


@dataclass(frozen=True, slots=True)
class NightOutcome:
    """The state before and after the night, and what the rollback left.

    - `memory_ids`, `entity_ids`: the ids of what the case stored, by key
    - `before`, `after`: memories by id; `after` also holds those that the night created
    - `closed`: the ids of the plans that a run closed; `profiled`: those of the entities that have a profile
    - `reported`: the sets of memories that the run reported as contradictory
    - `reads_before`, `reads_after`: the contents that each expected read returned
    - `rewritten`: the memories that a read at an earlier known time returns differently after the night
    - `change_counts`: the changes of each night
    - `rollback_differences`: what differs between the export before the night and the one after the rollback
    - `refusals`: the proposals that were refused, with the reasons
    - `error`: why the night could not be completed; then nothing else is judged
    """

    memory_ids: Mapping[str, str] = field(default_factory=dict)
    entity_ids: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, StoredMemory] = field(default_factory=dict)
    after: Mapping[str, StoredMemory] = field(default_factory=dict)
    entities_before: Mapping[str, StoredEntity] = field(default_factory=dict)
    entities_after: Mapping[str, StoredEntity] = field(default_factory=dict)
    merges: Sequence[ExecutedMerge] = ()
    closed: frozenset[str] = frozenset()
    profiled: frozenset[str] = frozenset()
    reported: Sequence[frozenset[str]] = ()
    reads_before: Sequence[Sequence[str]] = ()
    reads_after: Sequence[Sequence[str]] = ()
    rewritten: Sequence[str] = ()
    change_counts: Sequence[int] = ()
    rollback_differences: Sequence[str] = ()
    refusals: Sequence[str] = ()
    error: str | None = None
