"""What a model is shown, and which of its quotes are believed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.ask.models import Citation, SourceQuote
from graphmem.ask.sources import ShownSources, Source, find_quote

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def source(text: str, *, day: int = 1, id: str | None = None) -> Source:
    citation = Citation(memory_id=id or text, quote="", valid_at=None)
    return Source(f"memory (noted 2026-06-{day:02}): {text}", text, NOON.replace(day=day), citation)


@pytest.mark.parametrize(
    ("quote", "text", "found"),
    [
        ("lives in Lund", "Mara lives in Lund.", "lives in Lund"),
        ("mara LIVES in lund", "Mara lives in Lund.", "Mara lives in Lund"),
        ("works at Acme in Bonn", "Bob works at Acme, in Bonn.", "works at Acme, in Bonn"),
        ("“9400”", "The rent is ９４００ kronor", "９４００"),
        ("住んでいる", "マラは神戸に住んでいる。", "住んでいる"),
        ("lives in Lund", "Mara lives not in Lund.", None),
        ("lives in Lund", "Mara lives in Lundby.", None),
        ("eats meat", "Ada eats no meat.", None),
        ("", "Mara lives in Lund.", None),
        ("in", "Mara lives in Lund.", None),
        ("…", "Mara lives in Lund…", None),
    ],
)
def test_a_quote_is_found_as_it_stands_in_the_text_or_not_at_all(quote: str, text: str, found: str | None) -> None:
    assert find_quote(quote, text) == found


def test_only_quotes_that_stand_in_the_source_they_name_are_cited_each_once() -> None:
    shown = ShownSources().extended([source("Mara lives in Lund."), source("Mara likes tea.", day=2)])
    quotes = [
        SourceQuote(source=1, quote="lives in Lund"),
        SourceQuote(source=1, quote="Lives in Lund"),
        SourceQuote(source=1, quote="likes tea"),
        SourceQuote(source=2, quote="likes tea"),
        SourceQuote(source=0, quote="likes tea"),
        SourceQuote(source=-1, quote="likes tea"),
        SourceQuote(source=3, quote="likes tea"),
        SourceQuote(source=2, quote="noted 2026-06-02"),
    ]
    cited = [(citation.memory_id, citation.quote) for citation in shown.check(quotes)]
    assert cited == [("Mara lives in Lund.", "lives in Lund"), ("Mara likes tea.", "likes tea")]


def test_what_was_not_shown_of_a_long_message_cannot_be_quoted() -> None:
    citation = Citation(message_id="m", quote="", valid_at=NOON)
    excerpt = Source("message, 2026-06-01, the user: … the tea …", "I moved. I like the tea of Uji.", NOON, citation)
    shown = ShownSources([excerpt])
    assert shown.check([SourceQuote(source=1, quote="I moved")]) == []
    assert [cited.quote for cited in shown.check([SourceQuote(source=1, quote="the tea")])] == ["the tea"]


def test_sources_keep_their_numbers_when_more_are_found() -> None:
    first = ShownSources().extended([source("B", day=3), source("A", day=2)])
    second = first.extended([source("A", day=2), source("C", day=1)])
    assert second.render().splitlines() == [
        "[1] memory (noted 2026-06-02): A",
        "[2] memory (noted 2026-06-03): B",
        "[3] memory (noted 2026-06-01): C",
    ]


@given(st.text(max_size=200), st.integers(0, 199), st.integers(1, 60))
def test_what_is_found_stands_in_the_text(text: str, start: int, size: int) -> None:
    found = find_quote(text[start : start + size], text)
    assert found is None or found in text


@given(st.lists(st.sampled_from(["lives", "Lund,", "9,400", "kronor", "(tea)", "Mara's", "não", "№5"]), min_size=1))
def test_a_run_of_words_is_found(words: list[str]) -> None:
    text = f"It is said: {' '.join(words)}."
    assert find_quote(" ".join(words).upper(), text) is not None
