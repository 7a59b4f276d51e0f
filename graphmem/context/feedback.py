"""What feedback on a message teaches: what to repeat, what went wrong, how confident to be. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from graphmem.context import cues
from graphmem.context.preferences import (
    LANGUAGE_KEY,
    PreferenceSignal,
    apply_signals,
    blend_confidence,
    extract_stated_preferences,
    signals_from_interaction,
    weaken_preferences,
)
from graphmem.domain.learned_preferences import (
    FeedbackResult,
    FeedbackVerdict,
    LearnedPreference,
    PreferenceKey,
    PreferenceType,
    RatedInteraction,
    verdict_for_score,
)

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


def unchanged_result(interaction: RatedInteraction, score: int) -> FeedbackResult:
    """Return the result of feedback that was learned from before."""
    return FeedbackResult(
        message_id=interaction.message.id,
        score=score,
        verdict=verdict_for_score(score),
        confidence=_or_unrated(interaction.message.confidence),
    )


def evaluate_feedback(
    interaction: RatedInteraction, score: int, text: str, technical_cues: Sequence[str], now: datetime
) -> FeedbackResult:
    """Return what feedback on an interaction changes.

    Positive feedback reinforces the intent and the preferences that the interaction shows. Negative feedback weakens
    the intent and the preferences that it complains about. Neutral feedback changes only the message's confidence.
    """
    relative_score = (score - LOWEST_SCORE) / (HIGHEST_SCORE - LOWEST_SCORE)
    verdict = verdict_for_score(score)
    result = FeedbackResult(
        message_id=interaction.message.id,
        score=score,
        verdict=verdict,
        confidence=blend_confidence(_or_unrated(interaction.message.confidence), relative_score),
    )
    if verdict is FeedbackVerdict.NEUTRAL:
        return result
    stated = extract_stated_preferences(text)
    if verdict is FeedbackVerdict.POSITIVE:
        shown = signals_from_interaction(interaction.question, interaction.reply, technical_cues)
        issues: list[str] = []
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


def _or_unrated(confidence: float | None) -> float:
    return UNRATED_CONFIDENCE if confidence is None else confidence
