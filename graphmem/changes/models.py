"""What changed in a user's memory between two known times."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from graphmem.memories.fact import Fact
from graphmem.memories.memory import Memory
from graphmem.memories.versioning import MERGED_REASON, REVERTED_REASON
from graphmem.runtime.paging import PageQuery
from graphmem.runtime.times import Instant


class ChangeKind(StrEnum):
    """What happened to a memory."""

    INSERTED = "inserted"
    SUPERSEDED = "superseded"
    DELETED = "deleted"
    MERGED = "merged"
    RESTORED = "restored"


class MemoryChange(BaseModel):
    """One change: the memory as the change left it, or as it was before it was deleted.

    `superseded` covers each change that ends a version and creates the next one: another statement, an end, a
    correction. `memory` is None when an entity that it refers to no longer exists.
    """

    id: str = Field(description="Id of the change; a webhook delivers it as `webhook-id`.")
    at: datetime = Field(description="When graphmem learned of it.")
    kind: ChangeKind
    memory_id: str
    memory: Memory | None
    reason: str | None = Field(description="Why, such as superseded, amended, merged, deleted.")
    actor: str | None = Field(description="The id of the key, or the part of graphmem, that made the change.")


class ChangesQuery(PageQuery):
    """The known times between which to list changes, the first one included."""

    model_config = ConfigDict(extra="forbid")

    since: Instant | None = Field(None, description="From this time on; absent: from the first memory on.")
    until: Instant | None = Field(None, description="Up to before this time; absent: up to now.")


def classify_version(version: Fact, previous: Fact | None) -> ChangeKind:
    """Return what the creation of a version did to its memory; `previous` is the version before it."""
    if previous is None:
        return ChangeKind.INSERTED
    if previous.ended_reason == MERGED_REASON:
        return ChangeKind.MERGED
    if previous.ended_reason == REVERTED_REASON and not version.retired:
        return ChangeKind.RESTORED
    return ChangeKind.SUPERSEDED
