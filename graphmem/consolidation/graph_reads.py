"""Reads of facts and entities that a run needs, within a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphmem.consolidation.models import Merge, Proposal
from graphmem.consolidation.proposal_references import memory_ids_of
from graphmem.memories.entity import Entity
from graphmem.memories.entity_mapping import entity_from_node
from graphmem.memories.fact import Fact
from graphmem.memories.fact_mapping import fact_from_row
from graphmem.memories.fact_write import FactLoader
from graphmem.neo4j.driver import Transaction
from graphmem.runtime.text import content_hash
from graphmem.tenants.owners import Owner


async def fetch_facts(transaction: Transaction, owner: Owner, proposals: Sequence[Proposal]) -> dict[str, Fact]:
    """Return the believed facts that proposals name, and those that state what a merge would state."""
    return await FactLoader(transaction, owner).fetch(
        hashes=[content_hash(proposal.content) for proposal in proposals if isinstance(proposal, Merge)],
        memory_ids=memory_ids_of(proposals),
    )


async def fetch_entities(transaction: Transaction, owner: Owner, ids: Iterable[str]) -> dict[str, Entity]:
    """Return entities by id; ids of no entity of the user are left out."""
    distinct_ids = list(dict.fromkeys(ids))
    if not distinct_ids:
        return {}
    rows = await transaction.run("consolidation.fetch_entities", group_id=owner.group_id, ids=distinct_ids)
    return {row["entity"]["uuid"]: entity_from_node(row["entity"]) for row in rows}


async def fetch_facts_of_entity(transaction: Transaction, owner: Owner, entity_id: str) -> list[Fact]:
    """Return every version of the facts at an entity's edges and of those that mention it."""
    rows = await transaction.run("consolidation.fetch_entity_facts", group_id=owner.group_id, entity_id=entity_id)
    return [fact_from_row(row) for row in rows]
