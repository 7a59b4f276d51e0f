"""Learned preferences: how a user likes to be answered, and the feedback that teaches it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from pydantic import BaseModel, Field

from graphmem.conversations.session import Message

REQUEST_CONFIDENCE = 0.3
"""Confidence of a preference that a single request shows; one that is repeated counts as shown by its wording."""


class PreferenceType(StrEnum):
    """What a learned preference is about."""

    COMMUNICATION = "communication"
    VISUALIZATION = "visualization"
    DETAIL_LEVEL = "detail_level"
    TOPICS = "topics"


class PreferenceKey(NamedTuple):
    """What identifies a preference of a user; a type with one value per user has its own name as `key`."""

    type: PreferenceType
    key: str


class PreferenceSource(BaseModel):
    """The messages a preference was learned from: the latest, and the latest ones in order."""

    message_id: str | None = None
    message_ids: list[str] = Field(default_factory=list)


class LearnedPreference(BaseModel):
    """How a user likes to be answered, learned from feedback and from what they asked for."""

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

    @property
    def type_and_key(self) -> PreferenceKey:
        """The identity of this preference among those of the user."""
        return PreferenceKey(self.preference_type, self.preference_key)

    @property
    def is_tentative(self) -> bool:
        """Whether it was seen in one request only, which nobody calls a preference yet."""
        return self.frequency == 1 and self.confidence_score <= REQUEST_CONFIDENCE


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
    """What a score says about a reply."""

    POSITIVE = "positive"
    NEUTRAL = "neutral"
    NEGATIVE = "negative"


MIN_POSITIVE_SCORE = 4
"""Score from which feedback is positive."""

MAX_NEGATIVE_SCORE = 2
"""Score up to which feedback is negative."""


def verdict_for_score(score: int) -> FeedbackVerdict:
    """Return what a score says: positive from 4, negative up to 2."""
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
    """Feedback that was learned from: its verdict and its comment, on one line."""

    verdict: FeedbackVerdict
    text: str


@dataclass(frozen=True, slots=True)
class RatedInteraction:
    """A rated message with its question and reply, and what was learned before.

    `lessons` are what feedback on the message has taught, oldest first: a verdict teaches once, however often the
    rating changes.
    """

    message: Message
    question: Message | None
    reply: Message | None
    intent_confidence: float | None
    preferences: Sequence[LearnedPreference]
    lessons: Sequence[Lesson]

    @property
    def verdict(self) -> FeedbackVerdict | None:
        """The verdict of the present rating; None without one that was learned from."""
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
