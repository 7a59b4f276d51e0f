"""Servers import what they serve, and no more."""

from __future__ import annotations

import json
import subprocess
import sys

LOOK = """
import sys, json
for modules in sys.argv[1:]:
    exec(f"import {modules}")
    print(json.dumps(sorted(sys.modules)))
"""


def imported_by(*modules: str) -> list[set[str]]:
    """Return what one process has imported after the first modules, and after those that follow."""
    looked = subprocess.run([sys.executable, "-c", LOOK, *modules], capture_output=True, text=True, check=True)
    return [set(json.loads(line)) for line in looked.stdout.splitlines()]


def test_an_api_without_a_worker_imports_what_it_serves() -> None:
    [imported] = imported_by("graphmem_api.app, graphmem.mcp.http, graphmem.app.bootstrap")
    assert (
        imported
        & {
            *("graphmem.app.job_handlers", "graphmem.ingestion.extraction_job", "graphmem.ingestion.summary"),
            *("graphmem.consolidation.consolidation_job", "graphmem.consolidation.analysis"),
            *("mcp", "openai", "pydantic_ai", "onnxruntime", "tokenizers", "tiktoken", "bs4", "pypdf"),
            *("cryptography", "jsonschema"),
        }
        == set()
    )


def test_a_worker_imports_what_it_serves_without_a_port_and_with_one() -> None:
    without, with_port = imported_by("graphmem.app.job_handlers, graphmem.app.bootstrap", "graphmem_api.server")
    assert without & {"fastapi", "uvicorn", "starlette", "graphmem_api"} == set()
    assert with_port & {"graphmem_api.app", "graphmem_api.routes.memories", "mcp"} == set()
