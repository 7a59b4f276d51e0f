"""The job store: DBOS's tables in SQLite or Postgres, and all that is asked of them from outside a running job."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer, WorkflowStatus
from dbos import error as dbos_error

from graphmem.domain.job import Job, JobStatus, Receipt
from graphmem.errors import ConfigurationError, Conflict, InvalidInput, JobStoreUnavailable
from graphmem.settings import Settings

APPLICATION = "graphmem"
SCHEMA = "graphmem_jobs"
# One version for good: DBOS hands a job only to workers of its version, and an upgrade must not strand queued jobs.
APPLICATION_VERSION = "1"
JOB_QUEUE, TICK_QUEUE = "graphmem-jobs", "graphmem-ticks"
JOB_WORKFLOW, TICK_WORKFLOW = "graphmem.job", "graphmem.tick"
SYSTEM_PARTITION = "system:"
POLL_SECONDS = 0.1
UNFINISHED = ["ENQUEUED", "DELAYED", "PENDING"]
FINISHED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
PAGE_SIZE = 200


class JobStore:
    """One process's connection to the job store; every method blocks, and raises JobStoreUnavailable when it is away."""

    def __init__(self, url: sa.URL) -> None:
        self._display_url = url.render_as_string(hide_password=True)
        self._closed = False
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self.schema = None if self.is_sqlite else SCHEMA
        self.serializer = DBOSPortableJSONSerializer()
        self.engine = self._create_engine(url)
        self.jobs = sa.table(
            "workflow_status",
            *map(sa.column, ("workflow_uuid", "status", "queue_name", "queue_partition_key", "created_at")),
            schema=self.schema,
        )
        self.client: DBOSClient

    @classmethod
    def open(cls, settings: Settings) -> JobStore:
        """Connect to `settings.jobs_url`, or SQLite in the data folder, and create or migrate the tables."""
        store = cls(_database_url(settings))
        _silence_dbos_logger()
        try:
            with store.translate_errors():
                with store.engine.connect():
                    pass
                DBOS.migrate(store.engine.url.render_as_string(hide_password=False), schema=SCHEMA)
                store.client = DBOSClient(
                    system_database_engine=store.engine,
                    dbos_system_schema=store.schema,
                    serializer=store.serializer,
                    application_name=APPLICATION,
                    retry_connection_errors=False,
                )
        except BaseException:
            store.close()
            raise
        return store

    def _create_engine(self, url: sa.URL) -> sa.Engine:
        pool = {"pool_size": 20, "max_overflow": 0, "pool_timeout": 30}
        if self.is_sqlite:
            engine = sa.create_engine(url, **pool)
            sa.event.listen(engine, "connect", _prepare_sqlite)
        else:
            # A worker that freezes inside a transaction must not hold its locks for longer than this.
            options = {"connect_timeout": 5, "options": "-c idle_in_transaction_session_timeout=60000"}
            engine = sa.create_engine(url, **pool, pool_pre_ping=True, connect_args=options)
        sa.event.listen(engine, "do_connect", self._refuse_when_closed)
        return engine

    def _refuse_when_closed(self, *_: object) -> None:
        # DBOS retries a lost connection for ever; after closing, this is what ends its threads.
        if self._closed:
            raise JobStoreUnavailable("The job runner is closed.")

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Turn a database that cannot be reached or used into JobStoreUnavailable."""
        try:
            yield
        except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
            cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise JobStoreUnavailable(
                f"The job store at {self._display_url} cannot be used: {cause}. Check GRAPHMEM_JOBS_URL or the data folder."
            ) from error

    def close(self) -> None:
        """Drop the connections; what still runs on them fails."""
        self._closed = True
        self.engine.dispose()

    def register_queues(self, concurrency: int) -> None:
        """Set how many jobs a worker runs side by side; of one partition never more than one runs anywhere."""
        with self.translate_errors():
            self.client.register_queue(
                JOB_QUEUE,
                partition_concurrency=1,
                worker_concurrency=concurrency,
                polling_interval_sec=POLL_SECONDS,
            )
            self.client.register_queue(TICK_QUEUE, polling_interval_sec=POLL_SECONDS)

    # Writing

    def enqueue(self, job_id: str, kind: str, partition: str, payload: dict[str, Any]) -> None:
        """Put a job at the end of its partition; a known `job_id` changes nothing."""
        try:
            with self.translate_errors(), self.engine.begin() as connection:
                self.client.enqueue_in_transaction(
                    connection,
                    {
                        "workflow_name": JOB_WORKFLOW,
                        "queue_name": JOB_QUEUE,
                        "workflow_id": job_id,
                        "workflow_id_reuse_policy": "reject",
                        "queue_partition_key": partition,
                        "authenticated_user": partition,
                        "app_version": APPLICATION_VERSION,
                    },
                    kind,
                    payload,
                )
                self._move_to_end(connection, job_id, partition)
        except dbos_error.DBOSWorkflowIDInUseError:
            return

    def _move_to_end(self, connection: sa.Connection, job_id: str, partition: str) -> None:
        # DBOS orders by creation time, which SQLite keeps in whole seconds: make it strictly rise within a partition.
        jobs = self.jobs.c
        last = connection.scalar(
            sa.select(sa.func.max(jobs.created_at)).where(
                jobs.queue_name == JOB_QUEUE,
                jobs.queue_partition_key == partition,
                jobs.status.in_(["ENQUEUED", "PENDING"]),
                jobs.workflow_uuid != job_id,
            )
        )
        created_at = max(int(time.time() * 1000), (last or 0) + 1)
        connection.execute(self.jobs.update().where(jobs.workflow_uuid == job_id).values(created_at=created_at))

    def retry(self, job: Job) -> None:
        """Queue a failed job again under its id, keeping every step before the one that failed."""
        with self.translate_errors():
            try:
                self.client.rewind_workflow(
                    job.id,
                    start_step=self._failed_step(job.id),
                    queue_name=JOB_QUEUE,
                    queue_partition_key=job.partition,
                )
                self.client.update_workflow_attributes(job.id, {"earlier_attempts": job.attempts})
            except dbos_error.DBOSException as error:
                raise Conflict(f"Job {job.id} is no longer failed; look at it again.") from error

    def _failed_step(self, job_id: str) -> int:
        found = self.client.list_workflows(workflow_ids=[job_id])
        steps = self.client.list_workflow_steps(job_id)
        if not steps or (found and (found[0].output or {}).get("from_start")):
            return 1
        last = steps[-1]
        return last["function_id"] + (0 if "error" in (last["output"] or {"error": ""}) else 1)

    def schedule(self, name: str, cron: str, timezone: str, kind: str, payload: dict[str, Any]) -> None:
        """Create or replace a schedule."""
        with self.translate_errors():
            try:
                self.client.apply_schedules(
                    [
                        {
                            "schedule_name": name,
                            "workflow_name": TICK_WORKFLOW,
                            "schedule": cron,
                            "cron_timezone": timezone,
                            "queue_name": TICK_QUEUE,
                            "context": {"name": name, "kind": kind, "payload": payload},
                        }
                    ]
                )
            except dbos_error.DBOSException as error:
                raise InvalidInput(f"Schedule {name!r} cannot be kept: {error.message}.") from error

    def unschedule(self, name: str) -> None:
        """Remove a schedule, where there is one."""
        with self.translate_errors():
            self.client.delete_schedule(name)

    # Reading

    def get(self, job_id: str) -> Job | None:
        """The job of that id."""
        with self.translate_errors():
            found = self.client.list_workflows(workflow_ids=[job_id], name=JOB_WORKFLOW)
        return _to_job(found[0]) if found else None

    def list(self, partition: str | None, kind: str | None, limit: int) -> list[Job]:
        """The newest jobs first."""
        jobs: list[Job] = []
        for status in self._iterate_statuses(user=partition, name=JOB_WORKFLOW):
            job = _to_job(status)
            if kind is None or job.kind == kind:
                jobs.append(job)
            if len(jobs) == limit:
                break
        return jobs

    def is_busy(self, partition: str) -> bool:
        """Whether a job of the partition is queued or running."""
        with self.translate_errors():
            return bool(self.client.list_workflows(user=partition, name=JOB_WORKFLOW, status=UNFINISHED, limit=1))

    def _iterate_statuses(self, **filters: Any) -> Iterator[WorkflowStatus]:
        offset = 0
        while True:
            with self.translate_errors():
                page = self.client.list_workflows(sort_desc=True, limit=PAGE_SIZE, offset=offset, **filters)
            yield from page
            if len(page) < PAGE_SIZE:
                return
            offset += PAGE_SIZE

    def list_statuses(self, **filters: Any) -> Iterable[WorkflowStatus]:
        """What DBOS keeps of the jobs and ticks that match, without their text."""
        return list(self._iterate_statuses(load_input=False, load_output=False, **filters))


def _database_url(settings: Settings) -> sa.URL:
    if settings.jobs_url is None:
        path = settings.data_dir / "jobs.sqlite"
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


def _silence_dbos_logger() -> None:
    # A handler of any kind keeps DBOS from putting its own on the console and cutting its logger off from the root.
    logger = logging.getLogger("dbos")
    logger.setLevel(logging.WARNING)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


def _prepare_sqlite(connection: Any, _: object) -> None:
    # Writers queue up instead of failing, as DBOS's own SQLite engine does. With a log beside the file they wait for
    # the disk once. Deleted text is overwritten with zeros.
    connection.isolation_level = "IMMEDIATE"
    for pragma in ("busy_timeout=30000", "journal_mode=WAL", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _to_job(status: WorkflowStatus) -> Job:
    arguments: Any = status.input
    kind, payload = arguments["args"]
    outcome: dict[str, Any] = status.output or {}
    attempts = (status.attributes or {}).get("earlier_attempts", 0) + (status.recovery_attempts or 0)
    return Job(
        id=status.workflow_id,
        kind=kind,
        status=_STATUS_BY_DBOS_STATUS[status.status] if status.status != "SUCCESS" else JobStatus(outcome["status"]),
        attempts=attempts + outcome.get("retries", 0),
        reason=outcome.get("reason"),
        error=outcome.get("error") or _failure_message(status),
        actions=outcome.get("actions", []),
        receipt=Receipt(**outcome.get("receipt", {})),
        user_id=payload.get("user_id"),
        session_id=payload.get("session_id"),
        created_at=datetime.fromtimestamp((status.created_at or 0) / 1000, UTC),
        finished_at=outcome.get("finished_at") or _finished_at(status),
        partition=status.authenticated_user or "",
    )


_STATUS_BY_DBOS_STATUS = {
    "ENQUEUED": JobStatus.QUEUED,
    "DELAYED": JobStatus.QUEUED,
    "PENDING": JobStatus.RUNNING,
    "ERROR": JobStatus.FAILED,
    "CANCELLED": JobStatus.FAILED,
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": JobStatus.FAILED,
}


def _failure_message(status: WorkflowStatus) -> str | None:
    if status.status == "MAX_RECOVERY_ATTEMPTS_EXCEEDED":
        return f"Given up: the job stopped its worker {(status.recovery_attempts or 1) - 1} times."
    if status.status == "CANCELLED":
        return "The job was cancelled."
    return str(status.error) if status.error else None


def _finished_at(status: WorkflowStatus) -> datetime | None:
    return datetime.fromtimestamp(status.completed_at / 1000, UTC) if status.completed_at else None
