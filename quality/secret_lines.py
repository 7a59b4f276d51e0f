"""The labelled lines with which the detection of secrets is measured."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from graphmem.runtime.field_types import JSON
from graphmem.secrets.detection import SecretClass

SECRET_LINES = Path(__file__).with_name("secret_lines.yaml")

_FILLERS = {
    "*": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
    "#": "0123456789abcdef",
    "^": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
}
_FILLER = re.compile(r"([*#^])(\d+)")
_PLACEHOLDER = re.compile(r"\{(?:(?P<language>[a-z]{2}):(?P<digits>\d+)|(?P<token>[a-z][a-z0-9_]+))\}")
_MARK = re.compile("[⟦⟧]")


@dataclass(frozen=True, slots=True)
class LabelledLine:
    """A text or a JSON value, the class of its secrets (None: it has none), and what redaction must remove.

    `group` is the language of a secret, or the kind of a look-alike; `hidden` holds ranges of characters of a text.
    """

    value: JSON
    cls: SecretClass | None
    group: str
    hidden: tuple[tuple[int, int], ...] = ()


class _ValueEntry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    found: list[SecretClass]
    value: dict[str, Any]


class _LinesFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tokens: dict[str, list[str]]
    digits: dict[str, str]
    secrets: dict[SecretClass, dict[str, list[str]]]
    lookalikes: dict[str, list[str]]
    values: list[_ValueEntry]


@dataclass(frozen=True, slots=True)
class _Templates:
    """What placeholders stand for: tokens by their parts, and the words of digits by language."""

    tokens: Mapping[str, list[str]]
    digits: Mapping[str, str]
    rng: random.Random = field(default_factory=lambda: random.Random(20))

    def expand(self, text: str) -> str:
        return _PLACEHOLDER.sub(self._expand_placeholder, text)

    def _expand_placeholder(self, match: re.Match[str]) -> str:
        if match["token"]:
            return "".join(map(self._expand_part, self.tokens[match["token"]])) if self._is_token(match) else match[0]
        words = self.digits[match["language"]].split()
        return " ".join(words[int(digit)] for digit in match["digits"])

    def _is_token(self, match: re.Match[str]) -> bool:
        return match["token"] in self.tokens

    def _expand_part(self, part: str) -> str:
        if filler := _FILLER.fullmatch(part):
            return "".join(self.rng.choices(_FILLERS[filler[1]], k=int(filler[2])))
        return part


def load_secret_lines(path: Path = SECRET_LINES) -> list[LabelledLine]:
    """Return the lines of a file, with their placeholders replaced: the same ones each time."""
    parsed = _LinesFile.model_validate(yaml.safe_load(path.read_text("utf-8")))
    return list(_read_lines(parsed))


def _read_lines(parsed: _LinesFile) -> Iterator[LabelledLine]:
    templates = _Templates(parsed.tokens, parsed.digits)
    for cls, languages in parsed.secrets.items():
        for language, texts in languages.items():
            for text in texts:
                plain, hidden = _split_marks(templates.expand(text))
                yield LabelledLine(plain, cls, language, hidden)
    for kind, texts in parsed.lookalikes.items():
        for text in texts:
            yield LabelledLine(text, None, kind)
    for entry in parsed.values:
        yield LabelledLine(entry.value, entry.found[0] if entry.found else None, "metadata")


def _split_marks(text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return a text without its marks, and the ranges between them."""
    at = [mark.start() - index for index, mark in enumerate(_MARK.finditer(text))]
    return _MARK.sub("", text), tuple(zip(at[::2], at[1::2], strict=True))
