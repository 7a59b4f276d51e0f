"""The conversations of the evaluation and what is expected of each, read from a file and checked.

An expectation names words. A pattern such as `"moved leipzig"` is met by a text in which every word of it begins a
word, in any order, whatever the case and the accents; of several patterns one is enough.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from graphmem.domain.memory import MemoryType
from graphmem.domain.session import MessageIn, ZoneName

CONVERSATIONS = Path(__file__).with_name("conversations.jsonl")

Patterns = Annotated[list[str], Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Told(_Strict):
    """One batch: the messages of a session, or of a later part of one."""

    session_id: str
    messages: list[MessageIn] = Field(min_length=1)


class Statement(_Strict):
    """A statement known by its words: one of `any` occurs, and none of `none`."""

    any: Patterns
    none: list[str] = Field(default_factory=list)

    def is_in(self, text: str) -> bool:
        """Return whether a text says it."""
        return says(text, self.any) and not (self.none and says(text, self.none))


class Keep(Statement):
    """A statement that must be kept.

    `subject`, `object` and `entities` are patterns of names (`|` between alternatives; `user` is the user), `type` the
    types that fit. `valid_at` and `invalid_at` are beginnings of local dates; `on` is a date that may stand in the
    sentence instead. `current` false: it must have ended; absent: either way.
    """

    subject: str | None = None
    object: str | None = None
    entities: list[str] = Field(default_factory=list)
    type: list[MemoryType] = Field(default_factory=list)
    valid_at: str | None = None
    invalid_at: str | None = None
    on: str | None = None
    current: bool | None = True


class Drop(Statement):
    """A statement that must not be kept, and why."""

    why: str


class Change(_Strict):
    """What must end, by the words of old and new; without `new` it is taken back and nothing follows."""

    old: Patterns
    new: list[str] = Field(default_factory=list)


class Expected(_Strict):
    """What a careful reader expects; `allowed` holds further true statements, which need not be kept."""

    keep: list[Keep] = Field(default_factory=list)
    allowed: list[Statement] = Field(default_factory=list)
    drop: list[Drop] = Field(default_factory=list)
    supersedes: list[Change] = Field(default_factory=list)
    skip: bool = False


class Case(_Strict):
    """One conversation of one user; without `timezone` its dates are those of the offset its messages carry."""

    id: str
    tags: list[str] = Field(min_length=1)
    timezone: ZoneName | None = None
    sessions: list[Told] = Field(min_length=1)
    expected: Expected


def read(path: Path = CONVERSATIONS) -> list[Case]:
    """Return the cases of a JSONL file in order."""
    return [Case.model_validate_json(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


@cache
def folded(text: str) -> str:
    """Return a text as it is compared: case-folded, without accents."""
    marks = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in marks if not unicodedata.combining(letter))


def says(text: str, patterns: list[str]) -> bool:
    """Return whether a text meets one of the patterns."""
    return any(all(_begins(word, folded(text)) for word in folded(pattern).split()) for pattern in patterns)


def _begins(word: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}", text) is not None
