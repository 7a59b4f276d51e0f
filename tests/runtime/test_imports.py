"""Programs import what they need for what they do, and no more."""

from __future__ import annotations

import json
import subprocess
import sys

LOOK = """
import sys, json
for step in sys.argv[1:]:
    exec(step)
    print(chr(0), json.dumps(sorted(sys.modules)), flush=True)
"""


def imported_after(*steps: str) -> list[set[str]]:
    """Return what a new process has imported after each of some steps, one after the other."""
    looked = subprocess.run([sys.executable, "-c", LOOK, *steps], capture_output=True, text=True, check=True)
    return [set(json.loads(line[1:])) for line in looked.stdout.splitlines() if line.startswith(chr(0))]


def test_the_commands_and_an_api_without_a_worker_import_what_they_need() -> None:
    """The protocol of tools is not loaded before the first request."""
    commands, api = imported_after(
        "import graphmem.cli.app", "import graphmem_api.app, graphmem.mcp.http, graphmem.app.bootstrap"
    )
    assert {"neo4j", "openai", "torch", "fastapi", "pydantic", "dbos", "rich.table"} & commands == set()
    assert (
        api
        & {
            *("graphmem.app.job_handlers", "graphmem.ingestion.extraction_job", "graphmem.ingestion.summary"),
            *("graphmem.consolidation.consolidation_job", "graphmem.consolidation.analysis"),
            *("mcp", "openai", "pydantic_ai", "onnxruntime", "tokenizers", "tiktoken", "bs4", "pypdf"),
            *("cryptography", "jsonschema"),
        }
        == set()
    )


def test_the_embedder_the_help_and_a_worker_without_a_port_and_with_one_import_what_they_need() -> None:
    embedder, with_help, without_port, with_port = imported_after(
        "import graphmem.models.onnx_embedder",
        "import graphmem.app.bootstrap, graphmem.cli.app as cli; cli.app(['--help'], standalone_mode=False)",
        "import graphmem.app.job_handlers, graphmem.app.bootstrap",
        "import graphmem_api.server",
    )
    assert {"onnxruntime", "tokenizers"} & embedder == set()
    assert "pydantic_ai" not in with_help
    assert without_port & {"fastapi", "uvicorn", "starlette", "graphmem_api"} == set()
    assert with_port & {"graphmem_api.app", "graphmem_api.routes.memories", "mcp"} == set()
