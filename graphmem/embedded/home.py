"""The data folder of one embedded Neo4j: its configuration, ports, password and run files."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from graphmem.embedded import supervisor
from graphmem.errors import ConfigurationError

NEO4J_USER = "neo4j"
_HOST = "127.0.0.1"
_MIN_FREE_BYTES = 512 * 1024 * 1024
_CONFIG_TEMPLATE = """\
# Written anew at every start.
server.default_listen_address={host}
server.bolt.enabled=true
server.bolt.listen_address={host}:{bolt}
server.bolt.advertised_address={host}:{bolt}
server.http.enabled=true
server.http.listen_address={host}:{http}
server.http.advertised_address={host}:{http}
server.http.x_forward.enabled=false
server.https.enabled=false
server.fleet_discovery.enabled=false
internal.dbms.bolt.netty_server_shutdown_quiet_period_duration=0s
internal.server.bolt.connection_shutdown_wait_time=1s
dbms.usage_report.enabled=false
client.allow_telemetry=false
server.memory.pagecache.size=256m
db.tx_log.rotation.size=16m
db.tx_log.rotation.retention_policy=2 files
"""


@dataclass(frozen=True)
class ServerInfo:
    """A running server: how to reach it, its process, and where its data and its password are kept."""

    uri: str
    user: str
    password: str = field(repr=False)
    browser_url: str
    pid: int
    home: Path
    password_file: Path
    detached: bool
    """Whether it stays up until it is stopped, rather than until its last user is gone."""


@dataclass(frozen=True)
class Neo4jHome:
    """The folder `neo4j` in a data folder, which is one server's home."""

    path: Path

    @classmethod
    def in_data_dir(cls, data_dir: Path) -> Neo4jHome:
        """Return the home in a data folder."""
        return cls(data_dir.expanduser().resolve() / "neo4j")

    @property
    def run_dir(self) -> Path:
        """The folder of the run files."""
        return self.path / "run"

    @property
    def password_file(self) -> Path:
        """Where the password is kept, readable by its owner only."""
        return self.path / "password"

    @property
    def console_log(self) -> Path:
        """What Java itself writes."""
        return self.path / "logs" / "console.log"

    @property
    def server_log(self) -> Path:
        """What Neo4j tells its administrator."""
        return self.path / "logs" / "neo4j.log"

    def server_process(self) -> psutil.Process | None:
        """Return the Java process of the running server."""
        return supervisor.find_server(self.run_dir)

    def supervisor_process(self) -> psutil.Process | None:
        """Return the process that watches the running server."""
        return supervisor.find_supervisor(self.run_dir)

    def create_folders(self) -> None:
        """Make the folders, readable by their owner only; raise ConfigurationError where that is impossible."""
        try:
            for folder in (self.path, self.run_dir, self.path / "conf", self.path / "logs"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"{self.path} cannot be used as Neo4j's data folder ({error}): "
                "set GRAPHMEM_DATA_DIR to one you can write to."
            ) from error

    def check_space(self) -> None:
        """Raise ConfigurationError when the disk is too full for a server to start."""
        free = shutil.disk_usage(self.path).free
        if free < _MIN_FREE_BYTES:
            raise ConfigurationError(
                f"The disk of {self.path} has {free // 1024**2} MB free, but Neo4j needs "
                f"{_MIN_FREE_BYTES // 1024**2} MB: free disk space, or set GRAPHMEM_DATA_DIR to another folder."
            )

    def ensure_password(self) -> None:
        """Make a random password for new data; raise ConfigurationError when the password of old data is missing."""
        if (self.path / "data" / "databases").exists():
            self.password()
        elif not self.password_file.exists():
            descriptor = os.open(self.password_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(secrets.token_urlsafe(24))

    def password(self) -> str:
        """Read the kept password; raise ConfigurationError when it is missing."""
        try:
            return self.password_file.read_text(encoding="utf-8").strip()
        except FileNotFoundError as error:
            raise ConfigurationError(
                f"The password of the Neo4j data in {self.path} is missing: put it into {self.password_file}, "
                "or move the folder away to start empty."
            ) from error

    def write_config(self, bolt_port: int, http_port: int) -> None:
        """Write the server's configuration."""
        text = _CONFIG_TEMPLATE.format(host=_HOST, bolt=bolt_port, http=http_port)
        (self.path / "conf" / "neo4j.conf").write_text(text, encoding="utf-8")

    def rotate_logs(self) -> None:
        """Keep the logs of the last run under another name, so that the next run's speak of it alone."""
        for log in (self.server_log, self.console_log):
            if log.exists():
                log.replace(log.with_name(f"{log.stem}.previous.log"))

    def info(self) -> ServerInfo | None:
        """Describe the server that runs here, if one does."""
        state = supervisor.read_state(self.run_dir)
        process = self.server_process()
        if process is None:
            return None
        return ServerInfo(
            uri=f"bolt://{_HOST}:{state['bolt_port']}",
            user=NEO4J_USER,
            password=self.password(),
            browser_url=f"http://{_HOST}:{state['http_port']}/browser/",
            pid=process.pid,
            home=self.path,
            password_file=self.password_file,
            detached=(self.run_dir / supervisor.DETACHED_FILE).exists(),
        )

    def last_error(self) -> str:
        """Quote the line in which a server that died says why, and name the log."""
        for log in (self.server_log, self.console_log):
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
            said = [line.strip() for line in lines if "Caused by" in line or "ERROR" in line or "Error" in line]
            if said:
                return f"“{said[-1]}” (see {log})"
        return f"it said nothing in {self.console_log}"


def choose_ports(bolt_port: int, http_port: int) -> tuple[int, int]:
    """Return the ports to listen on, free ones for 0; raise ConfigurationError naming the port that is taken."""
    with _bind(bolt_port, "GRAPHMEM_BOLT_PORT") as bolt, _bind(http_port, "GRAPHMEM_HTTP_PORT") as http:
        return bolt.getsockname()[1], http.getsockname()[1]


def _bind(port: int, setting: str) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_HOST, port))
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"Port {port} is taken: free it, or set {setting} to another (0: any free one)."
        ) from error
    return listener
