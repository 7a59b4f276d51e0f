"""A server on this machine that speaks the OpenAI embeddings API and can be told to fail."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response


@dataclass
class EmbeddingsServer:
    """What it was asked, and what it is to answer before it behaves; `url` is its base address."""

    dimension: int = 8
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    queued_errors: list[Response] = field(default_factory=list)

    def vector(self, text: str) -> list[float]:
        """Return the vector of a text: its own, and not of unit length."""
        return [float(byte) for byte in hashlib.sha256(text.encode()).digest()[: self.dimension]]

    def app(self) -> FastAPI:
        """Return the server's one route."""
        app = FastAPI()

        @app.post("/v1/embeddings")
        async def embeddings(request: Request) -> Response:
            body = await request.json()
            self.requests.append(body)
            self.keys.append(request.headers.get("authorization"))
            if self.queued_errors:
                return self.queued_errors.pop(0)
            data = [
                {"object": "embedding", "index": index, "embedding": self.vector(text)}
                for index, text in enumerate(body["input"])
            ]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            # The API promises an index, not an order.
            return JSONResponse({"object": "list", "data": data[::-1], "model": body["model"], "usage": usage})

        return app


def error_response(status: int, code: str = "failed", **headers: str) -> Response:
    """Return an error as the API tells it."""
    return JSONResponse({"error": {"message": "no", "code": code}}, status, headers=headers)


@asynccontextmanager
async def serve_embeddings(server: EmbeddingsServer) -> AsyncIterator[EmbeddingsServer]:
    """Run the server on a free port of 127.0.0.1."""
    listening = socket.create_server(("127.0.0.1", 0))
    server.url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    runner = uvicorn.Server(uvicorn.Config(server.app(), log_level="error"))
    task = asyncio.create_task(runner.serve(sockets=[listening]))
    yield server
    runner.should_exit = True
    await task
