"""Reads and the users who are being forgotten: what this process has changed is seen by its next read."""

from __future__ import annotations

import asyncio

from graphmem.app.bootstrap import Services
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import MemoryIn
from graphmem.tenants.owners import Owner


async def test_what_is_saved_after_an_erasure_is_read_at_once_however_much_is_read_meanwhile(
    memory: Services, owner: Owner
) -> None:
    reading = True

    async def read_all_the_time() -> None:
        while reading:
            await memory.components.graph.vector_state(refresh=True)

    others = [asyncio.create_task(read_all_the_time()) for _ in range(4)]
    try:
        for n in range(4):
            await memory.memories.save(owner, [MemoryIn(content=f"likes tea number {n}")])
            await memory.forgetting.forget(owner)
            assert (await memory.memories.page(owner, ListFilters())).items == []
            await memory.memories.save(owner, [MemoryIn(content="likes coffee")])
            found = (await memory.memories.page(owner, ListFilters())).items
            assert [one.content for one in found] == ["likes coffee"]
    finally:
        reading = False
        await asyncio.gather(*others)
