"""The sample conversation that quickstart uses."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from itertools import pairwise

import pytest
from stdnum import luhn

from graphmem.sample import load_messages, load_questions

SESSIONS = Counter(message["session_id"] for message in load_messages())


def session_text(day: str) -> str:
    return " ".join(message["content"] for message in load_messages() if message["session_id"] == f"mara-{day}")


def test_the_sample_is_a_year_of_sessions_of_one_window() -> None:
    assert len(load_messages()) >= 48
    assert len(SESSIONS) >= 7
    assert max(SESSIONS.values()) <= 10


def test_messages_are_unique_in_order_and_dated_with_an_offset() -> None:
    assert len({message["id"] for message in load_messages()}) == len(load_messages())
    times = [datetime.fromisoformat(message["timestamp"]) for message in load_messages()]
    assert all(time.tzinfo for time in times)
    assert all(earlier < later for earlier, later in pairwise(times))
    for message in load_messages():
        assert message["timestamp"].startswith(message["session_id"].removeprefix("mara-"))


def test_user_and_assistant_alternate() -> None:
    for first, second in zip(load_messages()[::2], load_messages()[1::2], strict=True):
        assert (first["role"], second["role"]) == ("user", "assistant")
        assert first["session_id"] == second["session_id"]
        assert (first.get("name"), second.get("name")) == ("Mara", None)


@pytest.mark.req("CASH-11")
def test_the_sample_contains_one_card_number() -> None:
    numbers = [
        re.sub(r"\D", "", text)
        for text in re.findall(r"(?:\d[ -]?){13,19}", " ".join(m["content"] for m in load_messages()))
    ]
    assert numbers == ["4242424242424242"]
    assert luhn.is_valid(numbers[0])


def test_relative_dates_fall_on_the_days_they_name() -> None:
    weekdays = {"2025-04-15": "Tuesday", "2025-05-06": "Tuesday", "2026-03-22": "Sunday", "2026-04-11": "Saturday"}
    assert {day: f"{datetime.fromisoformat(day):%A}" for day in weekdays} == weekdays
    assert "last Friday" in session_text("2025-04-15")
    assert "on Sundays I cook" in session_text("2026-03-22")
    moved, mentioned = datetime(2025, 9, 27), datetime(2025, 10, 12)
    assert "for two weeks now" in session_text("2025-10-12")
    assert (mentioned - moved).days // 7 == 2


def test_questions_ask_in_every_way_and_about_sessions_that_exist() -> None:
    asked = load_questions()
    assert {question.by for question in asked} == {"entity", "meaning"}
    assert any(question.valid_as_of for question in asked)
    assert {question.known_after for question in asked if question.known_after} <= SESSIONS.keys()
    assert any(question.known_after for question in asked)
    for question in asked:
        assert question.expects or question.absent
        assert question.valid_as_of is None or question.valid_as_of.tzinfo


@pytest.mark.parametrize(
    "word", ["Copenhagen", "Hamburg", "hazelnut", "15 July 2025", "30 June 2025", "Frederike Holm"]
)
def test_the_conversation_contains_what_questions_expect(word: str) -> None:
    assert any(word in text for question in load_questions() for text in question.expects)
    assert any(word in message["content"] for message in load_messages())
