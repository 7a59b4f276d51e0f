"""A reader who follows a page: writes its files, runs its commands, and sees what they print."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.cli.conftest import Cli
from tests.conftest import QUIET_WORKERS
from tests.documentation.test_examples import read_page
from tests.forks import run_python

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
FILE_NAME = re.compile(r"`([\w-]+\.(?:py|json|toml))`")
STARTED_BEFORE = ("pip install", "graphmem serve", "graphmem open")
"""Commands of a page that the tests do not run again: graphmem is installed and served already."""

SHOWN_DAY = "2026-11-26"
"""The day on which pages show what was said; when a test runs, it is today."""

SUBSTITUTED = re.compile(r"\$\((graphmem [^)]*)\)")
"""A command of which a terminal takes what it prints."""

PRINTED_KEY = re.compile(r"gm_[\w.-]+")


@dataclass
class Reader:
    """Follows pages in the folder of `cli`, as the user `user_id` where they say mara.

    `environment` is that of the terminal; the server at its `GRAPHMEM_URL` is the one that `cli` uses.
    """

    cli: Cli
    user_id: str
    environment: dict[str, str] = field(default_factory=dict)
    key: str = ""

    async def follow(self, page: str) -> list[tuple[str, str]]:
        """Return what a page shows that its commands print, each with what they print; fail when one fails."""
        seen: list[tuple[str, str]] = []
        printed, end = "", 0
        text = read_page(page)
        for block in BLOCK.finditer(text):
            before = text[end : block.start()].strip().rpartition("\n\n")[2]
            end = block.end()
            language, code = block.groups()
            if language == "text":
                seen.append((_without_ids(code), _without_ids(self._as_shown(printed))))
            elif language == "sh":
                printed = "".join([await self.run(line) for line in _commands(code)])
            elif before.endswith(":") and (names := FILE_NAME.findall(before)):
                (self.cli.folder / names[0]).write_text(self._as_typed(code), "utf-8")
        return seen

    async def run(self, line: str) -> str:
        """Run one line of a terminal and return what it prints."""
        command = line.partition("   #")[0].strip()
        if command.startswith(STARTED_BEFORE):
            return ""
        if substituted := SUBSTITUTED.search(command):
            printed = await self.run(substituted[1])
            return await self.run(command.replace(substituted[0], printed.strip()))
        words = shlex.split(self._as_typed(command))
        if words[0] == "export":
            self.environment.update({name: value for name, _, value in (word.partition("=") for word in words[1:])})
            return ""
        if words[0] == "graphmem":
            done = await self.cli(*words[1:], COLUMNS="100")
            assert done.code == 0, done.err
            if keys := PRINTED_KEY.findall(done.out):
                self.key = keys[0]
            return done.out
        assert words[0] == "python", f"nobody can run {command!r} here"
        return await asyncio.to_thread(self._run_python, words[1:])

    def _run_python(self, arguments: list[str]) -> str:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHMEM_", "OPENAI_"))}
        done = run_python(arguments, {**inherited, **QUIET_WORKERS, **self.environment}, self.cli.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _as_typed(self, text: str) -> str:
        return re.sub(r"\bmara\b", self.user_id, text).replace("gm_…", self.key or "gm_…")

    def _as_shown(self, text: str) -> str:
        return text.replace(self.user_id, "mara").replace(datetime.now(UTC).date().isoformat(), SHOWN_DAY)


def _without_ids(text: str) -> str:
    return re.sub(r"\b[0-9a-f]{8}\b", "…", text)


def _commands(code: str) -> list[str]:
    return [line for line in code.replace("\\\n", " ").splitlines() if line.strip()]
