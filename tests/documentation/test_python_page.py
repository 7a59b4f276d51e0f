"""The code of the page on Python runs."""

from __future__ import annotations

import asyncio
import os

from graphmem.app.bootstrap import Services
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.documentation.test_examples import code_blocks
from tests.forks import run_python


async def test_the_code_of_the_page_runs(address: str, services: Services, tenant: str) -> None:
    key = await services.keys.create(tenant, ApiKeyIn(name="docs", role=KeyRole.AGENT, users=["ada"]))
    blocks = code_blocks("docs/clients.md", "python")[:2]  # the third one is another test's
    code = "\n".join(blocks).replace("gm_…", key.key).replace("http://127.0.0.1:8321", address)
    done = await asyncio.to_thread(run_python, ["-c", code], dict(os.environ))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "Ada lives in Turin"
    assert {line.partition(" ")[2] for line in lines[1:3]} == {"Ada likes oolong tea", "Ada lives in Turin"}
    assert lines[3] == "2"
    assert "deleted" in lines[4]
