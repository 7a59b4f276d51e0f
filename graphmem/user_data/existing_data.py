"""What a user has before an import."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from graphmem.neo4j.driver import Row, Transaction
from graphmem.neo4j.schema import RecordLabel
from graphmem.tenants.owners import Owner
from graphmem.user_data.export_document import UserExport
from graphmem.user_data.import_plan import (
    ExistingData,
    ExistingNode,
    FirstVersion,
    replacement_id,
)
from graphmem.user_data.properties import record_identity


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
