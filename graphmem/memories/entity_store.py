"""Entities in the graph: found by name, alias or id, and created once per user and name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from graphmem.memories.entity import (
    DEFAULT_ENTITY_TYPE,
    GROUP_TYPE,
    PERSON_TYPE,
    Entity,
    EntityIn,
    EntityRef,
    SourcedDetails,
    alias_detail,
    entity_from_node,
    entity_ref_from_node,
    new_entity_properties,
    read_detail_sources,
)
from graphmem.memories.names import is_short_form
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.driver_values import Row, pack_vector
from graphmem.runtime.errors import NotFound
from graphmem.runtime.field_types import Vector, deduplicate, name_key
from graphmem.runtime.paging import take_page
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import Reader, scope_of
from graphmem.tenants.tenant_settings import find_trust_order
from graphmem.tenants.trust import STATED_KINDS, Effect, SourceKind, TrustOrder
from graphmem.text.normalising import FOLDINGS, fold_accents


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
        kinds: Mapping[str, SourceKind],
    ) -> ResolvedEntities:
        """Return the named entities, and the owner's own entity under the key "".

        A member of a space is a person of that name, whichever source names the member first. `kinds` are the most
        trusted sources that use the names, by name key. A source does not follow an alias from a less trusted one: the
        name becomes an entity of its own, and the alias ends. `SourcedDetails` decides on the details given for known
        entities. A new name with a known entity's name among its aliases renames that entity if the source may rename
        it, or becomes an alias if it is a part of the known name.

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
        aliases = {name_key(alias) for entity in requested.values() for alias in entity.aliases}
        keys = [*requested, *sorted(aliases - requested.keys())]
        rows = await transaction.run("entities.find_by_keys", group_ids=[owner.group_id], keys=keys)
        nodes = [row["entity"] for row in rows]
        kinds = {key: kinds.get(key, "user") for key in requested}
        order = await find_trust_order(transaction, owner.tenant, _sources_of(nodes, kinds.values()))
        # Every source uses the name for the user's own entity, and is still the source of its details about the user.
        using = kinds | {own_key: order.most_trusted(STATED_KINDS)}
        stored = _match_names(nodes, using, order)
        members = await self._find_members(transaction, owner) if requested.keys() - stored.keys() else {}
        for key in members.keys() & requested.keys() - stored.keys():
            requested[key] = requested[key].model_copy(update={"name": members[key], "type": PERSON_TYPE})
        details = {node["uuid"]: SourcedDetails(node, order) for node in nodes}
        unknown = {key: entity for key, entity in requested.items() if key not in stored and key not in members}
        former = [node for node in nodes if not node["is_user"] and node["name_key"] not in members]
        renamed = {
            key: node
            for key, node in _match_former_names(unknown, former).items()
            if details[node["uuid"]].may_rename(using[key])
        }
        stored |= renamed
        new = {
            key: new_entity_properties(
                owner, entity, pack_vector(vectors.get(key)), now, is_user=key == own_key, source_kind=using[key]
            )
            for key, entity in requested.items()
            if key not in stored
        }
        for node in nodes:
            details[node["uuid"]].drop_aliases(new.keys())
        for key, node in stored.items():
            entity, given = requested[key], details[node["uuid"]]
            if node["name_key"] == key:
                given.give_name(entity.name, using[key])
            given.give_type(entity.type or DEFAULT_ENTITY_TYPE, kinds[key])
            given.give_attributes(entity.attributes, kinds[key])
        names = {
            node["uuid"]: requested[key].name
            for key, node in renamed.items()
            if not is_short_form(requested[key].name, node["name"])
        }
        for key, node in renamed.items():
            if requested[key].name != names.get(node["uuid"]):
                details[node["uuid"]].add_aliases({key: requested[key].name}, using[key])
        await self._write_details(transaction, owner, details.values(), now)
        for entity_id, name in names.items():
            key = name_key(name)
            sources = details[entity_id].rename(using[key])
            await self.rename(transaction, owner, entity_id, name, sources, vectors.get(key), now)
        stored = {key: details[node["uuid"]].node for key, node in stored.items()} | new
        refs = {
            key: entity_ref_from_node({**node, "name": names.get(node["uuid"], node["name"])})
            for key, node in stored.items()
        }
        return ResolvedEntities({**refs, "": refs[own_key]}, list(new.values()))

    async def rename(
        self,
        transaction: Transaction,
        owner: Owner,
        entity_id: str,
        name: str,
        sources: list[str] | None,
        vector: Vector | None,
        now: datetime,
    ) -> None:
        """Give an entity a name that no other entity has; `sources` are those of its details from then on."""
        await transaction.run(
            "entities.rename_entity",
            group_id=owner.group_id,
            entity_id=entity_id,
            canonical_name=name,
            name_key=name_key(name),
            detail_sources=sources,
            vector=vector,
            now=now,
        )

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
        kind: SourceKind = "user",
        shared: bool = False,
        speaker: str | None = None,
    ) -> list[Row]:
        """Add a source's names to an entity, given by id or name key; the caller has locked the user.

        Names that any entity has are left out; with `shared`, only those that this entity has, unless the source is
        trusted less than the user. Less trusted sources cannot add names of the user. In a space, only the `speaker`
        can add the speaker's own names: other members get none, and nobody else gets a member's name. Returns
        `[{entity_id, aliases}]` with the names added, or [].
        """
        names_by_key = {name_key(name): name for name in names}
        others = await self._find_other_members(transaction, owner, speaker) if names_by_key else set()
        names_by_key = {key: name for key, name in names_by_key.items() if key not in others}
        details = await self.find_details(transaction, owner, entity, kind)
        if details is None or not names_by_key or details.is_of_another(kind, others):
            return []
        node = details.node
        if not (shared and kind == "user"):
            taken = await transaction.run("entities.find_by_keys", group_ids=[owner.group_id], keys=list(names_by_key))
            named = [row["entity"] for row in taken if row["entity"]["uuid"] != node["uuid"]]
            for key in (key for other in named for key in (other["name_key"], *(other["alias_keys"] or ()))):
                names_by_key.pop(key, None)
        added = details.add_aliases(names_by_key, kind)
        await self._write_details(transaction, owner, [details], now)
        return [{"entity_id": node["uuid"], "aliases": added}] if added else []

    async def find_details(
        self, transaction: Transaction, owner: Owner, entity: str, kind: SourceKind
    ) -> SourcedDetails | None:
        """Return an entity's details, by id or name key, for a source to change; None if the entity is unknown."""
        rows = await transaction.run("entities.find_named", group_id=owner.group_id, entity=entity)
        nodes = [row["entity"] for row in rows]
        order = await find_trust_order(transaction, owner.tenant, _sources_of(nodes, [kind]))
        return SourcedDetails(nodes[0], order) if nodes else None

    async def describe(
        self,
        transaction: Transaction,
        owner: Owner,
        described: Sequence[tuple[str, str, Mapping[str, Any]]],
        kind: SourceKind,
        now: datetime,
        speaker: str | None = None,
    ) -> list[bool]:
        """Set the summaries and attributes from a source, by name key; the caller has locked the user.

        A less trusted source cannot describe the user, and a member of a space can only be described by that member,
        the `speaker`. Returns, for each entity, whether it is stored and now has all of them.
        """
        keys = [key for key, _, _ in described]
        rows = await transaction.run("entities.find_by_keys", group_ids=[owner.group_id], keys=keys)
        nodes = {row["entity"]["name_key"]: row["entity"] for row in rows}
        order = await find_trust_order(transaction, owner.tenant, _sources_of(nodes.values(), [kind]))
        others = await self._find_other_members(transaction, owner, speaker)
        details = {key: SourcedDetails(node, order) for key, node in nodes.items()}
        details = {key: given for key, given in details.items() if not given.is_of_another(kind, others)}
        done = []
        for key, summary, attributes in described:
            given = details.get(key)
            has_summary = given is not None and given.give_summary(summary, kind)
            has_attributes = given is not None and given.give_attributes(attributes, kind)
            done.append(has_summary and has_attributes)
        await self._write_details(transaction, owner, details.values(), now)
        return done

    async def erase_unreferenced(self, transaction: Transaction, owner: Owner, ids: Iterable[str]) -> list[str]:
        """Erase the given entities that no memory refers to any more, except the user's own; return their ids."""
        rows = await transaction.run("entities.erase_unreferenced", group_id=owner.group_id, ids=sorted(set(ids)))
        return [row["id"] for row in rows]

    async def get_refs(self, transaction: Transaction, reader: Reader, ids: Sequence[str]) -> dict[str, EntityRef]:
        """Return references to entities by id; unknown ids are left out."""
        if not ids:
            return {}
        rows = await transaction.run("entities.fetch_by_ids", group_ids=scope_of(reader).group_ids, ids=list(ids))
        return {row["entity"]["uuid"]: entity_ref_from_node(row["entity"]) for row in rows}

    async def resolve_entity_ids(self, reader: Reader, entity: str) -> list[str]:
        """Return the ids that match an entity filter: the id itself, or every entity with that name or alias.

        If no entity has exactly that name, accents are ignored.
        """

        async def work(transaction: Transaction) -> list[str]:
            group_ids = scope_of(reader).group_ids
            named = await transaction.run("entities.find_by_keys", group_ids=group_ids, keys=[name_key(entity)])
            by_id = await transaction.run("entities.fetch_by_ids", group_ids=group_ids, ids=[entity])
            if not (named or by_id):
                folded = fold_accents(name_key(entity))
                named = await transaction.run(
                    "entities.find_folded", group_ids=group_ids, folded=folded, foldings=FOLDINGS
                )
            return deduplicate(row["entity"]["uuid"] for row in [*named, *by_id])

        return await self._graph.read(work)

    async def get(self, reader: Reader, entity_id: str) -> Entity:
        """Return one entity; raise NotFound if the reader cannot read it."""
        rows = await self._graph.fetch(
            "entities.get_with_memory_count", group_ids=scope_of(reader).group_ids, entity_id=entity_id
        )
        if not rows:
            raise NotFound("There is no such entity.")
        return entity_from_node(rows[0]["entity"], rows[0]["memory_count"])

    async def list_page(
        self, reader: Reader, *, text: str | None, type: str | None, after: tuple[str, str] | None, limit: int
    ) -> tuple[list[Entity], tuple[str, str] | None]:
        """Return one page of entities by name, and the position to continue from (None at the end)."""
        rows = await self._graph.fetch(
            "entities.list_page",
            group_ids=scope_of(reader).group_ids,
            folded=fold_accents(name_key(text)) if text else None,
            foldings=FOLDINGS,
            type=type,
            after_key=after[0] if after else None,
            after_id=after[1] if after else None,
            limit=limit + 1,
        )
        kept, last = take_page(rows, limit)
        entities = [entity_from_node(row["entity"], row["memory_count"]) for row in kept]
        return entities, None if last is None else (last["entity"]["name_key"], last["entity"]["uuid"])

    async def _write_details(
        self, transaction: Transaction, owner: Owner, details: Iterable[SourcedDetails], now: datetime
    ) -> None:
        if rows := [row for given in details if (row := given.to_row(now))]:
            await transaction.run("snapshots.set_entities", group_id=owner.group_id, rows=rows)

    async def _find_other_members(self, transaction: Transaction, owner: Owner, speaker: str | None) -> set[str]:
        """Return the name keys of a space's members except the speaker; empty for a user."""
        members = await self._find_members(transaction, owner)
        return members.keys() - {name_key(speaker or "")}

    async def _find_members(self, transaction: Transaction, owner: Owner) -> dict[str, str]:
        """Return the user ids of a space's members, by name key; empty for a user."""
        if not owner.is_space:
            return {}
        rows = await transaction.run("spaces.list_spaces", group_ids=[owner.group_id])
        return {name_key(user): user for row in rows for user, _, _ in row["members"] if user}


def _sources_of(nodes: Iterable[Row], kinds: Iterable[SourceKind]) -> set[SourceKind]:
    """Return the sources to compare when sources of these kinds set details of entities."""
    given_by = {kind for node in nodes for kind in read_detail_sources(node).values()}
    return {"user", *given_by, *kinds}


def _match_former_names(unknown: Mapping[str, EntityIn], nodes: Sequence[Row]) -> dict[str, Row]:
    """Return the entities whose name is an alias of a new name, by the key of the new name.

    An entity of another known type does not match, nor do several entities.
    """
    by_name = {node["name_key"]: node for node in nodes}
    found: dict[str, Row] = {}
    for key, entity in unknown.items():
        former = {alias: by_name[alias] for alias in map(name_key, entity.aliases) if alias in by_name}
        if len(former) == 1 and all(_may_be_of_type(node, entity.type) for node in former.values()):
            found[key] = next(iter(former.values()))
    return found


def _may_be_of_type(node: Row, entity_type: str | None) -> bool:
    return DEFAULT_ENTITY_TYPE in (node["type"], entity_type or DEFAULT_ENTITY_TYPE) or node["type"] == entity_type


def _match_names(nodes: Sequence[Row], kinds: Mapping[str, SourceKind], order: TrustOrder) -> dict[str, Row]:
    """Return the entities that names mean to the sources using them, by key.

    A name takes precedence over an alias, and the user's own entity over others that share an alias. A more trusted
    source ignores an alias given by a less trusted one.
    """
    by_alias: dict[str, Row] = {}
    for node in sorted(nodes, key=lambda node: not node["is_user"]):
        sources = read_detail_sources(node)
        for key in node["alias_keys"] or ():
            given_by = sources.get(alias_detail(key), "user")
            if key in kinds and order.permits(Effect.REDIRECT, given_by, kinds[key]):
                by_alias.setdefault(key, node)
    return by_alias | {node["name_key"]: node for node in nodes if node["name_key"] in kinds}
