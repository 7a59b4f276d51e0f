"""Plans a rollback: the state that each element is restored to, and the later writes that it overwrites. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphmem.consolidation.models import RollbackConflict, RollbackElement, RollbackPreview
from graphmem.memories.fact import Fact
from graphmem.memories.memory import MemoryType
from graphmem.memories.snapshot import (
    EXISTENCE_FIELD,
    ElementChange,
    ElementImage,
    ElementKind,
    diff_properties,
    restore_element,
    to_stored_lists,
)
from graphmem.runtime.errors import Conflict

ElementKey = tuple[ElementKind, str]
Row = dict[str, Any]

_REFERENCES = ("superseded_by", "ended_by")
_REFERENCE_LISTS = ("supersedes", "contests", "associations")


@dataclass(frozen=True, slots=True)
class PlannedElement:
    """An element that a rollback concerns: its current state and its target; None where it does not exist."""

    kind: ElementKind
    id: str
    current: ElementImage | None
    target: ElementImage | None

    @property
    def is_moved(self) -> bool:
        """Whether a relationship gets other ends, so that it must be removed and restored."""
        return bool(self.current and self.target and self.current.endpoints != self.target.endpoints)


class RollbackPlan:
    """The elements of one rollback, its conflicts, and the memories that it makes duplicates.

    It starts with the changes of the run and the current images of the changed elements; further methods take what the
    graph holds around them. `duplicates` maps the id of a memory to that of a restored memory which states the same.
    """

    def __init__(self, changes: Sequence[ElementChange], images: Mapping[ElementKey, ElementImage]) -> None:
        self.conflicts: list[RollbackConflict] = []
        self.duplicates: dict[str, str] = {}
        self._changes = changes
        self._elements: dict[ElementKey, PlannedElement] = {}
        for kind in ElementKind:
            for change in changes:
                if change.kind is kind:
                    self._add_change(change, images.get((kind, change.id)))

    def _add_change(self, change: ElementChange, current: ElementImage | None) -> None:
        restored = restore_element(change, current)
        if _is_profile(change.before) or _is_profile(change.after):
            # Later runs write a profile anew: that is no conflict, and what another rollback removed stays away.
            is_removed = current is None and change.after is not None
            target = None if is_removed else restored.image
            self._set(PlannedElement(change.kind, change.id, current, target))
            return
        self._set(PlannedElement(change.kind, change.id, current, restored.image))
        if restored.conflicts:
            fields = list(restored.conflicts)
            if fields == [EXISTENCE_FIELD]:
                detail = "was created or deleted after the run"
            else:
                detail = f"was written after the run ({', '.join(fields)})"
            self._add_conflict(change.kind, change.id, change.memory_id, detail, fields)

    def _set(self, element: PlannedElement) -> None:
        self._elements[element.kind, element.id] = element

    def _add_conflict(
        self, kind: ElementKind, element_id: str, memory_id: str | None, detail: str, fields: Sequence[str] = ()
    ) -> None:
        self.conflicts.append(
            RollbackConflict(kind=kind, id=element_id, memory_id=memory_id, fields=list(fields), detail=detail)
        )

    def changed(self, kind: ElementKind) -> list[PlannedElement]:
        """Return the elements of a kind whose current state differs from the target."""
        return [
            element for element in self._elements.values() if element.kind is kind and element.current != element.target
        ]

    def preview(self, run_id: str) -> RollbackPreview:
        """Return what the plan would do."""
        preview = RollbackPreview(run_id=run_id, conflicts=self.conflicts)
        removed_ids = self.removed_memory_ids()
        by_id: dict[str, list[PlannedElement]] = {}
        for element in self._elements.values():
            by_id.setdefault(_memory_id(element) or element.id, []).append(element)
        for key, elements in by_id.items():
            # The last element with a target is the version of a memory that holds after the rollback.
            shown = next((element for element in reversed(elements) if element.target), elements[-1])
            if all(element.current == element.target for element in elements):
                preview.stays.append(_describe(shown))
            elif key in removed_ids or all(element.target is None for element in elements):
                preview.goes_back.append(_describe(shown))
            else:
                preview.comes_back.append(_describe(shown))
        return preview

    # Names of restored entities

    def restored_names(self) -> dict[str, str]:
        """Return the names of the entities to be restored, by name key."""
        return {
            element.target.properties["name_key"]: element.target.properties["name"]
            for element in self.changed(ElementKind.ENTITY)
            if element.current is None and element.target is not None
        }

    def check_names_are_free(self, holders: Mapping[str, str]) -> None:
        """Raise Conflict when an entity that stays has a restored name; `holders` are entity ids by name key.

        No force overrides this conflict.
        """
        names = self.restored_names()
        for key, entity_id in holders.items():
            planned = self._elements.get((ElementKind.ENTITY, entity_id))
            if planned is None or planned.target is not None:
                raise Conflict(
                    f"The name {names[key]!r} now belongs to another entity ({entity_id}): link that entity first."
                )

    # Versions written after the run

    def last_versions(self) -> dict[str, int]:
        """Return the last version that the run wrote of each memory, by memory id."""
        versions: dict[str, int] = {}
        for change in self._changes:
            if change.kind is ElementKind.FACT and change.memory_id and change.before is None and change.after:
                if _is_profile(change.after) and self._elements[change.kind, change.id].current is None:
                    continue
                version = change.after.properties["version"]
                versions[change.memory_id] = max(version, versions.get(change.memory_id, 0))
        return versions

    def add_later_versions(self, images: Mapping[str, ElementImage]) -> None:
        """Plan to remove the versions that follow those the run wrote; each but those of profiles is a conflict."""
        for uuid, image in images.items():
            if (ElementKind.FACT, uuid) in self._elements:
                continue
            self._set(PlannedElement(ElementKind.FACT, uuid, current=image, target=None))
            if _is_profile(image):
                continue
            detail = f"version {image.properties['version']} was written after the run"
            self._add_conflict(ElementKind.FACT, uuid, image.properties["memory_id"], detail, [EXISTENCE_FIELD])

    # Profiles

    def restored_profiles(self) -> dict[str, str]:
        """Return the ids of the profiles that become current again, by the ids of their entities."""
        return {
            target.properties["profile_of"]: target.properties["memory_id"]
            for _, target in self.restored_facts()
            if _is_profile(target) and "expired_at" not in target.properties
        }

    def keep_ended(self, memory_id: str) -> None:
        """Plan to leave a profile as it is, because its entity has another one by now."""
        for key, element in self._elements.items():
            if _memory_id(element) == memory_id:
                self._elements[key] = replace(element, target=element.current)

    # Statements saved again after the run

    def restored_hashes(self) -> dict[str, str]:
        """Return the ids of the memories that become current, by the unique hash of their statement."""
        return {
            element.target.properties["active_hash"]: element.target.properties["memory_id"]
            for element in self._elements.values()
            if element.kind is ElementKind.FACT and element.target and element.target.properties.get("active_hash")
        }

    def add_duplicates(self, holders: Iterable[Row]) -> None:
        """Note the facts outside the plan that hold a restored hash (`key`); each is a conflict."""
        restored_ids = self.restored_hashes()
        for holder in holders:
            if (ElementKind.FACT, holder["id"]) in self._elements:
                continue
            restored_id = restored_ids[holder["key"]]
            self.duplicates[holder["memory_id"]] = restored_id
            detail = f"states the same as {restored_id}, which the rollback restores"
            self._add_conflict(ElementKind.FACT, holder["id"], holder["memory_id"], detail)

    # Single-valued statements

    def restored_facts(self) -> list[tuple[ElementImage | None, ElementImage]]:
        """Return the current state and the target of every version that the rollback changes or restores."""
        return [
            (element.current, element.target)
            for element in self.changed(ElementKind.FACT)
            if element.target is not None
        ]

    def concerns(self, fact: Fact) -> bool:
        """Return whether the rollback restores, removes or retires a version."""
        return (ElementKind.FACT, fact.uuid) in self._elements or fact.memory_id in self.duplicates

    # Entities used after the run

    def removed_entity_ids(self) -> list[str]:
        """Return the ids of the entities to be removed."""
        return [
            element.id
            for element in self._elements.values()
            if element.kind is ElementKind.ENTITY and element.target is None
        ]

    def add_relationship(self, entity_id: str, kind: ElementKind, relationship_id: str) -> None:
        """Keep an entity that was to be removed if a relationship of it is not part of the plan; it is a conflict."""
        entity = self._elements[ElementKind.ENTITY, entity_id]
        if (kind, relationship_id) not in self._elements and entity.target is None:
            self._set(replace(entity, target=entity.current))
            detail = "is used by later writes and stays"
            self._add_conflict(ElementKind.ENTITY, entity_id, None, detail, [EXISTENCE_FIELD])

    # References to removed memories

    def removed_memory_ids(self) -> set[str]:
        """Return the ids of the memories of which no version remains."""
        facts = [element for element in self._elements.values() if element.kind is ElementKind.FACT]
        staying = {element.target.properties["memory_id"] for element in facts if element.target}
        going = {
            element.current.properties["memory_id"] for element in facts if element.current and element.target is None
        }
        return going - staying

    def remove_references(self, images: Mapping[str, ElementImage]) -> None:
        """Plan to remove the ids of removed memories from the facts that refer to them; `images` are those facts'."""
        removed_ids = self.removed_memory_ids()
        for uuid, image in images.items():
            element = self._elements.get((ElementKind.FACT, uuid))
            element = element or PlannedElement(ElementKind.FACT, uuid, current=image, target=image)
            if element.target is not None:
                element = replace(element, target=_without_references(element.target, removed_ids))
            self._set(element)

    # References of memories to entities

    def referring_memory_ids(self) -> list[str]:
        """Return the ids of the memories that mention, now or as restored, entities beside subject and object."""
        facts = self.changed(ElementKind.FACT)
        images = [image for element in facts for image in (element.current, element.target) if image]
        return sorted(
            {
                image.properties["memory_id"]
                for image in images
                if set(image.properties.get("entity_ids", ())).difference(image.endpoints)
            }
        )

    # Rows of the queries that carry the plan out

    def ids_to_remove(self, kind: ElementKind) -> list[str]:
        """Return the ids of the elements to be removed, those to be moved included."""
        return [
            element.id
            for element in self.changed(kind)
            if element.current is not None and (element.target is None or element.is_moved)
        ]

    def rows_to_restore(self, kind: ElementKind) -> list[Row]:
        """Return the rows of the elements to be created, those to be moved included."""
        return [
            {
                "id": element.id,
                "properties": to_stored_lists(element.target.properties, element.target),
                "source": element.target.source,
                "target": element.target.target,
                "labels": list(element.target.labels),
            }
            for element in self.changed(kind)
            if element.target is not None and (element.current is None or element.is_moved)
        ]

    def rows_to_update(self, kind: ElementKind) -> list[Row]:
        """Return the rows of the elements to be changed in place, always with the hash that makes a fact unique."""
        rows = []
        for element in self.changed(kind):
            current, target = element.current, element.target
            if current is None or target is None or element.is_moved:
                continue
            properties = to_stored_lists(diff_properties(current.properties, target.properties), target)
            if target.properties.get("active_hash"):
                properties["active_hash"] = target.properties["active_hash"]
            rows.append(
                {
                    "id": element.id,
                    "properties": properties,
                    "labels": [label for label in target.labels if label not in current.labels],
                    "removed_labels": [label for label in current.labels if label not in target.labels],
                }
            )
        return rows


def _is_profile(image: ElementImage | None) -> bool:
    return image is not None and image.properties.get("type") == MemoryType.PROFILE


def _memory_id(element: PlannedElement) -> str | None:
    image = element.target or element.current
    return image.properties.get("memory_id") if image and element.kind is ElementKind.FACT else None


def _describe(element: PlannedElement) -> RollbackElement:
    image = element.target or element.current
    properties = image.properties if image else {}
    return RollbackElement(
        kind=element.kind,
        id=element.id,
        memory_id=_memory_id(element),
        text=properties.get("fact" if element.kind is ElementKind.FACT else "name"),
    )


def _without_references(image: ElementImage, removed_ids: set[str]) -> ElementImage:
    properties = {
        name: [item for item in value if item not in removed_ids] if name in _REFERENCE_LISTS else value
        for name, value in image.properties.items()
        if not (name in _REFERENCES and value in removed_ids)
    }
    return replace(image, properties=properties)
