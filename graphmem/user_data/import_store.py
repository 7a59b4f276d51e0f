"""Writing an export into the graph of one user, in one transaction, beside what the user has."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from datetime import datetime
from functools import partial
from itertools import zip_longest
from typing import TypeVar

from neo4j.exceptions import ClientError, ConstraintError

from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact import Fact
from graphmem.memories.fact_store import FactStore
from graphmem.memories.saving import FactLoader
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.driver_values import Row, to_json
from graphmem.neo4j.schema import RecordLabel
from graphmem.runtime.errors import Conflict, InvalidInput
from graphmem.runtime.field_types import deduplicate, name_key
from graphmem.runtime.progress import ProgressCounter
from graphmem.tenants.owners import Owner
from graphmem.user_data.export_document import EmbeddingInfo, UserExport, find_self_entity, refuse_problems
from graphmem.user_data.export_entries import (
    ExportedEntity,
    ExportedEpisode,
    ExportedLink,
    ExportedSession,
    ExportedVersion,
    ExportEntry,
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
from graphmem.user_data.import_rows import (
    ExportedNode,
    NewFacts,
    link_row,
    mentions_others,
    node_row,
    refuse_contradictions,
    version_row,
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
        found: set[str] = set()
        for part, memory_part in zip_longest(_split_batches(list(ids)), _split_batches(list(memory_ids)), fillvalue=()):
            rows = await transaction.run(
                "import.find_taken_ids", ids=list(part), memory_ids=list(memory_part), shared_group=shared_group
            )
            found |= {row["id"] for row in rows}
        return found

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


BATCH_SIZE = 1_000
"""Nodes or relationships written in one query."""

Item = TypeVar("Item")


class ImportStore:
    """Imports exports into the graph."""

    def __init__(self, graph: Graph, facts: FactStore) -> None:
        self._graph = graph
        self._facts = facts
        self._entities = EntityStore(graph)

    async def find_embedding(self) -> EmbeddingInfo:
        """Return which model the vectors are of."""
        vectors = await self._graph.vector_state()
        assert vectors is not None, "a graph is prepared before it is used"
        return EmbeddingInfo.of(vectors)

    async def import_export(
        self, owner: Owner, export: UserExport, *, vectors_remade: bool, progress: ProgressCounter
    ) -> ImportResult:
        """Write an export completely or not at all; what the user has already stays unchanged.

        Raises InvalidInput when a known time is in the future or Neo4j refuses a value, and Conflict when a value of a
        single-valued predicate would be valid together with one that the user has.
        """

        async def work(transaction: Transaction) -> ImportResult:
            now = await self._facts.lock_or_create_user(transaction, owner)
            plan = await self._plan(transaction, owner, export, now)
            write = _PlannedWrite(transaction, owner, plan, now)
            progress.add(plan.count_known(export))
            nodes = [*export.entities, *export.records]
            for nodes_part in _split_batches([node for node in nodes if plan.is_new_node(node)]):
                await write.create_nodes(nodes_part)
                progress.add(len(nodes_part))
            for versions in _split_batches([version for version in export.memories if plan.is_new_version(version)]):
                await write.create_versions(versions)
                progress.add(len(versions))
            await write.renew_entity_edges([node for node in nodes if plan.is_new_node(node)])
            for links in _split_batches(export.links):
                await write.create_links(links)
                progress.add(len(links))
            await self._finish(write, export)
            return _result(plan, export, vectors_remade)

        with _translate_refusals():
            return await self._graph.write(work)

    async def import_parts(
        self,
        owner: Owner,
        outline: UserExport,
        read_parts: Callable[[ImportPlan], AsyncGenerator[Sequence[ExportEntry]]],
        *,
        vectors_remade: bool,
        progress: ProgressCounter,
    ) -> ImportResult:
        """Write an export that is too large for one transaction, part by part; what the user has stays unchanged.

        `outline` is the export without texts and vectors. It is checked before anything is written, and `read_parts`
        yields the new entries by the plan that follows from it: those of one section, all versions of a memory in one
        part. After an interruption, the same import goes on where it ended. Raises what `import_export` raises.
        """

        async def plan_all(transaction: Transaction) -> ImportPlan:
            now = await self._facts.lock_or_create_user(transaction, owner)
            return await self._plan(transaction, owner, outline, now)

        async def write_locked(work: Callable[[_PlannedWrite], Awaitable[None]]) -> None:
            async def locked(transaction: Transaction) -> None:
                now = await self._facts.lock_user(transaction, owner)
                await work(_PlannedWrite(transaction, owner, plan, now))

            await self._graph.write(locked)

        with _translate_refusals():
            plan = await self._graph.write(plan_all)
            progress.add(plan.count_known(outline))
            async with aclosing(read_parts(plan)) as parts:
                async for part in parts:
                    await write_locked(partial(_PlannedWrite.create, part=part))
                    progress.add(len(part))
            await write_locked(lambda write: self._finish(write, outline))
        return _result(plan, outline, vectors_remade)

    async def _plan(self, transaction: Transaction, owner: Owner, export: UserExport, now: datetime) -> ImportPlan:
        """Return what an export changes of a user who is locked; raise InvalidInput or Conflict if it cannot be."""
        refuse_problems("The import has known times in the future.", find_future_times(export, now))
        existing = await load_existing(transaction, owner, export)
        refuse_problems("The import does not fit what the user has.", find_misfits(export, existing))
        plan = plan_import(owner, export, existing)
        await self._refuse_contradictions(transaction, owner, export, plan, now)
        return plan

    async def _finish(self, write: _PlannedWrite, export: UserExport) -> None:
        """Count the messages of the sessions again, and write what is of the user."""
        transaction, owner, plan = write.transaction, write.owner, write.plan
        sessions = [node.properties.session_id for node in export.records if isinstance(node, ExportedSession)]
        for part in _split_batches(sessions):
            await transaction.run("import.renew_sessions", group_id=owner.group_id, session_ids=part)
        entity = find_self_entity(export)
        if entity is not None and not plan.is_new_node(entity):
            # The user's own entity was there before: it gets the names that it has in the export.
            names = [entity.properties.name, *entity.properties.aliases]
            own_id = plan.ids.get(entity.properties.uuid, entity.properties.uuid)
            await self._entities.add_aliases(transaction, owner, own_id, names, write.now)
        await transaction.run("import.set_user", group_id=owner.group_id, properties=export.user.to_graph())
        await transaction.run("facts.set_last_write_time", group_id=owner.group_id, at=write.latest)

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
        new = NewFacts.of(owner, export, plan, now)
        stored: dict[tuple[str, str], list[Fact]] = defaultdict(list)
        pairs = [(fact.subject_id, fact.predicate) for fact in new.single_valued.values()]
        for fact in (await FactLoader(transaction, owner).fetch(pairs=pairs)).values():
            stored[fact.subject_id, fact.predicate].append(fact)
        refuse_contradictions(new, stored)


class _PlannedWrite:
    """Writes the new entries of an export in one transaction, at `now`, when the user was locked.

    `latest` is the latest known time that it has written, not before `now`.
    """

    def __init__(self, transaction: Transaction, owner: Owner, plan: ImportPlan, now: datetime) -> None:
        self.transaction = transaction
        self.owner = owner
        self.plan = plan
        self.now = self.latest = now

    async def create(self, part: Sequence[ExportEntry]) -> None:
        """Create new entries of one section, which later writes follow."""
        if links := [entry for entry in part if isinstance(entry, ExportedLink)]:
            await self.create_links(links)
        elif versions := [entry for entry in part if isinstance(entry, ExportedVersion)]:
            await self.create_versions(versions)
        else:
            nodes = [entry for entry in part if not isinstance(entry, ExportedLink | ExportedVersion)]
            await self.create_nodes(nodes)
            await self.renew_entity_edges(nodes)
        await self.transaction.run("facts.set_last_write_time", group_id=self.owner.group_id, at=self.latest)

    async def create_nodes(self, nodes: Sequence[ExportedNode]) -> None:
        """Create nodes, which the plan knows by their element ids from then on."""
        rows = [node_row(self.owner, node, self.plan.ids) for node in nodes]
        created = await self.transaction.run("import.create_nodes", group_id=self.owner.group_id, rows=rows)
        self.plan.element_ids.update((row["key"], row["element_id"]) for row in created)

    async def create_versions(self, versions: Sequence[ExportedVersion]) -> None:
        """Create versions, with the references of their memories."""
        rows = [version_row(self.owner, version, self.plan.ids, self.now) for version in versions]
        await self.transaction.run("import.create_versions", group_id=self.owner.group_id, rows=rows)
        if referring := deduplicate(row["properties"]["memory_id"] for row in rows if mentions_others(row)):
            await self.transaction.run(
                "facts.rebuild_references", group_id=self.owner.group_id, referring=list(referring)
            )
        self.latest = max([self.latest, *(version.properties.created_at for version in versions)])

    async def renew_entity_edges(self, nodes: Sequence[ExportedNode]) -> None:
        """Let the messages among new nodes list only those versions of memories that exist."""
        messages = [node.properties.uuid for node in nodes if isinstance(node, ExportedEpisode)]
        for part in _split_batches([self.plan.ids.get(uuid, uuid) for uuid in messages]):
            await self.transaction.run("import.renew_entity_edges", ids=part)

    async def create_links(self, links: Sequence[ExportedLink]) -> None:
        """Create relationships unless they exist."""
        rows = [link_row(self.owner, link, self.plan.element_ids) for link in links]
        await self.transaction.run("import.create_links", rows=rows)


@contextmanager
def _translate_refusals() -> Iterator[None]:
    """Raise Conflict or InvalidInput for what Neo4j refuses to store."""
    try:
        yield
    except ConstraintError as error:
        raise Conflict("The user was written to while the import ran: run it again.") from error
    except ClientError as error:
        raise InvalidInput("The import has a property that Neo4j cannot store.") from error


def _result(plan: ImportPlan, export: UserExport, vectors_remade: bool) -> ImportResult:
    nodes = [*export.entities, *export.records]
    kinds, new = Counter(map(_node_kind, nodes)), Counter(_node_kind(node) for node in nodes if plan.is_new_node(node))
    versions = sum(map(plan.is_new_version, export.memories))
    return ImportResult(
        imported={**new, "versions": versions},
        unchanged={**(kinds - new), "versions": len(export.memories) - versions},
        ids={old: new for old, new in plan.ids.items() if old != new},
        vectors_remade=vectors_remade,
    )


def _split_batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), BATCH_SIZE):
        yield items[start : start + BATCH_SIZE]


def _node_kind(node: ExportedNode) -> str:
    return "Entity" if isinstance(node, ExportedEntity) else node.labels[0]
