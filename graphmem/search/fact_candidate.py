"""A fact that a channel found: what ranking needs of it, and the stems of its words, which are read once. Pure."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graphmem.tenants.trust import SourceKind
from graphmem.text.tokenising import tokenize


class FactTokens(NamedTuple):
    """The stems of a fact: of its statement, predicate, names and tags, and `all` with those of its messages."""

    languages: tuple[str, ...]
    statement: tuple[str, ...]
    all: tuple[str, ...]


@dataclass(slots=True)
class FactText:
    """What is read of a fact: its statement, and the lines of its context, the first of which has no messages.

    Its stems are computed when they are first asked for, and kept as long as it is.
    """

    content: str
    context: str
    _tokens: FactTokens | None = field(default=None, compare=False, repr=False)

    @property
    def statement_and_names(self) -> str:
        """The statement, and the names of what it is about in a further line."""
        names, _, _ = self.context.partition("\n")
        return f"{self.content}\n{names}"

    def tokens(self, languages: tuple[str, ...]) -> FactTokens:
        """Return the stems; no word spans two lines, so that each part is read once."""
        if self._tokens is None or self._tokens.languages != languages:
            _, _, messages = self.context.partition("\n")
            statement = tuple(map(sys.intern, tokenize(self.statement_and_names, languages)))
            of_messages = map(sys.intern, tokenize(messages, languages))
            self._tokens = FactTokens(languages, statement, (*statement, *of_messages))
        return self._tokens


class FactCandidate(NamedTuple):
    """A fact that a channel found, with what ranking needs; times are in milliseconds since 1970.

    `similarity` is the cosine of its vector and the question's, None where the channel did not compute it; `trust_kind`
    is the kind of source that it is trusted as.
    """

    uuid: str
    memory_id: str
    score: float
    text: FactText
    type: str
    tags: Sequence[str]
    importance: float
    strength: float
    decay_rate: float
    last_accessed_ms: int
    valid_from: int
    valid_to: int
    message_ids: Sequence[str]
    entity_ids: Sequence[str]
    similarity: float | None
    trust_kind: SourceKind = "user"

    @classmethod
    def from_columns(cls, columns: Sequence[Any]) -> FactCandidate:
        """Return the candidate that the fragment `fact_candidate` describes."""
        uuid, memory_id, score, content, context, *others = columns
        return cls(uuid, memory_id, score, FactText(content, context), *others)
