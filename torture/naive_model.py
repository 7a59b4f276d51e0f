"""A user's memories as plain values: what each write changes, without versions and without times."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations, product

DEFAULT_IMPORTANCE = 0.5
"""The importance of a statement whose caller gives none; a repetition raises a lower importance to it."""


@dataclass(frozen=True, slots=True)
class NaiveMemory:
    """A memory; `slot` is the single-valued predicate that it is a value of, if any."""

    content: str
    importance: float
    slot: str | None = None
    is_current: bool = True
    replaced_by: str | None = None


@dataclass(frozen=True, slots=True)
class NaiveRun:
    """A merge that can be rolled back: its result, and its sources as they were."""

    result_id: str
    sources: dict[str, NaiveMemory]


@dataclass
class NaiveUser:
    """Memories by id, and runs by id."""

    memories: dict[str, NaiveMemory] = field(default_factory=dict)
    runs: dict[str, NaiveRun] = field(default_factory=dict)

    @property
    def current(self) -> dict[str, tuple[str, float]]:
        """Content and importance of each current memory."""
        return {key: (one.content, one.importance) for key, one in self.memories.items() if one.is_current}

    def find_current(self, content: str) -> str | None:
        """Return the id of the current memory that states a content."""
        return next((key for key, one in self.memories.items() if one.is_current and one.content == content), None)

    def value_of(self, slot: str) -> str | None:
        """Return the id of the current value of a single-valued predicate."""
        return next((key for key, one in self.memories.items() if one.is_current and one.slot == slot), None)


@dataclass(frozen=True, slots=True)
class Change:
    """A write with the result that it had; `apply` returns False when that result is impossible in a state."""

    text: str
    apply: Callable[[NaiveUser], bool]


def saved(content: str, slot: str | None, action: str, memory_id: str, superseded: Sequence[str]) -> Change:
    """Return the change of a save."""

    def apply(user: NaiveUser) -> bool:
        known = user.find_current(content)
        if known is not None:
            memory = user.memories[known]
            user.memories[known] = replace(memory, importance=max(memory.importance, DEFAULT_IMPORTANCE))
            return action == "reinforce" and memory_id == known
        before = user.value_of(slot) if slot else None
        if action != ("supersede" if before else "insert") or list(superseded) != ([before] if before else []):
            return False
        if before:
            user.memories[before] = replace(user.memories[before], is_current=False, replaced_by=memory_id)
        user.memories[memory_id] = NaiveMemory(content, DEFAULT_IMPORTANCE, slot)
        return True

    return Change(f"save {content}: {action} {memory_id}, superseded {list(superseded)}", apply)


def patched(memory_id: str, content: str | None, importance: float | None) -> Change:
    """Return the change of a correction, which may not repeat what another memory states."""

    def apply(user: NaiveUser) -> bool:
        memory = user.memories.get(memory_id)
        if memory is None or (memory.is_current and user.find_current(content or "") not in (None, memory_id)):
            return False
        user.memories[memory_id] = replace(
            memory,
            content=memory.content if content is None else content,
            importance=memory.importance if importance is None else importance,
        )
        return True

    return Change(f"patch {memory_id}: {content} {importance}", apply)


def deleted(memory_id: str) -> Change:
    """Return the change of a deletion."""

    def apply(user: NaiveUser) -> bool:
        if memory_id not in user.memories:
            return False
        user.memories[memory_id] = replace(user.memories[memory_id], is_current=False, replaced_by=None)
        return True

    return Change(f"delete {memory_id}", apply)


def erased(memory_id: str) -> Change:
    """Return the change of a hard deletion."""

    def apply(user: NaiveUser) -> bool:
        user.runs = {
            key: run for key, run in user.runs.items() if memory_id != run.result_id and memory_id not in run.sources
        }
        return user.memories.pop(memory_id, None) is not None

    return Change(f"erase {memory_id}", apply)


def reverted(memory_id: str) -> Change:
    """Return the change of a revert: memory and replacement change places, so that the replacement can be reverted."""

    def apply(user: NaiveUser) -> bool:
        memory = user.memories.get(memory_id)
        if memory is None or memory.replaced_by is None:
            return False
        replacer = user.memories.get(memory.replaced_by)
        if replacer is not None:
            user.memories[memory.replaced_by] = replace(replacer, is_current=False, replaced_by=memory_id)
        user.memories[memory_id] = replace(memory, is_current=True, replaced_by=None)
        return True

    return Change(f"revert {memory_id}", apply)


def merged(run_id: str, source_ids: Sequence[str], result_id: str, content: str) -> Change:
    """Return the change of a merge."""

    def apply(user: NaiveUser) -> bool:
        sources = {key: user.memories[key] for key in source_ids if key in user.memories}
        if len(sources) < len(source_ids) or not all(one.is_current for one in sources.values()):
            return False
        for key, one in sources.items():
            user.memories[key] = replace(one, is_current=False)
        importance = max(one.importance for one in sources.values())
        user.memories[result_id] = NaiveMemory(content, importance)
        user.runs[run_id] = NaiveRun(result_id, sources)
        return True

    return Change(f"merge {list(source_ids)} into {result_id} by {run_id}", apply)


def rolled_back(run_id: str) -> Change:
    """Return the change of a rollback: the sources are as they were, the result has never been there."""

    def apply(user: NaiveUser) -> bool:
        run = user.runs.pop(run_id, None)
        if run is None:
            return False
        user.memories.pop(run.result_id, None)
        user.memories.update(run.sources)
        return True

    return Change(f"roll back {run_id}", apply)


def forgotten() -> Change:
    """Return the change of forgetting the user."""

    def apply(user: NaiveUser) -> bool:
        user.memories, user.runs = {}, {}
        return True

    return Change("forget", apply)


def explain(
    users: Sequence[NaiveUser], changes: Sequence[Change], current: dict[str, tuple[str, float]]
) -> list[NaiveUser]:
    """Return the users that the changes, in some order in which each is possible, turn into with what is current.

    Several orders may show the same and differ in what is past, so that only later writes tell which it was.
    """
    found: list[NaiveUser] = []
    for user, order in product(users, permutations(changes)):
        attempt = copy.deepcopy(user)
        if all(change.apply(attempt) for change in order) and attempt.current == current and attempt not in found:
            found.append(attempt)
    return found
