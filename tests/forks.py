"""Runs programs in forks of a process that has imported graphmem already: importing takes most of their time.

What a start imports, and how long that takes, is tested with processes of their own.
"""

from __future__ import annotations

import atexit
import gc
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.connection import wait
from pathlib import Path
from types import ModuleType
from typing import Any

PRELOADED = (
    "graphmem.app.job_handlers",
    "graphmem.cli.app",
    "graphmem.cli.doctor_checks",
    "graphmem.cli.lazy_memory",
    "graphmem.cli.views",
    "graphmem.graph_memory",
    "graphmem.models.openai_api",
    "graphmem.models.provider_model",
    "graphmem_api.app",
    "graphmem_api.server",
    "onnxruntime",
    "openai.resources",
    "openai.types",
    "tokenizers",
    "uvloop",
    __name__,
)
"""The modules that the forked process has imported."""

_context = get_context("forkserver")
_context.set_forkserver_preload(list(PRELOADED))

_bookkeeping = threading.Lock()
"""Held while multiprocessing reads how processes ended, which it does at each start too, and can only once."""


class Fork:
    """A running program, with the methods of `subprocess.Popen` that tests need."""

    def __init__(
        self,
        run: Callable[..., None],
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        *more: Any,
    ) -> None:
        """Call `run(*more)` with the arguments of a program, in an environment and a folder of its own."""
        given = (run, list(arguments), dict(environment), str(folder), *more)
        self._process = _context.Process(target=_run, args=given)
        with _bookkeeping:
            self._process.start()
        assert self._process.pid
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit status, or the negative number of the signal that ended it; None while it runs."""
        with _bookkeeping:
            return self._process.exitcode

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; raise TimeoutExpired when it takes longer than `timeout` seconds."""
        wait([self._process.sentinel], timeout)
        code = self.returncode
        if code is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def start_command(arguments: Sequence[str], environment: Mapping[str, str], folder: Path, streams: Path) -> Fork:
    """Start `graphmem` with its input from the file `in` of the folder `streams`, and its output to `out` and `err`."""
    return Fork(_run_with_streams, ["graphmem", *arguments], environment, folder, str(streams), _run_command)


def start_script(
    script: Path, *arguments: str, environment: Mapping[str, str] = os.environ, folder: Path | None = None
) -> Fork:
    """Start a Python file as the program that it is."""
    return Fork(_run_python, [str(script), *arguments], environment, folder or Path.cwd())


def start_python(arguments: Sequence[str], environment: Mapping[str, str], folder: Path, streams: Path) -> Fork:
    """Start `python` with arguments, with its output to the files `out` and `err` of the folder `streams`."""
    return Fork(_run_with_streams, arguments, environment, folder, str(streams), _run_python)


def run_python(
    arguments: Sequence[str], environment: Mapping[str, str] = os.environ, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `python` with arguments to its end, and return what it wrote."""
    with tempfile.TemporaryDirectory() as streams:
        process = start_python(arguments, environment, folder or Path.cwd(), Path(streams))
        return subprocess.CompletedProcess(arguments, process.wait(240), *read_streams(streams))


def read_streams(streams: str) -> tuple[str, str]:
    """Return what a process wrote to the files `out` and `err` of a folder."""
    out, err = (Path(streams, name).read_bytes().decode() for name in ("out", "err"))
    return out, err


def _run_with_streams(streams: str, program: Callable[[], None]) -> None:
    """Run a program with the file `in` of a folder as its input, if it exists, and `out` and `err` for its output."""
    for number, (name, flags) in enumerate((("in", os.O_RDONLY), ("out", os.O_WRONLY), ("err", os.O_WRONLY))):
        file = os.open(os.path.join(streams, name), flags | os.O_CREAT)
        os.dup2(file, number)
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115 - it is open until the process ends
    sys.stdout = open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8")  # noqa: SIM115
    try:
        program()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _run_command() -> None:
    from graphmem.cli import main

    main()


def _run_python() -> None:
    """Do what `python` does with the arguments of this process, to the end: it waits for threads and calls `atexit`."""
    first, *rest = sys.argv
    try:
        if first == "-c":
            sys.path.insert(0, "")
            sys.argv = ["-c", *rest[1:]]
            main = sys.modules["__main__"] = ModuleType("__main__")
            exec(compile(rest[0], "<string>", "exec"), vars(main))
        else:
            sys.path.insert(0, str(Path(first).absolute().parent))
            runpy.run_path(first, run_name="__main__")
    finally:
        threading._shutdown()  # pyrefly: ignore[missing-attribute]
        atexit._run_exitfuncs()


def _run(run: Callable[..., None], arguments: list[str], environment: dict[str, str], folder: str, *more: Any) -> None:
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    sys.argv = arguments
    gc.freeze()  # what was imported is not garbage: looking through it would copy its pages
    # Signals do what they do to a program in a terminal, whatever the process of the tests ignores.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    run(*more)
