"""Runs `graphmem` in a fork, with its input and output in files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.forks import Fork, redirect_to_files


def start_command(arguments: Sequence[str], environment: Mapping[str, str], folder: Path, streams: Path) -> Fork:
    """Start a command with its input from the file `in` of the folder `streams`, and its output to `out` and `err`."""
    return Fork(_run, ["graphmem", *arguments], environment, folder, str(streams))


def _run(streams: str) -> None:
    redirect_to_files(streams)
    from graphmem.cli import main

    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
