"""What tools answer: as much of a memory as a model needs, and no more, since it pays for every word."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, SerializerFunctionWrapHandler, model_serializer

from graphmem.domain.memory import Memory, MemoryVersion, SaveResult


class _CompactModel(BaseModel):
    """A model that is written without what is absent."""

    @model_serializer(mode="wrap")
    def _drop_empty(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value not in (None, [], {})}


class MemoryResult(_CompactModel):
    """A memory."""

    id: str
    content: str
    type: str
    status: str
    tags: list[str] = Field(default_factory=list)
    domain: str | None = None
    confidence: float
    valid_at: datetime | None = Field(None, description="since when it holds")
    invalid_at: datetime | None = Field(None, description="until when it held")
    told_at: datetime = Field(description="when it was learned")
    metadata: dict[str, Any] = Field(
        default_factory=dict, description="may point to further knowledge, e.g. an article"
    )
    score: float | None = None

    @classmethod
    def from_memory(cls, memory: Memory, score: float | None = None) -> Self:
        """Return a memory as a model reads it."""
        return cls(**_shared_fields(memory), domain=memory.domain, metadata=memory.metadata, score=score)


class MemoryVersionResult(_CompactModel):
    """One version of a memory."""

    version: int
    id: str
    content: str
    type: str
    status: str
    tags: list[str] = Field(default_factory=list)
    confidence: float
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    told_at: datetime
    ended_at: datetime | None = Field(None, description="when it was no longer believed")
    ended_reason: str | None = None
    ended_by: str | None = Field(None, description="id of what replaced it")

    @classmethod
    def from_version(cls, row: MemoryVersion) -> Self:
        """Return a version as a model reads it."""
        ended = {"ended_at": row.expired_at, "ended_reason": row.ended_reason, "ended_by": row.ended_by}
        return cls(**_shared_fields(row), **ended, version=row.version)


class SaveMemoryResult(_CompactModel):
    """What became of a statement."""

    action: Literal["insert", "reinforce", "supersede", "skip", "update"]
    memory_id: str | None = None
    superseded: list[str] = Field(default_factory=list, description="ids of memories it replaced")
    reason: str | None = Field(None, description="why it was not saved")
    confirmation: str | None = Field(None, description="what to tell the user")

    @classmethod
    def from_result(cls, result: SaveResult, confirmation: str | None = None) -> Self:
        """Return the outcome; the confirmation is given only when the statement is remembered now."""
        memory = result.memory
        return cls(
            action=result.action.value,
            memory_id=memory.id if memory else None,
            superseded=result.superseded,
            reason=result.reason,
            confirmation=confirmation if memory else None,
        )


class MemorySearchResult(_CompactModel):
    """What a search found, best first."""

    memories: list[MemoryResult] = Field(default_factory=list)
    hint: str | None = None


class EntityResult(_CompactModel):
    """An entity and what is known about it."""

    id: str
    name: str
    type: str
    aliases: list[str] = Field(default_factory=list)
    memories: list[MemoryResult] = Field(default_factory=list)


class EntityLookupResult(_CompactModel):
    """The entities a text names."""

    entities: list[EntityResult] = Field(default_factory=list)
    hint: str | None = None


class ContextResult(_CompactModel):
    """What to know before answering."""

    preamble: str = Field(description="what is known that bears on the question")
    token_count: int
    sufficient: bool = Field(description="whether memory clearly has something on the question")
    pointers: list[str] = Field(default_factory=list, description="where memories point to outside of memory")


class MemoryHistoryResult(BaseModel):
    """Every version of a memory, oldest first."""

    versions: list[MemoryVersionResult]


def _shared_fields(memory: Memory) -> dict[str, Any]:
    return {
        "id": memory.id,
        "content": memory.content,
        "type": memory.type.value,
        "status": memory.status.value,
        "tags": memory.tags,
        "confidence": round(memory.confidence, 2),
        "valid_at": memory.valid_at,
        "invalid_at": memory.invalid_at,
        "told_at": memory.created_at,
    }
