"""How to answer a user: preferences read from feedback and from the user's wishes. Pure."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from graphmem.context import cues
from graphmem.context.models import (
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
from graphmem.context.stated_wishes import StatedWish, find_stated_wishes
from graphmem.conversations.session import Message
from graphmem.ingestion.answers import Polarity, Wish, WishAbout
from graphmem.tenants.trust import DEFAULT_ORDER, Effect, StatedKind, TrustOrder

OLD_WEIGHT = 0.7
"""Weight of the old confidence when something is observed again."""

NEW_WEIGHT = 0.3
"""Weight of the new confidence when something is observed again."""

CUE_CONFIDENCE = 0.7
"""Confidence of a preference shown by the wording of a well-rated question."""

STATED_CONFIDENCE = 0.9
"""Confidence of a preference that the user stated."""

MIN_USED_CONFIDENCE = 0.5
"""Minimum confidence for a preference to be used."""

MAX_SOURCES = 50
"""Maximum message ids stored with a preference; the latest are kept."""

STALE_DAYS = 90
"""Days without an observation after which a preference with too little confidence to be used is pruned."""

MAX_TOPICS = 50
"""Maximum topics of a user that pruning keeps."""

WITHDRAWN_CONFIDENCE = 0.3
"""Maximum confidence of a preference whose opposite the user stated; below the minimum for use."""

MAX_LANGUAGE_CHARACTERS = 40
"""Maximum characters of a language's name."""

LANGUAGE_KEY = "language"
"""Key of the preferred language, which is stored next to the communication style."""

AVOID = "avoid"
"""Field of a preference against something, which has its own key (`avoid_key`)."""

_STYLES = ("formal", "casual", "simple", "technical")
_LEVELS = ("brief", "detailed")
_FORMATS = ("chart", "table", "list", "text")


@dataclass(frozen=True, slots=True)
class PreferenceSignal:
    """One observation of a preference; without `key`, it is about the whole type."""

    type: PreferenceType
    value: Mapping[str, str]
    confidence: float
    key: str | None = None
    source_kind: StatedKind = "user"

    @property
    def type_and_key(self) -> PreferenceKey:
        """The identity of the observed preference."""
        return PreferenceKey(self.type, self.key or self.type.value)

    @property
    def contrary(self) -> PreferenceKey:
        """The identity of the opposite preference, if there is one."""
        if (avoided := self.value.get(AVOID)) is None:
            return PreferenceKey(self.type, avoid_key(next(iter(self.value.values()))))
        return _wish_key(avoided)

    def contradicts(self, preference: LearnedPreference) -> bool:
        """Return whether a preference says the opposite, for or against the same thing."""
        return preference.type_and_key == self.contrary and set(self.value.values()) == set(
            preference.preference_value.values()
        )


def signals_of(kind: StatedKind, signals: Iterable[PreferenceSignal]) -> list[PreferenceSignal]:
    """Return signals as coming from a source."""
    return [replace(signal, source_kind=kind) for signal in signals]


def avoid_key(value: str) -> str:
    """Return the key of the preference against something, such as "avoid chart"."""
    return f"{AVOID} {value}"


def blend_confidence(old: float, new: float) -> float:
    """Return the confidence of something observed again: `0.7 · old + 0.3 · new`."""
    return OLD_WEIGHT * old + NEW_WEIGHT * new


def detect_communication_style(question: str, technical_cues: Sequence[str]) -> str | None:
    """Return the style with most cues in a question, the first in a tie; None without any cue."""
    return _best_matching_cue(question, {**cues.STYLE, "technical": cues.compile_literal_cues(technical_cues)})


def signals_from_interaction(
    question: Message | None, reply: Message | None, technical_cues: Sequence[str]
) -> list[PreferenceSignal]:
    """Return the preferences shown by a well-rated interaction: style, format, level of detail and topics.

    A question with a negation may name things that are not wanted, so its format and level are not read.
    """
    text = question.content if question else ""
    requested = "" if cues.NEGATION.search(text) else text
    signals = []
    if style := detect_communication_style(text, technical_cues):
        signals.append(PreferenceSignal(PreferenceType.COMMUNICATION, {"style": style}, CUE_CONFIDENCE))
    if shown := _requested_format(requested, reply):
        signals.append(PreferenceSignal(PreferenceType.VISUALIZATION, {"format": shown}, CUE_CONFIDENCE))
    if level := _best_matching_cue(requested, cues.LEVEL):
        signals.append(PreferenceSignal(PreferenceType.DETAIL_LEVEL, {"level": level}, CUE_CONFIDENCE))
    signals += [
        PreferenceSignal(PreferenceType.TOPICS, {"topic": topic}, CUE_CONFIDENCE, key=topic)
        for topic in _question_topics(question)
    ]
    return signals


def extract_stated_preferences(text: str, *, is_comment: bool = False) -> list[PreferenceSignal]:
    """Return how a user asks to be answered and not to be answered; of two contrary wishes, the later counts.

    Only unmistakable wishes count. With `is_comment`, the text comments on a reply.
    """
    return _to_signals(find_stated_wishes(text, is_comment=is_comment))


def read_wished_preferences(wishes: Iterable[Wish]) -> list[PreferenceSignal]:
    """Return how a user asks to be answered or not to be, as a model read it; unknown values are left out."""
    return _to_signals(
        StatedWish(value, wish.polarity is Polarity.AGAINST) for wish in wishes if (value := _read_value(wish))
    )


def _read_value(wish: Wish) -> str | None:
    """Return the value of a wish in the form used by preferences; the name of a language only has letters."""
    value = " ".join(wish.value.split())
    if wish.about is WishAbout.LANGUAGE:
        is_name = value.replace(" ", "").isalpha() and value.casefold() not in (*_STYLES, *_LEVELS, *_FORMATS)
        return value.title() if is_name and len(value) <= MAX_LANGUAGE_CHARACTERS else None
    known = {WishAbout.STYLE: _STYLES, WishAbout.LEVEL: _LEVELS, WishAbout.FORMAT: _FORMATS}[wish.about]
    return value.casefold() if value.casefold() in known else None


def _to_signals(wishes: Iterable[StatedWish]) -> list[PreferenceSignal]:
    signals: dict[PreferenceKey, PreferenceSignal] = {}
    for value, is_denied in wishes:
        kind, key, field = _wish_kind(value)
        signal = (
            PreferenceSignal(kind, {AVOID: value}, STATED_CONFIDENCE, avoid_key(value))
            if is_denied
            else PreferenceSignal(kind, {field: value}, STATED_CONFIDENCE, key)
        )
        if (contrary := signals.get(signal.contrary)) and set(contrary.value.values()) == {value}:
            del signals[signal.contrary]
        signals.pop(signal.type_and_key, None)
        signals[signal.type_and_key] = signal
    return list(signals.values())


def _wish_kind(value: str) -> tuple[PreferenceType, str, str]:
    """Return the type of a wish, its key and the field of its value; anything but a manner or format is a language."""
    if value in _STYLES:
        return PreferenceType.COMMUNICATION, PreferenceType.COMMUNICATION.value, "style"
    if value in _LEVELS:
        return PreferenceType.DETAIL_LEVEL, PreferenceType.DETAIL_LEVEL.value, "level"
    if value in _FORMATS:
        return PreferenceType.VISUALIZATION, PreferenceType.VISUALIZATION.value, "format"
    return PreferenceType.COMMUNICATION, LANGUAGE_KEY, "language"


def _wish_key(value: str) -> PreferenceKey:
    kind, key, _ = _wish_kind(value)
    return PreferenceKey(kind, key)


def apply_signals(
    current: Sequence[LearnedPreference],
    signals: Sequence[PreferenceSignal],
    user_id: str,
    message_id: str,
    now: datetime,
    order: TrustOrder = DEFAULT_ORDER,
) -> list[LearnedPreference]:
    """Return the preferences that signals create or change.

    A repeated preference gets the new value, a blended confidence and a frequency one higher; its opposite is no longer
    used. A signal that would change a more trusted source's statement is ignored.
    """
    known = {preference.type_and_key: preference for preference in current}
    changed: dict[PreferenceKey, LearnedPreference] = {}
    for signal in signals:
        before = changed.get(signal.type_and_key) or known.get(signal.type_and_key)
        contrary = changed.get(signal.contrary) or known.get(signal.contrary)
        withdrawn = contrary if contrary and signal.contradicts(contrary) else None
        if not _may_change([before, withdrawn], signal.source_kind, order):
            continue
        after = _observe_again(before, signal, message_id, now) if before else _create(signal, user_id, message_id, now)
        changed[signal.type_and_key] = after
        if withdrawn:
            changed[signal.contrary] = _withdraw(withdrawn, now)
    return list(changed.values())


def _may_change(preferences: Iterable[LearnedPreference | None], by: StatedKind, order: TrustOrder) -> bool:
    """Return whether a source may change preferences; preferences no longer in use belong to no source."""
    return all(
        order.permits(Effect.END, by, preference.source_kind)
        for preference in preferences
        if preference and preference.confidence_score > WITHDRAWN_CONFIDENCE
    )


def weaken_preferences(
    current: Sequence[LearnedPreference], keys: Collection[PreferenceKey], now: datetime
) -> list[LearnedPreference]:
    """Return the preferences with these keys, their confidence blended with 0."""
    return [
        preference.model_copy(
            update={"confidence_score": blend_confidence(preference.confidence_score, 0.0), "updated_at": now}
        )
        for preference in current
        if preference.type_and_key in keys
    ]


def select_stale_preferences(current: Sequence[LearnedPreference], now: datetime) -> list[LearnedPreference]:
    """Return the preferences to prune: unsure ones not observed for 90 days, and the rarest topics beyond 50."""
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
    """Return a learned preference as an instruction to the model, or None if its confidence is too low."""
    if preference.confidence_score < MIN_USED_CONFIDENCE:
        return None
    value = preference.preference_value
    if (avoided := value.get(AVOID)) is not None:
        return _AVOID_INSTRUCTIONS.get(avoided, f"Do not answer in {avoided}.")
    match preference.preference_type:
        case PreferenceType.COMMUNICATION if "language" in value:
            return f"Answer in {value['language']}."
        case PreferenceType.COMMUNICATION if "style" in value:
            return _STYLE_INSTRUCTIONS.get(value["style"])
        case PreferenceType.DETAIL_LEVEL:
            return _LEVEL_INSTRUCTIONS.get(value.get("level", ""))
        case PreferenceType.VISUALIZATION:
            return _FORMAT_INSTRUCTIONS.get(value.get("format", ""))
        case _:
            return None


def confident_value(preferences: Sequence[LearnedPreference], kind: PreferenceType, field: str) -> str | None:
    """Return one field (`style`, `language`, `level`, `format`) of a preference with enough confidence."""
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
_AVOID_INSTRUCTIONS = {
    "formal": "Do not use a formal tone.",
    "casual": "Do not use a casual tone.",
    "technical": "Avoid the technical terms of the field.",
    "simple": "Do not simplify.",
    "brief": "Do not keep answers short.",
    "detailed": "Do not answer at length.",
    "chart": "Do not show charts.",
    "table": "Do not use tables.",
    "list": "Do not use bullet points.",
    "text": "Do not answer in words alone.",
}


def _create(signal: PreferenceSignal, user_id: str, message_id: str, now: datetime) -> LearnedPreference:
    return LearnedPreference(
        id=str(uuid.uuid4()),
        user_id=user_id,
        preference_type=signal.type,
        preference_key=signal.type_and_key.key,
        preference_value=dict(signal.value),
        confidence_score=signal.confidence,
        source_kind=signal.source_kind,
        learned_from=PreferenceSource(message_id=message_id, message_ids=[message_id]),
        frequency=1,
        last_observed=now,
        created_at=now,
        updated_at=now,
    )


def _withdraw(preference: LearnedPreference, now: datetime) -> LearnedPreference:
    confidence = min(WITHDRAWN_CONFIDENCE, blend_confidence(preference.confidence_score, 0.0))
    return preference.model_copy(update={"confidence_score": confidence, "updated_at": now})


def _observe_again(
    before: LearnedPreference, signal: PreferenceSignal, message_id: str, now: datetime
) -> LearnedPreference:
    """Return a preference with one more observation; a preference no longer in use starts over with its confidence."""
    message_ids = [*before.learned_from.message_ids, message_id][-MAX_SOURCES:]
    is_withdrawn = before.confidence_score <= WITHDRAWN_CONFIDENCE
    return before.model_copy(
        update={
            "preference_value": dict(signal.value),
            "confidence_score": signal.confidence
            if is_withdrawn
            else blend_confidence(before.confidence_score, signal.confidence),
            "learned_from": PreferenceSource(message_id=message_id, message_ids=message_ids),
            "frequency": before.frequency + 1,
            "source_kind": signal.source_kind,
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
"""The learned preferences that an issue weakens."""


def detect_issues(text: str) -> list[str]:
    """Return the issues in a complaint, or `unspecified` if it names none."""
    return [issue for issue, pattern in cues.ISSUES.items() if pattern.search(text)] or [UNSPECIFIED_ISSUE]


def evaluate_feedback(
    interaction: RatedInteraction,
    score: int,
    text: str,
    technical_cues: Sequence[str],
    now: datetime,
    by: StatedKind = "user",
    order: TrustOrder = DEFAULT_ORDER,
) -> FeedbackResult:
    """Return the changes from a source's feedback on an interaction.

    Positive feedback reinforces the intent and the preferences that the interaction shows. Negative feedback weakens
    the intent and the preferences it complains about. Neutral feedback only changes the message's confidence. A changed
    rating replaces the earlier one in the confidence; the lessons of its verdict are not repeated, and a new comment
    adds its statements. Preferences stated by a more trusted source are unchanged.
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
    stated = signals_of(by, extract_stated_preferences(text, is_comment=True))
    issues = detect_issues(text) if verdict is FeedbackVerdict.NEGATIVE else []
    if any(lesson.verdict is verdict for lesson in interaction.lessons):
        return result.model_copy(update={"issues": issues, "preferences": _apply(interaction, stated, now, order)})
    if verdict is FeedbackVerdict.POSITIVE:
        contrary = {signal.contrary for signal in stated}
        shown = signals_of(
            order.least_trusted([by, *(interaction.question.stated_by if interaction.question else ())]),
            signals_from_interaction(interaction.question, interaction.reply, technical_cues),
        )
        stated = [*(signal for signal in shown if signal.type_and_key not in contrary), *stated]
    preferences = _apply(interaction, stated, now, order)
    doubted = {_DOUBTED_PREFERENCES[issue] for issue in issues if issue in _DOUBTED_PREFERENCES}
    changed = {preference.type_and_key for preference in preferences}
    doubtful = [one for one in interaction.preferences if _may_change([one], by, order)]
    preferences += weaken_preferences(doubtful, doubted - changed, now)
    return result.model_copy(
        update={
            "intent": interaction.intent,
            "intent_confidence": _blend_intent_confidence(interaction, verdict),
            "issues": issues,
            "preferences": preferences,
        }
    )


def _apply(
    interaction: RatedInteraction, signals: Sequence[PreferenceSignal], now: datetime, order: TrustOrder
) -> list[LearnedPreference]:
    rated = interaction.message
    return apply_signals(interaction.preferences, signals, rated.user_id, rated.id, now, order)


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
