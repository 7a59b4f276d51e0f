"""Measures what the memory of a model call takes before the first token, compared with one call of `POST …/context`.

    python -m benches.bench_model_calls [--memories 500] [--sessions 20] [--calls 100] [--read-only]

Starts the HTTP API with an embedded Neo4j in a temporary folder, and a provider in this process that streams its answer
at once. Each round asks one question in random order: of the provider alone, of the provider through each protocol of
the service, through `wrap_openai`, and of `POST …/context`. The overhead of a way is its median time to the first
token less that of the provider alone; the goal is at most 1.2 times the median of a context. Turns are stored
unless `--read-only`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import openai
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from graphmem_api.server import make_uvicorn_server
from openai.types.chat import ChatCompletionUserMessageParam

from benches.bench_context import TOPICS, make_statements
from benches.machine import describe_machine
from benches.metrics import quantile
from benches.server_process import ServerProcess, find_free_port
from graphmem.client import AsyncClient
from graphmem.integrations import memory_of, wrap_openai
from graphmem.runtime import process

USER = "mara"
BUDGET = 1_000
"""Tokens of each context."""

GOAL = 1.2
"""Greatest ratio of the overhead before the first token to one call of a context."""

WARM_UP = 30
"""Rounds that are not timed."""

PAUSE_SECONDS = 0.1
"""Seconds between two calls, in which the turns of the first one are stored."""

PIECES = ["In", " Lund", ",", " as", " ever", "."]
"""The answer of the provider."""

Measured = Callable[[str, int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Way:
    """A way to call the model; `call` returns once the first token is there and reads the rest later."""

    name: str
    call: Measured


def make_events(path: str) -> Iterator[str]:
    """Yield the events of a streamed answer in the protocol of a path."""
    if path.endswith("/chat/completions"):
        for piece in PIECES:
            yield f"data: {json.dumps({'id': 'c', 'choices': [{'index': 0, 'delta': {'content': piece}}]})}\n\n"
        yield f"data: {json.dumps({'id': 'c', 'choices': [{'index': 0, 'delta': {}, 'finish_reason': 'stop'}]})}\n\n"
        yield "data: [DONE]\n\n"
        return
    events: list[dict[str, Any]]
    if path.endswith("/responses"):
        events = [{"type": "response.output_text.delta", "delta": piece} for piece in PIECES]
        events.append({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}})
    else:
        delta = "content_block_delta"
        events = [{"type": delta, "index": 0, "delta": {"type": "text_delta", "text": piece}} for piece in PIECES]
        events.append({"type": "message_stop"})
    yield from (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


@asynccontextmanager
async def serving_provider(port: int) -> AsyncIterator[None]:
    """Serve a provider that answers at once, whatever it is asked."""
    app = FastAPI()

    @app.post("/{path:path}")
    async def answer(request: Request) -> StreamingResponse:
        await request.body()

        async def send() -> AsyncIterator[str]:
            for chunk in make_events(request.url.path):
                yield chunk

        return StreamingResponse(send(), media_type="text/event-stream")

    server = make_uvicorn_server(app, "127.0.0.1", port)
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - a flag is all uvicorn offers
        await asyncio.sleep(0.01)
    yield
    server.should_exit = True
    await task


async def fill(client: httpx.AsyncClient, memories: int, sessions: int) -> None:
    """Write the memories and sessions of the user."""
    rng = random.Random(7)
    statements = make_statements(memories, rng)
    for start in range(0, memories, 250):
        body = {"memories": [{"content": text} for text in statements[start : start + 250]]}
        (await client.post(f"/v1/users/{USER}/memories", json=body)).raise_for_status()
    for number in range(sessions):
        messages = [
            {"role": "user" if turn % 2 == 0 else "assistant", "content": rng.choice(statements)} for turn in range(20)
        ]
        session = {"session_id": f"session-{number}", "messages": messages, "extract": False}
        (await client.post(f"/v1/users/{USER}/messages", json=session)).raise_for_status()


def make_body(path: str, question: str, number: int) -> dict[str, Any]:
    """Return a streamed request in the protocol of a path, as the beginning of a conversation of its own."""
    said = f"{question} ({number})"
    body: dict[str, Any] = {"model": "m", "stream": True}
    if path.endswith("/responses"):
        return {**body, "input": said}
    body["messages"] = [{"role": "user", "content": said}]
    return {**body, "max_tokens": 100} if path.endswith("/messages") else body


def stream_way(name: str, http: httpx.AsyncClient, path: str, timings: dict[str, list[float]]) -> Way:
    """Return a way that streams an answer with httpx alone."""

    async def call(question: str, number: int) -> None:
        started = time.perf_counter()
        async with http.stream("POST", path, json=make_body(path, question, number)) as response:
            pieces = response.aiter_raw()
            await anext(pieces)
            timings[name].append(time.perf_counter() - started)
            assert response.status_code == 200, await response.aread()
            assert number < WARM_UP or "x-graphmem-memory" not in response.headers
            async for _ in pieces:
                pass

    return Way(name, call)


def context_way(http: httpx.AsyncClient, timings: dict[str, list[float]]) -> Way:
    """Return the call of a context, as a caller makes it who adds it to a prompt."""

    async def call(question: str, number: int) -> None:
        body = {"question": f"{question} ({number})", "token_budget": BUDGET, "recent_messages": False}
        started = time.perf_counter()
        response = await http.post(f"/v1/users/{USER}/context", json=body)
        assert response.json()["preamble"]
        timings["context"].append(time.perf_counter() - started)

    return Way("context", call)


def wrapped_way(name: str, client: openai.AsyncOpenAI, timings: dict[str, list[float]]) -> Way:
    """Return a way that streams an answer with the OpenAI client."""

    async def call(question: str, number: int) -> None:
        started = time.perf_counter()
        asked: ChatCompletionUserMessageParam = {"role": "user", "content": f"{question} ({number})"}
        stream = await client.chat.completions.create(model="m", messages=[asked], stream=True)
        chunks = aiter(stream)
        await anext(chunks)
        timings[name].append(time.perf_counter() - started)
        async for _ in chunks:
            pass

    return Way(name, call)


async def measure(given: argparse.Namespace, server: ServerProcess, provider: str) -> dict[str, list[float]]:
    """Return the seconds of each way, without those of the warm-up."""
    timings: dict[str, list[float]] = {}
    headers = {
        "Authorization": f"Bearer {server.key}",
        "X-Graphmem-User": USER,
        "X-Graphmem-Budget": str(BUDGET),
        "X-Graphmem-Read-Only": str(given.read_only).lower(),
    }
    options: dict[str, Any] = {"trust_env": False, "timeout": 60}
    async with (
        httpx.AsyncClient(base_url=provider, **options) as direct,
        httpx.AsyncClient(base_url=server.address, headers=headers, **options) as http,
        AsyncClient(server.key, server.address) as memory,
        openai.AsyncOpenAI(api_key="sk", base_url=f"{provider}/v1") as plain,
    ):
        await fill(http, given.memories, given.sessions)
        wrapped = wrap_openai(plain, user=USER, budget=BUDGET, memory=memory, read_only=given.read_only)
        ways = [
            stream_way("provider", direct, "/v1/chat/completions", timings),
            stream_way("/openai/v1/chat/completions", http, "/openai/v1/chat/completions", timings),
            stream_way("/openai/v1/responses", http, "/openai/v1/responses", timings),
            stream_way("/anthropic/v1/messages", http, "/anthropic/v1/messages", timings),
            wrapped_way("client of OpenAI", plain, timings),
            wrapped_way("wrap_openai", wrapped, timings),
            context_way(http, timings),
        ]
        timings.update({way.name: [] for way in ways})
        rng = random.Random(11)
        early_failures = 0
        for number in range(WARM_UP + given.calls):
            if number == WARM_UP:
                early_failures = memory_of(wrapped).failures.count
            question = f"What do I know about {rng.choice(TOPICS)} and {rng.choice(TOPICS)}?"
            for way in rng.sample(ways, len(ways)):
                await way.call(question, number)
                await asyncio.sleep(PAUSE_SECONDS)
        await memory_of(wrapped).flush()
        assert memory_of(wrapped).failures.count == early_failures
    return {name: seconds[WARM_UP:] for name, seconds in timings.items()}


def report(timings: dict[str, list[float]]) -> Iterator[str]:
    """Yield the lines of a table: the time to the first token, and the overhead compared with a context."""
    median = {name: quantile([value * 1000 for value in seconds], 0.5) for name, seconds in timings.items()}
    yield f"| way | first token, p50 / p95 ms | overhead, ms | of a context (goal {GOAL}) |\n|---|---:|---:|---:|"
    for name, seconds in timings.items():
        high = quantile([value * 1000 for value in seconds], 0.95)
        base = median["client of OpenAI" if name == "wrap_openai" else "provider"]
        is_memory = name.startswith("/") or name == "wrap_openai"
        overhead = f"{median[name] - base:.1f} | {(median[name] - base) / median['context']:.2f}" if is_memory else "|"
        yield f"| {name} | {median[name]:.1f} / {high:.1f} | {overhead} |"


async def main() -> None:
    """Start the servers, measure, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("memories", 500), ("sessions", 20), ("calls", 100)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--read-only", action="store_true")
    given = parser.parse_args()
    load_before = os.getloadavg()
    port = find_free_port()
    provider = f"http://127.0.0.1:{port}"
    settings = {"GRAPHMEM_UPSTREAM_OPENAI_URL": f"{provider}/v1", "GRAPHMEM_UPSTREAM_ANTHROPIC_URL": provider}
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(Path(folder) / "data", settings=settings)
        async with serving_provider(port):
            await server.start()
            try:
                timings = await measure(given, server, provider)
            finally:
                await server.stop()
    print(*report(timings), "", describe_machine(load_before), sep="\n")


if __name__ == "__main__":
    process.run(main())
