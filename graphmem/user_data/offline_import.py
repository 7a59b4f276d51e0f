"""Importing exports offline: Neo4j's import tool makes a new database of them, without transactions.

Everything happens in a folder beside the database to be: the exports become tables, the tool makes a database of the
tables, a server makes the indexes. Only a complete database is moved to its place. Each import has a folder of its own,
so that what a killed one left running writes nothing into that of the next, which ends it and removes what it wrote.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import secrets
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import TextIO

import numpy as np
from pydantic import BaseModel

from graphmem.models.embedder import create_embedder, describe_model
from graphmem.models.embedding_models import EmbeddingModel
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.embedded.home import NEO4J_USER, Neo4jHome
from graphmem.neo4j.embedded.import_tool import import_tables
from graphmem.neo4j.embedded.server import EmbeddedNeo4j, kill_processes_in, paused_server, stop_server
from graphmem.neo4j.migrations import migrate, split_statements
from graphmem.runtime.errors import ConfigurationError, GraphmemError, InvalidInput
from graphmem.runtime.files import FileLock, cypher_root, free_bytes, to_megabytes
from graphmem.runtime.progress import ProgressCallback, StartProgress, ignore_progress
from graphmem.runtime.settings import Settings
from graphmem.runtime.times import utc_now
from graphmem.tenants.owners import Owner, make_owner
from graphmem.user_data.export_document import EmbeddingInfo, UserExport, refuse_problems
from graphmem.user_data.export_entries import ExportEntry
from graphmem.user_data.export_reader import ExportReader
from graphmem.user_data.file_import import read_outline
from graphmem.user_data.import_plan import ExistingData, find_future_times, find_misfits, plan_import
from graphmem.user_data.import_rows import NewFacts, refuse_contradictions
from graphmem.user_data.offline_tables import (
    FIELD_DELIMITER,
    ITEM_DELIMITER,
    TABLES,
    Table,
    UserRows,
    count_kinds,
    exclusive_ids,
)

SIDE_FOLDER = ".offline-import"
"""The folder in a data folder in which each import has a folder where it makes its database."""

SPACE_FACTOR = 4
"""Bytes of disk that a byte of the exports may take: tables, database, and the indexes while they are made."""

_HASH_BYTES = 8


@dataclass(frozen=True, slots=True)
class OfflineProgress:
    """What reports the progress of each phase: users written, percent of the tool, percent of all indexes."""

    on_written: ProgressCallback = ignore_progress
    on_imported: ProgressCallback = ignore_progress
    on_populated: ProgressCallback = ignore_progress
    start: StartProgress = field(default_factory=StartProgress)


class OfflineImport(BaseModel):
    """What an offline import stored, and how many seconds each phase took."""

    users: int
    imported: dict[str, int]
    seconds: dict[str, float]
    facts_per_second: int


async def import_offline(
    settings: Settings, tenant: str, source: Path, progress: OfflineProgress | None = None
) -> OfflineImport:
    """Make the database of a data folder that has none of an export, or of all exports of a folder, one of each user.

    Raises ConfigurationError where the database is not an embedded one, and InvalidInput when the data folder holds a
    database, for exports that an import would refuse or whose vectors are not those of the configured model, and for
    two exports that share ids. Whatever happens, there is a complete database or none.
    """
    progress = progress or OfflineProgress()
    home = _embedded_home(settings)
    folder = home.path.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = FileLock(folder / f"{SIDE_FOLDER}.lock")
    if not lock.try_acquire():
        raise InvalidInput(f"Another offline import into {folder} runs: wait until it has ended.")
    sides = folder / SIDE_FOLDER
    try:
        await _clear(sides)
        _refuse_server(home)
        _refuse_database(home)
        paths = await asyncio.to_thread(_list_exports, source)
        model = await _describe_configured_model(settings, progress.start)
        _check_space(folder, paths)
        side = sides / secrets.token_hex(8)
        side.mkdir(mode=0o700, parents=True)
        phases = _Phases()
        counts = await asyncio.to_thread(_write_tables, side / "tables", tenant, paths, model, progress.on_written)
        phases.end("files")
        await _make_database(settings, side, model, progress, phases)
        async with paused_server(folder, settings.cache_dir) as home:
            _refuse_database(home)
            for name in ("password", "data"):  # the data last: it is what a database is recognised by
                (side / "neo4j" / name).replace(home.path / name)
    finally:
        await _clear(sides)
        lock.release()
    versions, seconds = counts["versions"], sum(phases.seconds.values())
    return OfflineImport(
        users=len(paths),
        imported=dict(counts),
        seconds={name: round(value, 1) for name, value in phases.seconds.items()},
        facts_per_second=round(versions / seconds),
    )


class _Phases:
    """The seconds of phases that follow one another."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = time.monotonic()

    def end(self, name: str) -> None:
        """Count the time since the last phase for this one."""
        now = time.monotonic()
        self.seconds[name] = now - self._began
        self._began = now


def _embedded_home(settings: Settings) -> Neo4jHome:
    if settings.neo4j_uri:
        raise ConfigurationError(
            "An offline import makes a new embedded database, but GRAPHMEM_NEO4J_URI names a server: unset it, or "
            "import without --offline."
        )
    return Neo4jHome.in_data_dir(settings.data_dir)


def _refuse_server(home: Neo4jHome) -> None:
    if home.info() is not None:
        raise InvalidInput(
            f"Neo4j runs in {home.path}: stop what uses it (`graphmem db stop`) and set GRAPHMEM_DATA_DIR to a new "
            "folder, or import without --offline."
        )


def _refuse_database(home: Neo4jHome) -> None:
    if (home.path / "data").exists():
        raise InvalidInput(
            f"{home.path} has a database already: set GRAPHMEM_DATA_DIR to a new folder, or import without --offline."
        )


def _list_exports(source: Path) -> list[Path]:
    """Return the exports, the largest first, so that no process is left alone with it at the end."""
    paths = sorted(source.glob("*.json")) if source.is_dir() else [source]
    if not paths:
        raise InvalidInput(f"{source} has no file *.json: give a folder of exports.")
    return sorted(paths, key=lambda path: path.stat().st_size if path.is_file() else 0, reverse=True)


def _check_space(folder: Path, paths: Sequence[Path]) -> None:
    needed = SPACE_FACTOR * sum(path.stat().st_size for path in paths if path.is_file())
    if (free := free_bytes(folder)) < needed:
        raise InvalidInput(
            f"An offline import takes up to {to_megabytes(needed)} MB meanwhile, but the disk of {folder} has "
            f"{to_megabytes(free)} MB free: free disk space, or set GRAPHMEM_DATA_DIR to another folder."
        )


async def _describe_configured_model(settings: Settings, start: StartProgress) -> EmbeddingModel:
    embedder = create_embedder(settings, start.download)
    try:
        if not embedder.dimension:
            await embedder.open()
        return describe_model(embedder, settings)
    finally:
        await embedder.aclose()


async def _clear(sides: Path) -> None:
    """Remove the folders of imports, after the end of what was started in them."""
    if not await asyncio.to_thread(sides.exists):
        return
    for side in await asyncio.to_thread(lambda: [*sides.iterdir()]):
        await stop_server(side)
    await asyncio.to_thread(kill_processes_in, sides)
    await asyncio.to_thread(_remove, sides)


def _remove(sides: Path) -> None:
    for side in sides.iterdir():
        removed = side.with_suffix(".removed")  # under another name no process that still ends makes a file in it
        shutil.rmtree(side.rename(removed))
    sides.rmdir()


# The first phase: tables


@dataclass(slots=True)
class _Written:
    """What was written of one user: counts by kind, and hashes of the ids that nobody else may have."""

    counts: Counter[str]
    id_hashes: bytes


def _write_tables(
    folder: Path, tenant: str, paths: Sequence[Path], model: EmbeddingModel, on_written: ProgressCallback
) -> Counter[str]:
    """Write the tables of all users, several at once, and return what they hold."""
    folder.mkdir(mode=0o700)
    for table in TABLES.values():
        (folder / f"{table.name}.header").write_text(table.header, encoding="utf-8")
    embedding, now = EmbeddingInfo(model=model.name, dimension=model.dimension), utc_now()
    counts, hashes = Counter[str](), bytearray()
    processes = min(os.cpu_count() or 1, len(paths))
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), initializer=_end_with_parent) as pool:
        tasks = [
            pool.submit(_write_user, folder, tenant, path, number, embedding, now)
            for number, path in enumerate(paths, 1)
        ]
        try:
            for number, task in enumerate(as_completed(tasks), 1):
                written = task.result()
                counts += written.counts
                hashes += written.id_hashes
                on_written(number, len(paths))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    _refuse_shared_ids(hashes)
    return counts


def _end_with_parent() -> None:
    """Have this process end with the import, even if that is killed: it would wait for its next file forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _refuse_shared_ids(hashes: bytearray) -> None:
    ids = np.frombuffer(hashes, dtype=np.uint64)
    ids.sort()
    if np.any(ids[1:] == ids[:-1]):
        raise InvalidInput(
            "Two of the exports share ids of entities, messages or memories, as copies of one user do: leave one of "
            "them out, and import it with `graphmem import` afterwards."
        )


def _write_user(
    folder: Path, tenant: str, path: Path, number: int, embedding: EmbeddingInfo, now: datetime
) -> _Written:
    """Check an export and append its rows to the tables of this process; errors name the file."""
    try:
        reader = ExportReader(path)
        if reader.head.embedding != embedding:
            given = reader.head.embedding
            raise InvalidInput(
                f"its vectors are of {given.model} ({given.dimension} numbers), and the configured model is "
                f"{embedding.model} ({embedding.dimension}): configure that model, or import without --offline"
            )
        owner = make_owner(tenant, reader.head.user_id)
        with _TableWriter(folder, str(os.getpid())) as writer:
            writing = _WritingReader(reader, UserRows(owner, number, reader.head, now), writer)
            outline, _ = read_outline(owner, writing, ignore_progress)
            writing.finish()
        _check_outline(owner, outline, now)
    except GraphmemError as error:
        raise InvalidInput(f"{path}: {error.detail}", errors=[*error.errors]) from None
    return _Written(Counter(count_kinds(outline)), bytes(writing.id_hashes))


def _check_outline(owner: Owner, outline: UserExport, now: datetime) -> None:
    """Raise what an import into an empty graph raises for an export that is complete in itself."""
    nothing = ExistingData({}, {}, frozenset(), {}, frozenset())
    refuse_problems("The import has known times in the future.", find_future_times(outline, now))
    refuse_problems("The import does not fit together.", find_misfits(outline, nothing))
    refuse_contradictions(NewFacts.of(owner, outline, plan_import(owner, outline, nothing), now), {})


class _WritingReader:
    """Reads an export for its checks and writes the rows of each entry on the way, so that it is read only once."""

    def __init__(self, reader: ExportReader, rows: UserRows, writer: _TableWriter) -> None:
        self.head = reader.head
        self.size = reader.size
        self.id_hashes = bytearray()
        self._reader = reader
        self._rows = rows
        self._writer = writer

    @property
    def bytes_read(self) -> int:
        """How far the file has been read."""
        return self._reader.bytes_read

    def entries(self) -> Iterator[tuple[int, ExportEntry]]:
        """Yield every entry with its place in its section; write the rows of one after its checks."""
        for index, entry in self._reader.entries():
            yield index, entry
            for key in exclusive_ids(entry):
                self.id_hashes += blake2b(key.encode(), digest_size=_HASH_BYTES).digest()
            self._writer.write(self._rows.add(entry))

    def finish(self) -> None:
        """Write what follows from all entries."""
        self._writer.write(self._rows.finish())


class _TableWriter:
    """Appends rows to the files of one process; rows with line breaks to files of their own, which are read slower."""

    def __init__(self, folder: Path, suffix: str) -> None:
        self._folder = folder
        self._suffix = suffix
        self._files: dict[tuple[str, bool], TextIO] = {}
        self._stack = ExitStack()

    def __enter__(self) -> _TableWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, rows: Iterator[tuple[Table, str]]) -> None:
        """Write rows to the files of their tables."""
        for table, line in rows:
            has_breaks = line.find("\n", 0, -1) >= 0 or "\r" in line
            file = self._files.get((table.name, has_breaks)) or self._open(table.name, has_breaks)
            file.write(line)

    def _open(self, name: str, has_breaks: bool) -> TextIO:
        path = self._folder / f"{name}.{self._suffix}{_WITH_BREAKS if has_breaks else ''}.csv"
        file = self._stack.enter_context(path.open("a", encoding="utf-8", newline="", buffering=1 << 20))
        self._files[name, has_breaks] = file
        return file


_WITH_BREAKS = ".breaks"
"""What names the files of rows with line breaks."""


# The second phase: the database


def tool_options(folder: Path) -> Iterator[str]:
    """Yield the options by which the import tool reads the tables of a folder."""
    yield from (f"--delimiter=U+{ord(FIELD_DELIMITER):04X}", f"--array-delimiter=U+{ord(ITEM_DELIMITER):04X}")
    yield from ("--id-type=integer", "--path-pattern-style=none", "--high-parallel-io=on")
    for table in TABLES.values():
        files = sorted(path.name for path in folder.glob(f"{table.name}.*.csv"))
        if files:
            names = ",".join([f"{table.name}.header", *files])
            kind = "nodes" if table.is_of_nodes else "relationships"
            yield f"--{kind}={table.name}={names}" if not table.labels_vary else f"--{kind}={names}"
    if with_breaks := sorted(path.name for path in folder.glob(f"*{_WITH_BREAKS}.csv")):
        yield from (f"--multiline-fields={','.join(with_breaks)}", "--multiline-fields-format=v2")


async def _make_database(
    settings: Settings, side: Path, model: EmbeddingModel, progress: OfflineProgress, phases: _Phases
) -> None:
    """Make the database of the tables, with its constraints and indexes, and stop its server."""
    await import_tables(
        Neo4jHome.in_data_dir(side),
        side / "tables",
        tool_options(side / "tables"),
        settings.cache_dir,
        settings.jar_mirror,
        start=progress.start,
        progress=progress.on_imported,
    )
    await asyncio.to_thread(shutil.rmtree, side / "tables")
    phases.end("import tool")
    server = await EmbeddedNeo4j.start_or_join(
        side, settings.cache_dir, mirror=settings.jar_mirror, progress=progress.start
    )
    try:
        phases.end("start")
        graph = Graph(server.info.uri, NEO4J_USER, server.info.password)
        try:
            text = (cypher_root() / "admin" / "fill_lists_of_graphiti.cypher").read_text(encoding="utf-8")
            for statement in split_statements(text):
                await graph.apply_schema(statement)
            phases.end("empty lists")
            await migrate(graph, model, on_populated=progress.on_populated)
            phases.end("indexes")
        finally:
            await graph.close()
    finally:
        await server.stop()
        await stop_server(side)
    phases.end("stop")
