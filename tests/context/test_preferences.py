"""Learned preferences: cues, stated preferences, blending, pruning."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from graphmem.context.models import LearnedPreference, PreferenceSource, PreferenceType
from graphmem.context.preferences import (
    PreferenceSignal,
    apply_signals,
    blend_confidence,
    detect_communication_style,
    extract_stated_preferences,
    preference_instruction,
    select_stale_preferences,
    signals_from_interaction,
)
from graphmem.tenants.profiles import load_profile
from tests.context.conftest import message

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def preference(**fields: Any) -> LearnedPreference:
    filled: dict[str, Any] = {
        "id": "p", "user_id": "mara", "preference_type": "communication", "preference_key": "communication",
        "preference_value": {"style": "formal"}, "confidence_score": 0.7, "learned_from": {}, "frequency": 1,
        "last_observed": NOON, "created_at": NOON, "updated_at": NOON, **fields,
    }  # fmt: skip
    return LearnedPreference(**filled)


@pytest.mark.req("TRUE-17")
@pytest.mark.parametrize(
    ("question", "style"),
    [
        ("Could you please help me?", "formal"),
        ("hey, what stuff do I wanna buy", "casual"),
        ("What ROI do I get?", "technical"),
        ("what apr and amortization apply?", "technical"),
        ("Why?", "simple"),
        ("Please explain", "formal"),
        ("They heroically shipped it", None),
        ("", None),
    ],
)
def test_the_style_with_most_cues_wins(question: str, style: str | None) -> None:
    assert detect_communication_style(question, load_profile("finance").technical_cues) == style


def test_the_general_profile_has_no_technical_terms() -> None:
    assert detect_communication_style("What ROI and APR do I get?", load_profile("general").technical_cues) is None


@pytest.mark.req("TRUE-16")
def test_a_well_rated_interaction_signals_style_format_detail_and_topics() -> None:
    question = message("Could you show me a chart of it, step by step?", entities={"category": ["Food"]})
    found = {signal.type: signal for signal in signals_from_interaction(question, None, [])}
    assert found[PreferenceType.COMMUNICATION].value == {"style": "formal"}
    assert found[PreferenceType.VISUALIZATION].value == {"format": "chart"}
    assert found[PreferenceType.DETAIL_LEVEL].value == {"level": "detailed"}
    assert (found[PreferenceType.TOPICS].key, found[PreferenceType.TOPICS].value) == ("food", {"topic": "food"})
    assert {signal.confidence for signal in found.values()} == {0.7}


@pytest.mark.req("TRUE-16")
def test_the_reply_format_counts_when_none_was_requested() -> None:
    reply = message("Here you are", role="assistant", rich_content={"type": "pie_chart"})
    (signal,) = signals_from_interaction(message("Food"), reply, [])
    assert (signal.type, signal.value) == (PreferenceType.VISUALIZATION, {"format": "chart"})


@pytest.mark.req("TRUE-18")
def test_a_repeated_preference_is_blended_counted_and_replaced() -> None:
    before = preference()
    later = NOON + timedelta(days=1)
    (after,) = apply_signals(
        [before], [PreferenceSignal(PreferenceType.COMMUNICATION, {"style": "casual"}, 1.0)], "mara", "m2", later
    )
    assert after.confidence_score == pytest.approx(0.79) == blend_confidence(0.7, 1.0)
    assert (after.id, after.frequency, after.preference_value) == ("p", 2, {"style": "casual"})
    assert (after.last_observed, after.updated_at, after.created_at) == (later, later, NOON)


@pytest.mark.req("TRUE-05", "TRUE-18")
def test_a_new_preference_uses_its_type_as_key_and_names_its_source() -> None:
    (made,) = apply_signals(
        [], [PreferenceSignal(PreferenceType.DETAIL_LEVEL, {"level": "brief"}, 0.7)], "mara", "m1", NOON
    )
    assert (made.preference_key, made.frequency, made.confidence_score) == ("detail_level", 1, 0.7)
    assert made.learned_from == PreferenceSource(message_id="m1", message_ids=["m1"])


@pytest.mark.req("QUINN-42")
@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("You're giving me too much information. Please be more concise.", [{"level": "brief"}]),
        ("I prefer a formal tone, and please respond in Spanish.", [{"style": "formal"}, {"language": "Spanish"}]),
        ("Actually, you can use a casual tone with me", [{"style": "casual"}]),
        ("Antworte bitte auf Deutsch", [{"language": "German"}]),
        ("Réponds en français, plus court", [{"language": "French"}, {"level": "brief"}]),
        ("Rispondi in italiano", [{"language": "Italian"}]),
        ("Responde en inglés con un tono formal", [{"language": "English"}, {"style": "formal"}]),
        ("I'd like more charts and more details", [{"format": "chart"}, {"level": "detailed"}]),
        ("Be formal. No, wait, be casual.", [{"style": "casual"}]),
        ("I ate Spanish food in a formal dress", []),
        ("What is a short sale?", []),
    ],
)
def test_stated_preferences_are_extracted(text: str, values: list[dict[str, str]]) -> None:
    assert [signal.value for signal in extract_stated_preferences(text)] == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Show me a chart of my July rent", []),
        ("Write the email in French", []),
        ("Give me a short answer", []),
        ("My commute is too long", []),
        ("I speak Spanish with my wife", []),
        ("I need more information about the flight", []),
        ("The meeting will be short", []),
        ("Always show me charts", [{"format": "chart"}]),
        ("From now on show me a table", [{"format": "table"}]),
        ("Your answer was too long", [{"level": "brief"}]),
        ("Always write in French", [{"language": "French"}]),
    ],
)
def test_what_is_asked_of_one_answer_is_no_preference_until_it_is_repeated(
    text: str, values: list[dict[str, str]]
) -> None:
    signals = extract_stated_preferences(text)
    first = apply_signals([], signals, "mara", "m1", NOON)
    assert [one.preference_value for one in first if not one.is_tentative] == values
    second = apply_signals(first, signals, "mara", "m2", NOON)
    assert [one.preference_value for one in second if not one.is_tentative] == [signal.value for signal in signals]


@pytest.mark.req("QUINN-42")
def test_one_request_does_not_change_a_lasting_preference() -> None:
    lasting = apply_signals([], extract_stated_preferences("Always answer in Spanish"), "mara", "m1", NOON)
    assert apply_signals(lasting, extract_stated_preferences("Write the email in French"), "mara", "m2", NOON) == []


@pytest.mark.req("QUINN-42")
def test_a_later_tone_keeps_the_language() -> None:
    first = apply_signals(
        [], extract_stated_preferences("Keep a formal tone and answer in Spanish"), "mara", "m1", NOON
    )
    (second,) = apply_signals(first, extract_stated_preferences("You can be casual"), "mara", "m2", NOON)
    learned = {preference.preference_key: preference for preference in [*first, second]}
    assert preference_instruction(learned["communication"]) == "Keep a casual tone."
    assert preference_instruction(learned["language"]) == "Answer in Spanish."


@pytest.mark.parametrize(("confidence", "used"), [(0.49, False), (0.5, True)])
def test_a_preference_of_low_confidence_gives_no_instruction(confidence: float, used: bool) -> None:
    assert (preference_instruction(preference(confidence_score=confidence)) is not None) is used


@pytest.mark.req("TRUE-23")
def test_stale_doubtful_preferences_and_the_rarest_topics_are_selected() -> None:
    long_ago = NOON - timedelta(days=91)
    doubtful = preference(id="doubtful", confidence_score=0.4, last_observed=long_ago)
    lately = preference(id="lately", confidence_score=0.4, last_observed=NOON - timedelta(days=90))
    sure = preference(id="sure", last_observed=long_ago)
    topics = [
        preference(id=f"t{n}", preference_type="topics", preference_key=f"t{n:02}", frequency=1 + (n > 0))
        for n in range(51)
    ]
    stale = select_stale_preferences([doubtful, lately, sure, *topics], NOON)
    assert {preference.id for preference in stale} == {"doubtful", "t0"}
