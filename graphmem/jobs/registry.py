"""The workers that share a job store, and the jobs that each has claimed."""

from __future__ import annotations

import os
import platform
import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil
import sqlalchemy as sa
from sqlalchemy import exc

from graphmem.jobs.store import (
    JobStore,
)


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """A worker: `heartbeat` rises while it lives; `host`, `pid` and `started` identify its process on this machine."""

    id: str
    host: str
    pid: int
    started: float
    heartbeat: int = 0

    @classmethod
    def current(cls) -> WorkerProcess:
        """Return this process under a new id."""
        pid = os.getpid()
        started = psutil.Process(pid).create_time()
        return cls(f"{platform.node()}-{pid}-{uuid.uuid4().hex[:8]}", _host_id(), pid, started)

    def has_exited(self) -> bool:
        """Return whether the process ran on this machine and has ended; False for a process of another machine."""
        if self.host != _host_id():
            return False
        try:
            return bool(psutil.Process(self.pid).create_time() != self.started)
        except psutil.NoSuchProcess:
            return True


def _host_id() -> str:
    # Containers may share a host name; their process ids belong to different namespaces.
    namespace = Path("/proc/self/ns/pid")
    return f"{platform.node()}:{namespace.stat().st_ino if namespace.exists() else 0}"


class WorkerRegistry:
    """Three tables in the job store, next to DBOS's own; every method blocks."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        tables = sa.MetaData(schema=store.schema)
        self._workers = sa.Table(
            "worker",
            tables,
            sa.Column("id", sa.Text, primary_key=True),
            sa.Column("host", sa.Text, nullable=False),
            sa.Column("pid", sa.Integer, nullable=False),
            sa.Column("started", sa.Float(53), nullable=False),
            sa.Column("heartbeat", sa.BigInteger, nullable=False),
        )
        self._claims = sa.Table(
            "job_claim",
            tables,
            sa.Column("job_id", sa.Text, primary_key=True),
            sa.Column("worker_id", sa.Text, primary_key=True),
        )
        self._identity = sa.Table(
            "store_identity",
            tables,
            sa.Column("name", sa.Text, primary_key=True),
            sa.Column("id", sa.Text, nullable=False),
        )

    def create_tables(self) -> None:
        """Create missing tables."""
        with self._store.translate_errors():
            for table in (self._workers, self._claims, self._identity):
                try:
                    self._create(table)
                except exc.IntegrityError:  # Postgres, when two processes create it at once
                    self._create(table)

    def _create(self, table: sa.Table) -> None:
        with self._store.engine.begin() as connection:
            connection.execute(sa.schema.CreateTable(table, if_not_exists=True))

    def identify(self) -> str:
        """Return the job store's id, creating it on first use."""
        row = self._identity.c
        with self._store.translate_errors():
            try:
                with self._store.engine.begin() as connection:
                    if not connection.scalar(sa.select(row.id)):
                        connection.execute(self._identity.insert().values(name="store", id=uuid.uuid4().hex))
            except exc.IntegrityError:  # another process has created it meanwhile
                pass
            with self._store.engine.connect() as connection:
                return str(connection.scalar(sa.select(row.id)))

    def heartbeat(self, worker: WorkerProcess) -> None:
        """Increase a worker's heartbeat, registering the worker if it is new."""
        workers = self._workers
        with self._store.translate_errors(), self._store.engine.begin() as connection:
            updated = connection.execute(
                workers.update().where(workers.c.id == worker.id).values(heartbeat=workers.c.heartbeat + 1)
            )
            if updated.rowcount == 0:
                connection.execute(
                    workers.insert().values(
                        id=worker.id, host=worker.host, pid=worker.pid, started=worker.started, heartbeat=0
                    )
                )

    def list_workers(self) -> list[WorkerProcess]:
        """Return the workers that have not closed."""
        with self._store.translate_errors(), self._store.engine.connect() as connection:
            return [WorkerProcess(**row._asdict()) for row in connection.execute(sa.select(self._workers))]

    def remove(self, worker_ids: Collection[str]) -> None:
        """Remove workers and their claims."""
        with self._store.translate_errors(), self._store.engine.begin() as connection:
            connection.execute(self._claims.delete().where(self._claims.c.worker_id.in_(worker_ids)))
            connection.execute(self._workers.delete().where(self._workers.c.id.in_(worker_ids)))

    def claim(self, job_id: str, worker_id: str) -> None:
        """Record that a worker's handler runs a job."""
        with self._store.translate_errors(), self._store.engine.begin() as connection:
            self._delete_claim(connection, job_id, worker_id)
            connection.execute(self._claims.insert().values(job_id=job_id, worker_id=worker_id))

    def release(self, job_id: str, worker_id: str) -> None:
        """Record that a worker's handler no longer runs a job."""
        with self._store.translate_errors(), self._store.engine.begin() as connection:
            self._delete_claim(connection, job_id, worker_id)

    def _delete_claim(self, connection: sa.Connection, job_id: str, worker_id: str) -> None:
        row = self._claims.c
        connection.execute(self._claims.delete().where(row.job_id == job_id, row.worker_id == worker_id))

    def is_any_claimed(self, job_ids: Iterable[str]) -> bool:
        """Return whether a worker still runs one of these jobs."""
        jobs = self._claims.c.job_id
        with self._store.translate_errors(), self._store.engine.connect() as connection:
            return bool(connection.scalar(sa.select(sa.exists().where(jobs.in_(list(job_ids))))))
