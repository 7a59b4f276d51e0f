"""Exporting a user."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from graphmem.domain.export.document import EmbeddingInfo, UserExport
from graphmem.domain.export.entries import ExportedLink
from graphmem.domain.export.writer import ExportWriter
from graphmem.domain.identity import Owner
from graphmem.domain.progress import ProgressCallback, ProgressCounter, ignore_progress
from graphmem.domain.requests import ExportFormat
from graphmem.embedding import Embedder
from graphmem.service.read_ahead import read_ahead
from graphmem.store.export import ExportStore

CHUNK_CHARS = 64 * 1024
"""Characters after which a part of an export is yielded."""


class ExportService:
    """Exports users."""

    def __init__(self, store: ExportStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder

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

    async def export(self, owner: Owner, format: ExportFormat = "json") -> bytes:
        """Return everything of a user, history and vectors included."""
        return b"".join([chunk async for chunk in self.stream(owner, format)])
