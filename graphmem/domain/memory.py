"""Memories: what callers send and what they get back."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from graphmem.domain.entity import EntityIn, EntityRef
from graphmem.domain.stored_values import check_request_size
from graphmem.domain.tags import Tags
from graphmem.domain.text import NonBlankText
from graphmem.domain.times import Instant
from graphmem.domain.types import Domain, Id, Metadata, UnitInterval

SCHEMA_VERSION: Final = "1.0"
"""Version of the memory format that callers receive."""

MIN_CONFIDENCE = 0.5
"""Confidence below which a statement is not stored."""

CORE_IMPORTANCE = 0.8
"""Importance from which a memory is a core memory: a profile one does not fade, a global one is in every context."""

FEELING_EXPIRY_DAYS = 14
"""Days after which a feeling expires, unless the caller gives an expiry."""

MAX_CONTENT_LENGTH = 8000
"""Longest statement, in characters."""


class MemoryType(StrEnum):
    """What kind of statement a memory is."""

    PREFERENCE = "preference"
    FACT = "fact"
    PLAN = "plan"
    FEELING = "feeling"
    INFERRED_INTEREST = "inferred_interest"
    CONVERSATION_TOPIC = "conversation_topic"
    RECOMMENDATION = "recommendation"
    BEHAVIORAL_PATTERN = "behavioral_pattern"
    CONVERSATION_SUMMARY = "conversation_summary"
    OPEN_LOOP = "open_loop"


TYPE_ALIASES = {
    "user_preference": MemoryType.PREFERENCE,
    "factual_info": MemoryType.FACT,
    "persona": MemoryType.FACT,
    "personal_info": MemoryType.FACT,
    "summary": MemoryType.CONVERSATION_SUMMARY,
}
"""Other names of memory types that callers may send."""

DEFAULT_PREDICATES = {
    MemoryType.PREFERENCE: "PREFERS",
    MemoryType.FACT: "STATES",
    MemoryType.PLAN: "PLANS",
    MemoryType.FEELING: "FEELS",
    MemoryType.INFERRED_INTEREST: "INTERESTED_IN",
    MemoryType.CONVERSATION_TOPIC: "DISCUSSED",
    MemoryType.RECOMMENDATION: "WAS_RECOMMENDED",
    MemoryType.BEHAVIORAL_PATTERN: "TENDS_TO",
    MemoryType.CONVERSATION_SUMMARY: "SUMMARIZES",
    MemoryType.OPEN_LOOP: "INTENDS",
}
"""Predicate of a statement without one, by memory type."""


class Scope(StrEnum):
    """Where a memory is recalled."""

    PROFILE = "profile"
    DOMAIN = "domain"
    EPISODIC = "episodic"
    GLOBAL = "global"


class MemoryStatus(StrEnum):
    """Whether a memory is in force, and if not, why."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    DELETED = "deleted"
    ARCHIVED = "archived"


def parse_memory_type(value: object) -> object:
    """Return the name of a memory type in its stored form; a value of another type is returned as it is."""
    if not isinstance(value, str) or isinstance(value, MemoryType):
        return value
    word = value.strip().lower().replace("-", "_").replace(" ", "_")
    return TYPE_ALIASES.get(word, word)


MemoryTypeInput = Annotated[MemoryType, BeforeValidator(parse_memory_type)]
"""A memory type, read in any case and by its aliases."""

Predicate = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
"""The name of a relation in UPPER_SNAKE_CASE."""


MAX_SOURCE_MESSAGES = 200
"""Most messages that a memory lists as its source, the latest ones."""


class MemorySourceIn(BaseModel):
    """The session and the messages that a caller gives as the source of a memory."""

    model_config = ConfigDict(extra="forbid")

    session_id: Id | None = None
    message_ids: list[Id] = Field(default_factory=list, max_length=MAX_SOURCE_MESSAGES)


class MemorySource(BaseModel):
    """The source of a memory: the kind of writer, the session and the messages that state it."""

    kind: str = "api"
    session_id: str | None = None
    message_ids: list[str] = Field(default_factory=list)


class MemoryIn(BaseModel):
    """One statement to save."""

    model_config = ConfigDict(extra="forbid")

    content: NonBlankText = Field(max_length=MAX_CONTENT_LENGTH)
    type: MemoryTypeInput = MemoryType.FACT
    subject: EntityIn | None = None
    predicate: Predicate | None = None
    object: EntityIn | None = None
    entities: list[EntityIn] = Field(default_factory=list, max_length=50)
    valid_at: Instant | None = None
    invalid_at: Instant | None = None
    confidence: UnitInterval = 0.9
    importance: UnitInterval = 0.5
    tags: Tags = Field(default_factory=list)
    scope: Scope | None = None
    domain: Domain | None = None
    single_valued: bool = False
    supersedes: list[Id] = Field(default_factory=list, max_length=100)
    source: MemorySourceIn | None = None
    immutable: bool = False
    expires_at: Instant | None = None
    metadata: Metadata = Field(default_factory=dict)

    @model_validator(mode="after")
    def _apply_defaults(self) -> Self:
        if self.valid_at and self.invalid_at and self.invalid_at < self.valid_at:
            raise ValueError("invalid_at is before valid_at")
        if self.single_valued and self.predicate is None:
            raise ValueError("single_valued needs a predicate: it says which relation has one value at a time")
        tagged_domain = next((tag.removeprefix("domain:") for tag in self.tags if tag.startswith("domain:")), None)
        if tagged_domain and self.domain is None:
            self.domain = tagged_domain
        if self.scope is None:
            self.scope = Scope.DOMAIN if self.domain else Scope.PROFILE
        if self.predicate is None:
            self.predicate = DEFAULT_PREDICATES[self.type]
        return self


class MemoryPatch(BaseModel):
    """The changes of a correction; fields that are left out stay as they are."""

    model_config = ConfigDict(extra="forbid")

    content: NonBlankText | None = Field(None, max_length=MAX_CONTENT_LENGTH)
    type: MemoryTypeInput | None = None
    tags: Tags | None = None
    importance: UnitInterval | None = None
    confidence: UnitInterval | None = None
    valid_at: Instant | None = None
    invalid_at: Instant | None = None
    expires_at: Instant | None = None
    metadata: Metadata | None = None
    domain: Domain | None = Field(None, description="Moves the memory to this domain; null: to the profile.")
    scope: Scope | None = None

    @model_validator(mode="after")
    def _require_change(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("names no field to change")
        for field in ("content", "type", "tags", "importance", "confidence", "metadata", "scope"):
            if field in self.model_fields_set and getattr(self, field) is None:
                raise ValueError(f"{field} must not be null")
        if self.scope is Scope.DOMAIN and self.domain is None:
            raise ValueError("scope domain needs the domain: send both")
        if self.scope in (Scope.PROFILE, Scope.GLOBAL) and self.domain is not None:
            raise ValueError(f"scope {self.scope.value} has no domain: leave one of the two out")
        return check_request_size(self)


class Memory(BaseModel):
    """One version of a memory as callers see it."""

    id: str
    version: int
    user_id: str | None
    content: str
    type: MemoryType
    scope: Scope
    domain: str | None
    subject: EntityRef
    predicate: str
    object: EntityRef | None
    entities: list[EntityRef]
    tags: list[str]
    confidence: float
    importance: float
    strength: float
    decay_rate: float
    access_count: int
    last_accessed_at: datetime | None
    valid_at: datetime | None
    invalid_at: datetime | None
    created_at: datetime
    expired_at: datetime | None
    updated_at: datetime
    status: MemoryStatus
    superseded_by: str | None
    supersedes: list[str]
    associations: list[str]
    source: MemorySource
    immutable: bool
    single_valued: bool
    expires_at: datetime | None
    metadata: dict[str, Any]
    content_hash: str
    schema_version: Literal["1.0"] = SCHEMA_VERSION


class MemoryVersion(Memory):
    """An entry of a memory's history: a version, why it ended, what ended it and who wrote it."""

    ended_reason: str | None
    ended_by: str | None
    actor: str | None


class SaveAction(StrEnum):
    """What a save did with a statement."""

    INSERT = "insert"
    REINFORCE = "reinforce"
    SUPERSEDE = "supersede"
    SKIP = "skip"


class SaveResult(BaseModel):
    """The result of saving a statement: its memory, and the ids of the memories it superseded."""

    action: SaveAction
    memory: Memory | None
    superseded: list[str] = Field(default_factory=list)
    reason: str | None = None
