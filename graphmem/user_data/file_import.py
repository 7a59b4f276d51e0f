"""Importing exports from files: of any size, part by part, and those of a folder, several users at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Protocol

from graphmem.models.embedder import Embedder
from graphmem.neo4j.schema import LinkType
from graphmem.runtime.errors import GraphmemError, InvalidInput, Unavailable
from graphmem.runtime.progress import ProgressCallback, ProgressCounter, ignore_progress
from graphmem.tenants.owners import Owner, make_owner
from graphmem.user_data.export_document import (
    MAX_REPORTED_PROBLEMS,
    EmbeddingInfo,
    Problem,
    UserExport,
    find_structural_problems,
    find_vector_problem,
    refuse_problems,
    rename_self_entity,
    with_user_id,
)
from graphmem.user_data.export_entries import (
    ExportedEntity,
    ExportedEpisode,
    ExportedLink,
    ExportedVersion,
    ExportEntry,
)
from graphmem.user_data.export_reader import ExportReader
from graphmem.user_data.import_plan import ImportPlan
from graphmem.user_data.import_rows import outline_version
from graphmem.user_data.import_store import ImportStore
from graphmem.user_data.models import FailedFile, FolderImport, ImportResult

PART_ENTRIES = 1_000
"""Entries of a part, which one transaction writes while the next part is read."""

USERS_AT_ONCE = 4
"""Users of a folder that are imported at the same time: while Neo4j writes for some, others are read."""

REPORTED_BYTES = 1 << 20
"""Bytes between two reports of how much of a file has been read."""


class FileImporter:
    """Imports exports in JSON from files, which are read twice: once to check them, once to write them."""

    def __init__(self, store: ImportStore, embedder: Embedder, *, part_entries: int = PART_ENTRIES) -> None:
        self._store = store
        self._embedder = embedder
        self._part_entries = part_entries

    async def import_file(
        self,
        owner: Owner,
        path: Path,
        *,
        on_read: ProgressCallback = ignore_progress,
        progress: ProgressCallback = ignore_progress,
    ) -> ImportResult:
        """Import an export for a user in parts, after all of it was checked; `on_read` gets the bytes that were.

        Of the whole, only ids and times are in memory, some kilobytes an entry at most. An import that is interrupted
        goes on where it ended when it is run again. Raises InvalidInput and Conflict.
        """
        reader = await asyncio.to_thread(ExportReader, path)
        outline, count = await asyncio.to_thread(read_outline, owner, reader, on_read)
        embedding = await self._store.find_embedding()
        own_vector = None
        if outline.user_id != owner.user_id:
            [own_vector] = await self._embedder.embed([owner.user_id])
            outline = rename_self_entity(outline, owner.user_id, own_vector)

        def read_parts(plan: ImportPlan) -> AsyncGenerator[Sequence[ExportEntry]]:
            return self._read_parts(owner, reader, plan, own_vector, embedding)

        return await self._store.import_parts(
            owner,
            outline,
            read_parts,
            vectors_remade=embedding != reader.head.embedding,
            progress=ProgressCounter(progress, count),
        )

    async def import_folder(
        self, tenant: str, folder: Path, *, progress: ProgressCallback = ignore_progress
    ) -> FolderImport:
        """Import every export of a folder, `*.json`, for the user whose export it is, several at once.

        A file that cannot be imported is reported, and the others are. Raises InvalidInput for a folder without any.
        """
        paths = sorted(await asyncio.to_thread(lambda: list(folder.glob("*.json"))))
        if not paths:
            raise InvalidInput(f"{folder} has no file *.json: give a folder of exports.")
        result, counter = FolderImport(), ProgressCounter(progress, len(paths))
        imported, unchanged = Counter[str](), Counter[str]()
        waiting = iter(paths)

        async def import_next() -> None:
            for path in waiting:
                try:
                    user_id = (await asyncio.to_thread(ExportReader, path)).head.user_id
                    done = await self.import_file(make_owner(tenant, user_id), path)
                except Unavailable:
                    raise
                except GraphmemError as error:
                    result.failed.append(FailedFile(file=path.name, reason=str(error)))
                else:
                    result.users += 1
                    imported.update(done.imported)
                    unchanged.update(done.unchanged)
                counter.add(1)

        imports = [asyncio.create_task(import_next()) for _ in range(USERS_AT_ONCE)]
        try:
            await asyncio.gather(*imports)
        finally:
            for task in imports:
                task.cancel()
        result.imported, result.unchanged = dict(+imported), dict(+unchanged)
        return result

    async def _read_parts(
        self,
        owner: Owner,
        reader: ExportReader,
        plan: ImportPlan,
        own_vector: list[float] | None,
        embedding: EmbeddingInfo,
    ) -> AsyncGenerator[Sequence[ExportEntry]]:
        """Yield the new entries in parts; each is read, and embedded where that is needed, while its predecessor is
        written."""
        parts = _split_parts(_new_entries(owner, reader, plan, own_vector), self._part_entries)

        async def load() -> Sequence[ExportEntry] | None:
            part = await asyncio.to_thread(next, parts, None)
            if part is None or embedding == reader.head.embedding:
                return part
            section = part[0].section
            export = reader.head.model_copy(update={section: part})
            vectors = await self._embedder.embed(export.embedded_texts)
            embedded: Sequence[ExportEntry] = getattr(export.with_vectors(embedding, vectors), section)
            return embedded

        loading = asyncio.create_task(load())
        try:
            while (part := await loading) is not None:
                loading = asyncio.create_task(load())
                yield part
        finally:
            loading.cancel()


class EntrySource(Protocol):
    """What yields the entries of an export in their order, as `ExportReader` does."""

    head: UserExport

    @property
    def size(self) -> int:
        """Bytes of the file."""

    @property
    def bytes_read(self) -> int:
        """How far the file has been read."""

    def entries(self) -> Iterator[tuple[int, ExportEntry]]:
        """Yield every entry with its place in its section."""


def read_outline(owner: Owner, reader: EntrySource, on_read: ProgressCallback) -> tuple[UserExport, int]:
    """Read a whole export; return it without texts, vectors and most links, and the number of its entries.

    Raises InvalidInput for what is wrong in and between entries.
    """
    outline = reader.head.model_copy(update={"entities": [], "memories": [], "records": [], "links": []})
    nodes: set[str] = set()
    problems: list[Problem] = []
    finished_ids: set[str] = set()
    count, reported, memory_id = 0, 0, None
    for index, entry in reader.entries():
        count += 1
        problems += find_vector_problem(index, entry, reader.head.embedding)
        match entry:
            case ExportedVersion():
                if (key := entry.properties.memory_id) != memory_id:
                    if key in finished_ids:
                        problems.append((("memories", index), "does not follow the other versions of its memory"))
                    finished_ids.add(key)
                    memory_id = key
                outline.memories.append(outline_version(owner, entry))  # type: ignore[arg-type]
            case ExportedLink():
                if not {entry.start, entry.end} <= nodes:
                    problems.append((("links", index), "names a node that is not in the import"))
                elif entry.type is LinkType.HAS_EPISODE:
                    outline.links.append(entry)
            case _:
                nodes.add(entry.key)
                getattr(outline, entry.section).append(_outline_node(entry))
        if len(problems) >= MAX_REPORTED_PROBLEMS:
            break
        if reader.bytes_read - reported >= REPORTED_BYTES:
            reported = reader.bytes_read
            on_read(reported, reader.size)
    refuse_problems(
        "The entries of the import do not fit together.", chain(problems, find_structural_problems(outline))
    )
    on_read(reader.size, reader.size)
    return outline, count


def _outline_node(node: ExportEntry) -> ExportEntry:
    """Return an entity or a record without its text and its vector."""
    match node:
        case ExportedEntity():
            changes = {"name_embedding": None, "summary": "", "attributes": "{}"}
        case ExportedEpisode():
            changes = {"content_embedding": None, "content": "", "redacted": None, "rich_content": None}
        case _:
            return node
    return node.model_copy(update={"properties": node.properties.model_copy(update=changes)})


def _new_entries(
    owner: Owner, reader: ExportReader, plan: ImportPlan, own_vector: list[float] | None
) -> Iterator[ExportEntry]:
    """Yield the entries that an import writes; with `own_vector`, the user's own entity is given the owner's id."""
    for _, entry in reader.entries():
        match entry:
            case ExportedVersion():
                is_new = plan.is_new_version(entry)
            case ExportedLink():
                is_new = True  # one that exists is found by its ends
            case _:
                is_new = plan.is_new_node(entry)
        if not is_new:
            continue
        if own_vector is not None and isinstance(entry, ExportedEntity) and entry.properties.is_user:
            yield with_user_id(entry, reader.head.user_id, owner.user_id, own_vector)
        else:
            yield entry


def _split_parts(entries: Iterator[ExportEntry], size: int) -> Iterator[list[ExportEntry]]:
    """Yield entries in parts of one section, each of about `size`, with all versions of a memory in one."""
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
        and one.properties.memory_id == other.properties.memory_id
    )
