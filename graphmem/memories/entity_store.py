"""Entities in the graph: found by name, alias or id, and created once per user and name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from graphmem.memories.entity import DEFAULT_ENTITY_TYPE, GROUP_TYPE, PERSON_TYPE, Entity, EntityIn, EntityRef
from graphmem.memories.entity_mapping import entity_from_node, entity_ref_from_node, new_entity_properties
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.runtime.errors import NotFound
from graphmem.runtime.field_types import Vector, deduplicate, name_key, to_json
from graphmem.runtime.paging import take_page
from graphmem.tenants.owners import Owner
from graphmem.tenants.scopes import Reader, scope_of


@dataclass(frozen=True, slots=True)
class ResolvedEntities:
    """Entities by name key, and the properties of those that do not exist yet."""

    refs: dict[str, EntityRef]
    new_entities: list[Row]


class EntityStore:
    """The entities of all users."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def resolve_entities(
        self,
        transaction: Transaction,
        owner: Owner,
        entities: Iterable[EntityIn],
        vectors: Mapping[str, Vector],
        now: datetime,
    ) -> ResolvedEntities:
        """Return the entities that are named, and the owner's own entity under the key "".

        The caller has locked the user, so that concurrent writers create an entity once, and creates the new ones.
        `vectors` holds the vectors of names by name key.
        """
        own = EntityIn(name=owner.entity_name, type=PERSON_TYPE if owner.user_id else GROUP_TYPE)
        own_key = name_key(own.name)
        requested = {own_key: own}
        for entity in entities:
            key = name_key(entity.name)
            if key not in requested or requested[key].type is None:
                requested[key] = entity
            elif entity.attributes:
                attributes = {**requested[key].attributes, **entity.attributes}
                requested[key] = requested[key].model_copy(update={"attributes": attributes})
        stored = await self._find_by_keys(transaction, [owner.group_id], list(requested))
        new = {
            key: new_entity_properties(owner, entity, vectors.get(key), now, is_user=key == own_key)
            for key, entity in requested.items()
            if key not in stored
        }
        stored |= new
        for key, entity in requested.items():
            if entity.type and entity.type != DEFAULT_ENTITY_TYPE and stored[key]["type"] == DEFAULT_ENTITY_TYPE:
                stored[key] = await self._set_type(transaction, owner, stored[key]["uuid"], entity.type, now)
            if entity.attributes and key not in new:
                await self._set_attributes(transaction, owner, stored[key], entity.attributes, now)
        refs = {key: entity_ref_from_node(node) for key, node in stored.items()}
        return ResolvedEntities({**refs, "": refs[own_key]}, list(new.values()))

    async def create(
        self,
        transaction: Transaction,
        owner: Owner,
        entity_id: str,
        entity: EntityIn,
        vector: Vector | None,
        now: datetime,
    ) -> EntityRef:
        """Create an entity with a given id; the caller has locked the user and checked that the name is free."""
        properties = new_entity_properties(owner, entity, vector, now, entity_id=entity_id)
        rows = await transaction.run("entities.create_entities", group_id=owner.group_id, entities=[properties])
        return entity_ref_from_node(rows[0]["entity"])

    async def add_aliases(
        self,
        transaction: Transaction,
        owner: Owner,
        entity: str,
        names: Sequence[str],
        now: datetime,
        *,
        shared: bool = False,
    ) -> list[Row]:
        """Add names to an entity given by id or name key; the caller has locked the user.

        A name that an entity has already is left out: with `shared`, only one that this entity has. Returns
        `[{entity_id, aliases}]` with the names added, or [].
        """
        names_by_key = {name_key(name): name for name in names}
        return await transaction.run(
            "entities.add_aliases",
            group_id=owner.group_id,
            entity=entity,
            names=list(names_by_key.values()),
            keys=list(names_by_key),
            shared=shared,
            now=now,
        )

    async def erase_unreferenced(self, transaction: Transaction, owner: Owner, ids: Iterable[str]) -> list[str]:
        """Erase those of some entities that no memory refers to any more; return their ids. The user's own stays."""
        rows = await transaction.run("entities.erase_unreferenced", group_id=owner.group_id, ids=sorted(set(ids)))
        return [row["id"] for row in rows]

    async def get_refs(self, transaction: Transaction, reader: Reader, ids: Sequence[str]) -> dict[str, EntityRef]:
        """Return entities by id, as memories refer to them; unknown ids are left out."""
        if not ids:
            return {}
        rows = await transaction.run("entities.fetch_by_ids", group_ids=scope_of(reader).group_ids, ids=list(ids))
        return {row["entity"]["uuid"]: entity_ref_from_node(row["entity"]) for row in rows}

    async def resolve_entity_ids(self, reader: Reader, entity: str) -> list[str]:
        """Return the ids that an entity filter means: an id itself, or every entity of that name or alias."""

        async def work(transaction: Transaction) -> list[str]:
            group_ids = scope_of(reader).group_ids
            named = await transaction.run("entities.find_by_keys", group_ids=group_ids, keys=[name_key(entity)])
            by_id = await transaction.run("entities.fetch_by_ids", group_ids=group_ids, ids=[entity])
            return deduplicate(row["entity"]["uuid"] for row in [*named, *by_id])

        return await self._graph.read(work)

    async def get(self, reader: Reader, entity_id: str) -> Entity:
        """Return one entity; raise NotFound for one that the reader does not read."""
        rows = await self._graph.fetch(
            "entities.get_with_memory_count", group_ids=scope_of(reader).group_ids, entity_id=entity_id
        )
        if not rows:
            raise NotFound("There is no such entity.")
        return entity_from_node(rows[0]["entity"], rows[0]["memory_count"])

    async def list_page(
        self, reader: Reader, *, text: str | None, type: str | None, after: tuple[str, str] | None, limit: int
    ) -> tuple[list[Entity], tuple[str, str] | None]:
        """Return one page of entities by name and the position to continue from (None at the end)."""
        rows = await self._graph.fetch(
            "entities.list_page",
            group_ids=scope_of(reader).group_ids,
            text=name_key(text) if text else None,
            type=type,
            after_key=after[0] if after else None,
            after_id=after[1] if after else None,
            limit=limit + 1,
        )
        kept, last = take_page(rows, limit)
        entities = [entity_from_node(row["entity"], row["memory_count"]) for row in kept]
        return entities, None if last is None else (last["entity"]["name_key"], last["entity"]["uuid"])

    async def _set_type(
        self, transaction: Transaction, owner: Owner, entity_id: str, entity_type: str, now: datetime
    ) -> Row:
        rows = await transaction.run(
            "entities.set_type", group_id=owner.group_id, entity_id=entity_id, type=entity_type, now=now
        )
        node: Row = rows[0]["entity"]
        return node

    async def _set_attributes(
        self, transaction: Transaction, owner: Owner, stored: Row, attributes: Mapping[str, Any], now: datetime
    ) -> None:
        merged = {**json.loads(stored.get("attributes") or "{}"), **attributes}
        await transaction.run(
            "entities.set_attributes",
            group_id=owner.group_id,
            entity_id=stored["uuid"],
            attributes=to_json(merged),
            now=now,
        )

    async def _find_by_keys(
        self, transaction: Transaction, group_ids: list[str], keys: Sequence[str]
    ) -> dict[str, Row]:
        """Return the entities that have the keys, by key; a name takes precedence over an alias."""
        rows = await transaction.run("entities.find_by_keys", group_ids=group_ids, keys=list(keys))
        nodes = [row["entity"] for row in rows]
        by_alias: dict[str, Row] = {}
        for node in nodes:
            for key in node["alias_keys"] or ():
                if key in keys:
                    by_alias.setdefault(key, node)
        return by_alias | {node["name_key"]: node for node in nodes if node["name_key"] in keys}
