"""The parts of DBOS outside its public API that graphmem uses: four tables and the recovery of named executors.

`DECISIONS.md` explains why the public API is not enough. DBOS may change these in any release, so the dependency is
capped and `tests/jobs/test_dbos_internals.py` compares them with the installed version.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator

import sqlalchemy as sa
from dbos import DBOS

STATUS_TABLE = "workflow_status"
STATUS_COLUMNS = (
    "workflow_uuid",
    "status",
    "queue_name",
    "queue_partition_key",
    "created_at",
    "started_at_epoch_ms",
    "recovery_attempts",
    "owner_xid",
    "delay_until_epoch_ms",
)

STEP_TABLE = "operation_outputs"
TEXT_COLUMNS = {
    "workflow_input": ("inputs",),
    "workflow_output": ("output", "error"),
    STEP_TABLE: ("output", "error"),
}
"""DBOS's text columns by table: a job's input and result, and the results of its steps."""

UNFINISHED = ["ENQUEUED", "DELAYED", "PENDING"]
"""DBOS statuses of jobs that are queued or running."""

BATCH_SIZE = 500
"""Number of ids per query; SQLite takes at most 32,766 parameters."""


class DbosTables:
    """Queries of DBOS's own tables; every method blocks and uses the given connection."""

    def __init__(self, schema: str | None) -> None:
        self._status = sa.table(STATUS_TABLE, *map(sa.column, STATUS_COLUMNS), schema=schema)
        self._text_tables = {
            name: sa.table(name, *map(sa.column, ["workflow_uuid", *columns]), schema=schema)
            for name, columns in TEXT_COLUMNS.items()
        }

    def move_to_end(self, connection: sa.Connection, job_id: str, queue: str, partition: str) -> None:
        """Move a queued job to the end of its partition, delayed for as long as the jobs ahead of it.

        DBOS orders jobs by creation time, which its SQLite schema stores in whole seconds, and hands out a job even
        while one ahead of it is delayed.
        """
        jobs = self._status.c
        delay = sa.case((jobs.status == "DELAYED", jobs.delay_until_epoch_ms))
        last, until = connection.execute(
            sa.select(sa.func.max(jobs.created_at), sa.func.max(delay)).where(
                *self._is_in(queue, partition),
                jobs.status.in_(UNFINISHED),
                jobs.workflow_uuid != job_id,
                # A job that waits for a time takes its place in the queue at that time, see `delay`.
                sa.or_(jobs.status != "DELAYED", jobs.created_at < jobs.delay_until_epoch_ms),
            )
        ).one()
        values = {"created_at": max(int(time.time() * 1000), (last or 0) + 1)}
        if until:
            values |= {"status": "DELAYED", "delay_until_epoch_ms": until}
        connection.execute(self._status.update().where(jobs.workflow_uuid == job_id).values(values))

    def delay(
        self,
        connection: sa.Connection,
        job_id: str,
        queue: str,
        partition: str,
        until_ms: int,
        *,
        keeps_place: bool = True,
    ) -> None:
        """Take a running job from its worker until a time, in milliseconds since 1970, and delay the jobs behind it.

        A job that does not keep its place delays no others: it runs after the jobs queued before that time.

        DBOS can only delay new jobs. The job's steps stay recorded; DBOS's count of its attempts restarts, because DBOS
        ends jobs that crash.
        """
        jobs = self._status.c
        delayed = {"status": "DELAYED", "delay_until_epoch_ms": until_ms}
        connection.execute(
            self._status.update()
            .where(jobs.workflow_uuid == job_id, jobs.status == "PENDING")
            .values(
                **delayed,
                recovery_attempts=0,
                started_at_epoch_ms=None,
                owner_xid=None,
                **({} if keeps_place else {"created_at": until_ms}),
            )
        )
        if keeps_place:
            connection.execute(
                self._status.update().where(*self._is_in(queue, partition), jobs.status == "ENQUEUED").values(delayed)
            )

    def _is_in(self, queue: str, partition: str) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
        jobs = self._status.c
        return jobs.queue_name == queue, jobs.queue_partition_key == partition

    def find_earlier(self, connection: sa.Connection, job_id: str) -> int | None:
        """Return when the delay of an earlier unfinished job in the partition ends, in milliseconds since 1970.

        None means no earlier job, 0 an earlier job that may run at once. Two workers that poll a partition at the same
        moment may each get a job, so every job checks before it starts.
        """
        earlier, this = self._status.alias(), self._status.alias()
        delay = sa.case((earlier.c.status == "DELAYED", earlier.c.delay_until_epoch_ms), else_=0)
        until: int | None = connection.scalar(
            sa.select(sa.func.max(delay))
            .select_from(
                this.join(
                    earlier,
                    sa.and_(
                        earlier.c.queue_name == this.c.queue_name,
                        earlier.c.queue_partition_key == this.c.queue_partition_key,
                    ),
                )
            )
            .where(
                this.c.workflow_uuid == job_id,
                earlier.c.status.in_(UNFINISHED),
                sa.tuple_(earlier.c.created_at, earlier.c.workflow_uuid)
                < sa.tuple_(this.c.created_at, this.c.workflow_uuid),
            )
        )
        return until

    def count_unfinished(self, connection: sa.Connection, queue: str) -> dict[str, tuple[int, int]]:
        """Return the count of a queue's unfinished jobs and the oldest creation time in ms, by DBOS status."""
        jobs = self._status.c
        rows = connection.execute(
            sa.select(jobs.status, sa.func.count(), sa.func.min(jobs.created_at))
            .where(jobs.queue_name == queue, jobs.status.in_(UNFINISHED))
            .group_by(jobs.status)
        )
        return {status: (count, oldest) for status, count, oldest in rows}

    def find_jobs_containing(self, connection: sa.Connection, text: str) -> set[str]:
        """Return the ids of the jobs that hold a text as a whole JSON string in their input, result or steps."""
        quoted = json.dumps(text, ensure_ascii=False)
        found: set[str] = set()
        for table in self._text_tables.values():
            columns = [column for column in table.c if column.name != "workflow_uuid"]
            matches = sa.or_(*(column.contains(quoted, autoescape=True) for column in columns))
            found.update(connection.scalars(sa.select(table.c.workflow_uuid).where(matches)))
        return found

    def delete_steps(self, connection: sa.Connection, job_ids: Collection[str]) -> None:
        """Delete the step records of the jobs."""
        steps = self._text_tables[STEP_TABLE]
        for batch in batches(job_ids):
            connection.execute(sa.delete(steps).where(steps.c.workflow_uuid.in_(batch)))


def recover_jobs_of(executor_ids: Collection[str]) -> None:
    """Start the unfinished jobs of named executors in this process.

    DBOS's public `resume_workflow` is unsuitable: it moves a job even if a worker runs it, so that two workers could
    start it, and it resets the count that ends a job which kills every worker that runs it.
    """
    DBOS._recover_pending_workflows(sorted(executor_ids))


def batches(job_ids: Iterable[str]) -> Iterator[list[str]]:
    """Yield ids in order, up to `BATCH_SIZE` at a time."""
    ordered = sorted(job_ids)
    for start in range(0, len(ordered), BATCH_SIZE):
        yield ordered[start : start + BATCH_SIZE]
