"""Which memories and entities of a case are one after the night. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from graphmem.runtime.field_types import name_key
from quality.consolidation.outcome import NightOutcome, StoredMemory


@dataclass(frozen=True, slots=True)
class MergedGroup:
    """Memories of a case that are one after the night, by key, and that one."""

    keys: frozenset[str]
    result: StoredMemory | None


def find_merged_groups(outcome: NightOutcome) -> list[MergedGroup]:
    """Return the sets of memories that the night made one.

    Memories are one when a run executed a merge of them, or when one of them names the other as what replaced it. A
    plan that was closed is not one with what it names.
    """
    parents: dict[str, str] = {}

    def root(memory_id: str) -> str:
        while (parent := parents.setdefault(memory_id, memory_id)) != memory_id:
            memory_id = parent
        return memory_id

    for merge in outcome.merges:
        for memory_id in merge.memory_ids:
            parents[root(memory_id)] = root(merge.result_id)
    keys_by_id = {memory_id: key for key, memory_id in outcome.memory_ids.items()}
    for memory_id in keys_by_id:
        replacement = outcome.after[memory_id].superseded_by if memory_id in outcome.after else None
        if replacement and memory_id not in outcome.closed and outcome.before[memory_id].superseded_by != replacement:
            parents[root(memory_id)] = root(replacement)
    members: dict[str, list[str]] = {}
    for memory_id in list(parents):
        members.setdefault(root(memory_id), []).append(memory_id)
    groups = []
    for result_id, ids in members.items():
        keys = frozenset(keys_by_id[memory_id] for memory_id in ids if memory_id in keys_by_id)
        if len(keys) > 1:
            groups.append(MergedGroup(keys, outcome.after.get(result_id)))
    return sorted(groups, key=lambda group: sorted(group.keys))


def find_linked_groups(outcome: NightOutcome) -> list[frozenset[str]]:
    """Return the sets of entities of the case that are one after the night."""
    by_id: dict[str, set[str]] = {}
    for key in outcome.entity_ids:
        if entity_id := find_entity(key, outcome):
            by_id.setdefault(entity_id, set()).add(key)
    return [frozenset(keys) for keys in by_id.values() if len(keys) > 1]


def find_entity(key: str, outcome: NightOutcome) -> str | None:
    """Return the id of the entity that stands for another after the night: itself, or the one that has its name."""
    entity_id = outcome.entity_ids[key]
    if entity_id in outcome.entities_after:
        return entity_id
    name = name_key(outcome.entities_before[entity_id].names[0])
    holders = (
        entity.id for entity in outcome.entities_after.values() if name in {name_key(other) for other in entity.names}
    )
    return next(holders, None)
