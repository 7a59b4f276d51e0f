"""Before-images in the graph: `(:ConsolidationRun)-[:CHANGED]->(:Change {kind, element_id, before, after, vector})`.

An image is JSON for people to read in Neo4j Browser: `properties`, and `source` and `target` or `labels`. Times are
written `{"$time": "…"}`; vectors, which no run changes, are kept beside it as a list property.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from graphmem.domain.identity import Owner
from graphmem.domain.snapshot import ElementChange, ElementImage, ElementKind
from graphmem.store.driver import Row, Transaction

_IMAGE_QUERIES = {
    ElementKind.FACT: "snapshots.fetch_fact_images",
    ElementKind.ENTITY: "snapshots.fetch_entity_images",
    ElementKind.EPISODE: "snapshots.fetch_episode_images",
    ElementKind.MENTION: "snapshots.fetch_mention_images",
}
_VECTOR_PROPERTIES = ("fact_embedding", "name_embedding")
NO_LIMIT = 1_000_000


class ChangeRecorder:
    """Notes what one run is about to touch, and at the end what has become of it."""

    def __init__(self, transaction: Transaction, run_id: str, group_id: str, now: datetime) -> None:
        self._transaction = transaction
        self._run_id = run_id
        self._group_id = group_id
        self._now = now
        self._before: dict[tuple[ElementKind, str], ElementImage | None] = {}

    async def record_before(self, kind: ElementKind, ids: Iterable[str]) -> None:
        """Note elements before they are touched; those that do not exist yet are noted as made by the run."""
        fresh = [key for key in dict.fromkeys(ids) if (kind, key) not in self._before]
        if not fresh:
            return
        images = await fetch_images(self._transaction, self._group_id, kind, fresh)
        rows = [
            {
                "kind": kind.value,
                "id": key,
                "memory_id": _memory_id_of(images.get(key)),
                "before": image_to_json(images.get(key)),
                "position": len(self._before) + index,
            }
            for index, key in enumerate(fresh)
        ]
        self._before.update({(kind, key): images.get(key) for key in fresh})
        await self._transaction.run(
            "snapshots.record_before", run_id=self._run_id, group_id=self._group_id, rows=rows, now=self._now
        )
        await self._transaction.run("snapshots.save_vectors", run_id=self._run_id)

    async def record_after(self, written_facts: Mapping[str, ElementImage] | None = None) -> int:
        """Note what the elements are now, let go of those left as they were, and return how many changed.

        `written_facts` are facts as the run has just written them, absent properties None: they need not be read again.
        """
        changed, same = [], []
        for kind in ElementKind:
            known = (written_facts or {}) if kind is ElementKind.FACT else {}
            ids = [key for seen_kind, key in self._before if seen_kind is kind]
            unknown = [key for key in ids if key not in known]
            images = await fetch_images(self._transaction, self._group_id, kind, unknown) if unknown else {}
            for key in ids:
                before = self._before[kind, key]
                after = _apply_properties(before, known[key]) if key in known else images.get(key)
                row = {"kind": kind.value, "id": key, "memory_id": _memory_id_of(after or before)}
                if before == after:
                    same.append(row)
                else:
                    changed.append({**row, "after": image_to_json(after)})
        if changed:
            await self._transaction.run("snapshots.record_after", run_id=self._run_id, rows=changed)
        if same:
            await self._transaction.run("snapshots.delete_changes", run_id=self._run_id, rows=same)
        await self._transaction.run("snapshots.save_vectors", run_id=self._run_id)
        return len(changed)


class SnapshotStore:
    """The images of all runs; every method works within the caller's transaction."""

    def create_recorder(self, transaction: Transaction, run_id: str, group_id: str, now: datetime) -> ChangeRecorder:
        """Return a recorder for one run of one user."""
        return ChangeRecorder(transaction, run_id, group_id, now)

    async def list_changes(self, transaction: Transaction, run_id: str, limit: int = NO_LIMIT) -> list[ElementChange]:
        """Return what a run changed, in the order it was recorded."""
        rows = await transaction.run("snapshots.list_changes", run_id=run_id, limit=limit)
        return [
            ElementChange(
                ElementKind(row["kind"]),
                row["id"],
                row["memory_id"],
                image_from_json(row["before"]),
                image_from_json(row["after"]),
            )
            for row in rows
        ]

    async def erase_user(self, transaction: Transaction, owner: Owner) -> dict[str, int]:
        """Erase every run of a user with its images and proposals; return how many there were of each."""
        images = await transaction.run("snapshots.erase_user", group_id=owner.group_id)
        runs = await transaction.run("consolidation.erase_runs", group_id=owner.group_id)
        return {"Change": int(images[0]["erased"]), "ConsolidationRun": int(runs[0]["erased"])}

    async def erase_memory(self, transaction: Transaction, owner: Owner, memory_id: str) -> int:
        """Erase a memory from every image and proposal; return how many images were its own.

        What a run did to other memories can still be rolled back.
        """
        found = await transaction.run("snapshots.find_changes_of_memory", group_id=owner.group_id, memory_id=memory_id)
        own = [row for row in found if row["memory_id"] == memory_id]
        for run_id in {row["run_id"] for row in own}:
            rows = [{"kind": row["kind"], "id": row["id"]} for row in own if row["run_id"] == run_id]
            await transaction.run("snapshots.delete_changes", run_id=run_id, rows=rows)
        removed_ids = [memory_id, *{row["id"] for row in own}]
        naming = await transaction.run("snapshots.find_changes_mentioning", group_id=owner.group_id, words=removed_ids)
        if naming:
            await transaction.run(
                "snapshots.replace_images", rows=[_remove_ids_from_row(row, set(removed_ids)) for row in naming]
            )
        for run in await transaction.run(
            "consolidation.find_runs_mentioning", group_id=owner.group_id, memory_id=memory_id
        ):
            kept = [each for each in json.loads(run["proposals"]) if memory_id not in json.dumps(each)]
            batches = [
                {**batch, "memory_ids": [key for key in batch["memory_ids"] if key != memory_id]}
                for batch in json.loads(run["batch_ids"] or "[]")
            ]
            texts = {"proposals": json.dumps(kept, ensure_ascii=False), "batch_ids": json.dumps(batches)}
            await transaction.run("consolidation.update_run", run_id=run["id"], properties={**texts, "preview": None})
        return len(own)

    async def delete_expired(self, transaction: Transaction, before: datetime) -> int:
        """Erase images older than their retention and the texts of their runs; return how many images went."""
        rows = await transaction.run("snapshots.delete_expired", before=before)
        await transaction.run("consolidation.clear_expired_texts", before=before)
        return int(rows[0]["erased"])


async def fetch_images(
    transaction: Transaction, group_id: str, kind: ElementKind, ids: Sequence[str]
) -> dict[str, ElementImage]:
    """Return the images of elements as they are in the graph; what does not exist is left out."""
    rows = await transaction.run(_IMAGE_QUERIES[kind], group_id=group_id, ids=list(ids))
    return {row["id"]: _image_from_row(row) for row in rows}


def _image_from_row(row: Row) -> ElementImage:
    stored = row["properties"].items()
    kept = {name: value for name, value in stored if name not in _VECTOR_PROPERTIES and value is not None}
    return ElementImage(kept, row["source"], row["target"], tuple(sorted(row["labels"] or ())))


def image_to_json(image: ElementImage | None) -> str | None:
    """Return an image as JSON."""
    if image is None:
        return None
    document: dict[str, Any] = {"properties": image.properties}
    if image.source:
        document |= {"source": image.source, "target": image.target}
    if image.labels:
        document["labels"] = list(image.labels)
    return json.dumps(document, default=_time_to_json, ensure_ascii=False, sort_keys=True)


def image_from_json(text: str | None) -> ElementImage | None:
    """Return the image written as JSON."""
    if text is None:
        return None
    document = json.loads(text, object_hook=_time_from_json)
    return ElementImage(
        document["properties"], document.get("source"), document.get("target"), tuple(document.get("labels") or ())
    )


def _time_to_json(value: object) -> dict[str, str]:
    if isinstance(value, datetime):
        return {"$time": value.isoformat()}
    raise TypeError(f"{type(value).__name__} cannot lie in an image")


def _time_from_json(value: dict[str, Any]) -> Any:
    return datetime.fromisoformat(value["$time"]) if value.keys() == {"$time"} else value


def _apply_properties(before: ElementImage | None, new_state: ElementImage) -> ElementImage:
    """Return what an element is after properties were set on it, as `SET r += …` does."""
    properties = (before.properties if before else {}) | new_state.properties
    kept = {name: value for name, value in properties.items() if value is not None}
    return ElementImage(kept, new_state.source, new_state.target, new_state.labels)


def _memory_id_of(image: ElementImage | None) -> str | None:
    return image.properties.get("memory_id") if image else None


def _remove_ids_from_row(row: Row, removed_ids: set[str]) -> Row:
    return {
        "run_id": row["run_id"],
        "kind": row["kind"],
        "id": row["id"],
        "before": image_to_json(_remove_ids(image_from_json(row["before"]), removed_ids)),
        "after": image_to_json(_remove_ids(image_from_json(row["after"]), removed_ids)),
    }


def _remove_ids(image: ElementImage | None, removed_ids: set[str]) -> ElementImage | None:
    if image is None:
        return None
    kept: dict[str, Any] = {}
    for name, value in image.properties.items():
        if isinstance(value, list):
            kept[name] = [item for item in value if item not in removed_ids]
        elif not (isinstance(value, str) and value in removed_ids):
            kept[name] = value
    return ElementImage(kept, image.source, image.target, image.labels)
