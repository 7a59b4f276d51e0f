"""The words of the detectors, read from the TOML files in `words/`.

A table is a list, a key its language, a value alternatives of a regular expression separated by `|`, on any number of
lines. Whoever adds a language adds keys, and sentences to `tests/unit/secret_sentences.yaml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from operator import itemgetter

from graphmem.text.word_lists import LANGUAGES, load_words


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Lists of alternatives by list name and language."""

    lists: Mapping[str, Mapping[str, str]]

    def any_of(self, *names: str) -> str:
        """Return a group that matches any alternative of the lists named."""
        return f"(?:{'|'.join(alternatives for name in names for alternatives in self.lists[name].values())})"


def load_vocabulary(name: str) -> Vocabulary:
    """Return the lists of `words/<name>.toml` and those that all detectors share."""
    return Vocabulary(_read("shared") | _read(name))


@cache
def month_pattern() -> str:
    """Return a group that matches the name of a month in any language."""
    # Months are grouped by their first letter, because "re" tries all alternatives of a group one by one.
    groups = groupby(sorted(load_words(*LANGUAGES).months), key=itemgetter(0))
    return f"(?:{'|'.join(f'{initial}(?:{_alternatives(months)})' for initial, months in groups)})"


def _alternatives(months: Iterable[str]) -> str:
    return "|".join(month[1:] for month in months)


@cache
def _read(name: str) -> dict[str, dict[str, str]]:
    tables = tomllib.loads((files(__package__) / "words" / f"{name}.toml").read_text("utf-8"))
    return {
        table: {language: "".join(map(str.strip, text.splitlines())) for language, text in languages.items()}
        for table, languages in tables.items()
    }
