"""What a new statement may do to a known fact: replace it, end it, repeat it, or leave a part of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from graphmem.ingestion.candidates import (
    PENDING_TYPES,
    SAID_BY_KEY,
    STATED_END_KEY,
    STATED_START_KEY,
    AliasGroup,
    ValidatedCandidate,
)
from graphmem.ingestion.name_resolution import EntityIds
from graphmem.memories.entity import PERSON_TYPE, EntityIn, EntityRef
from graphmem.memories.fact import Fact
from graphmem.memories.memory import MemoryIn, MemoryStatus, MemoryType
from graphmem.memories.names import is_named_in
from graphmem.runtime.field_types import content_hash, name_key

MAX_RELATED_PER_CANDIDATE = 8
"""Most related facts one statement is compared with."""

MAX_RELATED_PER_WINDOW = 40
"""Most related facts one window is compared with."""

MIN_CONTENT_COSINE = 0.40
"""Cosine from which on two statements may be about the same thing."""

MIN_CONTENT_COSINE_IF_CLOSE = 0.25
"""Cosine from which on a plan, or a fact about an entity that the statement names, may be about the same thing."""

MAX_PENDING_PER_WINDOW = 12
"""Most further plans and open loops that a window is compared with: any statement may settle one."""

"""Characters at the end of a sentence that do not change what it says."""


class RelatedFact(NamedTuple):
    """A known fact and its cosines with each of the statements."""

    fact: Fact
    similarities: Sequence[float]

    @property
    def learning_order(self) -> tuple[datetime, str]:
        """The sort key for the order in which facts were learned, the same on every machine."""
        return self.fact.first_created_at, self.fact.content


def collect_named_entities(
    candidates: Sequence[ValidatedCandidate], aliases: Sequence[AliasGroup]
) -> dict[str, EntityIn]:
    """Return every entity that statements and alias groups name, by name key; one with a type where any has it."""
    named: dict[str, EntityIn] = {}
    for candidate in candidates:
        for entity in candidate.named_entities:
            key = name_key(entity.name)
            if key not in named or named[key].type is None:
                named[key] = entity
    for group in aliases:
        for name in () if group.is_of_user else (group.name, *group.others):
            named.setdefault(name_key(name), EntityIn(name=name))
    return named


def has_same_subject(candidate: ValidatedCandidate, fact: Fact, entities: EntityIds) -> bool:
    """Return whether a statement is about the subject of a fact."""
    return entities.of_subject(candidate) == fact.subject_id


def has_same_slot(candidate: ValidatedCandidate, fact: Fact, entities: EntityIds) -> bool:
    """Return whether a statement has subject and predicate of a fact, with which a single-valued one competes."""
    return has_same_subject(candidate, fact, entities) and fact.predicate == candidate.memory.predicate


def has_same_wording(candidate: ValidatedCandidate, fact: Fact) -> bool:
    """Return whether a statement has the text of a fact, as it is written."""
    return content_hash(candidate.memory.content) == fact.content_hash


def repeats(candidate: ValidatedCandidate, fact: Fact, entities: EntityIds) -> bool:
    """Return whether a statement has the text, the subject, the predicate and the object of a fact."""
    other = candidate.memory.object
    return (
        has_same_wording(candidate, fact)
        and has_same_slot(candidate, fact, entities)
        and fact.object_id == (entities.of_entity(other) if other else None)
    )


def has_stated_start(fact: Fact) -> bool:
    """Return whether the start of a fact was stated, rather than taken from the time of its message."""
    return SAID_BY_KEY not in fact.metadata or STATED_START_KEY in fact.metadata


def select_related_facts(
    found: Sequence[RelatedFact], candidates: Sequence[ValidatedCandidate], entities: EntityIds
) -> tuple[list[Fact], list[list[int]]]:
    """Return the facts worth comparing, in the order they were learned, and for each statement their positions.

    The best facts of each statement are taken in turn up to the limit of the window, then the plans and open loops that
    are nearest to any of them.
    """
    best_by_candidate: list[list[RelatedFact]] = []
    for index, candidate in enumerate(candidates):
        scores = [(score_relatedness(known, index, candidate, entities), known) for known in found]
        ranked = sorted(
            ((score, known) for score, known in scores if score > 0),
            key=lambda scored: (-round(scored[0], 4), scored[1].learning_order),
        )
        best_by_candidate.append([known for _, known in ranked[:MAX_RELATED_PER_CANDIDATE]])
    by_id = {
        known.fact.memory_id: known
        for rank in range(MAX_RELATED_PER_CANDIDATE)
        for best in best_by_candidate
        for known in best[rank : rank + 1]
    }
    chosen = list(by_id.values())[:MAX_RELATED_PER_WINDOW]
    pending = [known for known in found if known.fact.type in PENDING_TYPES and known not in chosen]
    pending.sort(key=lambda known: (-round(max(known.similarities), 4), known.learning_order))
    selected = sorted(chosen + pending[:MAX_PENDING_PER_WINDOW], key=lambda known: known.learning_order)
    positions = {known.fact.memory_id: position for position, known in enumerate(selected)}
    return [known.fact for known in selected], [
        sorted(positions[known.fact.memory_id] for known in best if known.fact.memory_id in positions)
        for best in best_by_candidate
    ]


def score_relatedness(known: RelatedFact, index: int, candidate: ValidatedCandidate, entities: EntityIds) -> float:
    """Return how related a fact is to the statement at `index`; 0 for one that is not worth comparing.

    The same statement scores 3, a competing single value 2, the same two entities 1 to 2, any other its cosine.
    """
    fact, similarity = known.fact, known.similarities[index]
    same_subject = has_same_subject(candidate, fact, entities)
    same_slot = has_same_slot(candidate, fact, entities)
    if same_subject and has_same_wording(candidate, fact):
        return 3.0
    if same_slot and candidate.memory.single_valued:
        return 2.0
    object_id = entities.of_entity(candidate.memory.object)
    if same_subject and object_id and fact.object_id == object_id:
        return 1.0 + max(similarity, 0.0)
    names_same = bool(entities.named_in(candidate) & set(fact.entity_ids))
    is_close = same_slot or names_same or fact.type in PENDING_TYPES
    threshold = MIN_CONTENT_COSINE_IF_CLOSE if is_close else MIN_CONTENT_COSINE
    return similarity if similarity >= threshold else 0.0


_SUPERSEDING_TYPES = frozenset(
    {MemoryType.FACT, MemoryType.PREFERENCE, MemoryType.PLAN, MemoryType.OPEN_LOOP, MemoryType.BEHAVIORAL_PATTERN}
)
"""Types of statements that may supersede a memory of another type."""


def find_veto(
    candidate: ValidatedCandidate,
    fact: Fact,
    stated_start: datetime | None,
    entities: EntityIds,
    entity_refs: Mapping[str, EntityRef],
    *,
    contests: bool = False,
) -> str | None:
    """Return why a candidate with the stated start, if any, may not supersede or end a fact, or None.

    One that only `contests` the fact may be of a third party, such as a tool.
    """
    memory = candidate.memory
    if not is_about_same_thing(candidate, fact, entities, entity_refs):
        return "it is about another subject"
    if fact.immutable:
        return "it is immutable"
    if not candidate.is_from_user and not (contests and candidate.is_of_third_party):
        return "the assistant alone said so"
    if memory.type not in _SUPERSEDING_TYPES and memory.type is not fact.type:
        return f"a {memory.type.value} does not end a {fact.type.value}"
    if fact.status is not MemoryStatus.ACTIVE:
        return "it had ended already"
    if stated_start and _had_begun(fact, stated_start, candidate.sent_at):
        return "it began later"
    if memory.invalid_at and fact.valid_at and memory.invalid_at <= fact.valid_at:
        return "the new statement ended before it"
    return None


def is_about_same_thing(
    candidate: ValidatedCandidate, fact: Fact, entities: EntityIds, entity_refs: Mapping[str, EntityRef]
) -> bool:
    """Return whether a candidate may change a fact by what both are about.

    They have one subject; or the fact is a plan or an open loop of the user, or of whom the candidate names, which
    anything may settle; or both say who or what stands in a relation to the user, one of them from the other end; or
    one names the thing that the other is about. A statement about one person changes no lasting fact about another.
    """
    if has_same_subject(candidate, fact, entities):
        return True
    if fact.type in PENDING_TYPES and fact.subject_id in {entities.user, *entities.named_in(candidate)}:
        return True
    return _is_same_relation(candidate, fact, entities) or _names_the_thing(candidate, fact, entities, entity_refs)


def _is_same_relation(candidate: ValidatedCandidate, fact: Fact, entities: EntityIds) -> bool:
    """Return whether both relate somebody to the user, and differ in which end they name as the subject, or in it."""
    user, subject, other = entities.user, candidate.memory.subject, candidate.memory.object
    if user is None or other is None or fact.object_id is None:
        return False
    candidate_ends_at_user = subject is not None and entities.of_entity(other) == user
    if subject is None:
        return fact.object_id == user
    return candidate_ends_at_user and (
        fact.subject_id == user or (fact.object_id == user and fact.predicate == candidate.memory.predicate)
    )


def _names_the_thing(
    candidate: ValidatedCandidate, fact: Fact, entities: EntityIds, entity_refs: Mapping[str, EntityRef]
) -> bool:
    """Return whether one of both names the subject of the other, which is a thing and no person."""
    user = entity_refs.get(entities.user or "")
    user_name = user.name if user else ""
    known = entity_refs.get(fact.subject_id)
    if known and known.type != PERSON_TYPE:
        content = candidate.memory.content
        if known.id in entities.named_in(candidate) or is_named_in(known.name, content, but=user_name):
            return True
    subject = candidate.memory.subject
    if subject is None or subject.type == PERSON_TYPE:
        return False
    return entities.of_entity(subject) in fact.entity_ids or is_named_in(subject.name, fact.content, but=user_name)


def _had_begun(fact: Fact, stated_start: datetime, sent_at: datetime) -> bool:
    """Return whether a state began after a stated start and before the message.

    What was still to come when the message was written can be put forward or given up.
    """
    if fact.valid_at is None or fact.type in PENDING_TYPES or not has_stated_start(fact):
        return False
    return stated_start < fact.valid_at <= sent_at


def may_repeat(candidate: ValidatedCandidate, fact: Fact, entities: EntityIds) -> bool:
    """Return whether a candidate may say the same as a fact: about its subject, or a relation stated from its end."""
    if has_same_subject(candidate, fact, entities):
        return True
    return entities.of_subject(candidate) in fact.entity_ids and fact.subject_id in entities.named_in(candidate)


def adds_an_end(candidate: ValidatedCandidate, fact: Fact) -> bool:
    """Return whether a candidate that says the same as a fact adds the end that the fact does not have yet."""
    return (
        STATED_END_KEY in candidate.memory.metadata
        and fact.invalid_at is None
        and (not candidate.is_dated or candidate.memory.valid_at == fact.valid_at)
    )


def is_same_state(candidate: ValidatedCandidate, fact: Fact, entities: EntityIds) -> bool:
    """Return whether a candidate and a fact have one subject, predicate and object."""
    other = candidate.memory.object
    return (
        other is not None and fact.object_id == entities.of_entity(other) and has_same_slot(candidate, fact, entities)
    )


def end_of_superseded(candidate: ValidatedCandidate, fact: Fact, stated_end: datetime | None) -> datetime | None:
    """Return when a superseded fact ends, in UTC, or None for the start of what supersedes it.

    The message itself settles a plan, even if what settles it lies ahead. No end that is known already is postponed.
    """
    end = stated_end
    if fact.type in PENDING_TYPES:
        end = min(stated_end or candidate.effective_start, candidate.sent_at)
    if fact.invalid_at and fact.invalid_at < (end or candidate.effective_start):
        end = fact.invalid_at
    return end.astimezone(UTC) if end else None


def make_remainder(
    content: str, fact: Fact, candidate: ValidatedCandidate, subject: EntityIn | None, named: Sequence[EntityRef]
) -> MemoryIn:
    """Return the part of a superseded fact that still holds, as a memory that has held since the fact did.

    `named` are the entities of the fact; those that the content does not name are left out.
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
        source=candidate.memory.source,
        expires_at=fact.expires_at,
        metadata=fact.metadata,
    )
