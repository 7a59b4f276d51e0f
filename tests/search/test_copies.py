"""Which users are held in memory, and which are not."""

from __future__ import annotations

import asyncio
import time

import pytest

from graphmem.app.bootstrap import Services
from graphmem.memories.filters import FactFilters
from graphmem.memories.memory import MemoryIn
from graphmem.memories.vectors import StoredVectors
from graphmem.neo4j.driver import Graph
from graphmem.runtime.times import utc_now
from graphmem.search.resident import copies as resident_copies
from graphmem.search.resident.copies import SMALL, ResidentCopies
from graphmem.tenants.owners import Owner
from graphmem.tenants.rights import Rights
from graphmem.tenants.spaces import GroupState, ReadScope
from tests.search.sources import ask, open_copies, open_resident

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def patient_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let reads wait for a database that is slow because it was just started."""
    monkeypatch.setattr(resident_copies, "SMALL_LOAD_SECONDS", 60.0)


async def await_applied(graph: Graph, *owners: Owner) -> int:
    """Wait until what was written to users is applied in full; return the memory that a copy of the last one takes."""
    nbytes = 0
    for owner in owners:
        copies = open_copies(graph)
        await open_resident(copies, owner)
        nbytes = copies.nbytes
        await copies.close()
    return nbytes


def limited_copies(graph: Graph, max_bytes: int) -> ResidentCopies:
    return ResidentCopies(graph, StoredVectors(graph), Rights(graph), utc_now, max_bytes)


async def save_counted(memory: Services, owner: Owner, count: int) -> None:
    for start in range(0, count, 100):
        numbers = range(start, min(start + 100, count))
        await memory.memories.save(owner, [MemoryIn(content=f"Ticket {number} was sold") for number in numbers])


async def test_a_small_user_is_in_memory_at_the_first_read_after_a_write(
    memory: Services, graph: Graph, owner: Owner
) -> None:
    await memory.memories.save(owner, [MemoryIn(content="Ada lives in Turin")])
    await await_applied(graph, owner)
    copies = limited_copies(graph, 400_000_000)
    source = await copies.open(owner)
    assert source.name == "memory"
    assert [entity.name for entity in await source.list_entity_names(10)] == ["mara"]
    await memory.memories.save(owner, [MemoryIn(content="Ada rows on Sundays")])
    found = await (await copies.open(owner)).find_facts(ask(FactFilters(valid_at=utc_now()), 10, words=["rows"]))
    assert [fact.content for fact in found.facts] == ["Ada rows on Sundays"], "a later write is read too"
    await copies.close()


async def test_the_database_answers_for_a_larger_user_until_the_copy_is_loaded(
    memory: Services, graph: Graph, owner: Owner
) -> None:
    await save_counted(memory, owner, SMALL + 1)
    await await_applied(graph, owner)
    copies = limited_copies(graph, 400_000_000)
    assert (await copies.open(owner)).name == "database"
    await copies.finish_loading()
    source = await copies.open(owner)
    assert source.name == "memory"
    assert len(await source.find_facts(ask(FactFilters(valid_at=utc_now()), 1_000, words=["ticket"]))) == SMALL + 1
    await copies.close()


SECONDS = 8.0
"""How long a copy of a small group is waited for, here long enough for a machine that is busy."""


async def test_groups_are_waited_for_at_once_and_no_longer_than_until_one_has_no_copy(
    memory: Services, graph: Graph, owner: Owner, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident_copies, "SMALL_LOAD_SECONDS", SECONDS)
    states = []
    for number in range(4):
        space = Owner(tenant, f"group-{number}")
        await memory.memories.save(space, [MemoryIn(content="Ada lives in Turin")])
        states += [state for state in (await Rights(graph).get_state(space)).groups if state.group_id == space.group_id]
    states = [state._replace(pending=None) for state in states]

    async def time_read(groups: list[GroupState]) -> float:
        """How long a read takes while copies of the groups are being loaded."""
        copies = limited_copies(graph, 400_000_000)
        for state in groups:
            loading = asyncio.create_task(asyncio.sleep(60))
            copies._loads[state.group_id] = resident_copies._Load(loading, asyncio.get_running_loop().create_future())
        start = time.monotonic()
        assert (await copies.open(ReadScope(owner, states=tuple(groups)))).name == "database"
        taken = time.monotonic() - start
        await copies.close()
        return taken

    assert await time_read(states) < 3 * SECONDS, "each alone is waited for so long"
    is_read_first = states[-1]._replace(last_write_at=None)
    assert await time_read([*states[:-1], is_read_first]) < SECONDS


async def test_users_who_do_not_fit_together_are_not_loaded_in_turns(
    memory: Services, graph: Graph, tenant: str
) -> None:
    owners = [Owner(tenant, f"user-{number}") for number in range(6)]
    for owner in owners:
        await save_counted(memory, owner, 2 * SMALL)
    needed = await await_applied(graph, *owners)
    copies = limited_copies(graph, int(4.5 * needed))  # one user may take a quarter
    sources = []
    for _ in range(3):
        names = []
        for owner in owners:
            names.append((await copies.open(owner)).name)
            await copies.finish_loading()
        sources.append(names)
    in_memory = ["memory"] * 4 + ["database"] * 2
    assert sources == [["database"] * 6, in_memory, in_memory], "who is in memory and read stays there"
    await copies.close()
