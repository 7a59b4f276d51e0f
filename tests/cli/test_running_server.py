"""Commands that use the server that runs on the data folder."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import PIPE

import httpx

from graphmem.tenants.access import make_local_token
from tests.cli.conftest import Cli

SLOW_MODULES = {
    "neo4j",
    "openai",
    "fastapi",
    "dbos",
    "numpy",
    "structlog",
    "graphmem.app.bootstrap",
    "graphmem.neo4j.driver",
}


async def test_commands_call_the_server_and_import_no_services(
    cli_with_models: Cli, served: tuple[str, str], user: str
) -> None:
    url, secret = served
    added = (await cli_with_models("add", "--user", user, "Mara likes tea.", "--object", "tea", "--json")).json
    memory = added["results"][0]["memory"]
    assert memory["source"]["kind"] == "user"
    environment = {**os.environ, **cli_with_models.environment, "PYTHONPROFILEIMPORTTIME": "1"}
    code = "import sys; sys.argv[0] = 'graphmem'; from graphmem.cli import main; main()"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code, "search", "--user", user, "tea", "--json"),
        cwd=cli_with_models.folder,
        env=environment,
        stdout=PIPE,
        stderr=PIPE,
    )
    out, imports = await process.communicate()
    assert [hit["memory"]["id"] for hit in json.loads(out)["results"]] == [memory["id"]]
    imported = set(re.findall(r"\| +([\w.]+)$", imports.decode(), re.MULTILINE))
    assert imported & SLOW_MODULES == set()
    [version] = (await cli_with_models("history", "--user", user, memory["id"][:8], "--json")).json["items"]
    assert version["actor"] == "cli"
    missing = await cli_with_models("history", "--user", user, "no-such-id", "--json")
    assert (missing.code, missing.out, json.loads(missing.err)["title"]) == (1, "", "Not found")

    async with httpx.AsyncClient(trust_env=False) as client:

        async def status(token: str, **headers: str) -> int:
            headers["Authorization"] = f"Bearer {token}"
            return (await client.get(f"{url}/v1/users", headers=headers)).status_code

        assert await status(make_local_token(secret, "default")) == 200
        assert await status(make_local_token(secret[:-1], "default")) == 401
        assert await status(make_local_token(secret, "default"), **{"X-Forwarded-For": "192.0.2.1"}) == 401


async def test_closing_a_short_session_says_that_no_summary_is_written(
    cli_with_models: Cli, served: tuple[str, str], user: str
) -> None:
    url, secret = served
    turns = [{"role": "user", "content": f"message {number}"} for number in range(10)]
    headers = {"Authorization": f"Bearer {make_local_token(secret, 'default')}"}
    async with httpx.AsyncClient(trust_env=False, base_url=f"{url}/v1/users/{user}", headers=headers) as client:
        for session, count in (("short", 9), ("long", 10)):
            body = {"session_id": session, "messages": turns[:count], "extract": False}
            assert (await client.post("/messages", json=body)).status_code == 202
        short = (await client.post("/sessions/short/close")).json()
        assert (short["is_active"], short["summary"]) == (False, None)
        assert short["reason"].startswith("no summary was written: 9 of its 9 messages are not summarized yet")
        assert (await client.get("/sessions/short")).json()["reason"] is None
    closed = await cli_with_models("close", "short", "--user", user)
    assert (closed.code, "no summary was written" in closed.out) == (0, True)
    summarized = await cli_with_models("close", "long", "--user", user)
    assert (summarized.code, "Its summary is queued." in summarized.out) == (0, True)
