"""Excerpts of long messages: the sentences that say most about a question, in few tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.context.relevance import ExcerptWords
from graphmem.text.token_counts import count_tokens

LONG = (
    "Thanks for the quick reply. The weather was awful all week, so we stayed in and cooked.\n"
    "By the way, the sprint ends on March 29. After that we plan the dashboard.\n"
    "My sister sends her regards and asks about the garden."
)


def test_a_short_text_is_quoted_whole_on_one_line() -> None:
    assert ExcerptWords("Who?").excerpt("One line.\n  And another.", 60) == "One line. And another."


def test_the_sentences_with_most_words_of_the_question_are_quoted_after_the_first_sentence() -> None:
    words = ExcerptWords("When does my first sprint end?")
    assert words.excerpt(LONG, 30) == (
        "Thanks for the quick reply.…By the way, the sprint ends on March 29. After that we plan the dashboard.…"
    )


def test_a_long_first_sentence_leaves_half_of_the_limit() -> None:
    text = f"I am building {'a very small and ' * 20}simple dashboard. {LONG}"
    excerpt = ExcerptWords("When does the sprint end?").excerpt(text, 30)
    assert excerpt.startswith("I am building a very small")
    assert excerpt.endswith("…By the way, the sprint ends on March 29.…")


def test_without_a_word_of_the_question_the_beginning_is_quoted() -> None:
    assert ExcerptWords("Who painted it?").excerpt(LONG, 12).startswith("Thanks for the quick reply.")


def test_a_sentence_over_the_limit_is_cut() -> None:
    excerpt = ExcerptWords("sprint").excerpt("The sprint " + "and the sprint after it " * 50, 30)
    assert excerpt.startswith("The sprint")
    assert excerpt.endswith("…")
    assert count_tokens(excerpt) <= 30


@pytest.mark.parametrize(
    ("question", "text", "count"),
    [
        ("Which books did Anna read?", "Anna loves reading; her latest BOOK is Ulysses", 3),
        ("¿Dónde está la montaña?", "Las montañas son altas", 1),
        ("", "Nothing is asked", 0),
    ],
)
def test_words_are_found_in_all_their_forms(question: str, text: str, count: int) -> None:
    assert ExcerptWords(question).count_in(text) == count


@given(question=st.text(max_size=60), text=st.text(min_size=1, max_size=800), limit=st.integers(20, 100))
def test_an_excerpt_never_exceeds_its_limit(question: str, text: str, limit: int) -> None:
    excerpt = ExcerptWords(question).excerpt(text, limit)
    assert count_tokens(excerpt) <= limit
    assert "\n" not in excerpt
