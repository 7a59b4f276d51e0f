"""Whether the parts graphmem stands on answer."""

from __future__ import annotations

from graphmem.jobs import JobRunner
from graphmem.store.driver import Graph


class ReadinessCheck:
    """Asks Neo4j and the job store."""

    def __init__(self, graph: Graph, jobs: JobRunner) -> None:
        self._graph = graph
        self._jobs = jobs

    async def check(self) -> dict[str, str]:
        """Return each part with `ok`; raise DatabaseUnavailable or JobStoreUnavailable for one that is away."""
        await self._graph.verify_connectivity()
        await self._jobs.list(limit=1)
        return {"neo4j": "ok", "jobs": "ok"}
