"""Dates as a model writes them."""

from __future__ import annotations

from datetime import UTC

from hypothesis import given
from hypothesis import strategies as st

from graphmem.ingestion.answers import parse_local_date
from tests.ingestion.builders import BERLIN


def test_dates_are_parsed_in_the_speakers_time_zone() -> None:
    for text, parsed in (
        ("2021", "2021-01-01T00:00:00+01:00"),
        ("2021-07", "2021-07-01T00:00:00+02:00"),
        ("2021-07-14", "2021-07-14T00:00:00+02:00"),
        ("2021-07-14T18:30", "2021-07-14T18:30:00+02:00"),
        ("2021-07-14T18:30:00Z", "2021-07-14T18:30:00+02:00"),
        (" 2021 ", "2021-01-01T00:00:00+01:00"),
    ):
        date = parse_local_date(text, BERLIN)
        assert date, text
        assert date.isoformat() == parsed


def test_an_invalid_date_is_none() -> None:
    for text in (None, "", "soon", "2021-13", "2021-02-30", "0001", "9999", "14.07.2021", "2021-7-1"):
        assert parse_local_date(text, BERLIN) is None, text


@given(st.text(max_size=30))
def test_parsing_a_date_never_raises(text: str) -> None:
    assert parse_local_date(text, UTC) is None or text.strip()[:4].isdecimal()
