"""Whole users: everything out, everything back in, everything gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Literal

from graphmem.domain.export import (
    EXPORT_SECTIONS,
    EmbeddingInfo,
    ErasureResult,
    ExportWriter,
    ImportResult,
    UserExport,
    parse_export,
)
from graphmem.domain.formats.document import ImportFormat, parse_document
from graphmem.domain.identity import Owner
from graphmem.domain.progress import ProgressCallback, ProgressCounter, ignore_progress
from graphmem.domain.session import embedding_text
from graphmem.embedding import Embedder
from graphmem.service.importing import Importer
from graphmem.store.driver import Graph, Transaction
from graphmem.store.transfer import BATCH_SIZE, VECTOR_PROPERTIES, TransferStore

CHUNK_CHARS = 64 * 1024
"""Characters of an export that are passed on at a time."""

VectorSetter = Callable[[list[float]], None]
"""Keeps the vector of a text."""

UserEraser = Callable[[Transaction, Owner], Awaitable[dict[str, int]]]
"""What another room erases of a user within the same transaction, counted by kind."""


class TransferService:
    """The verbs of whole users; `forget_jobs` erases the job store's payloads."""

    def __init__(
        self,
        store: TransferStore,
        graph: Graph,
        embedder: Embedder,
        importer: Importer,
        user_erasers: Sequence[UserEraser],
        forget_jobs: Callable[[str], Awaitable[int]] | None,
    ) -> None:
        self._store = store
        self._graph = graph
        self._embedder = embedder
        self._importer = importer
        self._user_erasers = user_erasers
        self._forget_jobs = forget_jobs

    async def stream_export(
        self, owner: Owner, format: Literal["json", "yaml"] = "json", *, progress: ProgressCallback = ignore_progress
    ) -> AsyncIterator[bytes]:
        """Yield everything of a user, history and vectors included, while it is read."""
        tally = ProgressCounter(progress, 0)
        text: ExportWriter | None = None
        async for section, entry in self._store.stream_entries(owner):
            if section == "size":
                tally = ProgressCounter(progress, entry)
            elif section == "user":
                text = ExportWriter(format, UserExport(user_id=owner.user_id, embedding=self._embedding, user=entry))
            elif text is not None:
                text.add(section, entry)
                tally.add(section != "links")
                if chunk := text.drain(CHUNK_CHARS):
                    yield chunk
        if text is not None:
            text.end()
            yield text.drain()

    async def export(self, owner: Owner, format: Literal["json", "yaml"] = "json") -> bytes:
        """Return everything of a user, history and vectors included."""
        return b"".join([chunk async for chunk in self.stream_export(owner, format)])

    async def import_(
        self,
        owner: Owner,
        raw: bytes,
        *,
        source_format: ImportFormat = ImportFormat.AUTO,
        actor: str | None = None,
        progress: ProgressCallback = ignore_progress,
    ) -> ImportResult:
        """Read an export of graphmem back losslessly, or take what one of another memory or a chat log holds.

        Raises InvalidInput for what is not of the format `source_format`, or of any with `auto`.
        """
        source_format, document = await asyncio.to_thread(parse_document, raw, source_format)
        return await self.import_parsed(owner, source_format, document, actor=actor, progress=progress)

    async def import_parsed(
        self,
        owner: Owner,
        source_format: ImportFormat,
        document: Any,
        *,
        actor: str | None = None,
        progress: ProgressCallback = ignore_progress,
    ) -> ImportResult:
        """Import a document that has been read: vectors of another model are made anew, ids stay when they are free."""
        if source_format is not ImportFormat.GRAPHMEM:
            return await self._importer.import_document(owner, source_format, document, actor=actor, progress=progress)
        export = await asyncio.to_thread(parse_export, document)
        remade = export.embedding != self._embedding
        entries = sum(len(getattr(export, section)) for section in EXPORT_SECTIONS)
        vectors = _texts_with_vectors(export) if remade else []
        tally = ProgressCounter(progress, entries + len(vectors))
        await self._reembed(vectors, tally)
        return await self._store.import_export(owner, export, remade, tally)

    async def forget(self, owner: Owner) -> ErasureResult:
        """Erase everything of a user everywhere, then count what is left."""
        jobs = await self._forget_jobs(owner.group_id) if self._forget_jobs else 0

        async def work(transaction: Transaction) -> dict[str, int]:
            erased: dict[str, int] = {}
            for erase in self._user_erasers:
                erased |= await erase(transaction, owner)
            return erased | await self._store.erase_user(transaction, owner)

        erased = await self._graph.write(work)
        return ErasureResult(erased={**erased, "Job": jobs}, residue=await self._store.count_residue(owner))

    @property
    def _embedding(self) -> EmbeddingInfo:
        return EmbeddingInfo(model=self._embedder.model, dimension=self._embedder.dimension)

    async def _reembed(self, vectors: list[tuple[str, VectorSetter]], tally: ProgressCounter) -> None:
        for start in range(0, len(vectors), BATCH_SIZE):
            part = vectors[start : start + BATCH_SIZE]
            for (_, keep), vector in zip(part, await self._embedder.embed([text for text, _ in part]), strict=True):
                keep(vector)
            tally.add(len(part))


def _texts_with_vectors(export: UserExport) -> list[tuple[str, VectorSetter]]:
    """Return every text of an export that has a vector, with what keeps a new one."""
    facts = [each for each in export.memories if isinstance(each.properties.get("fact"), str)]
    found: list[tuple[str, VectorSetter]] = [
        (each.properties["fact"], partial(setattr, each, "vector")) for each in facts
    ]
    for label, name in VECTOR_PROPERTIES.items():
        nodes = [each.properties for each in (*export.entities, *export.records) if label in each.labels]
        found += [(_embedding_text_of_node(label, each), partial(each.__setitem__, name)) for each in nodes]
    return found


def _embedding_text_of_node(label: str, properties: dict[str, Any]) -> str:
    if label == "Entity":
        return str(properties.get("name", ""))
    return embedding_text(properties.get("speaker"), str(properties.get("content", "")))
