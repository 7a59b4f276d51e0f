"""A server of models for processes of their own, which need not load the embedder again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response
from graphmem_api.app import make_uvicorn_server

from graphmem.embedding import Embedder


@dataclass
class ModelServer:
    """Speaks the OpenAI API with the run's one embedder, whose loading costs seconds; `says` is its next completion.

    Without one it refuses the key.
    """

    url: str = ""
    model: str = ""
    completion: str | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What makes a process use it."""
        return {"GRAPHMEM_EMBEDDER": "openai", "GRAPHMEM_EMBEDDING_MODEL": self.model, "OPENAI_BASE_URL": self.url}


@asynccontextmanager
async def serving_models(embedder: Embedder) -> AsyncIterator[ModelServer]:
    """Serve on a free port of 127.0.0.1."""
    app, told = FastAPI(), ModelServer(model=embedder.model)

    @app.post("/v1/embeddings")
    async def embed(asked: dict[str, Any]) -> dict[str, Any]:
        vectors = await embedder.embed(asked["input"])
        data = [{"object": "embedding", "index": place, "embedding": one} for place, one in enumerate(vectors)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return {"object": "list", "data": data, "model": asked["model"], "usage": usage}

    @app.post("/v1/chat/completions")
    async def complete(asked: dict[str, Any]) -> Response:
        if told.completion is None:
            return JSONResponse({"error": {"message": "no", "type": "error", "code": "invalid_api_key"}}, 401)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": told.completion}}
        named = {"id": "c", "object": "chat.completion", "created": 1, "model": asked["model"]}
        return JSONResponse({**named, "choices": [choice]})

    server = make_uvicorn_server(app, "127.0.0.1", 0)
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - a flag is all uvicorn offers
        await asyncio.sleep(0.01)
    told.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
    yield told
    server.should_exit = True
    await task
