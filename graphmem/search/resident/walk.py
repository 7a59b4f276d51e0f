"""The facts up to three steps around entities, as the query `search.find_facts_around_entities` finds them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from graphmem.memories.filters import FactFilters
from graphmem.search.fact_candidate import FactCandidate
from graphmem.search.resident.fact_table import FactTable, ResidentFact, rank_by_importance
from graphmem.search.resident.group_copy import GroupCopy
from graphmem.search.source import (
    MAX_COMPUTED_FACTS,
    MAX_ENTITY_DEGREE,
    MAX_FOLLOWED_ENTITIES,
    MAX_INCOMING_FACTS,
    MAX_OUTGOING_FACTS,
    MAX_START_FACTS,
)


@dataclass(frozen=True, slots=True)
class _ReachedFact:
    """A fact that was reached: its similarity to the question, its score, the entity beyond it, and the way to it."""

    fact: ResidentFact
    similarity: float | None
    score: float
    beyond: str | None
    way: float = 0.0


class Walk:
    """One walk over the copies of the groups that a user reads."""

    def __init__(self, copies: Sequence[GroupCopy], vector: NDArray[np.float32] | None, filters: FactFilters) -> None:
        self._copies = copies
        self._vector = vector
        masks = {copy.facts: copy.facts.masks(filters) for copy in copies}
        self._held: dict[FactTable, list[bool]] = {table: found.times.tolist() for table, found in masks.items()}
        self._matching = {table: found.attributes.tolist() for table, found in masks.items()}
        self._users = frozenset(chain.from_iterable(copy.user_ids for copy in copies))

    def find(self, entity_ids: Sequence[str], limit: int) -> list[FactCandidate]:
        """Return the facts around entities, best first by their similarity and that of the way to them."""
        named = {entity_id for entity_id in entity_ids if len(self._at(entity_id)) <= MAX_ENTITY_DEGREE}
        first = self._first_steps(named, limit)
        second = self._second_steps(named, first)
        steps = [*first, *second, *self._third_steps(first, second)]
        matching = [step for step in steps if self._matching[step.fact.table][step.fact.row]]
        matching.sort(key=lambda step: (-step.score, rank_by_importance(step.fact)))
        return [step.fact.candidate._replace(score=step.score, similarity=step.similarity) for step in matching[:limit]]

    def _first_steps(self, named: set[str], limit: int) -> list[_ReachedFact]:
        """Return the facts of the named entities: those that match the filters and the most important ones first."""
        facts = [*{fact.properties["uuid"]: fact for entity_id in named for fact in self._held_at(entity_id)}.values()]
        facts.sort(key=lambda fact: (not self._matching[fact.table][fact.row], rank_by_importance(fact)))
        return [
            _ReachedFact(fact, similarity, similarity or 0.0, self._beyond(fact.ends, named))
            for fact, similarity in self._with_similarities(facts[:limit])
        ]

    def _second_steps(self, named: set[str], first: Sequence[_ReachedFact]) -> list[_ReachedFact]:
        """Return the facts of the entities that few facts of the named ones lead to."""
        if len(first) > MAX_START_FACTS:
            return []
        ways: dict[str, tuple[ResidentFact, float, set[str]]] = {}
        for entity_id, way in _most_similar_ways((step.beyond, step.score) for step in first):
            for fact in self._held_of(self._followed(entity_id)):
                if named.isdisjoint(fact.ends):
                    uuid = fact.properties["uuid"]
                    _, best, origins = ways.get(uuid, (fact, way, set()))
                    ways[uuid] = fact, max(best, way), origins | {entity_id}
        nearest = sorted(ways.values(), key=lambda found: found[1], reverse=True)[:MAX_COMPUTED_FACTS]
        computed = self._with_similarities([fact for fact, _, _ in nearest])
        return [
            _ReachedFact(
                fact,
                similarity,
                (-0.1 if similarity is None else similarity) + 0.3 * way,
                self._beyond(fact.ends[::-1], origins),
                way,
            )
            for (fact, similarity), (_, way, origins) in zip(computed, nearest, strict=True)
        ]

    def _third_steps(self, first: Sequence[_ReachedFact], second: Sequence[_ReachedFact]) -> list[_ReachedFact]:
        """Return the outgoing facts of the entities that the second steps lead to."""
        seen = {step.fact.properties["uuid"] for step in (*first, *second)}
        before = {step.beyond for step in first}
        onward = (
            (step.beyond, (step.score + 0.7 * step.way) / 2)
            for step in second
            if step.beyond not in before and step.beyond is not None and self._leads_on(step.beyond)
        )
        ways: dict[str, tuple[ResidentFact, float]] = {}
        for entity_id, way in _most_similar_ways(onward):
            for fact in self._held_of(self._outgoing(entity_id).values()):
                if (uuid := fact.properties["uuid"]) not in seen:
                    ways[uuid] = fact, max(ways[uuid][1] if uuid in ways else way, way)
        nearest = sorted(ways.values(), key=lambda found: found[1], reverse=True)[:MAX_COMPUTED_FACTS]
        computed = self._with_similarities([fact for fact, _ in nearest])
        return [
            _ReachedFact(fact, similarity, (-0.2 if similarity is None else similarity) + 0.6 * way, None)
            for (fact, similarity), (_, way) in zip(computed, nearest, strict=True)
        ]

    # The graph

    def _outgoing(self, entity_id: str) -> Mapping[str, ResidentFact]:
        return next((found for copy in self._copies if (found := copy.facts.outgoing(entity_id))), {})

    def _incoming(self, entity_id: str) -> Mapping[str, ResidentFact]:
        return next((found for copy in self._copies if (found := copy.facts.incoming(entity_id))), {})

    def _at(self, entity_id: str) -> Mapping[str, ResidentFact]:
        return {**self._outgoing(entity_id), **self._incoming(entity_id)}

    def _leads_on(self, entity_id: str) -> bool:
        return len(self._outgoing(entity_id)) <= MAX_OUTGOING_FACTS

    def _followed(self, entity_id: str) -> Iterable[ResidentFact]:
        """Return the facts by which an entity on the way is left, each once."""
        outgoing, incoming = self._outgoing(entity_id), self._incoming(entity_id)
        followed = dict(outgoing) if len(outgoing) <= MAX_OUTGOING_FACTS else {}
        if len(incoming) <= MAX_INCOMING_FACTS:
            followed |= incoming
        return followed.values()

    def _held_at(self, entity_id: str) -> Iterator[ResidentFact]:
        return self._held_of(self._at(entity_id).values())

    def _held_of(self, facts: Iterable[ResidentFact]) -> Iterator[ResidentFact]:
        """Yield those of the facts that held at the times of the filters."""
        return (fact for fact in facts if self._held[fact.table][fact.row])

    def _beyond(self, ends: Iterable[str], origins: set[str]) -> str | None:
        """Return the first end of a fact that is not where it was reached from, nor the user."""
        return next((end for end in ends if end not in origins and end not in self._users), None)

    def _with_similarities(self, facts: Sequence[ResidentFact]) -> list[tuple[ResidentFact, float | None]]:
        """Return facts with their similarity to the question, None without one."""
        if self._vector is None:
            return [(fact, None) for fact in facts]
        return [*zip(facts, similarities(facts, self._vector), strict=True)]


def similarities(facts: Sequence[ResidentFact], vector: NDArray[np.float32]) -> list[float | None]:
    """Return the cosine of each fact and a vector of length 1, None for a fact without a vector."""
    found: dict[str, float] = {}
    for table, group in groupby(sorted(facts, key=lambda fact: id(fact.table)), key=attrgetter("table")):
        members = [fact for fact in group if table.has_vector(fact)]
        computed = table.similarities(members, vector[np.newaxis])
        found |= {fact.properties["uuid"]: row[0] for fact, row in zip(members, computed, strict=True)}
    return [found.get(fact.properties["uuid"]) for fact in facts]


def _most_similar_ways(ways: Iterable[tuple[str | None, float]]) -> list[tuple[str, float]]:
    """Return the entities with the similarity of the best way to each, the best first."""
    best: dict[str, float] = {}
    for entity_id, way in ways:
        if entity_id is not None:
            best[entity_id] = max(best.get(entity_id, way), way)
    return sorted(best.items(), key=lambda item: item[1], reverse=True)[:MAX_FOLLOWED_ENTITIES]
