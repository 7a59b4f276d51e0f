"""The effects a statement may have on a known fact: replace it, end it, repeat it, or leave part of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from graphmem.ingestion.candidates import STATED_END_KEY, Statement
from graphmem.ingestion.link import (
    EntityIds,
    has_same_object,
    has_same_slot,
    has_same_subject,
    has_stated_start,
)
from graphmem.memories.entity import PERSON_TYPE, EntityIn, EntityRef
from graphmem.memories.fact import Fact
from graphmem.memories.memory import PENDING_TYPES, MemoryIn, MemoryStatus, MemoryType
from graphmem.memories.names import is_named_in
from graphmem.runtime.field_types import name_key

# Effects of a statement on a fact


_SUPERSEDING_TYPES = frozenset(
    {MemoryType.FACT, MemoryType.PREFERENCE, MemoryType.PLAN, MemoryType.OPEN_LOOP, MemoryType.BEHAVIORAL_PATTERN}
)
"""Types of statements that may supersede a memory of another type."""


def find_veto(
    statement: Statement,
    fact: Fact,
    stated_start: datetime | None,
    entities: EntityIds,
    entity_refs: Mapping[str, EntityRef],
    *,
    contests: bool = False,
) -> str | None:
    """Return why a statement may not supersede or end a fact, or None; `stated_start` is its start, if stated.

    A statement that only `contests` the fact may come from a third party, such as a tool.
    """
    memory = statement.memory
    if not is_about_same_thing(statement, fact, entities, entity_refs):
        return "it is about another subject"
    if fact.immutable:
        return "it is immutable"
    if not statement.is_from_user and not (contests and statement.is_of_third_party):
        return "the assistant alone said so"
    if memory.type not in _SUPERSEDING_TYPES and memory.type is not fact.type:
        return f"a {memory.type.value} does not end a {fact.type.value}"
    if fact.status is not MemoryStatus.ACTIVE:
        return "it had ended already"
    if stated_start and _had_begun(fact, stated_start, statement.sent_at):
        return "it began later"
    if memory.invalid_at and fact.valid_at and memory.invalid_at <= fact.valid_at:
        return "the new statement ended before it"
    return None


def is_about_same_thing(
    statement: Statement, fact: Fact, entities: EntityIds, entity_refs: Mapping[str, EntityRef]
) -> bool:
    """Return whether a statement's topic allows it to change a fact.

    It does if both have the same subject; if the fact is a plan or an open loop of the user, or of someone the
    statement names, which anything may settle; if both name a relation to the user, one of them from the other end; or
    if one names the thing that the other is about. A statement about one person changes no lasting fact about another.
    """
    if has_same_subject(statement, fact, entities):
        return True
    if fact.type in PENDING_TYPES and fact.subject_id in {entities.user, *entities.named_in(statement)}:
        return True
    return _is_same_relation(statement, fact, entities) or _names_the_thing(statement, fact, entities, entity_refs)


def _is_same_relation(statement: Statement, fact: Fact, entities: EntityIds) -> bool:
    """Return whether both relate somebody to the user and differ in their subject or in which end is the subject."""
    user, subject, other = entities.user, statement.memory.subject, statement.memory.object
    if user is None or other is None or fact.object_id is None:
        return False
    statement_ends_at_user = subject is not None and entities.of_entity(other) == user
    if subject is None:
        return fact.object_id == user
    return statement_ends_at_user and (
        fact.subject_id == user or (fact.object_id == user and fact.predicate == statement.memory.predicate)
    )


def _names_the_thing(
    statement: Statement, fact: Fact, entities: EntityIds, entity_refs: Mapping[str, EntityRef]
) -> bool:
    """Return whether the statement or the fact names the other's subject, and that is a thing rather than a person."""
    user = entity_refs.get(entities.user or "")
    user_name = user.name if user else ""
    known = entity_refs.get(fact.subject_id)
    if known and known.type != PERSON_TYPE:
        content = statement.memory.content
        if known.id in entities.named_in(statement) or is_named_in(known.name, content, but=user_name):
            return True
    subject = statement.memory.subject
    if subject is None or subject.type == PERSON_TYPE:
        return False
    return entities.of_entity(subject) in fact.entity_ids or is_named_in(subject.name, fact.content, but=user_name)


def _had_begun(fact: Fact, stated_start: datetime, sent_at: datetime) -> bool:
    """Return whether a state began after a stated start and before the message.

    A state still ahead when the message was written can be brought forward or given up.
    """
    if fact.valid_at is None or fact.type in PENDING_TYPES or not has_stated_start(fact):
        return False
    return stated_start < fact.valid_at <= sent_at


def may_repeat(statement: Statement, fact: Fact, entities: EntityIds) -> bool:
    """Return whether a statement may repeat a fact: same subject, or the same relation stated from its other end."""
    if has_same_subject(statement, fact, entities):
        return True
    return entities.of_subject(statement) in fact.entity_ids and fact.subject_id in entities.named_in(statement)


def adds_an_end(statement: Statement, fact: Fact) -> bool:
    """Return whether a statement that repeats a fact adds an end that the fact lacks."""
    return (
        STATED_END_KEY in statement.memory.metadata
        and statement.memory.invalid_at is not None  # callers may use the same metadata key
        and fact.invalid_at is None
        and (not statement.is_dated or statement.memory.valid_at == fact.valid_at)
    )


def is_same_state(statement: Statement, fact: Fact, entities: EntityIds) -> bool:
    """Return whether a statement and a fact have the same subject, predicate and object."""
    return (
        statement.memory.object is not None
        and has_same_object(statement, fact, entities)
        and has_same_slot(statement, fact, entities)
    )


def end_of_superseded(statement: Statement, fact: Fact, stated_end: datetime | None) -> datetime | None:
    """Return when a superseded fact ends, in UTC, or None to end it at the start of its successor.

    A plan ends with the message that settles it, even if the outcome lies ahead. A known end is never postponed.
    """
    end = stated_end
    if fact.type in PENDING_TYPES:
        end = min(stated_end or statement.effective_start, statement.sent_at)
    if fact.invalid_at and fact.invalid_at < (end or statement.effective_start):
        end = fact.invalid_at
    return end.astimezone(UTC) if end else None


def make_remainder(
    content: str, fact: Fact, statement: Statement, subject: EntityIn | None, named: Sequence[EntityRef]
) -> MemoryIn:
    """Return the part of a superseded fact that still holds, as a memory with the fact's start.

    `named` are the fact's entities; those missing from the content are left out.
    """
    kept = {ref.id: EntityIn(name=ref.name) for ref in named if name_key(ref.name) in name_key(content)}
    return MemoryIn(
        content=content,
        type=fact.type,
        subject=subject,
        predicate=fact.predicate,
        object=kept.get(fact.object_id or ""),
        entities=[entity for key, entity in kept.items() if key not in (fact.subject_id, fact.object_id)],
        valid_at=fact.valid_at,
        invalid_at=fact.invalid_at,
        confidence=fact.confidence,
        importance=fact.importance,
        tags=list(fact.tags),
        scope=fact.scope,
        domain=fact.domain,
        source=statement.memory.source,
        expires_at=fact.expires_at,
        metadata=fact.metadata,
    )
