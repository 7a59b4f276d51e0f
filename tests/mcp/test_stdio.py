from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from graphmem.settings import Settings
from tests.mcp.conftest import answer, keep_and_find, refused
from tests.model_server import ModelServer

SERVE = """
import asyncio, sys
from graphmem.logs import configure_logs
from graphmem.mcp import run_stdio
from graphmem.settings import Settings
configure_logs()
asyncio.run(run_stdio(Settings(), sys.argv[1], sys.argv[2]))
"""

NOISE = """
import graphmem.bootstrap
quiet = graphmem.bootstrap.open_parts
def noisy(*given, **options):
    print("noise", flush=True)
    return quiet(*given, **options)
graphmem.bootstrap.open_parts = noisy
"""


def environment(database: Settings, models: ModelServer, folder: Path, **changes: str) -> dict[str, str]:
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


def serving(tenant: str, env: dict[str, str], folder: Path) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=["-c", SERVE, "mara", tenant], env=env, cwd=folder)


async def test_what_one_session_keeps_the_next_one_finds(
    database: Settings, models: ModelServer, tenant: str, tmp_path: Path
) -> None:
    env = environment(database, models, tmp_path)
    async with Client(serving(tenant, env, tmp_path)) as client:
        await keep_and_find(client)
        await answer(client, "save_memory", content="Mara is allergic to peanuts")
    async with Client(serving(tenant, env, tmp_path)) as client:
        found = await answer(client, "search_memory", query="what must she not eat?")
    assert [each["content"] for each in found["memories"]] == ["Mara is allergic to peanuts"]


async def test_standard_output_carries_the_protocol_alone(
    database: Settings, models: ModelServer, tenant: str, tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        NOISE + SERVE,
        "mara",
        tenant,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(database, models, tmp_path),
        cwd=tmp_path,
    )
    assert process.stdin
    assert process.stdout
    for message in (
        _request(
            1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"}
        ),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        _request(2, "tools/call", name="save_memory", arguments={"content": "Mara likes oolong tea"}),
    ):
        process.stdin.write(json.dumps(message).encode() + b"\n")
    lines = [await process.stdout.readline(), await process.stdout.readline()]
    process.stdin.close()
    lines += (await process.stdout.read()).splitlines()
    await process.wait()
    answers = [json.loads(line) for line in lines]
    assert [each["id"] for each in answers] == [1, 2]
    assert answers[1]["result"]["structuredContent"]["action"] == "insert"
    assert process.returncode == 0


async def test_a_database_that_is_away_is_told_by_the_tools(
    database: Settings, models: ModelServer, tenant: str, tmp_path: Path
) -> None:
    env = environment(database, models, tmp_path, GRAPHMEM_NEO4J_URI="bolt://127.0.0.1:9")
    async with Client(serving(tenant, env, tmp_path)) as client:
        assert len((await client.list_tools()).tools) == 8
        for _ in range(2):
            assert "Neo4j" in await refused(client, "search_memory", query="tea")


def _request(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def test_a_user_that_cannot_be_one_ends_the_server(
    database: Settings, models: ModelServer, tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        SERVE,
        " mara",
        "default",
        stderr=asyncio.subprocess.PIPE,
        env=environment(database, models, tmp_path),
        cwd=tmp_path,
    )
    _, stderr = await process.communicate()
    assert process.returncode == 1
    assert b"InvalidInput" in stderr
