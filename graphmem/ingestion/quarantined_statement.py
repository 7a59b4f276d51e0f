"""A statement in quarantine, as admins see it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from graphmem.memories.entity import EntityIn
from graphmem.memories.memory import MemorySourceIn, MemoryType
from graphmem.runtime.field_types import Id
from graphmem.runtime.paging import PageQuery
from graphmem.tenants.spaces import SpaceId
from graphmem.tenants.trust import SourceKind


class QuarantinedMemory(BaseModel):
    """The memory that a quarantined statement becomes when released."""

    content: str
    type: MemoryType
    subtype: str | None = Field(None, description="The type that the tenant declared, if it is one.")
    subject: EntityIn | None = None
    predicate: str | None = None
    object: EntityIn | None = None
    entities: list[EntityIn] = Field(default_factory=list)
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    confidence: float
    importance: float
    tags: list[str] = Field(default_factory=list)
    domain: str | None = None
    single_valued: bool = False
    source: MemorySourceIn | None = None
    expires_at: datetime | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class QuarantinedStatement(BaseModel):
    """A quarantined statement, the reason, and the memory that it becomes when released."""

    id: str = Field(description="Id of the statement in quarantine.")
    user_id: str | None = Field(description="The user whose memory it would be in; null for a space.")
    space: str | None = Field(None, description="The space whose memory it would be in.")
    memory: QuarantinedMemory = Field(description="The memory that it becomes when released.")
    reason: str = Field(description="Why it is not a memory.")
    quote: str = Field("", description="Words of the text that it was taken from.")
    source_kind: SourceKind = Field("user", description="Kind of source.")
    job_id: str | None = Field(None, description="The latest extraction job that quarantined it.")
    times_seen: int = Field(1, description="How many times extraction found it.")
    first_seen_at: datetime = Field(description="When extraction first found it.")
    last_seen_at: datetime = Field(description="When extraction last found it.")


class QuarantineQuery(PageQuery):
    """The statements in quarantine to list."""

    user_id: Id | None = Field(None, description="Only statements of this user; defaults to all users and spaces.")
    space: SpaceId | None = Field(None, description="Only statements of this space.")
