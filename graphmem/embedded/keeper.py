"""Keeps one Neo4j server: runs it while somebody uses it, ends it when the last user is gone.

Run by path as a process of its own, small and apart from the session of whoever started it:
`keeper.py HOME JAVA BOLT_PORT HTTP_PORT`. It returns as soon as the server is launched and goes on in the background.

Every user of the server holds a shared lock on `users.lock`, which the kernel takes back however the user dies. Whoever
joins, leaves or stops holds `gate.lock` meanwhile. With both in hand the keeper knows that nobody is there or coming.
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

GATE, USERS = "gate.lock", "users.lock"
STATE, ARGUMENTS, DETACHED, STOP = "server.json", "java.args", "detached", "stop"
_LOOK_SECONDS = 0.5
_FAREWELL_SECONDS = 60


def read_state(folder: Path) -> dict[str, int]:
    """Return the ports and the process ids (`pid`, `keeper`) of the server last launched; empty when it has ended."""
    try:
        return dict(json.loads((folder / STATE).read_bytes()))
    except FileNotFoundError:
        return {}


def running(folder: Path, who: str, mark: Path) -> psutil.Process | None:
    """Return the process that the state in `folder` calls `who`, if it lives and has `mark` on its command line."""
    try:
        process = psutil.Process(read_state(folder)[who])
        return process if any(str(mark) in word for word in process.cmdline()) else None
    except (KeyError, psutil.Error):
        return None


def server(folder: Path) -> psutil.Process | None:
    """Return the Java process of the server whose run files are in `folder`, if it lives."""
    return running(folder, "pid", folder / ARGUMENTS)


def keeper(folder: Path) -> psutil.Process | None:
    """Return the keeper of that server, if it lives."""
    return running(folder, "keeper", folder.parent)


def forget(folder: Path) -> None:
    """Remove what an ended server leaves in its run files."""
    for name in (STATE, DETACHED, STOP):
        (folder / name).unlink(missing_ok=True)


def end(process: psutil.Process) -> None:
    """End a server in order, or by force when it does not go."""
    try:
        process.terminate()
        process.wait(_FAREWELL_SECONDS)
    except psutil.TimeoutExpired:
        process.kill()
        process.wait()
    except psutil.NoSuchProcess:
        pass


class Keeper:
    """The keeper of the server whose run files are in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._gate = os.open(folder / GATE, os.O_RDWR | os.O_CREAT, 0o600)
        self._users = os.open(folder / USERS, os.O_RDWR | os.O_CREAT, 0o600)
        self._asked_to_end = False

    def launch(self, java: str, bolt_port: int, http_port: int) -> psutil.Process:
        """Start the server, or adopt the one a killed keeper left behind, and write down which it is."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end_soon)
        state = {"bolt_port": bolt_port, "http_port": http_port}
        process = server(self._folder)
        if process:
            state = read_state(self._folder)
        else:
            command = [java, f"@{self._folder / ARGUMENTS}"]
            logs = self._folder.parent / "logs"  # where Java then leaves its crash reports
            process = psutil.Process(subprocess.Popen(command, cwd=logs, start_new_session=True).pid)
        state |= {"pid": process.pid, "keeper": os.getpid()}
        draft = self._folder / f"{STATE}.new"
        draft.write_text(json.dumps(state))
        draft.replace(self._folder / STATE)
        return process

    def watch(self, process: psutil.Process) -> None:
        """Return when the server has died, when somebody asks for its end, or when nobody uses it any more."""
        while not (self._asked_to_end or (self._folder / STOP).exists() or self._is_deserted()):
            try:
                process.wait(_LOOK_SECONDS)
                return
            except psutil.TimeoutExpired:
                continue

    def _end_soon(self, number: int, frame: object) -> None:
        self._asked_to_end = True

    def _is_deserted(self) -> bool:
        """Whether nobody uses the server; if so, both locks stay held, so that nobody joins what is ending."""
        if not _grab(self._gate):
            return False
        if _grab(self._users):
            if not (self._folder / DETACHED).exists():
                return True
            fcntl.flock(self._users, fcntl.LOCK_UN)
        fcntl.flock(self._gate, fcntl.LOCK_UN)
        return False


def _grab(descriptor: int) -> bool:
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
    keeper = Keeper(folder)
    process = keeper.launch(java, int(bolt_port), int(http_port))
    os.close(report)
    try:
        keeper.watch(process)
    finally:
        end(process)
        forget(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
