"""What no proposal may do, whoever makes it: each rule answers why it refuses, or None. Pure.

Nothing is merged across subjects, people or scopes, nothing immutable or no longer current is touched, a merge says all
that its sources said and nothing else, and statements that contradict one another stay apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import combinations
from typing import Any

from graphmem.consolidation import clause_checks, statement_features
from graphmem.consolidation.naming import find_same_name_reason, name_tokens
from graphmem.domain.consolidation_models import Associate, CreateEntity, LinkEntities, Merge, Proposal, UpdateEntity
from graphmem.domain.entity import DEFAULT_ENTITY_TYPE, PERSON_TYPE, Entity, parse_entity_type
from graphmem.domain.fact import Fact
from graphmem.domain.memory import MemoryStatus, Scope
from graphmem.domain.text import content_hash, name_key

MIN_RETAINED_WORD_SHARE = 0.4
"""A merge keeps at least this share of the distinct words of its sources, by stem."""

IDENTITY_PREDICATES = frozenset({"IDENTITY_PREDICATES", "ALSO_KNOWN_AS", "ALIAS_OF", "NICKNAME_OF", "IS_CALLED"})
"""Predicates that state that two entities are one."""

RESERVED_ATTRIBUTES = frozenset(
    {"id", "uuid", "name", "name_key", "group_id", "group_key", "aliases", "labels", "is_user"}
)
"""What UPDATE_ENTITY cannot set."""


@dataclass(frozen=True, slots=True)
class GuardContext:
    """What proposals are reviewed by: the latest believed facts and the entities of one user.

    `entity_ids_by_name` maps name and alias keys to entity ids; `facts_by_entity` the facts at or mentioning an entity that is to be
    linked, and `other_relationships` what else lies there; `similarly_named` the other entities that share a word of their names; `current` the
    statements that are current by identity (content and subject).
    """

    now: datetime
    facts: Mapping[str, Fact]
    entities: Mapping[str, Entity]
    entity_ids_by_name: Mapping[str, str] = field(default_factory=dict)
    facts_by_entity: Mapping[str, Sequence[Fact]] = field(default_factory=dict)
    similarly_named: Mapping[str, Sequence[Entity]] = field(default_factory=dict)
    other_relationships: Mapping[str, Sequence[str]] = field(default_factory=dict)
    current: Mapping[str, str] = field(default_factory=dict)
    curated: bool = False
    find_secrets: Callable[[Any], Sequence[str]] = lambda _: ()

    def names_of(self, ids: Iterable[str]) -> list[str]:
        """Return the names and aliases of some entities."""
        found = (self.entities[key] for key in dict.fromkeys(ids) if key in self.entities)
        return [name for entity in found for name in (entity.name, *entity.aliases)]


def refusal_reason(proposal: Proposal, context: GuardContext) -> str | None:
    """Return why a proposal may not be executed, or None."""
    match proposal:
        case Merge():
            return _first_reason(
                partial(_check_usable, proposal.memory_ids, context),
                partial(_check_same_slot, proposal, context),
                partial(_check_same_validity, proposal, context),
                partial(_check_no_contradiction, proposal, context),
                partial(_check_merged_text, proposal, context),
            )
        case Associate():
            return _first_reason(
                partial(_check_usable, proposal.memory_ids, context), partial(_check_association, proposal, context)
            )
        case UpdateEntity():
            return _check_entity_update(proposal, context)
        case LinkEntities():
            return _check_entity_link(proposal, context)
        case CreateEntity():
            return _first_reason(
                partial(_check_usable, proposal.memory_ids, context), partial(_check_new_entity, proposal, context)
            )


def _first_reason(*rules: Callable[[], str | None]) -> str | None:
    return next((reason for rule in rules if (reason := rule())), None)


def _check_usable(memory_ids: Sequence[str], context: GuardContext) -> str | None:
    for memory_id in memory_ids:
        fact = context.facts.get(memory_id)
        if fact is None:
            return f"there is no current memory {memory_id} of this user"
        if fact.immutable:
            return f"{memory_id} is immutable"
        if fact.scope is Scope.GLOBAL:
            return f"{memory_id} is global"
        if fact.expired_at is not None or fact.status is not MemoryStatus.ACTIVE or not fact.is_valid_at(context.now):
            return f"{memory_id} is not current"
    return None


def _check_same_slot(proposal: Merge, context: GuardContext) -> str | None:
    facts = [context.facts[key] for key in proposal.memory_ids]
    if len({fact.subject_id for fact in facts}) > 1:
        return "the memories are about different subjects"
    if len({(fact.scope, fact.domain) for fact in facts}) > 1:
        return "the memories are of different scopes"
    slots = {fact.predicate for fact in facts if fact.single_valued}
    if len(slots) > 1:
        return f"{' and '.join(sorted(slots))} change independently of one another"
    return None


def _check_same_validity(proposal: Merge, context: GuardContext) -> str | None:
    facts = [context.facts[key] for key in proposal.memory_ids]
    if len({fact.valid_at for fact in facts if fact.valid_at}) > 1:
        return "contradictory validity: the memories begin at different times"
    if len({fact.invalid_at for fact in facts}) > 1:
        return "contradictory validity: the memories end at different times"
    if len({fact.expires_at is None for fact in facts}) > 1:
        return "contradictory validity: some of the memories expire, others do not"
    return None


def _check_no_contradiction(proposal: Merge, context: GuardContext) -> str | None:
    facts = [context.facts[key] for key in proposal.memory_ids]
    own = context.names_of([facts[0].subject_id])
    features = [statement_features.extract_features(fact.content, context.names_of(fact.entity_ids)) for fact in facts]
    for one, other in combinations(features, 2):
        if reason := statement_features.find_subject_mismatch(one, other, own) or statement_features.find_contradiction(
            one, other
        ):
            return f"the memories do not go together: {reason}"
    return None


def _check_merged_text(proposal: Merge, context: GuardContext) -> str | None:
    facts = [context.facts[key] for key in proposal.memory_ids]
    subject = facts[0].subject_id
    known = context.names_of(key for fact in facts for key in fact.entity_ids)
    sources = [statement_features.extract_features(fact.content, context.names_of(fact.entity_ids)) for fact in facts]
    result = statement_features.extract_features(proposal.content, known)
    if lost := statement_features.missing_details(sources, result):
        return f"the merged text does not cover {', '.join(lost[:5])}"
    if new := statement_features.invented_details(sources, result, context.names_of([subject])):
        return f"the merged text says what no source says: {', '.join(new[:5])}"
    said = [fact.content for fact in facts]
    if flipped := clause_checks.flipped_negations(said, proposal.content):
        return f"the merged text turns round what is said of {', '.join(flipped[:5])}"
    if misattributed := clause_checks.misattributed_numbers(said, proposal.content):
        return f"the merged text tells {', '.join(misattributed[:5])} of something else"
    if statement_features.retained_word_share(sources, result) < MIN_RETAINED_WORD_SHARE:
        return "the merged text drops most of what the sources say"
    if classes := context.find_secrets(proposal.content):
        return f"the merged text holds a secret ({', '.join(classes)})"
    other = context.current.get(f"{content_hash(proposal.content)}:{subject}")
    if other is not None and other not in proposal.memory_ids:
        return f"{other} says so already: name it among memory_ids"
    return None


def _check_association(proposal: Associate, context: GuardContext) -> str | None:
    facts = [context.facts[key] for key in proposal.memory_ids]
    if len(facts) < 2:
        return "the memories were merged into one"
    if len({(fact.scope, fact.domain) for fact in facts}) > 1:
        return "the memories are of different scopes"
    people = {fact.subject_id for fact in facts if _is_person(context.entities.get(fact.subject_id))}
    if len(people) > 1:
        return "the memories are about different people"
    own = context.names_of([facts[0].subject_id])
    features = [statement_features.extract_features(fact.content, context.names_of(fact.entity_ids)) for fact in facts]
    for one, other in combinations([each for each in features if each.leading_name], 2):
        if reason := statement_features.find_subject_mismatch(one, other, own):
            return f"the memories do not go together: {reason}"
    return None


def _check_entity_update(proposal: UpdateEntity, context: GuardContext) -> str | None:
    entity = context.entities.get(proposal.entity_id)
    if entity is None:
        return f"there is no entity {proposal.entity_id} of this user"
    if reserved := sorted(RESERVED_ATTRIBUTES & proposal.set.keys()):
        return f"{', '.join(reserved)} cannot be set"
    if "type" in proposal.set and (reason := _check_type_change(entity, proposal.set["type"])):
        return reason
    if "summary" in proposal.set and not isinstance(proposal.set["summary"], str):
        return "summary must be a text"
    for alias in proposal.add_aliases:
        holder = context.entity_ids_by_name.get(name_key(alias), entity.id)
        if holder != entity.id:
            return f"{alias!r} is the name of {holder}: LINK_ENTITIES makes the two one"
    if classes := context.find_secrets([proposal.set, proposal.add_aliases]):
        return f"it holds a secret ({', '.join(classes)})"
    return None


def _check_type_change(entity: Entity, wanted: object) -> str | None:
    try:
        kind = parse_entity_type(wanted)
    except ValueError:
        return "type must be a type name such as Person, Place or Organization"
    if entity.type not in (DEFAULT_ENTITY_TYPE, kind) and (entity.is_user or PERSON_TYPE in (entity.type, kind)):
        return f"{entity.name} is a {entity.type}"
    return None


def _check_new_entity(proposal: CreateEntity, context: GuardContext) -> str | None:
    if (holder := context.entity_ids_by_name.get(name_key(proposal.name))) is not None:
        return f"there is an entity of that name: {holder}"
    for memory_id in proposal.memory_ids:
        if not statement_features.mentions_name(context.facts[memory_id].content, proposal.name):
            return f"{memory_id} does not speak of {proposal.name}"
    if classes := context.find_secrets(proposal.name):
        return f"the name is a secret ({', '.join(classes)})"
    return None


def _check_entity_link(proposal: LinkEntities, context: GuardContext) -> str | None:
    keep, merge = context.entities.get(proposal.keep_id), context.entities.get(proposal.merge_id)
    if keep is None or merge is None:
        return f"there is no entity {proposal.keep_id if keep is None else proposal.merge_id} of this user"
    if merge.is_user:
        return "the user's own entity can only be kept"
    if other := context.other_relationships.get(merge.id):
        return f"{merge.name} is tied to other things ({', '.join(other)})"
    facts = context.facts_by_entity.get(merge.id, ())
    if immutable := next((fact for fact in facts if fact.immutable), None):
        return f"{merge.name} stands in {immutable.memory_id}, which is immutable"
    return _check_not_distinct(keep, merge, context) or _check_same_name(keep, merge, context)


def _check_not_distinct(keep: Entity, merge: Entity, context: GuardContext) -> str | None:
    """Return what speaks against two entities being one."""
    if keep.type != merge.type and DEFAULT_ENTITY_TYPE not in (keep.type, merge.type):
        return f"one is a {keep.type}, the other a {merge.type}"
    ours, theirs = context.facts_by_entity.get(keep.id, ()), context.facts_by_entity.get(merge.id, ())
    for fact in theirs:
        ends = {fact.subject_id, fact.object_id}
        if keep.id in ends | set(fact.entity_ids) and not (
            fact.predicate in IDENTITY_PREDICATES and ends == {keep.id, merge.id}
        ):
            return f"{fact.memory_id} speaks of both"
    for one in _single_valued_facts(ours, keep.id, context.now):
        for other in _single_valued_facts(theirs, merge.id, context.now):
            if one.predicate == other.predicate and one.object_id != other.object_id:
                return f"they differ in {one.predicate}: {one.memory_id} and {other.memory_id}"
    return None


def _single_valued_facts(facts: Iterable[Fact], subject_id: str, now: datetime) -> list[Fact]:
    return [fact for fact in facts if fact.single_valued and fact.subject_id == subject_id and fact.is_valid_at(now)]


def _check_same_name(keep: Entity, merge: Entity, context: GuardContext) -> str | None:
    """Return that nothing says that two entities are one; a curator may say so of what is no person."""
    people = _may_be_person(keep) and _may_be_person(merge)
    names, others = [keep.name, *keep.aliases], [merge.name, *merge.aliases]
    stated = any(
        fact.predicate in IDENTITY_PREDICATES and {fact.subject_id, fact.object_id} == {keep.id, merge.id}
        for fact in context.facts_by_entity.get(merge.id, ())
    )
    if stated or (context.curated and not people):
        return None
    if find_same_name_reason(names, others, people=people) is None:
        return f"nothing in their names says that {keep.name} and {merge.name} are one"
    for third in context.similarly_named.get(merge.id, ()):
        if third.id == keep.id or not people:
            continue
        if find_same_name_reason([merge.name], [third.name], people=True) and not _shares_more_of_name(
            keep, third, merge
        ):
            return f"{merge.name} may as well be {third.name}"
    return None


def _shares_more_of_name(keep: Entity, third: Entity, merge: Entity) -> bool:
    """Return whether `keep` shares more of the name of `merge` than `third` does."""
    wanted = set(name_tokens(merge.name))
    return len(wanted & set(name_tokens(keep.name))) > len(wanted & set(name_tokens(third.name)))


def _is_person(entity: Entity | None) -> bool:
    return entity is not None and entity.type == PERSON_TYPE


def _may_be_person(entity: Entity) -> bool:
    return entity.type in (PERSON_TYPE, DEFAULT_ENTITY_TYPE)


@dataclass(frozen=True, slots=True)
class LossEstimate:
    """What a run would take from a user: memories ended of those current; text before and after, in characters."""

    current: int
    ended: int
    text_before: int
    text_after: int


def check_loss(
    estimate: LossEstimate, *, max_ended_share: float, min_text_share: float, free_ended_count: int
) -> str | None:
    """Return why a run must be given up, or None: it would end too many memories or shrink their text too much.

    Up to `free_ended_count` memories may end in any run, so that the few memories of a new user can be merged.
    """
    if estimate.ended <= free_ended_count:
        return None
    if estimate.ended > max_ended_share * estimate.current:
        return f"it would end {estimate.ended} of {estimate.current} memories, more than {max_ended_share:.0%}"
    if estimate.text_after < min_text_share * estimate.text_before:
        return f"it would shrink {estimate.text_before} characters to {estimate.text_after}, below {min_text_share:.0%}"
    return None
