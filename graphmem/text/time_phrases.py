"""Relative times as each language says them, such as "la semana pasada", and the words that tell its texts.

`dateparser` reads dates and the relative times of English. It misses many of other languages: these are data in
`relative_times/<language>.toml`, patterns by the English phrase that means the same.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from graphmem.text.languages import script_language
from graphmem.text.tokenising import split_words
from graphmem.text.word_lists import LANGUAGES, load_words

MAX_SCORE_GAP = 1
"""Words of its own that a text may have fewer of a language than of the likeliest one, to be read in it too."""

_FOLDER = files(__package__) / "relative_times"
_ENGLISH_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SCRIPT_LANGUAGES = {"zh": ("zh", "ja")}
"""The languages of a script that several write in."""


class RelativeTime(NamedTuple):
    """A relative time in a text: its place, its words, and the English phrase that means the same."""

    start: int
    end: int
    text: str
    english: str


@dataclass(frozen=True, slots=True)
class TimePhrases:
    """How one language names times: `relative` are patterns with the English phrase that each means.

    The groups `unit` and `number` of a pattern stand for the words in `units` and `numbers`, which give the English
    words and the digits. `frequent` are words by which a text is known to be in the language.
    """

    frequent: frozenset[str]
    units: Mapping[str, str]
    numbers: Mapping[str, str]
    relative: Sequence[tuple[re.Pattern[str], str]]

    def find(self, text: str) -> Iterator[RelativeTime]:
        """Yield the relative times in a text, those that begin first and of these the longest."""
        found = [(match, english) for pattern, english in self.relative for match in pattern.finditer(text)]
        end = 0
        for match, english in sorted(found, key=lambda pair: (pair[0].start(), -pair[0].end())):
            if match.start() >= end:
                end = match.end()
                yield RelativeTime(match.start(), end, match[0], self._translate(match, english))

    def _translate(self, match: re.Match[str], english: str) -> str:
        groups = match.groupdict()
        number = (groups.get("number") or "").casefold()
        unit = self.units.get((groups.get("unit") or "").casefold(), "")
        return english.format(unit=unit, number=self.numbers.get(number, number))


@cache
def load_time_phrases(language: str) -> TimePhrases:
    """Return how a language names times; nothing for a language without a file."""
    source = _FOLDER / f"{language}.toml"
    if not source.is_file():
        return TimePhrases(frozenset(), {}, {}, ())
    data = tomllib.loads(source.read_text("utf-8"))
    words = load_words(language)
    units = {word: unit for unit, names in data["units"].items() for word in names.split()}
    weekdays = {word: _ENGLISH_WEEKDAYS[number - 1] for word, number in words.weekdays.items()}
    numbers = {**words.ambiguous_numbers, **words.numbers}
    named = {
        "unit": rf"(?P<unit>{_any_of({**units, **weekdays})})",
        "number": rf"(?P<number>\d{{1,3}}|{_any_of(numbers)})",
    }
    return TimePhrases(
        frequent=frozenset(data["frequent"].split()),
        units={**units, **weekdays},
        numbers=numbers,
        relative=[
            (re.compile(rf"\b{_fill(pattern, named)}(?!\w)", re.IGNORECASE), english)
            for english, patterns in data["relative"].items()
            for pattern in patterns
        ],
    )


def likely_languages(text: str, preferred: Sequence[str]) -> dict[str, bool]:
    """Return the languages (ISO 639-1) that a text may be written in, the likeliest first, and whether each is certain.

    They are told by its script and its frequent words. Of equally likely ones, `preferred` come first; a text without
    any frequent word may be in each of these and in no other.
    """
    if (by_script := script_language(text)) is not None:
        return dict.fromkeys(_SCRIPT_LANGUAGES.get(by_script, (by_script,)), True)
    words = {word for word in split_words(text.casefold()) if not word.isdigit()}
    counts = {language: len(words & load_time_phrases(language).frequent) for language in LANGUAGES}
    best = max(counts.values())
    if not best:
        return dict.fromkeys(preferred, len(preferred) == 1)
    likely = [
        language
        for language in dict.fromkeys([*preferred, *LANGUAGES])
        if counts.get(language, 0) >= max(best - MAX_SCORE_GAP, 0 if language in preferred else 1)
    ]
    is_clear = sum(count == best for count in counts.values()) == 1
    ordered = sorted(likely, key=lambda language: -counts.get(language, 0))
    return {language: is_clear and counts.get(language) == best for language in ordered}


def _any_of(words: Mapping[str, str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=lambda word: (-len(word), word))))


def _fill(pattern: str, named: Mapping[str, str]) -> str:
    for name, group in named.items():
        pattern = pattern.replace(f"{{{name}}}", group)
    return pattern
