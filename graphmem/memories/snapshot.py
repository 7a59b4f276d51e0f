"""Before- and after-images of graph elements, and the three-way merge that undoes a change. Pure.

A rollback merges each element: a property that the run changed gets its earlier value back, a property that the run
left alone keeps its current value, and a property that somebody wrote after the run is a conflict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from graphmem.memories.fact import Fact, end_ids, fact_from_row, fact_to_properties, with_lists
from graphmem.neo4j.schema import LISTS_OF_GRAPHITI


class ElementKind(StrEnum):
    """The kinds of graph elements that a run changes, in the order in which a rollback restores them."""

    ENTITY = "entity"
    EPISODE = "episode"
    FACT = "fact"
    MENTION = "mention"


@dataclass(frozen=True, slots=True)
class ElementImage:
    """The state of one element: properties except the vector, ends of a relationship, labels of a node."""

    properties: dict[str, Any] = field(default_factory=dict)
    source: str | None = None
    target: str | None = None
    labels: tuple[str, ...] = ()

    @property
    def endpoints(self) -> tuple[str | None, str | None]:
        """The ids of both ends of a relationship; None for a node."""
        return self.source, self.target

    def to_dict(self) -> dict[str, Any]:
        """Return the image in API form: the properties, and the position as `from`, `to` and `labels`."""
        document = dict(self.properties)
        if self.source:
            document |= {"from": self.source, "to": self.target}
        if self.labels:
            document["labels"] = list(self.labels)
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> ElementImage:
        """Return the image written by `to_dict`."""
        properties = dict(document)
        source, target = properties.pop("from", None), properties.pop("to", None)
        return cls(properties, source, target, tuple(properties.pop("labels", ())))


def _parse_image(value: object) -> object:
    return ElementImage.from_dict(value) if isinstance(value, Mapping) else value


ImageField = Annotated[ElementImage, BeforeValidator(_parse_image), PlainSerializer(ElementImage.to_dict)]
"""An image in a pydantic model, serialized as one flat JSON object."""


@dataclass(frozen=True, slots=True)
class ElementChange:
    """One graph element before and after a run; None where it did not exist.

    A fact is one version of a memory, and `memory_id` names that memory. The images leave out the vector: a run never
    changes one, and the store keeps it beside the images.
    """

    kind: ElementKind
    id: str
    memory_id: str | None
    before: ImageField | None
    after: ImageField | None


VOLATILE_PROPERTIES = frozenset(
    {"access_count", "last_accessed_at", "strength", "confidence", "importance", "updated_at", "decayed_at"}
    | {"consolidated_at", "consolidated_by", "compressed_at", "compressed_by", "reviewed_at"}
)
"""Properties written by retrieval and maintenance: they neither conflict nor get their earlier value back."""

LIST_PROPERTIES = frozenset(
    {"entity_edges", "associations", "supersedes", "contests", "aliases", "alias_keys", "detail_sources"}
    | {"entity_ids"}
)
"""Lists that other writes extend: a rollback removes the run's additions and adds its removals back."""

DERIVED_PROPERTIES = frozenset({"updated_at", "search_text", "alias_text", "labels"})
"""Properties computed from others: a rollback restores them unless they were written after the run."""


EXISTENCE_FIELD = "existence"
"""Name of the conflict over an element that was created or deleted after the run."""

ENDPOINTS_FIELD = "ends"
"""Name of the conflict over a relationship that was moved to other nodes after the run."""


def restore_element(change: ElementChange, current: ElementImage | None) -> tuple[ElementImage | None, tuple[str, ...]]:
    """Return the state of an element after undoing a run's change, and the fields written after that change."""
    before, after = change.before, change.after
    if after is None:
        return before, () if current is None else (EXISTENCE_FIELD,)
    if current is None:
        return before, (EXISTENCE_FIELD,) if before else ()
    if before is None:
        return None, _changed_fields(after, current)
    conflicts: list[str] = []
    endpoints = current.endpoints
    if before.endpoints != after.endpoints:
        if endpoints != after.endpoints:
            conflicts.append(ENDPOINTS_FIELD)
        endpoints = before.endpoints
    properties = dict(current.properties)
    for name in before.properties.keys() | after.properties.keys():
        old, new = before.properties.get(name), after.properties.get(name)
        if old == new:
            continue
        properties[name], is_conflict = _restore_property(name, old, new, current.properties.get(name))
        if is_conflict:
            conflicts.append(name)
    labels = before.labels if current.labels == after.labels else current.labels
    present = {name: value for name, value in properties.items() if value is not None}
    return ElementImage(present, *endpoints, labels), tuple(sorted(conflicts))


def _restore_property(name: str, before: Any, after: Any, now: Any) -> tuple[Any, bool]:
    if now == after:
        return before, False
    if name in LIST_PROPERTIES:
        return _undo_list_change(before or [], after or [], now or []), False
    if name in DERIVED_PROPERTIES or name in VOLATILE_PROPERTIES:
        return now, False
    return before, now != before


def _undo_list_change(before: list[Any], after: list[Any], now: list[Any]) -> list[Any]:
    """Return `now` without the items that the run added, followed by those that it removed."""
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
    if after.endpoints != current.endpoints:
        fields.add(ENDPOINTS_FIELD)
    return tuple(sorted(fields))


def to_stored_lists(properties: Mapping[str, Any], image: ElementImage) -> dict[str, Any]:
    """Return properties of a node or edge image, with None for the lists that are not stored."""
    stored = {
        name: None if value == [] and name not in LISTS_OF_GRAPHITI else value for name, value in properties.items()
    }
    if image.source and stored.get("entity_ids") == list(end_ids(image.source, image.target)):
        stored["entity_ids"] = None
    return stored


def diff_properties(current: Mapping[str, Any], target: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties to set so that `current` becomes `target`; None removes a property."""
    return {name: target.get(name) for name in current.keys() | target.keys() if current.get(name) != target.get(name)}


def fact_from_image(image: ElementImage) -> Fact:
    """Return the fact from an image of its edge."""
    return fact_from_row({"fact": image.properties, "subject_id": image.source, "object_id": image.target})


def image_of_fact(fact: Fact) -> ElementImage:
    """Return an image of a fact's edge; None stands for an absent property."""
    object_id = fact.object_id or fact.subject_id
    return ElementImage(with_lists(fact_to_properties(fact), fact.subject_id, object_id), fact.subject_id, object_id)
