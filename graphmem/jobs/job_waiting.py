"""Waiting for the job of a request, no longer than its database answers."""

from __future__ import annotations

from graphmem.jobs.job import Job
from graphmem.jobs.runner import JobRunner
from graphmem.neo4j.driver import Graph
from graphmem.runtime.errors import DatabaseUnavailable

CHECK_SECONDS = 3.0
"""Seconds in which the database must answer before a job is queued that nobody would do otherwise."""


class JobWaiting:
    """Waits for jobs on behalf of requests.

    A job that meets an unavailable database is postponed, for up to a day. A request must not wait for that: it fails
    as soon as the database is silent, and the job goes on without it.
    """

    def __init__(self, graph: Graph, jobs: JobRunner) -> None:
        self._graph = graph
        self._jobs = jobs
        self._count = 0

    @property
    def count(self) -> int:
        """Number of requests that wait at this moment and do no work meanwhile."""
        return self._count

    async def check_database(self) -> None:
        """Raise DatabaseUnavailable when the database does not answer, before a job is queued in vain."""
        await self._graph.check_answering(CHECK_SECONDS)

    async def wait(self, job_id: str, seconds: float) -> Job:
        """Return the job once it is final or waits for a model, or as it is after `seconds` seconds.

        Raises DatabaseUnavailable, which names the job, when the database is silent; NotFound when there is no job.
        """
        self._count += 1
        try:
            async with self._graph.watch_others():
                return await self._jobs.wait(job_id, seconds)
        except DatabaseUnavailable as error:
            raise DatabaseUnavailable(
                f"{error.detail} What was asked for is not lost: the job {job_id} goes on by itself when Neo4j answers "
                "again."
            ) from error
        finally:
            self._count -= 1
