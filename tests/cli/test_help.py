"""Help and version of the command line."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.main import get_command

from graphmem.cli.app import app
from tests.cli.conftest import Cli

PUBLIC_COMMANDS = {
    "quickstart",
    "serve",
    "worker",
    "db",
    "add",
    "search",
    "entity",
    "context",
    "history",
    "sessions",
    "ingest",
    "consolidate",
    "runs",
    "rollback",
    "maintain",
    "export",
    "import",
    "forget",
    "keys",
    "mcp",
    "doctor",
}


async def test_help_lists_every_promised_command(cli_without_settings: Cli) -> None:
    done = await cli_without_settings("--help")
    assert done.code == 0
    assert {command for command in PUBLIC_COMMANDS if f" {command} " not in done.out} == set()


def test_help_imports_no_slow_modules() -> None:
    look = "import sys, graphmem.cli.app; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout.split()
    assert {"neo4j", "openai", "torch", "fastapi", "pydantic", "dbos", "rich.table"} & set(loaded) == set()


def _commands(group: object, path: str = "graphmem") -> list[tuple[str, object]]:
    found = []
    for name, command in getattr(group, "commands", {}).items():
        found += [(f"{path} {name}", command), *_commands(command, f"{path} {name}")]
    return found


@pytest.mark.parametrize(("path", "command"), _commands(get_command(app)))
def test_every_command_and_option_is_documented(path: str, command: object) -> None:
    assert getattr(command, "help", None), path
    undocumented = [option.name for option in command.params if not getattr(option, "help", None)]  # type: ignore[attr-defined]
    assert undocumented == []


async def test_the_version_is_that_of_the_package(cli_without_settings: Cli) -> None:
    from importlib.metadata import version

    assert (await cli_without_settings("--version")).out == f"graphmem {version('graphmem')}\n"
