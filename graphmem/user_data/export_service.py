"""Exporting a user."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from graphmem.models.embedder import Embedder
from graphmem.runtime.progress_domain import ProgressCallback, ProgressCounter, ignore_progress
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner
from graphmem.user_data.export import ExportStore
from graphmem.user_data.export_document import EmbeddingInfo, UserExport
from graphmem.user_data.export_entries import ExportedLink
from graphmem.user_data.export_writer import ExportWriter
from graphmem.user_data.read_ahead import read_ahead
from graphmem.user_data.records import record_from_fact
from graphmem.user_data.records_writer import RecordsWriter
from graphmem.user_data.req_user_data import ExportFormat, ExportView

CHUNK_CHARS = 64 * 1024
"""Characters after which a part of an export is yielded."""


class ExportService:
    """Exports users."""

    def __init__(self, store: ExportStore, embedder: Embedder, clock: Clock) -> None:
        self._store = store
        self._embedder = embedder
        self._clock = clock

    async def stream(
        self, owner: Owner, format: ExportFormat = "json", *, progress: ProgressCallback = ignore_progress
    ) -> AsyncIterator[bytes]:
        """Yield everything of a user as it is at one moment, history and vectors included, while it is read.

        The user's writes wait until all of it has been read, which takes as long for a slow caller as for a fast one.
        Links do not count as progress: their number is not known before the end.
        """
        async with aclosing(read_ahead(self._read(owner, format, progress))) as parts:
            async for part in parts:
                yield part

    async def _read(self, owner: Owner, format: ExportFormat, progress: ProgressCallback) -> AsyncGenerator[bytes]:
        embedding = EmbeddingInfo(model=self._embedder.model, dimension=self._embedder.dimension)
        async with self._store.open(owner) as stored:
            counter = ProgressCounter(progress, await stored.count_entries())
            head = UserExport(user_id=owner.user_id, embedding=embedding, user=await stored.get_properties())
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
    ) -> AsyncIterator[bytes]:
        """Yield the current memories of a user as records, in the order in which they were first written.

        The user's writes wait until all of them have been read.
        """
        async with aclosing(read_ahead(self._read_records(owner, format, progress))) as parts:
            async for part in parts:
                yield part

    async def _read_records(
        self, owner: Owner, format: ExportFormat, progress: ProgressCallback
    ) -> AsyncGenerator[bytes]:
        writer = RecordsWriter(format, owner.user_id)
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
        """Return everything of a user, history and vectors included, or their current memories as records."""
        chunks = self.stream_view(owner, format, view)
        return b"".join([chunk async for chunk in chunks])

    def stream_view(
        self,
        owner: Owner,
        format: ExportFormat = "json",
        view: ExportView = "full",
        *,
        progress: ProgressCallback = ignore_progress,
    ) -> AsyncIterator[bytes]:
        """Yield one view of a user: see `stream` and `stream_records`."""
        read = self.stream_records if view == "records" else self.stream
        return read(owner, format, progress=progress)
