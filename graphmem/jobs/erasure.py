"""Erasing jobs: those of a user, what they recorded of a memory, and old ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

import sqlalchemy as sa

from graphmem.jobs.dbos_internals import batches
from graphmem.jobs.kinds import SYSTEM_PARTITION
from graphmem.jobs.store import FINISHED, JOB_WORKFLOW, TICK_WORKFLOW, UNFINISHED, JobStore


class JobEraser:
    """Erases jobs from the job store. Every method blocks."""

    def __init__(self, store: JobStore) -> None:
        self._store = store

    def cancel(self, partition: str) -> set[str]:
        """Cancel the unfinished jobs of a partition, so that no worker runs them; return the ids of all its jobs."""
        jobs = self._store.list_statuses(user=partition)
        unfinished = [job.workflow_id for job in jobs if job.status in UNFINISHED]
        if unfinished:
            with self._store.translate_errors():
                self._store.client.cancel_workflows(unfinished)
        return {job.workflow_id for job in jobs}

    def erase(self, partition: str) -> tuple[int, bool]:
        """Delete a partition's jobs and finished system jobs that name it; return their number and if none is left."""
        jobs = {job.workflow_id for job in self._store.list_statuses(user=partition)}
        self._delete(jobs | self._system_jobs_containing(partition))
        self._compact()
        is_any_left = (
            self._store.list_statuses(user=partition)
            or self._system_jobs_containing(partition)
            or self._has_rows_of(jobs)
        )
        return len(jobs), not is_any_left

    def erase_step_results(self, partition_prefix: str, texts: Sequence[str]) -> None:
        """Erase the step results of finished jobs that contain one of the texts.

        Only jobs whose partition starts with `partition_prefix` are affected. The jobs and their results stay; a failed
        job runs all its steps again when it is retried.
        """
        named = {job_id for text in texts for job_id in self._jobs_containing(text)}
        found: set[str] = set()
        for batch in batches(named):
            jobs = self._store.list_statuses(workflow_ids=batch, status=FINISHED)
            found |= {job.workflow_id for job in jobs if (job.authenticated_user or "").startswith(partition_prefix)}
        if not found:
            return
        with self._store.translate_errors(), self._store.engine.begin() as connection:
            self._store.tables.delete_steps(connection, found)
        self._compact()

    def prune(self, before: datetime) -> int:
        """Delete the jobs and ticks that finished before a time; return the number of jobs."""
        old = self._store.list_statuses(
            name=[JOB_WORKFLOW, TICK_WORKFLOW], status=FINISHED, completed_before=before.isoformat()
        )
        self._delete({status.workflow_id for status in old})
        return sum(status.name == JOB_WORKFLOW for status in old)

    def _delete(self, ids: Collection[str]) -> None:
        for batch in batches(ids):
            with self._store.translate_errors():
                self._store.client.delete_workflows(batch)

    def _system_jobs_containing(self, partition: str) -> set[str]:
        # The jobs of schedules belong to no user, but may have recorded for which users they queued jobs.
        system = {
            status.workflow_id
            for status in self._store.list_statuses(name=[JOB_WORKFLOW, TICK_WORKFLOW], status=FINISHED)
            if status.name == TICK_WORKFLOW or (status.authenticated_user or "").startswith(SYSTEM_PARTITION)
        }
        return self._jobs_containing(partition) & system

    def _jobs_containing(self, text: str) -> set[str]:
        with self._store.translate_errors(), self._store.engine.connect() as connection:
            return self._store.tables.find_jobs_containing(connection, text)

    def _has_rows_of(self, ids: Collection[str]) -> bool:
        with self._store.translate_errors(), self._store.engine.connect() as connection:
            return self._store.tables.has_text_of(connection, ids)

    def _compact(self) -> None:
        # SQLite overwrites deleted rows with zeros, but copies remain in split pages and in the write-ahead log.
        # VACUUM rewrites the file, and the checkpoint empties the log.
        if self._store.is_sqlite:
            with self._store.translate_errors(), self._store.engine.connect() as connection:
                autocommit = connection.execution_options(isolation_level="AUTOCOMMIT")
                autocommit.execute(sa.text("VACUUM"))
                autocommit.execute(sa.text("PRAGMA wal_checkpoint(TRUNCATE)"))
