"""The memories and entities that proposals name, and the versions that a proposal was made from. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from graphmem.consolidation.models import (
    Associate,
    CreateEntity,
    LinkEntities,
    Merge,
    Proposal,
    UpdateEntity,
)
from graphmem.memories.entity import Entity
from graphmem.memories.fact import Fact


def memory_ids_of(proposals: Iterable[Proposal]) -> list[str]:
    """Return the distinct ids of the memories that proposals name."""
    found: dict[str, None] = {}
    for proposal in proposals:
        if isinstance(proposal, Merge | Associate | CreateEntity):
            found |= dict.fromkeys(proposal.memory_ids)
    return list(found)


def entity_ids_of(proposals: Iterable[Proposal]) -> list[str]:
    """Return the distinct ids of the entities that proposals name."""
    found: dict[str, None] = {}
    for proposal in proposals:
        if isinstance(proposal, UpdateEntity):
            found[proposal.entity_id] = None
        elif isinstance(proposal, LinkEntities):
            found |= {proposal.keep_id: None, proposal.merge_id: None}
    return list(found)


def observed_versions(proposal: Proposal, facts: Mapping[str, Fact], entities: Mapping[str, Entity]) -> dict[str, str]:
    """Return the version of each memory and the time of change of each entity that a proposal names.

    Ids missing from `facts` and `entities` are left out.
    """
    versions = {key: str(facts[key].version) for key in memory_ids_of([proposal]) if key in facts}
    return versions | {
        key: entities[key].updated_at.isoformat() for key in entity_ids_of([proposal]) if key in entities
    }
