"""What a user's verdict on a message teaches: what to do again, what went wrong, how sure to be (TRUE-22)."""

from __future__ import annotations

from datetime import datetime

from graphmem.context.preferences import LANGUAGE_KEY, blend, learned, observed, stated, weakened
from graphmem.context.vocabulary import ISSUES
from graphmem.domain.context import FeedbackLesson, PreferenceType, Verdict
from graphmem.domain.identity import Owner
from graphmem.domain.times import Clock
from graphmem.errors import InvalidInput
from graphmem.metrics import PREFERENCE_UPDATES
from graphmem.store.context import ContextStore
from graphmem.store.context_rows import Lesson, Rated

LOWEST, HIGHEST = 1, 5
POSITIVE_FROM, NEGATIVE_TO = 4, 2
UNKNOWN_CONFIDENCE = 0.5
"""How sure a message or an intent is that nobody has judged."""

_PLACES = {
    "too_long": (PreferenceType.DETAIL_LEVEL.value, PreferenceType.DETAIL_LEVEL.value),
    "too_short": (PreferenceType.DETAIL_LEVEL.value, PreferenceType.DETAIL_LEVEL.value),
    "tone": (PreferenceType.COMMUNICATION.value, PreferenceType.COMMUNICATION.value),
    "too_technical": (PreferenceType.COMMUNICATION.value, PreferenceType.COMMUNICATION.value),
    "too_simple": (PreferenceType.COMMUNICATION.value, PreferenceType.COMMUNICATION.value),
    "language": (PreferenceType.COMMUNICATION.value, LANGUAGE_KEY),
    "presentation": (PreferenceType.VISUALIZATION.value, PreferenceType.VISUALIZATION.value),
}
"""Which learned preference an issue casts doubt on."""

UNSPECIFIED = "unspecified"


class Feedback:
    """Learns from verdicts on messages."""

    def __init__(self, store: ContextStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def learn(self, owner: Owner, message_id: str, score: int, text: str | None) -> FeedbackLesson:
        """Learn from a verdict of 1 to 5 with what the user said to it; the same verdict again teaches nothing.

        From 4 on the intent, the database query and the preferences of the interaction are reinforced; up to 2 it is
        analysed and what it calls in doubt is adjusted; 3 does neither. The message's confidence always follows.
        Raises InvalidInput for another score, NotFound for an unknown message.
        """
        if not LOWEST <= score <= HIGHEST:
            raise InvalidInput(
                f"A score lies between {LOWEST} and {HIGHEST}.", errors=[{"loc": ["score"], "msg": "out of range"}]
            )
        now = self._clock()
        rated, lesson = await self._store.learn(
            owner, message_id, score, text, lambda each: decide(each, score, text, owner.user_id, now)
        )
        verdict = verdict_of(score)
        if lesson is None:
            return FeedbackLesson(
                message_id=message_id,
                score=score,
                verdict=verdict,
                confidence=rated.message.confidence if rated.message.confidence is not None else UNKNOWN_CONFIDENCE,
            )
        PREFERENCE_UPDATES.inc(len(lesson.preferences))
        return FeedbackLesson(
            message_id=message_id,
            score=score,
            verdict=verdict,
            confidence=lesson.confidence,
            intent=lesson.intent,
            intent_confidence=lesson.intent_confidence,
            issues=issues(text or "") if verdict is Verdict.NEGATIVE else [],
            preferences=list(lesson.preferences),
        )


def verdict_of(score: int) -> Verdict:
    """Return what a score says: from 4 on good, up to 2 bad."""
    if score >= POSITIVE_FROM:
        return Verdict.POSITIVE
    return Verdict.NEGATIVE if score <= NEGATIVE_TO else Verdict.NEUTRAL


def issues(text: str) -> list[str]:
    """Return what a complaint is about, `unspecified` when it does not say."""
    return [name for name, pattern in ISSUES.items() if pattern.search(text)] or [UNSPECIFIED]


def decide(rated: Rated, score: int, text: str | None, user_id: str, now: datetime) -> Lesson:
    """Return what a verdict on an interaction changes."""
    before = rated.message.confidence if rated.message.confidence is not None else UNKNOWN_CONFIDENCE
    confidence = blend(before, (score - LOWEST) / (HIGHEST - LOWEST))
    verdict = verdict_of(score)
    if verdict is Verdict.NEUTRAL:
        return Lesson(confidence)
    good = verdict is Verdict.POSITIVE
    sides = (rated.question, rated.reply)
    intent = next((each.intent for each in sides if each and each.intent), None)
    surer = blend(
        rated.intent_confidence if rated.intent_confidence is not None else UNKNOWN_CONFIDENCE, 1.0 if good else 0.0
    )
    sql = next((each.sql_executed for each in reversed(sides) if each and each.sql_executed), None)
    asked = stated(text or "")
    signs = [*learned(rated.question, rated.reply), *asked] if good else asked
    changed = observed(rated.preferences, signs, user_id, rated.message.id, now)
    if not good:
        replaced = {sign.place for sign in asked}
        doubtful = {_PLACES[each] for each in issues(text or "") if each in _PLACES} - replaced
        changed += weakened(rated.preferences, doubtful, now)
    return Lesson(
        confidence=confidence,
        intent=intent,
        intent_confidence=surer if intent else None,
        positive=good,
        sql=sql if good else None,
        preferences=changed,
    )
