"""The moving picture of the front page is a terminal with commands that graphmem has, and stands still where asked."""

from __future__ import annotations

import asyncio
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

MAX_PICTURE_BYTES = 200_000


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
    picture = terminal.PICTURE.read_text("utf-8")
    assert len(picture.encode()) < MAX_PICTURE_BYTES
    lines = read_lines(terminal.PICTURE)
    for command in (terminal.READ, *terminal.COMMANDS):
        assert f"$ {command}" in lines
        if command.startswith("graphmem "):
            check_command(shlex.split(command.partition(" | ")[0])[1:])
    assert terminal.PROGRAM.splitlines()[0] in lines
    assert max(map(len, lines)) <= terminal.COLUMNS
    assert 35 <= terminal.total_seconds(picture) <= 45
    assert "prefers-reduced-motion" in picture
    assert "<script" not in picture
    assert "http" not in picture.replace('xmlns="http://www.w3.org/2000/svg"', "")


@pytest.mark.long
@pytest.mark.timeout(1200)
async def test_the_commands_print_what_the_picture_shows(terminal: ModuleType, cli: Cli, tenant: str) -> None:
    environment = {**terminal.make_environment(cli.folder / "data"), **cli.environment}
    with terminal.RecordedModel() as model:
        steps = await asyncio.to_thread(terminal.record, cli.folder, environment, model, tenant)
    (cli.folder / "new.svg").write_text(terminal.draw(steps), "utf-8")
    drawn, shown = (read_lines(path) for path in (cli.folder / "new.svg", terminal.PICTURE))
    assert [normalise(line) for line in drawn] == [normalise(line) for line in shown]
    await cli("forget", "--user", "demo", "--tenant", tenant, "--yes")


def normalise(line: str) -> str:
    """Return a line without ids, scores and the widths that depend on them."""
    without_rule = re.sub("─+", "─", line)
    return re.sub(r"\s+", " ", re.sub(r"\b[0-9a-f]{8}\b|0\.\d{4}", "…", without_rule))
