"""Draws the moving picture of the front page: `make picture` runs the commands and writes docs/terminal.svg.

The commands run against an embedded Neo4j of their own, in an empty data folder. The picture plays once and then stands
still with the whole session; where motion is not wanted, it stands still from the beginning.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

from rich.text import Text

PICTURE = Path(__file__).with_name("terminal.svg")

COLUMNS = 84
"""Width of the terminal, in characters."""

CELL_WIDTH, LINE_HEIGHT, FONT_SIZE, MARGIN = 8.43, 19, 14, 16
"""Measures of the picture, in pixels."""

WORD_SECONDS, OUTPUT_SECONDS, PAUSE_SECONDS = 0.16, 0.5, 1.6
"""Seconds for which a word is typed, until the output appears, and until the next command begins."""

LIVES_IN = "--predicate LIVES_IN --single-valued"
QUESTION = '"Where does Ada live?"'
COMMANDS = (
    f'graphmem add -u ada "Ada lives in Turin" {LIVES_IN} \\\n  --valid-at 2019-05-01',
    f'graphmem add -u ada "Ada lives in London" {LIVES_IN} \\\n  --valid-at 2024-03-01',
    f"graphmem search -u ada {QUESTION} --valid-as-of 2020-01-01",
    f"graphmem search -u ada {QUESTION}",
    "graphmem revert ID --user ada",
    f"graphmem search -u ada {QUESTION}",
)
"""What is typed; ID stands for the memory that the command before proposes to restore."""

STYLE = f"""
text {{ font: {FONT_SIZE}px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  white-space: pre; fill: #d5dbe3 }}
.prompt {{ fill: #56c7b4; font-weight: bold }}
.bold {{ font-weight: bold; fill: #fff }}
.late {{ fill-opacity: 0; animation: appear 1ms forwards }}
@keyframes appear {{ to {{ fill-opacity: 1 }} }}
@media (prefers-reduced-motion: reduce) {{ .late {{ animation: none; fill-opacity: 1 }} }}
"""


@dataclass(frozen=True)
class Step:
    """A command as it was typed, and what it printed, with the escape sequences of its styles."""

    command: str
    output: str


def record(environment: Mapping[str, str]) -> list[Step]:
    """Run the commands, one after the other; raise CalledProcessError when one fails."""
    steps: list[Step] = []
    printed = ""
    for template in COMMANDS:
        proposed = re.findall(r"graphmem revert (\w+)", printed)
        command = template.replace(" ID ", f" {proposed[-1]} ") if proposed else template
        printed += (output := run_command(command, environment))
        steps.append(Step(command, output))
    return steps


def run_command(command: str, environment: Mapping[str, str]) -> str:
    """Return the standard output of a command."""
    words = shlex.split(command.replace("\\\n", " "))
    program = [sys.executable, "-c", "from graphmem.cli import main; main()", *words[1:]]
    return subprocess.run(program, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def draw(steps: list[Step]) -> str:
    """Return the picture of a session."""
    lines = [*_lines(steps)]
    height = 2 * MARGIN + LINE_HEIGHT * len(lines)
    width = round(2 * MARGIN + CELL_WIDTH * COLUMNS)
    commands = escape(" Then: ".join(step.command.replace(" \\\n ", "") for step in steps), quote=True)
    texts = "\n".join(
        f'<text x="{MARGIN}" y="{MARGIN + LINE_HEIGHT * number + FONT_SIZE}">{line}</text>'
        for number, line in enumerate(lines)
        if line
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="A terminal. {commands}">\n<style>{STYLE}</style>\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#161b22"/>\n{texts}\n</svg>\n'
    )


def _lines(steps: list[Step]) -> Iterator[str]:
    """Yield the content of each line of the terminal, as text spans that appear one after the other."""
    clock = PAUSE_SECONDS / 2
    for number, step in enumerate(steps):
        if number:
            yield ""
        for row, typed in enumerate(step.command.split("\n")):
            spans = [_span("$ ", clock, "prompt")] if row == 0 else []
            for word in re.findall(r"\s*\S+", typed):
                clock += WORD_SECONDS
                spans.append(_span(word, clock))
            yield "".join(spans)
        clock += OUTPUT_SECONDS
        for printed in step.output.rstrip("\n").split("\n"):
            yield _styled(Text.from_ansi(printed), clock)
        clock += PAUSE_SECONDS


def _styled(line: Text, clock: float) -> str:
    """Return a line of output; its bold parts are bold."""
    edges = sorted({0, len(line), *(edge for span in line.spans for edge in (span.start, span.end))})
    spans = []
    for start, end in pairwise(edges):
        is_bold = any("bold" in str(span.style) for span in line.spans if span.start <= start < span.end)
        spans.append(_span(line.plain[start:end], clock, "bold" if is_bold else ""))
    return "".join(spans)


def _span(text: str, clock: float, style: str = "") -> str:
    classes = f"{style} late".strip()
    return f'<tspan class="{classes}" style="animation-delay:{clock:.2f}s">{escape(text)}</tspan>'


def main() -> None:
    """Run the commands in an empty data folder and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHMEM_")}
        environment = {
            **inherited,
            "GRAPHMEM_DATA_DIR": folder,
            "COLUMNS": str(COLUMNS),
            "TZ": "UTC",
            "FORCE_COLOR": "1",
        }
        run_command("graphmem db start", environment)
        try:
            PICTURE.write_text(draw(record(environment)), "utf-8")
        finally:
            run_command("graphmem db stop", environment)


if __name__ == "__main__":
    main()
