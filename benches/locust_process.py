"""Runs Locust in a process of its own, since it replaces the standard library's sockets."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

STOP_SECONDS = 300
"""Seconds that requests in progress have to end after the time of a run."""


async def run_locust(
    file: Path, agents: int, seconds: float, environment: Mapping[str, str], *options: str, spawn_rate: int
) -> str:
    """Run the agents of a file for some seconds, with further options of Locust; return what it printed."""
    command = [
        *(sys.executable, "-m", "locust", "-f", str(file), "--headless"),
        *("--users", str(agents), "--spawn-rate", str(spawn_rate)),
        *("--run-time", f"{max(1, round(seconds))}s", "--stop-timeout", str(STOP_SECONDS)),
        *("--only-summary", "--exit-code-on-error", "0", *options),
    ]
    process = await asyncio.create_subprocess_exec(
        *command, env=os.environ | environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    text = output.decode(errors="replace")
    if process.returncode:
        raise RuntimeError(f"Locust ended with {process.returncode}: {text[-2000:]}")
    return text
