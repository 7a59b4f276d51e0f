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
from graphmem.domain.session import MessageIn, TimeZoneName

CONVERSATIONS = Path(__file__).with_name("conversations.jsonl")

Patterns = Annotated[list[str], Field(min_length=1)]


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SessionBatch(_StrictModel):
    """One batch: the messages of a session, or of a later part of one."""

    session_id: str
    messages: list[MessageIn] = Field(min_length=1)


class ExpectedStatement(_StrictModel):
    """A statement known by its words: one of `any` occurs, and none of `none`."""

    any: Patterns
    none: list[str] = Field(default_factory=list)

    def matches(self, text: str) -> bool:
        """Return whether a text says it."""
        return matches_any(text, self.any) and not (self.none and matches_any(text, self.none))


class RequiredMemory(ExpectedStatement):
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


class ForbiddenMemory(ExpectedStatement):
    """A statement that must not be kept, and why."""

    why: str


class ExpectedSupersession(_StrictModel):
    """What must end, by the words of old and new; without `new` it is taken back and nothing follows."""

    old: Patterns
    new: list[str] = Field(default_factory=list)


class CaseExpectations(_StrictModel):
    """What a careful reader expects; `allowed` holds further true statements, which need not be kept."""

    keep: list[RequiredMemory] = Field(default_factory=list)
    allowed: list[ExpectedStatement] = Field(default_factory=list)
    drop: list[ForbiddenMemory] = Field(default_factory=list)
    supersedes: list[ExpectedSupersession] = Field(default_factory=list)
    skip: bool = False


class EvaluationCase(_StrictModel):
    """One conversation of one user; without `timezone` its dates are those of the offset its messages carry."""

    id: str
    tags: list[str] = Field(min_length=1)
    timezone: TimeZoneName | None = None
    sessions: list[SessionBatch] = Field(min_length=1)
    expected: CaseExpectations


def load_cases(path: Path = CONVERSATIONS) -> list[EvaluationCase]:
    """Return the cases of a JSONL file in order."""
    return [EvaluationCase.model_validate_json(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


@cache
def fold_text(text: str) -> str:
    """Return a text as it is compared: case-folded, without accents."""
    marks = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in marks if not unicodedata.combining(letter))


def matches_any(text: str, patterns: list[str]) -> bool:
    """Return whether a text meets one of the patterns."""
    return any(
        all(_starts_a_word(word, fold_text(text)) for word in fold_text(pattern).split()) for pattern in patterns
    )


def _starts_a_word(word: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}", text) is not None
