"""The latest versions of some memories, found by what must not be valid at the same time. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable

from graphmem.memories.fact import Fact


class LatestVersions:
    """The latest version of each memory, in the order in which the memories came."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._facts: dict[str, Fact] = {}
        self._places: dict[str, int] = {}
        self._ids_by_key: dict[Hashable, set[str]] = defaultdict(set)
        for fact in facts:
            self.put(fact)

    def __getitem__(self, memory_id: str) -> Fact:
        return self._facts[memory_id]

    def __contains__(self, memory_id: object) -> bool:
        return memory_id in self._facts

    def get(self, memory_id: str | None) -> Fact | None:
        """Return the latest version of a memory, or None for an unknown one."""
        return self._facts.get(memory_id) if memory_id else None

    def values(self) -> list[Fact]:
        """Return all latest versions."""
        return list(self._facts.values())

    def put(self, fact: Fact) -> None:
        """Make a fact the latest version of its memory."""
        self._unlist(fact.memory_id)
        self._places.setdefault(fact.memory_id, len(self._places))
        self._facts[fact.memory_id] = fact
        for key in _competition_keys(fact):
            self._ids_by_key[key].add(fact.memory_id)

    def remove(self, memory_id: str) -> None:
        """Remove a memory."""
        self._unlist(memory_id)
        del self._facts[memory_id]

    def that_state(self, fact: Fact) -> list[Fact]:
        """Return the versions that state the same."""
        return self._with_keys([fact.dedup_key])

    def that_may_compete(self, fact: Fact) -> list[Fact]:
        """Return the versions that state the same or have the same subject and predicate."""
        return self._with_keys(_competition_keys(fact))

    def _with_keys(self, keys: Iterable[Hashable]) -> list[Fact]:
        ids = {memory_id for key in keys for memory_id in self._ids_by_key.get(key, ())}
        return [self._facts[memory_id] for memory_id in sorted(ids, key=self._places.__getitem__)]

    def _unlist(self, memory_id: str) -> None:
        if known := self._facts.get(memory_id):
            for key in _competition_keys(known):
                self._ids_by_key[key].discard(memory_id)


def _competition_keys(fact: Fact) -> tuple[Hashable, Hashable]:
    """Return what two facts share that may not be valid together: the statement, or the subject and the predicate."""
    return fact.dedup_key, (fact.subject_id, fact.predicate)
