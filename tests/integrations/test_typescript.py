"""The TypeScript client: its types fit the API, and its own tests pass against a real server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from graphmem.app.bootstrap import Services
from graphmem.tenants.access import ApiKeyIn, KeyRole
from graphmem.tenants.owners import Owner
from tests.api.test_quarantine import quarantine
from tests.system_packages import find_program

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "packaging/graphmem-js"
SCHEMA = PACKAGE / "src/schema.ts"
ROLES = (KeyRole.AGENT, KeyRole.ADMIN)

pytestmark = [
    pytest.mark.skipif(find_program("nodejs") is None, reason="the package nodejs is not installed"),
    pytest.mark.skipif(find_program("npm") is None, reason="the package npm is not installed"),
    pytest.mark.timeout(400),
]


async def run(*command: str, stdin: str = "", **variables: str) -> str:
    """Run a command in the package, while the server of this process goes on, and return what it prints.

    Raises AssertionError with the output when the exit status is not 0.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=PACKAGE,
        env={**os.environ, **variables},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate(stdin.encode())
    assert process.returncode == 0, f"{' '.join(command)}: {printed.decode()[-6000:]}"
    return printed.decode()


@pytest.fixture(scope="module")
async def modules() -> None:
    """The packages of the lock file, installed in the checkout once for each lock file."""
    lock, installed = PACKAGE / "package-lock.json", PACKAGE / "node_modules/.package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        await run("npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")


@pytest.mark.usefixtures("modules")
async def test_generated_types_fit_the_api(app: FastAPI, tmp_path: Path) -> None:
    await run("node", "scripts/generate.mjs", str(tmp_path / "schema.ts"), stdin=json.dumps(app.openapi()))
    current = (tmp_path / "schema.ts").read_text("utf-8") == SCHEMA.read_text("utf-8")
    assert current, "the API has changed: run `make typescript`"


@pytest.mark.usefixtures("modules")
async def test_client_compiles_and_its_tests_pass_against_a_server(
    address: str, services: Services, tenant: str
) -> None:
    """`tsc` checks what the compiler must accept and refuse; `node --test` calls this process's server."""
    await run("node_modules/.bin/tsc", "-b")
    agent, admin = [(await services.keys.create(tenant, ApiKeyIn(name=role, role=role))).key for role in ROLES]
    ben = Owner(tenant, "ben")
    caught = [await quarantine(services, ben, f"Ben books only at inn {number}") for number in (1, 2)]
    environment = {
        "GRAPHMEM_URL": address,
        "GRAPHMEM_API_KEY": agent,
        "GRAPHMEM_ADMIN_KEY": admin,
        "GRAPHMEM_QUARANTINED": ",".join(caught),
    }
    tests = sorted(str(path) for path in PACKAGE.glob("dist-test/test/*.test.js"))
    printed = await run("node", "--test", *tests, **environment)
    assert (len(tests), "fail 0" in printed) == (3, True), printed
    shown = await run("node", "dist-test/examples/quickstart.js", **environment)
    assert "Ada lives in London / Ada lives in Turin\n" in shown
    assert "urn:graphmem:problem:version-conflict" in shown


def test_documented_examples_are_the_files_that_are_run() -> None:
    examples = [path.read_text("utf-8") for path in (PACKAGE / "examples").iterdir()]
    page = (ROOT / "docs/clients.md").read_text("utf-8")
    assert sorted(re.findall(r"```ts\n(import .*?)```", page, re.DOTALL)) == sorted(examples)


def test_package_is_published_as_it_is_described() -> None:
    package: dict[str, Any] = json.loads((PACKAGE / "package.json").read_text("utf-8"))
    lock = (PACKAGE / "package-lock.json").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert (package["name"], package["version"]) == (project["name"], project["version"])
    assert '"resolved"' not in lock, "no address of a registry belongs into the lock file: see .npmrc"
