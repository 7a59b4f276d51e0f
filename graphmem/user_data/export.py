"""Exporting a user: reading all data from the graph and writing it entry by entry."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from datetime import datetime
from typing import Any

import yaml

from graphmem.memories.entity import EntityRef
from graphmem.memories.fact import (
    NEXT_VECTOR_PROPERTY,
    SHADOW_PROPERTIES,
    VECTOR_PROPERTY,
    Fact,
    fact_from_row,
    with_lists,
)
from graphmem.neo4j.driver import Graph, StreamTransaction
from graphmem.neo4j.driver_values import Row
from graphmem.runtime.errors import Unavailable
from graphmem.runtime.progress import ProgressCallback, ProgressCounter, ignore_progress
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner
from graphmem.user_data.export_properties import REQUIRED_LISTS
from graphmem.user_data.export_schema import (
    ENTRY_TYPES,
    EXPORT_SECTIONS,
    EmbeddingInfo,
    ExportedEntity,
    ExportedLink,
    ExportedRecord,
    ExportedVersion,
    ExportEntry,
    ExportHead,
    Section,
)
from graphmem.user_data.models import ExportFormat, ExportView
from graphmem.user_data.records import RECORD_SCHEMA_VERSION, RECORDS_FORMAT, record_from_fact

BATCH_SIZE = 500
"""Records read per query. All records of a large user, with their vectors, would not fit into memory."""

MAX_SECONDS = 900.0
"""Seconds after which Neo4j stops reading a user, since the user's writes are waiting."""

_UNEXPORTED_PROPERTIES = frozenset(
    {
        "group_id",
        "group_key",
        "tenant",
        "user_id",
        "life",
        "write_version",
        "revision",
        "removal_revision",
        "last_write_at",
        "pending_job",
        "pending_store",
        "pending_since",
    }
    | {*SHADOW_PROPERTIES, VECTOR_PROPERTY, NEXT_VECTOR_PROPERTY}
)
"""Properties that are derived from the owner or other properties, or describe this database."""


class ExportStore:
    """Opens users for export."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    @asynccontextmanager
    async def open(self, owner: Owner) -> AsyncIterator[StoredUser]:
        """Open a user for reading, under their lock: no write changes anything until closed.

        A transaction alone is not enough, since each of its queries sees what others have committed meanwhile. Raises
        Unavailable while vectors of two models are stored in the same place.
        """
        vectors = await self._graph.vector_state()
        assert vectors is not None, "a graph is prepared before it is used"
        if vectors.reads_next:
            raise Unavailable(
                "A re-embedding is running: export when it has ended.",
                retry_after=60,
            )
        async with self._graph.discarded_transaction(MAX_SECONDS) as transaction:
            await transaction.run("export.lock_user", group_id=owner.group_id)
            yield StoredUser(transaction, owner, EmbeddingInfo.of(vectors))


class StoredUser:
    """The data of one user in the graph; `embedding` is the model of the vectors."""

    def __init__(self, transaction: StreamTransaction, owner: Owner, embedding: EmbeddingInfo) -> None:
        self.embedding = embedding
        self._transaction = transaction
        self._group_id = owner.group_id

    async def count_entries(self) -> int:
        """Return the number of entities, versions and records."""
        return int(await self._transaction.fetch_value("export.count_entries", group_id=self._group_id))

    async def get_properties(self) -> dict[str, Any]:
        """Return the properties of the user's own node."""
        rows = await self._transaction.run("export.get_user", group_id=self._group_id)
        return _exported("User", rows[0]["user"]) if rows else {}

    async def entries(self) -> AsyncIterator[ExportEntry]:
        """Yield every entry while reading, section by section in a stable order."""
        async for row in self._transaction.stream("export.stream_entities", group_id=self._group_id):
            yield ExportedEntity(
                key=row["node"]["uuid"],
                labels=sorted(row["labels"]),
                properties=_exported("Entity", row["node"]),
            )
        async for row in self._transaction.stream("export.stream_facts", group_id=self._group_id):
            fact = with_lists(row["fact"], row["subject_id"], row["object_id"])
            yield ExportedVersion(
                subject_id=row["subject_id"],
                object_id=row["object_id"],
                properties=_exported("Fact", fact),
                vector=row["vector"],
            )
        keys = await self._list_record_keys()
        async for record in self._records(keys):
            yield record
        for link in await self._list_links(keys):
            yield link

    async def count_current_facts(self, now: datetime) -> int:
        """Return the number of believed memories that are valid at `now` or later."""
        return int(await self._transaction.fetch_value("export.count_current_facts", group_id=self._group_id, now=now))

    async def current_facts(self, now: datetime) -> AsyncIterator[tuple[Fact, dict[str, EntityRef], list[str]]]:
        """Yield the believed memories that are valid at `now` or later, oldest first.

        Each comes with the entities it refers to, by id, and the ids of those that stand for the user.
        """
        async for row in self._transaction.stream("export.stream_current_facts", group_id=self._group_id, now=now):
            refs = {key: EntityRef(id=key, name=name, type=kind) for key, name, kind, _ in row["entities"]}
            yield fact_from_row(row), refs, [key for key, _, _, is_user in row["entities"] if is_user]

    async def _list_record_keys(self) -> dict[str, str]:
        """Return the key of every record by element id, in export order."""
        rows = await self._transaction.run("export.list_record_keys", group_id=self._group_id)
        rows.sort(key=lambda row: (row["labels"], row["key"]))
        return {row["element_id"]: row["key"] for row in rows}

    async def _records(self, keys: Mapping[str, str]) -> AsyncIterator[ExportedRecord]:
        element_ids = list(keys)
        for start in range(0, len(element_ids), BATCH_SIZE):
            part = element_ids[start : start + BATCH_SIZE]
            for row in await self._transaction.run("export.fetch_records", element_ids=part):
                [label] = row["labels"]
                properties = _exported(label, row["properties"])
                record = {"key": keys[row["element_id"]], "labels": [label], "properties": properties}
                yield ENTRY_TYPES["records"].validate_python(record)

    async def _list_links(self, keys: Mapping[str, str]) -> list[ExportedLink]:
        rows = await self._transaction.run("export.list_links", group_id=self._group_id)
        links = [
            ExportedLink(
                type=row["type"],
                start=keys[row["start"]],
                end=keys.get(row["end"], row["end_uuid"]),
                properties=_exported("Link", row["properties"]),
            )
            for row in rows
        ]
        return sorted(links, key=lambda link: (link.type, link.start, link.end))


def _exported(label: str, stored: Row) -> dict[str, Any]:
    """Return the exported properties by name, with empty lists added, which are not stored."""
    given = {name: value for name, value in stored.items() if name not in _UNEXPORTED_PROPERTIES and value is not None}
    return {**{name: [] for name in REQUIRED_LISTS[label]}, **given}


class ExportWriter:
    """Writes an export entry by entry, as JSON or as the equivalent YAML."""

    def __init__(self, format: ExportFormat, head: ExportHead) -> None:
        """Write everything before the entries."""
        self._json = format == "json"
        text = head.model_dump_json()[:-1] if self._json else to_yaml(head.model_dump(mode="json"))
        self._chunks = [text]
        self._size = len(text)
        self._remaining_sections = list(EXPORT_SECTIONS)
        self._current_section: Section | None = None

    def add(self, entry: ExportEntry) -> None:
        """Write an entry; entries come in the order of `EXPORT_SECTIONS`."""
        if entry.section != self._current_section:
            self._begin_section(entry.section)
        elif self._json:
            self._write(",")
        self._write(entry.model_dump_json() if self._json else to_yaml([entry.model_dump(mode="json")]))

    def end(self) -> None:
        """Write everything after the last entry."""
        self._end_section(before=None)
        self._write("}" if self._json else "")

    def drain(self, at_least: int = 0) -> bytes:
        """Return the UTF-8 text written since the last call; empty if it has fewer than `at_least` characters."""
        if self._size < at_least:
            return b""
        text = "".join(self._chunks)
        self._chunks, self._size = [], 0
        return text.encode()

    def _write(self, piece: str) -> None:
        self._chunks.append(piece)
        self._size += len(piece)

    def _begin_section(self, section: Section) -> None:
        self._end_section(before=section)
        self._write(f',"{section}":[' if self._json else f"{section}:\n")
        self._current_section = section

    def _end_section(self, before: Section | None) -> None:
        """End the current section, and write the ones up to `before` as empty lists."""
        if self._current_section and self._json:
            self._write("]")
        while self._remaining_sections:
            section = self._remaining_sections.pop(0)
            if section == before:
                return
            self._write(f',"{section}":[]' if self._json else f"{section}: []\n")


def to_yaml(value: Any) -> str:
    """Return a value of JSON types as YAML."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(value, Dumper=dumper, allow_unicode=True, sort_keys=False, width=10**6)
    return text


class RecordsWriter:
    """Writes a user's records as JSON, or as the equivalent YAML, indented for editing."""

    def __init__(self, format: ExportFormat, user_id: str) -> None:
        self._json = format == "json"
        self._is_empty = True
        head = {"format": RECORDS_FORMAT, "schema_version": RECORD_SCHEMA_VERSION, "user_id": user_id}
        self._head = json.dumps(head, ensure_ascii=False, indent=2)[:-2] if self._json else to_yaml(head)

    def start(self) -> str:
        """Return the text before the records."""
        return f'{self._head},\n  "records": [' if self._json else f"{self._head}records:"

    def write(self, record: dict[str, Any]) -> str:
        """Return the text of the next record."""
        is_first, self._is_empty = self._is_empty, False
        if self._json:
            text = json.dumps(record, ensure_ascii=False, indent=2).replace("\n", "\n    ")
            return f"{'' if is_first else ','}\n    {text}"
        return ("\n" if is_first else "") + to_yaml([record])

    def end(self) -> str:
        """Return the text after the last record."""
        if self._json:
            return "]\n}\n" if self._is_empty else "\n  ]\n}\n"
        return " []\n" if self._is_empty else ""


PART_BYTES = 64 * 1024
"""Most bytes yielded at once."""

MAX_MEMORY_BYTES = 1024 * 1024
"""Most bytes kept in memory; more are written to disk."""


async def read_ahead(chunks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the bytes of a generator, which runs to its end however slowly the caller consumes them.

    Raises the generator's error after yielding everything before it, and Unavailable if the temporary file cannot be
    written.
    """
    with tempfile.SpooledTemporaryFile(MAX_MEMORY_BYTES) as file:
        progressed = asyncio.Event()

        async def fill() -> None:
            async with aclosing(chunks):
                async for chunk in chunks:
                    file.seek(0, os.SEEK_END)
                    try:
                        file.write(chunk)
                    except OSError as error:
                        raise Unavailable("The temporary folder cannot be written: free space there.") from error
                    progressed.set()

        filling = asyncio.create_task(fill())
        filling.add_done_callback(lambda _: progressed.set())
        position = 0
        try:
            while True:
                is_complete = filling.done()
                file.seek(position)
                if part := file.read(PART_BYTES):
                    position += len(part)
                    yield part
                elif is_complete:
                    filling.result()
                    return
                else:
                    await progressed.wait()
                    progressed.clear()
        finally:
            filling.cancel()
            await asyncio.gather(filling, return_exceptions=True)


CHUNK_CHARS = 64 * 1024
"""Characters per part of an export."""


class ExportService:
    """Exports users."""

    def __init__(self, store: ExportStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def stream(
        self, owner: Owner, format: ExportFormat = "json", *, progress: ProgressCallback = ignore_progress
    ) -> AsyncGenerator[bytes]:
        """Yield all data of a user as of one moment, including history and vectors, while reading.

        The user's writes wait until everything has been read, which does not depend on the caller's speed. Links do not
        count as progress: their number is unknown until the end.
        """
        async with aclosing(read_ahead(self._read(owner, format, progress))) as parts:
            async for part in parts:
                yield part

    async def _read(self, owner: Owner, format: ExportFormat, progress: ProgressCallback) -> AsyncGenerator[bytes]:
        async with self._store.open(owner) as stored:
            counter = ProgressCounter(progress, await stored.count_entries())
            head = ExportHead(user_id=owner.entity_name, embedding=stored.embedding, user=await stored.get_properties())
            writer = ExportWriter(format, head)
            async for entry in stored.entries():
                writer.add(entry)
                counter.add(0 if isinstance(entry, ExportedLink) else 1)
                if chunk := writer.drain(CHUNK_CHARS):
                    yield chunk
            writer.end()
            yield writer.drain()

    async def stream_records(
        self, owner: Owner, format: ExportFormat = "json", *, progress: ProgressCallback = ignore_progress
    ) -> AsyncGenerator[bytes]:
        """Yield a user's current memories as records, in the order of their first versions.

        The user's writes wait until all of them have been read.
        """
        async with aclosing(read_ahead(self._read_records(owner, format, progress))) as parts:
            async for part in parts:
                yield part

    async def _read_records(
        self, owner: Owner, format: ExportFormat, progress: ProgressCallback
    ) -> AsyncGenerator[bytes]:
        writer = RecordsWriter(format, owner.entity_name)
        text = writer.start()
        async with self._store.open(owner) as stored:
            counter = ProgressCounter(progress, await stored.count_current_facts(self._clock()))
            async for fact, refs, own_entity_ids in stored.current_facts(self._clock()):
                text += writer.write(record_from_fact(fact, refs, own_entity_ids))
                counter.add(1)
                if len(text) >= CHUNK_CHARS:
                    yield text.encode()
                    text = ""
            yield (text + writer.end()).encode()

    async def export(self, owner: Owner, format: ExportFormat = "json", view: ExportView = "full") -> bytes:
        """Return all data of a user, including history and vectors, or their current memories as records."""
        chunks = self.stream_view(owner, format, view)
        return b"".join([chunk async for chunk in chunks])

    def stream_view(
        self,
        owner: Owner,
        format: ExportFormat = "json",
        view: ExportView = "full",
        *,
        progress: ProgressCallback = ignore_progress,
    ) -> AsyncGenerator[bytes]:
        """Yield one view of a user: see `stream` and `stream_records`."""
        read = self.stream_records if view == "records" else self.stream
        return read(owner, format, progress=progress)
