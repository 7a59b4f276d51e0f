"""The word lists of each language, read once from the TOML files in `words/`, and regular expressions from them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from typing import Any

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "ru")
"""The languages with word lists, as ISO 639-1 codes."""

WESTERN_LANGUAGES = LANGUAGES[:7]
"""The languages read without knowing the language of a text; the words of the other two collide with them."""

WRITTEN_LANGUAGES = (*LANGUAGES, "ja", "zh", "ko")
"""All languages with word lists; words of the last three are searched anywhere in a text without spaces."""

_WORDS = files("graphmem.text") / "words"


@dataclass(frozen=True, slots=True)
class WordLists:
    """The word lists of one language, or of several merged into one; all words are case-folded."""

    stop_words: frozenset[str] = frozenset()
    """Words that connect or ask and say nothing about the topic."""

    topicless_words: frozenset[str] = frozenset()
    """Further words that say nothing about a question's topic, such as "want" and "favourite"."""

    first_person: frozenset[str] = frozenset()
    """Words with which writers refer to themselves."""

    months: Mapping[str, int] = field(default_factory=dict)
    """Names and abbreviations of months, with their numbers from 1."""

    ambiguous_months: frozenset[str] = frozenset()
    """Names of months that are other words when lower-case."""

    weekdays: Mapping[str, int] = field(default_factory=dict)
    """Names of weekdays, with their numbers from 1 for Monday."""

    ambiguous_time_words: frozenset[str] = frozenset()
    """Words that a date parser reads as times but that mostly mean something else."""

    time_fillers: frozenset[str] = frozenset()
    """Words around a time expression that do not belong to it."""

    time_prepositions: frozenset[str] = frozenset()
    """Words before an ambiguous time word that show that it means a time."""

    year_introducers: frozenset[str] = frozenset()
    """Further words that directly precede a year, as in "during 2020"."""

    numbering_words: frozenset[str] = frozenset()
    """Words between the name of a thing and its number, as in "bus number 42" and "bus no. 42"."""

    overview_phrases: frozenset[str] = frozenset()
    """Phrases of questions that ask for a summary or for the order of events."""

    overview_words: frozenset[str] = frozenset()
    """Further words of such questions that say nothing about their topic."""

    function_words: frozenset[str] = frozenset()
    """Frequent words that identify a text as being in the language."""

    negations: frozenset[str] = frozenset()
    """Words that deny a statement or say that it has ended."""

    user_words: frozenset[str] = frozenset()
    """Words for an unnamed user in statements."""

    articles: frozenset[str] = frozenset()
    """Articles, which a merged statement may add or omit."""

    copulas: frozenset[str] = frozenset()
    """Present-tense forms of "to be", which a merged statement may add or omit."""

    conjunctions: frozenset[str] = frozenset()
    """Words that mean "and", which a merged statement may add or omit."""

    numbers: Mapping[str, str] = field(default_factory=dict)
    """Number words and ordinals, with their digits."""

    ambiguous_numbers: Mapping[str, str] = field(default_factory=dict)
    """Words that only mean a number in some sentences, such as "one", "second" and "both"."""

    money_words: frozenset[str] = frozenset()
    """Words for sums of money, which make a number without a currency an amount, as in "rent is 1200"."""

    titles: frozenset[str] = frozenset()

    legal_forms: frozenset[str] = frozenset()
    """Words in a company's name that give its legal form."""

    generic_name_words: frozenset[str] = frozenset()
    """Further words that add nothing to the name of a thing."""


@cache
def load_words(*languages: str) -> WordLists:
    """Return the merged word lists of `languages`; a language without a file adds nothing."""
    return _merge([_read(language) for language in languages])


@cache
def _read(language: str) -> WordLists:
    source = _WORDS / f"{language}.toml"
    if not source.is_file():
        return WordLists()
    return WordLists(**{name: _parse(name, value) for name, value in tomllib.loads(source.read_text("utf-8")).items()})


def _parse(name: str, value: Any) -> Any:
    if name in ("months", "weekdays"):
        return {word: number for number, names in enumerate(value, 1) for word in names.split()}
    if name in ("numbers", "ambiguous_numbers"):
        return {word: str(int(number)) for number, words in value.items() for word in words.split(", ")}
    return frozenset(value.split() if isinstance(value, str) else value)


def _merge(lists: Iterable[WordLists]) -> WordLists:
    merged: dict[str, Any] = {}
    for words in lists:
        for part in fields(WordLists):
            value = getattr(words, part.name)
            merged[part.name] = merged[part.name] | value if part.name in merged else value
    return WordLists(**merged)


WordsByLanguage = Mapping[str, tuple[str, ...]]
"""Words as regular expressions, by language (ISO 639-1)."""


def all_words(words: WordsByLanguage) -> list[str]:
    """Return the words of all languages."""
    return [word for language_words in words.values() for word in language_words]


def compile_words(words: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that matches any of the words, in any case; without words it matches nothing."""
    alternatives = "|".join(words)
    return re.compile(rf"\b(?:{alternatives})\b" if alternatives else r"(?!)", re.IGNORECASE)
