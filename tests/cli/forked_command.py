"""Runs `graphmem` in a fork, with its input and output in files."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.forks import Fork


def start_command(arguments: Sequence[str], environment: Mapping[str, str], folder: Path, streams: Path) -> Fork:
    """Start a command with its input from the file `in` of the folder `streams`, and its output to `out` and `err`."""
    return Fork(_run, ["graphmem", *arguments], environment, folder, str(streams))


def _run(streams: str) -> None:
    for number, (name, flags) in enumerate((("in", os.O_RDONLY), ("out", os.O_WRONLY), ("err", os.O_WRONLY))):
        file = os.open(os.path.join(streams, name), flags | os.O_CREAT)
        os.dup2(file, number)
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115 - it is open until the process ends
    sys.stdout = open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8")  # noqa: SIM115
    from graphmem.cli import main

    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
