"""A database that does not answer: requests and checks fail soon and say so, and go on when it answers again."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from graphmem_api.app import create_app
from pydantic import SecretStr

from graphmem.app.bootstrap import Services
from graphmem.consolidation.maintenance import MAINTENANCE_JOB
from graphmem.consolidation.service import CONSOLIDATION_JOB
from graphmem.ingestion.jobs import EXTRACTION_JOB
from graphmem.jobs.job import JobStatus
from graphmem.jobs.kinds import JobKind
from graphmem.jobs.runner import JobRunner
from graphmem.models.embedder import Embedder
from graphmem.neo4j.availability import Availability, limit_database_time, remaining_database_time
from graphmem.neo4j.driver import Graph, Transaction, find_server
from graphmem.runtime.errors import DatabaseUnavailable
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner
from tests.api.conftest import serve_app
from tests.faults.proxy import Proxy, proxy_before

KEY = "key-" + uuid.uuid4().hex


@asynccontextmanager
async def serving(settings: Settings, embedder: Embedder) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the API with its first key."""
    settings = settings.model_copy(update={"admin_key": SecretStr(KEY)})
    async with (
        Services.open(settings, worker=False, embedder=embedder) as services,
        serve_app(create_app(services, settings)) as address,
        httpx.AsyncClient(base_url=address, timeout=60, headers={"Authorization": f"Bearer {KEY}"}) as client,
    ):
        yield client


@pytest.fixture
async def proxied(database: Settings, tmp_path: Path) -> AsyncIterator[tuple[Proxy, Settings]]:
    """A proxy before the database of the run, and settings that use it and a job store of their own."""
    assert database.neo4j_uri
    async with proxy_before(database.neo4j_uri) as (proxy, uri):
        yield proxy, database.model_copy(update={"neo4j_uri": uri, "data_dir": tmp_path / "data"})


def forbid_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on an operation that waits for the database waits longer than any client."""
    monkeypatch.setattr("graphmem.neo4j.availability.PATIENCE_SECONDS", 600.0)


async def test_frozen_database_is_answered_with_503_while_clients_wait_and_needs_no_restart(
    proxied: tuple[Proxy, Settings], graph: Graph, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, settings = proxied
    memories = f"/v1/users/mara-{uuid.uuid4().hex}/memories"
    async with serving(settings, embedder) as client:
        assert (await client.get("/readyz")).json()["parts"] == {"neo4j": "ok", "jobs": "ok", "disk": "ok"}
        assert (await client.get(memories)).status_code == 200
        proxy.freeze()
        reads = asyncio.ensure_future(client.get(memories))
        save = {"memories": [{"content": "Mara likes tea"}]}
        writes = asyncio.ensure_future(client.post(memories, json=save, headers={"Idempotency-Key": uuid.uuid4().hex}))
        ready = asyncio.ensure_future(client.get("/readyz"))
        maintains = asyncio.ensure_future(client.post("/v1/admin/maintenance", json={"tasks": ["decay"]}))
        for request in (ready, reads, writes, maintains):
            response = await request
            assert response.status_code == 503
            assert int(response.headers["Retry-After"]) > 0
            assert response.json()["title"] == "Unavailable"
        async with await JobRunner.open(settings) as jobs:
            assert await jobs.list(kind=MAINTENANCE_JOB) == [], "nothing is queued for a database that does not answer"
        forbid_waiting(monkeypatch)
        response = await client.get(memories)
        assert response.status_code == 503, "while the database is known to be silent, nobody waits for it"
        proxy.thaw()
        async with asyncio.timeout(60):
            while (await client.get(memories)).status_code != 200:  # noqa: ASYNC110 - the client only can ask
                await asyncio.sleep(0.1)
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.post(memories, json=save)).status_code == 200


async def test_server_that_has_not_opened_the_database_does_not_answer(database: Settings, graph: Graph) -> None:
    assert database.neo4j_uri
    assert database.neo4j_password
    password = database.neo4j_password.get_secret_value()
    closed = Graph(database.neo4j_uri, database.neo4j_user, password, database="not-open")
    try:
        with pytest.raises(DatabaseUnavailable):
            await closed.check_answering(3)
    finally:
        await closed.close()
    await graph.check_answering(60)


MESSAGES = {"session_id": "s1", "messages": [{"role": "user", "content": "I like tea"}], "wait": True}


async def test_requests_that_wait_for_a_job_do_not_wait_for_a_silent_database(
    proxied: tuple[Proxy, Settings], graph: Graph, embedder: Embedder, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, settings = proxied
    requests: list[tuple[JobKind[Any], str, dict[str, Any]]] = [
        (MAINTENANCE_JOB, "/v1/admin/maintenance", {"tasks": ["decay"]}),
        (CONSOLIDATION_JOB, "/v1/admin/consolidations", {"user_id": tenant, "wait": True}),
        (EXTRACTION_JOB, f"/v1/users/{tenant}/messages", MESSAGES),
    ]
    async with serving(settings, embedder) as client, await JobRunner.open(settings) as jobs:
        save = {"memories": [{"content": "Mara likes tea"}]}
        assert (await client.post(f"/v1/users/{tenant}/memories", json=save)).status_code == 200
        waiting = {}
        for kind, path, body in requests:
            request = asyncio.ensure_future(client.post(path, json=body))
            while not (queued := await jobs.list(kind=kind)):  # noqa: ASYNC110 - it polls a store
                await asyncio.sleep(0.05)
            waiting[queued[0].id] = request
        await asyncio.sleep(0.5)  # by now the last request waits
        proxy.freeze()
        for job_id, request in waiting.items():
            response = await request
            assert (response.status_code, response.json()["title"]) == (503, "Unavailable")
            assert int(response.headers["Retry-After"]) > 0
            assert job_id in response.json()["detail"]

        known = {job.id: job.status for job in await jobs.list()}
        assert {known[job_id] for job_id in waiting} == {JobStatus.QUEUED}
        forbid_waiting(monkeypatch)
        for _, path, body in requests:
            response = await client.post(path, json=body)
            assert response.status_code == 503, "while the database is known to be silent, nothing is queued"
        assert {job.id: job.status for job in await jobs.list()} == known
        proxy.thaw()
        async with asyncio.timeout(60):
            while (await client.delete(f"/v1/users/{tenant}")).status_code == 503:  # noqa: ASYNC110
                await asyncio.sleep(0.1)


async def test_slow_work_of_a_database_that_answers_is_not_cut_short(graph: Graph, owner: Owner) -> None:
    async with holding_lock(graph, owner):
        waiting = asyncio.create_task(graph.write(lambda transaction: lock(transaction, owner)))
        await asyncio.sleep(3)
        assert not waiting.done()
    await waiting


@asynccontextmanager
async def greeting_server() -> AsyncIterator[str]:
    """The address of a server that accepts connections and greets, and then is too busy for anything else."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(20)
        writer.write(bytes([0, 0, 4, 5]))
        await reader.read()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    try:
        yield f"bolt://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def test_slow_database_is_waited_for_until_it_is_slow_for_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("PATIENCE", 0.05), ("PROBE", 0.3), ("RECHECK", 0.02), ("SLOW", 1.5)):
        monkeypatch.setattr(f"graphmem.neo4j.availability.{name}_SECONDS", seconds)
    async with greeting_server() as uri:
        graph = Graph(uri, "neo4j", "password")
        await graph.check_server()
        started = time.monotonic()
        with pytest.raises(DatabaseUnavailable, match="does not answer"):
            await graph.verify_connectivity()
        assert time.monotonic() - started > 1.5
        await graph.close()


async def test_time_in_which_the_process_does_not_run_says_nothing_of_the_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("graphmem.neo4j.availability.PROBE_SECONDS", 0.5)

    async def answer_soon() -> None:
        await asyncio.sleep(0.15)

    availability = Availability(answer_soon, answer_soon)
    checking = asyncio.create_task(availability.check_server())
    await asyncio.sleep(0.05)
    time.sleep(1)  # noqa: ASYNC251 - as if the machine was busy
    await checking


@pytest.mark.parametrize("is_running", [True, False])
async def test_server_on_this_machine_is_there_while_its_process_runs(is_running: bool) -> None:
    silent = await asyncio.start_server(lambda reader, writer: asyncio.sleep(60), "127.0.0.1", 0)
    uri = f"bolt://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
    if is_running:
        await find_server(uri, lambda: True)
    else:
        with pytest.raises(DatabaseUnavailable):
            await find_server(uri, lambda: False)
    silent.close()
    with pytest.raises(ConnectionRefusedError):
        await find_server(uri, lambda: True)


async def test_database_that_answers_others_but_not_the_probe_is_overloaded_and_not_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, seconds in (("PATIENCE", 0.05), ("PROBE", 0.1), ("RECHECK", 0.02), ("PROGRESS", 0.2)):
        monkeypatch.setattr(f"graphmem.neo4j.availability.{name}_SECONDS", seconds)

    async def never() -> None:
        await asyncio.sleep(60)

    availability = Availability(never, never)

    async def work(seconds: float) -> None:
        async with availability.watch():
            await asyncio.sleep(seconds)

    slow = asyncio.create_task(work(1))
    while not slow.done():
        await work(0.02)
    await slow
    with pytest.raises(DatabaseUnavailable, match="does not answer"):
        await work(5)
    availability.close()


async def test_request_whose_database_work_takes_too_long_fails_with_its_limit(graph: Graph, owner: Owner) -> None:
    async with holding_lock(graph, owner):
        with limit_database_time(1), pytest.raises(DatabaseUnavailable, match="longer than 1 seconds"):
            await graph.write(lambda transaction: lock(transaction, owner))
        with limit_database_time(60):
            assert await graph.fetch("schema.get_embedding_model"), "other work goes on"


async def test_database_work_of_a_request_that_runs_at_once_counts_once() -> None:
    availability = Availability(lambda: asyncio.sleep(0), lambda: asyncio.sleep(0))

    async def work() -> None:
        async with availability.watch():
            await asyncio.sleep(0.2)

    with limit_database_time(60):
        started = time.monotonic()
        await asyncio.gather(*(work() for _ in range(10)))
        await asyncio.sleep(0.2)
        await work()
        lasted = time.monotonic() - started
        left = remaining_database_time()
    availability.close()
    assert left is not None
    assert 60 - lasted < left < 60 - 0.4, "neither ten times the wait for ten operations nor the pause counts"


async def lock(transaction: Transaction, owner: Owner) -> None:
    """Write to the node of a user."""
    await transaction.run_text("MERGE (u:User {group_id: $g}) SET u.locked = true", {"g": owner.group_id})


@asynccontextmanager
async def holding_lock(graph: Graph, owner: Owner) -> AsyncIterator[None]:
    """Hold the lock of a user's node in a transaction."""
    held, released = asyncio.Event(), asyncio.Event()

    async def hold(transaction: Transaction) -> None:
        await lock(transaction, owner)
        held.set()
        await released.wait()

    holder = asyncio.create_task(graph.write(hold))
    await held.wait()
    try:
        yield
    finally:
        released.set()
        await holder


async def test_not_ready_when_the_disk_has_too_little_space_and_no_path_is_shown(
    database: Settings, graph: Graph, embedder: Embedder, caplog: pytest.LogCaptureFixture
) -> None:
    settings = database.model_copy(update={"min_free_disk_mb": 10**9})
    async with serving(settings, embedder) as client:
        response = await client.get("/readyz")
    assert response.status_code == 503
    assert "GRAPHMEM_MIN_FREE_DISK_MB" in response.json()["detail"]
    assert os.sep + "tmp" not in response.text
    assert str(settings.data_dir) not in response.text
    assert str(settings.data_dir) in caplog.text
