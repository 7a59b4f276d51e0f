"""The Python of the guides runs, block after block, and prints what the page shows."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import traceback
from typing import Any

import pytest

from graphmem.app.bootstrap import Services
from graphmem.client.async_client import DEFAULT_SERVER_URL
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.documentation.test_examples import read_page

GUIDES = [
    "getting-started.md",
    "agents.md#write-your-own-loop",
    "security.md",
    "trust.md",
    "extraction.md",
]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def run_blocks(code_blocks: list[str]) -> list[str]:
    """Return what each block prints, in one namespace; a block that fails prints its traceback."""
    namespace: dict[str, Any] = {"__name__": "guide"}
    printed = []
    for code in code_blocks:
        with contextlib.redirect_stdout(io.StringIO()) as written:
            try:
                exec(compile(code, "guide", "exec"), namespace)
            except Exception:
                traceback.print_exc(file=written)
        printed.append(written.getvalue())
    return printed


@pytest.mark.parametrize("guide", GUIDES)
async def test_a_guide_prints_what_it_shows(services: Services, address: str, tenant: str, guide: str) -> None:
    key = await services.keys.create(tenant, ApiKeyIn(name="guide", role=KeyRole.ADMIN))
    blocks = BLOCK.findall(read_page(f"docs/{guide}"))
    assert blocks
    runnable = [re.sub(r"\bClient\((.+?)\)", rf'Client(\1, "{address}")', code) for code, _ in blocks]
    printed = await asyncio.to_thread(
        run_blocks, [code.replace("gm_…", key.key).replace(DEFAULT_SERVER_URL, address) for code in runnable]
    )
    assert printed == [shown for _, shown in blocks]
