"""A worker is killed in each step of a move: another one goes on, and nothing that was acknowledged is lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graphmem.app.bootstrap import Services
from graphmem.graph_memory import GraphMemory
from graphmem.memories.memory import Memory
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph
from graphmem.runtime.settings import Settings
from tests.forks import Fork, start_script
from tests.placement.conftest import SECOND
from tests.placement.test_moves import count_nodes

WORKER = Path(__file__).with_name("move_worker.py")


@contextmanager
def worker(settings: Settings, *death: str) -> Iterator[Fork]:
    given = {
        "neo4j_uri": settings.neo4j_uri,
        "neo4j_user": settings.neo4j_user,
        "neo4j_password": settings.neo4j_password.get_secret_value() if settings.neo4j_password else None,
        "data_dir": str(settings.data_dir),
        "placements": {
            name: {"uri": address.uri, "user": address.user, "password": address.read_password(name)}
            for name, address in settings.placements.items()
        },
    }
    process = start_script(WORKER, json.dumps(given), *death)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
async def without_worker(
    settings: Settings, graph: Graph, embedder: Embedder, tmp_path: Path
) -> AsyncIterator[tuple[Services, Settings]]:
    """Services that leave the jobs to other processes, with a job store of their own."""
    own = settings.model_copy(update={"data_dir": tmp_path})
    async with Services.open(own, embedder=embedder, worker=False) as services:
        yield services, own


@pytest.mark.parametrize(
    ("query", "times"),
    [
        ("placements.take_gate", 1),
        ("moves.create_nodes", 1),
        ("placements.delete_changes", 1),
        ("placements.close_gate", 1),
        ("placements.leave", 1),
        ("placements.remove_gate", 1),
        ("moves.delete_nodes", 1),
    ],
)
@pytest.mark.parametrize("moves_user", [False, True], ids=["tenant", "user"])
async def test_a_move_whose_worker_is_killed_ends_in_another_one(
    without_worker: tuple[Services, Settings], tenant: str, query: str, times: int, moves_user: bool
) -> None:
    services, settings = without_worker
    placed = services.components.placed
    assert placed
    memory = GraphMemory(services, tenant)
    saved: set[str] = set()
    stop = asyncio.Event()

    async def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            [result] = await memory.add("mara", f"Mara has read book number {number}")
            assert result.memory is not None
            saved.add(result.memory.id)
            assert (await memory.memory("mara", result.memory.id)).id == result.memory.id
            await asyncio.sleep(0.05)

    writer = asyncio.create_task(write())
    try:
        await asyncio.sleep(0.5)
        job = await (memory.move_user("mara", SECOND) if moves_user else memory.move_tenant(SECOND))
        with worker(settings, query, str(times)) as killed:
            async with asyncio.timeout(60):
                while killed.poll() is None:  # noqa: ASYNC110 - a process
                    await asyncio.sleep(0.1)
        assert killed.returncode == -9
        with worker(settings):
            ended = await services.jobs.wait(job.id, 90)
    finally:
        stop.set()
        await writer

    assert ended.status == "succeeded", ended.error
    listed = await memory.placements()
    if moves_user:
        assert [(user.user_id, user.graph) for user in listed.users] == [("mara", SECOND)]
    else:
        assert [placement.graph for placement in listed.tenants if placement.tenant == tenant] == [SECOND]
    found = {item.id async for item in list_all(memory)}
    assert found == saved
    assert await count_nodes(placed.home, tenant) == {}


async def list_all(memory: GraphMemory) -> AsyncIterator[Memory]:
    cursor = None
    while True:
        page = await memory.memories("mara", limit=100, cursor=cursor)
        for item in page.items:
            yield item
        cursor = page.next_cursor
        if cursor is None:
            return
