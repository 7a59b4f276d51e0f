"""The types that tenants declare, in the graph."""

from __future__ import annotations

import json
from datetime import datetime

from graphmem.memories.declared_types import DeclaredTypes, DeclaredTypesIn
from graphmem.neo4j.driver import Graph

_SECTIONS = ("memory_types", "entity_types")


class DeclaredTypeStore:
    """One set of types a tenant."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def find(self, tenant: str) -> DeclaredTypes:
        """Return the declared types of a tenant; none where it has none."""
        rows = await self._graph.fetch("declared_types.find", tenant=tenant)
        if not rows:
            return DeclaredTypes()
        stored = rows[0]["types"]
        return DeclaredTypes(**{**stored, **{name: json.loads(stored[name]) for name in _SECTIONS}})

    async def replace(self, tenant: str, types: DeclaredTypesIn, now: datetime, actor: str) -> None:
        """Set the declared types of a tenant."""
        sections = types.model_dump(mode="json")
        await self._graph.execute(
            "declared_types.replace",
            tenant=tenant,
            memory_types=json.dumps(sections["memory_types"], ensure_ascii=False),
            entity_types=json.dumps(sections["entity_types"], ensure_ascii=False),
            now=now,
            actor=actor,
        )

    async def remove(self, tenant: str) -> None:
        """Remove the declared types of a tenant; do nothing where it has none."""
        await self._graph.execute("declared_types.remove", tenant=tenant)
