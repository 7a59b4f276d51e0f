"""The instructions of each tenant in the graph, and what callers do with them."""

from __future__ import annotations

from datetime import datetime

from graphmem.neo4j.driver import Graph
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.times import Clock
from graphmem.secrets.values import SecretPolicy
from graphmem.tenants.instructions import Instructions, InstructionsIn
from graphmem.tenants.owners import Owner


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


class InstructionService:
    """Reads and sets what a tenant wants remembered."""

    def __init__(self, store: InstructionStore, policy: SecretPolicy, clock: Clock) -> None:
        self._store = store
        self._policy = policy
        self._clock = clock

    async def get(self, tenant: str) -> Instructions:
        """Return the instructions of a tenant; empty ones where it has none."""
        return await self._store.find(Owner(tenant, "").tenant)

    async def set(self, tenant: str, request: InstructionsIn, actor: str) -> Instructions:
        """Set the instructions of a tenant, or remove them by an empty text; raise InvalidInput for a secret in it."""
        tenant, text = Owner(tenant, "").tenant, request.text.strip()
        if refused := self._policy.refused_classes(text, tenant):
            raise InvalidInput(f"The instructions contain secrets ({', '.join(refused)}): leave them out.")
        if text:
            await self._store.replace(tenant, text, self._clock(), actor)
        else:
            await self._store.remove(tenant)
        return await self._store.find(tenant)
