"""The database of the job store: its address, its engine, and its errors."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from graphmem.runtime.errors import ConfigurationError, JobStoreUnavailable
from graphmem.runtime.settings import Settings

_FULL_DISK = ("disk is full", "no space left on device")
"""What SQLite and Postgres say when their disk is full, in lower case."""

_FULL_DISK_CODES = ("53100", "SQLITE_FULL")
"""How they say it in codes, whatever the language of their messages."""

SQLITE_FILE = "jobs.sqlite"
"""Name of the job store in the data folder."""

log = logging.getLogger(__name__)


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a SQLite job store, which other processes may be using, as it is at one moment."""
    with closing(sqlite3.connect(source)) as stored, closing(sqlite3.connect(target)) as copy:
        stored.backup(copy)


def database_url(settings: Settings) -> sa.URL:
    """Return the address of the job store; the default is a SQLite file in the data folder, created if it is missing.

    Raises ConfigurationError for an address that is not of Postgres, and JobStoreUnavailable when the folder cannot be
    written.
    """
    if settings.jobs_url is None:
        path = settings.data_dir / SQLITE_FILE
        try:
            settings.data_dir.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
        except OSError as error:
            raise JobStoreUnavailable(f"The job store {path} cannot be written: {error.strerror}.") from error
        return sa.URL.create("sqlite", database=str(path))
    try:
        url = sa.make_url(settings.jobs_url)
    except sa.exc.ArgumentError:
        url = None
    if url is None or url.get_backend_name() not in ("postgres", "postgresql") or not url.database:
        raise ConfigurationError("GRAPHMEM_JOBS_URL must read postgresql://user:password@host:port/database.")
    return url.set(drivername="postgresql+psycopg")


def create_engine(url: sa.URL) -> sa.Engine:
    """Return the engine of a job store, which connects when it is first used."""
    pool = {"pool_size": 20, "max_overflow": 0, "pool_timeout": 30}
    if url.get_backend_name() == "sqlite":
        engine = sa.create_engine(url, **pool)
        sa.event.listen(engine, "connect", _prepare_sqlite)
        return engine
    # A worker that freezes inside a transaction must not hold its locks for longer than this. A connection whose other
    # end is gone is noticed within half a minute.
    options = {
        "connect_timeout": 5,
        "options": "-c idle_in_transaction_session_timeout=60000",
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
    }
    return sa.create_engine(url, **pool, pool_pre_ping=True, connect_args=options)


@contextmanager
def translate_database_errors(engine: sa.Engine, *, name_address: bool = False) -> Iterator[None]:
    """Turn the errors of a database that cannot be reached or used into JobStoreUnavailable.

    With `name_address`, for whoever starts graphmem, the error says where the database is; callers of the service must
    not learn that, so that it is logged otherwise.
    """
    try:
        yield
    except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
        address = engine.url.render_as_string(hide_password=True)
        cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        if name_address:
            raise JobStoreUnavailable(
                f"The job store at {address} cannot be used: {cause}. Check GRAPHMEM_JOBS_URL or the data folder."
            ) from error
        log.warning("The job store at %s cannot be used: %s", address, cause)
        if _is_full_disk(error, cause):
            raise JobStoreUnavailable(
                "The job store cannot write because its disk is full: free disk space, then try again."
            ) from error
        raise JobStoreUnavailable("The job store cannot be used: see the log of graphmem, then try again.") from error


def _is_full_disk(error: sa.exc.SQLAlchemyError, cause: str) -> bool:
    reported = getattr(error, "orig", None)
    code = getattr(reported, "sqlstate", None) or getattr(reported, "sqlite_errorname", None)
    return code in _FULL_DISK_CODES or any(words in cause.lower() for words in _FULL_DISK)


def _prepare_sqlite(connection: Any, _: object) -> None:
    # As in DBOS's own SQLite engine, writers wait for each other instead of failing. With the write-ahead log a commit
    # waits for the disk once. Deleted text is overwritten with zeros.
    connection.isolation_level = "IMMEDIATE"
    for pragma in ("busy_timeout=30000", "journal_mode=WAL", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")
