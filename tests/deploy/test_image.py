"""The image is built and the compose file started, where Docker is: what is saved comes back over HTTP.

The test of the worker is its health check, for which `docker compose up --wait` waits.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from docs.deployments import ROOT
from graphmem.client import AsyncClient
from tests.conftest import is_docker_running

BUILD_SECONDS, START_SECONDS = 900, 300
"""Seconds for the image with its dependencies, and for four containers of which one downloads the embedding model."""

PORT = 8321
"""The port of the API in the compose file."""

pytestmark = [pytest.mark.integration, pytest.mark.timeout(BUILD_SECONDS + START_SECONDS + 60)]


async def compose(folder: Path, *arguments: str, seconds: float) -> str:
    """Run `docker compose` and return what it prints; fail with its errors."""
    command = ["docker", "compose", "--project-name", "graphmem-test", *arguments]
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.fixture
async def key(tmp_path: Path) -> AsyncIterator[str]:
    """The key of an admin of the services of the compose file, which are taken down with their volumes."""
    if not is_docker_running():
        pytest.skip("Docker is not running here: the image is not built, and the compose file not started")
    folder = tmp_path / "checkout"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", ".venv", "node_modules", "secrets"))
    (folder / "secrets").mkdir()
    for name in ("neo4j_password", "jobs_password", "admin_key", "receipt_key"):
        (folder / "secrets" / name).write_text(secrets.token_hex(24))
    (folder / "secrets/openai_api_key").touch()
    await compose(folder, "build", seconds=BUILD_SECONDS)
    try:
        await compose(folder, "up", "--wait", "--wait-timeout", str(START_SECONDS), seconds=START_SECONDS + 30)
        yield (folder / "secrets/admin_key").read_text()
    finally:
        await compose(folder, "down", "--volumes", seconds=120)


async def test_the_compose_file_serves_a_memory(key: str) -> None:
    async with AsyncClient(key, f"http://127.0.0.1:{PORT}") as memory:
        [saved] = await memory.add("mara", {"content": "Mara lives in Lund."})
        assert saved.action == "insert"
        [hit] = (await memory.search("mara", "Where does Mara live?")).results
        assert hit.memory.content == "Mara lives in Lund."
        assert (await memory.forget("mara")).residue == 0
