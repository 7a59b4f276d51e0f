"""Whole users: everything out, everything back in, everything gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Literal

from graphmem.domain.export import SECTIONS, Embedding, Export, ExportText, Forgotten, Imported, read_export
from graphmem.domain.formats.document import Format, read_document
from graphmem.domain.identity import Owner
from graphmem.domain.progress import Progress, Tally, no_progress
from graphmem.domain.session import spoken
from graphmem.embedding import Embedder
from graphmem.service.importing import Arrivals
from graphmem.store.driver import Graph, Transaction
from graphmem.store.transfer import BATCH, VECTORS, TransferStore

CHUNK = 64 * 1024
"""Characters of an export that are passed on at a time."""

Keep = Callable[[list[float]], None]
"""Keeps the vector of a text."""

Erasure = Callable[[Transaction, Owner], Awaitable[dict[str, int]]]
"""What another room erases of a user within the same transaction, counted by kind."""


class Transfer:
    """The verbs of whole users; `jobs_forget` erases the job store's payloads."""

    def __init__(
        self,
        store: TransferStore,
        graph: Graph,
        embedder: Embedder,
        arrivals: Arrivals,
        erasures: Sequence[Erasure],
        jobs_forget: Callable[[str], Awaitable[int]] | None,
    ) -> None:
        self._store = store
        self._graph = graph
        self._embedder = embedder
        self._arrivals = arrivals
        self._erasures = erasures
        self._jobs_forget = jobs_forget

    async def stream(
        self, owner: Owner, format: Literal["json", "yaml"] = "json", *, progress: Progress = no_progress
    ) -> AsyncIterator[bytes]:
        """Yield everything of a user, history and vectors included, while it is read."""
        tally = Tally(progress, 0)
        text: ExportText | None = None
        async for section, entry in self._store.entries(owner):
            if section == "size":
                tally = Tally(progress, entry)
            elif section == "user":
                text = ExportText(format, Export(user_id=owner.user_id, embedding=self._embedding, user=entry))
            elif text is not None:
                text.add(section, entry)
                tally.add(section != "links")
                if chunk := text.take(CHUNK):
                    yield chunk
        if text is not None:
            text.end()
            yield text.take()

    async def export(self, owner: Owner, format: Literal["json", "yaml"] = "json") -> bytes:
        """Return everything of a user, history and vectors included."""
        return b"".join([chunk async for chunk in self.stream(owner, format)])

    async def import_(
        self,
        owner: Owner,
        raw: bytes,
        *,
        form: Format = Format.AUTO,
        actor: str | None = None,
        progress: Progress = no_progress,
    ) -> Imported:
        """Read an export of graphmem back losslessly, or take what one of another memory or a chat log holds.

        Raises InvalidInput for what has not the form of `form`, or of any with `auto`.
        """
        form, document = await asyncio.to_thread(read_document, raw, form)
        return await self.take(owner, form, document, actor=actor, progress=progress)

    async def take(
        self, owner: Owner, form: Format, document: Any, *, actor: str | None = None, progress: Progress = no_progress
    ) -> Imported:
        """Import a document that has been read: vectors of another model are made anew, ids stay when they are free."""
        if form is not Format.GRAPHMEM:
            return await self._arrivals.bring(owner, form, document, actor=actor, progress=progress)
        export = await asyncio.to_thread(read_export, document)
        remade = export.embedding != self._embedding
        entries = sum(len(getattr(export, section)) for section in SECTIONS)
        vectors = _embedded(export) if remade else []
        tally = Tally(progress, entries + len(vectors))
        await self._remake(vectors, tally)
        return await self._store.import_(owner, export, remade, tally)

    async def forget(self, owner: Owner) -> Forgotten:
        """Erase everything of a user everywhere, then count what is left."""
        jobs = await self._jobs_forget(owner.group_id) if self._jobs_forget else 0

        async def work(transaction: Transaction) -> dict[str, int]:
            erased: dict[str, int] = {}
            for erase in self._erasures:
                erased |= await erase(transaction, owner)
            return erased | await self._store.forget(transaction, owner)

        erased = await self._graph.write(work)
        return Forgotten(erased={**erased, "Job": jobs}, residue=await self._store.residue(owner))

    @property
    def _embedding(self) -> Embedding:
        return Embedding(model=self._embedder.model, dimension=self._embedder.dimension)

    async def _remake(self, vectors: list[tuple[str, Keep]], tally: Tally) -> None:
        for start in range(0, len(vectors), BATCH):
            part = vectors[start : start + BATCH]
            for (_, keep), vector in zip(part, await self._embedder.embed([text for text, _ in part]), strict=True):
                keep(vector)
            tally.add(len(part))


def _embedded(export: Export) -> list[tuple[str, Keep]]:
    """Return every text of an export that has a vector, with what keeps a new one."""
    facts = [each for each in export.memories if isinstance(each.properties.get("fact"), str)]
    found: list[tuple[str, Keep]] = [(each.properties["fact"], partial(setattr, each, "vector")) for each in facts]
    for label, name in VECTORS.items():
        nodes = [each.properties for each in (*export.entities, *export.records) if label in each.labels]
        found += [(_embedded_text(label, each), partial(each.__setitem__, name)) for each in nodes]
    return found


def _embedded_text(label: str, properties: dict[str, Any]) -> str:
    if label == "Entity":
        return str(properties.get("name", ""))
    return spoken(properties.get("speaker"), str(properties.get("content", "")))
