"""The facts up to four steps around entities. Pure.

The ways that are most similar to the question are followed: at the second step along outgoing facts and, from an entity
that few facts lead to, along these; from the third on along outgoing facts only. Many facts lead to none of them in
particular, so that more than `MAX_START_FACTS` facts and the user's own entity are not followed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set
from itertools import chain
from operator import itemgetter
from typing import NamedTuple, Protocol

import numpy as np

from graphmem.search.candidates import Ranking
from graphmem.search.columns import Mask, Scores

MAX_ENTITY_DEGREE = 200
"""Most facts of a named entity around which facts are searched: more do not lead to any of them in particular."""

MAX_START_FACTS = 40
"""Most facts of the named entities from which further steps are made."""

MAX_COMPUTED_FACTS = 100
"""Most facts of one step that are considered; those at the end of the most similar ways are chosen."""

MAX_OUTGOING_FACTS = 50
"""Most facts of which an entity on the way is the subject for these to be followed."""

MAX_INCOMING_FACTS = 15
"""Most facts of which an entity on the way is the object for these to be followed."""

MAX_FOLLOWED_ENTITIES = 30
"""Most entities that are followed at one step; those whose way is most similar to the question are chosen."""


class GraphFact(Protocol):
    """A fact as an edge; `rank` sorts facts by importance and by when they became known, highest and latest first."""

    @property
    def ends(self) -> tuple[str, str]:
        """The ids of its subject and object; without an object that of the subject."""

    @property
    def rank(self) -> tuple[float, int, str]:
        """What facts are sorted by."""


class Edges(Protocol):
    """Facts as edges between entities, a fact a row."""

    @property
    def facts(self) -> Sequence[GraphFact]:
        """The facts by row."""

    def outgoing(self, entity_id: str) -> Collection[int]:
        """Return the rows of the facts whose subject an entity is."""

    def incoming(self, entity_id: str) -> Collection[int]:
        """Return the rows of the facts whose object an entity is."""


class _Reached(NamedTuple):
    """A fact that was reached: its row, its score, the entity beyond it, and the similarity of the way to it."""

    row: int
    score: float
    beyond: str | None
    way: float = 0.0


class Walk:
    """One walk over facts of which those that `held` are followed; `similarities` are those to the question."""

    def __init__(self, edges: Edges, similarities: Scores, held: Mask, matching: Mask, user_ids: Set[str]) -> None:
        """Return only facts that are `matching`."""
        self._edges = edges
        self._facts = edges.facts
        self._similarities = similarities
        self._held = held
        self._matching = matching
        self._user_ids = user_ids

    def find(self, entity_ids: Sequence[str], limit: int) -> Ranking:
        """Return the facts around entities, best first by their similarity and that of the way to them."""
        named = {entity_id: rows for entity_id in entity_ids if len(rows := self._at(entity_id)) <= MAX_ENTITY_DEGREE}
        first = self._first_steps(named.keys(), set(chain.from_iterable(named.values())), limit)
        second = self._second_steps(named.keys(), first)
        third = self._further_steps(second, first)
        steps = [*first, *second, *third, *self._further_steps(third, [*first, *second])]
        matching = self._matching[[step.row for step in steps]].tolist() if steps else []
        found = [
            (-step.score, self._facts[step.row].rank, step.row)
            for step, matches in zip(steps, matching, strict=True)
            if matches
        ]
        best = sorted(found)[:limit]
        return Ranking(np.array([row for *_, row in best], np.int64), -np.array([score for score, *_ in best]))

    def _first_steps(self, named: Set[str], rows: Collection[int], limit: int) -> list[_Reached]:
        """Return the facts of the named entities: those that match the filters and the most important ones first."""
        held = self._held_of(rows)
        matching = dict(zip(held, self._matching[held].tolist() if held else (), strict=True))
        best = sorted(held, key=lambda row: (not matching[row], self._facts[row].rank))[:limit]
        return [
            _Reached(row, similarity, self._beyond(self._facts[row].ends, named))
            for row, similarity in self._with_similarities(best, 0.0)
        ]

    def _second_steps(self, named: Set[str], first: Sequence[_Reached]) -> list[_Reached]:
        """Return the facts of the entities that few facts of the named ones lead to."""
        if len(first) > MAX_START_FACTS:
            return []
        ways: dict[int, float] = {}
        origins: dict[int, list[str]] = {}
        for entity_id, way in _most_similar_ways((step.beyond, step.score) for step in first):
            for row in self._held_of(self._followed(entity_id)):
                if named.isdisjoint(self._facts[row].ends):
                    ways[row] = max(ways.get(row, way), way)
                    origins.setdefault(row, []).append(entity_id)
        return [
            _Reached(
                row,
                similarity + 0.3 * ways[row],
                self._beyond(self._facts[row].ends[::-1], origins[row]),
                ways[row],
            )
            for row, similarity in self._with_similarities(_nearest(ways), -0.1)
        ]

    def _further_steps(self, last: Sequence[_Reached], earlier: Sequence[_Reached]) -> list[_Reached]:
        """Return the outgoing facts of the entities that the last steps lead to and `earlier` ones do not."""
        seen = {step.row for step in (*earlier, *last)}
        before = {step.beyond for step in earlier}
        onward = (
            (step.beyond, (step.score + 0.7 * step.way) / 2)
            for step in last
            if step.beyond not in before
            and step.beyond is not None
            and len(self._edges.outgoing(step.beyond)) <= MAX_OUTGOING_FACTS
        )
        ways: dict[int, float] = {}
        for entity_id, way in _most_similar_ways(onward):
            for row in self._held_of(self._edges.outgoing(entity_id)):
                if row not in seen:
                    ways[row] = max(ways.get(row, way), way)
        reached = self._with_similarities(_nearest(ways), -0.2)
        return [
            _Reached(row, similarity + 0.6 * ways[row], self._beyond(ends[::-1], ends[:1]), ways[row])
            for row, similarity in reached
            for ends in [self._facts[row].ends]
        ]

    # The graph

    def _at(self, entity_id: str) -> list[int]:
        return list(dict.fromkeys([*self._edges.outgoing(entity_id), *self._edges.incoming(entity_id)]))

    def _followed(self, entity_id: str) -> Collection[int]:
        """Return the facts by which an entity on the way is left, each once."""
        outgoing, incoming = self._edges.outgoing(entity_id), self._edges.incoming(entity_id)
        followed = dict.fromkeys(outgoing if len(outgoing) <= MAX_OUTGOING_FACTS else ())
        return followed | dict.fromkeys(incoming if len(incoming) <= MAX_INCOMING_FACTS else ())

    def _held_of(self, rows: Collection[int]) -> list[int]:
        """Return those of the facts that held at the times of the filters."""
        given = [*rows]
        return [row for row, held in zip(given, self._held[given].tolist(), strict=True) if held] if given else []

    def _beyond(self, ends: Iterable[str], origins: Collection[str]) -> str | None:
        """Return the first end of a fact that is not where it was reached from, nor the user."""
        return next((end for end in ends if end not in origins and end not in self._user_ids), None)

    def _with_similarities(self, rows: Sequence[int], without: float) -> list[tuple[int, float]]:
        """Return facts with their similarity to the question; a fact that has none gets the value."""
        if not rows:
            return []
        return [*zip(rows, np.nan_to_num(self._similarities[rows], nan=without).tolist(), strict=True)]


def _nearest(ways: dict[int, float]) -> list[int]:
    """Return the facts at the end of the most similar ways."""
    return sorted(ways, key=ways.__getitem__, reverse=True)[:MAX_COMPUTED_FACTS]


def _most_similar_ways(ways: Iterable[tuple[str | None, float]]) -> list[tuple[str, float]]:
    """Return the entities with the similarity of the best way to each, the best first."""
    best: dict[str, float] = {}
    for entity_id, way in ways:
        if entity_id is not None:
            best[entity_id] = max(best.get(entity_id, way), way)
    return sorted(best.items(), key=itemgetter(1), reverse=True)[:MAX_FOLLOWED_ENTITIES]
