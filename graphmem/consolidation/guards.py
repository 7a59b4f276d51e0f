"""The guards: rules that every proposal must pass, whoever made it. Pure.

A rule returns the reason why it refuses a proposal, or None. The rules refuse to merge across subjects, people or
scopes, to change immutable or past memories, to lose or invent what sources say, and to merge contradictions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from graphmem.consolidation import clause_checks, statement_features
from graphmem.consolidation.guard_context import GuardContext
from graphmem.consolidation.naming import find_same_name_reason, name_tokens
from graphmem.domain.consolidation_models import (
    Associate,
    CreateEntity,
    LinkEntities,
    Merge,
    Proposal,
    ProposalVerdict,
    ReviewedProposal,
    UpdateEntity,
)
from graphmem.domain.entity import DEFAULT_ENTITY_TYPE, PERSON_TYPE, Entity, parse_entity_type
from graphmem.domain.fact import Fact
from graphmem.domain.memory import MemoryStatus, Scope
from graphmem.domain.stored_values import stored_values
from graphmem.domain.text import content_hash, name_key

MIN_RETAINED_WORD_SHARE = 0.4
"""Smallest share of the distinct word stems of its sources that a merge must keep."""

IDENTITY_PREDICATES = frozenset({"SAME_AS", "ALSO_KNOWN_AS", "ALIAS_OF", "NICKNAME_OF", "IS_CALLED"})
"""Predicates that state that two entities are one."""

RESERVED_ATTRIBUTES = frozenset(
    {"id", "uuid", "name", "name_key", "group_id", "group_key", "aliases", "labels", "is_user"}
)
"""Attributes that UPDATE_ENTITY cannot set."""


def review(reviewed: ReviewedProposal, proposal: Proposal, context: GuardContext) -> ReviewedProposal:
    """Return a proposal with its verdict; `proposal` is what the guards see in its place."""
    reason = refusal_reason(proposal, context)
    verdict = ProposalVerdict.REFUSED if reason else ProposalVerdict.EXECUTED
    return reviewed.model_copy(update={"verdict": verdict, "reason": reason})


def refusal_reason(proposal: Proposal, context: GuardContext) -> str | None:
    """Return the reason why a proposal may not be executed, or None."""
    return _check_action(proposal, context) or _check_secrets(proposal, context)


def _check_secrets(proposal: Proposal, context: GuardContext) -> str | None:
    classes = context.find_secrets(stored_values(proposal))
    return f"the proposal contains a secret ({', '.join(classes)})" if classes else None


def _check_action(proposal: Proposal, context: GuardContext) -> str | None:
    match proposal:
        case Merge():
            return (
                _check_usable(proposal.memory_ids, context)
                or _check_same_slot(proposal, context)
                or _check_same_validity(proposal, context)
                or _check_no_contradiction(proposal, context)
                or _check_merged_text(proposal, context)
            )
        case Associate():
            return _check_usable(proposal.memory_ids, context) or _check_association(proposal, context)
        case UpdateEntity():
            return _check_entity_update(proposal, context)
        case LinkEntities():
            return _check_entity_link(proposal, context)
        case CreateEntity():
            return _check_usable(proposal.memory_ids, context) or _check_new_entity(proposal, context)


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
    subject_names = context.names_of([facts[0].subject_id])
    features = [statement_features.extract_features(fact.content, context.names_of(fact.entity_ids)) for fact in facts]
    for one, other in combinations(features, 2):
        reason = statement_features.find_subject_mismatch(
            one, other, subject_names
        ) or statement_features.find_contradiction(one, other)
        if reason:
            return f"the memories contradict one another: {reason}"
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
        return f"the merged text adds {', '.join(new[:5])}, which no source says"
    contents = [fact.content for fact in facts]
    if flipped := clause_checks.flipped_negations(contents, proposal.content):
        return f"the merged text reverses what the sources say of {', '.join(flipped[:5])}"
    if misattributed := clause_checks.misattributed_numbers(contents, proposal.content):
        return f"the merged text attributes {', '.join(misattributed[:5])} to something else"
    if statement_features.retained_word_share(sources, result) < MIN_RETAINED_WORD_SHARE:
        return "the merged text drops most of what the sources say"
    if classes := context.find_secrets(proposal.content):
        return f"the merged text contains a secret ({', '.join(classes)})"
    other = context.current.get(f"{content_hash(proposal.content)}:{subject}")
    if other is not None and other not in proposal.memory_ids:
        return f"{other} states the same already: add it to memory_ids"
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
    subject_names = context.names_of([facts[0].subject_id])
    features = [statement_features.extract_features(fact.content, context.names_of(fact.entity_ids)) for fact in facts]
    for one, other in combinations([found for found in features if found.leading_name], 2):
        if reason := statement_features.find_subject_mismatch(one, other, subject_names):
            return f"the memories are about different people or things: {reason}"
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
            return f"{alias!r} is the name of {holder}: use LINK_ENTITIES to make the two one"
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
            return f"{memory_id} does not mention {proposal.name}"
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
        return f"{merge.name} has other relationships ({', '.join(other)})"
    facts = context.facts_by_entity.get(merge.id, ())
    if immutable := next((fact for fact in facts if fact.immutable), None):
        return f"{merge.name} occurs in {immutable.memory_id}, which is immutable"
    return _check_not_distinct(keep, merge, context) or _check_same_name(keep, merge, context)


def _check_not_distinct(keep: Entity, merge: Entity, context: GuardContext) -> str | None:
    """Return the evidence that two entities are distinct, or None."""
    if keep.type != merge.type and DEFAULT_ENTITY_TYPE not in (keep.type, merge.type):
        return f"one is a {keep.type}, the other a {merge.type}"
    ours, theirs = context.facts_by_entity.get(keep.id, ()), context.facts_by_entity.get(merge.id, ())
    for fact in theirs:
        ends = {fact.subject_id, fact.object_id}
        if keep.id in ends | set(fact.entity_ids) and not (
            fact.predicate in IDENTITY_PREDICATES and ends == {keep.id, merge.id}
        ):
            return f"{fact.memory_id} names both"
    for one in _single_valued_facts(ours, keep.id):
        for other in _single_valued_facts(theirs, merge.id):
            if one.predicate == other.predicate and one.object_id != other.object_id and one.overlaps(other):
                return f"they differ in {one.predicate}: {one.memory_id} and {other.memory_id}"
    return None


def _single_valued_facts(facts: Iterable[Fact], subject_id: str) -> list[Fact]:
    return [fact for fact in facts if fact.single_valued and fact.subject_id == subject_id]


def _check_same_name(keep: Entity, merge: Entity, context: GuardContext) -> str | None:
    """Return that no evidence says that two entities are one, or None; except for people, a curator needs none."""
    people = _may_be_person(keep) and _may_be_person(merge)
    names, others = [keep.name, *keep.aliases], [merge.name, *merge.aliases]
    stated = any(
        fact.predicate in IDENTITY_PREDICATES and {fact.subject_id, fact.object_id} == {keep.id, merge.id}
        for fact in context.facts_by_entity.get(merge.id, ())
    )
    if stated or (context.curated and not people):
        return None
    if find_same_name_reason(names, others, people=people) is None:
        return f"no name of {keep.name} matches a name of {merge.name}"
    for third in context.similarly_named.get(merge.id, ()):
        if third.id == keep.id or not people:
            continue
        if find_same_name_reason([merge.name], [third.name], people=True) and not _shares_more_of_name(
            keep, third, merge
        ):
            return f"{merge.name} could also be {third.name}"
    return None


def _shares_more_of_name(keep: Entity, third: Entity, merge: Entity) -> bool:
    """Return whether the name of `keep` shares more words with that of `merge` than the name of `third` does."""
    words = set(name_tokens(merge.name))
    return len(words & set(name_tokens(keep.name))) > len(words & set(name_tokens(third.name)))


def _is_person(entity: Entity | None) -> bool:
    return entity is not None and entity.type == PERSON_TYPE


def _may_be_person(entity: Entity) -> bool:
    return entity.type in (PERSON_TYPE, DEFAULT_ENTITY_TYPE)
