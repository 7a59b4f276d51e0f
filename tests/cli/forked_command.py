"""Runs `graphmem` in a fork of a process that has imported it already: importing takes most of a command's time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path

PRELOADED = (
    "graphmem.app.bootstrap",
    "graphmem.cli.app",
    "graphmem.cli.render_admin",
    "graphmem.cli.doctor",
    __name__,
)
"""The modules that the forked process has imported."""

_context = get_context("forkserver")
_context.set_forkserver_preload(list(PRELOADED))


def start_command(
    arguments: Sequence[str], environment: Mapping[str, str], folder: Path, streams: Path
) -> ForkServerProcess:
    """Start a command with its input from the file `in` of the folder `streams`, and its output to `out` and `err`.

    At its end, the file `code` holds its exit status: what multiprocessing knows of it gets lost when one thread waits
    for a process while another one starts the next.
    """
    process = _context.Process(target=_run, args=(list(arguments), dict(environment), str(folder), str(streams)))
    process.start()
    return process


def _run(arguments: list[str], environment: dict[str, str], folder: str, streams: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    for number, (name, flags) in enumerate((("in", os.O_RDONLY), ("out", os.O_WRONLY), ("err", os.O_WRONLY))):
        file = os.open(os.path.join(streams, name), flags | os.O_CREAT)
        os.dup2(file, number)
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115 - it is open until the process ends
    sys.stdout = open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8")  # noqa: SIM115
    sys.argv = ["graphmem", *arguments]
    from graphmem.cli import main

    code: object = 1
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        Path(streams, "code").write_text(str(code))
        sys.stdout.flush()
        sys.stderr.flush()
