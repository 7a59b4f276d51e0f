"""Memories in requests and responses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from graphmem.memories.entity import EntityIn, EntityRef
from graphmem.runtime.field_types import (
    Domain,
    Id,
    Metadata,
    NonBlankText,
    SessionId,
    StorableText,
    UnitInterval,
    check_request_size,
    deduplicate,
    describe_object,
)
from graphmem.runtime.times import Instant
from graphmem.runtime.validation import RequestBody
from graphmem.tenants.owners import Owner
from graphmem.tenants.profiles import known_topic_tags
from graphmem.tenants.spaces import SpaceId
from graphmem.tenants.trust import QUOTED_AS, TEXT_OF_OTHERS, SourceKind, StatedKind
from graphmem.text.added_texts import fence_line, name_source

MAX_TAG_LENGTH = 64
"""Maximum length of a tag, in characters."""

TEMPORARY_TAG = "temporary"
"""Tag of memories that maintenance ends when their time is over."""

FEEDBACK_TAG = "feedback"
"""Tag of memories that maintenance keeps offering to consolidation."""

MAINTENANCE_TAGS = frozenset({TEMPORARY_TAG, FEEDBACK_TAG})
"""Tags that control maintenance of a memory and say nothing about its topic."""

_TAG_PATTERN = re.compile(r"^\w[\w:./-]*$", re.UNICODE)


def parse_tag(value: str) -> str:
    """Return a tag in its stored form: lower case with dashes for spaces, any profile's topic tags in capitals.

    A leading `#` is dropped.

    Raises ValueError for text that cannot be a tag.
    """
    tag = "-".join(value.strip().removeprefix("#").split())
    topic_tag = tag.upper().replace("-", "_")
    if topic_tag in known_topic_tags():
        return topic_tag
    tag = tag.lower()
    if len(tag) > MAX_TAG_LENGTH or not _TAG_PATTERN.match(tag):
        raise ValueError(f"is not a tag: use letters, digits, '-', '_', ':', up to {MAX_TAG_LENGTH} characters")
    return tag


Tag = Annotated[StorableText, AfterValidator(parse_tag)]
"""A tag in its stored form."""

Tags = Annotated[list[Tag], Field(max_length=50), AfterValidator(deduplicate)]
"""Up to 50 different tags."""


SCHEMA_VERSION: Final = "1.0"
"""Version of the memory format that callers receive."""

MIN_CONFIDENCE = 0.5
"""Confidence below which a statement is not stored."""

CORE_IMPORTANCE = 0.8
"""Minimum importance of a core memory: in a profile it does not fade, a global one is in every context."""

FEELING_EXPIRY_DAYS = 14
"""Days after which a feeling expires, unless the caller gives an expiry."""

MAX_CONTENT_LENGTH = 8000
"""Maximum length of a statement, in characters."""


class MemoryType(StrEnum):
    """The kind of statement of a memory."""

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
    PROFILE = "profile"


TYPE_ALIASES = {
    "user_preference": MemoryType.PREFERENCE,
    "factual_info": MemoryType.FACT,
    "persona": MemoryType.FACT,
    "personal_info": MemoryType.FACT,
    "summary": MemoryType.CONVERSATION_SUMMARY,
}
"""Aliases of memory types that callers may send."""

PENDING_TYPES = frozenset({MemoryType.PLAN, MemoryType.OPEN_LOOP})
"""Types of pending matters, which a statement about anything may settle."""

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
    MemoryType.PROFILE: "IS_DESCRIBED_AS",
}
"""Default predicate of a statement, by memory type."""


class Scope(StrEnum):
    """Where a memory is recalled."""

    PROFILE = "profile"
    DOMAIN = "domain"
    EPISODIC = "episodic"
    GLOBAL = "global"


SCOPES_WITHOUT_DOMAIN = frozenset({Scope.PROFILE, Scope.GLOBAL})
"""The scopes of memories that are recalled regardless of a question's domain."""


def tagged_domain(tags: Sequence[str]) -> str | None:
    """Return the domain named by the first tag `domain:X`."""
    return next((tag.removeprefix("domain:") for tag in tags if tag.startswith("domain:")), None)


class MemoryStatus(StrEnum):
    """Whether a memory is active, and if not, why.

    `archived`: maintenance ended it because its time was over; `contested`: it contradicts another memory and is not
    believed until it is resolved.
    """

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    DELETED = "deleted"
    ARCHIVED = "archived"
    CONTESTED = "contested"


def normalise_type_name(name: str) -> str:
    """Return the name of a type in lower case, with `_` for spaces and dashes."""
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def parse_memory_type(value: object) -> object:
    """Return the stored form of a memory type's name; non-text values are returned unchanged."""
    if not isinstance(value, str) or isinstance(value, MemoryType):
        return value
    word = normalise_type_name(value)
    return TYPE_ALIASES.get(word, word)


PROFILE_BY_CALLER = (
    "must not be profile: consolidation writes what is known of an entity from its facts, so save or change those"
)
"""Why callers cannot save profiles or turn memories into profiles."""


def _refuse_profile(kind: MemoryType) -> MemoryType:
    if kind is MemoryType.PROFILE:
        raise ValueError(PROFILE_BY_CALLER)
    return kind


def is_built_in_type(name: str) -> bool:
    """Return whether a name is a built-in memory type or an alias of one."""
    return parse_memory_type(name) in set(MemoryType)


MemoryTypeInput = Annotated[MemoryType, BeforeValidator(parse_memory_type), AfterValidator(_refuse_profile)]
"""A memory type stated by a caller, in any case and by its aliases."""


class _WithoutProfile:
    """Leaves `profile` out of the JSON Schema of memory types."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core_schema)
        types = handler.resolve_ref_schema(schema)
        types["enum"] = [name for name in types["enum"] if name != MemoryType.PROFILE]
        return schema


StatedType = Annotated[MemoryTypeInput, _WithoutProfile]
"""A memory type chosen by a model: its schema does not offer `profile`."""

KINDS_OF_FACTS = frozenset({"persona", "personal_info"})
"""Names narrower than the type they are read as; filtering by one finds only memories saved under it."""


def parse_type_filter(value: object) -> object:
    """Return the memory type to filter by; a kind of facts means only that kind, not all facts."""
    word = normalise_type_name(value) if isinstance(value, str) else value
    return word if word in KINDS_OF_FACTS else parse_memory_type(value)


MemoryTypeWord = Annotated[
    Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")],
    BeforeValidator(parse_type_filter),
    Field(description=f"One of {', '.join(MemoryType)}, an alias or a declared type."),
]
"""A memory type to filter by, which may be one that the tenant declared."""

Subtype = Annotated[NonBlankText, Field(max_length=64)]
"""The type of a memory as named by its writer."""

SubtypeWord = Annotated[Subtype, AfterValidator(normalise_type_name)]
"""A type to filter by as writers name it, in any case: an alias means itself, not the type it stands for."""

Content = Annotated[
    NonBlankText,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "minLength": 1, "maxLength": MAX_CONTENT_LENGTH},
                {"type": "object", "minProperties": 1},
            ]
        },
        mode="validation",
    ),
]
"""A statement; an object of keys and values is rendered as text, and kept next to it."""

MAX_ASSOCIATIONS = 100
"""Maximum memories that a writer may associate with one memory."""

Predicate = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
"""The name of a relation in UPPER_SNAKE_CASE."""


MAX_SOURCE_MESSAGES = 200
"""Maximum source messages that a memory lists, the latest ones."""

MAX_QUOTE_LENGTH = 1000
"""Maximum length of a source quote, in characters."""

MAX_SPEAKER_LENGTH = 255
"""Maximum length of a speaker's name, in characters."""


class MemorySourceIn(RequestBody):
    """The source of a memory: its kind, and the session and messages that state it; `quote` is what was said."""

    kind: StatedKind | None = Field(
        None, description="Kind of source; defaults to the key's, which is the user unless the key sets another."
    )
    speaker: NonBlankText | None = Field(None, max_length=MAX_SPEAKER_LENGTH, description="The name of who said it.")
    session_id: SessionId | None = None
    message_ids: list[Id] = Field(default_factory=list, max_length=MAX_SOURCE_MESSAGES)
    quote: NonBlankText | None = Field(None, max_length=MAX_QUOTE_LENGTH)


class MemorySource(BaseModel):
    """The source of a memory: its kind, and the session and messages that state it.

    `quote` is what the first of them said, without secrets; it stays when the messages are archived.
    """

    kind: SourceKind = "user"
    trusted_as: SourceKind | None = Field(
        None,
        exclude_if=lambda kind: kind is None,
        description="The kind whose trust it has, if not its own: that of what it was merged from or replaced.",
    )
    speaker: str | None = Field(
        None,
        exclude_if=lambda speaker: speaker is None,
        description="Who stated it: in a space the user, else the name that a message or a save gave.",
    )
    session_id: str | None = None
    message_ids: list[str] = Field(default_factory=list)
    quote: str | None = None

    @property
    def trust_kind(self) -> SourceKind:
        """The source kind whose trust the memory has."""
        return self.trusted_as or self.kind

    @property
    def is_of_others(self) -> bool:
        """Whether strangers may have written its text."""
        return self.trust_kind in TEXT_OF_OTHERS

    @property
    def said_by(self) -> str | None:
        """The attribution of its quote: where third-party text is from, else its speaker or kind; None for the user."""
        if self.is_of_others:
            return name_source(QUOTED_AS[self.trust_kind], self.speaker)
        return self.speaker or (None if self.kind == "user" else self.kind)


def keep_given_form(data: object) -> object:
    """Return a memory's fields with the type as given under `subtype`, and an object content rendered as text too.

    A type that is not built in may be declared by the tenant; it is looked up when the memory is saved.
    """
    if not isinstance(data, Mapping):
        return data
    fields = dict(data)
    given, content = fields.get("type"), fields.get("content")
    if isinstance(given, str) and not isinstance(given, MemoryType):
        if fields.get("subtype") is None:
            fields["subtype"] = given
        if given.strip() and not is_built_in_type(given):
            fields["type"] = MemoryType.FACT
    if isinstance(content, dict) and content:
        fields |= {"content": describe_object(content), "content_data": content}
    return fields


class _GivenMemory(RequestBody):
    """The fields that a save and a correction take in the same form."""

    subtype: Subtype | None = Field(None, description="The type as it was given; defaults to `type`.")
    content_data: Metadata | None = Field(None, description="The object that was given as `content`.")

    @model_validator(mode="before")
    @classmethod
    def _keep_given_form(cls, data: object) -> object:
        return keep_given_form(data)

    @property
    def declared_type(self) -> str | None:
        """The type as given if it is not built in: the tenant must have declared it."""
        return None if self.subtype is None or is_built_in_type(self.subtype) else normalise_type_name(self.subtype)


class MemoryIn(_GivenMemory):
    """One statement to save."""

    content: Content = Field(max_length=MAX_CONTENT_LENGTH)
    type: MemoryTypeInput = Field(
        MemoryType.FACT,
        description="One of these except profile, an alias or a declared type.",
    )
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
    space: SpaceId | None = Field(None, description="The space to save it in; defaults to the user's own memory.")
    single_valued: bool = False
    supersedes: list[Id] = Field(default_factory=list, max_length=100)
    associations: list[Id] = Field(default_factory=list, max_length=MAX_ASSOCIATIONS)
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
        given = set(self.model_fields_set)
        if self.metadata.get("immutable") is True and "immutable" not in given:
            self.immutable = True
            given.add("immutable")
        if self.domain is None:
            self.domain = tagged_domain(self.tags)
        if self.space is not None and self.scope is Scope.GLOBAL:
            raise ValueError("a global memory cannot be in a space: leave out scope or space")
        if self.scope is None:
            self.scope = Scope.DOMAIN if self.domain else Scope.PROFILE
        if self.predicate is None:
            self.predicate = DEFAULT_PREDICATES[self.type]
        self.model_fields_set.intersection_update(given)  # a default was not stated by the caller
        return self


class MemoryPatch(_GivenMemory):
    """The changes of a correction; fields that are left out stay as they are."""

    content: Content | None = Field(None, max_length=MAX_CONTENT_LENGTH)
    type: MemoryTypeInput | None = Field(None, description="One of these except profile, an alias or a declared type.")
    tags: Tags | None = None
    importance: UnitInterval | None = None
    confidence: UnitInterval | None = None
    valid_at: Instant | None = None
    invalid_at: Instant | None = None
    expires_at: Instant | None = None
    metadata: Metadata | None = None
    associations: list[Id] | None = Field(None, max_length=MAX_ASSOCIATIONS)
    domain: Domain | None = Field(None, description="Move the memory to this domain; null: to the profile.")
    scope: Scope | None = Field(
        None, description="The new scope; a memory cannot become global, nor a global one anything else."
    )

    @model_validator(mode="after")
    def _require_change(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("contains no field to change")
        for field in ("content", "type", "tags", "importance", "confidence", "metadata", "associations", "scope"):
            if field in self.model_fields_set and getattr(self, field) is None:
                raise ValueError(f"{field} must not be null")
        if self.scope is Scope.DOMAIN and self.domain is None and not tagged_domain(self.tags or []):
            raise ValueError("scope domain requires a domain: send both")
        if self.scope in SCOPES_WITHOUT_DOMAIN and self.domain is not None:
            raise ValueError(f"scope {self.scope.value} has no domain: leave out one of the two")
        return check_request_size(self)


class Memory(BaseModel):
    """One version of a memory as callers see it."""

    id: str
    version: int
    user_id: str | None
    space: str | None = Field(None, description="The space that the memory belongs to; null: it is the user's.")
    content: str
    content_data: dict[str, Any] | None = Field(
        None, description="The object that was given as `content`; of a profile, its sentences."
    )
    type: MemoryType
    subtype: str | None = Field(None, description="The type as its writer gave it.")
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
    contests: list[str] = Field(
        default_factory=list,
        description="The memories that it contradicts, while its status is contested.",
    )
    associations: list[str]
    derived_from: list[str] | None = Field(
        None,
        exclude_if=lambda ids: ids is None,
        description="For a profile, the memories that it was written from.",
    )
    source: MemorySource
    immutable: bool
    single_valued: bool
    expires_at: datetime | None
    metadata: dict[str, Any]
    content_hash: str
    schema_version: Literal["1.0"] = SCHEMA_VERSION

    @property
    def quoted(self) -> str:
        """Its content on one line, with its origin if strangers may have written it."""
        text = fence_line(self.content)
        return f"{text} ({self.source.said_by} says)" if self.source.is_of_others else text

    @property
    def is_global(self) -> bool:
        """Whether the tenant owns it: all users of the tenant read it, and only admins change it."""
        return self.user_id is None and self.space is None

    def owner_for(self, reader: Owner) -> Owner:
        """Return the owner of a memory that a user has read: the user, the tenant or a space."""
        if self.space is not None:
            return Owner.of_space(reader.tenant, self.space)
        return reader.tenant_global if self.is_global else reader


class MemoryVersion(Memory):
    """An entry of a memory's history: a version, why it ended, what ended it and who wrote it."""

    ended_reason: str | None
    ended_by: str | None
    actor: str | None


class SaveAction(StrEnum):
    """The effect of a save."""

    INSERT = "insert"
    REINFORCE = "reinforce"
    SUPERSEDE = "supersede"
    SKIP = "skip"
    CONTEST = "contest"
    QUARANTINE = "quarantine"


class SaveResult(BaseModel):
    """The result of saving a statement: its memory, and the ids of the memories it superseded.

    `related` are current memories of the same subject that it may contradict or repeat, the most similar first.
    `ignored` names the fields of a repetition that its memory did not take over. A statement from a tool, a document or
    a web page that cannot become a memory is in quarantine, under `quarantine_id`.
    """

    action: SaveAction
    memory: Memory | None
    superseded: list[str] = Field(default_factory=list)
    related: list[str] = Field(
        default_factory=list, description="Current memories that it may contradict or repeat, the most similar first."
    )
    reason: str | None = None
    ignored: list[str] = Field(
        default_factory=list,
        description="Fields of a repetition that the memory did not take over; update the memory to change them.",
    )
    quarantine_id: str | None = Field(
        None, description="Id of the quarantined statement, which an admin can release or drop."
    )


class SaveIn(RequestBody):
    """Statements to save together."""

    memories: list[MemoryIn] = Field(min_length=1)
    infer: bool = Field(
        False, description="Let a model compare them with what is known: insert, reinforce, supersede or skip."
    )

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        return check_request_size(self)


class ResolutionIn(RequestBody):
    """Whether a contested memory replaces the one that it contradicts, or is retired."""

    holds: bool


class SaveOut(BaseModel):
    """The result of each statement, in the order of the request."""

    results: list[SaveResult]


class ErasedMemory(BaseModel):
    """An erased memory and the number of versions it had."""

    id: str
    erased: int
