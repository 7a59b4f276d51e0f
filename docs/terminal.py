"""Draws the moving picture of the front page: `make picture` runs the commands and writes docs/terminal.svg.

The commands run in a shell, against an embedded Neo4j and a server of their own, in an empty data folder. What a
language model says to the two questions is recorded below, for prompts that hold the facts of its answers. The picture
plays once and then stands still with the whole session; where motion is not wanted, it stands still from the beginning.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

from rich.text import Text

from graphmem.cli.startup import RECORD_FILE
from graphmem.models.replay import CompletionServer, Json, build_completion, build_error, recording_key

PICTURE = Path(__file__).with_name("terminal.svg")

COLUMNS = 84
"""Width of the terminal, in characters."""

CELL_WIDTH, LINE_HEIGHT, FONT_SIZE, MARGIN = 8.43, 19, 14, 16
"""Measures of the picture, in pixels."""

WORD_SECONDS, OUTPUT_SECONDS, PAUSE_SECONDS, READING_SECONDS = 0.16, 0.5, 1.6, 0.6
"""Seconds in which a word is typed, until the output appears, until the next command, and more for each line."""

START_SECONDS = 120
"""Seconds that the server may take to start."""

PROGRAM = """\
from openai import OpenAI
from graphmem.integrations import wrap_openai

client = wrap_openai(OpenAI(), user="demo")

said = {"role": "user", "content": "What could I bake for my birthday?"}
answer = client.chat.completions.create(model="gpt-4.1-mini", messages=[said])
print(answer.choices[0].message.content)
"""
"""The program chat.py."""

READ = 'graphmem quickstart | grep -A 3 "sister Elin live"'
"""What is typed first: it reads the sample conversation, before a server runs."""

COMMANDS = (
    'graphmem search -u demo "Where do I live?" --valid-as-of 2025-06-01 --limit 1',
    'graphmem search -u demo "Where do I live?" --limit 1',
    'graphmem ask -u demo "Does she eat hazelnut cake?" --valid-as-of 2026-06-01',
    "cat chat.py",
    "python chat.py",
)
"""What is typed then while a server runs."""

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


def record(
    folder: Path, environment: Mapping[str, str], model: CompletionServer, tenant: str = "default"
) -> list[Step]:
    """Run the commands, one after the other, in a folder; raise CalledProcessError when one fails."""

    def run(command: str, environment: Mapping[str, str]) -> Step:
        typed = re.sub(r"graphmem (quickstart|keys create)", rf"\g<0> --tenant {tenant}", command)
        return Step(command, run_command(typed, folder, environment))

    (folder / "chat.py").write_text(PROGRAM, "utf-8")
    steps = [run(READ, environment)]
    of_model = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "recorded"}
    with serving(folder, {**environment, **of_model, "GRAPHMEM_EXTRACTION": "manual"}) as url:
        created = json.loads(run("graphmem keys create chat --role agent --user demo --json", environment).output)
        program = {**environment, **of_model, "GRAPHMEM_URL": url, "GRAPHMEM_API_KEY": created["key"]}
        steps += [run(command, program) for command in COMMANDS]
    return steps


def run_command(command: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Return the standard output of a command."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True,
    ).stdout  # fmt: skip


@contextmanager
def serving(folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Serve the data folder; yield the address."""
    record_file = Path(environment["GRAPHMEM_DATA_DIR"], RECORD_FILE)
    process = subprocess.Popen(["graphmem", "serve", "--port", "0"], cwd=folder, env=environment)
    deadline = time.monotonic() + START_SECONDS
    while not record_file.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the server has not started")
        time.sleep(0.1)
    try:
        yield json.loads(record_file.read_text("utf-8"))["url"]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


@dataclass(frozen=True)
class RecordedAnswer:
    """What a large language model answered to a question, and the memory in its prompt on which that rests."""

    question: str
    memory: str
    answer: str


ANSWERS = (
    RecordedAnswer(
        "Does she eat hazelnut cake?",
        "Mara is badly allergic to hazelnuts.",
        "No, Mara is badly allergic to hazelnuts.",
    ),
    RecordedAnswer(
        "What could I bake for my birthday?",
        "Mara is badly allergic to hazelnuts.",
        "A lemon cake: no hazelnuts, as you are badly allergic, and no nougat.",
    ),
)


class RecordedModel(CompletionServer):
    """Gives the recorded answers, each to a prompt with its question and its memory; refuses every other prompt."""

    def answer(self, request: Json) -> tuple[int, Json]:
        """Return the status and body for a request."""
        prompt = "\n".join(message["content"] for message in request["messages"])
        asked = [recorded for recorded in ANSWERS if recorded.question in prompt and recorded.memory in prompt]
        if not asked:
            return 501, build_error("no answer to this prompt is recorded", "no_recording")
        text = asked[0].answer
        if source := re.search(rf"^\[(\d+)\] .*: {re.escape(asked[0].memory)}$", prompt, re.MULTILINE):
            cited = [{"source": int(source[1]), "quote": asked[0].memory}]
            text = json.dumps({"sources": cited, "answer": text, "search": None})
        return 200, build_completion(recording_key(request), request, {"content": text})


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
        printed = step.output.rstrip().split("\n")
        yield from (_styled(Text.from_ansi(line.rstrip()), clock) for line in printed)
        clock += PAUSE_SECONDS + READING_SECONDS * len(printed)


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


def total_seconds(picture: str) -> float:
    """Return when the last text of a picture appears."""
    return max(float(delay) for delay in re.findall(r"animation-delay:([\d.]+)s", picture))


def make_environment(data_folder: Path) -> dict[str, str]:
    """Return the environment of the terminal, without the settings of whoever runs this."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHMEM_", "OPENAI_"))}
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}",
        "GRAPHMEM_DATA_DIR": str(data_folder),
        "GRAPHMEM_NIGHTLY": "false",
        "COLUMNS": str(COLUMNS),
        "TZ": "Europe/Berlin",
        "FORCE_COLOR": "1",
    }


def main() -> None:
    """Run the commands in an empty data folder and write the picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = make_environment(folder / "data")
        run_command("graphmem db start", folder, environment)
        try:
            with RecordedModel() as model:
                PICTURE.write_text(draw(record(folder, environment, model)), "utf-8")
        finally:
            run_command("graphmem db stop", folder, environment)
    print(f"{PICTURE.name}: {total_seconds(PICTURE.read_text('utf-8')):.0f} s, {PICTURE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
