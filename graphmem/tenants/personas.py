"""The personas of users in the graph."""

from __future__ import annotations

import json

from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.json_text import to_json
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner
from graphmem.tenants.user_lock import lock_or_create_user


class PersonaStore:
    """One persona a user: weights by memory type or tag, which searches use by default."""

    def __init__(self, graph: Graph, clock: Clock) -> None:
        self._graph = graph
        self._clock = clock

    async def get(self, owner: Owner) -> dict[str, float]:
        """Return the weights of a user; empty where there are none."""
        rows = await self._graph.fetch("users.get_persona", group_id=owner.group_id)
        weights: dict[str, float] = json.loads(rows[0]["persona"] or "{}") if rows else {}
        return weights

    async def replace(self, owner: Owner, weights: dict[str, float]) -> None:
        """Set the weights of a user; empty ones remove them."""

        async def work(transaction: Transaction) -> None:
            await lock_or_create_user(transaction, owner, self._clock())
            persona = to_json(weights) if weights else None
            await transaction.run("users.set_persona", group_id=owner.group_id, persona=persona)

        await self._graph.write(work)
