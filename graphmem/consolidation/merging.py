"""Computes the fact that a merge writes and the entity that a link or an update writes. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from graphmem.memories.decay import DECAY_RATES, apply_reinforcement
from graphmem.memories.entity import DEFAULT_ENTITY_TYPE, Entity, parse_entity_type
from graphmem.memories.fact import MAX_SEARCH_TEXT, Fact, join_sources
from graphmem.memories.memory import MemoryType
from graphmem.runtime.field_types import content_hash, deduplicate, name_key
from graphmem.tenants.trust import CONSOLIDATION

MAX_MERGED_TAGS = 50
"""Most tags of a merged memory; a memory that callers save has as many at most."""


def merge_facts(sources: Sequence[Fact], content: str, *, say_same: bool) -> Fact:
    """Return the first version of the memory that takes the place of `sources`.

    It holds from the earliest known start of sources that `say_same`, else from the latest, and up to the end that one
    of them has. Of single-valued sources that say the same as others, only their own starts count, because what they
    replaced ended there. It has the greatest importance and the provenance of all sources, and is reinforced by each
    further one; its confidence is the least of sources of which it needs all. The sources are trusted alike, and so is
    it. Subject, predicate and object are those of the single-valued source, else of the most important one; it mentions
    the objects of the others.
    """
    primary = max(sources, key=lambda fact: (fact.single_valued, fact.object_id is not None, fact.importance))
    dated = [fact for fact in sources if fact.single_valued or not (say_same and primary.single_valued)]
    starts = [fact.valid_at for fact in dated if fact.valid_at]
    ends = [fact.invalid_at for fact in sources if fact.invalid_at]
    best_confidence = max(fact.confidence for fact in sources)
    strength, confidence = apply_reinforcement(
        max(fact.strength for fact in sources), best_confidence, times=len(sources) - 1
    )
    ids = {fact.memory_id for fact in sources}
    sessions = {fact.session_id for fact in sources}
    kind = primary.type if len({fact.type for fact in sources}) == 1 else _common_type(sources)
    now = primary.updated_at
    return Fact(
        uuid=str(uuid.uuid4()),
        memory_id=str(uuid.uuid4()),
        version=1,
        group_id=primary.group_id,
        subject_id=primary.subject_id,
        object_id=primary.object_id,
        predicate=primary.predicate,
        content=content,
        content_hash=content_hash(content),
        type=kind,
        scope=primary.scope,
        domain=primary.domain,
        entity_ids=_distinct([primary.entity_ids], (fact.entity_ids for fact in sources)),
        tags=_distinct(fact.tags for fact in sources)[:MAX_MERGED_TAGS],
        confidence=confidence if say_same else min(fact.confidence for fact in sources),
        importance=max(fact.importance for fact in sources),
        strength=strength,
        decay_rate=DECAY_RATES[kind],
        access_count=sum(fact.access_count for fact in sources),
        last_accessed_at=_latest(fact.last_accessed_at for fact in sources),
        valid_at=(min(starts) if say_same else max(starts)) if starts else None,
        invalid_at=min(ends, default=None),
        claimed_invalid_at=min(ends, default=None),
        expires_at=_latest(fact.expires_at for fact in sources),
        created_at=now,
        first_created_at=now,
        updated_at=now,
        associations=tuple(key for key in _distinct(fact.associations for fact in sources) if key not in ids),
        source_kind=CONSOLIDATION,
        trusted_as=primary.trust_kind,
        session_id=sessions.pop() if len(sessions) == 1 else None,
        message_ids=join_sources(*(fact.message_ids for fact in sources)),
        episodes=join_sources(*(fact.episodes for fact in sources)),
        single_valued=primary.single_valued,
        metadata={name: value for fact in reversed(sources) for name, value in fact.metadata.items()},
        search_text=_join_search_texts(sources),
    )


def reattach_fact(fact: Fact, merge_id: str, keep_id: str) -> Fact:
    """Return a version after the facts of entity `merge_id` moved to entity `keep_id`."""
    subject = keep_id if fact.subject_id == merge_id else fact.subject_id
    target = keep_id if fact.object_id == merge_id else fact.object_id
    entity_ids = tuple(dict.fromkeys(keep_id if key == merge_id else key for key in fact.entity_ids))
    moved = replace(fact, subject_id=subject, object_id=target, entity_ids=entity_ids)
    return replace(moved, active_hash=moved.dedup_key if fact.active_hash else None)


@dataclass(frozen=True, slots=True)
class EntityDetails:
    """The fields of an entity that consolidation writes."""

    aliases: list[str]
    summary: str
    attributes: dict[str, Any]
    type: str


def update_details(entity: Entity, changes: Mapping[str, Any], aliases: Iterable[str]) -> EntityDetails:
    """Return an entity's fields after an update: `summary` and `type` are fields, all other names are attributes."""
    given = dict(changes)
    return EntityDetails(
        summary=given.pop("summary", entity.summary),
        type=parse_entity_type(given.pop("type", entity.type)),
        attributes={**entity.attributes, **given},
        aliases=_aliases_without_own_name(entity, [*entity.aliases, *aliases]),
    )


def combine_details(keep: Entity, merge: Entity) -> EntityDetails:
    """Return the fields of the kept entity after `merge` became part of it."""
    return EntityDetails(
        aliases=_aliases_without_own_name(keep, [*keep.aliases, merge.name, *merge.aliases]),
        summary="\n".join(dict.fromkeys(text for text in (keep.summary, merge.summary) if text)),
        attributes={**merge.attributes, **keep.attributes},
        type=merge.type if keep.type == DEFAULT_ENTITY_TYPE else keep.type,
    )


def _aliases_without_own_name(entity: Entity, names: Iterable[str]) -> list[str]:
    aliases = {name_key(name): name for name in reversed(list(names))}
    aliases.pop(name_key(entity.name), None)
    return list(reversed(aliases.values()))


def _join_search_texts(sources: Sequence[Fact]) -> str:
    return "\n".join(deduplicate(line for fact in sources for line in fact.search_text.splitlines()))[:MAX_SEARCH_TEXT]


def _common_type(sources: Sequence[Fact]) -> MemoryType:
    return max(sources, key=lambda fact: (fact.importance, fact.type is MemoryType.FACT)).type


def _distinct(*many: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for groups in many for items in groups for item in items))


def _latest(times: Iterable[datetime | None]) -> datetime | None:
    return max((time for time in times if time), default=None)
