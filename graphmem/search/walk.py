"""The facts up to four steps around entities: one walk for all sources of facts. Pure.

The ways most similar to the question are followed: at the second step along outgoing facts and, from an entity with few
incoming facts, along those; from the third on along outgoing facts only. Many facts lead to none of them in particular,
so no steps are made from more than `MAX_START_FACTS` facts at once, nor from the user's own entity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from heapq import nlargest, nsmallest
from operator import itemgetter
from typing import NamedTuple, Protocol

MAX_START_FACTS = 40
"""Maximum facts of the named entities for further steps; with more, none are made."""

MAX_COMPUTED_FACTS = 100
"""Maximum facts considered at a further step; those at the end of the most similar ways are chosen."""

MAX_FOLLOWED_ENTITIES = 30
"""Maximum entities followed at one step; those with ways most similar to the question are chosen."""


class WalkStep(NamedTuple):
    """One step: the facts it follows, and how their scores are computed.

    An entity with more facts than `max_degree` is not followed, nor are its facts as a subject if there are more than
    `max_outgoing`, nor those as an object if there are more than `max_incoming`: so many lead to none of them in
    particular. A score is the similarity of the fact plus a share of that of the way to it.
    """

    max_degree: int
    max_outgoing: int
    max_incoming: int
    share_of_way: float
    similarity_without_vector: float


FIRST = WalkStep(200, 200, 200, share_of_way=0.0, similarity_without_vector=0.0)
SECOND = WalkStep(2**31, 50, 15, share_of_way=0.3, similarity_without_vector=-0.1)
FURTHER = WalkStep(2**31, 50, 0, share_of_way=0.6, similarity_without_vector=-0.2)

STEPS = (FIRST, SECOND, FURTHER, FURTHER)


class WalkEdge(NamedTuple):
    """A fact as an edge: its row in its source, and the ids of its subject and object (the subject twice without one).

    `origins` are the entities at which it was found. `rank` sorts facts by importance and by when they became known,
    the highest and the latest first. `similarity` is that to the question, None for a fact without a vector.
    """

    row: int
    ends: tuple[str, str]
    origins: Sequence[str]
    matches: bool
    rank: tuple[float, int, str]
    similarity: float | None


class Edges(Protocol):
    """Facts of a source that held at the times of a search, as edges that say whether they match its other filters."""

    @property
    def user_ids(self) -> Set[str]:
        """The ids of the entities that stand for a user, among the ends of the edges found so far."""

    async def find(
        self, ways: Mapping[str, float], step: WalkStep, seen: Sequence[int], limit: int
    ) -> Sequence[WalkEdge]:
        """Return the edges of a step from entities, without the rows `seen`; at least the first `limit` in order.

        They are ordered by the ways to their entities, then matching edges first, then by rank.
        """


class _Reached(NamedTuple):
    """An edge that was reached, its score, the entity beyond it, and the similarity of the way on from there."""

    edge: WalkEdge
    score: float
    beyond: str | None
    onward: float


async def walk(edges: Edges, entity_ids: Sequence[str], limit: int) -> list[tuple[int, float]]:
    """Return the rows and scores of up to `limit` matching facts around entities, best first."""
    ways, earlier, reached = dict.fromkeys(entity_ids, 0.0), set[str | None](), list[_Reached]()
    for step in STEPS:
        if not ways:
            break
        most = limit if step is FIRST else MAX_COMPUTED_FACTS
        found = await edges.find(ways, step, [other.edge.row for other in reached], most)
        last = _reach(found, ways, step, edges.user_ids, most)
        reached += last
        is_stop = step is FIRST and len(last) > MAX_START_FACTS
        ways = {} if is_stop else _most_similar_ways(last, earlier)
        earlier.update(end.beyond for end in last)
    matching = ((-end.score, end.edge.rank, end.edge.row) for end in reached if end.edge.matches)
    return [(row, -score) for score, _, row in nsmallest(limit, matching)]


def _reach(
    found: Sequence[WalkEdge], ways: Mapping[str, float], step: WalkStep, user_ids: Set[str], most: int
) -> list[_Reached]:
    """Return the edges at the end of the most similar ways, with the entity beyond, unless an origin or the user."""
    left = user_ids | {origin for edge in found for origin in edge.origins}
    with_ways = [(-max(ways[origin] for origin in edge.origins), not edge.matches, edge.rank, edge) for edge in found]
    reached = []
    for negative_way, _, _, edge in nsmallest(most, with_ways):
        similarity = step.similarity_without_vector if edge.similarity is None else edge.similarity
        score = similarity - step.share_of_way * negative_way
        onward = score if step is FIRST else (score - 0.7 * negative_way) / 2
        beyond = next((end for end in edge.ends if end not in left), None)
        reached.append(_Reached(edge, score, beyond, onward))
    return reached


def _most_similar_ways(last: Iterable[_Reached], earlier: Set[str | None]) -> dict[str, float]:
    """Return the entities that the last step is the first to lead to, with the best way to each, best first."""
    best: dict[str, float] = {}
    for end in last:
        if end.beyond is not None and end.beyond not in earlier:
            best[end.beyond] = max(best.get(end.beyond, end.onward), end.onward)
    return dict(nlargest(MAX_FOLLOWED_ENTITIES, best.items(), key=itemgetter(1)))
