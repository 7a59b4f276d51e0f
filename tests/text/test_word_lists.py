"""The word lists of the languages."""

from __future__ import annotations

from dataclasses import fields
from importlib.resources import files

import pytest

import graphmem.text
from graphmem.text.word_lists import LANGUAGES, WRITTEN_LANGUAGES, WordLists, load_words


def test_every_word_file_belongs_to_a_language() -> None:
    names = {source.name for source in (files(graphmem.text) / "words").iterdir()}
    assert names == {f"{language}.toml" for language in WRITTEN_LANGUAGES}


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_are_case_folded_and_months_complete(language: str) -> None:
    words = load_words(language)
    for part in fields(WordLists):
        assert all(word == word.casefold() for word in getattr(words, part.name))
    assert set(words.months.values()) == set(range(1, 13))


def test_every_list_is_filled_for_english() -> None:
    words = load_words("en")
    assert all(getattr(words, part.name) for part in fields(WordLists))


def test_languages_are_merged() -> None:
    merged = load_words("en", "de")
    assert {"the", "der"} <= merged.stop_words
    assert (merged.months["march"], merged.months["märz"]) == (3, 3)


def test_a_language_without_a_file_has_no_words() -> None:
    assert load_words("tlh") == WordLists()
