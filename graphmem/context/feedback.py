"""What feedback on a message teaches: what to repeat, what went wrong, how confident to be. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from graphmem.context import cues
from graphmem.context.learned_preferences import (
    FeedbackResult,
    FeedbackVerdict,
    LearnedPreference,
    Lesson,
    PreferenceKey,
    PreferenceType,
    RatedInteraction,
    verdict_for_score,
)
from graphmem.context.preferences import (
    LANGUAGE_KEY,
    NEW_WEIGHT,
    OLD_WEIGHT,
    PreferenceSignal,
    apply_signals,
    blend_confidence,
    extract_stated_preferences,
    signals_from_interaction,
    weaken_preferences,
)
from graphmem.conversations.session import Message

LOWEST_SCORE = 1
HIGHEST_SCORE = 5

UNRATED_CONFIDENCE = 0.5
"""Confidence of a message or an intent without feedback."""

UNSPECIFIED_ISSUE = "unspecified"
"""The issue of negative feedback that names none."""

_DETAIL_LEVEL = PreferenceKey(PreferenceType.DETAIL_LEVEL, PreferenceType.DETAIL_LEVEL.value)
_STYLE = PreferenceKey(PreferenceType.COMMUNICATION, PreferenceType.COMMUNICATION.value)
_LANGUAGE = PreferenceKey(PreferenceType.COMMUNICATION, LANGUAGE_KEY)
_FORMAT = PreferenceKey(PreferenceType.VISUALIZATION, PreferenceType.VISUALIZATION.value)

_DOUBTED_PREFERENCES = {
    "too_long": _DETAIL_LEVEL,
    "too_short": _DETAIL_LEVEL,
    "tone": _STYLE,
    "too_technical": _STYLE,
    "too_simple": _STYLE,
    "language": _LANGUAGE,
    "presentation": _FORMAT,
}
"""The learned preference that an issue weakens."""


def detect_issues(text: str) -> list[str]:
    """Return what a complaint is about, `unspecified` when it does not say."""
    return [issue for issue, pattern in cues.ISSUES.items() if pattern.search(text)] or [UNSPECIFIED_ISSUE]


def evaluate_feedback(
    interaction: RatedInteraction, score: int, text: str, technical_cues: Sequence[str], now: datetime
) -> FeedbackResult:
    """Return what feedback on an interaction changes.

    Positive feedback reinforces the intent and the preferences that the interaction shows. Negative feedback weakens
    the intent and the preferences that it complains about. Neutral feedback changes only the message's confidence. A
    rating that is changed replaces the one before it in the confidence; what its verdict has taught, it does not teach
    again, and a new comment adds what it states.
    """
    verdict = verdict_for_score(score)
    result = FeedbackResult(
        message_id=interaction.message.id,
        score=score,
        verdict=verdict,
        confidence=blend_confidence(_unrated_confidence(interaction.message), _relative(score)),
    )
    if verdict is FeedbackVerdict.NEUTRAL or Lesson(verdict, text) in interaction.lessons:
        return result
    if any(lesson.verdict is verdict for lesson in interaction.lessons):
        issues = detect_issues(text) if verdict is FeedbackVerdict.NEGATIVE else []
        said = _apply(interaction, extract_stated_preferences(text), now)
        return result.model_copy(update={"issues": issues, "preferences": said})
    stated = extract_stated_preferences(text)
    if verdict is FeedbackVerdict.POSITIVE:
        shown = signals_from_interaction(interaction.question, interaction.reply, technical_cues)
        issues = []
        preferences = _apply(interaction, [*shown, *stated], now)
    else:
        issues = detect_issues(text)
        doubted = {_DOUBTED_PREFERENCES[issue] for issue in issues if issue in _DOUBTED_PREFERENCES}
        restated = {signal.type_and_key for signal in stated}
        preferences = _apply(interaction, stated, now) + weaken_preferences(
            interaction.preferences, doubted - restated, now
        )
    return result.model_copy(
        update={
            "intent": interaction.intent,
            "intent_confidence": _blend_intent_confidence(interaction, verdict),
            "issues": issues,
            "preferences": preferences,
        }
    )


def _apply(
    interaction: RatedInteraction, signals: Sequence[PreferenceSignal], now: datetime
) -> list[LearnedPreference]:
    return apply_signals(interaction.preferences, signals, interaction.message.user_id, interaction.message.id, now)


def _blend_intent_confidence(interaction: RatedInteraction, verdict: FeedbackVerdict) -> float | None:
    if interaction.intent is None:
        return None
    return blend_confidence(
        _or_unrated(interaction.intent_confidence), 1.0 if verdict is FeedbackVerdict.POSITIVE else 0.0
    )


def _relative(score: int) -> float:
    return (score - LOWEST_SCORE) / (HIGHEST_SCORE - LOWEST_SCORE)


def _unrated_confidence(message: Message) -> float:
    """Return the confidence that a message had before it was rated."""
    if message.confidence is None or message.feedback_score is None:
        return _or_unrated(message.confidence)
    before = (message.confidence - NEW_WEIGHT * _relative(message.feedback_score)) / OLD_WEIGHT
    return min(1.0, max(0.0, before))


def _or_unrated(confidence: float | None) -> float:
    return UNRATED_CONFIDENCE if confidence is None else confidence
