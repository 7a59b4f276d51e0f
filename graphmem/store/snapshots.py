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
from graphmem.domain.snapshot import Delta, Image, Kind
from graphmem.store.driver import Row, Transaction

_QUERY = {
    Kind.FACT: "snapshots.facts",
    Kind.ENTITY: "snapshots.entities",
    Kind.EPISODE: "snapshots.episodes",
    Kind.MENTION: "snapshots.mentions",
}
_VECTORS = ("fact_embedding", "name_embedding")
EVERYTHING = 1_000_000


class Recorder:
    """Notes what one run is about to touch, and at the end what has become of it."""

    def __init__(self, transaction: Transaction, run_id: str, group_id: str, now: datetime) -> None:
        self._transaction = transaction
        self._run_id = run_id
        self._group_id = group_id
        self._now = now
        self._seen: dict[tuple[Kind, str], Image | None] = {}

    async def see(self, kind: Kind, ids: Iterable[str]) -> None:
        """Note elements before they are touched; those that do not exist yet are noted as made by the run."""
        fresh = [key for key in dict.fromkeys(ids) if (kind, key) not in self._seen]
        if not fresh:
            return
        images = await read_images(self._transaction, self._group_id, kind, fresh)
        rows = [
            {
                "kind": kind.value,
                "id": key,
                "memory_id": _memory_id(images.get(key)),
                "before": write_image(images.get(key)),
                "position": len(self._seen) + index,
            }
            for index, key in enumerate(fresh)
        ]
        self._seen.update({(kind, key): images.get(key) for key in fresh})
        await self._transaction.run(
            "snapshots.record", run_id=self._run_id, group_id=self._group_id, rows=rows, now=self._now
        )
        await self._transaction.run("snapshots.keep_vectors", run_id=self._run_id)

    async def close(self, written: Mapping[str, Image] | None = None) -> int:
        """Note what the elements are now, let go of those left as they were, and return how many changed.

        `written` are facts as the run has just written them, absent properties None: they need not be read again.
        """
        changed, same = [], []
        for kind in Kind:
            known = (written or {}) if kind is Kind.FACT else {}
            ids = [key for seen_kind, key in self._seen if seen_kind is kind]
            unknown = [key for key in ids if key not in known]
            images = await read_images(self._transaction, self._group_id, kind, unknown) if unknown else {}
            for key in ids:
                before = self._seen[kind, key]
                after = _overlaid(before, known[key]) if key in known else images.get(key)
                row = {"kind": kind.value, "id": key, "memory_id": _memory_id(after or before)}
                if before == after:
                    same.append(row)
                else:
                    changed.append({**row, "after": write_image(after)})
        if changed:
            await self._transaction.run("snapshots.finish", run_id=self._run_id, rows=changed)
        if same:
            await self._transaction.run("snapshots.drop", run_id=self._run_id, rows=same)
        await self._transaction.run("snapshots.keep_vectors", run_id=self._run_id)
        return len(changed)


class SnapshotStore:
    """The images of all runs; every method works within the caller's transaction."""

    def recorder(self, transaction: Transaction, run_id: str, group_id: str, now: datetime) -> Recorder:
        """Return a recorder for one run of one user."""
        return Recorder(transaction, run_id, group_id, now)

    async def changes(self, transaction: Transaction, run_id: str, limit: int = EVERYTHING) -> list[Delta]:
        """Return what a run changed, in the order it was recorded."""
        rows = await transaction.run("snapshots.changes", run_id=run_id, limit=limit)
        return [
            Delta(Kind(row["kind"]), row["id"], row["memory_id"], read_image(row["before"]), read_image(row["after"]))
            for row in rows
        ]

    async def forget(self, transaction: Transaction, owner: Owner) -> dict[str, int]:
        """Erase every run of a user with its images and proposals; return how many there were of each."""
        images = await transaction.run("snapshots.forget", group_id=owner.group_id)
        runs = await transaction.run("consolidation.forget_runs", group_id=owner.group_id)
        return {"Change": int(images[0]["erased"]), "ConsolidationRun": int(runs[0]["erased"])}

    async def erase_memory(self, transaction: Transaction, owner: Owner, memory_id: str) -> int:
        """Erase a memory from every image and proposal; return how many images were its own.

        What a run did to other memories can still be rolled back.
        """
        found = await transaction.run("snapshots.of_memory", group_id=owner.group_id, memory_id=memory_id)
        own = [row for row in found if row["memory_id"] == memory_id]
        for run_id in {row["run_id"] for row in own}:
            rows = [{"kind": row["kind"], "id": row["id"]} for row in own if row["run_id"] == run_id]
            await transaction.run("snapshots.drop", run_id=run_id, rows=rows)
        gone = [memory_id, *{row["id"] for row in own}]
        naming = await transaction.run("snapshots.naming", group_id=owner.group_id, words=gone)
        if naming:
            await transaction.run("snapshots.rewrite", rows=[_without(row, set(gone)) for row in naming])
        for run in await transaction.run("consolidation.runs_naming", group_id=owner.group_id, memory_id=memory_id):
            kept = [each for each in json.loads(run["proposals"]) if memory_id not in json.dumps(each)]
            batches = [
                {**batch, "memory_ids": [key for key in batch["memory_ids"] if key != memory_id]}
                for batch in json.loads(run["batch_ids"] or "[]")
            ]
            texts = {"proposals": json.dumps(kept, ensure_ascii=False), "batch_ids": json.dumps(batches)}
            await transaction.run("consolidation.update_run", run_id=run["id"], properties={**texts, "preview": None})
        return len(own)

    async def prune(self, transaction: Transaction, before: datetime) -> int:
        """Erase images older than their retention and the texts of their runs; return how many images went."""
        rows = await transaction.run("snapshots.prune", before=before)
        await transaction.run("consolidation.blank_runs", before=before)
        return int(rows[0]["erased"])


async def read_images(transaction: Transaction, group_id: str, kind: Kind, ids: Sequence[str]) -> dict[str, Image]:
    """Return the images of elements as they are in the graph; what does not exist is left out."""
    rows = await transaction.run(_QUERY[kind], group_id=group_id, ids=list(ids))
    return {row["id"]: _image_of(row) for row in rows}


def _image_of(row: Row) -> Image:
    stored = row["properties"].items()
    kept = {name: value for name, value in stored if name not in _VECTORS and value is not None}
    return Image(kept, row["source"], row["target"], tuple(sorted(row["labels"] or ())))


def write_image(image: Image | None) -> str | None:
    """Return an image as JSON."""
    if image is None:
        return None
    told: dict[str, Any] = {"properties": image.properties}
    if image.source:
        told |= {"source": image.source, "target": image.target}
    if image.labels:
        told["labels"] = list(image.labels)
    return json.dumps(told, default=_write_time, ensure_ascii=False, sort_keys=True)


def read_image(text: str | None) -> Image | None:
    """Return the image written as JSON."""
    if text is None:
        return None
    told = json.loads(text, object_hook=_read_time)
    return Image(told["properties"], told.get("source"), told.get("target"), tuple(told.get("labels") or ()))


def _write_time(value: object) -> dict[str, str]:
    if isinstance(value, datetime):
        return {"$time": value.isoformat()}
    raise TypeError(f"{type(value).__name__} cannot lie in an image")


def _read_time(value: dict[str, Any]) -> Any:
    return datetime.fromisoformat(value["$time"]) if value.keys() == {"$time"} else value


def _overlaid(before: Image | None, written: Image) -> Image:
    """Return what an element is after properties were set on it, as `SET r += …` does."""
    properties = (before.properties if before else {}) | written.properties
    kept = {name: value for name, value in properties.items() if value is not None}
    return Image(kept, written.source, written.target, written.labels)


def _memory_id(image: Image | None) -> str | None:
    return image.properties.get("memory_id") if image else None


def _without(row: Row, gone: set[str]) -> Row:
    return {
        "run_id": row["run_id"],
        "kind": row["kind"],
        "id": row["id"],
        "before": write_image(_stripped(read_image(row["before"]), gone)),
        "after": write_image(_stripped(read_image(row["after"]), gone)),
    }


def _stripped(image: Image | None, gone: set[str]) -> Image | None:
    if image is None:
        return None
    kept: dict[str, Any] = {}
    for name, value in image.properties.items():
        if isinstance(value, list):
            kept[name] = [item for item in value if item not in gone]
        elif not (isinstance(value, str) and value in gone):
            kept[name] = value
    return Image(kept, image.source, image.target, image.labels)
