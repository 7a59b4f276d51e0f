"""Loads the context of the guards within a run's transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from graphmem.consolidation.graph_reads import fetch_entities, fetch_facts_of_entity
from graphmem.consolidation.guard_context import GuardContext, SecretFinder
from graphmem.consolidation.models import (
    CreateEntity,
    LinkEntities,
    Proposal,
    UpdateEntity,
)
from graphmem.consolidation.names import name_tokens
from graphmem.consolidation.proposal_references import entity_ids_of
from graphmem.memories.entity import Entity
from graphmem.memories.entity_mapping import entity_from_node
from graphmem.memories.fact import Fact
from graphmem.memories.fact_write import FactLoader
from graphmem.neo4j.driver import Transaction
from graphmem.runtime.text import name_key
from graphmem.tenants.owners import Owner


@dataclass(frozen=True, slots=True)
class GuardContextLoader:
    """Loads what the guards need about proposals of one user."""

    transaction: Transaction
    owner: Owner
    curated: bool
    find_secrets: SecretFinder
    contradicted: frozenset[str] = frozenset()

    async def load_for_facts(
        self, proposals: Sequence[Proposal], facts: Mapping[str, Fact], now: datetime
    ) -> GuardContext:
        """Return the context of proposals about memories; `facts` is part of it and may change while it is used."""
        entity_ids = [key for fact in facts.values() for key in (fact.subject_id, *fact.entity_ids)]
        new_names = [proposal.name for proposal in proposals if isinstance(proposal, CreateEntity)]
        return GuardContext(
            now=now,
            facts=facts,
            entities=await fetch_entities(self.transaction, self.owner, entity_ids),
            entity_ids_by_name=await self._load_entity_ids_by_name(new_names),
            contradicted=self.contradicted,
            current={fact.dedup_key: fact.memory_id for fact in facts.values() if fact.is_valid_at(now)},
            curated=self.curated,
            find_secrets=self.find_secrets,
        )

    async def load_for_entity_update(self, proposal: UpdateEntity, now: datetime) -> GuardContext:
        """Return the context of one change of an entity."""
        facts = await fetch_facts_of_entity(self.transaction, self.owner, proposal.entity_id)
        return GuardContext(
            now=now,
            facts=await self._fetch_evidence(proposal),
            entities=await fetch_entities(self.transaction, self.owner, entity_ids_of([proposal])),
            facts_by_entity={proposal.entity_id: [fact for fact in facts if fact.expired_at is None]},
            entity_ids_by_name=await self._load_entity_ids_by_name(proposal.add_aliases),
            curated=self.curated,
            find_secrets=self.find_secrets,
        )

    async def load_for_entity_link(self, proposal: LinkEntities, now: datetime) -> GuardContext:
        """Return the context of one link between two entities."""
        entities = await fetch_entities(self.transaction, self.owner, entity_ids_of([proposal]))
        facts_by_entity, other_relationships = {}, {}
        for entity_id in entities:
            versions = await fetch_facts_of_entity(self.transaction, self.owner, entity_id)
            facts_by_entity[entity_id] = [fact for fact in versions if fact.expired_at is None]
            other_relationships[entity_id] = await self._list_other_relationships(entity_id)
        similarly_named = {
            entity.id: await self._find_similarly_named(entity.name, entities) for entity in entities.values()
        }
        return GuardContext(
            now=now,
            facts=await self._fetch_evidence(proposal),
            entities=entities,
            facts_by_entity=facts_by_entity,
            similarly_named=similarly_named,
            other_relationships=other_relationships,
            curated=self.curated,
            find_secrets=self.find_secrets,
        )

    async def _fetch_evidence(self, proposal: UpdateEntity | LinkEntities) -> dict[str, Fact]:
        return await FactLoader(self.transaction, self.owner).fetch(memory_ids=proposal.evidence)

    async def _find_similarly_named(self, name: str, linked: Mapping[str, Entity]) -> list[Entity]:
        words = [word for word in name_tokens(name) if len(word) > 1]
        if not words:
            return []
        rows = await self.transaction.run(
            "consolidation.find_entities_sharing_words", group_id=self.owner.group_id, words=words
        )
        return [entity_from_node(row["entity"]) for row in rows if row["entity"]["uuid"] not in linked]

    async def _list_other_relationships(self, entity_id: str) -> list[str]:
        rows = await self.transaction.run("consolidation.list_other_relationships", entity_id=entity_id)
        return [row["type"] for row in rows]

    async def _load_entity_ids_by_name(self, names: Sequence[str]) -> dict[str, str]:
        """Return the ids of the entities that have one of the names, by the keys of all their names."""
        if not names:
            return {}
        keys = [name_key(name) for name in names]
        rows = await self.transaction.run("entities.find_by_keys", group_ids=[self.owner.group_id], keys=keys)
        return {
            key: row["entity"]["uuid"]
            for row in rows
            for key in [*(row["entity"]["alias_keys"] or ()), row["entity"]["name_key"]]
        }
