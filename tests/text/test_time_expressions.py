"""Times in questions and statements."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from graphmem.text.time_expressions import TimeExpression, TimeRange, find_time_expressions, find_time_ranges
from graphmem.text.word_lists import WESTERN_LANGUAGES

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)


def at(year: int, month: int, day: int) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("What happened in May 2023?", at(2023, 5, 1), at(2023, 6, 1)),
        ("where was she in 2021", at(2021, 1, 1), at(2022, 1, 1)),
        ("what did I do yesterday", at(2026, 6, 9), at(2026, 6, 10)),
        ("what happened on 3 March 2024?", at(2024, 3, 3), at(2024, 3, 4)),
        ("what did she say last week", at(2026, 6, 1), at(2026, 6, 8)),
        ("where did we go in August?", at(2025, 8, 1), at(2025, 9, 1)),
        ("where did we go in May?", at(2026, 5, 1), at(2026, 6, 1)),
    ],
)
def test_times_in_a_question_are_days_weeks_months_or_years(question: str, start: int, end: int) -> None:
    assert find_time_ranges(question, NOW) == [TimeRange(start, end)]


@pytest.mark.parametrize("languages", [("en",), WESTERN_LANGUAGES])
@pytest.mark.parametrize(
    "text",
    [
        *("you may do it now", "who sat on the second chair", "room 12", "", "?" * 600, "a week off", "$85 or 92%"),
        "code 4821",
    ],
)
def test_ambiguous_words_and_plain_numbers_are_no_times(text: str, languages: tuple[str, ...]) -> None:
    assert find_time_ranges(text, NOW, languages) == []


def test_an_expression_has_its_words_its_time_and_its_precision() -> None:
    base = datetime(2026, 6, 10, 12)
    assert find_time_expressions("Was habe ich gestern um 15:30 gekauft?", base, WESTERN_LANGUAGES) == [
        TimeExpression("gestern um 15:30", datetime(2026, 6, 9, 15, 30), "time")
    ]


def test_a_month_without_a_year_is_past_only_if_asked() -> None:
    base = datetime(2026, 6, 10)
    (nearest,) = find_time_expressions("in August", base, ("en",))
    (past,) = find_time_expressions("in August", base, ("en",), prefer_past=True)
    assert (nearest.at.year, past.at.year) == (2026, 2025)


def test_a_range_contains_its_start_and_not_its_end() -> None:
    time_range = TimeRange(10, 20)
    assert [time_range.contains(time) for time in (9, 10, 19, 20)] == [False, True, True, False]
