"""Checks that entities are whom the conversation means. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

from quality.cases import EvaluationCase, matches_any
from quality.results import USER, CaseResult, ScoredMemory


def check_names(case: EvaluationCase, result: CaseResult) -> dict[str, bool]:
    """Return whether no entity has a name that nothing may have, and whether the user is one entity."""
    names = {name for memory in result.kept for name in (memory.subject, memory.object, *memory.entities) if name}
    checks = {
        f"free of entities called {pattern}": not any(matches_any(name, [pattern]) for name in names)
        for pattern in case.expected.no_entities
    }
    if case.user_names:
        checks["one entity for the user"] = result.user_entities <= 1
    return checks


def check_referents(
    case: EvaluationCase, kept: Sequence[ScoredMemory], matches: Sequence[ScoredMemory | None]
) -> dict[str, bool]:
    """Return whether each referent is one entity and no two are the same; `matches` are those of the `keep` entries."""
    ids: dict[str, set[str]] = defaultdict(set)
    about = [(keep.referent, memory) for keep, memory in zip(case.expected.keep, matches, strict=True)]
    about += [(case.stored[memory.stored].referent, memory) for memory in kept if memory.stored is not None]
    for referent, memory in about:
        if referent and memory and memory.subject != USER:
            ids[referent].add(memory.subject_id)
    one = {f"one entity for {referent}": len(known) == 1 for referent, known in ids.items()}
    apart = {
        f"{first} apart from {second}": ids[first].isdisjoint(ids[second]) for first, second in combinations(ids, 2)
    }
    return {**one, **apart}
