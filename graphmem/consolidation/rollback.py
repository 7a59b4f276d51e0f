"""Rolls back runs; a rollback is recorded as a run, so that it can itself be rolled back.

`RollbackPlan` holds the state that each element is restored to, and the later writes that this overwrites.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from graphmem.consolidation.changes import retire_duplicates
from graphmem.consolidation.models import (
    ConsolidationRun,
    RollbackConflict,
    RollbackElement,
    RollbackPreview,
    RollbackResult,
    RunPhase,
    RunStatus,
    RunTrigger,
)
from graphmem.consolidation.run_store import RunStore, RunUpdate
from graphmem.memories import snapshot_store
from graphmem.memories.fact import fact_from_row
from graphmem.memories.fact_store import FactStore
from graphmem.memories.ledger import Ledger
from graphmem.memories.memory import MemoryType
from graphmem.memories.saving import FactLoader
from graphmem.memories.snapshot import (
    EXISTENCE_FIELD,
    ElementChange,
    ElementImage,
    ElementKind,
    diff_properties,
    fact_from_image,
    restore_element,
    to_stored_lists,
)
from graphmem.memories.snapshot_store import ChangeRecorder
from graphmem.memories.timeline import describe_rival, find_rival
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import Conflict, Gone
from graphmem.runtime.times import MICROSECOND, Clock
from graphmem.tenants.owners import Owner

ElementKey = tuple[ElementKind, str]
Row = dict[str, Any]

_REFERENCES = ("superseded_by", "ended_by")
_REFERENCE_LISTS = ("supersedes", "contests", "associations")

RESTORED_TWICE_REASON = "a rollback restored the same statement"
"""Reason in the history of a memory that a rollback made a duplicate."""

NO_CHANGES_LEFT = (
    "Nothing of the run is left to roll back: its changes were rolled back, or their records were deleted, by "
    "maintenance after GRAPHMEM_ROLLBACK_DAYS or with the memories."
)
"""Detail of the error for a run whose changes are no longer stored."""


class RunRollback:
    """Rolls back runs within their retention of `days` days, each user's run in one transaction."""

    def __init__(self, graph: Graph, facts: FactStore, runs: RunStore, clock: Clock, days: int) -> None:
        self._graph = graph
        self._facts = facts
        self._runs = runs
        self._clock = clock
        self._days = days

    async def roll_back(
        self, tenant: str, run_id: str, *, force: bool = False, actor: str | None = None
    ) -> RollbackResult:
        """Roll back a run of one user or of all users.

        Raises NotFound; Gone past the retention; Conflict if there is nothing to roll back or, without `force`, if
        later writes changed the same elements, which the errors then list. Without `force`, a conflict of one user
        prevents the rollback of all.
        """
        run = await self._runs.get(tenant, run_id, with_changes=False)
        self._ensure_can_roll_back(run)
        parts = await self._list_changed_parts(tenant, run_id)
        if not force and len(parts) > 1:
            plans = [await self._read_plan(owner, part_id) for part_id, owner in parts]
            _raise_conflicts(conflict for plan in plans for conflict in plan.conflicts)
        results = [await self._roll_back_part(owner, part_id, force, actor) for part_id, owner in parts]
        rollback_id = results[0].rollback_id
        if run.parts:
            await self._runs.update(run_id, RunUpdate(status=RunStatus.ROLLED_BACK, undone_by=rollback_id))
        return RollbackResult(
            run_id=run_id,
            rollback_id=rollback_id,
            status=RunStatus.ROLLED_BACK,
            restored=sum(result.restored for result in results),
            conflicts=[conflict for result in results for conflict in result.conflicts],
        )

    async def preview(self, tenant: str, run_id: str) -> RollbackPreview:
        """Return what a run's rollback would do, changing nothing; raise as `roll_back` does except for conflicts."""
        self._ensure_can_roll_back(await self._runs.get(tenant, run_id, with_changes=False))
        merged = RollbackPreview(run_id=run_id)
        for part_id, owner in await self._list_changed_parts(tenant, run_id):
            part = (await self._read_plan(owner, part_id)).preview(part_id)
            merged.goes_back += part.goes_back
            merged.comes_back += part.comes_back
            merged.stays += part.stays
            merged.conflicts += part.conflicts
        return merged

    async def _list_changed_parts(self, tenant: str, run_id: str) -> list[tuple[str, Owner]]:
        """Return a one-user run itself, or the parts of an all-user run to roll back; raise Gone if there are none.

        Whether a one-user run has changes is checked under the user's lock, as another rollback may finish first.
        """
        parts = [
            (part_id, owner)
            for part_id, owner in await self._runs.list_user_runs(tenant, run_id)
            if part_id == run_id or await self._has_changes(tenant, part_id)
        ]
        if not parts:
            raise Gone(NO_CHANGES_LEFT)
        return parts

    def _ensure_can_roll_back(self, run: ConsolidationRun) -> None:
        if run.dry_run:
            raise Conflict("The run was a dry run: it changed nothing.")
        if run.status is RunStatus.ROLLED_BACK:
            raise Conflict(f"The run was rolled back already, by {run.undone_by}.")
        if not run.status.is_final:
            raise Conflict("The run has not ended: roll it back afterwards.")
        has_succeeded = run.status is RunStatus.SUCCEEDED or bool(run.parts)
        if not has_succeeded or not run.change_count:
            raise Conflict(f"The run is {run.status.value} and changed nothing that could be rolled back.")
        if (run.finished_at or run.created_at) < self._clock() - timedelta(days=self._days):
            raise Gone(f"A run can be rolled back for {self._days} days, and this one is older.")

    async def _has_changes(self, tenant: str, run_id: str) -> bool:
        part = await self._runs.get(tenant, run_id, with_changes=False)
        return part.status is RunStatus.SUCCEEDED and await self._runs.has_changes(run_id)

    async def _read_plan(self, owner: Owner, run_id: str) -> RollbackPlan:
        async def work(transaction: Transaction) -> RollbackPlan:
            return await RollbackPlan.load(transaction, owner, run_id)

        return await self._graph.read(work)

    async def _roll_back_part(self, owner: Owner, run_id: str, force: bool, actor: str | None) -> RollbackResult:
        """Roll back the run of one user."""
        rollback_id = str(uuid.uuid4())

        async def work(transaction: Transaction) -> RollbackResult:
            now = await self._facts.lock_user(transaction, owner, removes=True)
            # Another rollback may have finished since the run was read.
            run = await self._runs.get(owner.tenant, run_id, with_changes=False, transaction=transaction)
            self._ensure_can_roll_back(run)
            plan = await RollbackPlan.load(transaction, owner, run_id)
            if not force:
                _raise_conflicts(plan.conflicts)
            await self._runs.create(
                rollback_id,
                owner.tenant,
                owner,
                RunTrigger.ROLLBACK,
                now,
                actor=actor,
                undoes=run_id,
                transaction=transaction,
            )
            recorder = ChangeRecorder(transaction, rollback_id, owner.group_id, now)
            for kind in ElementKind:
                await recorder.record_before(kind, [element.id for element in plan.changed(kind)])
            await transaction.run("snapshots.copy_vectors", run_id=rollback_id, from_run_id=run_id)
            if plan.duplicates:
                facts = await FactLoader(transaction, owner).fetch(memory_ids=list(plan.duplicates))
                ledger = Ledger(facts.values(), now, actor)
                now = await retire_duplicates(
                    transaction, owner, recorder, ledger, plan.duplicates, RESTORED_TWICE_REASON, now
                )
            await plan.apply(rollback_id)
            restored = await recorder.record_after()
            await transaction.run("consolidation.unmark_consolidated", group_id=owner.group_id, run_id=run_id)
            await transaction.run("facts.set_last_write_time", group_id=owner.group_id, at=now + MICROSECOND)
            await self._mark_rolled_back(transaction, run_id, rollback_id, restored, now)
            return RollbackResult(
                run_id=run_id,
                rollback_id=rollback_id,
                status=RunStatus.ROLLED_BACK,
                restored=restored,
                conflicts=plan.conflicts,
            )

        return await self._graph.write(work)

    async def _mark_rolled_back(
        self, transaction: Transaction, run_id: str, rollback_id: str, restored: int, now: datetime
    ) -> None:
        done = RunUpdate(status=RunStatus.SUCCEEDED, phase=RunPhase.DONE, finished_at=now, change_count=restored)
        await self._runs.update(rollback_id, done, transaction)
        undone = RunUpdate(status=RunStatus.ROLLED_BACK, undone_by=rollback_id)
        await self._runs.update(run_id, undone, transaction)
        # If the run is a rollback, the run that it undid counts again, the one before that no longer, and so on.
        previous, status = await self._runs.get_undone_run_id(transaction, run_id), RunStatus.SUCCEEDED
        while previous:
            undone_by = run_id if status is RunStatus.ROLLED_BACK else None
            await self._runs.update(previous, RunUpdate(status=status, undone_by=undone_by), transaction)
            status = RunStatus.ROLLED_BACK if status is RunStatus.SUCCEEDED else RunStatus.SUCCEEDED
            previous = await self._runs.get_undone_run_id(transaction, previous)


def _raise_conflicts(conflicts: Iterable[RollbackConflict]) -> None:
    errors = [
        {"loc": [conflict.kind, conflict.id], "msg": conflict.detail, **conflict.model_dump(exclude={"detail"})}
        for conflict in conflicts
    ]
    if errors:
        message = (
            f"{len(errors)} elements were written after this run: see the list of errors, or overwrite with force."
        )
        raise Conflict(message, errors=errors)


@dataclass(frozen=True, slots=True)
class PlannedElement:
    """An element affected by a rollback: its current state and its target; None means that it does not exist."""

    kind: ElementKind
    id: str
    current: ElementImage | None
    target: ElementImage | None

    @property
    def is_moved(self) -> bool:
        """Whether a relationship gets other ends, so that it must be removed and restored."""
        return bool(self.current and self.target and self.current.endpoints != self.target.endpoints)


class RollbackPlan:
    """The elements of one rollback, its conflicts, and the memories that become duplicates.

    `duplicates` maps the id of a memory to the id of a restored memory that states the same.
    """

    def __init__(self, transaction: Transaction, owner: Owner, changes: Sequence[ElementChange]) -> None:
        self.conflicts: list[RollbackConflict] = []
        self.duplicates: dict[str, str] = {}
        self._transaction = transaction
        self._owner = owner
        self._changes = changes
        self._elements: dict[ElementKey, PlannedElement] = {}

    @classmethod
    async def load(cls, transaction: Transaction, owner: Owner, run_id: str) -> RollbackPlan:
        """Return the plan to roll a run back.

        Raises Gone if the changes of the run were deleted, and Conflict if a name to restore belongs to another entity
        or if a value to restore would be valid together with another one of its single-valued predicate.
        """
        changes = await snapshot_store.list_changes(transaction, run_id)
        if not changes:
            raise Gone(NO_CHANGES_LEFT)
        plan = cls(transaction, owner, changes)
        for kind in ElementKind:
            of_kind = [change for change in changes if change.kind is kind]
            images = await plan._fetch_images(kind, [change.id for change in of_kind])
            for change in of_kind:
                plan._add_change(change, images.get(change.id))
        await plan._check_names_are_free()
        await plan._remove_later_versions()
        await plan._keep_newer_profiles()
        await plan._find_duplicates()
        await plan._refuse_rivals()
        await plan._keep_used_entities()
        await plan._remove_references()
        return plan

    async def _run(self, query: str, **parameters: object) -> list[Row]:
        return await self._transaction.run(query, group_id=self._owner.group_id, **parameters)

    async def _fetch_images(self, kind: ElementKind, ids: Sequence[str]) -> dict[str, ElementImage]:
        return await snapshot_store.fetch_images(self._transaction, self._owner.group_id, kind, ids)

    def _add_change(self, change: ElementChange, current: ElementImage | None) -> None:
        restored, conflicts = restore_element(change, current)
        if _is_profile(change.before) or _is_profile(change.after):
            # Later runs rewrite profiles: that is no conflict, and a profile removed by another rollback stays removed.
            is_removed = current is None and change.after is not None
            target = None if is_removed else restored
            self._set(PlannedElement(change.kind, change.id, current, target))
            return
        self._set(PlannedElement(change.kind, change.id, current, restored))
        if conflicts:
            fields = list(conflicts)
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
        removed_ids = self._removed_memory_ids()
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

    async def _check_names_are_free(self) -> None:
        """Raise Conflict if a remaining entity has the name of one to restore; `force` does not override that."""
        names = {
            element.target.properties["name_key"]: element.target.properties["name"]
            for element in self.changed(ElementKind.ENTITY)
            if element.current is None and element.target is not None
        }
        for holder in await self._run("snapshots.find_name_holders", keys=list(names)) if names else ():
            planned = self._elements.get((ElementKind.ENTITY, holder["id"]))
            if planned is None or planned.target is not None:
                raise Conflict(
                    f"The name {names[holder['key']]!r} now belongs to another entity ({holder['id']}): link that "
                    "entity first."
                )

    async def _remove_later_versions(self) -> None:
        """Plan to remove the versions after those the run wrote; each except a profile's is a conflict."""
        versions = [{"memory_id": key, "version": version} for key, version in self._last_versions().items()]
        rows = await self._run("snapshots.find_later_versions", rows=versions) if versions else []
        for version_id, image in (await self._fetch_images(ElementKind.FACT, [row["id"] for row in rows])).items():
            if (ElementKind.FACT, version_id) in self._elements:
                continue
            self._set(PlannedElement(ElementKind.FACT, version_id, current=image, target=None))
            if _is_profile(image):
                continue
            detail = f"version {image.properties['version']} was written after the run"
            self._add_conflict(ElementKind.FACT, version_id, image.properties["memory_id"], detail, [EXISTENCE_FIELD])

    def _last_versions(self) -> dict[str, int]:
        """Return the last version that the run wrote of each memory, by memory id."""
        versions: dict[str, int] = {}
        for change in self._changes:
            if change.kind is ElementKind.FACT and change.memory_id and change.before is None and change.after:
                if _is_profile(change.after) and self._elements[change.kind, change.id].current is None:
                    continue
                version = change.after.properties["version"]
                versions[change.memory_id] = max(version, versions.get(change.memory_id, 0))
        return versions

    async def _keep_newer_profiles(self) -> None:
        """Plan to leave profiles ended whose entities now have newer ones."""
        restored = {
            target.properties["profile_of"]: target.properties["memory_id"]
            for _, target in self._restored_facts()
            if _is_profile(target) and "expired_at" not in target.properties
        }
        rows = await self._run("profiles.fetch_latest", entity_ids=list(restored)) if restored else []
        for latest in map(fact_from_row, rows):
            if latest.expired_at is None and latest.memory_id != restored[latest.subject_id]:
                for key, element in self._elements.items():
                    if _memory_id(element) == restored[latest.subject_id]:
                        self._elements[key] = replace(element, target=element.current)

    async def _find_duplicates(self) -> None:
        """Collect facts outside the plan that state the same as a restored memory; each is a conflict."""
        restored = {
            element.target.properties["active_hash"]: element.target.properties["memory_id"]
            for element in self._elements.values()
            if element.kind is ElementKind.FACT and element.target and element.target.properties.get("active_hash")
        }
        for holder in await self._run("snapshots.find_active_hash_holders", keys=list(restored)) if restored else ():
            if (ElementKind.FACT, holder["id"]) in self._elements:
                continue
            restored_id = restored[holder["key"]]
            self.duplicates[holder["memory_id"]] = restored_id
            detail = f"states the same as {restored_id}, which the rollback restores"
            self._add_conflict(ElementKind.FACT, holder["id"], holder["memory_id"], detail)

    async def _refuse_rivals(self) -> None:
        """Raise Conflict if a restored value would be valid together with one outside the rollback."""
        restored = [
            (fact_from_image(target), fact_from_image(current) if current else None)
            for current, target in self._restored_facts()
        ]
        values = [(fact, before) for fact, before in restored if fact.single_valued and fact.expired_at is None]
        pairs = [(fact.subject_id, fact.predicate) for fact, _ in values]
        found = (await FactLoader(self._transaction, self._owner).fetch(pairs=pairs)).values()
        others = [
            fact
            for fact in found
            if (ElementKind.FACT, fact.uuid) not in self._elements and fact.memory_id not in self.duplicates
        ]
        for fact, before in values:
            if rival := find_rival(fact, others, before):
                raise Conflict(f"{fact.memory_id} would become {describe_rival(fact, rival)}.")

    def _restored_facts(self) -> list[tuple[ElementImage | None, ElementImage]]:
        """Return the current state and the target of every version that the rollback changes or restores."""
        return [
            (element.current, element.target)
            for element in self.changed(ElementKind.FACT)
            if element.target is not None
        ]

    async def _keep_used_entities(self) -> None:
        """Keep entities planned for removal that later writes use; each is a conflict."""
        ids = [
            element.id
            for element in self._elements.values()
            if element.kind is ElementKind.ENTITY and element.target is None
        ]
        for row in await self._run("snapshots.list_entity_relationships", ids=ids) if ids else ():
            kind = ElementKind.FACT if row["type"] == "RELATES_TO" else ElementKind.MENTION
            entity = self._elements[ElementKind.ENTITY, row["id"]]
            if (kind, row["tie"]) not in self._elements and entity.target is None:
                self._set(replace(entity, target=entity.current))
                detail = "is used by later writes and stays"
                self._add_conflict(ElementKind.ENTITY, row["id"], None, detail, [EXISTENCE_FIELD])

    def _removed_memory_ids(self) -> set[str]:
        """Return the ids of the memories that lose all versions."""
        facts = [element for element in self._elements.values() if element.kind is ElementKind.FACT]
        staying = {element.target.properties["memory_id"] for element in facts if element.target}
        going = {
            element.current.properties["memory_id"] for element in facts if element.current and element.target is None
        }
        return going - staying

    async def _remove_references(self) -> None:
        """Plan to remove the ids of removed memories from the facts that refer to them."""
        removed_ids = self._removed_memory_ids()
        if not removed_ids:
            return
        rows = await self._run("snapshots.find_referencing_facts", memory_ids=sorted(removed_ids))
        for version_id, image in (await self._fetch_images(ElementKind.FACT, [row["id"] for row in rows])).items():
            element = self._elements.get((ElementKind.FACT, version_id))
            element = element or PlannedElement(ElementKind.FACT, version_id, current=image, target=image)
            if element.target is not None:
                element = replace(element, target=_without_references(element.target, removed_ids))
            self._set(element)

    async def apply(self, rollback_id: str) -> None:
        """Carry the plan out: remove elements first, then restore and update them, nodes before relationships."""
        group = {"group_id": self._owner.group_id}
        restored = {**group, "run_id": rollback_id}

        async def run(query: str, rows: Sequence[object], name: str = "rows", **parameters: object) -> None:
            if rows:
                await self._transaction.run(query, **{name: rows}, **parameters)

        fact_updates = self._rows_to_update(ElementKind.FACT)
        await run("snapshots.remove_mentions", self._ids_to_remove(ElementKind.MENTION), "ids", **group)
        await run("snapshots.remove_facts", self._ids_to_remove(ElementKind.FACT), "ids", **group)
        await run("snapshots.remove_entities", self._ids_to_remove(ElementKind.ENTITY), "ids", **group)
        await run("snapshots.restore_entities", self._rows_to_restore(ElementKind.ENTITY), **restored)
        await run("snapshots.set_entities", self._rows_to_update(ElementKind.ENTITY), **group)
        await run("snapshots.set_episodes", self._rows_to_update(ElementKind.EPISODE), **group)
        # Two facts may never share a unique hash, even briefly: clear the hashes before they are set.
        released = [{"id": row["id"], "properties": {"active_hash": None}} for row in fact_updates]
        await run("snapshots.set_facts", released, **group)
        await run("snapshots.restore_facts", self._rows_to_restore(ElementKind.FACT), **restored)
        await run("snapshots.set_facts", fact_updates, **group)
        await run("facts.rebuild_references", self._referring_memory_ids(), "referring", **group)
        await run("snapshots.restore_mentions", self._rows_to_restore(ElementKind.MENTION))
        await run("snapshots.set_mentions", self._rows_to_update(ElementKind.MENTION), **group)

    def _referring_memory_ids(self) -> list[str]:
        """Return the ids of memories that mention, now or once restored, entities besides subject and object."""
        facts = self.changed(ElementKind.FACT)
        images = [image for element in facts for image in (element.current, element.target) if image]
        return sorted(
            {
                image.properties["memory_id"]
                for image in images
                if set(image.properties.get("entity_ids", ())).difference(image.endpoints)
            }
        )

    def _ids_to_remove(self, kind: ElementKind) -> list[str]:
        """Return the ids of the elements to remove, including those to move."""
        return [
            element.id
            for element in self.changed(kind)
            if element.current is not None and (element.target is None or element.is_moved)
        ]

    def _rows_to_restore(self, kind: ElementKind) -> list[Row]:
        """Return the rows of the elements to create, including those to move."""
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

    def _rows_to_update(self, kind: ElementKind) -> list[Row]:
        """Return the rows of the elements to change in place, always with the hash that makes a fact unique."""
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
