"""The job store: DBOS's tables in SQLite or Postgres, and operations on jobs from outside a running job."""

from __future__ import annotations

import builtins
import logging
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer, WorkflowStatus
from dbos import error as dbos_error
from sqlalchemy import event, exc

from graphmem.jobs.dbos_internals import BATCH_SIZE, UNFINISHED, DbosTables, batches
from graphmem.jobs.job import Job, JobStatus
from graphmem.jobs.kinds import SYSTEM_PARTITION, JobResult, JobWaits, StepRecord, WaitCause
from graphmem.runtime.errors import ConfigurationError, Conflict, InvalidInput, JobStoreUnavailable
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import DEFAULT_TENANT, Owner

EARLIER_ATTEMPTS, WAIT_REASON, WAIT_CAUSE = "earlier_attempts", "wait_reason", "wait_cause"
"""DBOS attributes of a job: attempts before the last retry or wait, why it waited, and the `WaitCause`."""

BEHIND_REASON = "an earlier job of this user waits"
"""Reason shown for a waiting job that has not started."""

_STATUS_BY_DBOS_STATUS = {
    "ENQUEUED": JobStatus.QUEUED,
    "DELAYED": JobStatus.QUEUED,
    "PENDING": JobStatus.RUNNING,
    "ERROR": JobStatus.FAILED,
    "CANCELLED": JobStatus.FAILED,
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": JobStatus.FAILED,
}


def job_from_status(status: WorkflowStatus) -> Job:
    """Return the job of a workflow listed with its input and output."""
    arguments: Any = status.input
    kind, payload = arguments["args"]
    result = JobResult.model_validate(status.output) if status.output else None
    if result is None or status.status != "SUCCESS":
        result = JobResult(
            status=_STATUS_BY_DBOS_STATUS[status.status],
            error=_failure_message(status),
            finished_at=datetime.fromtimestamp(status.completed_at / 1000, UTC) if status.completed_at else None,
        )
    attributes = status.attributes or {}
    attempts = attributes.get(EARLIER_ATTEMPTS, 0) + (status.recovery_attempts or 0)
    waits_until = datetime.fromtimestamp((status.delay_until_epoch_ms or 0) / 1000, UTC)
    is_waiting = status.status == "DELAYED" and waits_until > datetime.now(UTC)
    # Tenant and system jobs have no user.
    owner = (
        Owner.from_stored(payload.get("tenant", DEFAULT_TENANT), payload["user_id"]) if payload.get("user_id") else None
    )
    return Job(
        **result.model_dump(include={"status", "error", "actions", "receipt", "finished_at"}),
        id=status.workflow_id,
        kind=kind,
        attempts=attempts + result.retries,
        reason=attributes.get(WAIT_REASON, BEHIND_REASON) if is_waiting else result.reason,
        waits_until=waits_until if is_waiting and attributes.get(WAIT_CAUSE) != WaitCause.DATABASE else None,
        user_id=owner.own_user_id if owner else None,
        space=owner.space if owner else None,
        session_id=payload.get("session_id"),
        created_at=datetime.fromtimestamp((status.created_at or 0) / 1000, UTC),
        partition=status.authenticated_user or "",
    )


def _failure_message(status: WorkflowStatus) -> str | None:
    if status.status == "MAX_RECOVERY_ATTEMPTS_EXCEEDED":
        return f"Given up: the job stopped its worker {(status.recovery_attempts or 1) - 1} times."
    if status.status == "CANCELLED":
        return "The job was cancelled."
    return str(status.error) if status.error else None


_FULL_DISK = ("disk is full", "no space left on device")
"""Error texts of SQLite and Postgres when the disk is full, in lower case."""

_FULL_DISK_CODES = ("53100", "SQLITE_FULL")
"""The corresponding error codes, independent of the message language."""

SQLITE_FILE = "jobs.sqlite"
"""Name of the job store in the data folder."""

log = logging.getLogger(__name__)


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a consistent snapshot of a SQLite job store, even while other processes use it."""
    with closing(sqlite3.connect(source)) as stored, closing(sqlite3.connect(target)) as copy:
        stored.backup(copy)


def database_url(settings: Settings) -> sa.URL:
    """Return the address of the job store; the default is a SQLite file in the data folder, created if it is missing.

    Raises ConfigurationError for an address other than Postgres, and JobStoreUnavailable if the folder is not writable.
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
    except exc.ArgumentError:
        url = None
    if url is None or url.get_backend_name() not in ("postgres", "postgresql") or not url.database:
        raise ConfigurationError("GRAPHMEM_JOBS_URL must read postgresql://user:password@host:port/database.")
    return url.set(drivername="postgresql+psycopg")


def create_engine(url: sa.URL) -> sa.Engine:
    """Return a job store's engine, which connects on first use."""
    pool = {"pool_size": 20, "max_overflow": 0, "pool_timeout": 30}
    if url.get_backend_name() == "sqlite":
        engine = sa.create_engine(url, **pool)
        event.listen(engine, "connect", _prepare_sqlite)
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

    With `name_address`, the error includes the database's address, for the operator who starts graphmem. Otherwise the
    address is only logged, because callers of the service must not learn it.
    """
    try:
        yield
    except (exc.DBAPIError, exc.TimeoutError) as error:
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


def _is_full_disk(error: exc.SQLAlchemyError, cause: str) -> bool:
    reported = getattr(error, "orig", None)
    code = getattr(reported, "sqlstate", None) or getattr(reported, "sqlite_errorname", None)
    return code in _FULL_DISK_CODES or any(words in cause.lower() for words in _FULL_DISK)


def _prepare_sqlite(connection: Any, _: object) -> None:
    # As in DBOS's own SQLite engine, writers wait for each other instead of failing. With the write-ahead log a commit
    # waits for the disk once. Deleted text is overwritten with zeros.
    connection.isolation_level = "IMMEDIATE"
    for pragma in ("busy_timeout=30000", "journal_mode=WAL", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")
    # On Python 3.12 and later, DBOS takes its times from unixepoch('subsec'), which is null before SQLite 3.42.
    if sqlite3.sqlite_version_info < (3, 42):
        connection.create_function("unixepoch", 1, lambda _: round(time.time() * 1000) / 1000)


APPLICATION = "graphmem"
"""Name under which DBOS knows this application."""

SCHEMA = "graphmem_jobs"
"""Postgres schema of the tables; SQLite has none."""

APPLICATION_VERSION = "1"
"""The same for every release: DBOS hands a job only to workers of its version, and an upgrade must not strand jobs."""

JOB_QUEUE, TICK_QUEUE = "graphmem-jobs", "graphmem-ticks"
"""DBOS queues for jobs and schedule ticks."""

DEMO_QUEUE = "graphmem-demo-jobs"
"""DBOS queue for jobs that only the process that queues them can run, because it has its own model."""

JOB_WORKFLOW, TICK_WORKFLOW = "graphmem.job", "graphmem.tick"
"""DBOS workflows that run a job and queue a tick's job."""

POLL_SECONDS, TICK_POLL_SECONDS = 0.25, 2.0
"""Seconds between a worker's polls of a queue; no schedule is more precise than a minute."""

FINISHED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
"""DBOS statuses of finished jobs."""

SERIALIZER = DBOSPortableJSONSerializer()
"""Stores inputs, results and steps as JSON, which can be searched for text."""

PAGE_SIZE = 200
"""Number of jobs read per query."""


class JobStore:
    """One process's connection to the job store; every method blocks, and raises JobStoreUnavailable when it fails."""

    def __init__(self, engine: sa.Engine, client: DBOSClient, queue: str) -> None:
        self.engine = engine
        self.queue = queue
        self.client = client
        self.is_sqlite = engine.dialect.name == "sqlite"
        self.schema = _schema(engine)
        self.tables = DbosTables(self.schema)
        self._closed = False
        event.listen(engine, "do_connect", self._refuse_when_closed)

    @classmethod
    def open(cls, settings: Settings, queue: str = JOB_QUEUE) -> JobStore:
        """Connect to `settings.jobs_url`, or SQLite in the data folder, and create or migrate the tables.

        Jobs go to `queue`; only workers of a store with the same queue run them.
        """
        _silence_dbos_logger()
        engine = create_engine(database_url(settings))
        try:
            with translate_database_errors(engine, name_address=True):
                with engine.connect():
                    pass
                DBOS.migrate(engine.url.render_as_string(hide_password=False), schema=SCHEMA)
                client = DBOSClient(
                    system_database_engine=engine,
                    dbos_system_schema=_schema(engine),
                    serializer=SERIALIZER,
                    application_name=APPLICATION,
                    retry_connection_errors=False,
                )
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, client, queue)

    def close(self) -> None:
        """Close the connections; calls still running on them fail."""
        self._closed = True
        self.engine.dispose()

    def translate_errors(self) -> AbstractContextManager[None]:
        """Turn the errors of a database that cannot be reached or used into JobStoreUnavailable."""
        return translate_database_errors(self.engine)

    def _refuse_when_closed(self, *_: object) -> None:
        # DBOS retries a lost connection forever; after closing, this ends its threads.
        if self._closed:
            raise JobStoreUnavailable("The job runner is closed.")

    def register_queues(self, concurrency: int) -> None:
        """Set how many jobs a worker runs concurrently; a partition never has more than one running job."""
        with self.translate_errors():
            self.client.register_queue(
                self.queue,
                partition_concurrency=1,
                worker_concurrency=concurrency,
                polling_interval_sec=POLL_SECONDS,
            )
            self.client.register_queue(TICK_QUEUE, polling_interval_sec=TICK_POLL_SECONDS)

    @property
    def listened_queues(self) -> builtins.list[str]:
        """The queues that a worker polls; only workers of the main queue handle schedule ticks."""
        return [JOB_QUEUE, TICK_QUEUE] if self.queue == JOB_QUEUE else [self.queue]

    # Writing

    def enqueue(self, job_id: str, kind: str, partition: str, payload: dict[str, Any]) -> None:
        """Put a job at the end of its partition; an existing `job_id` changes nothing."""
        try:
            with self.translate_errors(), self.engine.begin() as connection:
                self.client.enqueue_in_transaction(
                    connection,
                    {
                        "workflow_name": JOB_WORKFLOW,
                        "queue_name": self.queue,
                        "workflow_id": job_id,
                        "workflow_id_reuse_policy": "reject",
                        "queue_partition_key": partition,
                        "authenticated_user": partition,
                        "app_version": APPLICATION_VERSION,
                    },
                    kind,
                    payload,
                )
                self.tables.move_to_end(connection, job_id, self.queue, partition)
        except dbos_error.DBOSWorkflowIDInUseError:
            return

    def retry(self, job: Job, fresh: bool = False) -> None:
        """Queue a failed job again under its id.

        The records of the steps before the failed one are kept, unless `fresh`.
        """
        with self.translate_errors():
            try:
                self.client.rewind_workflow(
                    job.id,
                    start_step=1 if fresh else self._failed_step(job.id),
                    queue_name=self.queue,
                    queue_partition_key=job.partition,
                )
                self.client.update_workflow_attributes(job.id, {EARLIER_ATTEMPTS: job.attempts})
            except dbos_error.DBOSException as error:
                raise Conflict(f"Job {job.id} is no longer failed; read it again.") from error

    def _failed_step(self, job_id: str) -> int:
        found = self.client.list_workflows(workflow_ids=[job_id])
        steps = self.client.list_workflow_steps(job_id)
        output = found[0].output if found else None
        if not steps or (output and JobResult.model_validate(output).restarts_when_retried):
            return 1
        last = steps[-1]
        has_failed = not last["output"] or StepRecord.model_validate(last["output"]).has_failed
        return last["function_id"] + (0 if has_failed else 1)

    def delay(self, job_id: str, wait: JobWaits) -> None:
        """Let a running job wait and continue later; add up its attempts so far, and show the reason."""
        [status] = self.list_statuses(workflow_ids=[job_id])
        known = status.attributes or {}
        # A job that only waits behind another one was handed out, but not started.
        attempts = 0 if wait.cause is WaitCause.EARLIER_JOB else status.recovery_attempts or 0
        changes = {
            WAIT_REASON: wait.reason,
            WAIT_CAUSE: wait.cause.value,
            wait.cause.value: known.get(wait.cause, 0) + 1,
            EARLIER_ATTEMPTS: known.get(EARLIER_ATTEMPTS, 0) + attempts,
        }
        with self.translate_errors():
            self.client.update_workflow_attributes(job_id, changes, merge=True)
            with self.engine.begin() as connection:
                until = int((time.time() + wait.seconds) * 1000)
                self.tables.delay(
                    connection,
                    job_id,
                    self.queue,
                    str(status.authenticated_user),
                    until,
                    keeps_place=wait.cause is not WaitCause.ITS_TIME,
                )

    def count_waits(self, job_id: str, cause: WaitCause) -> int:
        """Return how often a job has waited for this cause."""
        return sum((status.attributes or {}).get(cause, 0) for status in self.list_statuses(workflow_ids=[job_id]))

    def seconds_of_earlier_job(self, job_id: str) -> float | None:
        """Return the seconds that an earlier unfinished job of the partition still waits, or None if there is none."""
        with self.translate_errors(), self.engine.connect() as connection:
            until = self.tables.find_earlier(connection, job_id)
        return None if until is None else max(0.0, until / 1000 - time.time())

    def end_waits(self, partition: str) -> None:
        """Let the waiting jobs of a partition continue at once."""
        for status in self.list_statuses(user=partition, status="DELAYED"):
            with self.translate_errors():
                self.client.set_workflow_delay(status.workflow_id, delay_seconds=0)

    def count_steps(self, job_id: str) -> int:
        """Return how many steps of a job are recorded."""
        with self.translate_errors():
            return len(self.client.list_workflow_steps(job_id))

    def resume(self, status: WorkflowStatus) -> None:
        """Queue a claimed job again that is not running."""
        with self.translate_errors():
            self.client.resume_workflow(status.workflow_id, queue_name=status.queue_name)

    def schedule(self, name: str, cron: str, timezone: str, kind: str, payload: dict[str, Any]) -> None:
        """Create or replace a schedule; raise InvalidInput for an invalid cron expression or zone."""
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
                raise InvalidInput(f"Schedule {name!r} cannot be stored: {error.message}.") from error

    def enqueue_scheduled(self, scheduled_at: str, schedule: dict[str, Any]) -> None:
        """Queue a tick's job, once per schedule and time; `schedule` is the context stored with it."""
        job_id = f"{schedule['name']}@{scheduled_at}"
        payload = {**schedule["payload"], "scheduled_at": scheduled_at}
        self.enqueue(job_id, schedule["kind"], SYSTEM_PARTITION + schedule["name"], payload)

    def unschedule(self, name: str) -> None:
        """Remove a schedule, if it exists."""
        with self.translate_errors():
            self.client.delete_schedule(name)

    # Reading

    def get(self, job_id: str) -> Job | None:
        """Return the job with this id, or None."""
        with self.translate_errors():
            found = self.client.list_workflows(workflow_ids=[job_id], name=JOB_WORKFLOW)
        return job_from_status(found[0]) if found else None

    def find_missing(self, job_ids: set[str]) -> set[str]:
        """Return the ids without a job."""
        found = {status.workflow_id for batch in batches(job_ids) for status in self.list_statuses(workflow_ids=batch)}
        return job_ids - found

    def list(
        self, partition: str | None, limit: int, matches: Callable[[Job], bool], before: datetime | None
    ) -> builtins.list[Job]:
        """Return the matching jobs, newest first, without those created after `before`."""
        jobs: list[Job] = []
        end = before.isoformat() if before else None
        for offset in count(0, PAGE_SIZE):
            with self.translate_errors():
                page = self.client.list_workflows(
                    user=partition, name=JOB_WORKFLOW, sort_desc=True, limit=PAGE_SIZE, offset=offset, end_time=end
                )
            jobs += filter(matches, map(job_from_status, page))
            if len(jobs) >= limit or len(page) < PAGE_SIZE:
                break
        return jobs[:limit]

    def count_unfinished(self) -> dict[str, tuple[int, int]]:
        """Return the count of unfinished jobs and the oldest creation time in ms since 1970, by DBOS status."""
        with self.translate_errors(), self.engine.connect() as connection:
            return self.tables.count_unfinished(connection, self.queue)

    def is_busy(self, partition: str) -> bool:
        """Return whether a job of the partition is queued or running."""
        with self.translate_errors():
            return bool(self.client.list_workflows(user=partition, name=JOB_WORKFLOW, status=UNFINISHED, limit=1))

    def list_statuses(self, **filters: Any) -> Sequence[WorkflowStatus]:
        """Return the matching jobs and ticks, without their input and output."""
        with self.translate_errors():
            return self.client.list_workflows(load_input=False, load_output=False, **filters)

    # Erasing

    def cancel(self, partition: str) -> set[str]:
        """Cancel the unfinished jobs of a partition, so that no worker runs them; return the ids of all its jobs."""
        jobs = self.list_statuses(user=partition)
        for batch in batches(job.workflow_id for job in jobs if job.status in UNFINISHED):
            with self.translate_errors():
                self.client.cancel_workflows(batch)
        return {job.workflow_id for job in jobs}

    def erase(self, partition: str) -> tuple[int, bool]:
        """Delete a partition's jobs and finished system jobs naming it; return the former's number and if none is left.

        DBOS deletes a job's records with the job, and rejects records of a deleted job.
        """
        jobs = {job.workflow_id for job in self.list_statuses(user=partition)}
        self._delete(jobs | self._find_finished([partition], SYSTEM_PARTITION))
        self._compact()
        is_any_left = self.list_statuses(user=partition, limit=1) or self._find_finished([partition], SYSTEM_PARTITION)
        return len(jobs), not is_any_left

    def erase_step_results(self, partition_prefix: str, texts: Collection[str]) -> None:
        """Erase the step results of finished jobs that contain one of the texts.

        Only jobs whose partition starts with `partition_prefix` are affected. The jobs and their results stay; a failed
        job runs all its steps again when it is retried.
        """
        found = self._find_finished(texts, partition_prefix)
        if found:
            with self.translate_errors(), self.engine.begin() as connection:
                self.tables.delete_steps(connection, found)
            self._compact()

    def prune(self, before: datetime) -> int:
        """Delete the jobs and ticks that finished before a time; return the number of jobs."""
        deleted = 0
        is_old = {"status": FINISHED, "completed_before": before.isoformat()}
        while old := self.list_statuses(**is_old, limit=BATCH_SIZE):
            self._delete({status.workflow_id for status in old})
            deleted += sum(status.name == JOB_WORKFLOW for status in old)
        return deleted

    def _find_finished(self, texts: Collection[str], partition_prefix: str) -> set[str]:
        # Scheduled jobs belong to no user, but may have recorded the users they queued jobs for.
        with self.translate_errors(), self.engine.connect() as connection:
            named = {job_id for text in texts for job_id in self.tables.find_jobs_containing(connection, text)}
        found = [job for batch in batches(named) for job in self.list_statuses(workflow_ids=batch, status=FINISHED)]
        partitions = {job.workflow_id: job.authenticated_user or SYSTEM_PARTITION for job in found}
        return {job_id for job_id, partition in partitions.items() if partition.startswith(partition_prefix)}

    def _delete(self, ids: Collection[str]) -> None:
        for batch in batches(ids):
            with self.translate_errors():
                self.client.delete_workflows(batch)

    def _compact(self) -> None:
        # SQLite overwrites deleted rows with zeros, but copies remain in split pages and in the write-ahead log.
        # VACUUM rewrites the file, and the checkpoint empties the log. Meanwhile others read, and writers wait.
        if self.is_sqlite:
            with self.translate_errors(), self.engine.connect() as connection:
                autocommit = connection.execution_options(isolation_level="AUTOCOMMIT")
                autocommit.execute(sa.text("VACUUM"))
                autocommit.execute(sa.text("PRAGMA wal_checkpoint(TRUNCATE)"))


def _schema(engine: sa.Engine) -> str | None:
    return None if engine.dialect.name == "sqlite" else SCHEMA


def _silence_dbos_logger() -> None:
    # A handler of any kind keeps DBOS from putting its own on the console and cutting its logger off from the root.
    logger = logging.getLogger("dbos")
    logger.setLevel(logging.WARNING)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
