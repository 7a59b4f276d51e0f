"""The processes of an installation, which can be killed and started again."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import httpx
import psutil

ROOT = Path(__file__).parents[1]

READY_SECONDS = 300
"""Seconds in which an installation must be ready."""

STOP_SECONDS = 20
"""Seconds in which a process must end that was asked to."""


class Processes:
    """Processes by name; what they print is in one file of `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._log: IO[bytes] = (folder / "processes.log").open("ab")

    def start(self, name: str, command: Sequence[str], environment: dict[str, str] | None = None) -> None:
        """Start a program."""
        options: dict[str, Any] = {"cwd": self.folder, "env": environment, "stdout": self._log, "stderr": self._log}
        self._running[name] = subprocess.Popen(command, **options)

    def start_graphmem(self, name: str, arguments: Sequence[str], environment: dict[str, str]) -> None:
        """Start a command of graphmem from this checkout."""
        self.start(name, _graphmem_command(arguments), environment)

    async def run_graphmem(self, arguments: Sequence[str], environment: dict[str, str]) -> str:
        """Run a command of graphmem to its end and return what it prints; raise CalledProcessError where it fails."""
        command = _graphmem_command(arguments)
        process = await asyncio.create_subprocess_exec(
            *command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=self._log
        )
        printed, _ = await process.communicate()
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        return printed.decode()

    def is_running(self, name: str) -> bool:
        """Return whether a process was started and not ended since."""
        return name in self._running

    async def kill(self, name: str) -> None:
        """End a process as a crash would."""
        process = self._running.pop(name)
        process.kill()
        await asyncio.to_thread(process.wait)

    async def stop(self, name: str) -> None:
        """Ask a process to end, and wait until it has."""
        process = self._running.pop(name)
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(process.wait, STOP_SECONDS)
        process.kill()

    async def stop_all(self) -> None:
        """End every process."""
        for process in self._running.values():
            process.terminate()
        for name in [*self._running]:
            await self.stop(name)
        self._log.close()

    def memory_mb(self) -> dict[str, float]:
        """Return the resident memory of each process in MB."""
        found = {}
        for name, process in self._running.items():
            with suppress(psutil.NoSuchProcess):
                found[name] = psutil.Process(process.pid).memory_info().rss / 1e6
        return found


def _graphmem_command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-c", "from graphmem.cli import main; main()", *arguments]


def base_environment(**settings: str) -> dict[str, str]:
    """Return the environment of this process with no settings of graphmem but those given."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHMEM_", "OPENAI_"))}
    paths = [str(ROOT), str(ROOT / "api"), os.environ.get("PYTHONPATH", "")]
    return {**inherited, "PYTHONPATH": os.pathsep.join(paths), **settings}


async def wait_until_ready(*addresses: str) -> float:
    """Return the seconds until every address says that it is ready; raise TimeoutError."""
    started = time.monotonic()
    async with httpx.AsyncClient(timeout=5) as client, asyncio.timeout(READY_SECONDS):
        for address in addresses:
            while True:
                with suppress(httpx.HTTPError):
                    if (await client.get(f"{address}/readyz")).status_code == 200:
                        break
                await asyncio.sleep(0.2)
    return time.monotonic() - started
