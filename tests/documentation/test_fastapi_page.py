"""The FastAPI example as a real process: with memory, without it, and with readers who go away."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from graphmem.app.bootstrap import Services
from graphmem.client import AsyncClient
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.documentation.test_reference import ROOT
from tests.forks import start_python
from tests.provider_server import Answer, ProviderServer

STORED_SECONDS = 60


@pytest.fixture
async def memory(address: str, services: Services, tenant: str) -> AsyncIterator[AsyncClient]:
    """A client of graphmem in a tenant of its own."""
    key = await services.keys.create(tenant, ApiKeyIn(name="chat", role=KeyRole.AGENT))
    async with AsyncClient(key.key, address) as client:
        await client.add("mara", {"content": "Mara lives in Lund."})
        yield client


@asynccontextmanager
async def serving_chat(
    provider: ProviderServer, url: str, key: str, log: list[str], change: str = "served.MEMORY_SECONDS = 30"
) -> AsyncIterator[httpx.AsyncClient]:
    """Serve the example with uvicorn, and yield a client of it; `log` gets what the process writes.

    A turn waits longer for memory than that of the page: on a busy machine the first context takes seconds.
    """
    variables = {
        "GRAPHMEM_URL": url,
        "GRAPHMEM_API_KEY": key,
        "OPENAI_API_KEY": "sk-test",
        "OPENAI_BASE_URL": f"{provider.url}/v1",
    }
    start = f"import uvicorn, fastapi_openai as served; {change}; uvicorn.run(served.app, port=0)"
    with tempfile.TemporaryDirectory() as streams:
        process = start_python(["-c", start], {**os.environ, **variables}, ROOT / "examples", Path(streams))
        while not (found := re.search(r"running on (http://\S+)", _read_log(streams))):
            assert process.poll() is None, f"the server has not started: {_read_log(streams)}"
            await asyncio.sleep(0.02)
        async with httpx.AsyncClient(base_url=found[1], headers={"X-User": "mara"}, timeout=60) as client:
            yield client
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.wait)
        log += _read_log(streams).splitlines()
    assert process.returncode in (0, -signal.SIGTERM), log


def _read_log(streams: str) -> str:
    log = Path(streams, "err")
    return log.read_text("utf-8") if log.exists() else ""


async def turns(memory: AsyncClient, count: int, user: str = "mara") -> list[tuple[str, str]]:
    """Return the turns of a user's session monday, once there are as many."""
    deadline = time.monotonic() + STORED_SECONDS
    while True:
        sessions = (await memory.sessions(user)).items
        stored = (await memory.session_messages(user, "monday")).items if sessions else []
        if len(stored) >= count or time.monotonic() > deadline:
            return [(message.role.value, message.content) for message in stored]
        await asyncio.sleep(0.1)


def said(text: str, *before: tuple[str, str]) -> dict[str, Any]:
    messages = [{"role": role, "content": content} for role, content in before]
    return {"session_id": "monday", "said": text, "before": messages}


def key_of(memory: AsyncClient) -> str:
    return str(memory._transport._http.headers["authorization"]).removeprefix("Bearer ")


async def test_answers_are_streamed_with_memory_and_what_was_said_is_stored_at_their_end(
    provider: ProviderServer, memory: AsyncClient, address: str
) -> None:
    """One process has three readers: a start takes longer than all that they ask."""
    log: list[str] = []
    async with serving_chat(provider, address, key_of(memory), log) as chat:
        await check_reader_who_goes_away(chat, provider, memory)
        await check_model_that_breaks_off(chat, provider, memory)
        provider.prepare("In Lund, in Sweden.", "Since May.")
        provider.gate.clear()
        async with chat.stream("POST", "/chat", json=said("Where do I live?")) as response:
            assert response.status_code == 200
            pieces = response.aiter_text()
            assert await anext(pieces) == "In "  # the rest is not sent before the gate opens
            assert await turns(memory, 0) == []
            provider.gate.set()
            assert "".join([piece async for piece in pieces]) == "Lund, in Sweden."
        first = [("user", "Where do I live?"), ("assistant", "In Lund, in Sweden.")]
        assert await turns(memory, 2) == first
        second = await chat.post("/chat", json=said("Since when?", *first))
        assert second.text == "Since May."
        # The turn is stored although the server ends at once.
    assert await turns(memory, 4) == [*first, ("user", "Since when?"), ("assistant", "Since May.")]
    asked, asked_again = provider.received
    assert asked.system.startswith("Be brief and friendly.\n\n## Information about this user")
    assert "Mara lives in Lund." in asked.system
    # What the program sends itself, and the context of an earlier turn, are there once.
    assert [message["content"] for message in asked_again.body["messages"][1:]] == [
        "Where do I live?", "In Lund, in Sweden.", "Since when?",
    ]  # fmt: skip
    assert asked_again.system.count("## Information about this user") == 1
    assert "In Lund, in Sweden." not in asked_again.system
    assert not [line for line in log if "memory" in line]


async def test_without_memory_the_model_answers_who_is_logged_in_after_two_seconds_at_most(
    provider: ProviderServer,
) -> None:
    """Memory is slow at first, and then away."""
    connected: list[asyncio.StreamWriter] = []

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.append(writer)
        while await reader.read(1000):
            pass

    server = await asyncio.start_server(never, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    provider.prepare("Hello.", "Hello.")
    log: list[str] = []
    async with serving_chat(provider, url, "gm_none", log, change="pass") as chat:
        began = time.monotonic()
        async with chat.stream("POST", "/chat", json=said("Hi")) as response:
            assert "".join([piece async for piece in response.aiter_text()]) == "Hello."
        assert 2 <= time.monotonic() - began < 30
        server.close()
        for writer in connected:  # or the turn would wait half a minute to be stored
            writer.transport.abort()
        assert (await chat.post("/chat", json=said("Hi"))).text == "Hello."
        del chat.headers["X-User"]
        assert (await chat.post("/chat", json=said("Hi"))).status_code == 422
    assert [request.system for request in provider.received] == ["Be brief and friendly."] * 2
    slow, away = [line for line in log if "a turn is answered without memory" in line]
    assert "without memory: it is slow" in slow
    assert "it is slow" not in away
    assert len([line for line in log if "a turn is not remembered" in line]) == 2


async def check_reader_who_goes_away(chat: httpx.AsyncClient, provider: ProviderServer, memory: AsyncClient) -> None:
    """Of a reader who goes away, only what was said is stored."""
    reader = {"X-User": "ines"}
    provider.prepare("It breaks off in the middle.", "Hello again.")
    provider.gate.clear()
    async with chat.stream("POST", "/chat", json=said("Tell me something long."), headers=reader) as response:
        assert await anext(response.aiter_text()) == "It "
    assert await turns(memory, 1, "ines") == [("user", "Tell me something long.")]
    provider.gate.set()
    assert (await chat.post("/chat", json=said("Are you there?"), headers=reader)).text == "Hello again."
    assert await turns(memory, 3, "ines") == [
        ("user", "Tell me something long."), ("user", "Are you there?"), ("assistant", "Hello again."),
    ]  # fmt: skip


async def check_model_that_breaks_off(chat: httpx.AsyncClient, provider: ProviderServer, memory: AsyncClient) -> None:
    """An answer that breaks off, and a model that is away, are not remembered."""
    reader = {"X-User": "tom"}
    away = Answer(status=400, body={"error": {"message": "no such model", "type": "invalid", "code": "x"}})
    provider.prepare(away, Answer("It breaks off in the middle of it.", breaks_off=True))
    refused = await chat.post("/chat", json=said("Hi"), headers=reader)
    assert (refused.status_code, refused.json()["detail"]) == (502, "The model does not answer: try again later.")
    assert (await chat.post("/chat", json=said("Hi again"), headers=reader)).text.startswith("It breaks")
    assert await turns(memory, 1, "tom") == [("user", "Hi again")]
