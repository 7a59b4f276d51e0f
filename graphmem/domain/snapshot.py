"""Images of graph elements, and the way back from a change: pure.

A rollback is a three-way merge of each element: what the run changed goes back to what it was, what nobody but the run
touched comes out exactly as before, and a property that somebody has written since is a collision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What an image is of, in the order in which things are put back."""

    ENTITY = "entity"
    EPISODE = "episode"
    FACT = "fact"
    MENTION = "mention"


@dataclass(frozen=True, slots=True)
class Image:
    """One element: its properties without the vector, both ends of a relationship, the labels of a node."""

    properties: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    target: str | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Delta:
    """One element before and after a run; None where it did not exist."""

    kind: Kind
    id: str
    memory_id: str | None
    before: Image | None
    after: Image | None


@dataclass(frozen=True, slots=True)
class Restored:
    """What an element is to become, and the fields that were written to since the run."""

    image: Image | None
    collisions: tuple[str, ...] = ()


COUNTERS = frozenset(
    {"access_count", "last_accessed_at", "strength", "confidence", "importance", "updated_at", "decayed_at"}
    | {"consolidated_at", "consolidated_by", "compressed_at", "compressed_by", "reviewed_at"}
)
"""What retrieval and upkeep change on their own; it neither collides nor is turned back."""

POINTERS = frozenset(
    {"mentioned_in", "entity_edges", "associations", "supersedes", "aliases", "alias_keys", "entity_ids"}
)
"""Lists that grow with every write around an element: only what the run added or removed is turned back."""

DERIVED = frozenset({"updated_at", "search_text", "alias_text", "labels"})
"""What follows from other properties: it goes back when nobody has touched it, and stays otherwise."""

EXISTENCE = "existence"
ENDS = "ends"


def restore(delta: Delta, current: Image | None) -> Restored:
    """Return what an element becomes when a run's change of it is undone, given what it is now."""
    if delta.after is None:
        return Restored(delta.before, () if current is None else (EXISTENCE,))
    if current is None:
        return Restored(delta.before, (EXISTENCE,) if delta.before else ())
    if delta.before is None:
        return Restored(None, _touched(delta.after, current))
    collisions: list[str] = []
    ends_moved = (delta.before.source, delta.before.target) != (delta.after.source, delta.after.target)
    ends = (current.source, current.target)
    if ends_moved:
        if ends != (delta.after.source, delta.after.target):
            collisions.append(ENDS)
        ends = (delta.before.source, delta.before.target)
    properties = dict(current.properties)
    for name in delta.before.properties.keys() | delta.after.properties.keys():
        before, after = delta.before.properties.get(name), delta.after.properties.get(name)
        if before == after:
            continue
        now = current.properties.get(name)
        value, collides = _back(name, before, after, now)
        if collides:
            collisions.append(name)
        properties[name] = value
    labels = delta.before.labels if current.labels == delta.after.labels else current.labels
    kept = {name: value for name, value in properties.items() if value is not None}
    return Restored(Image(kept, *ends, labels), tuple(sorted(collisions)))


def _back(name: str, before: Any, after: Any, now: Any) -> tuple[Any, bool]:
    if now == after:
        return before, False
    if name in POINTERS:
        return _unpatched(before or [], after or [], now or []), False
    if name in DERIVED or name in COUNTERS:
        return now, False
    return before, now != before


def _unpatched(before: list[Any], after: list[Any], now: list[Any]) -> list[Any]:
    """Return `now` without what the run added and with what it removed."""
    added, removed = set(after) - set(before), [item for item in before if item not in after]
    kept = [item for item in now if item not in added]
    return kept + [item for item in removed if item not in kept]


def _touched(after: Image, current: Image) -> tuple[str, ...]:
    fields = {
        name
        for name in after.properties.keys() | current.properties.keys()
        if name not in COUNTERS | POINTERS | DERIVED and after.properties.get(name) != current.properties.get(name)
    }
    if (after.source, after.target) != (current.source, current.target):
        fields.add(ENDS)
    return tuple(sorted(fields))


def differences(current: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties to set so that `current` becomes `wanted`; None takes one away."""
    return {name: wanted.get(name) for name in current.keys() | wanted.keys() if current.get(name) != wanted.get(name)}
