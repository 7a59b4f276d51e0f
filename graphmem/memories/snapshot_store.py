"""Before- and after-images: `(:ConsolidationRun)-[:CHANGED]->(:Change {kind, element_id, before, after, vector})`.

An image is stored as JSON that is readable in Neo4j Browser: `properties`, and `source` and `target` or `labels`. A
time is written `{"$time": "…"}`. Vectors, which no run changes, are stored next to the image as a list property.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from graphmem.memories.fact import with_lists
from graphmem.memories.snapshot import (
    ElementChange,
    ElementImage,
    ElementKind,
)
from graphmem.neo4j.driver import Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.tenants.owners import Owner

_IMAGE_QUERIES = {
    ElementKind.FACT: "snapshots.fetch_fact_images",
    ElementKind.ENTITY: "snapshots.fetch_entity_images",
    ElementKind.EPISODE: "snapshots.fetch_episode_images",
    ElementKind.MENTION: "snapshots.fetch_mention_images",
}
_LISTS_OF_ENTITIES = ("aliases", "alias_keys", "detail_sources")
_VECTOR_PROPERTIES = ("fact_embedding", "name_embedding", "next_vector")


class ChangeRecorder:
    """Records the elements of one user that one run changes, within the run's transaction."""

    def __init__(self, transaction: Transaction, run_id: str, group_id: str, now: datetime) -> None:
        self._transaction = transaction
        self._run_id = run_id
        self._group_id = group_id
        self._now = now
        self._before: dict[tuple[ElementKind, str], ElementImage | None] = {}

    async def record_before(self, kind: ElementKind, ids: Iterable[str]) -> None:
        """Record elements before they are changed; those that do not exist yet are recorded as created by the run."""
        new_ids = [key for key in dict.fromkeys(ids) if (kind, key) not in self._before]
        if not new_ids:
            return
        images = await fetch_images(self._transaction, self._group_id, kind, new_ids)
        rows = [
            {
                "kind": kind.value,
                "id": key,
                "memory_id": _memory_id_of(images.get(key)),
                "before": image_to_json(images.get(key)),
                "position": len(self._before) + index,
            }
            for index, key in enumerate(new_ids)
        ]
        self._before.update({(kind, key): images.get(key) for key in new_ids})
        await self._transaction.run(
            "snapshots.record_before", run_id=self._run_id, group_id=self._group_id, rows=rows, now=self._now
        )
        await self._transaction.run("snapshots.save_vectors", run_id=self._run_id)

    async def record_after(self, written_facts: Mapping[str, ElementImage] | None = None) -> int:
        """Record the current elements, drop the records of unchanged ones, and return the number changed.

        `written_facts` are facts as the run has just written them, with None for an absent property; the others are
        read from the graph.
        """
        changed, unchanged = [], []
        for kind in ElementKind:
            written = (written_facts or {}) if kind is ElementKind.FACT else {}
            ids = [key for recorded_kind, key in self._before if recorded_kind is kind]
            unread = [key for key in ids if key not in written]
            images = await fetch_images(self._transaction, self._group_id, kind, unread)
            for key in ids:
                before = self._before[kind, key]
                after = _apply_properties(before, written[key]) if key in written else images.get(key)
                row = {"kind": kind.value, "id": key, "memory_id": _memory_id_of(after or before)}
                if before == after:
                    unchanged.append(row)
                else:
                    changed.append({**row, "after": image_to_json(after)})
        if changed:
            await self._transaction.run("snapshots.record_after", run_id=self._run_id, rows=changed)
        if unchanged:
            await self._transaction.run("snapshots.delete_changes", run_id=self._run_id, rows=unchanged)
        await self._transaction.run("snapshots.save_vectors", run_id=self._run_id)
        return len(changed)


async def list_changes(transaction: Transaction, run_id: str, limit: int | None = None) -> list[ElementChange]:
    """Return the changes of a run in the order they were recorded: all of them, or the first `limit`."""
    rows = await transaction.run("snapshots.list_changes", run_id=run_id, limit=limit)
    return [
        ElementChange(
            kind=ElementKind(row["kind"]),
            id=row["id"],
            memory_id=row["memory_id"],
            before=image_from_json(row["before"]),
            after=image_from_json(row["after"]),
        )
        for row in rows
    ]


async def erase_memory(transaction: Transaction, owner: Owner, memory_id: str, entity_ids: Sequence[str]) -> int:
    """Erase the changes of a memory, of profiles derived from it and of entities, and their ids from other images.

    Return the number of changes erased.
    """
    rows = await transaction.run("snapshots.find_changes_of_memory", group_id=owner.group_id, memory_id=memory_id)
    own_rows = [row for row in rows if row["memory_id"] == memory_id or _is_derived_from(row, memory_id)]
    own_rows += await transaction.run(
        "snapshots.find_changes_of_entities", group_id=owner.group_id, ids=list(entity_ids)
    )
    for run_id in {row["run_id"] for row in own_rows}:
        elements = [{"kind": row["kind"], "id": row["id"]} for row in own_rows if row["run_id"] == run_id]
        await transaction.run("snapshots.delete_changes", run_id=run_id, rows=elements)
    erased_ids = [memory_id, *{row["id"] for row in own_rows}, *entity_ids]
    mentioning = await transaction.run("snapshots.find_changes_mentioning", group_id=owner.group_id, words=erased_ids)
    if mentioning:
        images = [_remove_ids_from_row(row, set(erased_ids)) for row in mentioning]
        await transaction.run("snapshots.replace_images", rows=images)
    return len(own_rows)


async def delete_expired(transaction: Transaction, owner: Owner, before: datetime) -> int:
    """Delete the changes of a user recorded before a time; return the number deleted."""
    rows = await transaction.run("snapshots.delete_expired", group_id=owner.group_id, before=before)
    return int(rows[0]["erased"])


async def fetch_images(
    transaction: Transaction, group_id: str, kind: ElementKind, ids: Sequence[str]
) -> dict[str, ElementImage]:
    """Return the current images of elements by id; elements that do not exist are left out."""
    if not ids:
        return {}
    rows = await transaction.run(_IMAGE_QUERIES[kind], group_id=group_id, ids=list(ids))
    return {row["id"]: _image_from_row(kind, row) for row in rows}


def _image_from_row(kind: ElementKind, row: Row) -> ElementImage:
    """Return an image with all of the element's lists, including empty ones, which are not stored."""
    properties = {
        name: value for name, value in row["properties"].items() if name not in _VECTOR_PROPERTIES and value is not None
    }
    if kind is ElementKind.FACT:
        properties = with_lists(properties, row["source"], row["target"])
    if kind is ElementKind.ENTITY:
        properties = {name: [] for name in _LISTS_OF_ENTITIES} | properties
    return ElementImage(properties, row["source"], row["target"], tuple(sorted(row["labels"] or ())))


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
    """Return the image written by `image_to_json`."""
    if text is None:
        return None
    document = json.loads(text, object_hook=_time_from_json)
    return ElementImage(
        document["properties"], document.get("source"), document.get("target"), tuple(document.get("labels") or ())
    )


def _time_to_json(value: object) -> dict[str, str]:
    if isinstance(value, datetime):
        return {"$time": value.isoformat()}
    raise TypeError(f"{type(value).__name__} cannot be stored in an image")


def _time_from_json(value: dict[str, Any]) -> Any:
    return datetime.fromisoformat(value["$time"]) if value.keys() == {"$time"} else value


def _apply_properties(before: ElementImage | None, new_state: ElementImage) -> ElementImage:
    """Return an element after setting properties on it, as `SET r += …` does."""
    properties = (before.properties if before else {}) | new_state.properties
    present = {name: value for name, value in properties.items() if value is not None}
    return ElementImage(present, new_state.source, new_state.target, new_state.labels)


def _memory_id_of(image: ElementImage | None) -> str | None:
    return image.properties.get("memory_id") if image else None


def _is_derived_from(row: Row, memory_id: str) -> bool:
    """Return whether the change is to a profile that was, or is, written from a memory."""
    images = (image_from_json(row["before"]), image_from_json(row["after"]))
    return any(memory_id in (image.properties.get("derived_from") or ()) for image in images if image)


def _remove_ids_from_row(row: Row, erased_ids: set[str]) -> Row:
    return {
        "run_id": row["run_id"],
        "kind": row["kind"],
        "id": row["id"],
        "before": image_to_json(_remove_ids(image_from_json(row["before"]), erased_ids)),
        "after": image_to_json(_remove_ids(image_from_json(row["after"]), erased_ids)),
    }


def _remove_ids(image: ElementImage | None, erased_ids: set[str]) -> ElementImage | None:
    if image is None:
        return None
    properties: dict[str, Any] = {}
    for name, value in image.properties.items():
        if isinstance(value, list):
            properties[name] = [item for item in value if item not in erased_ids]
        elif not (isinstance(value, str) and value in erased_ids):
            properties[name] = value
    return ElementImage(properties, image.source, image.target, image.labels)
