"""Sessions and their messages: what callers send and what they get back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Self, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from graphmem.jobs.job import JobStatus
from graphmem.memories.tags import Tags
from graphmem.runtime.field_types import (
    Domain,
    Id,
    Metadata,
    UnitInterval,
)
from graphmem.runtime.stored_values import MAX_REQUEST_TEXT, check_request_size, text_length
from graphmem.runtime.text import NonBlankText, StorableText
from graphmem.runtime.times import ZonedDatetime

MessageInput = TypeVar("MessageInput")

MAX_MESSAGE_LENGTH = 100_000
"""Longest message, in characters."""

TICKET_KEY = "ticket_id"
"""The key of a session's metadata that holds the id of the ticket it is about."""

MAX_BATCH_SIZE = 1_000
"""Most messages in one batch."""


class MessageRole(StrEnum):
    """The role of a message's speaker."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class SessionKind(StrEnum):
    """Whether a session is a conversation or an extraction run over one."""

    CONVERSATION = "conversation"
    EXTRACTION = "extraction"


def _parse_role(value: object) -> object:
    if not isinstance(value, str):
        return value
    word = value.strip().lower()
    return MessageRole.ASSISTANT if word == "model" else word


def _check_time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("must be an IANA time zone, for example Europe/Berlin") from error
    return name


def _wrap_in_lists(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {key: item if isinstance(item, list) else [item] for key, item in value.items()}


TimeZoneName = Annotated[str, Field(max_length=64), AfterValidator(_check_time_zone)]
"""An IANA time zone."""

EntityValue = Annotated[str, Field(max_length=1_000)] | int | float | bool
"""One value that a message names."""

MessageEntities = Annotated[
    dict[
        Annotated[StorableText, Field(min_length=1, max_length=100)],
        Annotated[list[EntityValue], Field(max_length=100)],
    ],
    Field(max_length=50),
    BeforeValidator(_wrap_in_lists),
]
"""The values that a message names, by type; a single value is read as a list of one."""


class MessageIn(BaseModel):
    """A message as a caller sends it."""

    model_config = ConfigDict(extra="forbid")

    id: Id | None = None
    role: Annotated[MessageRole, BeforeValidator(_parse_role)]
    content: NonBlankText = Field(max_length=MAX_MESSAGE_LENGTH)
    name: NonBlankText | None = Field(None, max_length=300)
    timestamp: ZonedDatetime | None = None
    intent: NonBlankText | None = Field(None, max_length=200)
    entities: MessageEntities = Field(default_factory=dict)
    metadata: Metadata = Field(default_factory=dict)
    rich_content: Metadata | None = None
    confidence: UnitInterval | None = None
    sql_executed: StorableText | None = Field(
        None,
        max_length=MAX_MESSAGE_LENGTH,
        description="The database query that a tool ran for this message; positive feedback stores it with the intent.",
    )
    query_results: Metadata | None = Field(None, description="What that query returned.")
    execution_time_ms: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="How long that query took, in milliseconds."
    )


class MessagesIn(BaseModel):
    """A batch of messages of one session, in order."""

    model_config = ConfigDict(extra="forbid")

    session_id: Id | None = None
    messages: list[MessageIn] = Field(min_length=1, max_length=MAX_BATCH_SIZE)
    extract: bool = True
    wait: bool = False
    timezone: TimeZoneName | None = None
    domain: Domain | None = Field(None, description="The field these messages are about; absent, that of the session.")

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        return check_request_size(self)


def split_into_batches(messages: Sequence[MessageInput]) -> Iterator[list[MessageInput]]:
    """Yield messages, validated or not, in batches that one request may hold."""
    batch: list[MessageInput] = []
    characters = 0
    for message in messages:
        length = text_length(message)
        if batch and (len(batch) == MAX_BATCH_SIZE or characters + length > MAX_REQUEST_TEXT):
            yield batch
            batch, characters = [], 0
        batch.append(message)
        characters += length
    if batch:
        yield batch


class Message(BaseModel):
    """A stored message; `position` counts from 1 in its session, `extracted_at` is when extraction last read it."""

    id: str
    session_id: str
    user_id: str
    role: MessageRole
    content: str
    name: str | None
    timestamp: datetime
    created_at: datetime
    intent: str | None
    entities: dict[str, list[Any]]
    domain: str | None = None
    metadata: dict[str, Any]
    rich_content: dict[str, Any] | None
    confidence: float | None
    sql_executed: str | None
    query_results: dict[str, Any] | None
    execution_time_ms: float | None
    feedback_score: int | None
    feedback_text: str | None
    feedback_issues: list[str] = Field(default_factory=list)
    position: int
    extracted_at: datetime | None
    utc_offset_minutes: int = Field(0, exclude=True)


class RunMessage(BaseModel):
    """A message between graphmem and the model in an extraction session, without secrets."""

    role: MessageRole
    content: StorableText
    tool_calls: list[Metadata] = Field(default_factory=list)


class SessionIn(BaseModel):
    """A session to open."""

    model_config = ConfigDict(extra="forbid")

    session_id: Id | None = None
    title: NonBlankText | None = Field(None, max_length=500)
    topic_tags: Tags = Field(default_factory=list)
    domain: Domain | None = Field(None, description="The field the session is about, such as cooking.")
    metadata: Metadata = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        return check_request_size(self)


class Session(BaseModel):
    """A session; `summary` covers its messages up to the position `summarized_through`.

    That of an extraction has the id and, read alone, the status of its job; its messages are those with the model.
    """

    id: str
    session_id: str
    user_id: str
    kind: SessionKind
    source_session_id: str | None
    title: str | None
    summary: str | None
    summarized_through: int
    intent_sequence: list[str]
    topic_tags: list[str]
    domain: str | None = None
    sentiment_score: float | None
    message_count: int
    is_active: bool
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    metadata: dict[str, Any]
    job_id: str | None = None
    job_status: JobStatus | None = None
    reason: str | None = Field(None, description="Of a closing: why it writes no summary; null: it does.")


class SessionArchive(BaseModel):
    """What is left of old messages of a session: their summary, their number and their time."""

    session_id: str
    summary: str
    message_count: int
    started_at: datetime
    ended_at: datetime
    archived_at: datetime


class FeedbackIn(BaseModel):
    """A user's rating of a message."""

    model_config = ConfigDict(extra="forbid")

    score: Annotated[int, Field(ge=1, le=5, strict=True)]
    text: NonBlankText | None = Field(None, max_length=2_000)
    context_id: Id | None = Field(
        None, description="The context that led to the reply: a positive rating strengthens the memories that it held."
    )


class MessagesAccepted(BaseModel):
    """The answer to a batch: its session, the ids of its messages and the extraction job (None without extraction)."""

    job_id: str | None
    session_id: str
    message_ids: list[str]
    new_ids: list[str] = Field(default_factory=list, exclude=True)


class ExtractionTriggered(BaseModel):
    """The answer to the admin trigger; the session in `message` is that of the extraction run."""

    triggered: Literal[True] = True
    message: str
    job_id: str
