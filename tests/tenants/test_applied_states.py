"""No cache holds what is read while a write of another process is being applied."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from graphmem.app.bootstrap import Services
from graphmem.context.models import ContextRequest
from graphmem.memories.memory import MemoryIn
from graphmem.neo4j.driver import Transaction
from graphmem.search.models import SearchQuery
from graphmem.tenants.owners import Owner

BEFORE, AFTER = "Mara lives in Lund", "Mara lives in Oslo"


async def _read_all(services: Services, owner: Owner) -> dict[str, set[str]]:
    """Return what each kind of read, all of which have a cache, tells of Mara."""
    found = await services.retrieval.search(
        owner, SearchQuery(query="Where does Mara live?", explain=True, reinforce=False)
    )
    context = await services.contexts.build(owner, ContextRequest())
    looked_up = await services.retrieval.lookup(owner, "Mara", reinforce=False)
    profile = await services.retrieval.load_profile(owner)
    assert all(hit.explain for hit in found.results)
    return {
        "search": {hit.memory.content for hit in found.results},
        "context": {memory.content for memory in context.memories},
        "lookup": {memory.content for known in looked_up.entities for memory in known.memories},
        "profile": {memory.content for memories in profile.memories.values() for memory in memories},
        "source": {hit.explain.source for hit in found.results if hit.explain},
    }


@asynccontextmanager
async def _being_applied(services: Services, owner: Owner) -> AsyncIterator[None]:
    """Have readers of the block see a write as Neo4j shows it while it applies it: its revision, not yet its changes.

    The lock is held all the time but for a moment between both parts, in which nothing else may be written: counted
    retrievals would be.
    """
    await services.retrieval.flush()
    graph = services.components.graph
    locked, may_go_on = asyncio.Event(), asyncio.Event()
    parameters = {"g": owner.group_id, "before": BEFORE, "after": AFTER}

    async def show_revision(transaction: Transaction) -> None:
        await transaction.run_text(
            "MATCH (u:User {group_id: $g}) SET u.revision = u.revision + 1, u.write_version = u.write_version + 1",
            parameters,
        )

    async def show_changes(transaction: Transaction) -> None:
        await transaction.run_text("MATCH (u:User {group_id: $g}) SET u.tenant = u.tenant", parameters)
        locked.set()
        await may_go_on.wait()
        await transaction.run_text(
            "MATCH (u:User {group_id: $g}) MATCH ()-[r:RELATES_TO {group_id: $g}]->() WHERE r.fact = $before "
            "SET r.fact = $after, r.revision = u.revision",
            parameters,
        )

    await graph.write(show_revision)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(graph.write(show_changes))
        await locked.wait()
        yield
        may_go_on.set()


async def test_no_cache_holds_what_is_read_while_a_write_is_applied(memory: Services, owner: Owner) -> None:
    stated = MemoryIn.model_validate({"content": BEFORE, "subject": {"name": "Mara"}, "scope": "profile"})
    await memory.memories.save(owner, [stated])
    kinds = ("search", "context", "lookup", "profile")
    async with asyncio.timeout(60):
        while "memory" not in (await _read_all(memory, owner))["source"]:
            pass  # the copy is loaded meanwhile
    async with _being_applied(memory, owner):
        for _ in range(2):
            during = await _read_all(memory, owner)
            assert {kind: during[kind] for kind in kinds} == {kind: {BEFORE} for kind in kinds}
    for _ in range(2):
        after = await _read_all(memory, owner)
        assert {kind: after[kind] for kind in kinds} == {kind: {AFTER} for kind in kinds}
    assert after["source"] == {"memory"}


async def test_reads_go_on_while_another_process_writes_for_long(memory: Services, owner: Owner) -> None:
    stated = MemoryIn.model_validate({"content": BEFORE, "subject": {"name": "Mara"}, "scope": "profile"})
    await memory.memories.save(owner, [stated])
    async with _being_applied(memory, owner), asyncio.timeout(60):
        for _ in range(3):
            assert (await _read_all(memory, owner))["search"] == {BEFORE}
