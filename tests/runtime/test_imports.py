"""Programs import what they need for what they do, and no more."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

LOOK = """
import json, os, sys

def look(steps):
    for name, step in steps.items():
        exec(step, {})
        print(chr(0), json.dumps([name, sorted(sys.modules)]), flush=True)

shared, api, worker = map(json.loads, sys.argv[1:])
look(shared)
if child := os.fork():
    os.waitpid(child, 0)
    look(worker)
else:
    look(api)
    os._exit(0)  # a library would wait here for threads that only the first process has
"""
"""Looks at what is imported after each step; an API and a worker start with what all programs import."""

SHARED = {
    "commands": "import graphmem.cli.app",
    "embedder": "import graphmem.models.onnx_embedder",
    "help": "import graphmem.app.bootstrap, graphmem.cli.app as cli; cli.app(['--help'], standalone_mode=False)",
}
API = {"api": "import graphmem_api.app, graphmem.mcp.http"}
WORKER = {"worker": "import graphmem.app.job_handlers", "worker with a port": "import graphmem_api.server"}


@pytest.fixture(scope="module")
def imported() -> dict[str, set[str]]:
    """What has been imported after each step."""
    steps = map(json.dumps, (SHARED, API, WORKER))
    looked = subprocess.run(
        [sys.executable, "-c", LOOK, *steps], capture_output=True, text=True, check=True, timeout=240
    )
    found = dict(json.loads(line[1:]) for line in looked.stdout.splitlines() if line.startswith(chr(0)))
    return {name: set(modules) for name, modules in found.items()}


def test_the_command_line_imports_no_slow_modules(imported: dict[str, set[str]]) -> None:
    assert {"neo4j", "openai", "torch", "fastapi", "pydantic", "dbos", "rich.table"} & imported["commands"] == set()


def test_the_embedder_imports_its_libraries_when_it_is_opened(imported: dict[str, set[str]]) -> None:
    assert {"onnxruntime", "tokenizers"} & imported["embedder"] == set()


def test_the_package_and_its_help_start_without_the_libraries_of_providers(imported: dict[str, set[str]]) -> None:
    assert "pydantic_ai" not in imported["help"]


def test_an_api_without_a_worker_imports_what_it_serves(imported: dict[str, set[str]]) -> None:
    """The protocol of tools is loaded by the first request."""
    assert (
        imported["api"]
        & {
            *("graphmem.app.job_handlers", "graphmem.ingestion.extraction_job", "graphmem.ingestion.summary"),
            *("graphmem.consolidation.consolidation_job", "graphmem.consolidation.analysis"),
            *("mcp", "openai", "pydantic_ai", "onnxruntime", "tokenizers", "tiktoken", "bs4", "pypdf"),
            *("cryptography", "jsonschema"),
        }
        == set()
    )


def test_a_worker_imports_what_it_serves_without_a_port_and_with_one(imported: dict[str, set[str]]) -> None:
    assert imported["worker"] & {"fastapi", "uvicorn", "starlette", "graphmem_api"} == set()
    assert imported["worker with a port"] & {"graphmem_api.app", "graphmem_api.routes.memories", "mcp"} == set()
