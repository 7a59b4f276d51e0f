"""Choosing the target of a command (a local or remote server, or services of its own), and showing progress."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection, HTTPException
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import typer

from graphmem.cli.command import Flags, Output, exit_with_error, named_as_options, read_settings
from graphmem.runtime.errors import ConfigurationError, Forbidden, InvalidInput
from graphmem.runtime.short_ids import FULL_ID_CHARS

if TYPE_CHECKING:
    from graphmem.app.bootstrap import Services
    from graphmem.client import AsyncClient
    from graphmem.neo4j.embedded.home import ServerInfo
    from graphmem.runtime.progress import ProgressCallback, StartProgress
    from graphmem.runtime.settings import Settings
    from graphmem.user_data.models import ErasureResult


RECORD_FILE = "server.json"
"""Name of the record in the data folder; only its owner can read it."""

HEALTH_SECONDS = 2.0
"""Seconds to wait for a server's health check; a server that takes longer is considered busy and used all the same."""


@dataclass(frozen=True)
class LocalServer:
    """A running server; `database` identifies its data, `started` tells its process from later ones with its id."""

    url: str
    pid: int
    started: float
    database: str
    secret: str = field(repr=False)


@contextmanager
def record_server(settings: Settings, url: str, secret: str) -> Iterator[None]:
    """Record this process's server in the data folder while the block lasts.

    Raises ConfigurationError if the folder is already served.
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
    """Put a record in place unless the existing one is of a running server; one process at a time."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # otherwise two processes could both replace the record of a killed one
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
    """Return the running server of the settings' database; None if its process is gone or it is unhealthy."""
    record = _read_record(settings.data_dir / RECORD_FILE)
    if record is None or record.database != _describe_database(settings) or not _is_running(record):
        return None
    return record if _is_on_loopback(record.url) and _is_healthy(record.url) else None


def refuse_other_database(settings: Settings) -> None:
    """Raise ConfigurationError if the data folder's running server has another database than the settings."""
    record = _read_record(settings.data_dir / RECORD_FILE)
    if record is not None and record.database != _describe_database(settings) and _is_running(record):
        raise ConfigurationError(
            f"The server at {record.url} serves the data folder {settings.data_dir} with another database than these "
            "settings name: set GRAPHMEM_NEO4J_URI and GRAPHMEM_JOBS_URL as for that server, or give --no-server to "
            "work on the database of these settings."
        )


def _is_on_loopback(url: str) -> bool:
    """Return whether a server listens on a loopback address, where it accepts the secret."""
    return ip_address(urlsplit(url).hostname or "").is_loopback


def _read_record(path: Path) -> LocalServer | None:
    with suppress(OSError, ValueError, TypeError):
        return LocalServer(**json.loads(path.read_text(encoding="utf-8")))
    return None


def _describe_database(settings: Settings) -> str:
    """Return a digest of the addresses of the database and the job store, which may contain passwords."""
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
    """Return whether a server is healthy, or too busy to answer; the secret is not sent."""
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


DEFAULT_TENANT = "default"
"""The tenant of commands without `--tenant`."""


@asynccontextmanager
async def open_services(
    output: Output, *, worker: bool = False, settings: Settings | None = None, demo: bool = False
) -> AsyncIterator[Services]:
    """Open the services as configured; with `worker`, this process also runs jobs, for a `demo` only its own."""
    from graphmem.app.bootstrap import Services

    with start_progress(output) as progress:
        async with Services.open(settings or read_settings(), worker=worker, progress=progress, demo=demo) as services:
            yield services


@dataclass(frozen=True)
class Target:
    """The target of a command: a server and its key, or this machine's data.

    `tenant` is None if the key determines it.
    """

    place: str
    tenant: str | None
    server: str | None = None
    key: str = field(default="", repr=False)

    @property
    def is_remote(self) -> bool:
        """Whether a server and a key are configured, so that the command must use them or fail."""
        return self.tenant is None


def find_target(flags: Flags, settings: Settings, tenant: str = DEFAULT_TENANT) -> Target:
    """Return the target of a command for a tenant.

    GRAPHMEM_URL names the server, and GRAPHMEM_API_KEY the key for it or for the data folder's running server. Without
    a key, the command acts as administrator of this machine's data. Raises ConfigurationError if the key for another
    server is missing, and InvalidInput for a tenant other than the key's.
    """
    here = Target(f"the data folder {settings.data_dir}", tenant)
    if flags.no_server or not settings.use_server:
        return here
    key = settings.api_key.get_secret_value() if settings.api_key else ""
    found = None if key else find_local_server(settings)
    if found is not None and (settings.url is None or _address_of(settings.url) == _address_of(found.url)):
        from graphmem.tenants.access import make_local_token

        return Target(f"the server at {found.url}", tenant, found.url, make_local_token(found.secret, tenant))
    if settings.url or key:
        return _find_remote(settings, key, tenant)
    refuse_other_database(settings)
    return here


def _address_of(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, "127.0.0.1" if parts.hostname == "localhost" else parts.hostname, parts.port


def _find_remote(settings: Settings, key: str, tenant: str) -> Target:
    if not key:
        raise ConfigurationError(
            f"GRAPHMEM_URL names {settings.url}, and no key for it is set: set GRAPHMEM_API_KEY, or give --no-server "
            "to work on the data of this machine."
        )
    local = None if settings.url else find_local_server(settings)
    url = settings.url or (local.url if local else None)
    if url is None:
        raise ConfigurationError(
            "GRAPHMEM_API_KEY is set, and no server runs on the data folder: start it with `graphmem serve`, name "
            "another in GRAPHMEM_URL, or give --no-server to work on the data of this machine."
        )
    if not url.startswith(("http://", "https://")):
        raise ConfigurationError(f"GRAPHMEM_URL is {url}: begin it with http:// or https://, as in http://{url}.")
    if tenant != DEFAULT_TENANT:
        raise InvalidInput("The key in GRAPHMEM_API_KEY decides the tenant: leave out --tenant.")
    return Target(f"the server at {url}", None, url.rstrip("/"), key)


def refuse_server(output: Output, settings: Settings, action: str) -> None:
    """Raise ConfigurationError if GRAPHMEM_URL names a server; `action` only works on this machine's data."""
    if settings.url and settings.use_server and not output.flags.no_server:
        raise ConfigurationError(
            f"GRAPHMEM_URL names {settings.url}, and {action} only on the data of this machine: unset it, or give "
            "--no-server."
        )


@asynccontextmanager
async def open_operations(output: Output, tenant: str, *, worker: bool = False) -> AsyncIterator[AsyncClient]:
    """Yield the operations of a tenant, on a server or else in this process.

    With `worker`, this process also runs jobs, unless a server is called, which has its own workers. Commands must not
    import models before: calling a server does not need most of them.
    """
    settings = read_settings()
    with named_as_options(output.parameters):
        target = output.target = find_target(output.flags, settings, tenant)
        async with _open_client(output, target, tenant, settings, worker=worker) as client:
            try:
                yield client
            except Forbidden as error:
                if target.is_remote and not settings.url:
                    error.detail += (
                        " It was called with GRAPHMEM_API_KEY: unset that to be this machine's administrator."
                    )
                raise


def _open_client(output: Output, target: Target, tenant: str, settings: Settings, *, worker: bool) -> AsyncClient:
    if target.server is None:
        from graphmem.cli.lazy_memory import LazyMemory

        return LazyMemory(output, tenant, settings, worker=worker)
    from graphmem.client import AsyncClient

    return AsyncClient(target.key, target.server, attempts=2, trust_env=bool(settings.url))


async def complete_memory_id(operations: AsyncClient, user: str, given: str) -> str:
    """Return the id of the memory whose id begins with `given`."""
    return given if len(given) >= FULL_ID_CHARS else (await operations.memory(user, given)).id


async def complete_run_id(operations: AsyncClient, given: str) -> str:
    """Return the id of the run whose id begins with `given`."""
    return given if len(given) >= FULL_ID_CHARS else (await operations.run(given)).id


async def describe_target(client: AsyncClient, output: Output) -> str:
    """Return the tenant and the server or folder of a command.

    A server tells only admins the tenant of their key.
    """
    target = output.target
    assert target is not None
    try:
        tenant = target.tenant or (await client.placements()).tenants[0].tenant
    except Forbidden:
        return f"at {target.place}"
    return (
        f"of tenant {tenant!r} in {target.place}"
        if target.server is None
        else f"of tenant {tenant!r} at {target.place}"
    )


async def confirm_erasure(client: AsyncClient, output: Output, what: str) -> None:
    """Ask at a terminal whether to erase a user or a space; raise InvalidInput elsewhere."""
    if not sys.stdin.isatty():
        raise InvalidInput(f"Erasing the {what} cannot be undone: confirm it with --yes.")
    typer.confirm(f"Erase all data of the {what} {await describe_target(client, output)}?", abort=True, err=True)


def report_erasure(output: Output, what: str, result: ErasureResult, where: str = "") -> None:
    """Show what was erased of a user or a space; exit with an error if something is left."""
    from graphmem.cli.tables import name_value_pairs

    counts = name_value_pairs({**result.erased, "residue": result.residue})
    output.show(result, *([f"The {what} {where} is erased."] if where and not result.residue else ()), counts)
    if result.residue:
        exit_with_error(f"{result.residue} items of the {what} are left: run the same command again.")


SEES_ALL_TENANTS = "This login reads and writes the data of every tenant: give it to administrators only."
"""A warning: the Community edition of Neo4j has one role."""


async def start_detached(output: Output, settings: Settings) -> ServerInfo:
    """Start or join the embedded Neo4j and leave it running until `graphmem db stop`."""
    from graphmem.neo4j.embedded.server import EmbeddedNeo4j

    with start_progress(output) as progress:
        server = await EmbeddedNeo4j.start_or_join(
            settings.data_dir,
            settings.cache_dir,
            bolt_port=settings.bolt_port,
            http_port=settings.http_port,
            mirror=settings.jar_mirror,
            progress=progress,
            detached=True,
        )
    await server.stop()
    return server.info


def server_details(info: ServerInfo) -> dict[str, Any]:
    """Return the details of a running server, without its password."""
    return {
        "running": True,
        "uri": info.uri,
        "user": info.user,
        "browser_url": info.browser_url,
        "password_file": str(info.password_file),
        "home": str(info.home),
        "pid": info.pid,
        "detached": info.detached,
    }


def browser_login(
    settings: Settings, info: ServerInfo | None, text: str, address: str | None = None
) -> dict[str, object]:
    """Return how to open Neo4j Browser with `text` in its editor; without `info`, for the configured Neo4j."""
    from graphmem.neo4j.embedded.home import browser_link, setup_commands

    if info is not None:
        link = browser_link(address or info.browser_url, info.uri, info.user, text)
        return {"open": link, "user": info.user, "password in": str(info.password_file)}
    uri = settings.neo4j_uri or ""
    link = browser_link(address or f"http://{urlsplit(uri).hostname}:7474/browser/", uri, settings.neo4j_user, text)
    return {"open": link, "user": settings.neo4j_user, "paste first": f":{setup_commands()[0]}"}


@contextmanager
def progress_bar(output: Output, label: str, unit: str = "entries") -> Iterator[ProgressCallback]:
    """Show a progress bar while the context lasts; the callback takes the units done and in total."""
    from rich import progress as rich_progress

    columns = (
        rich_progress.TextColumn(label),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TextColumn(unit),
        rich_progress.TimeElapsedColumn(),
    )
    with rich_progress.Progress(*columns, console=output.stderr) as bar:
        task = bar.add_task(unit, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def start_progress(output: Output) -> Iterator[StartProgress]:
    """Show the steps of a start: as lines, with a bar per download on a terminal; nothing with `--json`."""
    from graphmem.runtime.progress import StartProgress

    if output.flags.json:
        yield StartProgress()
    elif output.stderr.is_terminal:
        with _download_bar(output) as advance:
            yield StartProgress(_named_note(output), advance)
    else:
        yield StartProgress(_named_note(output))


def _named_note(output: Output) -> Callable[[str], None]:
    return lambda sentence: output.note(f"graphmem: {sentence}")


@contextmanager
def _download_bar(output: Output) -> Iterator[Callable[[int, int], None]]:
    """Show a bar for each download; the callback takes the bytes downloaded and in total."""
    from rich import progress as rich_progress

    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.DownloadColumn(),
        rich_progress.TransferSpeedColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=output.stderr, disable=True) as bar:
        task = bar.add_task("Downloading", total=None)

        def advance(downloaded: int, total: int) -> None:
            bar.disable = False
            bar.start()
            bar.update(task, completed=downloaded, total=total)
            if downloaded >= total:
                bar.stop()

        yield advance
