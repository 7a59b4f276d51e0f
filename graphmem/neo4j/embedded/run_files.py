"""The run files of one embedded Neo4j, by which its supervisor and the processes that use it communicate."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

LISTEN_ADDRESS = "127.0.0.1"
"""The address that the server listens on."""


@dataclass(frozen=True, slots=True)
class ServerState:
    """The ports and the process ids of the last server that was launched."""

    bolt_port: int
    http_port: int
    pid: int
    supervisor: int


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one server in `folder`, which is a subfolder of the server's home."""

    folder: Path

    @property
    def gate_lock(self) -> Path:
        """Lock that a process holds while it joins, leaves or stops the server."""
        return self.folder / "gate.lock"

    @property
    def users_lock(self) -> Path:
        """Lock that every process that uses the server shares; the kernel releases it when the process ends."""
        return self.folder / "users.lock"

    @property
    def arguments(self) -> Path:
        """The arguments of Java."""
        return self.folder / "java.args"

    @property
    def detached(self) -> Path:
        """Exists when the server continues to run without users."""
        return self.folder / "detached"

    @property
    def stop_request(self) -> Path:
        """Exists when the supervisor shall stop the server."""
        return self.folder / "stop"

    @property
    def _state(self) -> Path:
        return self.folder / "server.json"

    def read_state(self) -> ServerState | None:
        """Return the state of the last server; None when it has ended."""
        try:
            return ServerState(**json.loads(self._state.read_bytes()))
        except FileNotFoundError:
            return None

    def write_state(self, state: ServerState) -> None:
        """Replace the state at once: another process reads the old state or the new one."""
        draft = self._state.with_name(f"{self._state.name}.new")
        draft.write_text(json.dumps(asdict(state)))
        draft.replace(self._state)

    def server_process(self) -> psutil.Process | None:
        """Return the running Java process of the server."""
        state = self.read_state()
        return _find_process(state.pid, self.arguments) if state else None

    def supervisor_process(self) -> psutil.Process | None:
        """Return the running supervisor of the server."""
        state = self.read_state()
        return _find_process(state.supervisor, self.folder.parent) if state else None

    def clear(self) -> None:
        """Remove the files that describe an ended server."""
        for path in (self._state, self.detached, self.stop_request):
            path.unlink(missing_ok=True)


def _find_process(pid: int, command_line_part: Path) -> psutil.Process | None:
    """Return a running process; None when its id now belongs to a process with another command line."""
    try:
        process = psutil.Process(pid)
        return process if any(str(command_line_part) in word for word in process.cmdline()) else None
    except psutil.Error:
        return None
