"""The custom instructions of tenants in the graph."""

from __future__ import annotations

from datetime import datetime

from graphmem.neo4j.driver import Graph
from graphmem.tenants.instructions import Instructions


class InstructionStore:
    """One text a tenant, which prompts show."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def find(self, tenant: str) -> Instructions:
        """Return the instructions of a tenant; empty ones where it has none."""
        rows = await self._graph.fetch("instructions.find", tenant=tenant)
        return Instructions(**rows[0]["instructions"]) if rows else Instructions()

    async def replace(self, tenant: str, text: str, now: datetime, actor: str) -> None:
        """Set the instructions of a tenant."""
        await self._graph.execute("instructions.replace", tenant=tenant, text=text, now=now, actor=actor)

    async def remove(self, tenant: str) -> None:
        """Remove the instructions of a tenant; do nothing where it has none."""
        await self._graph.execute("instructions.remove", tenant=tenant)
