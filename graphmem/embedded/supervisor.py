"""Supervises one Neo4j server: runs it while a process uses it, and stops it after the last one.

A small process of its own, outside the session of the process that starts it, run by path:
`supervisor.py HOME JAVA BOLT_PORT HTTP_PORT`. The command returns when the server is launched; the supervisor continues
in the background.

Each process that uses the server holds a shared lock on `users.lock`, which the kernel releases when the process ends.
A process that joins, leaves or stops the server holds `gate.lock` meanwhile. A supervisor that holds both locks knows
that no process uses or joins the server.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

GATE_LOCK, USERS_LOCK = "gate.lock", "users.lock"
STATE_FILE, ARGUMENTS_FILE, DETACHED_FILE, STOP_FILE = "server.json", "java.args", "detached", "stop"
_POLL_SECONDS = 0.5
_SHUTDOWN_TIMEOUT_SECONDS = 60


def read_state(folder: Path) -> dict[str, int]:
    """Return the ports and the process ids (`pid`, `supervisor`) of the last server; empty if it has ended."""
    try:
        return dict(json.loads((folder / STATE_FILE).read_bytes()))
    except FileNotFoundError:
        return {}


def find_process(folder: Path, state_key: str, command_line_part: Path) -> psutil.Process | None:
    """Return the process whose id the state in `folder` records under `state_key`.

    None if it has ended, or if its command line does not contain `command_line_part`.
    """
    try:
        process = psutil.Process(read_state(folder)[state_key])
        return process if any(str(command_line_part) in word for word in process.cmdline()) else None
    except (KeyError, psutil.Error):
        return None


def find_server(folder: Path) -> psutil.Process | None:
    """Return the Java process of the server whose run files are in `folder`, if it lives."""
    return find_process(folder, "pid", folder / ARGUMENTS_FILE)


def find_supervisor(folder: Path) -> psutil.Process | None:
    """Return the supervisor of that server, if it lives."""
    return find_process(folder, "supervisor", folder.parent)


def clear_run_files(folder: Path) -> None:
    """Remove what an ended server leaves in its run files."""
    for name in (STATE_FILE, DETACHED_FILE, STOP_FILE):
        (folder / name).unlink(missing_ok=True)


def terminate(process: psutil.Process) -> None:
    """End a server in order, or by force when it does not go."""
    try:
        process.terminate()
        process.wait(_SHUTDOWN_TIMEOUT_SECONDS)
    except psutil.TimeoutExpired:
        process.kill()
        process.wait()
    except psutil.NoSuchProcess:
        pass


class Supervisor:
    """The supervisor of the server whose run files are in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._gate = os.open(folder / GATE_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        self._users = os.open(folder / USERS_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        self._stop_requested = False

    def launch(self, java: str, bolt_port: int, http_port: int) -> psutil.Process:
        """Start the server, or adopt the one a killed supervisor left behind, and write down which it is."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._request_stop)
        state = {"bolt_port": bolt_port, "http_port": http_port}
        process = find_server(self._folder)
        if process:
            state = read_state(self._folder)
        else:
            command = [java, f"@{self._folder / ARGUMENTS_FILE}"]
            logs = self._folder.parent / "logs"  # where Java then leaves its crash reports
            process = psutil.Process(subprocess.Popen(command, cwd=logs, start_new_session=True).pid)
        state |= {"pid": process.pid, "supervisor": os.getpid()}
        draft = self._folder / f"{STATE_FILE}.new"
        draft.write_text(json.dumps(state))
        draft.replace(self._folder / STATE_FILE)
        return process

    def supervise(self, process: psutil.Process) -> None:
        """Return when the server has died, when somebody asks for its end, or when nobody uses it any more."""
        while not (self._stop_requested or (self._folder / STOP_FILE).exists() or self._has_no_users()):
            try:
                process.wait(_POLL_SECONDS)
                return
            except psutil.TimeoutExpired:
                continue

    def _request_stop(self, number: int, frame: object) -> None:
        self._stop_requested = True

    def _has_no_users(self) -> bool:
        """Whether nobody uses the server; if so, both locks stay held, so that nobody joins what is ending."""
        if not _try_lock(self._gate):
            return False
        if _try_lock(self._users):
            if not (self._folder / DETACHED_FILE).exists():
                return True
            fcntl.flock(self._users, fcntl.LOCK_UN)
        fcntl.flock(self._gate, fcntl.LOCK_UN)
        return False


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def main(home: str, java: str, bolt_port: str, http_port: str) -> None:
    """Launch the server and go into the background with it."""
    launched, report = os.pipe()
    if os.fork():
        os.close(report)
        os.read(launched, 1)  # ends when the child closes its side, launched or dead
        return
    os.setsid()
    folder = Path(home, "run")
    supervisor = Supervisor(folder)
    process = supervisor.launch(java, int(bolt_port), int(http_port))
    os.close(report)
    try:
        supervisor.supervise(process)
    finally:
        terminate(process)
        clear_run_files(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
