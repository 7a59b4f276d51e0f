"""Random writes by every verb, also at once, leave what a naive model says; `make torture` has a thousand."""

from __future__ import annotations

import asyncio

import pytest

from graphmem.app.bootstrap import Services
from tests.conftest import examples
from torture.model import run_model


@pytest.mark.req("UMB-13", "QUINN-25")
async def test_concurrent_writes_of_every_verb_have_an_order_that_explains_their_results(memory: Services) -> None:
    loop = asyncio.get_running_loop()
    assert await asyncio.to_thread(run_model, memory, loop, examples(0.05), derandomize=True, database=None) == []
