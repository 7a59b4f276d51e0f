"""Chains of facts that lead from what a question names, step by step, to what it asks for. Pure.

"Which instrument does Mara's sister play?" takes two facts: who the sister is, and what she plays. The second shares
few words with the question and the first does not answer it; together they have all of its words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest

from graphmem.context.relevance import ExcerptWords, content_words
from graphmem.memories.entity import EntityRef
from graphmem.search.models import SearchHit

MAX_STEPS = 4
"""Facts of a chain at most."""

MAX_PATHS = 20
"""Paths that are followed from each step to the next, the best ones."""


@dataclass(frozen=True, slots=True)
class _Path:
    """Facts from a named entity to the entity `end`; `told` are the words of the question in them, by number."""

    end: str
    visited: frozenset[str]
    facts: tuple[SearchHit, ...] = ()
    told: frozenset[int] = frozenset()
    likeness: float = 0.0

    @property
    def worth(self) -> tuple[float, float]:
        """What orders paths: how much of the question they tell, then how like it their facts are."""
        return len(self.told) + self.likeness, -len(self.facts)


def find_chain(facts: Sequence[SearchHit], words: ExcerptWords, user_id: str | None = None) -> list[SearchHit]:
    """Return the facts of the chain that tells most of a question with these words, in order, or none.

    A chain starts at an entity that the question names, or at the user. It has several facts, the first and the last of
    which tell something of the question that no other one does, and tells more of it than any fact alone. Where words
    are left, the fact that is most like the question leads on from its end.
    """
    names = {ref.id: ref.name for hit in facts for ref in _ends(hit)}
    named = {entity_id for entity_id, name in names.items() if _is_named(name, words)}
    naming = frozenset[int]().union(*(words.find_in(names[entity_id]) for entity_id in named))
    starts = named | ({user_id} if user_id else set())
    by_entity: dict[str, list[SearchHit]] = defaultdict(list)
    for hit in facts:
        for ref in _ends(hit):
            by_entity[ref.id].append(hit)
    told = {hit.memory.id: words.find_in(_text(hit)) - naming for hit in facts}
    most = max(map(len, told.values()), default=0)
    paths = [_Path(start, frozenset(starts)) for start in sorted(starts)]
    best: _Path | None = None
    for _ in range(MAX_STEPS):
        extended = [path for start in paths for path in _extend(start, by_entity[start.end], told)]
        paths = nlargest(MAX_PATHS, extended, key=lambda path: path.worth)
        for path in paths:
            if len(path.told) > most and _is_chain(path, told) and (best is None or path.worth > best.worth):
                best = path
    if best is None:
        return []
    left = words.count - len(best.told | naming)
    onwards = [*_extend(best, by_entity[best.end], told)] if left and len(best.facts) < MAX_STEPS else []
    return [*max(onwards, key=lambda path: path.likeness, default=best).facts]


def _extend(path: _Path, facts: Sequence[SearchHit], told: dict[str, frozenset[int]]) -> Iterator[_Path]:
    """Yield the path with each of the facts at its end that leads to another entity."""
    for hit in facts:
        for ref in _ends(hit):
            if ref.id != path.end and ref.id not in path.visited:
                likeness = hit.explain.similarity if hit.explain else 0.0
                yield _Path(
                    ref.id,
                    path.visited | {ref.id},
                    (*path.facts, hit),
                    path.told | told[hit.memory.id],
                    path.likeness + likeness / MAX_STEPS,
                )


def _is_chain(path: _Path, told: dict[str, frozenset[int]]) -> bool:
    """Return whether a path has several facts of which the first and the last tell what no other one does."""
    if len(path.facts) < 2:
        return False
    for end in (path.facts[0], path.facts[-1]):
        others = frozenset[int]().union(*(told[hit.memory.id] for hit in path.facts if hit is not end))
        if told[end.memory.id] <= others:
            return False
    return True


def _ends(hit: SearchHit) -> list[EntityRef]:
    """Return the entities that a fact joins; a fact about one entity alone has its other entities as ends."""
    memory = hit.memory
    return [memory.subject, *([memory.object] if memory.object else memory.entities)]


def _text(hit: SearchHit) -> str:
    return f"{hit.content} {hit.memory.predicate.replace('_', ' ')}"


def _is_named(name: str, words: ExcerptWords) -> bool:
    """Return whether a question has all words of a name."""
    count = len(content_words(name))
    return 0 < count <= words.count_in(name)
