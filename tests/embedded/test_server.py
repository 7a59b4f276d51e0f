"""Starting, sharing, stopping and recovering the embedded server, with a real one."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import sys
import time
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from pathlib import Path

import pytest
from neo4j import AsyncGraphDatabase

import graphmem
from graphmem.embedded.home import Neo4jHome, ServerInfo
from graphmem.embedded.server import EmbeddedNeo4j, find_server, stop_server
from graphmem.errors import ConfigurationError, DatabaseUnavailable
from graphmem.file_lock import wait_until
from graphmem.settings import Settings
from graphmem.store.driver import Graph
from tests.embedded import use_server

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(240)]
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


async def run(info: ServerInfo, query: str) -> list[list[object]]:
    async with AsyncGraphDatabase.driver(info.uri, auth=(info.user, info.password)) as driver:
        result = await driver.execute_query(query)
        return [record.values() for record in result.records]


async def test_server_is_shared_and_stops_with_its_last_user(tmp_path: Path) -> None:
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

    last = await start_user_process(tmp_path)
    assert await server_pid(last) == server.info.pid
    await server.stop()
    assert await find_server(tmp_path) is not None, "another process still uses it"
    await kill(last)
    await wait_until(lambda: Neo4jHome.in_data_dir(tmp_path).run_files.server_process() is None)
    assert await find_server(tmp_path) is None, "it stops after its last user, even a killed one"

    await check_restart_after_kill(tmp_path)
    await check_detached_restart_and_password(tmp_path)


async def check_restart_after_kill(data_dir: Path) -> None:
    files = Neo4jHome.in_data_dir(data_dir).run_files
    async with await EmbeddedNeo4j.start_or_join(data_dir, CACHE) as server:
        eventually_consistent = "OPTIONS {indexConfig: {`fulltext.eventually_consistent`: true}}"
        await run(server.info, f"CREATE FULLTEXT INDEX words FOR (n:Note) ON EACH [n.word] {eventually_consistent}")
        await run(server.info, "CALL db.awaitIndexes(60)")
        for number in range(50):
            await run(server.info, f"CREATE (:Note {{word: 'echo{number}'}})")
        graph = Graph(server.info.uri, server.info.user, server.info.password)
        await check_frozen_server(graph, server.info.pid)

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
        assert found == [[50]], "after a crash, eventually consistent full text contains what was written before it"

        os.kill(state.supervisor, signal.SIGKILL)
        os.kill(state.pid, signal.SIGKILL)
        await wait_until(lambda: files.server_process() is None)
        await wait_until_answering(graph)
        assert files.supervisor_process() is not None, "a process that uses the server has started another supervisor"
        await graph.close()


async def check_frozen_server(graph: Graph, pid: int) -> None:
    await graph.verify_connectivity()
    os.kill(pid, signal.SIGSTOP)
    try:
        started = time.monotonic()
        with pytest.raises(DatabaseUnavailable, match="does not answer"):
            await graph.verify_connectivity()
        assert time.monotonic() - started < 5.5
    finally:
        os.kill(pid, signal.SIGCONT)
    await wait_until_answering(graph)


async def wait_until_answering(graph: Graph) -> None:
    async with asyncio.timeout(60):
        while True:
            with suppress(DatabaseUnavailable):
                return await graph.verify_connectivity()
            await asyncio.sleep(0.1)


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


async def test_unusable_data_dir_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="GRAPHMEM_DATA_DIR"):
        await EmbeddedNeo4j.start_or_join(tmp_path / "file", CACHE)
