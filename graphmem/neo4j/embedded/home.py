"""The data folder of one embedded Neo4j: configuration, ports, password, run files, and links to Neo4j Browser."""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import psutil

from graphmem.runtime.errors import ConfigurationError, InvalidInput
from graphmem.runtime.files import MIN_FREE_FOR_SERVER, cypher_root, free_bytes, to_megabytes

DEFAULT_QUERY = "as_of"
"""The user query that is opened by default."""

USERS_QUERY = "users"
"""The query that is opened if no user is named; it lists the users."""

TENANT_QUERIES = frozenset({USERS_QUERY, "consolidation_runs"})
"""The queries about a whole tenant."""

BROWSER_SETTINGS = {"autoComplete": False, "useReadTransactions": True}
"""Settings of Neo4j Browser.

With `autoComplete`, Browser draws every relationship between the nodes of a result, including superseded versions that
the query left out. With `useReadTransactions`, a query typed there cannot change the graph by mistake.
"""

_SAMPLE_GROUP = "'default:mara'"
_RULE = re.compile(r"([\w.]+)\s*\{(.*?)\n\}", re.DOTALL)
_PROPERTY = re.compile(r'([\w-]+):\s*"?(.*?)"?;')


def setup_commands() -> list[str]:
    """Return the commands, without the leading colon, that make Browser draw only what a query returns, in colour."""
    grass = (cypher_root() / "explore" / "style.grass").read_text("utf-8")
    style = {selector: dict(_PROPERTY.findall(body)) for selector, body in _RULE.findall(grass)}
    return [f"config {json.dumps(BROWSER_SETTINGS)}", f"style {json.dumps(style)}"]


def query_names() -> list[str]:
    """Return the names of the prepared queries, sorted."""
    return sorted(path.stem for path in (cypher_root() / "explore").glob("*.cypher"))


def read_query(name: str, group_id: str) -> str:
    """Return a prepared query for one user; raise InvalidInput for an unknown name."""
    if name not in query_names():
        raise InvalidInput(f"There is no query {name}: choose one of {', '.join(query_names())}.")
    text = (cypher_root() / "explore" / f"{name}.cypher").read_text("utf-8")
    return text.replace(_SAMPLE_GROUP, json.dumps(group_id, ensure_ascii=False))


def browser_link(browser_url: str, bolt_uri: str, user: str, text: str) -> str:
    """Return the URL that opens Browser with server and user name filled in and `text` in the editor."""
    scheme, address = urlsplit(bolt_uri)[:2]
    query = {"dbms": f"{scheme}://{quote(user)}@{address}", "cmd": "edit", "arg": text}
    return f"{browser_url}?{urlencode(query, quote_via=quote)}"


LISTEN_ADDRESS = "127.0.0.1"
"""Address that the server listens on."""


@dataclass(frozen=True, slots=True)
class ServerState:
    """Ports and process ids of the last launched server."""

    bolt_port: int
    http_port: int
    pid: int
    supervisor: int


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The run files of one server in `folder`, a subfolder of the server's home."""

    folder: Path

    @property
    def lifecycle_lock(self) -> Path:
        """Lock that a process holds while it joins, leaves or stops the server."""
        return self.folder / "lifecycle.lock"

    @property
    def users_lock(self) -> Path:
        """Lock shared by all processes that use the server; the kernel releases it when a process ends."""
        return self.folder / "users.lock"

    @property
    def arguments(self) -> Path:
        """Java's arguments."""
        return self.folder / "java.args"

    @property
    def detached(self) -> Path:
        """Exists if the server continues to run without users."""
        return self.folder / "detached"

    @property
    def stop_request(self) -> Path:
        """Exists if the supervisor must stop the server."""
        return self.folder / "stop"

    @property
    def _state(self) -> Path:
        return self.folder / "server.json"

    def read_state(self) -> ServerState | None:
        """Return the state of the last server; None if it has ended."""
        try:
            return ServerState(**json.loads(self._state.read_bytes()))
        except FileNotFoundError:
            return None

    def write_state(self, state: ServerState) -> None:
        """Replace the state atomically: another process reads either the old state or the new one."""
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
    """Return a running process; None if its id now belongs to a process with another command line."""
    try:
        process = psutil.Process(pid)
        return process if any(str(command_line_part) in word for word in process.cmdline()) else None
    except psutil.Error:
        return None


NEO4J_USER = "neo4j"
"""User name on the server: Neo4j's initial user."""

_CONFIG_TEMPLATE: str = """\
# graphmem overwrites this file at every start.
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
browser.post_connect_cmd={browser_setup}
server.memory.pagecache.size=256m
internal.cypher.use_parameter_size=false
db.tx_log.rotation.size=4m
db.tx_log.rotation.retention_policy=1 files
db.checkpoint.interval.time=5m
"""
"""The server's configuration: no address but `LISTEN_ADDRESS`, no telemetry, a fast shutdown, small transaction logs.

By default, Neo4j replans a query for each order of magnitude of its list and text lengths: every query here would be
planned several times, half a second each, with identical plans.

Neo4j Browser runs `browser.post_connect_cmd` after each login.

Logs contain erased data until they are rotated and a checkpoint removes them. The Community edition has no command for
a checkpoint.
"""


@dataclass(frozen=True)
class ServerInfo:
    """A running server: its address, its process, and the location of its data and password."""

    uri: str
    user: str
    password: str = field(repr=False)
    browser_url: str
    pid: int
    started: float = field(compare=False)
    """When the process started, in seconds since 1970."""
    home: Path
    log: Path
    password_file: Path
    detached: bool
    """Whether the server runs until it is stopped; otherwise it stops when the last process using it ends."""


@dataclass(frozen=True)
class Neo4jHome:
    """The home folder of one server: `neo4j` in a data folder."""

    path: Path

    @classmethod
    def in_data_dir(cls, data_dir: Path) -> Neo4jHome:
        """Return the home in a data folder."""
        return cls(data_dir.expanduser().resolve() / "neo4j")

    @property
    def run_files(self) -> RunFiles:
        """The files through which the server's supervisor and users communicate."""
        return RunFiles(self.path / "run")

    @property
    def password_file(self) -> Path:
        """The password file, readable only by its owner."""
        return self.path / "password"

    @property
    def console_log(self) -> Path:
        """The output of the supervisor and Java."""
        return self.path / "logs" / "console.log"

    @property
    def server_log(self) -> Path:
        """Neo4j's log."""
        return self.path / "logs" / "neo4j.log"

    def create_folders(self) -> None:
        """Create the folders, readable only by their owner; raise ConfigurationError if this fails."""
        try:
            for folder in (self.path, self.run_files.folder, self.path / "conf", self.path / "logs"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"{self.path} cannot be used as Neo4j's data folder ({error}): "
                "set GRAPHMEM_DATA_DIR to one you can write to."
            ) from error

    def has_space(self) -> bool:
        """Return whether the disk has enough space for a server to start."""
        return free_bytes(self.path) >= MIN_FREE_FOR_SERVER

    def check_space(self) -> None:
        """Raise ConfigurationError if the disk is too full for a server to start."""
        if not self.has_space():
            free = free_bytes(self.path)
            raise ConfigurationError(
                f"The disk of {self.path} has {to_megabytes(free)} MB free, but Neo4j needs "
                f"{to_megabytes(MIN_FREE_FOR_SERVER)} MB: free disk space, or set GRAPHMEM_DATA_DIR to another folder."
            )

    def ensure_password(self) -> None:
        """Write a random password for new data; raise ConfigurationError if existing data has no stored password."""
        if (self.path / "data" / "databases").exists():
            self.password()
        elif not self.password_file.exists():
            descriptor = os.open(self.password_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(secrets.token_urlsafe(24))

    def password(self) -> str:
        """Return the stored password; raise ConfigurationError if it is missing."""
        try:
            return self.password_file.read_text(encoding="utf-8").strip()
        except FileNotFoundError as error:
            raise ConfigurationError(
                f"The password of the Neo4j data in {self.path} is missing: write it to {self.password_file}, "
                "or move the folder away to start with an empty database."
            ) from error

    def write_config(self, bolt_port: int, http_port: int) -> None:
        """Write the server's configuration."""
        setup = "; ".join(setup_commands())
        text = _CONFIG_TEMPLATE.format(host=LISTEN_ADDRESS, bolt=bolt_port, http=http_port, browser_setup=setup)
        (self.path / "conf" / "neo4j.conf").write_text(text, encoding="utf-8")

    def rotate_logs(self) -> None:
        """Rename the logs of the last run, so that new logs contain only one run."""
        for log in (self.server_log, self.console_log):
            if log.exists():
                log.replace(log.with_name(f"{log.stem}.previous.log"))

    def info(self) -> ServerInfo | None:
        """Return the running server, or None."""
        state, process = self.run_files.read_state(), self.run_files.server_process()
        if state is None or process is None:
            return None
        return ServerInfo(
            uri=f"bolt://{LISTEN_ADDRESS}:{state.bolt_port}",
            user=NEO4J_USER,
            password=self.password(),
            browser_url=f"http://{LISTEN_ADDRESS}:{state.http_port}/browser/",
            pid=process.pid,
            started=process.create_time(),
            home=self.path,
            log=self.server_log,
            password_file=self.password_file,
            detached=self.run_files.detached.exists(),
        )

    def last_words(self) -> str:
        """Return the last error in a dead server's logs, or else the last line, with the log's path."""
        logs = [(log, _read_lines(log)) for log in (self.server_log, self.console_log)]
        for log, lines in logs:
            errors = [line for line in lines if "Caused by" in line or "ERROR" in line or "Error" in line]
            if errors:
                return f" with “{errors[-1]}”: see {log}"
        for log, lines in logs:
            if lines:
                return f"; its log ends with “{lines[-1]}”: see {log}"
        return f": see {self.console_log}"


def _read_lines(log: Path) -> list[str]:
    """Return the non-empty lines of a log."""
    if not log.exists():
        return []
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line.strip() for line in lines if line.strip()]


def choose_ports(bolt_port: int, http_port: int) -> tuple[int, int]:
    """Return the ports to listen on, replacing 0 by a free port; raise ConfigurationError if a port is in use."""
    with _bind(bolt_port, "GRAPHMEM_BOLT_PORT") as bolt, _bind(http_port, "GRAPHMEM_HTTP_PORT") as http:
        return bolt.getsockname()[1], http.getsockname()[1]


def _bind(port: int, setting: str) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LISTEN_ADDRESS, port))
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"Port {port} is in use: free it, or set {setting} to another port (0: any free one)."
        ) from error
    return listener
