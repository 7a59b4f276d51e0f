"""The server that runs on this machine's data folder: where `graphmem serve` records it, and how commands find it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection, HTTPException
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from graphmem.runtime.errors import ConfigurationError

if TYPE_CHECKING:
    from graphmem.runtime.settings import Settings

RECORD_FILE = "server.json"
"""Name of the file in the data folder, which only its owner can read."""

HEALTH_SECONDS = 2.0
"""Seconds that a command waits for a server to say that it is well; after them it is busy, and used all the same."""


@dataclass(frozen=True)
class LocalServer:
    """A running server; `database` tells which data it serves, `started` its process from a later one of that id."""

    url: str
    pid: int
    started: float
    database: str
    secret: str = field(repr=False)


@contextmanager
def record_server(settings: Settings, url: str, secret: str) -> Iterator[None]:
    """Record a server of this process in the data folder while the block lasts.

    Raises ConfigurationError when the folder is served already.
    """
    record = LocalServer(url, os.getpid(), _start_time(os.getpid()), _describe_database(settings), secret)
    path = settings.data_dir / RECORD_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(record), file)
    try:
        _claim(path, draft)
    finally:
        draft.unlink(missing_ok=True)
    try:
        yield
    finally:
        if _read_record(path) == record:
            path.unlink(missing_ok=True)


def _claim(path: Path, draft: Path) -> None:
    """Put a record in place, unless the one there is of a server that runs; one claim at a time."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # else two that find the record of a killed process would both replace it
        found = _read_record(path)
        if found is not None and _is_running(found):
            raise ConfigurationError(
                f"The data folder {path.parent} is served already, at {found.url} (process {found.pid}): use that "
                "server, end it, or choose another folder with GRAPHMEM_DATA_DIR."
            )
        draft.replace(path)
    finally:
        os.close(folder)


def new_secret() -> str:
    """Return a random secret without a dot."""
    return secrets.token_urlsafe(32)


def find_local_server(settings: Settings) -> LocalServer | None:
    """Return the server that runs on the database of the settings; None when its process is gone or it is not well."""
    record = _read_record(settings.data_dir / RECORD_FILE)
    if record is None or record.database != _describe_database(settings) or not _is_running(record):
        return None
    return record if _is_on_loopback(record.url) and _is_healthy(record.url) else None


def refuse_other_database(settings: Settings) -> None:
    """Raise ConfigurationError when the server that runs on the data folder has another database than the settings."""
    record = _read_record(settings.data_dir / RECORD_FILE)
    if record is not None and record.database != _describe_database(settings) and _is_running(record):
        raise ConfigurationError(
            f"The server at {record.url} serves the data folder {settings.data_dir} with another database than these "
            "settings name: set GRAPHMEM_NEO4J_URI and GRAPHMEM_JOBS_URL as for that server, or give --no-server to "
            "work on the database of these settings."
        )


def _is_on_loopback(url: str) -> bool:
    """Return whether a server listens on this machine's own address, where it accepts the secret."""
    return ip_address(urlsplit(url).hostname or "").is_loopback


def _read_record(path: Path) -> LocalServer | None:
    with suppress(OSError, ValueError, TypeError):
        return LocalServer(**json.loads(path.read_text(encoding="utf-8")))
    return None


def _describe_database(settings: Settings) -> str:
    """Return a digest of the addresses of the database and of the job store, which may hold passwords."""
    addresses = (settings.neo4j_uri, settings.neo4j_user, settings.neo4j_database, settings.jobs_url)
    return hashlib.sha256(repr(addresses).encode()).hexdigest()


def _is_running(record: LocalServer) -> bool:
    import psutil

    with suppress(psutil.Error):
        return _start_time(record.pid) == record.started
    return False


def _start_time(pid: int) -> float:
    import psutil

    return float(psutil.Process(pid).create_time())


def _is_healthy(url: str) -> bool:
    """Return whether a server says that it is well, or is too busy to answer; it is asked without the secret."""
    address = urlsplit(url)
    connection = HTTPConnection(address.hostname or "", address.port, timeout=HEALTH_SECONDS)
    try:
        connection.request("GET", "/healthz")
        return bool(json.loads(connection.getresponse().read()) == {"status": "ok"})
    except TimeoutError:
        return True
    except (OSError, HTTPException, ValueError):
        return False
    finally:
        connection.close()
