"""The words of the detectors, read from the TOML files in `words/`.

A table is a list, a key its language, a value alternatives of a regular expression separated by `|`, on any number of
lines. Whoever adds a language adds keys, and sentences to `tests/unit/secret_sentences.yaml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


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
def _read(name: str) -> dict[str, dict[str, str]]:
    tables = tomllib.loads((files(__package__) / "words" / f"{name}.toml").read_text("utf-8"))
    return {
        table: {language: "".join(map(str.strip, text.splitlines())) for language, text in languages.items()}
        for table, languages in tables.items()
    }
