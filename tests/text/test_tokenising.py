"""Tokens, stems and unspaced scripts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.text.folding import UNSPACED_LETTER
from graphmem.text.tokenising import split_words, stem, stem_prefix, tokenize


def test_tokens_are_stems_without_stop_words() -> None:
    assert tokenize("She was painting the boats") == tokenize("paint boat") == ("paint", "boat")


def test_stop_words_and_stems_follow_the_languages() -> None:
    text = "die Boote und der Hafen"
    assert tokenize(text) == ("die", "boot", "und", "der", "hafen")
    assert tokenize(text, ("de",)) == ("boot", "haf")
    assert tokenize(text, ("en", "de")) == ("boot", "hafen")


def test_a_language_without_a_stemmer_keeps_its_words() -> None:
    assert stem("printers", "ja") == "printers"
    assert tokenize("printers", ("ja",)) == ("printers",)


@pytest.mark.parametrize("word", ["東京", "ไทย", "ລາວ", "ខ្មែ", "カナ", "한국", "𠀋𠀌"])
def test_a_word_of_an_unspaced_script_gives_letters_and_pairs(word: str) -> None:
    assert UNSPACED_LETTER.match(word)
    pairs = (word[start : start + 2] for start in range(len(word) - 1))
    assert tokenize(word) == (*word, *pairs)


@pytest.mark.parametrize(("word", "prefix"), [("printers", "printer"), ("happy", "happ"), ("porto", "porto")])
def test_a_stem_prefix_begins_every_form_of_a_word(word: str, prefix: str) -> None:
    assert stem_prefix(word) == prefix


def test_words_are_runs_of_letters_and_digits() -> None:
    assert split_words("Mara's snake_case, 2 dogs") == ["Mara", "s", "snake", "case", "2", "dogs"]


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_word_spans_two_lines(first: str, second: str) -> None:
    assert tokenize(f"{first}\n{second}") == tokenize(first) + tokenize(second)
