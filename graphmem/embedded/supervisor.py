"""Supervises one Neo4j server: runs it while a process uses it, and stops it after the last one.

The supervisor is a process of its own, outside the session of the process that starts it:
`python -m graphmem.embedded.supervisor HOME JAVA BOLT_PORT HTTP_PORT`. The command returns when the server is launched;
the supervisor continues in the background. It imports only what it needs, because it runs as long as the server.

A supervisor that holds `gate.lock` and `users.lock` (see `RunFiles`) knows that no process uses or joins the server.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil

from graphmem.embedded.run_files import RunFiles, ServerState
from graphmem.file_lock import FileLock

_POLL_SECONDS = 0.5
"""Seconds between two looks at the server and its users."""

_SHUTDOWN_TIMEOUT_SECONDS = 60
"""Seconds in which a server must end after SIGTERM; then it is killed."""


def terminate(process: psutil.Process) -> None:
    """Stop a server; kill it when it does not end within `_SHUTDOWN_TIMEOUT_SECONDS`."""
    try:
        process.terminate()
        process.wait(_SHUTDOWN_TIMEOUT_SECONDS)
    except psutil.TimeoutExpired:
        process.kill()
        process.wait()
    except psutil.NoSuchProcess:
        pass


class Supervisor:
    """The supervisor of the server with the given run files."""

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._gate = FileLock(files.gate_lock)
        self._users = FileLock(files.users_lock)
        self._stop_requested = False

    def launch(self, java: str, bolt_port: int, http_port: int) -> psutil.Process:
        """Start the server, or adopt the one that a killed supervisor left behind; write the state."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._request_stop)
        process, state = self._files.server_process(), self._files.read_state()
        if process is None or state is None:
            command = [java, f"@{self._files.arguments}"]
            logs = self._files.folder.parent / "logs"  # Java writes crash reports to its working directory
            process = psutil.Process(subprocess.Popen(command, cwd=logs, start_new_session=True).pid)
            state = ServerState(bolt_port, http_port, process.pid, os.getpid())
        self._files.write_state(replace(state, supervisor=os.getpid()))
        return process

    def supervise(self, process: psutil.Process) -> None:
        """Return when the server has ended, when a process asks to stop it, or when no process uses it."""
        while not (self._stop_requested or self._files.stop_request.exists() or self._has_no_users()):
            try:
                process.wait(_POLL_SECONDS)
                return
            except psutil.TimeoutExpired:
                continue

    def _request_stop(self, number: int, frame: object) -> None:
        self._stop_requested = True

    def _has_no_users(self) -> bool:
        """Return whether no process uses the server; if so, both locks stay held, so that none joins any more."""
        if not self._gate.try_acquire():
            return False
        if self._users.try_acquire():
            if not self._files.detached.exists():
                return True
            self._users.release()
        self._gate.release()
        return False


def main(home: str, java: str, bolt_port: str, http_port: str) -> None:
    """Launch the server and supervise it in the background."""
    launched, report = os.pipe()
    if os.fork():
        os.close(report)
        os.read(launched, 1)  # returns when the child closes its end: the server is launched, or the child has died
        return
    os.setsid()
    files = RunFiles(Path(home, "run"))
    supervisor = Supervisor(files)
    process = supervisor.launch(java, int(bolt_port), int(http_port))
    os.close(report)
    try:
        supervisor.supervise(process)
    finally:
        terminate(process)
        files.clear()


if __name__ == "__main__":
    main(*sys.argv[1:])
