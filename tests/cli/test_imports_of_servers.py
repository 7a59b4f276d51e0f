"""Servers import what they serve, and no more."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

LOOK = "import sys, json; import {}; print(json.dumps(sorted(sys.modules)))"


def imported_by(modules: str) -> set[str]:
    looked = subprocess.run([sys.executable, "-c", LOOK.format(modules)], capture_output=True, text=True, check=True)
    return set(json.loads(looked.stdout))


API = "graphmem_api.app, graphmem.mcp.http, graphmem.app.bootstrap"
WORKER = "graphmem.app.job_handlers, graphmem.app.bootstrap"


@pytest.mark.parametrize(
    ("server", "spared"),
    [
        pytest.param(
            API,
            {
                *(
                    "graphmem.app.job_handlers",
                    "graphmem.ingestion.extraction_job",
                    "graphmem.ingestion.summary",
                ),
                *("graphmem.consolidation.consolidation_job", "graphmem.consolidation.analysis"),
                *("mcp", "openai", "pydantic_ai", "onnxruntime", "tokenizers", "tiktoken", "bs4", "pypdf"),
                *("cryptography", "jsonschema"),
            },
            id="API without a worker",
        ),
        pytest.param(WORKER, {"fastapi", "uvicorn", "starlette", "graphmem_api"}, id="worker without a port"),
        pytest.param(
            f"{WORKER}, graphmem_api.server",
            {"graphmem_api.app", "graphmem_api.routes.memories", "mcp"},
            id="worker with a port",
        ),
    ],
)
def test_a_server_imports_what_it_serves(server: str, spared: set[str]) -> None:
    assert imported_by(server) & spared == set()
