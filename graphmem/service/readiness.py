"""Readiness: whether the dependencies of the service are available."""

from __future__ import annotations

from graphmem.jobs import JobRunner
from graphmem.store.driver import Graph


class ReadinessCheck:
    """Checks Neo4j and the job store."""

    def __init__(self, graph: Graph, jobs: JobRunner) -> None:
        self._graph = graph
        self._jobs = jobs

    async def check(self) -> dict[str, str]:
        """Return `ok` for each dependency; raise DatabaseUnavailable or JobStoreUnavailable for an unavailable one."""
        await self._graph.verify_connectivity()
        await self._jobs.list(limit=1)
        return {"neo4j": "ok", "jobs": "ok"}
