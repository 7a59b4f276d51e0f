"""Context for a model's prompt: the request, the answer, and the stored state both are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from graphmem.context.behavior_patterns import BehaviorPattern
from graphmem.context.learned_preferences import LearnedIntent, LearnedPreference
from graphmem.conversations.session import (
    EntityValue,
    Message,
    MessageRole,
    Session,
)
from graphmem.memories.memory import Memory
from graphmem.runtime.field_types import (
    MAX_METADATA_DEPTH,
    Domain,
    Id,
    Metadata,
    UnitInterval,
)
from graphmem.runtime.json_values import check_json_value
from graphmem.runtime.stored_values import check_request_size
from graphmem.runtime.text import NonBlankText
from graphmem.runtime.times import Instant

MAX_QUESTION_LENGTH = 100_000
"""Longest question, in characters; as long as the longest message."""

DEFAULT_TOKEN_BUDGET = 2000
"""Tokens of preamble and question together."""

MAX_ITEM_SECONDS = 30 * 24 * 3600
"""Longest time that a caller's context item lasts, in seconds."""


class ContextRequest(BaseModel):
    """A question that is about to be sent to a model; without one, the start of a conversation.

    `top` limits the memories chosen by relevance, which are added to those of the profile. `sources` adds to every
    bullet when and in which session it was said. Of `profile_pack`, what the caller knows about the user, `name` and
    `goals` are used. With `recent_messages` false, the messages of the session are left out, for a caller that sends
    them to the model anyway. With `valid_as_of` or `known_as_of` the context is the one of that time.
    """

    model_config = ConfigDict(extra="forbid")

    question: NonBlankText | None = Field(None, max_length=MAX_QUESTION_LENGTH)
    session_id: Id | None = None
    intent: NonBlankText | None = Field(None, max_length=200)
    domain: Domain | None = None
    token_budget: int = Field(DEFAULT_TOKEN_BUDGET, ge=1, le=1_000_000)
    top: int = Field(10, ge=0, le=50)
    sources: bool = False
    recent_messages: bool = True
    profile_pack: Metadata = Field(default_factory=dict)
    valid_as_of: Instant | None = None
    known_as_of: Instant | None = None

    @property
    def question_text(self) -> str:
        """The question, empty without one."""
        return self.question or ""

    @property
    def is_past(self) -> bool:
        """Whether the context of an earlier time is wanted."""
        return self.valid_as_of is not None or self.known_as_of is not None

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        return check_request_size(self)


class ContextItemIn(BaseModel):
    """A context item that the caller states; it replaces one of the same type, key and session.

    Goals, preferences and topics are used in contexts until `ttl` seconds have passed: of one session, or of all of
    them without `session_id`.
    """

    model_config = ConfigDict(extra="forbid")

    type: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=64, examples=["topic", "preference", "goal"])]
    key: NonBlankText = Field(max_length=200)
    value: JsonValue
    relevance: UnitInterval = 0.8
    ttl: int = Field(7200, ge=1, le=MAX_ITEM_SECONDS, description="Seconds until it expires.")
    session_id: Id | None = None

    @model_validator(mode="after")
    def _check_value(self) -> Self:
        check_json_value(self.value, MAX_METADATA_DEPTH)
        return check_request_size(self)


class EnhanceIn(BaseModel):
    """A draft reply, the question that it answers, and what it rests on.

    A source is the id of a memory or a message, or the name of something outside of memory.
    """

    model_config = ConfigDict(extra="forbid")

    reply: NonBlankText = Field(max_length=MAX_QUESTION_LENGTH)
    question: NonBlankText | None = Field(None, max_length=MAX_QUESTION_LENGTH)
    sources: list[Annotated[NonBlankText, Field(max_length=500)]] = Field(default_factory=list, max_length=50)


class ContextItem(BaseModel):
    """Something that a recent message mentions, or that the caller stated; without `session_id`, of every session."""

    id: str
    session_id: str | None
    user_id: str
    context_type: str
    context_key: str
    context_value: Any
    relevance_score: float
    expires_at: datetime
    created_at: datetime


class TimeMention(BaseModel):
    """A time in a message: how exact it is, its words, and the moment, with the offset of the speaker."""

    model_config = ConfigDict(frozen=True)

    type: str
    text: str
    at: str


class AmountMention(BaseModel):
    """An amount of money in a message, its words, and what it is about."""

    model_config = ConfigDict(frozen=True)

    amount: float
    currency: str
    text: str
    context: str


@dataclass(frozen=True, slots=True)
class Mention:
    """Something a message mentions, to be stored as a context item until it expires."""

    message_id: str
    session_id: str
    type: str
    key: str
    value: TimeMention | AmountMention | EntityValue
    relevance: float
    expires_at: datetime


class SentimentTrend(StrEnum):
    """How the mood of a conversation changes; unknown with fewer than two signals."""

    IMPROVING = "improving"
    STABLE = "stable"
    DECLINING = "declining"
    UNKNOWN = "unknown"


class ConversationSummary(BaseModel):
    """The figures of a session; zero and empty for a session without messages."""

    has_history: bool = False
    message_count: int = 0
    duration_minutes: float = 0.0
    topics_discussed: list[str] = Field(default_factory=list)
    avg_confidence: float = 0.0
    satisfaction: float = 0.0
    sentiment_trend: SentimentTrend = SentimentTrend.UNKNOWN


class RecentMessage(BaseModel):
    """One of the last messages, with its text truncated."""

    id: str
    role: MessageRole
    content: str
    intent: str | None
    entities: dict[str, list[Any]]
    timestamp: datetime


class RelatedSession(BaseModel):
    """Another session that is relevant to the question; without a summary, `summary` holds its first user messages."""

    session_id: str
    title: str | None
    summary: str
    topic_tags: list[str]
    started_at: datetime
    last_message_at: datetime
    message_count: int
    relevance_score: float


class Outcome(StrEnum):
    """What came of something that was recommended; `suggested` when it is not known to have been tried."""

    WORKED = "worked"
    FAILED = "failed"
    SUGGESTED = "suggested"


class PastSolution(BaseModel):
    """A memory of something recommended or tried before that is relevant to the question.

    Something that was tried without a known success counts as failed: it is not to be proposed again.
    """

    memory_id: str
    content: str
    said_at: datetime
    outcome: Outcome


class KnowledgeHint(BaseModel):
    """Whether a memory clearly matches the question, and what memories refer to outside of memory."""

    sufficient: bool = False
    pointers: list[str] = Field(default_factory=list)


class PersonalizationHints(BaseModel):
    """How to answer this user, and phrases prepared for the reply; unknown fields are null or empty.

    `successful_queries` are the database queries that answered the intent well before.
    """

    name: str | None = None
    greeting: str | None = None
    last_topic: str | None = None
    language: str | None = None
    communication_style: str | None = None
    detail_level: str | None = None
    visualization: str | None = None
    topics: list[str] = Field(default_factory=list)
    goals: list[str] = Field(default_factory=list)
    instructions: list[str] = Field(default_factory=list)
    continuity: list[str] = Field(default_factory=list)
    personal_touches: list[str] = Field(default_factory=list)
    open_loops: list[str] = Field(default_factory=list)
    past_solutions: list[PastSolution] = Field(default_factory=list)
    likely_followups: list[str] = Field(default_factory=list)
    successful_queries: list[str] = Field(default_factory=list)
    left_out: list[str] = Field(default_factory=list)
    knowledge: KnowledgeHint = Field(default_factory=KnowledgeHint)


class ContextResponse(BaseModel):
    """Context for the model's prompt: `preamble` is the text, the other fields are what it was made from.

    `token_count` counts preamble and question; `memories` are those in the preamble, in its order. `context_id` names
    this context in the caller's log and in the service's.
    """

    context_id: str
    preamble: str
    token_count: int
    conversation_summary: ConversationSummary
    recent_messages: list[RecentMessage]
    active_contexts: list[ContextItem]
    user_preferences: list[LearnedPreference]
    behavioral_patterns: list[BehaviorPattern]
    related_sessions: list[RelatedSession]
    personalization_hints: PersonalizationHints
    memories: list[Memory]


EnhancementStep = Literal["continuity", "style", "example", "followups", "sources"]
"""A step of reply enhancement, in the order of application."""


class EnhancedReply(BaseModel):
    """A draft reply adapted to the user, and the steps that changed it."""

    text: str
    applied: list[EnhancementStep]


@dataclass(frozen=True, slots=True)
class SessionStatistics:
    """Aggregates over all stored messages of a session."""

    stored: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    intents: tuple[str, ...] = ()
    avg_confidence: float | None = None
    avg_feedback: float | None = None


@dataclass(frozen=True, slots=True)
class PastSession:
    """An earlier session of the user, as hints use it."""

    session_id: str
    title: str | None
    summary: str | None
    topic_tags: tuple[str, ...]
    intents: tuple[str, ...]
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ContextSnapshot:
    """The part of a context that does not depend on the question, as of a write version of the user.

    `profile` holds every memory that is valid at some moment until `valid_until`.
    """

    version: str
    valid_until: datetime
    profile: Sequence[Memory] = ()
    session: Session | None = None
    statistics: SessionStatistics = SessionStatistics()
    messages: Sequence[Message] = ()
    items: Sequence[ContextItem] = ()
    preferences: Sequence[LearnedPreference] = ()
    patterns: Sequence[BehaviorPattern] = ()
    sessions: Sequence[PastSession] = ()
    intents: Sequence[LearnedIntent] = ()
    user_entity_name: str | None = None
    speaker: str | None = None

    def as_of(self, now: datetime) -> ContextSnapshot:
        """Return the snapshot without the memories that are not valid and the items that have expired at `now`."""
        return replace(
            self,
            profile=[memory for memory in self.profile if _is_valid(memory, now)],
            items=[item for item in self.items if item.expires_at > now],
        )


def _is_valid(memory: Memory, now: datetime) -> bool:
    return not (
        (memory.valid_at and memory.valid_at > now)
        or (memory.invalid_at and memory.invalid_at <= now)
        or (memory.expires_at and memory.expires_at <= now)
    )
