"""What a user's verdict on a message teaches: what to do again, what went wrong, how sure to be (TRUE-22)."""

from __future__ import annotations

from datetime import datetime

from graphmem.context.cue_patterns import ISSUE_PATTERNS
from graphmem.context.preferences import (
    LANGUAGE_KEY,
    apply_signals,
    blend_confidence,
    extract_stated_preferences,
    signals_from_interaction,
    weaken_preferences,
)
from graphmem.domain.context_models import FeedbackResult, FeedbackVerdict, PreferenceType
from graphmem.domain.identity import Owner
from graphmem.domain.times import Clock
from graphmem.errors import InvalidInput
from graphmem.metrics import PREFERENCE_UPDATES
from graphmem.store.context import ContextStore
from graphmem.store.context_mapping import FeedbackUpdate, RatedInteraction

LOWEST_SCORE, HIGHEST_SCORE = 1, 5
MIN_POSITIVE_SCORE, MAX_NEGATIVE_SCORE = 4, 2
UNRATED_CONFIDENCE = 0.5
"""How sure a message or an intent is that nobody has judged."""

_DOUBTED_PREFERENCES = {
    "too_long": (PreferenceType.DETAIL_LEVEL.value, PreferenceType.DETAIL_LEVEL.value),
    "too_short": (PreferenceType.DETAIL_LEVEL.value, PreferenceType.DETAIL_LEVEL.value),
    "tone": (PreferenceType.COMMUNICATION.value, PreferenceType.COMMUNICATION.value),
    "too_technical": (PreferenceType.COMMUNICATION.value, PreferenceType.COMMUNICATION.value),
    "too_simple": (PreferenceType.COMMUNICATION.value, PreferenceType.COMMUNICATION.value),
    "language": (PreferenceType.COMMUNICATION.value, LANGUAGE_KEY),
    "presentation": (PreferenceType.VISUALIZATION.value, PreferenceType.VISUALIZATION.value),
}
"""Which learned preference an issue casts doubt on."""

UNSPECIFIED_ISSUE = "unspecified"


class FeedbackLearner:
    """Learns from verdicts on messages."""

    def __init__(self, store: ContextStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def learn(self, owner: Owner, message_id: str, score: int, text: str | None) -> FeedbackResult:
        """Learn from a verdict of 1 to 5 with what the user said to it; the same verdict again teaches nothing.

        From 4 on the intent, the database query and the preferences of the interaction are reinforced; up to 2 it is
        analysed and what it calls in doubt is adjusted; 3 does neither. The message's confidence always follows.
        Raises InvalidInput for another score, NotFound for an unknown message.
        """
        if not LOWEST_SCORE <= score <= HIGHEST_SCORE:
            raise InvalidInput(
                f"A score lies between {LOWEST_SCORE} and {HIGHEST_SCORE}.",
                errors=[{"loc": ["score"], "msg": "out of range"}],
            )
        now = self._clock()
        rated, lesson = await self._store.save_feedback(
            owner, message_id, score, text, lambda each: decide_update(each, score, text, owner.user_id, now)
        )
        verdict = verdict_for_score(score)
        if lesson is None:
            return FeedbackResult(
                message_id=message_id,
                score=score,
                verdict=verdict,
                confidence=rated.message.confidence if rated.message.confidence is not None else UNRATED_CONFIDENCE,
            )
        PREFERENCE_UPDATES.inc(len(lesson.preferences))
        return FeedbackResult(
            message_id=message_id,
            score=score,
            verdict=verdict,
            confidence=lesson.confidence,
            intent=lesson.intent,
            intent_confidence=lesson.intent_confidence,
            issues=detect_issues(text or "") if verdict is FeedbackVerdict.NEGATIVE else [],
            preferences=list(lesson.preferences),
        )


def verdict_for_score(score: int) -> FeedbackVerdict:
    """Return what a score says: from 4 on good, up to 2 bad."""
    if score >= MIN_POSITIVE_SCORE:
        return FeedbackVerdict.POSITIVE
    return FeedbackVerdict.NEGATIVE if score <= MAX_NEGATIVE_SCORE else FeedbackVerdict.NEUTRAL


def detect_issues(text: str) -> list[str]:
    """Return what a complaint is about, `unspecified` when it does not say."""
    return [name for name, pattern in ISSUE_PATTERNS.items() if pattern.search(text)] or [UNSPECIFIED_ISSUE]


def decide_update(rated: RatedInteraction, score: int, text: str | None, user_id: str, now: datetime) -> FeedbackUpdate:
    """Return what a verdict on an interaction changes."""
    before = rated.message.confidence if rated.message.confidence is not None else UNRATED_CONFIDENCE
    confidence = blend_confidence(before, (score - LOWEST_SCORE) / (HIGHEST_SCORE - LOWEST_SCORE))
    verdict = verdict_for_score(score)
    if verdict is FeedbackVerdict.NEUTRAL:
        return FeedbackUpdate(confidence)
    good = verdict is FeedbackVerdict.POSITIVE
    sides = (rated.question, rated.reply)
    intent = next((each.intent for each in sides if each and each.intent), None)
    surer = blend_confidence(
        rated.intent_confidence if rated.intent_confidence is not None else UNRATED_CONFIDENCE, 1.0 if good else 0.0
    )
    sql = next((each.sql_executed for each in reversed(sides) if each and each.sql_executed), None)
    asked = extract_stated_preferences(text or "")
    signals = [*signals_from_interaction(rated.question, rated.reply), *asked] if good else asked
    changed = apply_signals(rated.preferences, signals, user_id, rated.message.id, now)
    if not good:
        replaced = {signal.type_and_key for signal in asked}
        doubtful = {
            _DOUBTED_PREFERENCES[each] for each in detect_issues(text or "") if each in _DOUBTED_PREFERENCES
        } - replaced
        changed += weaken_preferences(rated.preferences, doubtful, now)
    return FeedbackUpdate(
        confidence=confidence,
        intent=intent,
        intent_confidence=surer if intent else None,
        positive=good,
        sql=sql if good else None,
        preferences=changed,
    )
