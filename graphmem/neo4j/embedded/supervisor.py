"""Supervises one Neo4j server: runs it while a process uses it, restarts it, and stops it after the last user.

The supervisor is a separate process, outside the session of the process that starts it: `python -m
graphmem.neo4j.embedded.supervisor HOME JAVA BOLT_PORT HTTP_PORT`. The command returns when the server is launched; the
supervisor continues in the background. It imports only what it needs, because it runs as long as the server.

A supervisor that holds `lifecycle.lock` and `users.lock` (see `RunFiles`) knows that no process uses or joins the
server.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil

from graphmem.neo4j.embedded.home import LISTEN_ADDRESS, RunFiles, ServerState
from graphmem.runtime.files import FileLock

_POLL_SECONDS = 0.5
"""Seconds between checks of the server and its users."""

_SHUTDOWN_TIMEOUT_SECONDS = 60
"""Seconds within which a server must end after SIGTERM before it is killed."""

ABANDONED_SECONDS = 30.0
"""Seconds that a server keeps running after its last user was killed, so that a restarted user can rejoin it."""

MIN_RESTART_PAUSE_SECONDS = 0.5
"""Seconds before an ended server is restarted; the pause doubles each time a server ends soon."""

MAX_RESTART_PAUSE_SECONDS = 60.0
"""Maximum pause in seconds; a server that has run longer than this is restarted after the minimum pause."""


def terminate(process: psutil.Process) -> None:
    """Stop a server; kill it if it does not end within `_SHUTDOWN_TIMEOUT_SECONDS`."""
    try:
        process.terminate()
        process.wait(_SHUTDOWN_TIMEOUT_SECONDS)
    except psutil.TimeoutExpired:
        process.kill()
        process.wait()
    except psutil.NoSuchProcess:
        pass


class Supervisor:
    """The supervisor of the server with the given run files, started with `java`."""

    def __init__(self, files: RunFiles, java: str) -> None:
        self._files = files
        self._java = java
        self._lifecycle_lock = FileLock(files.lifecycle_lock)
        self._users = FileLock(files.users_lock)
        self._stop_requested = False
        self._has_answered = False
        self._unused_since: float | None = None
        self._process: psutil.Process | None = None

    def launch(self, bolt_port: int, http_port: int) -> None:
        """Start the server, or adopt the server that a killed supervisor left behind; write the state."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._request_stop)
        process, state = self._files.server_process(), self._files.read_state()
        if process is None or state is None:
            self._start_server(bolt_port, http_port)
        else:
            self._process = process
            self._files.write_state(replace(state, supervisor=os.getpid()))

    def run(self) -> None:
        """Supervise until a process asks to stop the server, no process uses it, or its first start fails.

        A server that has answered is restarted on the same ports whenever it ends.
        """
        pause = MIN_RESTART_PAUSE_SECONDS
        started = time.monotonic()
        while self._wait_for_end():
            if not self._has_answered:
                return  # the process that waits for the first start reports why it failed
            if time.monotonic() - started > MAX_RESTART_PAUSE_SECONDS:
                pause = MIN_RESTART_PAUSE_SECONDS
            _report(f"Neo4j has ended; it is started again in {pause:.1f} s.")
            if not self._wait_before_restart(pause):
                return
            pause = min(2 * pause, MAX_RESTART_PAUSE_SECONDS)
            started = time.monotonic()
            self._restart_server()

    def stop_server(self) -> None:
        """Stop the server if it runs, and remove the files that describe it."""
        if self._process is not None:
            terminate(self._process)
        self._files.clear()

    def _wait_for_end(self) -> bool:
        """Wait until the server has ended; return False if it must be stopped instead."""
        while not self._is_to_stop():
            self._has_answered = self._has_answered or self._is_answering()
            if self._process is None:
                return True
            try:
                self._process.wait(_POLL_SECONDS)
            except psutil.TimeoutExpired:
                continue
            return True
        return False

    def _wait_before_restart(self, seconds: float) -> bool:
        """Wait; return False if the server must be stopped meanwhile."""
        end = time.monotonic() + seconds
        while not (stop := self._is_to_stop()) and time.monotonic() < end:
            time.sleep(min(_POLL_SECONDS, seconds))
        return not stop

    def _restart_server(self) -> None:
        state = self._files.read_state()
        assert state is not None, "only this process removes the state of its server"
        try:
            self._start_server(state.bolt_port, state.http_port)
        except OSError as error:  # such as a full disk
            _report(f"Neo4j cannot be started: {error}.")

    def _start_server(self, bolt_port: int, http_port: int) -> None:
        command = [self._java, f"@{self._files.arguments}"]
        logs = self._files.folder.parent / "logs"  # Java writes crash reports to its working directory
        self._process = None
        self._process = psutil.Process(subprocess.Popen(command, cwd=logs, start_new_session=True).pid)
        try:
            self._files.write_state(ServerState(bolt_port, http_port, self._process.pid, os.getpid()))
        except OSError:
            terminate(self._process)
            raise

    def _is_answering(self) -> bool:
        """Return whether the server accepts HTTP connections, its last protocol to start."""
        state = self._files.read_state()
        if state is None:
            return False
        try:
            socket.create_connection((LISTEN_ADDRESS, state.http_port), _POLL_SECONDS).close()
        except OSError:
            return False
        return True

    def _request_stop(self, number: int, frame: object) -> None:
        self._stop_requested = True

    def _is_to_stop(self) -> bool:
        return self._stop_requested or self._files.stop_request.exists() or self._has_no_users()

    def _has_no_users(self) -> bool:
        """Return whether no process has used the server for `ABANDONED_SECONDS`.

        If so, both locks stay held, so that no process can join. A last user that leaves normally requests the stop
        itself.
        """
        if not self._lifecycle_lock.try_acquire():
            return False
        if self._users.try_acquire():
            if not self._files.detached.exists() and self._is_abandoned():
                return True
            self._users.release()
        else:
            self._unused_since = None
        self._lifecycle_lock.release()
        return False

    def _is_abandoned(self) -> bool:
        now = time.monotonic()
        if self._unused_since is None:
            self._unused_since = now
        return now - self._unused_since >= ABANDONED_SECONDS


def _report(message: str) -> None:
    """Write a line to the console log."""
    print(f"graphmem: {message}", flush=True)


def main(home: str, java: str, bolt_port: str, http_port: str) -> None:
    """Launch the server and supervise it in the background."""
    launched, report = os.pipe()
    if os.fork():
        os.close(report)
        os.read(launched, 1)  # returns when the child closes its end: the server is launched, or the child has died
        return
    os.setsid()
    files = RunFiles(Path(home, "run"))
    supervisor = Supervisor(files, java)
    try:
        supervisor.launch(int(bolt_port), int(http_port))
        os.close(report)
        supervisor.run()
    finally:
        supervisor.stop_server()


if __name__ == "__main__":
    main(*sys.argv[1:])
