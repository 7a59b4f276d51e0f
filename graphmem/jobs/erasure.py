"""Forgetting: the removal of everything the job store holds of a user, of one memory, or of what is old."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime

import sqlalchemy as sa

from graphmem.errors import JobsUnavailable
from graphmem.jobs.store import FINISHED, JOB_WORKFLOW, SYSTEM_PARTITION, TICK_WORKFLOW, UNFINISHED, JobStore

# Where DBOS keeps text: what came in, what came out, and what each step gave.
TEXTS = {"workflow_input": ["inputs"], "workflow_output": ["output", "error"], "operation_outputs": ["output", "error"]}
BATCH = 500


class Erasure:
    """Removes jobs; every method blocks."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._texts = {
            name: sa.table(name, *map(sa.column, ["workflow_uuid", *columns]), schema=store.schema)
            for name, columns in TEXTS.items()
        }

    def cancel(self, partition: str) -> set[str]:
        """Keep the partition's unfinished jobs from being started or resumed; answers all of its jobs' ids."""
        jobs = self._store.statuses(user=partition)
        unfinished = [job.workflow_id for job in jobs if job.status in UNFINISHED]
        if unfinished:
            with self._store.reached():
                self._store.client.cancel_workflows(unfinished)
        return {job.workflow_id for job in jobs}

    def erase(self, partition: str) -> int:
        """Remove the partition's jobs and the finished system jobs naming it; raise JobsUnavailable if any is left."""
        jobs = {job.workflow_id for job in self._store.statuses(user=partition)}
        self._delete(jobs | self._naming(partition))
        self._compact()
        if self._store.statuses(user=partition) or self._naming(partition) or self._holding(jobs):
            raise JobsUnavailable("Jobs of this user came in while it was being forgotten; forget it again.")
        return len(jobs)

    def erase_records(self, within: str, words: Sequence[str]) -> None:
        """Remove what the steps of finished jobs recorded where a job holds one of some texts.

        `within` is how the jobs' partitions begin. The jobs stay, with what came of them; a failed one begins anew when
        it is retried.
        """
        named = sorted({job_id for word in words for job_id in self._quoting(word)})
        found: set[str] = set()
        for start in range(0, len(named), BATCH):
            batch = self._store.statuses(workflow_ids=named[start : start + BATCH], status=FINISHED)
            found |= {each.workflow_id for each in batch if (each.authenticated_user or "").startswith(within)}
        if not found:
            return
        steps = self._texts["operation_outputs"]
        with self._store.reached(), self._store.engine.begin() as connection:
            connection.execute(sa.delete(steps).where(steps.c.workflow_uuid.in_(sorted(found))))
        self._compact()

    def prune(self, before: datetime) -> int:
        """Remove what was finished before that time."""
        old = self._store.statuses(
            name=[JOB_WORKFLOW, TICK_WORKFLOW], status=FINISHED, completed_before=before.isoformat()
        )
        self._delete({status.workflow_id for status in old})
        return sum(status.name == JOB_WORKFLOW for status in old)

    def _delete(self, ids: Collection[str]) -> None:
        ordered = sorted(ids)
        for start in range(0, len(ordered), BATCH):
            with self._store.reached():
                self._store.client.delete_workflows(ordered[start : start + BATCH])

    def _naming(self, partition: str) -> set[str]:
        # Jobs of schedules belong to nobody, but may have recorded for whom they called for work.
        system = {
            status.workflow_id
            for status in self._store.statuses(name=[JOB_WORKFLOW, TICK_WORKFLOW], status=FINISHED)
            if status.name == TICK_WORKFLOW or (status.authenticated_user or "").startswith(SYSTEM_PARTITION)
        }
        return self._quoting(partition) & system

    def _quoting(self, text: str) -> set[str]:
        quoted = json.dumps(text, ensure_ascii=False)
        found: set[str] = set()
        with self._store.reached(), self._store.engine.connect() as connection:
            for table in self._texts.values():
                columns = [column for column in table.c if column.name != "workflow_uuid"]
                named = sa.or_(*(column.contains(quoted, autoescape=True) for column in columns))
                found.update(connection.scalars(sa.select(table.c.workflow_uuid).where(named)))
        return found

    def _holding(self, ids: Collection[str]) -> bool:
        ordered: Sequence[str] = sorted(ids)
        with self._store.reached(), self._store.engine.connect() as connection:
            for table in self._texts.values():
                for start in range(0, len(ordered), BATCH):
                    batch = ordered[start : start + BATCH]
                    if connection.scalar(sa.select(sa.exists().where(table.c.workflow_uuid.in_(batch)))):
                        return True
        return False

    def _compact(self) -> None:
        # SQLite zeroes what is deleted, yet copies remain where pages were split and in the log of what was written:
        # rewriting the file and emptying the log leaves none.
        if self._store.is_sqlite:
            with self._store.reached(), self._store.engine.connect() as connection:
                alone = connection.execution_options(isolation_level="AUTOCOMMIT")
                alone.execute(sa.text("VACUUM"))
                alone.execute(sa.text("PRAGMA wal_checkpoint(TRUNCATE)"))
