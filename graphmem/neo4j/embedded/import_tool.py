"""Neo4j's own import tool, which writes the files of a new database from tables; no server runs meanwhile."""

from __future__ import annotations

import asyncio
import os
import re
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import Iterable
from pathlib import Path

from graphmem.neo4j.embedded.distribution import argument_file, find_java, import_arguments, neo4j_jars
from graphmem.neo4j.embedded.home import Neo4jHome
from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.progress import ProgressCallback, StartProgress

_PERCENT = re.compile(r"(\d+)% ∆")
_PHASE = re.compile(r"^\((\d)/(\d)\) ")

_WORDS_OF_ERROR = 15
"""Lines of the tool's output in the report of a failure."""


async def import_tables(
    home: Neo4jHome,
    folder: Path,
    options: Iterable[str],
    cache_dir: Path,
    mirror: str | None,
    *,
    start: StartProgress,
    progress: ProgressCallback,
) -> None:
    """Import the tables in `folder`, which `options` name by relative paths, into the new database of a home.

    `progress` gets percent of all phases. Raises ConfigurationError with the tool's last words when it fails.
    """
    home.create_folders()
    home.ensure_password()  # before there is a database, for which a new password would be refused
    home.write_config(0, 0)
    jars = await neo4j_jars().fetch(cache_dir, mirror, start.download)
    arguments = folder / "import.args"
    arguments.write_text(argument_file(import_arguments(jars, options)), encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        str(find_java().executable),
        f"@{arguments}",
        cwd=folder,
        env={**os.environ, "NEO4J_HOME": str(home.path)},
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
    )
    try:
        assert process.stdout is not None
        lines: list[str] = []
        phase, phases = 1, 4
        async for raw in process.stdout:
            line = raw.decode(errors="replace").rstrip()
            if found := _PHASE.match(line):
                phase, phases = int(found[1]), int(found[2])
            elif found := _PERCENT.search(line):
                progress(100 * (phase - 1) + int(found[1]), 100 * phases)
            elif line:
                lines = [*lines[-_WORDS_OF_ERROR:], line]
        if await process.wait():
            raise ConfigurationError(f"Neo4j's import tool failed: {' | '.join(lines)}")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
