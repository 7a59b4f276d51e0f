"""Entities in the graph: found by name or alias, made once per user and name."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from graphmem.domain.entity import DEFAULT_ENTITY_TYPE, PERSON_TYPE, Entity, EntityIn, EntityRef
from graphmem.domain.identity import Owner
from graphmem.domain.text import name_key
from graphmem.errors import NotFound
from graphmem.store.driver import Graph, Row, Transaction
from graphmem.store.fact_mapping import entity_from_node, entity_ref_from_node, group_key

GLOBAL_SUBJECT_NAME = "everyone"
"""Name of the entity that global memories are about when they name no subject."""


@dataclass(frozen=True, slots=True)
class ResolvedEntities:
    """What names mean: entities by name key, and the properties of those that are still to be made."""

    refs: dict[str, EntityRef]
    new_entities: list[Row]


class EntityStore:
    """Entities of all users."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def resolve_entities(
        self,
        transaction: Transaction,
        owner: Owner,
        entities: Iterable[EntityIn],
        vectors: Mapping[str, list[float]],
        now: datetime,
    ) -> ResolvedEntities:
        """Return the entities named; the key "" is the user's own entity. The caller makes those that are new.

        Runs under the user's lock, so that many writers at once make one entity; the constraint holds it anyway.
        """
        own = EntityIn(name=owner.user_id or GLOBAL_SUBJECT_NAME, type=PERSON_TYPE if owner.user_id else "Group")
        requested = {name_key(own.name): own}
        for each in entities:
            key = name_key(each.name)
            if key not in requested or requested[key].type is None:
                requested[key] = each
        found = await self._find_by_keys(transaction, [owner.group_id], list(requested))
        new = {
            key: _new_entity_properties(owner, each, vectors.get(key), now, is_user=key == name_key(own.name))
            for key, each in requested.items()
            if key not in found
        }
        found |= new
        for key, each in requested.items():
            if each.type and each.type != DEFAULT_ENTITY_TYPE and found[key]["type"] == DEFAULT_ENTITY_TYPE:
                rows = await transaction.run(
                    "entities.set_type",
                    group_id=owner.group_id,
                    entity_id=found[key]["uuid"],
                    type=each.type,
                    now=now,
                )
                found[key] = rows[0]["entity"]
        known = {key: entity_ref_from_node(stored) for key, stored in found.items()}
        known[""] = known[name_key(own.name)]
        return ResolvedEntities(known, list(new.values()))

    async def create(
        self,
        transaction: Transaction,
        owner: Owner,
        entity_id: str,
        named: EntityIn,
        vector: list[float] | None,
        now: datetime,
    ) -> EntityRef:
        """Make one entity of an id given, under the user's lock; the caller has seen that its name is free."""
        properties = {**_new_entity_properties(owner, named, vector, now, is_user=False), "uuid": entity_id}
        rows = await transaction.run("entities.create_entities", entities=[properties])
        return entity_ref_from_node(rows[0]["entity"])

    async def add_aliases(
        self, transaction: Transaction, owner: Owner, entity: str, names: Sequence[str], now: datetime
    ) -> list[Row]:
        """Give an entity, told by id or name key, further names, under the user's lock.

        One that is an entity's already is left out. Returns `{entity_id, aliases}` of what is new, or nothing.
        """
        by_key = {name_key(name): name for name in names}
        return await transaction.run(
            "entities.add_aliases",
            group_id=owner.group_id,
            entity=entity,
            names=list(by_key.values()),
            keys=list(by_key),
            now=now,
        )

    async def get_refs(self, transaction: Transaction, owner: Owner, ids: Sequence[str]) -> dict[str, EntityRef]:
        """Return entities by id as memories name them."""
        if not ids:
            return {}
        rows = await transaction.run("entities.fetch_by_ids", group_ids=owner.readable_group_ids, ids=list(ids))
        return {row["entity"]["uuid"]: entity_ref_from_node(row["entity"]) for row in rows}

    async def resolve_entity_ids(self, owner: Owner, name: str) -> list[str]:
        """Return the ids an entity filter means: an id itself, or the entities of that name or alias."""

        async def work(transaction: Transaction) -> list[str]:
            found = await self._find_by_keys(transaction, owner.readable_group_ids, [name_key(name)])
            by_id = await transaction.run("entities.fetch_by_ids", group_ids=owner.readable_group_ids, ids=[name])
            return [row["uuid"] for row in found.values()] + [row["entity"]["uuid"] for row in by_id]

        return await self._graph.read(work)

    async def get(self, owner: Owner, entity_id: str) -> Entity:
        """Return one entity; raise NotFound for one that is not this user's."""
        rows = await self._graph.fetch(
            "entities.get_with_memory_count", group_ids=owner.readable_group_ids, entity_id=entity_id
        )
        if not rows:
            raise NotFound("There is no such entity.")
        return entity_from_node(rows[0]["entity"], rows[0]["memory_count"])

    async def list_page(
        self, owner: Owner, *, text: str | None, type: str | None, after: tuple[str, str] | None, limit: int
    ) -> tuple[list[Entity], tuple[str, str] | None]:
        """Return one page of entities by name and the key to go on from (None at the end)."""
        rows = await self._graph.fetch(
            "entities.list_page",
            group_ids=owner.readable_group_ids,
            text=name_key(text) if text else None,
            type=type,
            after_key=after[0] if after else None,
            after_id=after[1] if after else None,
            limit=limit,
        )
        entities = [entity_from_node(row["entity"], row["memory_count"]) for row in rows]
        if len(rows) < limit:
            return entities, None
        return entities, (rows[-1]["entity"]["name_key"], rows[-1]["entity"]["uuid"])

    async def _find_by_keys(
        self, transaction: Transaction, group_ids: list[str], keys: Sequence[str]
    ) -> dict[str, Row]:
        rows = await transaction.run("entities.find_by_keys", group_ids=group_ids, keys=list(keys))
        found: dict[str, Row] = {}
        for row in rows:
            stored = row["entity"]
            for key in stored["alias_keys"]:
                if key in keys:
                    found.setdefault(key, stored)
        for row in rows:
            if row["entity"]["name_key"] in keys:
                found[row["entity"]["name_key"]] = row["entity"]
        return found


def _new_entity_properties(
    owner: Owner, named: EntityIn, vector: list[float] | None, now: datetime, *, is_user: bool
) -> dict[str, Any]:
    kind = named.type or DEFAULT_ENTITY_TYPE
    return {
        "uuid": str(uuid.uuid4()),
        "group_id": owner.group_id,
        "group_key": group_key(owner.group_id),
        "name": named.name,
        "name_key": name_key(named.name),
        "type": kind,
        "labels": ["Entity", kind],
        "summary": "",
        "aliases": [],
        "alias_keys": [],
        "alias_text": "",
        "mentioned_in": [],
        "attributes": json.dumps({}),
        "is_user": is_user,
        "name_embedding": vector,
        "created_at": now,
        "updated_at": now,
    }
