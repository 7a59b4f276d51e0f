"""Help and version of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typer import Typer
from typer.core import TyperGroup
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


def _commands_of(program: Typer) -> Mapping[str, Any]:
    group = get_command(program)
    assert isinstance(group, TyperGroup)
    return group.commands


def test_every_command_is_found_without_building_all_others() -> None:
    for name, command in _commands_of(app).items():
        root = make_root()
        add_named(root, ["--json", "--no-server", name])
        found = _commands_of(root)
        assert found[name].help == command.help
        assert len(found) < len(PUBLIC_COMMANDS)


def test_without_the_name_of_a_command_all_are_offered() -> None:
    for arguments in ([], ["--help"], ["serch"], ["--tenant", "search"]):
        root = make_root()
        add_named(root, arguments)
        assert _commands_of(root).keys() == _commands_of(app).keys()


def _commands(group: object, path: str = "graphmem") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, command in getattr(group, "commands", {}).items():
        found += [(f"{path} {name}", command), *_commands(command, f"{path} {name}")]
    return found


def test_every_command_and_option_is_documented() -> None:
    for path, command in _commands(get_command(app)):
        assert getattr(command, "help", None), path
        undocumented = [option.name for option in command.params if not getattr(option, "help", None)]
        assert undocumented == [], path


async def test_the_version_is_that_of_the_package(cli_without_settings: Cli) -> None:
    from importlib.metadata import version

    assert (await cli_without_settings("--version")).out == f"graphmem {version('graphmem')}\n"
