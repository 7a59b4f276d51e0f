"""What proposals are reviewed by, fetched from the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from graphmem.consolidation.guards import GuardContext
from graphmem.consolidation.naming import name_tokens
from graphmem.domain.consolidation_models import Associate, CreateEntity, LinkEntities, Merge, Proposal, UpdateEntity
from graphmem.domain.entity import Entity
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.text import content_hash, name_key
from graphmem.store.driver import Transaction
from graphmem.store.entity_mapping import entity_from_node
from graphmem.store.fact_mapping import fact_from_row

SecretFinder = Callable[[Any], Sequence[str]]


def memory_ids_of(proposals: Iterable[Proposal]) -> list[str]:
    """Return the memories that proposals name."""
    return list(
        dict.fromkeys(
            key for each in proposals if isinstance(each, Merge | Associate | CreateEntity) for key in each.memory_ids
        )
    )


def entity_ids_of(proposals: Iterable[Proposal]) -> list[str]:
    """Return the entities that proposals name."""
    found: dict[str, None] = {}
    for each in proposals:
        if isinstance(each, UpdateEntity):
            found[each.entity_id] = None
        elif isinstance(each, LinkEntities):
            found |= {each.keep_id: None, each.merge_id: None}
    return list(found)


def observed_versions(proposal: Proposal, facts: dict[str, Fact], entities: dict[str, Entity]) -> dict[str, str]:
    """Return what a proposal rests on: versions of memories, times of change of entities; the unknown is left out."""
    seen = {key: str(facts[key].version) for key in memory_ids_of([proposal]) if key in facts}
    return seen | {key: entities[key].updated_at.isoformat() for key in entity_ids_of([proposal]) if key in entities}


async def fetch_facts(transaction: Transaction, owner: Owner, proposals: Sequence[Proposal]) -> dict[str, Fact]:
    """Return the believed facts that proposals name, and those that say already what a merge would say."""
    hashes = [content_hash(each.content) for each in proposals if isinstance(each, Merge)]
    rows = await transaction.run(
        "facts.fetch_for_write",
        group_id=owner.group_id,
        hashes=list(dict.fromkeys(hashes)),
        memory_ids=memory_ids_of(proposals),
        pairs=[],
    )
    return {fact.memory_id: fact for fact in map(fact_from_row, rows)}


async def fetch_entities(transaction: Transaction, owner: Owner, ids: Iterable[str]) -> dict[str, Entity]:
    """Return entities by id with all their names."""
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return {}
    rows = await transaction.run("consolidation.fetch_entities", group_id=owner.group_id, ids=wanted)
    return {row["entity"]["uuid"]: entity_from_node(row["entity"]) for row in rows}


async def load_fact_context(
    transaction: Transaction,
    owner: Owner,
    proposals: Sequence[Proposal],
    facts: dict[str, Fact],
    now: datetime,
    *,
    curated: bool,
    find_secrets: SecretFinder,
) -> GuardContext:
    """Return the context of proposals about memories; `facts` becomes part of it and is kept up to date by the caller."""
    touched = (key for fact in facts.values() for key in (fact.subject_id, *fact.entity_ids))
    return GuardContext(
        now=now,
        facts=facts,
        entities=await fetch_entities(transaction, owner, touched),
        entity_ids_by_name=await _entity_ids_by_name(
            transaction, owner, [each.name for each in proposals if isinstance(each, CreateEntity)]
        ),
        current={fact.dedup_key: fact.memory_id for fact in facts.values() if fact.is_valid_at(now)},
        curated=curated,
        find_secrets=find_secrets,
    )


async def load_entity_context(
    transaction: Transaction,
    owner: Owner,
    proposal: UpdateEntity | LinkEntities,
    now: datetime,
    *,
    curated: bool,
    find_secrets: SecretFinder,
) -> GuardContext:
    """Return the context of one proposal about entities."""
    entities = await fetch_entities(transaction, owner, entity_ids_of([proposal]))
    if isinstance(proposal, UpdateEntity):
        entity_ids_by_name = await _entity_ids_by_name(transaction, owner, proposal.add_aliases)
        return GuardContext(
            now, {}, entities, entity_ids_by_name=entity_ids_by_name, curated=curated, find_secrets=find_secrets
        )
    facts_by_entity = {key: await _load_facts_of_entity(transaction, owner, key) for key in entities}
    merge = entities.get(proposal.merge_id)
    words = [word for word in name_tokens(merge.name) if len(word) > 1] if merge else []
    rows = (
        await transaction.run("consolidation.find_entities_sharing_words", group_id=owner.group_id, words=words)
        if words
        else []
    )
    similarly_named = [entity_from_node(row["entity"]) for row in rows if row["entity"]["uuid"] not in entities]
    return GuardContext(
        now,
        {},
        entities,
        facts_by_entity=facts_by_entity,
        similarly_named={proposal.merge_id: similarly_named},
        other_relationships={key: await _load_other_relationships(transaction, key) for key in entities},
        curated=curated,
        find_secrets=find_secrets,
    )


async def _load_facts_of_entity(transaction: Transaction, owner: Owner, entity_id: str) -> list[Fact]:
    rows = await transaction.run("consolidation.fetch_entity_facts", group_id=owner.group_id, entity_id=entity_id)
    return [fact for fact in map(fact_from_row, rows) if fact.expired_at is None]


async def _load_other_relationships(transaction: Transaction, entity_id: str) -> list[str]:
    rows = await transaction.run("consolidation.list_other_relationships", entity_id=entity_id)
    return [row["type"] for row in rows]


async def _entity_ids_by_name(transaction: Transaction, owner: Owner, names: Sequence[str]) -> dict[str, str]:
    """Return the ids of entities by the keys of all their names, for names that are to be given."""
    if not names:
        return {}
    keys = [name_key(name) for name in names]
    rows = await transaction.run("entities.find_by_keys", group_ids=[owner.group_id], keys=keys)
    return {
        key: row["entity"]["uuid"]
        for row in rows
        for key in [*(row["entity"]["alias_keys"] or ()), row["entity"]["name_key"]]
    }
