"""Images of graph elements, and the way back from a change: pure.

A rollback is a three-way merge of each element: what the run changed goes back to what it was, what nobody but the run
touched comes out exactly as before, and a property that somebody has written since is a conflict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ElementKind(StrEnum):
    """What an image is of, in the order in which things are put back."""

    ENTITY = "entity"
    EPISODE = "episode"
    FACT = "fact"
    MENTION = "mention"


@dataclass(frozen=True, slots=True)
class ElementImage:
    """One element: its properties without the vector, both ends of a relationship, the labels of a node."""

    properties: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    target: str | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ElementChange:
    """One element before and after a run; None where it did not exist."""

    kind: ElementKind
    id: str
    memory_id: str | None
    before: ElementImage | None
    after: ElementImage | None


@dataclass(frozen=True, slots=True)
class RestoredElement:
    """What an element is to become, and the fields that were written to since the run."""

    image: ElementImage | None
    conflicts: tuple[str, ...] = ()


VOLATILE_PROPERTIES = frozenset(
    {"access_count", "last_accessed_at", "strength", "confidence", "importance", "updated_at", "decayed_at"}
    | {"consolidated_at", "consolidated_by", "compressed_at", "compressed_by", "reviewed_at"}
)
"""What retrieval and maintenance change on their own; it neither conflicts nor is turned back."""

LIST_PROPERTIES = frozenset(
    {"mentioned_in", "entity_edges", "associations", "supersedes", "aliases", "alias_keys", "entity_ids"}
)
"""Lists that grow with every write around an element: only what the run added or removed is turned back."""

DERIVED_PROPERTIES = frozenset({"updated_at", "search_text", "alias_text", "labels"})
"""What follows from other properties: it goes back when nobody has touched it, and stays otherwise."""

EXISTENCE_FIELD = "existence"
ENDPOINTS_FIELD = "ends"


def restore_element(delta: ElementChange, current: ElementImage | None) -> RestoredElement:
    """Return what an element becomes when a run's change of it is undone, given what it is now."""
    if delta.after is None:
        return RestoredElement(delta.before, () if current is None else (EXISTENCE_FIELD,))
    if current is None:
        return RestoredElement(delta.before, (EXISTENCE_FIELD,) if delta.before else ())
    if delta.before is None:
        return RestoredElement(None, _changed_fields(delta.after, current))
    conflicts: list[str] = []
    ends_moved = (delta.before.source, delta.before.target) != (delta.after.source, delta.after.target)
    ends = (current.source, current.target)
    if ends_moved:
        if ends != (delta.after.source, delta.after.target):
            conflicts.append(ENDPOINTS_FIELD)
        ends = (delta.before.source, delta.before.target)
    properties = dict(current.properties)
    for name in delta.before.properties.keys() | delta.after.properties.keys():
        before, after = delta.before.properties.get(name), delta.after.properties.get(name)
        if before == after:
            continue
        now = current.properties.get(name)
        value, conflicting = _restore_property(name, before, after, now)
        if conflicting:
            conflicts.append(name)
        properties[name] = value
    labels = delta.before.labels if current.labels == delta.after.labels else current.labels
    kept = {name: value for name, value in properties.items() if value is not None}
    return RestoredElement(ElementImage(kept, *ends, labels), tuple(sorted(conflicts)))


def _restore_property(name: str, before: Any, after: Any, now: Any) -> tuple[Any, bool]:
    if now == after:
        return before, False
    if name in LIST_PROPERTIES:
        return _undo_list_change(before or [], after or [], now or []), False
    if name in DERIVED_PROPERTIES or name in VOLATILE_PROPERTIES:
        return now, False
    return before, now != before


def _undo_list_change(before: list[Any], after: list[Any], now: list[Any]) -> list[Any]:
    """Return `now` without what the run added and with what it removed."""
    added, removed = set(after) - set(before), [item for item in before if item not in after]
    kept = [item for item in now if item not in added]
    return kept + [item for item in removed if item not in kept]


def _changed_fields(after: ElementImage, current: ElementImage) -> tuple[str, ...]:
    fields = {
        name
        for name in after.properties.keys() | current.properties.keys()
        if name not in VOLATILE_PROPERTIES | LIST_PROPERTIES | DERIVED_PROPERTIES
        and after.properties.get(name) != current.properties.get(name)
    }
    if (after.source, after.target) != (current.source, current.target):
        fields.add(ENDPOINTS_FIELD)
    return tuple(sorted(fields))


def diff_properties(current: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties to set so that `current` becomes `wanted`; None takes one away."""
    return {name: wanted.get(name) for name in current.keys() | wanted.keys() if current.get(name) != wanted.get(name)}
