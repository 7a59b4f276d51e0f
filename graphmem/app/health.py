"""Readiness: whether the dependencies of the service are available and accept writes."""

from __future__ import annotations

import asyncio
import logging
import time

from graphmem.jobs.job import Job
from graphmem.jobs.runner import JobRunner
from graphmem.neo4j.driver import Graph
from graphmem.runtime.disk_space import free_bytes, to_megabytes
from graphmem.runtime.errors import DatabaseUnavailable, JobStoreUnavailable, Unavailable
from graphmem.runtime.settings import Settings

TIMEOUT_SECONDS = 1.7
"""Seconds in which each dependency must answer."""

WRITE_CHECK_SECONDS = 5.0
"""Seconds for which a write that succeeded is proof enough that Neo4j accepts writes."""

log = logging.getLogger(__name__)


class ReadinessCheck:
    """Checks Neo4j, the job store, and the disk of the data folder where something is stored in it."""

    def __init__(self, graph: Graph, jobs: JobRunner, settings: Settings) -> None:
        self._graph = graph
        self._jobs = jobs
        self._data_dir = settings.data_dir if settings.uses_data_dir else None
        self._min_free_mb = settings.min_free_disk_mb
        self._last_write: float | None = None
        self._job_list: asyncio.Task[list[Job]] | None = None

    async def check(self) -> dict[str, str]:
        """Return `ok` for each dependency; raise Unavailable, within two seconds, when one is unavailable."""
        self._check_disk()
        results = await asyncio.gather(self._check_graph(), self._check_jobs(), return_exceptions=True)
        for error in filter(None, results):
            raise error
        return {"neo4j": "ok", "jobs": "ok", **({"disk": "ok"} if self._data_dir else {})}

    def _check_disk(self) -> None:
        if self._data_dir is None:
            return
        free = to_megabytes(free_bytes(self._data_dir))
        if free < self._min_free_mb:
            log.warning("%s has %d MB free, less than GRAPHMEM_MIN_FREE_DISK_MB", self._data_dir, free)
            raise Unavailable(
                f"The disk of the data folder has {free} MB free, but {self._min_free_mb} MB are required: free disk "
                "space, or lower GRAPHMEM_MIN_FREE_DISK_MB."
            )

    async def _check_graph(self) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await self._graph.check_answering(TIMEOUT_SECONDS)
                now = time.monotonic()
                if self._last_write is None or now - self._last_write > WRITE_CHECK_SECONDS:
                    await self._graph.execute("schema.record_write_check")
                    self._last_write = now
        except TimeoutError as error:
            raise DatabaseUnavailable("Neo4j does not answer in time: check its log.") from error

    async def _check_jobs(self) -> None:
        # One list at a time: a job store that does not answer would otherwise take a thread with every check.
        if self._job_list is None or self._job_list.done():
            self._job_list = asyncio.create_task(self._jobs.list(limit=1))
        done, _ = await asyncio.wait({self._job_list}, timeout=TIMEOUT_SECONDS)
        if not done:
            raise JobStoreUnavailable("The job store does not answer in time: check that its database runs.")
        await self._job_list
