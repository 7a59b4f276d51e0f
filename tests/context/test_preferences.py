"""Learned preferences: cues, stated preferences, blending, pruning."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
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


WISHES = tomllib.loads((Path(__file__).parent / "stated_wishes.toml").read_text(encoding="utf-8"))


def wishes_of(kind: str) -> list[tuple[str, list[str]]]:
    return [(text, values) for by_text in WISHES[kind].values() for text, values in by_text.items()]


def learned_values(text: str) -> list[dict[str, str]]:
    return [dict(signal.value) for signal in extract_stated_preferences(text)]


@pytest.mark.req("QUINN-42", "TRUE-16")
@pytest.mark.parametrize(("text", "values"), wishes_of("asked"))
def test_what_a_user_asks_for_is_learned_in_each_language(text: str, values: list[str]) -> None:
    assert [next(iter(value.values())) for value in learned_values(text)] == values
    assert not any("avoid" in value for value in learned_values(text))


@pytest.mark.req("QUINN-42", "TRUE-16")
@pytest.mark.parametrize(("text", "values"), wishes_of("denied"))
def test_what_a_user_does_not_want_is_never_learned_as_wanted(text: str, values: list[str]) -> None:
    assert learned_values(text) == [{"avoid": value} for value in values]


@pytest.mark.req("QUINN-42", "TRUE-16")
@pytest.mark.parametrize("kind", ["unclear", "others"])
def test_nothing_is_learned_from_what_is_not_clearly_a_lasting_wish_of_the_user(kind: str) -> None:
    learned = {text: learned_values(text) for texts in WISHES[kind].values() for text in texts}
    assert {text: values for text, values in learned.items() if values} == {}


@pytest.mark.req("QUINN-42")
@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Be formal. No, wait, be casual.", [{"style": "casual"}]),
        ("Don't be formal, be casual", [{"avoid": "formal"}, {"style": "casual"}]),
        ("Use charts. Don't use charts.", [{"avoid": "chart"}]),
        ("Don't be formal and answer in Spanish", []),
        ("Responde en inglés con un tono formal", [{"language": "English"}, {"style": "formal"}]),
        ("Always write in French", [{"language": "French"}]),
        ("Write the email in French", []),
        ("He wrote: be brief. Use tables.", []),
        ("My commute is too long", []),
        ("I need more information about the flight", []),
        ("What is a short sale?", []),
    ],
)
def test_a_sentence_counts_only_if_all_of_it_is_understood(text: str, values: list[dict[str, str]]) -> None:
    assert learned_values(text) == values


@pytest.mark.req("QUINN-42", "TRUE-16")
@pytest.mark.parametrize(
    ("asked", "denied", "instruction"),
    [
        ("Use a formal tone", "Never use a formal tone", "Do not use a formal tone."),
        ("Always answer in Spanish", "Don't answer in Spanish", "Do not answer in Spanish."),
        ("I prefer charts", "No more charts", "Do not show charts."),
    ],
)
def test_a_denial_ends_the_preference_and_a_new_wish_ends_the_denial(asked: str, denied: str, instruction: str) -> None:
    def learn(current: list[LearnedPreference], text: str) -> list[LearnedPreference]:
        changed = apply_signals(current, extract_stated_preferences(text), "mara", text, NOON)
        return list({one.type_and_key: one for one in [*current, *changed]}.values())

    def instructions(current: list[LearnedPreference]) -> list[str]:
        return [text for one in current if (text := preference_instruction(one))]

    wanted = learn([], asked)
    unwanted = learn(wanted, denied)
    assert instructions(unwanted) == [instruction]
    assert instructions(learn(unwanted, asked)) == instructions(wanted)


@pytest.mark.req("TRUE-16")
@pytest.mark.parametrize(
    "question", ["Show it without charts, please", "No need to explain it in detail", "Keine charts"]
)
def test_a_question_that_denies_something_shows_no_format_and_no_level(question: str) -> None:
    shown = signals_from_interaction(message(question), None, [])
    assert {signal.type for signal in shown} <= {PreferenceType.COMMUNICATION}


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
