"""What undoing a run comes to: what each element is to become, and what later writes it would overwrite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from graphmem.domain.consolidation_models import RollbackConflict
from graphmem.domain.identity import Owner
from graphmem.domain.snapshot import (
    EXISTENCE_FIELD,
    ElementChange,
    ElementImage,
    ElementKind,
    RestoredElement,
    restore_element,
)
from graphmem.errors import Conflict
from graphmem.store.driver import Transaction
from graphmem.store.snapshots import SnapshotStore, fetch_images

_REFERENCE_LISTS = ("supersedes", "associations")
_NOT_PLANNED = ElementImage()


@dataclass(slots=True)
class RollbackPlan:
    """What a rollback will do to each element, and what it would overwrite."""

    target: dict[tuple[ElementKind, str], ElementImage | None] = field(default_factory=dict)
    current: dict[tuple[ElementKind, str], ElementImage | None] = field(default_factory=dict)
    conflicts: list[RollbackConflict] = field(default_factory=list)
    duplicates: dict[str, str] = field(default_factory=dict)

    def changes_of(self, kind: ElementKind) -> dict[str, tuple[ElementImage | None, ElementImage | None]]:
        """Return what elements of a kind are and are to be, where the two differ."""
        return {
            key: (self.current[seen, key], image)
            for (seen, key), image in self.target.items()
            if seen is kind and self.current[seen, key] != image
        }


class RollbackPlanner:
    """Compares what a run left with what is there now, within the caller's transaction."""

    def __init__(self, snapshots: SnapshotStore) -> None:
        self._snapshots = snapshots

    async def plan(self, transaction: Transaction, owner: Owner, run_id: str) -> RollbackPlan:
        """Return the plan; raise Conflict where a name that comes back belongs to another entity by now."""
        plan = RollbackPlan()
        deltas = await self._snapshots.list_changes(transaction, run_id)
        for kind in ElementKind:
            found = [delta for delta in deltas if delta.kind is kind]
            images = await fetch_images(transaction, owner.group_id, kind, [delta.id for delta in found])
            for delta in found:
                back = restore_element(delta, images.get(delta.id))
                plan.target[kind, delta.id], plan.current[kind, delta.id] = back.image, images.get(delta.id)
                if back.conflicts:
                    plan.conflicts.append(_to_rollback_conflict(delta, back))
        await self._check_names_are_free(transaction, owner, plan)
        await self._add_later_versions(transaction, owner, plan, deltas)
        await self._add_duplicates(transaction, owner, plan)
        await self._keep_referenced_entities(transaction, owner, plan)
        await self._remove_dangling_references(transaction, owner, plan)
        return plan

    async def _check_names_are_free(self, transaction: Transaction, owner: Owner, plan: RollbackPlan) -> None:
        """Refuse, whatever the force, to bring an entity back whose name another one bears now."""
        back = plan.changes_of(ElementKind.ENTITY)
        keys = {then.properties["name_key"]: then for now, then in back.values() if now is None and then is not None}
        rows = (
            await transaction.run("snapshots.find_name_holders", group_id=owner.group_id, keys=list(keys))
            if keys
            else []
        )
        taken = [row for row in rows if plan.target.get((ElementKind.ENTITY, row["id"]), _NOT_PLANNED) is not None]
        if taken:
            name = keys[taken[0]["key"]].properties["name"]
            raise Conflict(f"The name {name!r} is another entity's since then ({taken[0]['id']}): link that one first.")

    async def _add_later_versions(
        self, transaction: Transaction, owner: Owner, plan: RollbackPlan, deltas: Sequence[ElementChange]
    ) -> None:
        """Take versions along that rest on one which the run wrote: they have nothing to stand on."""
        known: dict[str, int] = {}
        for delta in deltas:
            if delta.kind is ElementKind.FACT and delta.memory_id and delta.before is None and delta.after:
                version = delta.after.properties["version"]
                known[delta.memory_id] = max(version, known.get(delta.memory_id, 0))
        rows = [{"memory_id": key, "version": version} for key, version in known.items()]
        later = (
            await transaction.run("snapshots.find_later_versions", group_id=owner.group_id, rows=rows) if rows else []
        )
        images = await fetch_images(transaction, owner.group_id, ElementKind.FACT, [row["id"] for row in later])
        for key, image in images.items():
            if (ElementKind.FACT, key) in plan.target:
                continue
            plan.target[ElementKind.FACT, key], plan.current[ElementKind.FACT, key] = None, image
            memory_id = image.properties["memory_id"]
            detail = f"version {image.properties['version']} was written since"
            conflict = RollbackConflict(
                kind="fact", id=key, memory_id=memory_id, fields=[EXISTENCE_FIELD], detail=detail
            )
            plan.conflicts.append(conflict)

    async def _add_duplicates(self, transaction: Transaction, owner: Owner, plan: RollbackPlan) -> None:
        """Find memories that state since then what the rollback makes current again."""
        keys = {
            image.properties["active_hash"]: image.properties["memory_id"]
            for (kind, _), image in plan.target.items()
            if kind is ElementKind.FACT and image and image.properties.get("active_hash")
        }
        rows = await transaction.run("snapshots.find_active_hash_holders", group_id=owner.group_id, keys=list(keys))
        for row in rows:
            if (ElementKind.FACT, row["id"]) not in plan.target:
                plan.duplicates[row["memory_id"]] = keys[row["key"]]
                detail = f"states the same as {keys[row['key']]}, which comes back"
                plan.conflicts.append(
                    RollbackConflict(kind="fact", id=row["id"], memory_id=row["memory_id"], detail=detail)
                )

    async def _keep_referenced_entities(self, transaction: Transaction, owner: Owner, plan: RollbackPlan) -> None:
        """Let an entity stay that the run made and others have built on."""
        going = [key for (kind, key), image in plan.target.items() if kind is ElementKind.ENTITY and image is None]
        ties = (
            await transaction.run("snapshots.list_entity_relationships", group_id=owner.group_id, ids=going)
            if going
            else []
        )
        for row in ties:
            kind = ElementKind.FACT if row["type"] == "RELATES_TO" else ElementKind.MENTION
            key = (ElementKind.ENTITY, row["id"])
            if (kind, row["tie"]) not in plan.target and plan.target[key] is None:
                plan.target[key] = plan.current[key]
                detail = "others have built on it since: it stays"
                plan.conflicts.append(
                    RollbackConflict(kind="entity", id=row["id"], fields=[EXISTENCE_FIELD], detail=detail)
                )

    async def _remove_dangling_references(self, transaction: Transaction, owner: Owner, plan: RollbackPlan) -> None:
        """Take the ids of memories that go out of the facts that point to them."""
        staying = {
            image.properties["memory_id"]
            for (kind, _), image in plan.target.items()
            if kind is ElementKind.FACT and image
        }
        going = {
            image.properties["memory_id"]
            for (kind, key), image in plan.current.items()
            if kind is ElementKind.FACT and image and plan.target[kind, key] is None
        } - staying
        if not going:
            return
        rows = await transaction.run(
            "snapshots.find_referencing_facts", group_id=owner.group_id, memory_ids=sorted(going)
        )
        ids = [row["id"] for row in rows]
        images = await fetch_images(transaction, owner.group_id, ElementKind.FACT, ids)
        for key, image in images.items():
            place = (ElementKind.FACT, key)
            wanted = plan.target.setdefault(place, image)
            plan.current.setdefault(place, image)
            if wanted is not None:
                plan.target[place] = _without_references(wanted, going)


def _to_rollback_conflict(delta: ElementChange, back: RestoredElement) -> RollbackConflict:
    fields = list(back.conflicts)
    detail = "is gone since" if fields == [EXISTENCE_FIELD] else f"was written to since ({', '.join(fields)})"
    return RollbackConflict(kind=delta.kind.value, id=delta.id, memory_id=delta.memory_id, fields=fields, detail=detail)


def _without_references(image: ElementImage, going: set[str]) -> ElementImage:
    properties = {
        name: [item for item in value if item not in going] if name in _REFERENCE_LISTS else value
        for name, value in image.properties.items()
        if not (name in ("superseded_by", "ended_by") and value in going)
    }
    return ElementImage(properties, image.source, image.target, image.labels)
