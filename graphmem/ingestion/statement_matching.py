"""How new statements and known facts relate: by the entities they are about, by relation, by wording. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from graphmem.ingestion.candidates import (
    EXTRACTION_SOURCE,
    PENDING_TYPES,
    STATED_START_KEY,
    AliasGroup,
    ValidatedCandidate,
)
from graphmem.ingestion.linking_models import EntityIds, RelatedFact
from graphmem.memories.entity import EntityIn
from graphmem.memories.fact import Fact
from graphmem.runtime.text import content_hash, name_key

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

_CLOSING_MARKS = ".!。 "
"""Characters at the end of a sentence that do not change what it says."""

KnownFact = Fact | RelatedFact
"""A stored fact that a statement is compared with."""


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


def has_same_subject(candidate: ValidatedCandidate, fact: KnownFact, entities: EntityIds) -> bool:
    """Return whether a statement is about the subject of a fact."""
    return entities.of_subject(candidate) == fact.subject_id


def has_same_slot(candidate: ValidatedCandidate, fact: KnownFact, entities: EntityIds) -> bool:
    """Return whether a statement has subject and predicate of a fact, with which a single-valued one competes."""
    return has_same_subject(candidate, fact, entities) and fact.predicate == candidate.memory.predicate


def has_same_wording(candidate: ValidatedCandidate, fact: KnownFact) -> bool:
    """Return whether statement and fact differ at most in case, spaces and closing marks."""
    return _without_closing_marks(candidate.memory.content) == _without_closing_marks(fact.content)


def has_stated_start(fact: Fact) -> bool:
    """Return whether the start of a fact was stated, rather than taken from the time of its message."""
    return fact.source_kind != EXTRACTION_SOURCE or STATED_START_KEY in fact.metadata


def select_related_facts(
    found: Sequence[RelatedFact], candidates: Sequence[ValidatedCandidate], entities: EntityIds
) -> tuple[list[RelatedFact], list[list[int]]]:
    """Return the facts worth comparing, in the order they were learned, and for each statement their positions.

    The best facts of each statement are taken in turn up to the limit of the window, then the plans and open loops that
    are nearest to any of them.
    """
    best_by_candidate: list[list[RelatedFact]] = []
    for index, candidate in enumerate(candidates):
        scores = [(score_relatedness(fact, index, candidate, entities), fact) for fact in found]
        ranked = sorted(
            ((score, fact) for score, fact in scores if score > 0),
            key=lambda scored: (-round(scored[0], 4), scored[1].learning_order),
        )
        best_by_candidate.append([fact for _, fact in ranked[:MAX_RELATED_PER_CANDIDATE]])
    by_id = {
        fact.memory_id: fact
        for rank in range(MAX_RELATED_PER_CANDIDATE)
        for facts in best_by_candidate
        for fact in facts[rank : rank + 1]
    }
    chosen = list(by_id.values())[:MAX_RELATED_PER_WINDOW]
    pending = [fact for fact in found if fact.type in PENDING_TYPES and fact not in chosen]
    pending.sort(key=lambda fact: (-round(max(fact.similarities), 4), fact.learning_order))
    selected = sorted(chosen + pending[:MAX_PENDING_PER_WINDOW], key=lambda fact: fact.learning_order)
    positions = {fact.memory_id: position for position, fact in enumerate(selected)}
    return selected, [
        sorted(positions[fact.memory_id] for fact in facts if fact.memory_id in positions)
        for facts in best_by_candidate
    ]


def score_relatedness(fact: RelatedFact, index: int, candidate: ValidatedCandidate, entities: EntityIds) -> float:
    """Return how related a fact is to the statement at `index`; 0 for one that is not worth comparing.

    The same statement scores 3, a competing single value 2, the same two entities 1 to 2, any other its cosine.
    """
    similarity = fact.similarities[index]
    same_subject = has_same_subject(candidate, fact, entities)
    same_slot = has_same_slot(candidate, fact, entities)
    if same_subject and fact.content_hash == content_hash(candidate.memory.content):
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


def _without_closing_marks(content: str) -> str:
    return name_key(content).rstrip(_CLOSING_MARKS)
