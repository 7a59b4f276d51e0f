"""A server of models for subprocesses, which then need not load the embedder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response
from graphmem_api.server import make_uvicorn_server

from graphmem.models.embedder import Embedder


@dataclass
class ModelServer:
    """A server that speaks the OpenAI API, with the embedder of the test run.

    It answers `completion` to every chat completion request; without one it refuses the key.
    """

    url: str = ""
    model: str = ""
    completion: str | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that make a process use the server."""
        return {"GRAPHMEM_EMBEDDER": "openai", "GRAPHMEM_EMBEDDING_MODEL": self.model, "OPENAI_BASE_URL": self.url}


@asynccontextmanager
async def serving_models(embedder: Embedder) -> AsyncIterator[ModelServer]:
    """Serve on a free port of 127.0.0.1."""
    app, models = FastAPI(), ModelServer(model=embedder.model)

    @app.post("/v1/embeddings")
    async def embed(request: dict[str, Any]) -> dict[str, Any]:
        vectors = await embedder.embed(request["input"])
        data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return {"object": "list", "data": data, "model": request["model"], "usage": usage}

    @app.post("/v1/chat/completions")
    async def complete(request: dict[str, Any]) -> Response:
        if models.completion is None:
            return JSONResponse({"error": {"message": "no", "type": "error", "code": "invalid_api_key"}}, 401)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": models.completion}}
        completion = {"id": "c", "object": "chat.completion", "created": 1, "model": request["model"]}
        return JSONResponse({**completion, "choices": [choice]})

    server = make_uvicorn_server(app, "127.0.0.1", 0)
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - a flag is all uvicorn offers
        await asyncio.sleep(0.01)
    models.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
    yield models
    server.should_exit = True
    await task
