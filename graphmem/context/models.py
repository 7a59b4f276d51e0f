"""Context for a model's prompt: the request, the response, and the learned state used for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from graphmem.conversations.session import EntityValue, Message, MessageRole, Session
from graphmem.memories.entity import EntityProfile
from graphmem.memories.filters import TagFilter
from graphmem.memories.memory import Memory
from graphmem.runtime.field_types import (
    MAX_METADATA_DEPTH,
    Domain,
    Metadata,
    NonBlankText,
    SessionId,
    UnitInterval,
    check_json_value,
    check_request_size,
    deduplicate,
)
from graphmem.runtime.paging import PageLimit
from graphmem.runtime.times import Instant
from graphmem.runtime.validation import RequestBody
from graphmem.tenants.owners import MessageName
from graphmem.tenants.profiles import PatternType
from graphmem.tenants.spaces import SPACES_FIELD, SpaceId, SpaceSelection, SpacesInQueryString
from graphmem.tenants.trust import StatedKind, TrustOrder


class _PatternData(BaseModel):
    model_config = ConfigDict(frozen=True)


class QueryFrequencyData(_PatternData):
    """Number of messages that a user sends on an active day: the mean and the most frequent number."""

    avg_daily: float
    typical_daily: int
    active_days: int
    common_intents: list[str]


class ConcernData(_PatternData):
    """A category that a user keeps asking about; `frequency` counts messages."""

    category: str
    frequency: int
    avg_amount: float | None
    related_intents: list[str]


class GoalFocusData(_PatternData):
    """A goal that a user keeps returning to; `frequency` counts messages."""

    goal: str
    frequency: int
    last_mentioned: datetime


class TimeOfDayData(_PatternData):
    """The hours, `HH:MM` on the user's clock, that contain a share of the messages."""

    start: str
    end: str
    messages: int
    share: float


PatternData = QueryFrequencyData | ConcernData | GoalFocusData | TimeOfDayData


@dataclass(frozen=True, slots=True)
class UserTurn:
    """One message of the user; `local` is its time on the user's clock, `plans` are memories of plans from it.

    `answered_badly` means that the user rated it or its reply badly, which weakens the patterns based on it.
    """

    message_id: str
    at: datetime
    local: datetime
    intent: str | None = None
    entities: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    plans: Sequence[str] = ()
    answered_badly: bool = False
    source_kind: StatedKind = "user"


@dataclass(frozen=True, slots=True)
class DetectedPattern:
    """A pattern as counted now; `key` is unique within its type, `evidence` are message ids, oldest first."""

    type: PatternType
    key: str
    description: str
    data: PatternData
    confidence: float
    evidence: Sequence[str]
    source_kind: StatedKind = "user"


class BehaviorPattern(BaseModel):
    """A stored pattern; `pattern_data` has the fields of the data model of its type.

    `occurrence_count` counts the messages that show it, within the days over which its type is counted.
    """

    id: str
    user_id: str
    pattern_type: PatternType
    pattern_description: str
    pattern_data: dict[str, Any]
    confidence_score: float
    occurrence_count: int
    first_detected: datetime
    last_detected: datetime
    is_active: bool
    source_kind: StatedKind = Field(
        "user", exclude_if=lambda kind: kind == "user", description="Least trusted source of the messages that show it."
    )


class PreferenceType(StrEnum):
    """The subject of a learned preference."""

    COMMUNICATION = "communication"
    VISUALIZATION = "visualization"
    DETAIL_LEVEL = "detail_level"
    TOPICS = "topics"


class PreferenceKey(NamedTuple):
    """The identity of a user's preference; a type with one value per user has its own name as `key`."""

    type: PreferenceType
    key: str


class PreferenceSource(BaseModel):
    """The messages a preference was learned from: the latest, and the latest ones in order."""

    message_id: str | None = None
    message_ids: list[str] = Field(default_factory=list)


class LearnedPreference(BaseModel):
    """How a user likes to be answered, learned from feedback and from what they asked for.

    `preference_value` is `{field: value}`; the field `avoid` names what the user does not want.
    """

    id: str
    user_id: str
    preference_type: PreferenceType
    preference_key: str
    preference_value: dict[str, str]
    confidence_score: float
    learned_from: PreferenceSource
    frequency: int
    last_observed: datetime
    created_at: datetime
    updated_at: datetime
    source_kind: StatedKind = Field(
        "user", exclude_if=lambda kind: kind == "user", description="Source that stated it."
    )

    @property
    def type_and_key(self) -> PreferenceKey:
        """The identity of this preference among the user's."""
        return PreferenceKey(self.preference_type, self.preference_key)


class LearnedIntent(BaseModel):
    """How well an intent of the user is understood, and the latest database queries that answered it well."""

    intent: str
    confidence_score: float
    positive: int
    negative: int
    successful_queries: list[str]
    created_at: datetime
    updated_at: datetime


class FeedbackVerdict(StrEnum):
    """The meaning of a score for a reply."""

    POSITIVE = "positive"
    NEUTRAL = "neutral"
    NEGATIVE = "negative"


MIN_POSITIVE_SCORE = 4
"""Minimum score of positive feedback."""

MAX_NEGATIVE_SCORE = 2
"""Maximum score of negative feedback."""


def verdict_for_score(score: int) -> FeedbackVerdict:
    """Return the verdict for a score: positive from 4, negative up to 2."""
    if score >= MIN_POSITIVE_SCORE:
        return FeedbackVerdict.POSITIVE
    return FeedbackVerdict.NEGATIVE if score <= MAX_NEGATIVE_SCORE else FeedbackVerdict.NEUTRAL


class FeedbackResult(BaseModel):
    """What was learned from a user's feedback on a message; `confidence` is the new confidence of that message.

    `preferences` are the preferences that changed; `intent_confidence` is None where the intent was not judged.
    """

    message_id: str
    score: int
    verdict: FeedbackVerdict
    confidence: float
    intent: str | None = None
    intent_confidence: float | None = None
    issues: list[str] = Field(default_factory=list)
    preferences: list[LearnedPreference] = Field(default_factory=list)
    credited: list[str] = Field(default_factory=list)


class Lesson(NamedTuple):
    """A lesson from feedback: its verdict and its comment, on one line."""

    verdict: FeedbackVerdict
    text: str


@dataclass(frozen=True, slots=True)
class RatedInteraction:
    """A rated message with its question and reply, and the lessons learned before.

    `lessons` are the lessons from feedback on the message, oldest first: each verdict teaches once, however often the
    rating changes.
    """

    message: Message
    question: Message | None
    reply: Message | None
    intent_confidence: float | None
    preferences: Sequence[LearnedPreference]
    lessons: Sequence[Lesson]
    rating_source_kind: StatedKind = "user"
    """Source of the current rating."""

    @property
    def verdict(self) -> FeedbackVerdict | None:
        """The verdict of the current rating; None if nothing was learned from a rating."""
        score = self.message.feedback_score
        return None if score is None or not self.lessons else verdict_for_score(score)

    @property
    def intent(self) -> str | None:
        """The intent of the question, else that of the reply."""
        return next((turn.intent for turn in (self.question, self.reply) if turn and turn.intent), None)

    @property
    def database_query(self) -> str | None:
        """The database query that produced the reply, else the one recorded with the question."""
        return next((turn.sql_executed for turn in (self.reply, self.question) if turn and turn.sql_executed), None)


MAX_QUESTION_LENGTH = 100_000
"""Maximum length of a question, in characters; the same as for a message."""

DEFAULT_TOKEN_BUDGET = 2000
"""Tokens of preamble and question together."""

MAX_ITEM_SECONDS = 30 * 24 * 3600
"""Maximum lifetime of a caller's context item, in seconds."""


class ContextRequest(RequestBody):
    """A question that is about to be sent to a model; without one, the start of a conversation.

    `top` limits the memories chosen by relevance, in addition to the profile. `sources` adds to every bullet when and
    in which session it was said. `profile_pack` is what the caller knows about the user; `name` and `goals` are used.
    Set `recent_messages` to false if you send the messages of the session to the model yourself. With `valid_as_of` or
    `known_as_of`, the context is as of that time.
    """

    question: NonBlankText | None = Field(None, max_length=MAX_QUESTION_LENGTH)
    session_id: SessionId | None = None
    intent: NonBlankText | None = Field(None, max_length=200)
    domain: Domain | None = None
    tags: TagFilter | None = Field(
        None,
        description="Only memories with these tags and without those in `none`; messages by their memories.",
    )
    domains: list[Domain] = Field(
        default_factory=list, max_length=10, description="Further domains of the question, in addition to `domain`."
    )
    token_budget: int = Field(DEFAULT_TOKEN_BUDGET, ge=1, le=1_000_000)
    top: int = Field(10, ge=0, le=50)
    sources: bool = False
    recent_messages: bool = True
    profiles: bool = Field(True, description="Whether profiles of the entities that the question names come first.")
    profile_pack: Metadata = Field(default_factory=dict)
    valid_as_of: Instant | None = None
    known_as_of: Instant | None = None
    min_trust: StatedKind | None = Field(
        None, description="Only memories and messages from sources that are trusted at least as much as this one."
    )
    spaces: SpaceSelection = SPACES_FIELD
    space: SpaceId | None = Field(
        None, description="The space that shares the session; defaults to the user's own memory."
    )

    @property
    def question_text(self) -> str:
        """The question, or an empty string."""
        return self.question or ""

    @property
    def requested_domains(self) -> list[str]:
        """The distinct domains that the caller names."""
        return deduplicate([*filter(None, [self.domain]), *self.domains])

    @property
    def is_past(self) -> bool:
        """Whether the context of an earlier time is requested."""
        return self.valid_as_of is not None or self.known_as_of is not None

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        return check_request_size(self)


class ContextItemIn(RequestBody):
    """A context item that the caller states; it replaces one of the same type, key and session.

    Contexts use goals, preferences and topics until `ttl` seconds have passed, in one session or, without `session_id`,
    in all.
    """

    type: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=64, examples=["topic", "preference", "goal"])]
    key: NonBlankText = Field(max_length=200, description="What the item is about, such as `budget`.")
    value: JsonValue
    relevance: UnitInterval = 0.8
    ttl: int = Field(7200, ge=1, le=MAX_ITEM_SECONDS, description="Seconds until it expires.")
    session_id: SessionId | None = None

    @model_validator(mode="after")
    def _check_value(self) -> Self:
        check_json_value(self.value, MAX_METADATA_DEPTH)
        return check_request_size(self)


class EnhanceIn(RequestBody):
    """A draft reply, the question that it answers, and what it rests on.

    A source is the id of a memory or a message, or the name of an external source.
    """

    reply: NonBlankText = Field(max_length=MAX_QUESTION_LENGTH)
    question: NonBlankText | None = Field(
        None, max_length=MAX_QUESTION_LENGTH, description="The question that the reply answers."
    )
    sources: list[Annotated[NonBlankText, Field(max_length=500)]] = Field(
        default_factory=list,
        max_length=50,
        description="What the reply rests on: ids of memories or messages, or names of external sources.",
    )


class ContextItem(BaseModel):
    """Something that a recent message mentions, or that the caller stated; without `session_id`, for all sessions."""

    id: str
    session_id: str | None
    user_id: str
    context_type: str
    context_key: str
    context_value: Any
    relevance_score: float
    expires_at: datetime
    created_at: datetime
    source_kind: StatedKind = Field(
        "user", exclude_if=lambda kind: kind == "user", description="Source that mentioned or stated it."
    )


class TimeMention(BaseModel):
    """A time in a message: its precision, its words, and the moment, with the speaker's offset.

    A weekend, a quarter and a range of dates end before `until`.
    """

    model_config = ConfigDict(frozen=True)

    type: str
    text: str
    at: str
    until: str | None = None


class AmountMention(BaseModel):
    """An amount of money in a message, its words, and its topic."""

    model_config = ConfigDict(frozen=True)

    amount: float
    currency: str
    text: str
    context: str


@dataclass(frozen=True, slots=True)
class Mention:
    """Something mentioned in a message, to store as a context item until it expires."""

    message_id: str
    session_id: str
    type: str
    key: str
    value: TimeMention | AmountMention | EntityValue
    relevance: float
    expires_at: datetime
    stated_by: tuple[StatedKind, ...] = ("user",)


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
    """Outcome of a recommendation; `suggested` if it is not known whether it was tried."""

    WORKED = "worked"
    FAILED = "failed"
    SUGGESTED = "suggested"


class PastSolution(BaseModel):
    """A memory of something recommended or tried before that is relevant to the question.

    Something that was tried without a known success counts as failed, so that it is not proposed again.
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
    profiles: list[EntityProfile] = Field(
        default_factory=list,
        exclude_if=lambda profiles: not profiles,
        description="Profiles of entities that the question names, as in the preamble.",
    )


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
    """An earlier session of the user, for hints."""

    session_id: str
    title: str | None
    summary: str | None
    topic_tags: tuple[str, ...]
    intents: tuple[str, ...]
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ContextSnapshot:
    """The part of a context that does not depend on the question, as of a write version of the user.

    `profile` holds every memory that is valid at some moment until `valid_until`, `contested` the memories contesting
    others.
    """

    version: str
    valid_until: datetime
    profile: Sequence[Memory] = ()
    contested: Sequence[Memory] = ()
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

    def trusted_as_much_as(self, kind: StatedKind | None, order: TrustOrder) -> ContextSnapshot:
        """Return the snapshot without content from sources trusted less than `kind`; None keeps everything.

        Summaries and topics of sessions are left out, since they combine several memories.
        """
        if kind is None:
            return self
        return replace(
            self,
            session=self.session and self.session.model_copy(update={"summary": None, "intent_sequence": []}),
            statistics=replace(self.statistics, intents=()),
            sessions=[],
            profile=[memory for memory in self.profile if order.passes(memory.source.trust_kind, kind)],
            items=[item for item in self.items if order.passes(item.source_kind, kind)],
            preferences=[wish for wish in self.preferences if order.passes(wish.source_kind, kind)],
            patterns=[pattern for pattern in self.patterns if order.passes(pattern.source_kind, kind)],
            contested=[memory for memory in self.contested if order.passes(memory.source.trust_kind, kind)],
            messages=[one for one in self.messages if order.passes(order.least_trusted(one.stated_by), kind)],
        )

    def tagged(self, tags: TagFilter | None) -> ContextSnapshot:
        """Return the snapshot without the memories that a tag filter excludes."""
        if tags is None:
            return self
        return replace(
            self,
            profile=[memory for memory in self.profile if tags.passes(memory.tags)],
            contested=[memory for memory in self.contested if tags.passes(memory.tags)],
        )

    def as_of(self, now: datetime) -> ContextSnapshot:
        """Return the snapshot without the memories not valid and the items expired at `now`."""
        return replace(
            self,
            profile=[memory for memory in self.profile if _is_valid(memory, now)],
            contested=[memory for memory in self.contested if _is_valid(memory, now)],
            items=[item for item in self.items if item.expires_at > now],
        )


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The messages that may be quoted, related sessions, best first, and when messages were said."""

    quotable: frozenset[MessageName] = frozenset()
    sessions: Sequence[RelatedSession] = ()
    said_at: Mapping[MessageName, datetime] = field(default_factory=dict)


def _is_valid(memory: Memory, now: datetime) -> bool:
    return not (
        (memory.valid_at and memory.valid_at > now)
        or (memory.invalid_at and memory.invalid_at <= now)
        or (memory.expires_at and memory.expires_at <= now)
    )


MAX_USES = 1_000
"""Maximum contexts remembered per user; the latest ones."""

MAX_MEMORIES_OF_USE = 200
"""Maximum memories remembered per context; the first ones."""


@dataclass(frozen=True, slots=True)
class ContextUse:
    """The memories of one context, until it expires, and the ids of the spaces that some of them belong to."""

    context_id: str
    session_id: str | None
    memory_ids: Sequence[str]
    created_at: datetime
    expires_at: datetime
    spaces: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RatedContext:
    """The memories that a rating credits, and when it was stored."""

    credited: Sequence[str]
    at: datetime


AnswerScore = Annotated[int, Field(ge=1, le=5, strict=True)]
"""Rating of a context's answer, from 1 to 5."""


class ContextFeedbackIn(RequestBody):
    """A rating of the answer that a context led to."""

    score: AnswerScore


class ContextFeedbackResult(BaseModel):
    """What a rating did: the memories of the context that it strengthened; none when it is not positive or repeated."""

    context_id: str
    score: int
    verdict: FeedbackVerdict
    credited: list[str]


class MemoryUse(BaseModel):
    """One context that held a memory; `score` is None for an answer that nobody has rated."""

    context_id: str
    session_id: str | None
    at: datetime
    score: int | None
    verdict: FeedbackVerdict | None
    rated_at: datetime | None


class MemoryUsesQuery(BaseModel):
    """How many contexts to list."""

    limit: PageLimit = 50


class ContextItemsQuery(BaseModel):
    """The context items to list."""

    session_id: str | None = Field(None, max_length=255)


class ProfileQuery(SpacesInQueryString):
    """The profile to read."""

    domain: Domain | None = Field(None, description="Include memories of this domain.")
