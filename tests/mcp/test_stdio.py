from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from graphmem.app.bootstrap import Services
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import MemoryIn
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner
from tests.forks import Fork, run_python, start_python
from tests.mcp.conftest import call_tool, call_tool_error, run_memory_lifecycle
from tests.model_server import ModelServer

SERVER_SCRIPT = "from graphmem.cli import main; main()"

NOISY_SCRIPT = """
import graphmem.app.bootstrap
quiet = graphmem.app.bootstrap.open_components
def noisy(*args, **options):
    print("noise", flush=True)
    return quiet(*args, **options)
graphmem.app.bootstrap.open_components = noisy
"""


def server_environment(database: Settings, models: ModelServer, folder: Path, **changes: str) -> dict[str, str]:
    assert database.neo4j_uri
    assert database.neo4j_password
    return {
        **os.environ,
        **models.environment,
        "GRAPHMEM_NEO4J_URI": database.neo4j_uri,
        "GRAPHMEM_NEO4J_USER": database.neo4j_user,
        "GRAPHMEM_NEO4J_PASSWORD": database.neo4j_password.get_secret_value(),
        "GRAPHMEM_DATA_DIR": str(folder),
        **changes,
    }


RELAY = 'exec 3<&0; cat <&3 >"$0/in" & exec cat "$0/out"'
"""A program of the shell that passes its input and output on to those of a server which is forked."""


@contextmanager
def forked_server(program: Sequence[str], env: dict[str, str], folder: Path) -> Iterator[tuple[Fork, str, list[str]]]:
    """Start a server with pipes for its input and output, and yield it with the command that is connected to it."""
    streams = folder / f"streams-{uuid.uuid4().hex}"
    streams.mkdir()
    for name in ("in", "out"):
        os.mkfifo(streams / name)
    server = start_python(program, env, folder, streams)
    try:
        yield server, "sh", ["-c", RELAY, str(streams)]
    finally:
        server.kill()


@asynccontextmanager
async def stdio_client(env: dict[str, str], folder: Path, *arguments: str) -> AsyncIterator[Client]:
    """A session with a server, which ends by itself when the session has ended."""
    with forked_server(["-c", SERVER_SCRIPT, *arguments], env, folder) as (server, command, options):
        async with Client(StdioServerParameters(command=command, args=options)) as client:
            yield client
        assert await asyncio.to_thread(server.wait, 30) == 0


def _arguments(tenant: str) -> list[str]:
    return ["mcp", "--user", "mara", "--tenant", tenant]


async def test_a_memory_saved_in_one_session_is_found_in_the_next_whose_output_is_only_the_protocol(
    database: Settings, models: ModelServer, tenant: str, tmp_path: Path
) -> None:
    env = server_environment(database, models, tmp_path)
    async with stdio_client(env, tmp_path, *_arguments(tenant)) as client:
        await run_memory_lifecycle(client)
        await call_tool(client, "save_memory", content="Mara is allergic to peanuts")

    noisy = ["-c", NOISY_SCRIPT + SERVER_SCRIPT, *_arguments(tenant)]
    with forked_server(noisy, env, tmp_path) as (server, command, options):
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(command, *options, stdin=pipe, stdout=pipe)
        answers = await _talk_by_hand(process)
        assert await asyncio.to_thread(server.wait, 30) == 0
        assert "noise" in await asyncio.to_thread(Path(options[-1], "err").read_text)
    assert [answer["id"] for answer in answers] == [1, 2, 3, None, 4, 5], "each line is answered"
    assert [answer["error"]["code"] for answer in answers[2:5]] == [-32700, -32700, -32600]
    found = json.loads(answers[1]["result"]["content"][0]["text"])["memories"]
    assert [memory["content"] for memory in found] == ["Mara is allergic to peanuts"]


async def _talk_by_hand(process: asyncio.subprocess.Process) -> list[dict[str, Any]]:
    """Write requests, batches and lines that are none, and return what is answered to all but the batches."""
    assert process.stdin
    assert process.stdout
    lone = '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x","arguments":{"q":"\\ud800"}}}'
    for message in (
        _jsonrpc_request(
            1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"}
        ),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        _jsonrpc_request(2, "tools/call", name="search_memory", arguments={"query": "what must she not eat?"}),
    ):
        process.stdin.write(json.dumps(message).encode() + b"\n")
    lines = [await process.stdout.readline(), await process.stdout.readline()]
    batch = json.dumps([_jsonrpc_request(7, "ping"), _jsonrpc_request(8, "ping")])
    process.stdin.write(batch.encode() + b"\n")
    refused = [json.loads(await process.stdout.readline()) for _ in range(2)]
    assert [answer["id"] for answer in refused] == [7, 8]
    assert "batch" in refused[0]["error"]["message"]
    for line in ("[]", "5", '"x"', "null"):
        process.stdin.write(line.encode() + b"\n")
        assert json.loads(await process.stdout.readline())["error"]["code"] == -32600, line
    for line in (lone, "junk", '{"jsonrpc":"2.0","id":4}', json.dumps(_jsonrpc_request(5, "tools/list"))):
        process.stdin.write(line.encode() + b"\n")
        lines.append(await process.stdout.readline())
    process.stdin.close()
    lines += (await process.stdout.read()).splitlines()
    await process.wait()
    return [json.loads(line) for line in lines]


async def test_a_server_for_a_model_that_does_not_speak_for_the_user_contests_what_it_says_otherwise(
    services: Services, database: Settings, models: ModelServer, tenant: str, tmp_path: Path
) -> None:
    home = {"predicate": "HAS_HOME", "single_valued": True, "content": "home: Lund"}
    await services.memories.save(Owner(tenant, "mara"), [MemoryIn(**home)])
    env = server_environment(database, models, tmp_path)
    async with stdio_client(env, tmp_path, *_arguments(tenant), "--as", "assistant") as client:
        saved = await call_tool(client, "update_memory", key="has home", value="Oslo")
    assert saved["action"] == "contest"
    (kept,) = (await services.memories.page(Owner(tenant, "mara"), ListFilters())).items
    assert kept.content == "home: Lund"


async def test_tools_report_an_unavailable_database(
    database: Settings, models: ModelServer, tenant: str, tmp_path: Path
) -> None:
    env = server_environment(database, models, tmp_path, GRAPHMEM_NEO4J_URI="bolt://127.0.0.1:9")
    async with stdio_client(env, tmp_path, *_arguments(tenant)) as client:
        assert 7 <= len((await client.list_tools()).tools) <= 8
        for _ in range(2):
            assert "Neo4j" in await call_tool_error(client, "search_memory", query="tea")


def _jsonrpc_request(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def test_an_invalid_user_id_ends_the_server(database: Settings, models: ModelServer, tmp_path: Path) -> None:
    env = server_environment(database, models, tmp_path)
    done = await asyncio.to_thread(run_python, ["-c", SERVER_SCRIPT, "mcp", "--user", " mara"], env, tmp_path)
    assert done.returncode in (1, 2)
    assert "user id" in done.stderr
