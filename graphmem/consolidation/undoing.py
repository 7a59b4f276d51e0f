"""What undoing a run comes to: what each element is to become, and what later writes it would overwrite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from graphmem.domain.identity import Owner
from graphmem.domain.proposals import Collision
from graphmem.domain.snapshot import EXISTENCE, Delta, Image, Kind, Restored, restore
from graphmem.errors import Conflict
from graphmem.store.driver import Transaction
from graphmem.store.snapshots import SnapshotStore, read_images

_LIST_POINTERS = ("supersedes", "associations")
_STAYS = Image()


@dataclass(slots=True)
class Plan:
    """What a rollback will do to each element, and what it would overwrite."""

    wanted: dict[tuple[Kind, str], Image | None] = field(default_factory=dict)
    current: dict[tuple[Kind, str], Image | None] = field(default_factory=dict)
    collisions: list[Collision] = field(default_factory=list)
    twins: dict[str, str] = field(default_factory=dict)

    def of(self, kind: Kind) -> dict[str, tuple[Image | None, Image | None]]:
        """Return what elements of a kind are and are to be, where the two differ."""
        return {
            key: (self.current[seen, key], image)
            for (seen, key), image in self.wanted.items()
            if seen is kind and self.current[seen, key] != image
        }


class Planner:
    """Compares what a run left with what is there now, within the caller's transaction."""

    def __init__(self, snapshots: SnapshotStore) -> None:
        self._snapshots = snapshots

    async def plan(self, transaction: Transaction, owner: Owner, run_id: str) -> Plan:
        """Return the plan; raise Conflict where a name that comes back belongs to another entity by now."""
        plan = Plan()
        deltas = await self._snapshots.changes(transaction, run_id)
        for kind in Kind:
            found = [delta for delta in deltas if delta.kind is kind]
            images = await read_images(transaction, owner.group_id, kind, [delta.id for delta in found])
            for delta in found:
                back = restore(delta, images.get(delta.id))
                plan.wanted[kind, delta.id], plan.current[kind, delta.id] = back.image, images.get(delta.id)
                if back.collisions:
                    plan.collisions.append(_collision(delta, back))
        await self._refuse_taken_names(transaction, owner, plan)
        await self._add_later_versions(transaction, owner, plan, deltas)
        await self._add_twins(transaction, owner, plan)
        await self._keep_what_is_tied(transaction, owner, plan)
        await self._add_pointers(transaction, owner, plan)
        return plan

    async def _refuse_taken_names(self, transaction: Transaction, owner: Owner, plan: Plan) -> None:
        """Refuse, whatever the force, to bring an entity back whose name another one bears now."""
        back = plan.of(Kind.ENTITY)
        keys = {then.properties["name_key"]: then for now, then in back.values() if now is None and then is not None}
        rows = await transaction.run("snapshots.same_names", group_id=owner.group_id, keys=list(keys)) if keys else []
        taken = [row for row in rows if plan.wanted.get((Kind.ENTITY, row["id"]), _STAYS) is not None]
        if taken:
            name = keys[taken[0]["key"]].properties["name"]
            raise Conflict(f"The name {name!r} is another entity's since then ({taken[0]['id']}): link that one first.")

    async def _add_later_versions(
        self, transaction: Transaction, owner: Owner, plan: Plan, deltas: Sequence[Delta]
    ) -> None:
        """Take versions along that rest on one which the run wrote: they have nothing to stand on."""
        known: dict[str, int] = {}
        for delta in deltas:
            if delta.kind is Kind.FACT and delta.memory_id and delta.before is None and delta.after:
                version = delta.after.properties["version"]
                known[delta.memory_id] = max(version, known.get(delta.memory_id, 0))
        rows = [{"memory_id": key, "version": version} for key, version in known.items()]
        later = await transaction.run("snapshots.later_versions", group_id=owner.group_id, rows=rows) if rows else []
        images = await read_images(transaction, owner.group_id, Kind.FACT, [row["id"] for row in later])
        for key, image in images.items():
            if (Kind.FACT, key) in plan.wanted:
                continue
            plan.wanted[Kind.FACT, key], plan.current[Kind.FACT, key] = None, image
            memory_id = image.properties["memory_id"]
            detail = f"version {image.properties['version']} was written since"
            collision = Collision(kind="fact", id=key, memory_id=memory_id, fields=[EXISTENCE], detail=detail)
            plan.collisions.append(collision)

    async def _add_twins(self, transaction: Transaction, owner: Owner, plan: Plan) -> None:
        """Find memories that state since then what the rollback makes current again."""
        keys = {
            image.properties["active_hash"]: image.properties["memory_id"]
            for (kind, _), image in plan.wanted.items()
            if kind is Kind.FACT and image and image.properties.get("active_hash")
        }
        rows = await transaction.run("snapshots.same_statements", group_id=owner.group_id, keys=list(keys))
        for row in rows:
            if (Kind.FACT, row["id"]) not in plan.wanted:
                plan.twins[row["memory_id"]] = keys[row["key"]]
                detail = f"states the same as {keys[row['key']]}, which comes back"
                plan.collisions.append(Collision(kind="fact", id=row["id"], memory_id=row["memory_id"], detail=detail))

    async def _keep_what_is_tied(self, transaction: Transaction, owner: Owner, plan: Plan) -> None:
        """Let an entity stay that the run made and others have built on."""
        going = [key for (kind, key), image in plan.wanted.items() if kind is Kind.ENTITY and image is None]
        ties = await transaction.run("snapshots.ties", group_id=owner.group_id, ids=going) if going else []
        for row in ties:
            kind = Kind.FACT if row["type"] == "RELATES_TO" else Kind.MENTION
            key = (Kind.ENTITY, row["id"])
            if (kind, row["tie"]) not in plan.wanted and plan.wanted[key] is None:
                plan.wanted[key] = plan.current[key]
                detail = "others have built on it since: it stays"
                plan.collisions.append(Collision(kind="entity", id=row["id"], fields=[EXISTENCE], detail=detail))

    async def _add_pointers(self, transaction: Transaction, owner: Owner, plan: Plan) -> None:
        """Take the ids of memories that go out of the facts that point to them."""
        staying = {
            image.properties["memory_id"] for (kind, _), image in plan.wanted.items() if kind is Kind.FACT and image
        }
        going = {
            image.properties["memory_id"]
            for (kind, key), image in plan.current.items()
            if kind is Kind.FACT and image and plan.wanted[kind, key] is None
        } - staying
        if not going:
            return
        rows = await transaction.run("snapshots.pointing_at", group_id=owner.group_id, memory_ids=sorted(going))
        ids = [row["id"] for row in rows]
        images = await read_images(transaction, owner.group_id, Kind.FACT, ids)
        for key, image in images.items():
            place = (Kind.FACT, key)
            wanted = plan.wanted.setdefault(place, image)
            plan.current.setdefault(place, image)
            if wanted is not None:
                plan.wanted[place] = _without_pointers(wanted, going)


def _collision(delta: Delta, back: Restored) -> Collision:
    fields = list(back.collisions)
    detail = "is gone since" if fields == [EXISTENCE] else f"was written to since ({', '.join(fields)})"
    return Collision(kind=delta.kind.value, id=delta.id, memory_id=delta.memory_id, fields=fields, detail=detail)


def _without_pointers(image: Image, going: set[str]) -> Image:
    properties = {
        name: [item for item in value if item not in going] if name in _LIST_POINTERS else value
        for name, value in image.properties.items()
        if not (name in ("superseded_by", "ended_by") and value in going)
    }
    return Image(properties, image.source, image.target, image.labels)
