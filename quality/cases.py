"""The conversations of the evaluation and what is expected of each.

An expectation names words. A text matches a pattern such as `"moved leipzig"` when each word of the pattern begins a
word of the text, in any order, whatever case and accents; of several patterns one is enough. Chinese and Japanese are
written without spaces, so that a word in their characters may stand anywhere.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from graphmem.conversations.session import MessageIn, TimeZoneName
from graphmem.memories.memory import MemoryIn, MemoryType
from quality.languages import CJK_CHARACTERS, Language

CONVERSATIONS = Path(__file__).with_name("conversations.jsonl")
"""The cases with one difficulty each, as JSONL."""

HARD_CONVERSATIONS = Path(__file__).with_name("hard_conversations.jsonl")
"""The hard cases, as JSONL."""

UNSEEN_CONVERSATIONS = Path(__file__).with_name("unseen_conversations.jsonl")
"""Cases written without knowledge of the prompts, as JSONL."""

NUANCED_CONVERSATIONS = Path(__file__).with_name("nuanced_conversations.jsonl")
"""Cases of one fine distinction each, such as a possession and a purchase, as JSONL."""

Patterns = Annotated[list[str], Field(min_length=1)]
"""Patterns of which a text must match one."""


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SessionBatch(_StrictModel):
    """One batch: the messages of a session, or of a later part of one."""

    session_id: str
    messages: list[MessageIn] = Field(min_length=1)


class ExpectedStatement(_StrictModel):
    """A statement recognised by its words: it matches one of `any`, and none of `none`."""

    any: Patterns
    none: list[str] = Field(default_factory=list)

    def matches(self, text: str) -> bool:
        """Return whether a text makes the statement."""
        return matches_any(text, self.any) and not (self.none and matches_any(text, self.none))


class RequiredMemory(ExpectedStatement):
    """A statement that must be saved.

    `subject`, `object` and `entities` are patterns of names (`|` between alternatives; `user` is the user), `type` the
    types that are right. `valid_at` and `invalid_at` are the beginnings of local dates; `on` is a date, or an ISO week
    such as `2025-W48`, that the sentence may name instead; `|` stands between alternatives. `current` false: it must
    have ended; null: either is right. `domain` is a pattern of its domain, `language` what it must be written in.
    `referent` distinguishes people of one name: statements with one referent are about one entity, with two about two.
    """

    subject: str | None = None
    object: str | None = None
    entities: list[str] = Field(default_factory=list)
    type: list[MemoryType] = Field(default_factory=list)
    valid_at: str | None = None
    invalid_at: str | None = None
    on: str | None = None
    current: bool | None = True
    domain: str | None = None
    language: Language | None = None
    referent: str | None = None


class ForbiddenMemory(ExpectedStatement):
    """A statement that must not be saved, and why."""

    why: str


class ExpectedSupersession(_StrictModel):
    """A memory that must end, by the words of the old and the new one; without `new` the user takes it back."""

    old: Patterns
    new: list[str] = Field(default_factory=list)


class StoredMemory(_StrictModel):
    """A memory that is saved before the first message, and what must become of it.

    `stays`: it holds on. `ends`: it is superseded, taken back or given an end. `reinforced`: it is said again, which
    must strengthen it and add no second memory. `since` and `until` are its dates afterwards, and `referent` whom it is
    about, as in `RequiredMemory`. A current memory that matches `restated` says the same or more, and may replace it.
    """

    memory: MemoryIn
    then: Literal["stays", "ends", "reinforced"]
    since: str | None = None
    until: str | None = None
    referent: str | None = None
    restated: list[str] = Field(default_factory=list)


class CaseExpectations(_StrictModel):
    """What a careful reader expects.

    `allowed` are further true statements, which need not be saved; `no_entities` patterns of names that nothing may
    have, such as conditions and phrases.
    """

    keep: list[RequiredMemory] = Field(default_factory=list)
    allowed: list[ExpectedStatement] = Field(default_factory=list)
    drop: list[ForbiddenMemory] = Field(default_factory=list)
    supersedes: list[ExpectedSupersession] = Field(default_factory=list)
    no_entities: list[str] = Field(default_factory=list)
    skip: bool = False


class EvaluationCase(_StrictModel):
    """One conversation of one user; without `timezone` its dates are in the offset of its messages.

    `user_names` are the names of the user's own entity, of which there must be one; without them, those on the user's
    lines are taken for it.
    """

    id: str
    tags: list[str] = Field(min_length=1)
    timezone: TimeZoneName | None = None
    user_names: list[str] = Field(default_factory=list)
    stored: list[StoredMemory] = Field(default_factory=list)
    sessions: list[SessionBatch] = Field(min_length=1)
    expected: CaseExpectations


def load_cases(path: Path = CONVERSATIONS) -> list[EvaluationCase]:
    """Return the cases of a JSONL file in order."""
    return [EvaluationCase.model_validate_json(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


@cache
def fold_text(text: str) -> str:
    """Return a text for comparison: case-folded, without accents."""
    marks = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in marks if not unicodedata.combining(letter))


def matches_any(text: str, patterns: list[str]) -> bool:
    """Return whether a text matches one of the patterns."""
    return any(
        all(_starts_a_word(word, fold_text(text)) for word in fold_text(pattern).split()) for pattern in patterns
    )


def _starts_a_word(word: str, text: str) -> bool:
    if re.match(f"[{CJK_CHARACTERS}]", word):
        return word in text
    return re.search(rf"(?<![^\W{CJK_CHARACTERS}]){re.escape(word)}", text) is not None
