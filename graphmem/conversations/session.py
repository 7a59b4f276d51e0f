"""Sessions and their messages: API models, and conversion from other APIs' formats. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal, Self, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_serializer, model_validator

from graphmem.jobs.job import JobStatus
from graphmem.memories.memory import Tags
from graphmem.runtime.errors import Conflict
from graphmem.runtime.field_types import (
    MAX_REQUEST_TEXT,
    Domain,
    Id,
    Metadata,
    NonBlankText,
    SessionId,
    StorableText,
    UnitInterval,
    check_request_size,
    name_key,
    text_length,
)
from graphmem.runtime.paging import PageQuery
from graphmem.runtime.times import Instant, ZonedDatetime
from graphmem.runtime.validation import RequestBody
from graphmem.tenants.spaces import SpaceId, SpaceQuery
from graphmem.tenants.trust import QUOTED_AS, TEXT_OF_OTHERS, StatedKind
from graphmem.text.added_texts import name_source, without_thoughts
from graphmem.text.normalising import is_blank

ROLE_ALIASES = {"model": "assistant", "developer": "system", "function": "tool"}
"""graphmem's names for other APIs' roles."""

ATTACHMENTS = {
    "image": "image", "image_url": "image", "image_file": "image", "input_image": "image", "audio": "audio",
    "input_audio": "audio", "file": "file", "input_file": "file", "document": "file", "container_upload": "file",
}  # fmt: skip
"""Kind of attachment by type of content part."""

FOREIGN_FIELDS = frozenset(
    {
        # OpenAI: chat completions, responses, assistants
        "annotations", "assistant_id", "attachments", "audio", "completed_at", "created", "created_at", "file_ids",
        "function_call", "incomplete_at", "incomplete_details", "object", "parsed", "phase", "reasoning",
        "reasoning_content", "reasoning_details", "refusal", "run_id", "status", "thread_id", "tool_call_id",
        "tool_calls", "type",
        # Anthropic
        "cache_control", "container", "context_management", "model", "stop_details", "stop_reason", "stop_sequence",
        "usage",
    }
)  # fmt: skip
"""Message fields of these APIs that do not concern the content."""

_LARGEST_SECONDS = 1e11
"""Number from which a time counts milliseconds, microseconds or nanoseconds since 1970 instead of seconds."""

_NUMBER = re.compile(r"-?\d{9,}(\.\d+)?")
"""A time written as a number in text form; with fewer digits, it may be a year or a date."""


def read_message(value: object) -> object:
    """Return the message fields that graphmem stores; return a value other than a message unchanged.

    `content` is null in a message that only calls tools, `created_at` is read if there is no `timestamp`, and null
    fields are dropped.
    """
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if not isinstance(value, Mapping):
        return value
    fields = {key: item for key, item in value.items() if item is not None and key not in FOREIGN_FIELDS}
    if "timestamp" not in fields and value.get("created_at") is not None:
        fields["timestamp"] = value["created_at"]
    calls_tools = bool(value.get("tool_calls") or value.get("function_call"))
    if calls_tools and fields.get("content") in (None, ""):
        fields["content"] = None
    elif "content" in value:
        fields.setdefault("content", None)
    return fields


def text_of(content: object) -> str:
    """Return the text of a message's content: a text, or the texts of its parts; empty for any other value."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(text for part in parts if (text := _text_of_part(part)) is not None)


def attachments_of(content: object) -> list[str]:
    """Return the kinds of a message's attachments, such as `image`."""
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    return [ATTACHMENTS[kind] for part in parts if (kind := str(part.get("type"))) in ATTACHMENTS]


def mark_attachments(text: str, attachments: list[str] | tuple[str, ...]) -> str:
    """Return a text followed by a mark for each attachment, as stored in messages."""
    return "\n".join(part for part in (text, *(f"[{attachment}]" for attachment in attachments)) if not is_blank(part))


def read_content(content: object) -> object:
    """Return a message's content as text: empty for null and for parts without text or attachments."""
    if content is None:
        return ""
    if not isinstance(content, list):
        return content
    if not all(isinstance(part, (str, Mapping)) for part in content):
        raise ValueError("must be text, a list of content parts, or null")
    return mark_attachments(text_of(content), attachments_of(content))


def read_timestamp(value: object) -> object:
    """Convert a number since 1970 to a time; return any other value unchanged.

    It may count seconds, milliseconds, microseconds or nanoseconds, and may be text with at least nine digits.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number or (isinstance(value, str) and _NUMBER.fullmatch(value.strip()))):
        return value
    try:
        number = float(value)  # a number, or the text of one
        for _ in range(3):
            if abs(number) >= _LARGEST_SECONDS:
                number /= 1000
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
    except (ValueError, OverflowError):
        raise ValueError("must be a time, or seconds or milliseconds since 1970") from None


def _text_of_part(part: Any) -> str | None:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, Mapping) else None
    text = text.get("value") if isinstance(text, Mapping) else text  # the form in the assistants API
    return text if isinstance(text, str) else None


MessageInput = TypeVar("MessageInput")

MAX_MESSAGE_LENGTH = 100_000
"""Longest message, in characters."""

DOCUMENT_KEY, WEB_KEY = "document", "web"
"""Message metadata keys for the source document's name and the source web page's address."""

TICKET_KEY = "ticket_id"
"""Session metadata key for the id of the ticket it is about."""

MAX_BATCH_SIZE = 1_000
"""Maximum number of messages in one batch."""


class MessageRole(StrEnum):
    """The role of a message's speaker."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


_KIND_OF_ROLE: Mapping[MessageRole, StatedKind] = {
    MessageRole.USER: "user",
    MessageRole.ASSISTANT: "assistant",
    MessageRole.SYSTEM: "operator",
    MessageRole.TOOL: "tool",
}


def origin_of(role: MessageRole, metadata: Mapping[str, Any]) -> StatedKind:
    """Return a message's source: that of its role, unless its metadata name another."""
    if metadata.get(DOCUMENT_KEY):
        return "document"
    if metadata.get(WEB_KEY):
        return "web"
    return _KIND_OF_ROLE[role]


class SessionKind(StrEnum):
    """Whether a session is a conversation or an extraction run over one."""

    CONVERSATION = "conversation"
    EXTRACTION = "extraction"


def _parse_role(value: object) -> object:
    if not isinstance(value, str):
        return value
    word = value.strip().lower()
    return ROLE_ALIASES.get(word, word)


def _read_text(content: object) -> object:
    """Return a message's content as text; raise ValueError for blank text."""
    if isinstance(content, str) and is_blank(content):
        raise ValueError("must not be empty")
    return read_content(content)


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
"""One value named in a message."""

MessageEntities = Annotated[
    dict[
        Annotated[StorableText, Field(min_length=1, max_length=100)],
        Annotated[list[EntityValue], Field(max_length=100)],
    ],
    Field(max_length=50),
    BeforeValidator(_wrap_in_lists),
]
"""Values named in a message, by type; a single value is read as a list of one."""


MessageContent = Annotated[
    StorableText,
    AfterValidator(str.strip),
    BeforeValidator(_read_text, json_schema_input_type=str | list[str | dict[str, Any]] | None),
]
"""The text of a message, read from a text, a list of content parts, or null; empty if there is nothing to store."""


class MemoryDefaults(RequestBody):
    """Values for the memories that are extracted from a message, in addition to what it says."""

    model_config = ConfigDict(frozen=True)

    metadata: Metadata = Field(default_factory=dict)
    expires_at: Instant | None = Field(None, description="When reads stop returning them; an earlier end stays.")


class MessageIn(RequestBody):
    """A message as a caller sends it, also in the shape of OpenAI's and Anthropic's APIs.

    Other fields of those APIs are ignored.
    """

    id: Id | None = None
    role: Annotated[MessageRole, BeforeValidator(_parse_role)] = Field(
        description="user, assistant (or model), system (or developer), tool (or function)."
    )
    content: MessageContent = Field(
        max_length=MAX_MESSAGE_LENGTH,
        description="The text, or a list of content parts. A message without text, such as one that only calls tools, "
        "is not stored; the answer lists it under `skipped`.",
    )
    name: NonBlankText | None = Field(None, max_length=300)
    timestamp: (
        Annotated[
            ZonedDatetime,
            BeforeValidator(read_timestamp, json_schema_input_type=datetime | float),
        ]
        | None
    ) = Field(None, description="When it was said: RFC 3339 with an offset, or seconds or milliseconds since 1970.")
    intent: NonBlankText | None = Field(None, max_length=200)
    entities: MessageEntities = Field(default_factory=dict)
    metadata: Metadata = Field(default_factory=dict)
    rich_content: Metadata | None = None
    memories: MemoryDefaults | None = Field(
        None, description="Metadata and an expiry for the memories that are extracted from this message."
    )
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

    @model_validator(mode="before")
    @classmethod
    def _read_shape(cls, value: object) -> object:
        return read_message(value)

    @field_serializer("content")
    def _write_content(self, content: str) -> str | None:
        return content or None  # as it was given: a text may not be empty

    @model_validator(mode="after")
    def _leave_thoughts_out(self) -> Self:
        if self.role is MessageRole.ASSISTANT:
            self.content = without_thoughts(self.content)
        return self


class SkippedMessage(BaseModel):
    """A message of a batch that is not stored, and why."""

    index: int = Field(description="Its place in the batch, from 0.")
    reason: str


class MessagesIn(RequestBody):
    """A batch of messages of one session, in order."""

    session_id: SessionId | None = None
    messages: list[MessageIn] = Field(min_length=1, max_length=MAX_BATCH_SIZE)
    extract: bool = True
    wait: bool = False
    timezone: TimeZoneName | None = None
    domain: Domain | None = Field(None, description="The domain of these messages; defaults to the session's.")
    space: SpaceId | None = Field(None, description="The space of the session; defaults to the user's own memory.")

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        return check_request_size(self)

    def without_blank(self) -> tuple[Self, list[SkippedMessage]]:
        """Return the batch without blank messages, and the skipped messages."""
        skipped = [
            SkippedMessage(index=index, reason="it has no text")
            for index, message in enumerate(self.messages)
            if not message.content
        ]
        if not skipped:
            return self, skipped
        return self.model_copy(update={"messages": [message for message in self.messages if message.content]}), skipped


def split_into_batches(messages: Sequence[MessageInput]) -> Iterator[list[MessageInput]]:
    """Yield messages, validated or not, in batches that fit one request."""
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


def with_author(batch: MessagesIn, author: str) -> MessagesIn:
    """Return a batch for a space with unnamed user messages named after their author."""
    named = [
        message.model_copy(update={"name": author})
        if message.role is MessageRole.USER and message.name is None
        else message
        for message in batch.messages
    ]
    return batch.model_copy(update={"messages": named})


class Message(BaseModel):
    """A stored message; `position` counts from 1 in its session, `extracted_at` is when extraction last read it."""

    id: str
    session_id: str
    user_id: str
    space: str | None = Field(None, description="The space of the session, in which `user_id` is who sent the message.")
    role: MessageRole
    content: str
    name: str | None
    timestamp: datetime
    created_at: datetime
    intent: str | None
    entities: dict[str, list[Any]]
    domain: str | None = None
    metadata: dict[str, Any]
    sent_as: StatedKind | None = Field(
        None,
        exclude_if=lambda kind: kind is None,
        description="Source of the key that sent it, if not the user.",
    )
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
    memory_defaults: MemoryDefaults | None = Field(None, exclude=True)
    is_caught: bool = Field(False, exclude=True)
    """Whether extraction detected text in it that addresses the assistant or speaks for the user."""

    @property
    def key(self) -> str:
        """Its id, prefixed with the space if any: ids are unique only within a user or space."""
        return self.id if self.space is None else f"{self.space}\0{self.id}"

    @property
    def origin(self) -> StatedKind:
        """The source of its text."""
        return origin_of(self.role, self.metadata)

    @property
    def stated_by(self) -> tuple[StatedKind, ...]:
        """Its source, and the source of the key that sent it."""
        return self.origin, self.sent_as or "user"

    @property
    def is_of_others(self) -> bool:
        """Whether strangers may have written its text, or a key for such text sent it."""
        return not TEXT_OF_OTHERS.isdisjoint(self.stated_by)

    @property
    def speaker(self) -> str:
        """The speaker: its name, else its role; in a space, with the sender if a user message has another name."""
        named = self.name or self.role.value
        if self.space is None or self.role is not MessageRole.USER or name_key(named) == name_key(self.user_id):
            return named
        return f"{named} (sent by {self.user_id})"

    @property
    def said_by(self) -> str:
        """The speaker to quote, or the origin of third-party text."""
        if not self.is_of_others:
            return self.speaker if self.name else f"the {self.role.value}"
        kind = next(kind for kind in (self.origin, self.sent_as) if kind in TEXT_OF_OTHERS)
        named = {"web": self.metadata.get(WEB_KEY), "document": self.metadata.get(DOCUMENT_KEY)}.get(kind, self.name)
        return name_source(QUOTED_AS[kind], named)


class RunMessage(BaseModel):
    """A message between graphmem and the model in an extraction session, without secrets."""

    role: MessageRole
    content: StorableText
    tool_calls: list[Metadata] = Field(default_factory=list)


class SessionIn(RequestBody):
    """A session to open."""

    session_id: SessionId | None = None
    title: NonBlankText | None = Field(None, max_length=500)
    topic_tags: Tags = Field(default_factory=list)
    domain: Domain | None = Field(None, description="The domain of the session, such as cooking.")
    metadata: Metadata = Field(default_factory=dict)
    space: SpaceId | None = Field(None, description="The space that shares it; defaults to the user's own memory.")

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        return check_request_size(self)


class Session(BaseModel):
    """A session; `summary` covers its messages up to the position `summarized_through`.

    The session of an extraction contains the messages exchanged with the model, and has the id of its job; read alone,
    also the job's status. The response to closing a session has the id of the job that extracts and summarises it.
    """

    id: str
    session_id: str
    user_id: str
    space: str | None = Field(None, description="The space that shares it, in which `user_id` is who opened it.")
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
    sent_as: StatedKind | None = Field(None, exclude=True)
    """Source of the key that opened it, if not the user."""

    @property
    def own_domain(self) -> str | None:
        """The default domain of its messages; None if a key for third-party text opened it."""
        return None if self.sent_as in TEXT_OF_OTHERS else self.domain


def require_conversation(session_id: str, kind: SessionKind) -> None:
    """Raise Conflict for an extraction session, which records the messages between graphmem and the model."""
    if kind is not SessionKind.CONVERSATION:
        raise Conflict(
            f"The session {session_id} records an extraction: name the session that it read, its `source_session_id`."
        )


class SessionArchive(BaseModel):
    """What is left of old messages of a session: their summary, their number and their time."""

    session_id: str
    summary: str
    message_count: int
    started_at: datetime
    ended_at: datetime
    archived_at: datetime


class FeedbackIn(RequestBody):
    """A user's rating of a message."""

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
    skipped: list[SkippedMessage] = Field(
        default_factory=list,
        exclude_if=lambda skipped: not skipped,
        description="Messages of the batch that are not stored; `message_ids` are those of the others.",
    )
    new_ids: list[str] = Field(default_factory=list, exclude=True)


class ExtractionTriggered(BaseModel):
    """The answer to the admin trigger; the session in `message` is that of the extraction run."""

    triggered: Literal[True] = True
    message: str
    job_id: str


class SummarizeIn(RequestBody):
    """Whether to wait for the summary."""

    wait: bool = False


class TriggerIn(RequestBody):
    """The session to extract from; `user_id` is needed when several users have a session of that id."""

    session_id: SessionId
    user_id: Id | None = None


class SessionMessagesQuery(PageQuery, SpaceQuery):
    """The messages of a session to list."""


class SessionListQuery(PageQuery, SpaceQuery):
    """The sessions to list."""

    active: bool | None = Field(None, description="true: open sessions only; false: closed sessions only.")
