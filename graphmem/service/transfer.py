"""Whole users: everything out, everything back in, everything gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from graphmem.domain.export import Embedding, Export, Forgotten, Imported, parse, render
from graphmem.domain.identity import Owner
from graphmem.domain.session import spoken
from graphmem.embedding import Embedder
from graphmem.store.driver import Graph, Transaction
from graphmem.store.transfer import VECTORS, TransferStore

Erasure = Callable[[Transaction, Owner], Awaitable[dict[str, int]]]
"""What another room erases of a user within the same transaction, counted by kind."""


class Transfer:
    """The verbs of whole users; `jobs_forget` erases the job store's payloads."""

    def __init__(
        self,
        store: TransferStore,
        graph: Graph,
        embedder: Embedder,
        erasures: Sequence[Erasure],
        jobs_forget: Callable[[str], Awaitable[int]] | None,
    ) -> None:
        self._store = store
        self._graph = graph
        self._embedder = embedder
        self._erasures = erasures
        self._jobs_forget = jobs_forget

    async def export(self, owner: Owner, format: Literal["json", "yaml"] = "json") -> bytes:
        """Return everything of a user, history and vectors included."""
        here = Embedding(model=self._embedder.model, dimension=self._embedder.dimension)
        return render(await self._store.export(owner, here), format)

    async def import_(self, owner: Owner, raw: bytes, *, actor: str | None = None) -> Imported:
        """Read an export back; vectors of another model are made anew, ids stay when they are free."""
        export = await asyncio.to_thread(parse, raw)
        here = Embedding(model=self._embedder.model, dimension=self._embedder.dimension)
        remade = export.embedding != here
        if remade:
            await self._remake_vectors(export)
        return await self._store.import_(owner, export, remade)

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

    async def _remake_vectors(self, export: Export) -> None:
        facts = [each for each in export.memories if isinstance(each.properties.get("fact"), str)]
        for version, vector in zip(
            facts, await self._embedder.embed([each.properties["fact"] for each in facts]), strict=True
        ):
            version.vector = vector
        for label, name in VECTORS.items():
            nodes = [each for each in (*export.entities, *export.records) if label in each.labels]
            texts = [_embedded_text(label, each.properties) for each in nodes]
            for node, vector in zip(nodes, await self._embedder.embed(texts), strict=True):
                node.properties[name] = vector


def _embedded_text(label: str, properties: dict[str, Any]) -> str:
    if label == "Entity":
        return str(properties.get("name", ""))
    return spoken(properties.get("speaker"), str(properties.get("content", "")))
