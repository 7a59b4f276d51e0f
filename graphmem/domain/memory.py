"""Memories: what callers send, what they get back, and the words both are made of."""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from graphmem.domain.entity import EntityIn, EntityRef
from graphmem.domain.profile import known_topic_tags
from graphmem.domain.text import NonBlankText, StorableText
from graphmem.domain.times import Instant
from graphmem.text.storable import check_storable

SCHEMA_VERSION: Final = "1.0"
MIN_CONFIDENCE = 0.5
"""What is less sure than this is not stored (CASH-13)."""

FEELING_EXPIRY_DAYS = 14
"""A feeling expires after so many days unless the caller says otherwise."""

MAX_CONTENT_LENGTH = 8000


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


class Scope(StrEnum):
    """Where a memory is recalled."""

    PROFILE = "profile"
    DOMAIN = "domain"
    EPISODIC = "episodic"
    GLOBAL = "global"


class MemoryStatus(StrEnum):
    """What has become of a memory."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    DELETED = "deleted"
    ARCHIVED = "archived"


_TAG = re.compile(r"^\w[\w:./-]*$", re.UNICODE)


def parse_memory_type(value: object) -> object:
    """Return the memory type named by `value` in any case or by an alias."""
    if not isinstance(value, str) or isinstance(value, MemoryType):
        return value
    word = value.strip().lower().replace("-", "_").replace(" ", "_")
    return TYPE_ALIASES.get(word, word)


def parse_tag(value: str) -> str:
    """Return a tag in its stored form: lower case with dashes for spaces, topic tags in capitals."""
    tag = "-".join(value.split())
    topic_tag = tag.upper().replace("-", "_")
    if topic_tag in known_topic_tags():
        return topic_tag
    tag = tag.lower()
    if len(tag) > 64 or not _TAG.match(tag):
        raise ValueError("is not a tag: use letters, digits, '-', '_', ':', up to 64 characters")
    return tag


def _deduplicate(tags: list[str]) -> list[str]:
    return list(dict.fromkeys(tags))


def _normalise_domain(value: str) -> str:
    return " ".join(value.lower().split())


MemoryTypeInput = Annotated[MemoryType, BeforeValidator(parse_memory_type)]
Tag = Annotated[StorableText, AfterValidator(parse_tag)]
Tags = Annotated[list[Tag], Field(max_length=50), AfterValidator(_deduplicate)]
Domain = Annotated[NonBlankText, Field(max_length=100), AfterValidator(_normalise_domain)]
UnitInterval = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Predicate = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
Id = Annotated[StorableText, Field(min_length=1, max_length=255)]


def _check_metadata(value: dict[str, Any], limit: int = 8) -> dict[str, Any]:
    """Refuse metadata nested deeper than `limit` or holding text that cannot be stored."""
    level: list[Any] = [value]
    for _ in range(limit):
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                deeper.extend(item.values())
                deeper.extend(item.keys())
            elif isinstance(item, list):
                deeper.extend(item)
            elif isinstance(item, str):
                check_storable(item)
        level = deeper
    if any(isinstance(item, dict | list) for item in level):
        raise ValueError(f"is nested deeper than {limit} levels")
    return value


Metadata = Annotated[dict[str, Any], AfterValidator(_check_metadata)]


class MemorySourceIn(BaseModel):
    """Where a caller says a memory comes from."""

    model_config = ConfigDict(extra="forbid")

    session_id: Id | None = None
    message_ids: list[Id] = Field(default_factory=list, max_length=200)


class MemorySource(BaseModel):
    """Where a memory comes from: who wrote it (`kind`) and the messages that state it."""

    kind: str = "api"
    session_id: str | None = None
    message_ids: list[str] = Field(default_factory=list)


class MemoryIn(BaseModel):
    """One statement to be saved."""

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
            raise ValueError("invalid_at lies before valid_at")
        if self.single_valued and self.predicate is None:
            raise ValueError("single_valued needs a predicate: it says which relation has one value at a time")
        named = next((tag.removeprefix("domain:") for tag in self.tags if tag.startswith("domain:")), None)
        if named and self.domain is None:
            self.domain = named
        if self.scope is None:
            self.scope = Scope.DOMAIN if self.domain else Scope.PROFILE
        if self.predicate is None:
            self.predicate = DEFAULT_PREDICATES[self.type]
        return self


class MemoryPatch(BaseModel):
    """The changes of one new version; fields that are absent stay as they are."""

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

    @model_validator(mode="after")
    def _require_change(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("names no field to change")
        for field in ("content", "type", "tags", "importance", "confidence", "metadata"):
            if field in self.model_fields_set and getattr(self, field) is None:
                raise ValueError(f"{field} must not be null")
        return self


class Memory(BaseModel):
    """One version of a memory, as callers see it."""

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
    """A version with why it ended, what ended it and who acted."""

    ended_reason: str | None
    ended_by: str | None
    actor: str | None


class SaveAction(StrEnum):
    """What a save did with one statement."""

    INSERT = "insert"
    REINFORCE = "reinforce"
    SUPERSEDE = "supersede"
    SKIP = "skip"


class SaveResult(BaseModel):
    """What became of one statement: the memory it is now, and the ids it closed."""

    action: SaveAction
    memory: Memory | None
    superseded: list[str] = Field(default_factory=list)
    reason: str | None = None
