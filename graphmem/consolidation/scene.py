"""What proposals are judged by, fetched from the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from graphmem.consolidation.guards import Scene
from graphmem.consolidation.naming import name_tokens
from graphmem.domain.entity import Entity
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.proposals import Associate, CreateEntity, LinkEntities, Merge, Proposal, UpdateEntity
from graphmem.domain.text import content_hash, name_key
from graphmem.store.driver import Transaction
from graphmem.store.rows import entity_of, read_fact

Secrets = Callable[[Any], Sequence[str]]


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


def versions(proposal: Proposal, facts: dict[str, Fact], entities: dict[str, Entity]) -> dict[str, str]:
    """Return what a proposal rests on: versions of memories, times of change of entities; the unknown is left out."""
    seen = {key: str(facts[key].version) for key in memory_ids_of([proposal]) if key in facts}
    return seen | {key: entities[key].updated_at.isoformat() for key in entity_ids_of([proposal]) if key in entities}


async def fetch_facts(transaction: Transaction, owner: Owner, proposals: Sequence[Proposal]) -> dict[str, Fact]:
    """Return the believed facts that proposals name, and those that say already what a merge would say."""
    hashes = [content_hash(each.content) for each in proposals if isinstance(each, Merge)]
    rows = await transaction.run(
        "facts.touched_by",
        group_id=owner.group_id,
        hashes=list(dict.fromkeys(hashes)),
        memory_ids=memory_ids_of(proposals),
        pairs=[],
    )
    return {fact.memory_id: fact for fact in map(read_fact, rows)}


async def fetch_entities(transaction: Transaction, owner: Owner, ids: Iterable[str]) -> dict[str, Entity]:
    """Return entities by id with all their names."""
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return {}
    rows = await transaction.run("consolidation.entities", group_id=owner.group_id, ids=wanted)
    return {row["entity"]["uuid"]: entity_of(row["entity"]) for row in rows}


async def facts_scene(
    transaction: Transaction,
    owner: Owner,
    proposals: Sequence[Proposal],
    facts: dict[str, Fact],
    now: datetime,
    *,
    curated: bool,
    secrets: Secrets,
) -> Scene:
    """Return the scene of proposals about memories; `facts` becomes part of it and is kept up to date by the caller."""
    touched = (key for fact in facts.values() for key in (fact.subject_id, *fact.entity_ids))
    return Scene(
        now=now,
        facts=facts,
        entities=await fetch_entities(transaction, owner, touched),
        named=await _named(transaction, owner, [each.name for each in proposals if isinstance(each, CreateEntity)]),
        current={fact.identity: fact.memory_id for fact in facts.values() if fact.holds_at(now)},
        curated=curated,
        secrets=secrets,
    )


async def entity_scene(
    transaction: Transaction,
    owner: Owner,
    proposal: UpdateEntity | LinkEntities,
    now: datetime,
    *,
    curated: bool,
    secrets: Secrets,
) -> Scene:
    """Return the scene of one proposal about entities."""
    entities = await fetch_entities(transaction, owner, entity_ids_of([proposal]))
    if isinstance(proposal, UpdateEntity):
        named = await _named(transaction, owner, proposal.add_aliases)
        return Scene(now, {}, entities, named=named, curated=curated, secrets=secrets)
    touching = {key: await _touching(transaction, owner, key) for key in entities}
    merge = entities.get(proposal.merge_id)
    words = [word for word in name_tokens(merge.name) if len(word) > 1] if merge else []
    rows = await transaction.run("consolidation.alike", group_id=owner.group_id, words=words) if words else []
    alike = [entity_of(row["entity"]) for row in rows if row["entity"]["uuid"] not in entities]
    return Scene(
        now,
        {},
        entities,
        touching=touching,
        alike={proposal.merge_id: alike},
        tied={key: await _other_ties(transaction, key) for key in entities},
        curated=curated,
        secrets=secrets,
    )


async def _touching(transaction: Transaction, owner: Owner, entity_id: str) -> list[Fact]:
    rows = await transaction.run("consolidation.touching", group_id=owner.group_id, entity_id=entity_id)
    return [fact for fact in map(read_fact, rows) if fact.expired_at is None]


async def _other_ties(transaction: Transaction, entity_id: str) -> list[str]:
    rows = await transaction.run("consolidation.other_ties", entity_id=entity_id)
    return [row["type"] for row in rows]


async def _named(transaction: Transaction, owner: Owner, names: Sequence[str]) -> dict[str, str]:
    """Return the ids of entities by the keys of all their names, for names that are to be given."""
    if not names:
        return {}
    keys = [name_key(name) for name in names]
    rows = await transaction.run("entities.find", group_ids=[owner.group_id], keys=keys)
    return {
        key: row["entity"]["uuid"]
        for row in rows
        for key in [*(row["entity"]["alias_keys"] or ()), row["entity"]["name_key"]]
    }
