"""Estimated size of what is stored."""

from __future__ import annotations

from graphmem.neo4j.driver import Graph
from graphmem.runtime.metrics import MEMORY_SIZE_BYTES

SAMPLE_ROWS = 500
"""Messages and facts whose sizes are averaged."""


class StorageMeter:
    """Measures the size of the messages and memories of all users."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def measure(self) -> int:
        """Return the estimated number of bytes and set the metric to it."""
        size = int(await self._graph.fetch_value("maintenance.estimate_stored_bytes", sample=SAMPLE_ROWS))
        MEMORY_SIZE_BYTES.set(size)
        return size
