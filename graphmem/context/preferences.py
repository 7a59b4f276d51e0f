"""How a user likes to be answered: read from feedback and from what they ask for. Pure."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from graphmem.context import cues
from graphmem.context.models import (
    REQUEST_CONFIDENCE,
    FeedbackResult,
    FeedbackVerdict,
    LearnedPreference,
    Lesson,
    PreferenceKey,
    PreferenceSource,
    PreferenceType,
    RatedInteraction,
    verdict_for_score,
)
from graphmem.conversations.session import Message

OLD_WEIGHT = 0.7
"""Share of the old confidence when something is observed again."""

NEW_WEIGHT = 0.3
"""Share of the new confidence when something is observed again."""

CUE_CONFIDENCE = 0.7
"""Confidence of a preference shown by the wording of a well-rated question."""

STATED_CONFIDENCE = 0.9
"""Confidence of a preference that the user stated."""

MIN_USED_CONFIDENCE = 0.5
"""Confidence from which a preference is used."""

MAX_SOURCES = 50
"""Message ids stored with a preference at most; the latest are kept."""

STALE_DAYS = 90
"""Days without an observation after which a preference too doubtful to be used is pruned."""

MAX_TOPICS = 50
"""Topics of a user that pruning keeps at most."""

LANGUAGE_KEY = "language"
"""Key of the preferred language, which is stored beside the style of communication."""


@dataclass(frozen=True, slots=True)
class PreferenceSignal:
    """One observation of a preference; without `key` it is about its whole type."""

    type: PreferenceType
    value: Mapping[str, str]
    confidence: float
    key: str | None = None

    @property
    def type_and_key(self) -> PreferenceKey:
        """The identity of the preference that was observed."""
        return PreferenceKey(self.type, self.key or self.type.value)

    @property
    def is_request(self) -> bool:
        """Whether it was asked of one answer, not of all to come."""
        return self.confidence <= REQUEST_CONFIDENCE


def blend_confidence(old: float, new: float) -> float:
    """Return the confidence of something observed again: `0.7 · old + 0.3 · new`."""
    return OLD_WEIGHT * old + NEW_WEIGHT * new


def detect_communication_style(question: str, technical_cues: Sequence[str]) -> str | None:
    """Return the style with most cues in a question, the first of equals; None without any cue."""
    return _best_matching_cue(question, {**cues.STYLE, "technical": cues.compile_literal_cues(technical_cues)})


def signals_from_interaction(
    question: Message | None, reply: Message | None, technical_cues: Sequence[str]
) -> list[PreferenceSignal]:
    """Return the preferences shown by a well-rated interaction: style, format, level of detail and topics."""
    text = question.content if question else ""
    signals = []
    if style := detect_communication_style(text, technical_cues):
        signals.append(PreferenceSignal(PreferenceType.COMMUNICATION, {"style": style}, CUE_CONFIDENCE))
    if shown := _requested_format(text, reply):
        signals.append(PreferenceSignal(PreferenceType.VISUALIZATION, {"format": shown}, CUE_CONFIDENCE))
    if level := _best_matching_cue(text, cues.LEVEL):
        signals.append(PreferenceSignal(PreferenceType.DETAIL_LEVEL, {"level": level}, CUE_CONFIDENCE))
    signals += [
        PreferenceSignal(PreferenceType.TOPICS, {"topic": topic}, CUE_CONFIDENCE, key=topic)
        for topic in _question_topics(question)
    ]
    return signals


def extract_stated_preferences(text: str) -> list[PreferenceSignal]:
    """Return how a user asks to be answered; of two contrary requests the later one counts.

    What is asked of one answer only, as in "Show me a chart of my rent", has the confidence of a single request.
    """
    matches = [
        (match.start(), request) for request in cues.STATED_PREFERENCES for match in request.pattern.finditer(text)
    ]
    signals = [
        PreferenceSignal(
            request.type,
            request.value,
            STATED_CONFIDENCE if _is_lasting(_sentence_at(text, start)) else REQUEST_CONFIDENCE,
            LANGUAGE_KEY if LANGUAGE_KEY in request.value else None,
        )
        for start, request in sorted(matches, key=lambda match: match[0])
    ]
    return list({signal.type_and_key: signal for signal in signals}.values())


def apply_signals(
    current: Sequence[LearnedPreference],
    signals: Sequence[PreferenceSignal],
    user_id: str,
    message_id: str,
    now: datetime,
) -> list[LearnedPreference]:
    """Return the preferences that signals create or change.

    A preference observed again gets the new value, a blended confidence and one more in its frequency. A single request
    becomes a preference when it is repeated, and does not change one that says otherwise.
    """
    known = {preference.type_and_key: preference for preference in current}
    changed: dict[PreferenceKey, LearnedPreference] = {}
    for signal in signals:
        before = changed.get(signal.type_and_key) or known.get(signal.type_and_key)
        after = _observe_again(before, signal, message_id, now) if before else _create(signal, user_id, message_id, now)
        if after is not before:
            changed[signal.type_and_key] = after
    return list(changed.values())


def weaken_preferences(
    current: Sequence[LearnedPreference], keys: Collection[PreferenceKey], now: datetime
) -> list[LearnedPreference]:
    """Return the preferences of some keys with their confidence blended with 0."""
    return [
        preference.model_copy(
            update={"confidence_score": blend_confidence(preference.confidence_score, 0.0), "updated_at": now}
        )
        for preference in current
        if preference.type_and_key in keys
    ]


def select_stale_preferences(current: Sequence[LearnedPreference], now: datetime) -> list[LearnedPreference]:
    """Return the preferences to prune: doubtful ones not observed for 90 days, and the rarest topics beyond 50."""
    doubtful = [
        preference
        for preference in current
        if preference.confidence_score < MIN_USED_CONFIDENCE
        and preference.last_observed < now - timedelta(days=STALE_DAYS)
    ]
    topics = [
        preference
        for preference in current
        if preference.preference_type is PreferenceType.TOPICS and preference not in doubtful
    ]
    topics.sort(key=lambda topic: (-topic.frequency * topic.confidence_score, topic.preference_key))
    return doubtful + topics[MAX_TOPICS:]


def preference_instruction(preference: LearnedPreference) -> str | None:
    """Return a learned preference as an instruction to the model; None for one that is too doubtful."""
    if preference.confidence_score < MIN_USED_CONFIDENCE:
        return None
    value = preference.preference_value
    match preference.preference_type:
        case PreferenceType.COMMUNICATION if "language" in value:
            return f"Answer in {value['language']}."
        case PreferenceType.COMMUNICATION if "style" in value:
            return _STYLE_INSTRUCTIONS.get(value["style"])
        case PreferenceType.DETAIL_LEVEL:
            return _LEVEL_INSTRUCTIONS.get(value.get("level", ""))
        case PreferenceType.VISUALIZATION:
            return _FORMAT_INSTRUCTIONS.get(value.get("format", ""))
    return None


def confident_value(preferences: Sequence[LearnedPreference], kind: PreferenceType, field: str) -> str | None:
    """Return the value of one field (`style`, `language`, `level`, `format`) of a preference confident enough."""
    for preference in preferences:
        if (
            preference.preference_type is kind
            and field in preference.preference_value
            and preference.confidence_score >= MIN_USED_CONFIDENCE
        ):
            return preference.preference_value[field]
    return None


_STYLE_INSTRUCTIONS = {
    "formal": "Keep a formal tone.",
    "casual": "Keep a casual tone.",
    "technical": "Use the technical terms of the field.",
    "simple": "Use simple words and explain technical terms.",
}
_LEVEL_INSTRUCTIONS = {"brief": "Keep answers short.", "detailed": "Answer in detail."}
_FORMAT_INSTRUCTIONS = {
    "chart": "Show figures as a chart where that helps.",
    "table": "Show figures in a table where that helps.",
    "list": "Use bullet points where that helps.",
    "text": "Answer in words, without charts.",
}


def _create(signal: PreferenceSignal, user_id: str, message_id: str, now: datetime) -> LearnedPreference:
    return LearnedPreference(
        id=str(uuid.uuid4()),
        user_id=user_id,
        preference_type=signal.type,
        preference_key=signal.type_and_key.key,
        preference_value=dict(signal.value),
        confidence_score=signal.confidence,
        learned_from=PreferenceSource(message_id=message_id, message_ids=[message_id]),
        frequency=1,
        last_observed=now,
        created_at=now,
        updated_at=now,
    )


def _is_lasting(sentence: str) -> bool:
    return cues.TASK.search(sentence) is None or cues.LASTING.search(sentence) is not None


def _sentence_at(text: str, position: int) -> str:
    start = max(text.rfind(end, 0, position) for end in ".!?\n") + 1
    match = re.compile(r"[^.!?\n]*").match(text, max(start, 0))
    return match[0] if match else ""


def _observe_again(
    before: LearnedPreference, signal: PreferenceSignal, message_id: str, now: datetime
) -> LearnedPreference:
    says_same = before.preference_value == dict(signal.value)
    if signal.is_request and not says_same and not before.is_tentative:
        return before
    is_first = signal.is_request and not says_same
    observed = CUE_CONFIDENCE if signal.is_request and says_same else signal.confidence
    message_ids = [*before.learned_from.message_ids, message_id][-MAX_SOURCES:]
    return before.model_copy(
        update={
            "preference_value": dict(signal.value),
            "confidence_score": observed
            if before.is_tentative
            else blend_confidence(before.confidence_score, observed),
            "learned_from": PreferenceSource(message_id=message_id, message_ids=message_ids),
            "frequency": before.frequency if is_first else before.frequency + 1,
            "last_observed": now,
            "updated_at": now,
        }
    )


def _best_matching_cue(text: str, patterns_by_name: Mapping[str, Sequence[re.Pattern[str]]]) -> str | None:
    counts = {
        name: sum(1 for pattern in patterns if pattern.search(text)) for name, patterns in patterns_by_name.items()
    }
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else None


def _requested_format(text: str, reply: Message | None) -> str | None:
    """Return the format that the question asks for, else the format of the reply."""
    if requested := _best_matching_cue(text, cues.FORMAT):
        return requested
    rich_content = (reply.rich_content if reply else None) or {}
    content_type = str(rich_content.get("type") or "").casefold()
    return next((name for name in cues.FORMAT if name in content_type), None)


def _question_topics(question: Message | None) -> list[str]:
    """Return the topics and categories that the sender named, else the intent."""
    if question is None:
        return []
    named = [str(value) for kind in ("topic", "category") for value in question.entities.get(kind, ())]
    topics = (topic.strip().casefold() for topic in named or [question.intent or ""])
    return list(dict.fromkeys(topic for topic in topics if topic))


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
