"""Writing an export into the graph of one user, in one transaction, beside what the user has."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from neo4j.exceptions import ClientError

from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact import Fact
from graphmem.memories.fact_mapping import fact_from_row, fact_to_properties
from graphmem.memories.fact_store import FactStore
from graphmem.memories.saving import FactLoader
from graphmem.memories.versioning import describe_rival, find_rival
from graphmem.neo4j.driver import Graph, Row, Transaction, to_json
from graphmem.neo4j.schema import LinkType, RecordLabel
from graphmem.runtime.errors import Conflict, InvalidInput
from graphmem.runtime.field_types import deduplicate, name_key
from graphmem.runtime.progress import ProgressCounter
from graphmem.tenants.owners import Owner
from graphmem.user_data.export_document import MAX_REPORTED_PROBLEMS, UserExport, find_self_entity, refuse_problems
from graphmem.user_data.export_entries import (
    ExportedEntity,
    ExportedEpisode,
    ExportedLink,
    ExportedRecord,
    ExportedSession,
    ExportedVersion,
    record_identity,
)
from graphmem.user_data.foreign_formats import NodeDetails
from graphmem.user_data.import_plan import (
    ExistingData,
    ExistingNode,
    FirstVersion,
    ImportPlan,
    find_future_times,
    find_misfits,
    plan_import,
    replacement_id,
)
from graphmem.user_data.models import ImportResult


async def load_existing(transaction: Transaction, owner: Owner, export: UserExport) -> ExistingData:
    """Return what a user has that an import must find: names, identities, memories, and ids in use."""
    group = {"group_id": owner.group_id}
    entities = await transaction.run("import.list_entity_names", **group)
    records = await transaction.run("import.list_records", **group)
    memories = await transaction.run("import.list_memories", **group)
    by_id = {row["uuid"]: ExistingNode(row["element_id"], row["uuid"]) for row in entities}
    return ExistingData(
        entities={key: by_id[entity_id] for key, entity_id in _entity_ids_by_name(entities).items()},
        entities_by_id=by_id,
        self_entity=next((by_id[row["uuid"]] for row in entities if row["is_user"]), None),
        records={
            record_identity(RecordLabel(row["label"]), row["properties"]): ExistingNode(
                row["element_id"], row["properties"]["uuid"]
            )
            for row in records
        },
        messages={
            (row["properties"]["session_id"], row["properties"]["position"]): row["properties"]["message_id"]
            for row in records
            if row["properties"]["position"] is not None
        },
        memory_ids={row["memory_id"] for row in memories},
        current_statements={row["active_hash"]: row["memory_id"] for row in memories if row["active_hash"]},
        first_versions={
            FirstVersion(row["content_hash"], row["subject_id"], row["object_id"], row["created_at"]): row["memory_id"]
            for row in memories
            if row["version"] == 1
        },
        taken_ids=await _find_taken_ids(transaction, owner, export),
    )


async def _find_taken_ids(transaction: Transaction, owner: Owner, export: UserExport) -> set[str]:
    """Return the ids of the export that are in use, and those of their replacements that are."""
    facts = [version.properties for version in export.memories]
    nodes = [getattr(node.properties, "uuid", None) for node in (*export.entities, *export.records)]
    ids = {key for key in nodes if key} | {fact.uuid for fact in facts}
    memory_ids = {fact.memory_id for fact in facts}
    shared_group = owner.tenant_global.group_id

    async def find(ids: Iterable[str], memory_ids: Iterable[str]) -> set[str]:
        rows = await transaction.run(
            "import.find_taken_ids", ids=list(ids), memory_ids=list(memory_ids), shared_group=shared_group
        )
        return {row["id"] for row in rows}

    taken = await find(ids, memory_ids)
    if not taken:
        return taken
    replaced = {fact.memory_id for fact in facts if {fact.uuid, fact.memory_id} & taken}
    return taken | await find(
        [replacement_id(owner, key) for key in ids & taken], [replacement_id(owner, key) for key in replaced]
    )


def _entity_ids_by_name(entities: Sequence[Row]) -> dict[str, str]:
    """Return the ids of entities by name key, and by the alias keys that only one of them has, the user's own left out.

    An alias may be the name of an entity that was merged into this one since an earlier import.
    """
    owners: dict[str, set[str]] = defaultdict(set)
    for row in entities:
        for key in row["alias_keys"]:
            owners[key].add(row["uuid"])
    own = {row["uuid"] for row in entities if row["is_user"]}
    by_alias = {key: next(iter(ids)) for key, ids in owners.items() if len(ids) == 1 and not ids & own}
    return by_alias | {row["name_key"]: row["uuid"] for row in entities}


BATCH_SIZE = 500
"""Nodes or relationships written in one query."""

_OWNED_LINKS = frozenset({LinkType.HAS_ARCHIVE, LinkType.HAS_EPISODE, LinkType.MENTIONS, LinkType.NEXT_EPISODE})
"""Types of relationships that carry the owner's `group_id`."""

ExportedNode = ExportedEntity | ExportedRecord
Item = TypeVar("Item")


class ImportStore:
    """Imports exports into the graph."""

    def __init__(self, graph: Graph, facts: FactStore) -> None:
        self._graph = graph
        self._facts = facts
        self._entities = EntityStore(graph)

    async def import_export(
        self, owner: Owner, export: UserExport, *, vectors_remade: bool, progress: ProgressCounter
    ) -> ImportResult:
        """Write an export completely or not at all; what the user has already stays unchanged.

        Raises InvalidInput when a known time is in the future or Neo4j refuses a value, and Conflict when a value of a
        single-valued predicate would be valid together with one that the user has.
        """

        async def work(transaction: Transaction) -> ImportResult:
            now = await self._facts.lock_or_create_user(transaction, owner)
            refuse_problems("The import has known times in the future.", find_future_times(export, now))
            existing = await load_existing(transaction, owner, export)
            refuse_problems("The import does not fit what the user has.", find_misfits(export, existing))
            plan = plan_import(owner, export, existing)
            await self._refuse_contradictions(transaction, owner, export, plan, now)
            known = [node for node in (*export.entities, *export.records) if not plan.is_new_node(node)]
            progress.add(len(known) + sum(not plan.is_new_version(version) for version in export.memories))
            nodes = await self._create_nodes(transaction, owner, export, plan, progress)
            versions = await self._create_versions(transaction, owner, export, plan, progress, now)
            await self._create_links(transaction, owner, export, nodes, progress)
            await self._renew_derived(transaction, owner, export, plan)
            await self._name_self_entity(transaction, owner, export, plan, now)
            await transaction.run("import.set_user", group_id=owner.group_id, properties=export.user.to_graph())
            latest = max([now, *(version.properties.created_at for version in versions)])
            await transaction.run("facts.set_last_write_time", group_id=owner.group_id, at=latest)
            new = [node for node in (*export.entities, *export.records) if plan.is_new_node(node)]
            return ImportResult(
                imported={**Counter(map(_node_kind, new)), "versions": len(versions)},
                unchanged={**Counter(map(_node_kind, known)), "versions": len(export.memories) - len(versions)},
                ids={old: new for old, new in plan.ids.items() if old != new},
                vectors_remade=vectors_remade,
            )

        try:
            return await self._graph.write(work)
        except ClientError as error:
            raise InvalidInput("The import has a property that Neo4j cannot store.") from error

    async def set_entity_details(self, owner: Owner, details: Sequence[NodeDetails]) -> None:
        """Set the summaries and the attributes of entities that have none; unknown entities are left out."""
        rows = [
            {
                "name_key": name_key(entity.name),
                "summary": entity.summary.strip(),
                "attributes": to_json(entity.attributes),
            }
            for entity in details
        ]

        async def work(transaction: Transaction) -> None:
            now = await self._facts.lock_user(transaction, owner)
            for part in _split_batches(rows):
                await transaction.run("import.set_entity_details", group_id=owner.group_id, rows=part, now=now)

        if rows:
            await self._graph.write(work)

    async def _refuse_contradictions(
        self, transaction: Transaction, owner: Owner, export: UserExport, plan: ImportPlan, now: datetime
    ) -> None:
        """Raise Conflict for new facts that cannot be valid together with others, of the user or of the import."""
        new = {
            index: _imported_fact(owner, version, plan.ids).with_active_hash(now)
            for index, version in enumerate(export.memories)
            if plan.is_new_version(version)
        }
        pairs = [(fact.subject_id, fact.predicate) for fact in new.values() if fact.single_valued]
        values: dict[tuple[str, str], list[Fact]] = defaultdict(list)
        for fact in (await FactLoader(transaction, owner).fetch(pairs=pairs)).values():
            values[fact.subject_id, fact.predicate].append(fact)
        current: dict[tuple[str, str], list[Fact]] = defaultdict(list)
        for fact in new.values():
            if fact.active_hash:
                current[fact.subject_id, fact.predicate].append(fact)
        statements = Counter(fact.active_hash for fact in new.values())
        errors: list[dict[str, object]] = []
        for index, fact in new.items():
            pair = (fact.subject_id, fact.predicate)
            rivals = [*values[pair], *current[pair]] if fact.active_hash else values[pair]
            if fact.single_valued and (rival := find_rival(fact, rivals)):
                errors.append({"loc": ["memories", index], "msg": f"would be {describe_rival(fact, rival)}"})
            elif fact.active_hash and statements[fact.active_hash] > 1:
                errors.append({"loc": ["memories", index], "msg": "states the same as another memory of the import"})
        if errors:
            raise Conflict(
                f"{len(errors)} statements contradict what the user has, or one another: see the list of errors, or "
                "import into another user.",
                errors=errors[:MAX_REPORTED_PROBLEMS],
            )

    async def _create_nodes(
        self, transaction: Transaction, owner: Owner, export: UserExport, plan: ImportPlan, progress: ProgressCounter
    ) -> dict[str, str]:
        """Create the nodes that are new; return the element ids of all nodes of the export by their keys."""
        element_ids = dict(plan.known_nodes)
        new = [node for node in (*export.entities, *export.records) if plan.is_new_node(node)]
        for part in _split_batches([_node_row(owner, node, plan.ids) for node in new]):
            created = await transaction.run("import.create_nodes", group_id=owner.group_id, rows=part)
            element_ids |= {row["key"]: row["element_id"] for row in created}
            progress.add(len(part))
        return element_ids

    async def _create_versions(
        self,
        transaction: Transaction,
        owner: Owner,
        export: UserExport,
        plan: ImportPlan,
        progress: ProgressCounter,
        now: datetime,
    ) -> list[ExportedVersion]:
        """Create the versions that are new, with the references of their memories, and return them."""
        new = [version for version in export.memories if plan.is_new_version(version)]
        rows = [_version_row(owner, version, plan.ids, now) for version in new]
        for part in _split_batches(rows):
            await transaction.run("import.create_versions", group_id=owner.group_id, rows=part)
            progress.add(len(part))
        referring = deduplicate(row["properties"]["memory_id"] for row in rows if _mentions_others(row))
        for ids in _split_batches(referring):
            await transaction.run("facts.rebuild_references", group_id=owner.group_id, referring=ids)
        return new

    async def _renew_derived(
        self, transaction: Transaction, owner: Owner, export: UserExport, plan: ImportPlan
    ) -> None:
        """Count the messages of the sessions again, and keep of new messages the versions that were created."""
        sessions = [node for node in export.records if isinstance(node, ExportedSession)]
        ids = [session.properties.session_id for session in sessions]
        for part in _split_batches(ids):
            await transaction.run("import.renew_sessions", group_id=owner.group_id, session_ids=part)
        new = [node for node in export.records if isinstance(node, ExportedEpisode) and plan.is_new_node(node)]
        for messages in _split_batches([plan.ids.get(node.properties.uuid, node.properties.uuid) for node in new]):
            await transaction.run("import.renew_entity_edges", ids=messages)

    async def _name_self_entity(
        self, transaction: Transaction, owner: Owner, export: UserExport, plan: ImportPlan, now: datetime
    ) -> None:
        """Give the user's own entity the names that it has in the export, if it was there before the import."""
        entity = find_self_entity(export)
        if entity is None or plan.is_new_node(entity):
            return
        names = [entity.properties.name, *entity.properties.aliases]
        own_id = plan.ids.get(entity.properties.uuid, entity.properties.uuid)
        await self._entities.add_aliases(transaction, owner, own_id, names, now)

    async def _create_links(
        self,
        transaction: Transaction,
        owner: Owner,
        export: UserExport,
        element_ids: Mapping[str, str],
        progress: ProgressCounter,
    ) -> None:
        rows = [_link_row(owner, link, element_ids) for link in export.links]
        for part in _split_batches(rows):
            await transaction.run("import.create_links", rows=part)
            progress.add(len(part))


def _split_batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), BATCH_SIZE):
        yield items[start : start + BATCH_SIZE]


def _node_kind(node: ExportedNode) -> str:
    return "Entity" if isinstance(node, ExportedEntity) else node.labels[0]


def _node_row(owner: Owner, node: ExportedNode, ids: Mapping[str, str]) -> Row:
    properties = node.properties.with_ids(ids).to_graph() | {"group_id": owner.group_id}
    if isinstance(node, ExportedEntity | ExportedEpisode):
        properties["group_key"] = owner.group_key
    return {"key": node.key, "labels": list(node.labels), "properties": properties}


def _version_row(owner: Owner, version: ExportedVersion, ids: Mapping[str, str], now: datetime) -> Row:
    fact = _imported_fact(owner, version, ids).with_active_hash(now)
    # The stored properties also have the marks of maintenance and consolidation, for which a fact has no fields.
    properties = _stored_properties(owner, version, ids) | fact_to_properties(fact)
    return {
        "subject_id": fact.subject_id,
        "object_id": fact.object_id or fact.subject_id,
        "properties": properties | {"fact_embedding": version.vector},
    }


def _imported_fact(owner: Owner, version: ExportedVersion, ids: Mapping[str, str]) -> Fact:
    subject_id = ids.get(version.subject_id, version.subject_id)
    object_id = ids.get(version.object_id, version.object_id)
    return fact_from_row(
        {"fact": _stored_properties(owner, version, ids), "subject_id": subject_id, "object_id": object_id}
    )


def _stored_properties(owner: Owner, version: ExportedVersion, ids: Mapping[str, str]) -> Row:
    return version.properties.with_ids(ids).to_graph() | {"group_id": owner.group_id}


def _mentions_others(version: Row) -> bool:
    """Return whether a version mentions entities beside its subject and object."""
    return bool({*version["properties"]["entity_ids"]} - {version["subject_id"], version["object_id"]})


def _link_row(owner: Owner, link: ExportedLink, element_ids: Mapping[str, str]) -> Row:
    properties = link.properties.to_graph()
    if link.type in _OWNED_LINKS:
        properties["group_id"] = owner.group_id
    return {
        "type": link.type.value,
        "start": element_ids[link.start],
        "end": element_ids[link.end],
        "properties": properties,
    }
