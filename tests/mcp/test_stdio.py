from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from graphmem.app.bootstrap import Services
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import MemoryIn
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner
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
        "PYTHONPATH": os.pathsep.join(sys.path),
        **changes,
    }


def server_parameters(tenant: str, env: dict[str, str], folder: Path, *more: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=["-c", SERVER_SCRIPT, *_arguments(tenant), *more], env=env, cwd=folder
    )


def _arguments(tenant: str) -> list[str]:
    return ["mcp", "--user", "mara", "--tenant", tenant]


async def test_a_memory_saved_in_one_session_is_found_in_the_next_whose_output_is_only_the_protocol(
    database: Settings, models: ModelServer, tenant: str, tmp_path: Path
) -> None:
    env = server_environment(database, models, tmp_path)
    async with Client(server_parameters(tenant, env, tmp_path)) as client:
        await run_memory_lifecycle(client)
        await call_tool(client, "save_memory", content="Mara is allergic to peanuts")

    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        NOISY_SCRIPT + SERVER_SCRIPT,
        *_arguments(tenant),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
        cwd=tmp_path,
    )
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
    answers = [json.loads(line) for line in lines]
    assert [answer["id"] for answer in answers] == [1, 2, 3, None, 4, 5], "each line is answered"
    assert [answer["error"]["code"] for answer in answers[2:5]] == [-32700, -32700, -32600]
    found = json.loads(answers[1]["result"]["content"][0]["text"])["memories"]
    assert [memory["content"] for memory in found] == ["Mara is allergic to peanuts"]
    assert process.returncode == 0


async def test_a_server_for_a_model_that_does_not_speak_for_the_user_contests_what_it_says_otherwise(
    services: Services, database: Settings, models: ModelServer, tenant: str, tmp_path: Path
) -> None:
    home = {"predicate": "HAS_HOME", "single_valued": True, "content": "home: Lund"}
    await services.memories.save(Owner(tenant, "mara"), [MemoryIn(**home)])
    env = server_environment(database, models, tmp_path)
    async with Client(server_parameters(tenant, env, tmp_path, "--as", "assistant")) as client:
        saved = await call_tool(client, "update_memory", key="has home", value="Oslo")
    assert saved["action"] == "contest"
    (kept,) = (await services.memories.page(Owner(tenant, "mara"), ListFilters())).items
    assert kept.content == "home: Lund"


async def test_tools_report_an_unavailable_database(
    database: Settings, models: ModelServer, tenant: str, tmp_path: Path
) -> None:
    env = server_environment(database, models, tmp_path, GRAPHMEM_NEO4J_URI="bolt://127.0.0.1:9")
    async with Client(server_parameters(tenant, env, tmp_path)) as client:
        assert 7 <= len((await client.list_tools()).tools) <= 8
        for _ in range(2):
            assert "Neo4j" in await call_tool_error(client, "search_memory", query="tea")


def _jsonrpc_request(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def test_an_invalid_user_id_ends_the_server(database: Settings, models: ModelServer, tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        SERVER_SCRIPT,
        "mcp",
        "--user",
        " mara",
        stderr=asyncio.subprocess.PIPE,
        env=server_environment(database, models, tmp_path),
        cwd=tmp_path,
    )
    _, stderr = await process.communicate()
    assert process.returncode in (1, 2)
    assert b"user id" in stderr
