"""Starting, sharing, stopping and recovering the embedded server, with a real one."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sqlite3
import stat
import sys
import time
from asyncio.subprocess import PIPE, Process
from contextlib import closing, suppress
from pathlib import Path
from typing import LiteralString, cast

import psutil
import pytest
from neo4j import AsyncGraphDatabase

import graphmem
from graphmem.cli.doctor_checks import CheckStatus, run_checks
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.embedded.home import Neo4jHome, ServerInfo
from graphmem.neo4j.embedded.server import EmbeddedNeo4j, find_server, stop_server
from graphmem.runtime.errors import ConfigurationError, DatabaseUnavailable, InvalidInput
from graphmem.runtime.files import wait_until
from graphmem.runtime.progress import StartProgress
from graphmem.runtime.settings import Settings
from graphmem.user_data.backup import create_backup, restore_backup
from tests.neo4j import use_server

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(900)]
CACHE = Settings().cache_dir
ROOT = Path(graphmem.__file__).parents[1]


async def start_user_process(data_dir: Path) -> Process:
    """Start a process that uses the server of `data_dir`."""
    command = [sys.executable, use_server.__file__, str(data_dir), str(CACHE)]
    return await asyncio.create_subprocess_exec(*command, stdout=PIPE, env=os.environ | {"PYTHONPATH": str(ROOT)})


async def server_pid(user: Process) -> int:
    assert user.stdout
    return int(await user.stdout.readline())


async def kill(user: Process) -> None:
    user.kill()
    await user.wait()


async def run(info: ServerInfo, query: LiteralString) -> list[list[object]]:
    async with AsyncGraphDatabase.driver(info.uri, auth=(info.user, info.password)) as driver:
        result = await driver.execute_query(query)
        return [record.values() for record in result.records]


async def test_server_is_shared_and_stops_with_its_last_user(tmp_path: Path) -> None:
    """One server goes through most of what may happen to it: a start takes seconds of every core."""
    users = [await start_user_process(tmp_path) for _ in range(2)]
    pids = [await server_pid(user) for user in users]
    assert pids[0] == pids[1], "two processes that start at once share one server"

    server = await EmbeddedNeo4j.start_or_join(tmp_path, CACHE)
    assert server.info.pid == pids[0]
    assert await find_server(tmp_path) == server.info
    assert stat.S_IMODE(server.info.password_file.stat().st_mode) == 0o600
    assert server.info.password not in repr(server.info)
    assert await run(server.info, "CREATE (n:Item {word: 'yes'}) RETURN n.word") == [["yes"]]

    for user in users:
        await kill(user)
    assert await run(server.info, "MATCH (n:Item) RETURN n.word") == [["yes"]], (
        "the server outlives the process that started it"
    )
    await check_restarts(server)
    restored = tmp_path / "restored"
    await check_backup_while_in_use(server, tmp_path / "backup", restored)

    last = await start_user_process(tmp_path)
    pid = await server_pid(last)
    await server.stop()
    assert await find_server(tmp_path) is not None, "another process still uses it"
    await kill(last)
    again = await start_user_process(tmp_path)
    assert await server_pid(again) == pid, "one that is started after a crash joins the running server"
    await kill(again)
    await wait_until(lambda: Neo4jHome.in_data_dir(tmp_path).run_files.server_process() is None)
    assert await find_server(tmp_path) is None, "it stops after its last user, even a killed one"

    await check_detached_restart_and_password(restored)


async def check_restarts(server: EmbeddedNeo4j) -> None:
    data_dir = server.info.home.parent
    files = Neo4jHome.in_data_dir(data_dir).run_files
    eventually_consistent = "OPTIONS {indexConfig: {`fulltext.eventually_consistent`: true}}"
    await run(server.info, f"CREATE FULLTEXT INDEX words FOR (n:Note) ON EACH [n.word] {eventually_consistent}")
    await run(server.info, "CALL db.awaitIndexes(60)")
    for number in range(10):
        await run(server.info, cast("LiteralString", f"CREATE (:Note {{word: 'echo{number}'}})"))
    graph = Graph(server.info.uri, server.info.user, server.info.password, is_running=server.is_running)
    os.kill(server.info.pid, signal.SIGKILL)
    with pytest.raises(DatabaseUnavailable):
        await graph.verify_connectivity()
    await wait_until_answering(graph)
    state = files.read_state()
    assert state is not None
    assert state.pid != server.info.pid, "the server was started again"
    joined = await EmbeddedNeo4j.start_or_join(data_dir, CACHE)
    assert joined.info.uri == server.info.uri, "on the same port"
    await joined.stop()
    found = await run(server.info, "CALL db.index.fulltext.queryNodes('words', 'echo*') YIELD node RETURN count(*)")
    assert found == [[10]], "after a crash, eventually consistent full text contains what was written before it"
    await graph.close()


@pytest.mark.long
async def test_a_server_whose_supervisor_or_transaction_log_fails_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmem.neo4j.embedded.server._CHECKS_OF_DATABASE", 1)
    server = await EmbeddedNeo4j.start_or_join(tmp_path, CACHE)
    await run(server.info, "CREATE (n:Item {word: 'yes'})")
    files = Neo4jHome.in_data_dir(tmp_path).run_files
    graph = Graph(server.info.uri, server.info.user, server.info.password, is_running=server.is_running)
    await check_frozen_server(graph, server.info.pid)
    state = files.read_state()
    assert state is not None
    os.kill(state.supervisor, signal.SIGKILL)
    os.kill(state.pid, signal.SIGKILL)
    await wait_until(lambda: files.server_process() is None)
    await wait_until_answering(graph)
    assert files.supervisor_process() is not None, "a process that uses the server has started another supervisor"
    await check_restart_of_failed_database(graph, server)
    await graph.close()
    await server.stop()


async def check_restart_of_failed_database(graph: Graph, server: EmbeddedNeo4j) -> None:
    """Let the transaction log fail to grow, as on a full disk, after which Neo4j refuses every transaction."""
    process = Neo4jHome.in_data_dir(server.info.home.parent).run_files.server_process()
    assert process is not None
    process.rlimit(psutil.RLIMIT_FSIZE, (1, psutil.RLIM_INFINITY))
    with pytest.raises(DatabaseUnavailable):
        await graph.write(lambda transaction: transaction.run_text("CREATE (n:Item {word: 'lost'})"))
    async with asyncio.timeout(60):
        while process.is_running():  # noqa: ASYNC110 - another process ends it
            await asyncio.sleep(0.1)
    await wait_until_answering(graph)
    assert await run(server.info, "MATCH (n:Item) RETURN n.word") == [["yes"]], "it accepts transactions again"


async def check_frozen_server(graph: Graph, pid: int) -> None:
    await graph.verify_connectivity()
    os.kill(pid, signal.SIGSTOP)
    try:
        started = time.monotonic()
        with pytest.raises(DatabaseUnavailable, match="does not answer"):
            await graph.verify_connectivity()
        assert time.monotonic() - started < 30, "5 seconds on a machine that is not busy"
    finally:
        os.kill(pid, signal.SIGCONT)
    await wait_until_answering(graph)


async def wait_until_answering(graph: Graph) -> None:
    async with asyncio.timeout(60):
        while True:
            with suppress(DatabaseUnavailable):
                return await graph.verify_connectivity()
            await asyncio.sleep(0.1)


async def check_backup_while_in_use(server: EmbeddedNeo4j, file: Path, restored: Path) -> None:
    """Back up a folder whose server is in use, and restore the backup; it is started by the next check."""
    settings = Settings(data_dir=server.info.home.parent, cache_dir=CACHE)
    with closing(sqlite3.connect(settings.data_dir / "jobs.sqlite")) as jobs:
        jobs.executescript("PRAGMA journal_mode=WAL; CREATE TABLE job (id); INSERT INTO job VALUES ('j1');")
        made = await create_backup(settings, file, "1")
        assert await run(server.info, "MATCH (n:Item) RETURN n.word") == [["yes"]], "it runs again, where it ran"
        with pytest.raises(InvalidInput, match="exists"):
            await create_backup(settings, file, "1")
    assert made.has_jobs
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600

    with pytest.raises(InvalidInput, match="holds data"):
        await restore_backup(settings, file)
    await restore_backup(Settings(data_dir=restored, cache_dir=CACHE), file)
    with closing(sqlite3.connect(restored / "jobs.sqlite")) as jobs:
        assert jobs.execute("SELECT id FROM job").fetchall() == [("j1",)], "with what is still in SQLite's log"


async def check_detached_restart_and_password(data_dir: Path) -> None:
    async with await EmbeddedNeo4j.start_or_join(data_dir, CACHE, detached=True) as server:
        info = server.info
        assert await run(info, "MATCH (n:Item) RETURN n.word") == [["yes"]], "data and password are kept"
    assert info.detached
    assert await find_server(data_dir) == info, "a detached server runs without users"

    supervisor = Neo4jHome.in_data_dir(data_dir).run_files.supervisor_process()
    assert supervisor is not None
    supervisor.send_signal(signal.SIGKILL)
    await wait_until(lambda: Neo4jHome.in_data_dir(data_dir).run_files.supervisor_process() is None)
    async with await EmbeddedNeo4j.start_or_join(data_dir, CACHE) as server:
        assert server.info == info, "a server without a supervisor is adopted"
    assert Neo4jHome.in_data_dir(data_dir).run_files.supervisor_process() is not None

    password = info.password_file.read_text()
    info.password_file.write_text("another")
    with pytest.raises(ConfigurationError, match="does not open the Neo4j data"):
        await EmbeddedNeo4j.start_or_join(data_dir, CACHE)
    info.password_file.write_text(password)

    assert await stop_server(data_dir)
    assert await find_server(data_dir) is None
    assert not await stop_server(data_dir)
    info.password_file.unlink()
    with pytest.raises(ConfigurationError, match=r"password of the Neo4j data .* is missing"):
        await EmbeddedNeo4j.start_or_join(data_dir, CACHE)


@pytest.mark.parametrize("setting", ["bolt_port", "http_port"])
async def test_port_in_use_is_reported_with_its_setting(tmp_path: Path, setting: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"Port {port} is in use.* GRAPHMEM_{setting.upper()}"):
            await EmbeddedNeo4j.start_or_join(tmp_path, CACHE, **{setting: port})
    assert await find_server(tmp_path) is None


async def test_server_that_fails_to_start_is_reported_with_its_log(tmp_path: Path) -> None:
    home = Neo4jHome.in_data_dir(tmp_path)
    home.create_folders()
    (home.path / "data").touch()
    with pytest.raises(ConfigurationError, match=r"FileAlreadyExistsException.*neo4j\.log") as refusal:
        await EmbeddedNeo4j.start_or_join(tmp_path, CACHE)
    assert "\n" not in refusal.value.detail
    assert await find_server(tmp_path) is None


async def test_start_waits_while_the_process_lives_and_fails_at_once_when_it_ends(tmp_path: Path) -> None:
    files = Neo4jHome.in_data_dir(tmp_path).run_files
    told: list[str] = []
    start = asyncio.create_task(EmbeddedNeo4j.start_or_join(tmp_path, CACHE, progress=StartProgress(told.append)))
    async with asyncio.timeout(120):
        while not (process := files.server_process()):  # noqa: ASYNC110 - another process starts it
            await asyncio.sleep(0.02)
        process.suspend()
        assert await find_server(tmp_path) is None
        checks = {
            check.part: check async for check in run_checks(Settings(data_dir=tmp_path, http_port=0, bolt_port=0))
        }
        assert "has been starting for" in checks["Neo4j"].detail
        assert checks["Neo4j"].verdict is CheckStatus.NOTE
        while not told:  # noqa: ASYNC110 - a list tells nobody
            await asyncio.sleep(0.1)
        assert not start.done()
        assert str(tmp_path) in told[0]
        process.kill()
        with pytest.raises(
            ConfigurationError, match=r"ended while it started.*: see .*\.log, .* start it again"
        ) as refusal:
            await start
    assert "\n" not in refusal.value.detail


async def test_unusable_data_dir_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="GRAPHMEM_DATA_DIR"):
        await EmbeddedNeo4j.start_or_join(tmp_path / "file", CACHE)
