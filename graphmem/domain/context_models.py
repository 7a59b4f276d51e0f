"""What to put before the model, and what is learned from a user's conversations."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from graphmem.domain.memory import Memory
from graphmem.domain.session import MessageRole
from graphmem.domain.text import NonBlankText
from graphmem.domain.types import Domain, Id, Metadata

DEFAULT_TOKEN_BUDGET = 2000
"""Tokens of preamble and question together (TRUE-12)."""


class ContextRequest(BaseModel):
    """A question about to be put to a model; `top` is how many memories are chosen by relevance beside the profile.

    `sources` adds to every bullet where and when it was said; `profile_pack` is what the caller knows about the user:
    its `name` and `goals` are used.
    """

    model_config = ConfigDict(extra="forbid")

    question: NonBlankText
    session_id: Id | None = None
    intent: NonBlankText | None = Field(None, max_length=200)
    domain: Domain | None = None
    token_budget: int = Field(DEFAULT_TOKEN_BUDGET, ge=1, le=1_000_000)
    top: int = Field(10, ge=0, le=50)
    sources: bool = False
    profile_pack: Metadata = Field(default_factory=dict)


class ContextItem(BaseModel):
    """Something mentioned a short while ago that still holds the conversation together (TRUE-04)."""

    id: str
    session_id: str
    user_id: str
    context_type: str
    context_key: str
    context_value: Any
    relevance_score: float
    expires_at: datetime
    created_at: datetime


class PreferenceType(StrEnum):
    """What a learned preference is about (TRUE-16)."""

    COMMUNICATION = "communication"
    VISUALIZATION = "visualization"
    DETAIL_LEVEL = "detail_level"
    TOPICS = "topics"


class LearnedPreference(BaseModel):
    """How a user likes to be answered, learned from feedback and from what they asked for (TRUE-05)."""

    id: str
    user_id: str
    preference_type: PreferenceType
    preference_key: str
    preference_value: dict[str, Any]
    confidence_score: float
    learned_from: dict[str, Any]
    frequency: int
    last_observed: datetime
    created_at: datetime
    updated_at: datetime


class PatternType(StrEnum):
    """Families of behaviour patterns (TRUE-13)."""

    QUERY_FREQUENCY = "query_frequency"
    SPENDING_CONCERN = "spending_concern"
    GOAL_FOCUS = "goal_focus"
    TIME_OF_DAY = "time_of_day"


class BehaviorPattern(BaseModel):
    """What a user keeps doing, counted over their messages (TRUE-06)."""

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


class SentimentTrend(StrEnum):
    """Where the mood of a conversation goes; unknown without two signals."""

    IMPROVING = "improving"
    STABLE = "stable"
    DECLINING = "declining"
    UNKNOWN = "unknown"


class ConversationSummary(BaseModel):
    """A session in numbers (TRUE-10); zero and empty where nothing was said yet."""

    has_history: bool = False
    message_count: int = 0
    duration_minutes: float = 0.0
    topics_discussed: list[str] = Field(default_factory=list)
    avg_confidence: float = 0.0
    satisfaction: float = 0.0
    sentiment_trend: SentimentTrend = SentimentTrend.UNKNOWN


class RecentMessage(BaseModel):
    """One of the last turns, its text cut (TRUE-11)."""

    id: str
    role: MessageRole
    content: str
    intent: str | None
    entities: dict[str, list[Any]]
    timestamp: datetime


class RelatedSession(BaseModel):
    """Another conversation that bears on the question; without a summary, how it went in the user's first words."""

    session_id: str
    title: str | None
    summary: str
    topic_tags: list[str]
    started_at: datetime
    last_message_at: datetime
    message_count: int
    relevance_score: float


class PastSolution(BaseModel):
    """Something recommended or tried before that bears on the question: worth offering, not worth repeating blindly."""

    memory_id: str
    content: str
    said_at: datetime
    tried: bool


class KnowledgeHint(BaseModel):
    """Whether memory has something on the question, and where memories point to outside of it (QUINN-38)."""

    sufficient: bool = False
    pointers: list[str] = Field(default_factory=list)


class PersonalizationHints(BaseModel):
    """How to answer this user, and phrases prepared for it; what is unknown is absent."""

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
    left_out: list[str] = Field(default_factory=list)
    knowledge: KnowledgeHint = Field(default_factory=KnowledgeHint)


class ContextResponse(BaseModel):
    """What to put before the model: `preamble` is the text, the rest what it was made from.

    `token_count` counts preamble and question; `memories` are those told in the preamble, in its order.
    """

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


class FeedbackVerdict(StrEnum):
    """What a score says about a reply (TRUE-22)."""

    POSITIVE = "positive"
    NEUTRAL = "neutral"
    NEGATIVE = "negative"


class FeedbackResult(BaseModel):
    """What was learned from a user's verdict on a message; `confidence` is that message's new confidence."""

    message_id: str
    score: int
    verdict: FeedbackVerdict
    confidence: float
    intent: str | None = None
    intent_confidence: float | None = None
    issues: list[str] = Field(default_factory=list)
    preferences: list[LearnedPreference] = Field(default_factory=list)


EnhancementStep = Literal["continuity", "style", "example", "followups"]
"""A step of reply enhancement, in the order they are taken (TRUE-20)."""


class EnhancedReply(BaseModel):
    """A draft reply made this user's, and the steps that changed it."""

    text: str
    applied: list[EnhancementStep]
