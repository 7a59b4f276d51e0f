"""Erasing every fact and node of one user from the graph."""

from __future__ import annotations

from graphmem.domain.identity import Owner
from graphmem.store.driver import Graph, Transaction
from graphmem.store.facts import FactStore


class ForgetStore:
    """Erases users from the graph."""

    def __init__(self, graph: Graph, facts: FactStore) -> None:
        self._graph = graph
        self._facts = facts

    async def erase_user(self, transaction: Transaction, owner: Owner) -> dict[str, int]:
        """Erase the facts, entities, messages, sessions, context and the user node; return how many of each kind."""
        await self._facts.lock_user(transaction, owner)
        facts = await transaction.run("forget.erase_facts", group_id=owner.group_id)
        nodes = await transaction.run("forget.erase_nodes", group_id=owner.group_id)
        return {"Fact": facts[0]["erased"], **{row["kind"]: row["erased"] for row in nodes}}

    async def count_residue(self, owner: Owner) -> int:
        """Return how many nodes and relationships of a user are left."""
        rows = await self._graph.fetch("forget.count_residue", group_id=owner.group_id)
        return int(rows[0]["residue"])
