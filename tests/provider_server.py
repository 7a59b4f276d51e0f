"""A server that speaks the protocols of OpenAI and Anthropic, with answers that a test has prepared."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from graphmem_api.server import make_uvicorn_server
from starlette.requests import ClientDisconnect

Event = tuple[str | None, dict[str, Any] | str]
"""The name of an event of a stream, if its protocol names events, and its data."""

CALL = {"name": "get_weather", "arguments": '{"city": "Lund"}'}
"""The call of a tool in an answer that calls one."""


@dataclass
class Answer:
    """What the model answers: a text in pieces, a tool call, or both; or an error of the provider.

    A stream that `breaks_off` ends in the middle; one that `drops` ends without its end in HTTP.
    """

    text: str = ""
    calls_tool: bool = False
    status: int = 200
    body: dict[str, Any] = field(default_factory=dict)
    breaks_off: bool = False
    drops: bool = False

    @property
    def pieces(self) -> list[str]:
        return [word + " " for word in self.text.split(" ")[:-1]] + self.text.split(" ")[-1:] if self.text else []


@dataclass
class Received:
    """A request that the server has received."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    query: str = ""
    port: int = 0
    """The caller's, which stays the same while its connection does."""

    @property
    def system(self) -> str:
        """The system prompt, whatever the protocol."""
        if "instructions" in self.body or self.path.endswith("/responses"):
            return str(self.body.get("instructions") or "")
        if "system" in self.body:
            system = self.body["system"]
            return system if isinstance(system, str) else "\n".join(part["text"] for part in system)
        first = self.body["messages"][0]
        if first["role"] not in ("system", "developer"):
            return ""
        content = first["content"]
        return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


class ProviderServer:
    """Answers in order; keeps what it was asked. While `gate` is closed, streams stop after their first piece."""

    def __init__(self) -> None:
        self.url = ""
        self.answers: list[Answer] = []
        self.received: list[Received] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self._count = 0

    def prepare(self, *answers: Answer | str) -> None:
        """Set the next answers, and forget what was asked before."""
        self.answers = [Answer(answer) if isinstance(answer, str) else answer for answer in answers]
        self.received.clear()
        self.gate.set()

    async def answer(self, request: Request, make: Any) -> Response:
        content = await request.body()
        body = json.loads(content) if content else {}
        port = request.client.port if request.client else 0
        received = Received(request.url.path, dict(request.headers), body, request.url.query, port)
        self.received.append(received)
        answer = self.answers.pop(0) if self.answers else Answer("Yes.")
        self._count += 1
        own_headers = {
            "x-request-id": f"req_{self._count}",
            "request-id": f"req_{self._count}",
            "x-of-provider": "kept",
        }
        if answer.status >= 400:
            return JSONResponse(answer.body, answer.status, headers={**own_headers, "retry-after-ms": "1"})
        whole, events = make(self._count, body, answer)
        if not body.get("stream"):
            return JSONResponse(whole, headers=own_headers)
        return StreamingResponse(self._send(events, answer), media_type="text/event-stream", headers=own_headers)

    async def _send(self, events: Iterator[Event], answer: Answer) -> AsyncIterator[bytes]:
        listed = list(events)
        for index, (name, data) in enumerate(listed):
            if answer.breaks_off and index > len(listed) // 2:
                return
            if answer.drops and index == 2:
                raise ClientDisconnect
            prefix = f"event: {name}\n" if name else ""
            text = data if isinstance(data, str) else json.dumps(data)
            yield f"{prefix}data: {text}\n\n".encode()
            if any(piece in text for piece in answer.pieces[:1]):
                await self.gate.wait()


def make_completion(number: int, body: dict[str, Any], answer: Answer) -> tuple[dict[str, Any], Iterator[Event]]:
    """Return a chat completion, and its chunks."""
    common = {"id": f"chatcmpl-{number}", "created": 1, "model": body.get("model", "m")}
    call = {"id": f"call_{number}", "type": "function", "function": CALL}
    finish = "tool_calls" if answer.calls_tool else "stop"
    message = {
        "role": "assistant",
        "content": answer.text or None,
        "refusal": None,
        **({"tool_calls": [call]} if answer.calls_tool else {}),
    }
    choice = {"index": 0, "finish_reason": finish, "message": message, "logprobs": None}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}

    def chunk(delta: dict[str, Any], reason: str | None = None) -> Event:
        choices = [{"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}]
        return None, {**common, "object": "chat.completion.chunk", "choices": choices}

    def chunks() -> Iterator[Event]:
        yield chunk({"role": "assistant", "content": ""})
        yield from (chunk({"content": piece}) for piece in answer.pieces)
        if answer.calls_tool:
            yield chunk({"tool_calls": [{"index": 0, **call}]})
        yield chunk({}, finish)
        yield None, "[DONE]"

    return {**common, "object": "chat.completion", "choices": [choice], "usage": usage}, chunks()


def make_response(number: int, body: dict[str, Any], answer: Answer) -> tuple[dict[str, Any], Iterator[Event]]:
    """Return a response, and its events."""
    part = {"type": "output_text", "text": answer.text, "annotations": []}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    call = {"id": f"fc_{number}", "type": "function_call", "call_id": f"call_{number}", "status": "completed", **CALL}
    output = ([message] if answer.text else []) + ([call] if answer.calls_tool else [])
    response = {
        "id": f"resp_{number}", "object": "response", "created_at": 1, "model": body.get("model", "m"), "error": None,
        "incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True,
        "temperature": 1, "tool_choice": "auto", "tools": [], "top_p": 1,
    }  # fmt: skip
    place = {"item_id": message["id"], "output_index": 0, "content_index": 0}

    def events() -> Iterator[Event]:
        yield "response.created", {"response": {**response, "status": "in_progress", "output": []}}
        if answer.text:
            empty = {**message, "status": "in_progress", "content": []}
            yield "response.output_item.added", {"output_index": 0, "item": empty}
            yield "response.content_part.added", {**place, "part": {**part, "text": ""}}
            for piece in answer.pieces:
                yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
            yield "response.output_text.done", {**place, "text": answer.text, "logprobs": []}
            yield "response.content_part.done", {**place, "part": part}
            yield "response.output_item.done", {"output_index": 0, "item": message}
        if answer.calls_tool:
            yield "response.output_item.added", {"output_index": len(output) - 1, "item": {**call, "arguments": ""}}
            yield "response.output_item.done", {"output_index": len(output) - 1, "item": call}
        yield "response.completed", {"response": {**response, "status": "completed", "output": output}}

    numbered = (
        (name, {"type": name, "sequence_number": index, **data})
        for index, (name, data) in enumerate(events())
        if isinstance(data, dict)
    )
    return {**response, "status": "completed", "output": output}, numbered


def make_message(number: int, body: dict[str, Any], answer: Answer) -> tuple[dict[str, Any], Iterator[Event]]:
    """Return a message of Anthropic, and its events."""
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": CALL["name"], "input": json.loads(CALL["arguments"])}
    text = {"type": "text", "text": answer.text}
    content = ([text] if answer.text else []) + ([call] if answer.calls_tool else [])
    message = {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": body.get("model", "m"),
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    stop = "tool_use" if answer.calls_tool else "end_turn"

    def events() -> Iterator[Event]:
        yield "message_start", {"message": {**message, "content": [], "stop_reason": None}}
        yield "ping", {}
        for index, block in enumerate(content):
            empty = {**block, **({"text": ""} if block["type"] == "text" else {"input": {}})}
            yield "content_block_start", {"index": index, "content_block": empty}
            if block["type"] == "text":
                for piece in answer.pieces:
                    yield "content_block_delta", {"index": index, "delta": {"type": "text_delta", "text": piece}}
            else:
                delta = {"type": "input_json_delta", "partial_json": CALL["arguments"]}
                yield "content_block_delta", {"index": index, "delta": delta}
            yield "content_block_stop", {"index": index}
        yield "message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 1}}
        yield "message_stop", {}

    typed = ((name, {"type": name, **data}) for name, data in events() if isinstance(data, dict))
    return {**message, "content": content, "stop_reason": stop}, typed


def make_provider_app(server: ProviderServer) -> FastAPI:
    """Return the application of a provider; clients of OpenAI have its address with `/v1`."""
    app = FastAPI()
    makers = {"/chat/completions": make_completion, "/responses": make_response, "/messages": make_message}

    @app.api_route("/{path:path}", methods=["GET", "POST"])
    async def respond(request: Request) -> Response:
        for ending, make in makers.items():
            if request.url.path.endswith(ending):
                return await server.answer(request, make)
        return await server.answer(request, lambda *_: ({"object": "list", "data": [{"id": "m"}]}, iter(())))

    return app


@asynccontextmanager
async def serving_provider() -> AsyncIterator[ProviderServer]:
    """Serve on a free port of 127.0.0.1."""
    provider = ProviderServer()
    server = make_uvicorn_server(make_provider_app(provider), "127.0.0.1", 0)
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - a flag is all uvicorn offers
        await asyncio.sleep(0.01)
    provider.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    yield provider
    server.should_exit = True
    await task
