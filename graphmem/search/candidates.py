"""Candidates: the facts found by the channels of a search, as one table of columns. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmem.neo4j.driver_values import unpack_vector
from graphmem.search.bm25 import Scores, Stems, hash_stems
from graphmem.tenants.trust import SourceKind
from graphmem.text.tokenising import tokenize

Rows: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

Channel = str
"""The name of a way to find facts: semantic, keyword or graph."""

Times = NDArray[np.int64]
"""Times in milliseconds since 1970."""


class FactStems(NamedTuple):
    """The stems of a fact: of its statement, predicate, names and tags; `all` also has those of its messages."""

    languages: tuple[str, ...]
    statement: Stems
    all: Stems


@dataclass(slots=True, kw_only=True)
class FactRow:
    """The non-numeric data of a fact for ranking.

    The first line of its context has its names and tags, the other lines have its messages. Its stems are computed on
    first use and kept as long as the row. `trust_kind` is the source kind whose trust it has.
    """

    uuid: str
    memory_id: str
    content: str
    context: str
    type: str
    tags: Sequence[str]
    message_ids: Sequence[str]
    entity_ids: Sequence[str]
    trust_kind: SourceKind = "user"
    _stems: FactStems | None = field(default=None, compare=False, repr=False)

    @property
    def statement_and_names(self) -> str:
        """The statement, followed by a line with the names of the entities it is about."""
        names, _, _ = self.context.partition("\n")
        return f"{self.content}\n{names}"

    def stems(self, languages: tuple[str, ...]) -> FactStems:
        """Return the stems; no word spans two lines, so that each part is read once."""
        if self._stems is None or self._stems.languages != languages:
            _, _, messages = self.context.partition("\n")
            statement = tokenize(self.statement_and_names, languages)
            stems = hash_stems((*statement, *tokenize(messages, languages)))
            self._stems = FactStems(languages, stems[: len(statement)], stems)
        return self._stems


class FactNumbers(NamedTuple):
    """The numeric data of facts for ranking, one column each; a fact never accessed has its creation as last access."""

    importance: Scores
    strength: Scores
    decay_rate: Scores
    last_accessed: Times
    valid_from: Times
    valid_to: Times


class Ranking(NamedTuple):
    """Rows of a table, best first, with the score of each."""

    rows: Rows
    scores: Scores

    @classmethod
    def of(cls, best: Sequence[tuple[int, float]]) -> Ranking:
        """Return a ranking from rows with their scores, best first."""
        return cls(np.array([row for row, _ in best], np.int64), np.array([score for _, score in best], np.float64))

    def merged(self, other: Ranking) -> Ranking:
        """Return the distinct rows of both by score; for a row in both, the score is from `other`."""
        scores = dict(zip(chain(self.rows, other.rows), chain(self.scores, other.scores), strict=True))
        rows = np.fromiter(scores, np.int64, len(scores))
        return Ranking(rows, np.fromiter(scores.values(), np.float64, len(scores))).sorted()

    def sorted(self) -> Ranking:
        """Return the rows sorted by score; rows with equal scores keep their order."""
        order = np.argsort(-self.scores, kind="stable")
        return Ranking(self.rows[order], self.scores[order])


@dataclass(frozen=True, slots=True)
class Candidates:
    """The distinct facts found by channels, one per row; `channels` has the rows by channel.

    `similarities` are the cosines of their vectors with the question's, `focus_similarities` those with its focus; a
    fact without a vector has NaN.
    """

    facts: Sequence[FactRow]
    numbers: FactNumbers
    similarities: Scores
    focus_similarities: Scores
    channels: Mapping[Channel, Ranking]

    def __len__(self) -> int:
        return len(self.facts)


def merge_channels(found: Mapping[Channel, Ranking], other: Mapping[Channel, Ranking]) -> dict[Channel, Ranking]:
    """Return the combined rows of two searches by the same channels."""
    return {channel: ranking.merged(other[channel]) for channel, ranking in found.items()}


def number_rows(channels: Mapping[Channel, Ranking]) -> tuple[Rows, dict[Channel, Ranking]]:
    """Return the distinct rows found, in channel order, and the channels as positions in these rows."""
    places: dict[int, int] = {}
    for ranking in channels.values():
        for row in ranking.rows.tolist():
            places.setdefault(row, len(places))
    numbered = {
        channel: Ranking(np.fromiter(map(places.__getitem__, rows.tolist()), np.int64, len(rows)), scores)
        for channel, (rows, scores) in channels.items()
    }
    return np.fromiter(places, np.int64, len(places)), numbered


def unit_vector(vector: Any, dimension: int) -> NDArray[np.float32]:
    """Return a Neo4j vector or a list as an array of length 1; zeros if there is none."""
    if vector is None:
        return np.zeros(dimension, dtype=np.float32)
    array = unpack_vector(vector)
    length = float(np.linalg.norm(array))
    return array / np.float32(length) if length else array


def best_rows(rows: Rows, scores: Scores | NDArray[np.float32], limit: int) -> Rows:
    """Return up to `limit` of the rows by score, best first; in a tie, the earlier row comes first."""
    if len(rows) > limit:
        # Keep all rows with the score of the last place, since one of them may come earlier than the row in that place.
        least = np.partition(scores, len(rows) - limit)[len(rows) - limit]
        rows, scores = rows[scores >= least], scores[scores >= least]
    order = np.argsort(-scores, kind="stable")[:limit]
    return rows[order]
