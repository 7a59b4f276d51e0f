"""Chains of facts that lead step by step from the entities a question names to what it asks for. Pure.

"Which instrument does Mara's sister play?" takes two facts: who the sister is, and what she plays. The second shares
few words with the question and the first does not answer it; together they have all of its words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from heapq import nlargest
from operator import or_

MAX_STEPS = 4
"""Maximum facts in a chain."""

MAX_PATHS = 20
"""Maximum paths followed from each step to the next, the best ones."""


@dataclass(frozen=True, slots=True)
class _Path:
    """Facts, by row, from a named entity to the entity `end`; `told` has a bit for each question word in them."""

    end: str
    visited: frozenset[str]
    rows: tuple[int, ...] = ()
    told: int = 0
    likeness: float = 0.0

    @property
    def worth(self) -> tuple[float, int]:
        """The sort key of paths: first the share of the question they cover, then their facts' similarity to it."""
        return self.told.bit_count() + self.likeness, -len(self.rows)


def find_chain(
    ends: Sequence[Sequence[str]], told: Sequence[int], likeness: Sequence[float], starts: Set[str], all_words: int
) -> list[int]:
    """Return the rows of the facts of the chain that covers most of a question, in order, or none.

    Facts are given by the entities that each joins, a bit for each question word in it, and its similarity to the
    question; `all_words` has the bits of all words. A chain starts at one of the entities `starts`. It has several
    facts, of which the first and the last cover words that no other one does, and covers more than any single fact. If
    words are left, the fact most similar to the question leads on from its end.
    """
    by_entity: dict[str, list[int]] = defaultdict(list)
    for row, joined in enumerate(ends):
        for entity_id in joined:
            by_entity[entity_id].append(row)
    most = max((words.bit_count() for words in told), default=0)
    paths = [_Path(start, frozenset(starts)) for start in sorted(starts)]
    best: _Path | None = None
    for _ in range(MAX_STEPS):
        extended = (path for start in paths for path in _extend(start, by_entity, ends, told, likeness))
        paths = nlargest(MAX_PATHS, extended, key=lambda path: path.worth)
        for path in paths:
            if path.told.bit_count() > most and _is_chain(path, told) and (best is None or path.worth > best.worth):
                best = path
    if best is None:
        return []
    if best.told != all_words and len(best.rows) < MAX_STEPS:
        onwards = _extend(best, by_entity, ends, told, likeness)
        best = max(onwards, key=lambda path: path.likeness, default=best)
    return [*best.rows]


def _extend(
    path: _Path,
    by_entity: Mapping[str, Sequence[int]],
    ends: Sequence[Sequence[str]],
    told: Sequence[int],
    likeness: Sequence[float],
) -> Iterator[_Path]:
    """Yield the path extended by each of the facts at its end that leads to another entity."""
    for row in by_entity.get(path.end, ()):
        for entity_id in ends[row]:
            if entity_id not in path.visited:
                yield _Path(
                    entity_id,
                    path.visited | {entity_id},
                    (*path.rows, row),
                    path.told | told[row],
                    path.likeness + likeness[row] / MAX_STEPS,
                )


def _is_chain(path: _Path, told: Sequence[int]) -> bool:
    """Return whether a path has several facts, of which the first and the last cover words that no other one does."""
    if len(path.rows) < 2:
        return False
    for end in (path.rows[0], path.rows[-1]):
        others = reduce(or_, (told[row] for row in path.rows if row != end))
        if not told[end] & ~others:
            return False
    return True
