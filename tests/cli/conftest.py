"""The real command line, run as a process of its own against the test database."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse, Response

from api.server import make_server
from graphmem.embedding import Embedder
from graphmem.settings import Settings
from graphmem.store.driver import Graph

GRAPHMEM = Path(sys.executable).with_name("graphmem")


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Cli:
    """Runs `graphmem` in an empty folder with an environment of its own."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    async def start(self, *arguments: str, **environment: str) -> Process:
        """Start a command."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHMEM_", "OPENAI_"))}
        return await asyncio.create_subprocess_exec(
            GRAPHMEM,
            *arguments,
            cwd=self.folder,
            env={**kept, "COLUMNS": "200", **self.environment, **environment},
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
        )

    async def __call__(self, *arguments: str, stdin: str = "", **environment: str) -> Done:
        """Run a command to its end."""
        process = await self.start(*arguments, **environment)
        out, err = await process.communicate(stdin.encode("utf-8", "surrogateescape"))
        assert process.returncode is not None
        return Done(process.returncode, out.decode(), err.decode())


@pytest.fixture
def bare(tmp_path: Path) -> Cli:
    """The command line without any setting but an empty data folder."""
    return Cli(tmp_path, {"GRAPHMEM_DATA_DIR": str(tmp_path / "data")})


@pytest.fixture
def cli(bare: Cli, database: Settings, graph: Graph) -> Cli:
    """The command line on the migrated test database."""
    assert database.neo4j_uri
    assert database.neo4j_password
    address = {
        "GRAPHMEM_NEO4J_URI": database.neo4j_uri,
        "GRAPHMEM_NEO4J_USER": database.neo4j_user,
        "GRAPHMEM_NEO4J_PASSWORD": database.neo4j_password.get_secret_value(),
    }
    return replace(bare, environment={**bare.environment, **address})


@dataclass
class ModelServer:
    """Speaks the OpenAI API with the run's one embedder, whose loading costs seconds; `says` is its next completion.

    Without one it refuses the key.
    """

    url: str = ""
    says: str | None = None


@pytest.fixture(scope="session")
async def _models(embedder: Embedder) -> AsyncIterator[ModelServer]:
    app, told = FastAPI(), ModelServer()

    @app.post("/v1/embeddings")
    async def embed(asked: dict[str, Any]) -> dict[str, Any]:
        vectors = await embedder.embed(asked["input"])
        data = [{"object": "embedding", "index": place, "embedding": one} for place, one in enumerate(vectors)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return {"object": "list", "data": data, "model": asked["model"], "usage": usage}

    @app.post("/v1/chat/completions")
    async def complete(asked: dict[str, Any]) -> Response:
        if told.says is None:
            return JSONResponse({"error": {"message": "no", "type": "error", "code": "invalid_api_key"}}, 401)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": told.says}}
        named = {"id": "c", "object": "chat.completion", "created": 1, "model": asked["model"]}
        return JSONResponse({**named, "choices": [choice]})

    server = make_server(app, "127.0.0.1", 0)
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - a flag is all uvicorn offers
        await asyncio.sleep(0.01)
    told.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
    yield told
    server.should_exit = True
    await task


@pytest.fixture
def models(_models: ModelServer) -> ModelServer:
    """The server of models, with nothing to say."""
    _models.says = None
    return _models


@pytest.fixture
def quick(cli: Cli, models: ModelServer, embedder: Embedder) -> Cli:
    """The command line with vectors from the run's embedder and completions from `models`."""
    shared = {
        "GRAPHMEM_EMBEDDER": "openai",
        "GRAPHMEM_EMBEDDING_MODEL": embedder.model,
        "OPENAI_BASE_URL": models.url,
    }
    return replace(cli, environment={**cli.environment, **shared})


@pytest.fixture
def user() -> str:
    """A user of this test alone."""
    return f"cli-{uuid.uuid4().hex[:12]}"
