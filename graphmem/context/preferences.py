"""How a user likes to be answered: learned from what they rate well and from what they ask for. Pure (TRUE-16…18)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from graphmem.context.cue_patterns import DETAIL_CUES, LANGUAGE_REQUESTS, STATED_PREFERENCES, STYLE_CUES, VISUAL_CUES
from graphmem.domain.context_models import LearnedPreference, PreferenceType
from graphmem.domain.session import Message

OLD_WEIGHT, NEW_WEIGHT = 0.7, 0.3
"""Shares of the old and the new confidence when a preference is seen again (TRUE-18)."""

CUE_CONFIDENCE = 0.7
"""How sure a preference is that shows in the wording of a well-rated question (TRUE-17)."""

STATED_CONFIDENCE = 0.9
"""How sure a preference is that the user stated (CASH-19)."""

MIN_USED_CONFIDENCE = 0.5
"""A preference less sure than this shapes no answer."""

MAX_SOURCES = 50
"""So many of the messages a preference was learned from are kept with it."""

STALE_DAYS = 90
MAX_TOPICS = 50
"""A preference no longer used and not seen for so many days is given up; a user keeps so many topics."""

LANGUAGE_KEY = "language"


@dataclass(frozen=True, slots=True)
class PreferenceSignal:
    """One signal of a preference; without a key of its own it stands for its whole type."""

    type: PreferenceType
    value: Mapping[str, Any]
    confidence: float
    key: str | None = None

    @property
    def type_and_key(self) -> tuple[str, str]:
        """The type and key under which a user has one preference."""
        return self.type.value, self.key or self.type.value


def blend_confidence(old: float, new: float) -> float:
    """Return the confidence of something seen again: `0.7 · old + 0.3 · new` (TRUE-18)."""
    return OLD_WEIGHT * old + NEW_WEIGHT * new


def detect_communication_style(question: str) -> str | None:
    """Return the style whose cues a question has most of, the first of equals; None without any (TRUE-17).

    Cues are whole words in any case.
    """
    return _best_matching_cue(question, STYLE_CUES)


def signals_from_interaction(question: Message | None, reply: Message | None) -> list[PreferenceSignal]:
    """Return what a well-rated interaction shows: style, form, detail and topics (TRUE-16)."""
    found = []
    text = question.content if question else ""
    if style := detect_communication_style(text):
        found.append(PreferenceSignal(PreferenceType.COMMUNICATION, {"style": style}, CUE_CONFIDENCE))
    if shown := _requested_format(text, reply):
        found.append(PreferenceSignal(PreferenceType.VISUALIZATION, {"format": shown}, CUE_CONFIDENCE))
    if level := _best_matching_cue(text, DETAIL_CUES):
        found.append(PreferenceSignal(PreferenceType.DETAIL_LEVEL, {"level": level}, CUE_CONFIDENCE))
    found += [
        PreferenceSignal(PreferenceType.TOPICS, {"topic": topic}, CUE_CONFIDENCE, key=topic)
        for topic in _question_topics(question)
    ]
    return found


def extract_stated_preferences(text: str) -> list[PreferenceSignal]:
    """Return how a user asks to be answered from now on; the last word counts where a text says two things."""
    found: dict[tuple[str, str], tuple[int, PreferenceSignal]] = {}
    signals = [
        (
            match.start(),
            PreferenceSignal(PreferenceType.COMMUNICATION, {"language": name}, STATED_CONFIDENCE, LANGUAGE_KEY),
        )
        for name, pattern in LANGUAGE_REQUESTS
        for match in pattern.finditer(text)
    ] + [
        (match.start(), PreferenceSignal(kind, value, STATED_CONFIDENCE))
        for kind, value, pattern in STATED_PREFERENCES
        for match in pattern.finditer(text)
    ]
    for place, signal in sorted(signals, key=lambda each: each[0]):
        found[signal.type_and_key] = (place, signal)
    return [signal for _, signal in found.values()]


def apply_signals(
    current: Sequence[LearnedPreference],
    signals: Sequence[PreferenceSignal],
    user_id: str,
    message_id: str,
    now: datetime,
) -> list[LearnedPreference]:
    """Return what signals make of the preferences there are: new ones, and those seen again (TRUE-18).

    Seen again: the value is replaced, the confidence blended, the frequency one more, the time of observation now.
    """
    known = {(each.preference_type.value, each.preference_key): each for each in current}
    changed: dict[tuple[str, str], LearnedPreference] = {}
    for signal in signals:
        before = changed.get(signal.type_and_key) or known.get(signal.type_and_key)
        if before is None:
            after = LearnedPreference(
                id=str(uuid.uuid4()),
                user_id=user_id,
                preference_type=signal.type,
                preference_key=signal.type_and_key[1],
                preference_value=dict(signal.value),
                confidence_score=signal.confidence,
                learned_from={"message_id": message_id, "message_ids": [message_id]},
                frequency=1,
                last_observed=now,
                created_at=now,
                updated_at=now,
            )
        else:
            after = before.model_copy(
                update={
                    "preference_value": dict(signal.value),
                    "confidence_score": blend_confidence(before.confidence_score, signal.confidence),
                    "learned_from": {
                        "message_id": message_id,
                        "message_ids": [*source_message_ids(before), message_id][-MAX_SOURCES:],
                    },
                    "frequency": before.frequency + 1,
                    "last_observed": now,
                    "updated_at": now,
                }
            )
        changed[signal.type_and_key] = after
    return list(changed.values())


def source_message_ids(preference: LearnedPreference) -> list[str]:
    """Return the messages a preference was learned from, the latest last."""
    return [str(each) for each in preference.learned_from.get("message_ids", ())]


def weaken_preferences(
    current: Sequence[LearnedPreference], types_and_keys: Collection[tuple[str, str]], now: datetime
) -> list[LearnedPreference]:
    """Return the preferences at some places less sure than before: blended with a confidence of 0."""
    return [
        each.model_copy(update={"confidence_score": blend_confidence(each.confidence_score, 0.0), "updated_at": now})
        for each in current
        if (each.preference_type.value, each.preference_key) in types_and_keys
    ]


def select_stale_preferences(current: Sequence[LearnedPreference], now: datetime) -> list[LearnedPreference]:
    """Return the preferences to give up: those doubtful and long not seen, and the rarest topics (TRUE-23)."""
    doubtful = [
        each
        for each in current
        if each.confidence_score < MIN_USED_CONFIDENCE and each.last_observed < now - timedelta(days=STALE_DAYS)
    ]
    topics = [each for each in current if each.preference_type is PreferenceType.TOPICS and each not in doubtful]
    topics.sort(key=lambda each: (-each.frequency * each.confidence_score, each.preference_key))
    return doubtful + topics[MAX_TOPICS:]


def preference_instruction(preference: LearnedPreference) -> str | None:
    """Return a learned preference as a sentence to the model; None for one too doubtful to follow."""
    if preference.confidence_score < MIN_USED_CONFIDENCE:
        return None
    value = preference.preference_value
    match preference.preference_type:
        case PreferenceType.COMMUNICATION if "language" in value:
            return f"Answer in {value['language']}."
        case PreferenceType.COMMUNICATION if "style" in value:
            return _STYLE_SENTENCES.get(str(value["style"]))
        case PreferenceType.DETAIL_LEVEL:
            return _DETAIL_SENTENCES.get(str(value.get("level")))
        case PreferenceType.VISUALIZATION:
            return _VISUAL_SENTENCES.get(str(value.get("format")))
    return None


def confident_value(preferences: Sequence[LearnedPreference], kind: PreferenceType, field: str) -> str | None:
    """Return one aspect of what was learned (`style`, `language`, `level`, `format`), where it is sure enough."""
    for each in preferences:
        if (
            each.preference_type is kind
            and field in each.preference_value
            and each.confidence_score >= MIN_USED_CONFIDENCE
        ):
            return str(each.preference_value[field])
    return None


_STYLE_SENTENCES = {
    "formal": "Keep a formal tone.",
    "casual": "Keep a casual tone.",
    "technical": "Use the technical terms of the field.",
    "simple": "Use simple words and explain technical terms.",
}
_DETAIL_SENTENCES = {"brief": "Keep answers short.", "detailed": "Answer in detail."}
_VISUAL_SENTENCES = {
    "chart": "Show figures as a chart where that helps.",
    "table": "Show figures in a table where that helps.",
    "list": "Use bullet points where that helps.",
    "text": "Answer in words, without charts.",
}


def _best_matching_cue(text: str, cues: Mapping[str, Sequence[re.Pattern[str]]]) -> str | None:
    counts = {name: sum(1 for cue in each if cue.search(text)) for name, each in cues.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else None


def _requested_format(text: str, reply: Message | None) -> str | None:
    """Return how the question asked to be shown, else the form of the reply that was rated."""
    if asked := _best_matching_cue(text, VISUAL_CUES):
        return asked
    told = str((reply.rich_content if reply and reply.rich_content else {}).get("type") or "").casefold()
    return next((name for name in VISUAL_CUES if name in told), None)


def _question_topics(question: Message | None) -> list[str]:
    if question is None:
        return []
    told = [str(value) for kind in ("topic", "category") for value in question.entities.get(kind, ())]
    return list(dict.fromkeys(each.strip().casefold() for each in told or [question.intent or ""] if each.strip()))
