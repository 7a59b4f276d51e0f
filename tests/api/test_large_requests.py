"""Large requests: what they may hold, and that others are answered meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import httpx
import pytest
from graphmem_api.app import create_app

from graphmem.app.bootstrap import Services
from graphmem.context.models import MAX_QUESTION_LENGTH
from graphmem.runtime.field_types import MAX_REQUEST_TEXT, MAX_REQUEST_VALUES
from graphmem.runtime.settings import Settings
from tests.api.conftest import serve_app

BRIEF_SECONDS = 20.0
"""Seconds that another request may wait in any case: on a busy machine those of a small request take as long."""


@pytest.fixture(scope="module")
async def address(services: Services, settings: Settings) -> AsyncIterator[str]:
    """A server that takes large bodies."""
    app = create_app(services, settings.model_copy(update={"max_body_bytes": 10_000_000}))
    async with serve_app(app) as address:
        yield address


async def while_answering_others(client: httpx.AsyncClient, request: Awaitable[httpx.Response]) -> httpx.Response:
    """Return the response to a request; others are answered as long as it is served."""
    begun = time.perf_counter()
    response = asyncio.ensure_future(request)
    waits = []
    while not response.done():
        started = time.perf_counter()
        assert (await client.get("/healthz")).status_code == 200
        waits.append(time.perf_counter() - started)
        await asyncio.sleep(0.1)
    # A server that checks the large request before it does anything else lets others wait for all of that time.
    assert max(waits) < max(BRIEF_SECONDS, (time.perf_counter() - begun) / 2)
    return await response


async def test_server_answers_others_while_a_long_message_is_checked(agent: httpx.AsyncClient) -> None:
    body = {"messages": [{"role": "user", "content": "5 " * 50_000}], "extract": False}
    accepted = await while_answering_others(agent, agent.post("/v1/users/mara/messages", json=body))
    assert accepted.status_code == 202, accepted.text


async def test_server_answers_others_while_a_large_save_is_checked(agent: httpx.AsyncClient) -> None:
    memories = [
        {"content": f"Line {number}: " + "5 " * 3_900, "metadata": {"zeros": [0] * 2_000}} for number in range(8)
    ]
    saved = await while_answering_others(agent, agent.post("/v1/users/mara/memories", json={"memories": memories}))
    assert saved.status_code == 200, saved.text


@pytest.mark.parametrize(
    ("path", "body", "limit"),
    [
        ("memories", {"memories": [{"content": "x" * 8_000}] * 126}, f"{MAX_REQUEST_TEXT:,}"),
        ("memories", {"memories": [{"content": "x", "metadata": {"zeros": [0] * 500_000}}]}, f"{MAX_REQUEST_VALUES:,}"),
        ("messages", {"messages": [{"role": "user", "content": "x" * 100_000}] * 11}, f"{MAX_REQUEST_TEXT:,}"),
        ("sessions", {"metadata": {"notes": "x" * 1_000_001}}, f"{MAX_REQUEST_TEXT:,}"),
        ("context", {"question": "why " * 1_250_000}, str(MAX_QUESTION_LENGTH)),
    ],
)  # fmt: skip
async def test_request_beyond_a_limit_is_422_and_names_the_limit(
    agent: httpx.AsyncClient, path: str, body: dict[str, Any], limit: str
) -> None:
    refused = await while_answering_others(agent, agent.post(f"/v1/users/mara/{path}", json=body))
    assert refused.status_code == 422, refused.text
    assert limit in refused.text
    assert len(refused.text) < 2_000


async def test_search_reads_the_beginning_of_a_question_of_any_length(agent: httpx.AsyncClient) -> None:
    await agent.post("/v1/users/mara/memories", json={"memories": [{"content": "Mara rows on the lake"}]})
    question = {"query": "Who rows on the lake? " + "why " * 1_250_000}
    found = await while_answering_others(agent, agent.post("/v1/users/mara/search", json=question))
    assert found.json()["results"][0]["memory"]["content"] == "Mara rows on the lake"
