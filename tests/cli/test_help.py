"""Help and version of the command line."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.main import get_command

from graphmem.cli.app import app
from graphmem.cli.families import add_named, make_root
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


@pytest.mark.parametrize("flags", [[], ["--json", "--no-server"]])
@pytest.mark.parametrize("name", get_command(app).commands)  # type: ignore[attr-defined]
def test_every_command_is_found_without_building_all_others(name: str, flags: list[str]) -> None:
    root = make_root()
    add_named(root, [*flags, name])
    found = get_command(root).commands  # type: ignore[attr-defined]
    assert found[name].help == get_command(app).commands[name].help  # type: ignore[attr-defined]
    assert len(found) < len(PUBLIC_COMMANDS)


@pytest.mark.parametrize("arguments", [[], ["--help"], ["serch"], ["--tenant", "search"]])
def test_without_the_name_of_a_command_all_are_offered(arguments: list[str]) -> None:
    root = make_root()
    add_named(root, arguments)
    assert get_command(root).commands.keys() == get_command(app).commands.keys()  # type: ignore[attr-defined]


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
