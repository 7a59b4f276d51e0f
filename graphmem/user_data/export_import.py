"""Importing exports from a document, a file or a folder: one read checks everything, a second one writes it.

A document is written in one transaction. A large file is written in parts; an interrupted import resumes when run
again.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from neo4j.exceptions import ClientError, ConstraintError

from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact import Fact
from graphmem.memories.fact_store import FactStore
from graphmem.memories.saving import FactLoader
from graphmem.models.embedder import Embedder
from graphmem.models.embedding_models import embedding_text
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.neo4j.placed_graph import set_tenant
from graphmem.neo4j.schema import RecordLabel
from graphmem.runtime.errors import Conflict, GraphmemError, InvalidInput, NotFound, Unavailable
from graphmem.runtime.field_types import Vector, deduplicate
from graphmem.runtime.progress import ProgressCallback, ProgressCounter, ignore_progress
from graphmem.tenants.owners import SPACE_PREFIX, Owner, make_owner
from graphmem.user_data.claims import ClaimedExport, Importer
from graphmem.user_data.export_properties import record_identity
from graphmem.user_data.export_reader import ExportReader, ExportSource, begins_as_export, is_large, read_export
from graphmem.user_data.export_schema import (
    EmbeddingInfo,
    ExportedEntity,
    ExportedLink,
    ExportedNode,
    ExportedVersion,
    ExportEntry,
)
from graphmem.user_data.foreign import parse_structured_text
from graphmem.user_data.import_plan import (
    ExistingData,
    ExistingNode,
    FirstVersion,
    ImportPlan,
    find_misfits,
    find_new_statements,
    link_row,
    mentions_others,
    node_row,
    plan_import,
    refuse_contradictions,
    replacement_id,
    version_row,
)
from graphmem.user_data.models import FailedFile, FolderImport, ImportResult, RefusedInFile, RejectedEntry
from graphmem.user_data.outline import (
    VECTOR_PROPERTIES,
    ExportOutline,
    find_future_times,
    read_outline,
    refuse_problems,
    rename_self_entity,
    with_user_id,
)

PART_ENTRIES = 1_000
"""Entries per part, which one transaction writes while the next part is read."""

USERS_AT_ONCE = 4
"""Users of a folder imported concurrently: while Neo4j writes for some, the files of others are read."""

BATCH_SIZE = 1_000
"""Ids looked up per query."""

OTHER_VALUE_REASON = "the user has another value, which stays"
"""Why a property of a user is not imported."""

LATER_VERSION_REASON = "the user has an earlier version of this memory, which stays as it is: correct it there"
"""Why a version is not imported."""

Part = Sequence[ExportEntry]
"""Entries of one section, with all versions of each memory in it."""

Item = TypeVar("Item")


class ExportImporter:
    """Imports graphmem exports; the user's existing data stays unchanged."""

    def __init__(
        self,
        graph: Graph,
        facts: FactStore,
        embedder: Embedder,
        *,
        max_entries: int,
        part_entries: int = PART_ENTRIES,
    ) -> None:
        """`max_entries` limits documents, which are written in one transaction."""
        self._graph = graph
        self._facts = facts
        self._entities = EntityStore(graph)
        self._embedder = embedder
        self._max_entries = max_entries
        self._part_entries = part_entries

    async def import_document(
        self,
        owner: Owner,
        raw: bytes,
        *,
        importer: Importer | None = None,
        progress: ProgressCallback = ignore_progress,
    ) -> ImportResult:
        """Import an export in JSON or YAML, all or nothing: unchanged, or attributed to an `importer`.

        Raises InvalidInput if an entry is invalid, a known time is in the future, or Neo4j refuses a value, and
        Conflict if a value of a single-valued predicate would be valid at the same time as one of the user's.
        """
        source, outline = await asyncio.to_thread(_read_document, owner, raw, importer)
        return await self._import_at_once(owner, source, outline, progress, is_claimed=importer is not None)

    async def import_value(
        self,
        owner: Owner,
        document: Any,
        *,
        importer: Importer | None = None,
        progress: ProgressCallback = ignore_progress,
    ) -> ImportResult:
        """Import a parsed export as `import_document` does."""
        source = _claimed(await asyncio.to_thread(read_export, document), importer)
        outline = await asyncio.to_thread(read_outline, owner, source)
        return await self._import_at_once(owner, source, outline, progress, is_claimed=importer is not None)

    async def import_file(
        self,
        owner: Owner,
        path: Path,
        *,
        on_read: ProgressCallback = ignore_progress,
        progress: ProgressCallback = ignore_progress,
    ) -> ImportResult:
        """Import a JSON export after checking all of it, in parts if it has 64 MB or more.

        Only ids and times of a large export are kept in memory, at most some kilobytes per entry. `on_read` receives
        the number of bytes checked. Raises the errors of `import_document` before anything is written.
        """
        if not await asyncio.to_thread(is_large, path):
            return await self.import_document(owner, await asyncio.to_thread(path.read_bytes), progress=progress)
        return await self._import_large_file(owner, path, on_read, progress)

    async def _import_large_file(
        self,
        owner: Owner,
        path: Path,
        on_read: ProgressCallback = ignore_progress,
        progress: ProgressCallback = ignore_progress,
    ) -> ImportResult:
        source = await asyncio.to_thread(ExportReader, path)
        outline = await asyncio.to_thread(read_outline, owner, source, on_read, in_parts=True)
        set_tenant(owner.tenant)
        return await self._import_in_parts(owner, source, outline, progress)

    async def import_folder(
        self, tenant: str, folder: Path, *, progress: ProgressCallback = ignore_progress
    ) -> FolderImport:
        """Import every export of a folder, `*.json`, for its own user, several concurrently.

        A file that cannot be imported is reported without affecting the others. Raises InvalidInput for a folder
        without exports.
        """
        paths = sorted(await asyncio.to_thread(lambda: list(folder.glob("*.json"))))
        if not paths:
            raise InvalidInput(f"{folder} contains no *.json file: give a folder of exports.")
        result, counter = FolderImport(), ProgressCounter(progress, len(paths))
        imported, unchanged = Counter[str](), Counter[str]()
        waiting = iter(paths)

        async def import_next() -> None:
            for path in waiting:
                try:
                    done = await self._import_large_file(await self._find_owner(tenant, path), path)
                except Unavailable:
                    raise
                except GraphmemError as error:
                    result.failed.append(FailedFile(file=path.name, reason=str(error)))
                else:
                    result.users += 1
                    imported.update(done.imported)
                    unchanged.update(done.unchanged)
                    result.refused += [RefusedInFile(file=path.name, **entry.model_dump()) for entry in done.refused]
                counter.add(1)

        imports = [asyncio.create_task(import_next()) for _ in range(USERS_AT_ONCE)]
        try:
            await asyncio.gather(*imports)
        finally:
            for task in imports:
                task.cancel()
        result.imported, result.unchanged = dict(+imported), dict(+unchanged)
        return result

    async def _find_owner(self, tenant: str, path: Path) -> Owner:
        """Return the owner of an export in a folder: a space from the file's name, else the user in the export."""
        set_tenant(tenant)
        name = unquote(path.stem)
        if not name.startswith(SPACE_PREFIX):
            return make_owner(tenant, (await asyncio.to_thread(ExportReader, path)).head.user_id)
        owner = Owner.from_stored(tenant, name)
        if not await self._graph.fetch("spaces.list_spaces", group_ids=[owner.group_id]):
            raise NotFound(
                f"There is no space {owner.space!r}: create it with `graphmem spaces put`, and import its file again."
            )
        return owner

    async def _import_at_once(
        self,
        owner: Owner,
        source: ExportSource,
        outline: ExportOutline,
        progress: ProgressCallback,
        *,
        is_claimed: bool,
    ) -> ImportResult:
        """Read and embed everything, then plan and write it in one transaction."""
        if outline.count > self._max_entries:
            raise InvalidInput(
                f"The import has {outline.count} entries and GRAPHMEM_MAX_IMPORT_ENTRIES allows {self._max_entries}."
            )
        counter = ProgressCounter(progress, outline.count)
        set_tenant(owner.tenant)
        embedding, own_vector = await self._find_embedding(), await self._rename_self(owner, outline)
        parts = [part async for part in self._read_parts(owner, source, embedding, own_vector, ImportPlan())]

        async def work(transaction: Transaction) -> tuple[ImportPlan, list[str]]:
            now = await self._facts.lock_or_create_user(transaction, owner)
            plan = await self._plan(transaction, owner, outline, now)
            counter.add(plan.count_known(outline))
            write = _PlannedWrite(transaction, owner, plan, now)
            for part in parts:
                new = [entry for entry in part if plan.is_new(entry)]
                await write.create(new)
                counter.add(len(new))
            return plan, await self._finish(write, outline, sets_user=not (is_claimed and owner.is_space))

        with _translate_refusals():
            plan, kept = await self._graph.write(work)
        return _result(plan, outline, kept, vectors_remade=embedding != outline.head.embedding)

    async def _import_in_parts(
        self, owner: Owner, source: ExportReader, outline: ExportOutline, progress: ProgressCallback
    ) -> ImportResult:
        """Plan everything in one transaction, then write each part in another while the next is read and embedded."""
        counter = ProgressCounter(progress, outline.count)
        embedding, own_vector = await self._find_embedding(), await self._rename_self(owner, outline)

        async def plan_all(transaction: Transaction) -> ImportPlan:
            now = await self._facts.lock_or_create_user(transaction, owner)
            return await self._plan(transaction, owner, outline, now)

        async def write(part: Part) -> None:
            async def locked(transaction: Transaction) -> None:
                now = await self._facts.lock_user(transaction, owner)
                await _PlannedWrite(transaction, owner, plan, now).create(part)

            await self._graph.write(locked)

        async def finish(transaction: Transaction) -> list[str]:
            now = await self._facts.lock_user(transaction, owner)
            return await self._finish(_PlannedWrite(transaction, owner, plan, now), outline)

        with _translate_refusals():
            plan = await self._graph.write(plan_all)
            counter.add(plan.count_known(outline))
            async with aclosing(self._read_parts(owner, source, embedding, own_vector, plan)) as parts:
                async for part in parts:
                    await write(part)
                    counter.add(len(part))
            kept = await self._graph.write(finish)
        return _result(plan, outline, kept, vectors_remade=embedding != outline.head.embedding)

    async def _find_embedding(self) -> EmbeddingInfo:
        """Return the embedding model of the graph's vectors."""
        vectors = await self._graph.vector_state()
        assert vectors is not None, "a graph is prepared before it is used"
        return EmbeddingInfo.of(vectors)

    async def _rename_self(self, owner: Owner, outline: ExportOutline) -> Vector | None:
        """Give the user's own entity the id of the owner; return the vector of that id if it is another user's."""
        if outline.head.user_id == owner.entity_name:
            return None
        rename_self_entity(outline, owner.entity_name)
        [vector] = await self._embedder.embed([owner.entity_name])
        return vector

    async def _read_parts(
        self,
        owner: Owner,
        source: ExportSource,
        embedding: EmbeddingInfo,
        own_vector: Vector | None,
        plan: ImportPlan,
    ) -> AsyncGenerator[Part]:
        """Yield the new entries of a plan in parts, with vectors of the model `embedding`.

        Each part is read, and embedded if needed, while its predecessor is written. With `own_vector`, the user's own
        entity gets the owner's id, whose vector it is.
        """
        old_id, new_id = source.head.user_id, owner.entity_name

        def new_entries() -> Iterator[ExportEntry]:
            for _, entry in source.entries():
                if not plan.is_new(entry):
                    continue
                if own_vector is not None and isinstance(entry, ExportedEntity) and entry.properties["is_user"]:
                    yield with_user_id(entry, old_id, new_id, own_vector)
                else:
                    yield entry

        parts = _split_parts(new_entries(), self._part_entries)

        async def load() -> Part | None:
            part = await asyncio.to_thread(next, parts, None)
            return part if part is None or embedding == source.head.embedding else await self._embed(part)

        loading = asyncio.create_task(load())
        try:
            while (part := await loading) is not None:
                loading = asyncio.create_task(load())
                yield part
        finally:
            loading.cancel()

    async def _embed(self, part: Part) -> Part:
        """Return entries with vectors of the embedder's model."""
        texts = {index: text for index, entry in enumerate(part) if (text := _embedded_text(entry)) is not None}
        vectors = dict(zip(texts, await self._embedder.embed(list(texts.values())), strict=True)) if texts else {}
        return [_with_vector(entry, vectors[i]) if i in vectors else entry for i, entry in enumerate(part)]

    async def _plan(self, transaction: Transaction, owner: Owner, outline: ExportOutline, now: datetime) -> ImportPlan:
        """Return an export's changes to a locked user; raise InvalidInput or Conflict if it cannot be imported."""
        refuse_problems("The import has known times in the future.", find_future_times(outline, now))
        existing = await load_existing(transaction, owner, outline)
        refuse_problems("The import does not fit what the user has.", find_misfits(outline, existing))
        plan = plan_import(owner, outline, existing)
        new = find_new_statements(outline, plan, now)
        stored: dict[tuple[str, str], list[Fact]] = defaultdict(list)
        for fact in (await FactLoader(transaction, owner).fetch(pairs=new.slots)).values():
            stored[fact.subject_id, fact.predicate].append(fact)
        refuse_contradictions(new, stored)
        return plan

    async def _finish(self, write: _PlannedWrite, outline: ExportOutline, *, sets_user: bool = True) -> list[str]:
        """Update the sessions' message counts and the user's properties; return the properties with other values."""
        transaction, owner, plan = write.transaction, write.owner, write.plan
        sessions = [node.properties["session_id"] for node in outline.records if node.label == RecordLabel.SESSION]
        for part in _split_batches(sessions):
            await transaction.run("import.renew_sessions", group_id=owner.group_id, session_ids=part)
        entity = outline.self_entity
        if entity is not None and not plan.is_new_node(entity):
            # The user's own entity existed before: add its names from the export.
            names = [entity.properties["name"], *entity.properties["aliases"]]
            own_id = plan.ids.get(entity.key, entity.key)
            await self._entities.add_aliases(transaction, owner, own_id, names, write.now)
        kept: list[str] = []
        if sets_user:
            user = {"group_id": owner.group_id, "properties": outline.head.user}
            kept = [row["name"] for row in await transaction.run("import.set_user", **user)]
        await transaction.run("facts.set_last_write_time", group_id=owner.group_id, at=write.latest)
        return kept


def _claimed(source: ExportSource, importer: Importer | None) -> ExportSource:
    return source if importer is None else ClaimedExport(source, importer)


def _read_document(owner: Owner, raw: bytes, importer: Importer | None) -> tuple[ExportSource, ExportOutline]:
    """Return an export in JSON or YAML and its outline.

    An export in graphmem's own format is read entry by entry. Any other is read as a whole, which allows sections in
    any order and gives more detailed errors.
    """
    if begins_as_export(raw):
        try:
            reader = _claimed(ExportReader(raw), importer)
            return reader, read_outline(owner, reader)
        except InvalidInput:
            pass
    export = _claimed(read_export(parse_structured_text(raw)), importer)
    return export, read_outline(owner, export)


def _embedded_text(entry: ExportEntry) -> str | None:
    """Return the text that an entry's vector embeds: that of a memory, an entity or a message."""
    match entry:
        case ExportedVersion():
            return str(entry.properties["fact"])
        case ExportedEntity():
            return str(entry.properties["name"])
        case ExportedLink():
            return None
    if entry.label != RecordLabel.EPISODIC:
        return None
    return embedding_text(entry.properties.get("speaker"), entry.properties["content"])


def _with_vector(entry: ExportEntry, vector: list[float]) -> ExportEntry:
    if isinstance(entry, ExportedNode):
        return entry.model_copy(update={"properties": {**entry.properties, VECTOR_PROPERTIES[entry.label]: vector}})
    return entry.model_copy(update={"vector": vector})


def _split_parts(entries: Iterator[ExportEntry], size: int) -> Iterator[list[ExportEntry]]:
    """Yield entries in parts of one section, each of about `size`, without splitting a memory's versions."""
    part: list[ExportEntry] = []
    for entry in entries:
        if part and (entry.section != part[-1].section or (len(part) >= size and not _are_versions(part[-1], entry))):
            yield part
            part = []
        part.append(entry)
    if part:
        yield part


def _are_versions(one: ExportEntry, other: ExportEntry) -> bool:
    """Return whether two entries are versions of one memory."""
    return (
        isinstance(one, ExportedVersion)
        and isinstance(other, ExportedVersion)
        and one.properties["memory_id"] == other.properties["memory_id"]
    )


async def load_existing(transaction: Transaction, owner: Owner, outline: ExportOutline) -> ExistingData:
    """Return the user's data relevant to an import: names, identities, memories, and ids in use."""
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
        latest_versions={
            row["memory_id"]: row["version"] for row in await transaction.run("import.list_latest_versions", **group)
        },
        current_statements={row["active_hash"]: row["memory_id"] for row in memories if row["active_hash"]},
        first_versions={
            FirstVersion(row["content_hash"], row["subject_id"], row["object_id"], row["created_at"]): row["memory_id"]
            for row in memories
            if row["version"] == 1
        },
        taken_ids=await _find_taken_ids(transaction, owner, outline),
    )


async def _find_taken_ids(transaction: Transaction, owner: Owner, outline: ExportOutline) -> set[str]:
    """Return the ids of the export that are in use, and their replacements that are in use."""
    facts = outline.facts
    ids = {node.uuid for node in outline.nodes if node.uuid} | {fact.uuid for fact in facts}
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
    """Return entity ids by name key and by unambiguous alias key, except aliases of the user's own entity.

    An alias may be the name of an entity merged into this one since an earlier import.
    """
    owners: dict[str, set[str]] = defaultdict(set)
    for row in entities:
        for key in row["alias_keys"]:
            owners[key].add(row["uuid"])
    own = {row["uuid"] for row in entities if row["is_user"]}
    by_alias = {key: next(iter(ids)) for key, ids in owners.items() if len(ids) == 1 and not ids & own}
    return by_alias | {row["name_key"]: row["uuid"] for row in entities}


class _PlannedWrite:
    """Writes new entries of an export in one transaction, at `now`, the time at which the user was locked.

    `latest` is the latest known time written, but at least `now`.
    """

    def __init__(self, transaction: Transaction, owner: Owner, plan: ImportPlan, now: datetime) -> None:
        self.transaction = transaction
        self.owner = owner
        self.plan = plan
        self.now = self.latest = now

    async def create(self, part: Part) -> None:
        """Create new entries of one section, before any later write."""
        if nodes := [entry for entry in part if isinstance(entry, ExportedNode)]:
            await self._create_nodes(nodes)
        if versions := [entry for entry in part if isinstance(entry, ExportedVersion)]:
            await self._create_versions(versions)
        if links := [entry for entry in part if isinstance(entry, ExportedLink)]:
            rows = [link_row(self.owner, link, self.plan.element_ids) for link in links]
            await self.transaction.run("import.create_links", rows=rows)
        await self.transaction.run("facts.set_last_write_time", group_id=self.owner.group_id, at=self.latest)

    async def _create_nodes(self, nodes: Sequence[ExportedNode]) -> None:
        """Create nodes, and add their element ids to the plan.

        Messages follow the versions that rest on them, and list those that exist.
        """
        rows = [node_row(self.owner, node, self.plan.ids) for node in nodes]
        created = await self.transaction.run("import.create_nodes", group_id=self.owner.group_id, rows=rows)
        self.plan.element_ids.update((row["key"], row["element_id"]) for row in created)
        messages = [node.key for node in nodes if node.label == RecordLabel.EPISODIC]
        if messages:
            ids = [self.plan.ids.get(uuid, uuid) for uuid in messages]
            await self.transaction.run("import.renew_entity_edges", ids=ids)

    async def _create_versions(self, versions: Sequence[ExportedVersion]) -> None:
        """Create versions, with their memories' references."""
        rows = [version_row(self.owner, version, self.plan.ids, self.now) for version in versions]
        await self.transaction.run("import.create_versions", group_id=self.owner.group_id, rows=rows)
        if referring := deduplicate(row["properties"]["memory_id"] for row in rows if mentions_others(row)):
            await self.transaction.run(
                "facts.rebuild_references", group_id=self.owner.group_id, referring=list(referring)
            )
        self.latest = max([self.latest, *(version.properties["created_at"] for version in versions)])


@contextmanager
def _translate_refusals() -> Iterator[None]:
    """Raise Conflict or InvalidInput for data that Neo4j refuses to store."""
    try:
        yield
    except ConstraintError as error:
        raise Conflict("The user was written to while the import ran: run it again.") from error
    except ClientError as error:
        raise InvalidInput("The import has a property that Neo4j cannot store.") from error


def _result(plan: ImportPlan, outline: ExportOutline, kept: Sequence[str], *, vectors_remade: bool) -> ImportResult:
    """Return the result of an import; `kept` are user properties whose values differ from the export."""
    nodes = outline.nodes
    kinds = Counter(node.label for node in nodes)
    new = Counter(node.label for node in nodes if plan.is_new_node(node))
    versions = sum(plan.is_new_memory(fact.memory_id) for fact in outline.facts)
    return ImportResult(
        imported={**new, "versions": versions},
        unchanged={**(kinds - new), "versions": len(outline.facts) - versions - len(plan.later_versions)},
        refused=[
            *(RejectedEntry(loc=["user", name], id=None, reason=OTHER_VALUE_REASON) for name in kept),
            *(
                RejectedEntry(loc=["memories", index], id=outline.facts[index].memory_id, reason=LATER_VERSION_REASON)
                for index in sorted(plan.later_versions)
            ),
        ],
        ids={old: new for old, new in plan.ids.items() if old != new},
        vectors_remade=vectors_remade,
    )


def _split_batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), BATCH_SIZE):
        yield items[start : start + BATCH_SIZE]
