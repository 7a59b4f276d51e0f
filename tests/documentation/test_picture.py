"""The moving picture of the front page is a terminal with commands that graphmem has, and stands still where asked."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Cli
from tests.documentation.test_examples import check_command
from tests.documentation.test_reference import ROOT

MAX_PICTURE_BYTES = 500_000


@pytest.fixture(scope="module")
def terminal() -> ModuleType:
    """The script that draws the picture."""
    spec = importlib.util.spec_from_file_location("docs_terminal", ROOT / "docs/terminal.py")
    assert spec
    assert spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_lines(path: Path) -> list[str]:
    """Return the text of a picture, line by line."""
    root = ElementTree.parse(path).getroot()
    return ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_picture_shows_the_commands_of_its_script_and_their_output(terminal: ModuleType) -> None:
    assert terminal.PICTURE.stat().st_size < MAX_PICTURE_BYTES
    lines = read_lines(terminal.PICTURE)
    shown = re.sub(r"revert \w{8} ", "revert ID ", "\n".join(lines))
    for command in terminal.COMMANDS:
        assert f"$ {command}" in shown
        check_command(shlex.split(command.replace("\\\n", " "))[1:])
    assert "prefers-reduced-motion" in terminal.PICTURE.read_text("utf-8")
    assert max(map(len, lines)) <= terminal.COLUMNS


async def test_the_commands_print_what_the_picture_shows(
    terminal: ModuleType, cli_with_models: Cli, user: str, served: object
) -> None:
    printed = ""
    for command in terminal.COMMANDS:
        words = shlex.split(command.replace("\\\n", " "))[1:]
        proposed = re.findall(r"revert (\w{8})", printed)
        arguments = [user if word == "ada" else proposed[-1] if word == "ID" else word for word in words]
        done = await cli_with_models(*arguments, COLUMNS=str(terminal.COLUMNS), TZ="UTC")
        assert done.code == 0, done.err
        printed += done.out
    expected = [line for line in read_lines(terminal.PICTURE) if not line.startswith(("$ ", "  --"))]
    assert [normalise(line) for line in printed.splitlines()] == [normalise(line) for line in expected]


def normalise(line: str) -> str:
    """Return a line without ids, users, scores and the widths that depend on them."""
    without_rule = re.sub("─+", "─", line)
    return re.sub(r"\s+", " ", re.sub(r"\b[0-9a-f]{8}\b|0\.\d{4}|--user \S+", "…", without_rule))
