"""Learned preferences: how a user likes to be answered, and the feedback that teaches it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from pydantic import BaseModel, Field

from graphmem.domain.session import Message


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


@dataclass(frozen=True, slots=True)
class RatedInteraction:
    """A rated message with its question and reply, and what was learned before.

    `learned_from` is the feedback on the message that was learned from last.
    """

    message: Message
    question: Message | None
    reply: Message | None
    intent_confidence: float | None
    preferences: Sequence[LearnedPreference]
    learned_from: str | None

    @property
    def intent(self) -> str | None:
        """The intent of the question, else that of the reply."""
        return next((turn.intent for turn in (self.question, self.reply) if turn and turn.intent), None)

    @property
    def database_query(self) -> str | None:
        """The database query that produced the reply, else the one recorded with the question."""
        return next((turn.sql_executed for turn in (self.reply, self.question) if turn and turn.sql_executed), None)
