"""The guards: rules for the proposals of models and people, and the limit on a run's losses. Pure.

A rule returns the reason why it refuses a proposal, or None. The rules refuse to merge across subjects, people or
scopes, to change immutable or past memories, to lose or invent content of sources, and to merge contradictions. A merge
must be backed by verification quotes showing that it says what its sources say, or else contain each source literally.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations
from typing import Any

from graphmem.consolidation.models import (
    Associate,
    Close,
    CreateEntity,
    LinkEntities,
    Merge,
    Proposal,
    ProposalVerdict,
    ReviewedProposal,
    StatementQuote,
    UpdateEntity,
    Verification,
)
from graphmem.consolidation.text_checks import (
    find_changed_numbers,
    find_number_conflict,
    find_quote,
    find_source_not_literal,
    find_subject_mismatch,
    find_unverified,
)
from graphmem.memories.entity import (
    DEFAULT_ENTITY_TYPE,
    PERSON_TYPE,
    Entity,
    parse_entity_type,
)
from graphmem.memories.fact import Fact
from graphmem.memories.memory import DEFAULT_PREDICATES, MemoryStatus, MemoryType, Scope
from graphmem.memories.names import NameReason, compare_name_lists, mentions_name, name_tokens
from graphmem.runtime.field_types import content_hash, name_key, stored_values
from graphmem.tenants.trust import DEFAULT_ORDER, Effect, SourceKind, TrustOrder
from graphmem.text.word_lists import WRITTEN_LANGUAGES, load_words

USER_WORDS = load_words(*WRITTEN_LANGUAGES).user_words
"""Words for a nameless user in statements, in all languages."""

MAX_WORDS_OF_USER_NAME = 2
"""Maximum number of words of a name that means the user, such as "the user" and "der Nutzer"."""

IDENTITY_PREDICATES = frozenset({
    "ALIAS_OF", "ALSO_KNOWN_AS", "HAS_ALIAS", "HAS_NICKNAME", "IDENTICAL_TO", "IS_ALIAS_OF", "IS_SAME_AS",
    "NICKNAME_OF", "SAME_AS", "SAME_PERSON_AS", "SHORT_FOR", "TRANSLITERATION_OF",
})  # fmt: skip
"""Predicates whose only meaning is that two entities are the same."""

PLANNED = (MemoryType.PLAN, MemoryType.OPEN_LOOP)
"""The types of memories that can be carried out."""

SecretFinder = Callable[[Any], Sequence[str]]
"""Returns the classes of secrets in a value that must not be stored."""


@dataclass(frozen=True, slots=True)
class GuardContext:
    """The latest believed facts and the entities of one user that proposals name, with their context.

    - `entity_ids_by_name`: entity ids by name key, for all names and aliases that a proposal wants to add
    - `facts_by_entity`: for each entity to link, the believed facts at its edges and those that mention it
    - `other_relationships`: for each entity to link, the types of its other relationships
    - `similarly_named`: for each entity to link, the other entities whose names share a word with its name
    - `contradicted`: memory ids of statements that the run reports as contradictory
    - `curated`: whether a person wrote the proposals
    - `order`: how much the tenant trusts each source
    """

    now: datetime
    facts: Mapping[str, Fact]
    entities: Mapping[str, Entity]
    entity_ids_by_name: Mapping[str, str] = field(default_factory=dict)
    facts_by_entity: Mapping[str, Sequence[Fact]] = field(default_factory=dict)
    similarly_named: Mapping[str, Sequence[Entity]] = field(default_factory=dict)
    other_relationships: Mapping[str, Sequence[str]] = field(default_factory=dict)
    contradicted: frozenset[str] = frozenset()
    curated: bool = False
    find_secrets: SecretFinder = lambda _: ()
    order: TrustOrder = DEFAULT_ORDER

    def names_of(self, ids: Iterable[str]) -> list[str]:
        """Return the names and aliases of known entities."""
        entities = (self.entities[key] for key in dict.fromkeys(ids) if key in self.entities)
        return [name for entity in entities for name in (entity.name, *entity.aliases)]

    @property
    def user_names(self) -> list[str]:
        """The names of the user's own entity, as far as they are known."""
        return self.names_of(key for key, entity in self.entities.items() if entity.is_user)

    def person_key(self, entity_id: str) -> str:
        """Return a key that is the same for the user's own entity and for one called "the user"."""
        entity = self.entities.get(entity_id)
        if entity is None:
            return entity_id
        words = entity.name.casefold().split()
        is_user = entity.is_user or (0 < len(words) <= MAX_WORDS_OF_USER_NAME and words[-1] in USER_WORDS)
        return "user" if is_user else entity_id

    def subject_names(self, fact: Fact) -> list[str]:
        """Return the names of a fact's subject, or the user's names if the user is the subject under any name."""
        names = self.names_of([fact.subject_id])
        return [*names, *self.user_names] if self.person_key(fact.subject_id) == "user" else names

    def subject_phrases(self, fact: Fact) -> list[str]:
        """Return the phrases for a fact's subject in statements: its names, plus "the user" if it is the user."""
        is_user = self.person_key(fact.subject_id) == "user"
        return [*self.subject_names(fact), *(USER_WORDS if is_user else ())]

    def people_named(self, *facts: Fact) -> list[str]:
        """Return the names of the people that facts mention besides their subject."""
        ids = [key for fact in facts for key in fact.entity_ids if key != fact.subject_id]
        return self.names_of(key for key in ids if key in self.entities and self.entities[key].type == PERSON_TYPE)


CONTRADICTION = "the memories contradict one another"
"""Prefix of the reason for not merging contradictory memories, which the run reports."""

RESERVED_ATTRIBUTES = frozenset(
    {"id", "uuid", "name", "name_key", "group_id", "group_key", "aliases", "labels", "is_user"}
)
"""Attributes that UPDATE_ENTITY cannot set."""


def review(reviewed: ReviewedProposal, proposal: Proposal, context: GuardContext) -> ReviewedProposal:
    """Return a proposal with its verdict; `proposal` is the version that the guards check."""
    reason = refusal_reason(proposal, context, reviewed.verification)
    verdict = ProposalVerdict.REFUSED if reason else ProposalVerdict.EXECUTED
    return reviewed.model_copy(update={"verdict": verdict, "reason": reason})


def refusal_reason(proposal: Proposal, context: GuardContext, verification: Verification | None = None) -> str | None:
    """Return the reason why a proposal may not be executed, or None."""
    return _check_action(proposal, context, verification) or _check_secrets(proposal, context)


def _check_secrets(proposal: Proposal, context: GuardContext) -> str | None:
    classes = context.find_secrets(stored_values(proposal))
    return f"the proposal contains a secret ({', '.join(classes)})" if classes else None


def _check_action(proposal: Proposal, context: GuardContext, verification: Verification | None) -> str | None:
    match proposal:
        case Merge():
            return (
                _check_usable(proposal.memory_ids, context)
                or _check_trust(proposal, context)
                or _check_same_slot(proposal, context)
                or _check_validity(proposal, context)
                or _check_no_contradiction(proposal, context)
                or _check_merged_text(proposal, context, verification)
            )
        case Close():
            return _check_usable([proposal.memory_id], context) or _check_closing(proposal, context, verification)
        case Associate():
            return (
                _check_usable(proposal.memory_ids, context)
                or _check_trust(proposal, context)
                or _check_association(proposal, context)
            )
        case UpdateEntity():
            return _check_entity_update(proposal, context, verification)
        case LinkEntities():
            return _check_entity_link(proposal, context, verification)
        case CreateEntity():
            return _check_usable(proposal.memory_ids, context) or _check_new_entity(proposal, context)


def _check_usable(memory_ids: Sequence[str], context: GuardContext) -> str | None:
    for memory_id in memory_ids:
        fact = context.facts.get(memory_id)
        if fact is None:
            return f"there is no current memory {memory_id} of this user"
        if fact.type is MemoryType.PROFILE:
            return f"{memory_id} is a profile, which says what other memories state"
        if fact.immutable:
            return f"{memory_id} is immutable"
        if fact.scope is Scope.GLOBAL:
            return f"{memory_id} is global"
        if fact.is_contested:
            return f"{memory_id} is contested: resolve it first"
        if fact.expired_at is not None or fact.status is not MemoryStatus.ACTIVE or not fact.is_valid_at(context.now):
            return f"{memory_id} is not current"
    return None


def _check_trust(proposal: Merge | Associate, context: GuardContext) -> str | None:
    """Return why a merge or an association would change a statement from a more trusted source, or None."""
    effect = Effect.END if isinstance(proposal, Merge) else Effect.OUTRANK
    facts = [context.facts[key] for key in proposal.memory_ids]
    least = context.order.least_trusted(fact.trust_kind for fact in facts)
    return _check_permitted(effect, least, facts, context)


def _check_permitted(effect: Effect, by: SourceKind, on: Iterable[Fact], context: GuardContext) -> str | None:
    """Return why a source may not have an effect on the most trusted of some memories, or None."""
    most = context.order.most_trusted([fact.trust_kind for fact in on] or [by])
    if not context.order.permits(effect, by, most):
        return f"the memories are not equally trusted: a statement from {by} does not change one from {most}"
    return None


def _check_same_slot(proposal: Merge, context: GuardContext) -> str | None:
    facts = [context.facts[key] for key in proposal.memory_ids]
    if len({context.person_key(fact.subject_id) for fact in facts}) > 1:
        return "the memories are about different subjects"
    if len({(fact.scope, fact.domain) for fact in facts}) > 1:
        return "the memories are of different scopes"
    if facts[0].scope is Scope.EPISODIC and len({fact.session_id for fact in facts}) > 1:
        return "the memories are of different conversations"
    slots = {fact.predicate for fact in facts if fact.single_valued}
    if len(slots) > 1:
        return f"{' and '.join(sorted(slots))} change independently of one another"
    return None


def _check_validity(proposal: Merge, context: GuardContext) -> str | None:
    """Return why the validities of current memories cannot be joined, or None; their starts may differ."""
    facts = [context.facts[key] for key in proposal.memory_ids]
    ends = {fact.invalid_at for fact in facts}
    relations = {(fact.predicate, fact.object_id) for fact in facts}
    is_one_relation = len(relations) == 1 and facts[0].predicate not in DEFAULT_PREDICATES.values()
    if len(ends - {None}) > 1 or (len(ends) > 1 and not is_one_relation):
        return "the memories end at different times"
    if len({fact.expires_at is None for fact in facts}) > 1:
        return "some of the memories expire, others do not"
    return None


def _check_no_contradiction(proposal: Merge, context: GuardContext) -> str | None:
    facts = [context.facts[key] for key in proposal.memory_ids]
    if not context.contradicted.isdisjoint(proposal.memory_ids):
        return f"{CONTRADICTION}: the run reports them"
    names = context.subject_names(facts[0])
    for one, other in combinations(facts, 2):
        if mismatch := find_subject_mismatch(one.content, other.content, names, context.people_named(one, other)):
            return f"the memories are about different people: {mismatch}"
        if reason := find_number_conflict(one.content, other.content, context.subject_phrases(one)):
            return f"{CONTRADICTION}: {reason}"
    return None


def _check_merged_text(proposal: Merge, context: GuardContext, verification: Verification | None) -> str | None:
    facts = [context.facts[key] for key in proposal.memory_ids]
    subject, sources = facts[0].subject_id, {fact.memory_id: fact.content for fact in facts}
    subject_names = context.subject_phrases(facts[0])
    reason: str | None
    if verification is not None and not verification.one_fact:
        reason = "the memories do not tell one fact"
    elif verification is not None:
        reason = find_unverified(verification, sources, proposal.content, subject_names)
    elif context.curated and proposal.verified:
        reason = None
    else:
        reason = find_source_not_literal(sources, proposal.content, subject_names)
    if reason := reason or find_changed_numbers(sources, proposal.content, verification):
        return reason
    same = (content_hash(proposal.content), subject)
    same_text = [
        fact.memory_id
        for fact in context.facts.values()
        if (fact.content_hash, fact.subject_id) == same and fact.is_valid_at(context.now)
    ]
    if missing := sorted(set(same_text) - set(proposal.memory_ids)):
        return f"{' and '.join(missing)} states the same already: add it to memory_ids"
    return None


def _check_closing(proposal: Close, context: GuardContext, verification: Verification | None) -> str | None:
    plan = context.facts[proposal.memory_id]
    if plan.type not in PLANNED and plan.predicate not in {DEFAULT_PREDICATES[kind] for kind in PLANNED}:
        return f"{plan.memory_id} is no plan"
    for key in proposal.evidence:
        fact = context.facts.get(key)
        if fact is None or fact.expired_at is not None or fact.is_contested or fact.type is MemoryType.PROFILE:
            return f"there is no current memory {key} of this user"
        if fact.valid_at and plan.valid_at and fact.valid_at < plan.valid_at:
            return f"{key} held before the plan was made"
    telling = [context.facts[key] for key in proposal.evidence]
    least = context.order.least_trusted(fact.trust_kind for fact in telling)
    if reason := (
        _check_permitted(Effect.END, least, [plan], context) or _check_one_person_and_scope([plan, *telling], context)
    ):
        return reason
    if context.curated and proposal.verified:
        return None
    quotes = verification.closing if verification else []
    is_quoted = any(
        quote.memory_id in proposal.evidence
        and find_quote(quote.words, context.facts[quote.memory_id].content) is not None
        for quote in quotes
    )
    return None if is_quoted else f"no memory is quoted that says that {plan.memory_id} is over"


def _check_association(proposal: Associate, context: GuardContext) -> str | None:
    facts = [context.facts[key] for key in proposal.memory_ids]
    if len(facts) < 2:
        return "the memories were merged into one"
    return _check_one_person_and_scope(facts, context)


def _check_one_person_and_scope(facts: Sequence[Fact], context: GuardContext) -> str | None:
    if len({(fact.scope, fact.domain) for fact in facts}) > 1:
        return "the memories are of different scopes"
    people = {
        context.person_key(fact.subject_id) for fact in facts if _is_person(context.entities.get(fact.subject_id))
    }
    if len(people) > 1:
        return "the memories are about different people"
    return None


def _check_entity_update(
    proposal: UpdateEntity, context: GuardContext, verification: Verification | None
) -> str | None:
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
        if not context.curated and verification is None and not _is_form_of_name(entity, alias):
            return f"no memory says that {entity.name} is known as {alias}"
    if verification is None:
        return None
    return _check_values(proposal, entity, context, verification)


def _is_form_of_name(entity: Entity, alias: str) -> bool:
    reason = compare_name_lists(_names_of(entity), entity.type, [alias], entity.type)
    return reason is not None and reason.is_evidence


def _check_values(
    proposal: UpdateEntity, entity: Entity, context: GuardContext, verification: Verification
) -> str | None:
    """Return the value that no quote from a memory about the entity contains, or None."""
    about = context.facts_by_entity.get(entity.id, ())
    facts = {fact.memory_id: fact for fact in [*context.facts.values(), *about]}
    for value in [*proposal.add_aliases, *map(str, proposal.set.values())]:
        telling = [
            fact
            for quote in verification.values
            if name_key(quote.value) == name_key(value)
            and (fact := facts.get(quote.memory_id)) is not None
            and entity.id in {fact.subject_id, fact.object_id, *fact.entity_ids}
            and find_quote(quote.words, fact.content) is not None
            and mentions_name(quote.words, value)
        ]
        if not telling:
            return f"no memory is quoted that says {value} of {entity.name}"
        most = context.order.most_trusted(fact.trust_kind for fact in telling)
        if reason := _check_permitted(Effect.RENAME, most, about, context):
            return reason
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
        if not mentions_name(context.facts[memory_id].content, proposal.name):
            return f"{memory_id} does not mention {proposal.name}"
    return None


def _check_entity_link(proposal: LinkEntities, context: GuardContext, verification: Verification | None) -> str | None:
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
    about = {fact.memory_id: fact for fact in _facts_about(keep, merge, proposal.evidence, context)}
    quoted = _quoted_identity(verification, about, keep, merge)
    joining = {key: fact for key, fact in about.items() if {keep.id, merge.id} <= {*fact.end_ids, *fact.entity_ids}}
    stating = quoted | {key for key, fact in joining.items() if fact.predicate in IDENTITY_PREDICATES}
    is_verified = context.curated and proposal.verified
    if reason := _check_traits(keep, merge, context, is_stated=bool(stating) or is_verified):
        return reason
    if is_verified:
        return None
    if verification is not None and verification.apart:
        return f"{verification.apart[0].memory_id} tells them apart"
    for key, fact in joining.items():
        if key not in stating and (not quoted or set(fact.end_ids) == {keep.id, merge.id}):
            return f"{key} tells them apart: it relates {keep.name} and {merge.name}"
    if not stating:
        return _check_same_name(keep, merge, context)
    most = context.order.most_trusted(about[key].trust_kind for key in stating)
    return _check_permitted(Effect.REDIRECT, most, about.values(), context)


def _quoted_identity(
    verification: Verification | None, about: Mapping[str, Fact], keep: Entity, merge: Entity
) -> set[str]:
    """Return the ids of the memories with a verification quote saying that two entities are the same."""
    quotes = verification.identity if verification else []
    return {
        quote.memory_id
        for quote in quotes
        if quote.memory_id in about and _is_quoted_identity(quote, about[quote.memory_id], keep, merge)
    }


def _is_quoted_identity(quote: StatementQuote, fact: Fact, one: Entity, other: Entity) -> bool:
    """Return whether a quote is part of a fact and names two entities, or one of them if the other is its subject."""
    if find_quote(quote.words, fact.content) is None:
        return False
    return all(
        entity.id == fact.subject_id or any(mentions_name(quote.words, name) for name in _called(entity))
        for entity in (one, other)
    )


def _called(entity: Entity) -> list[str]:
    """Return the phrases for an entity in statements."""
    return [*_names_of(entity), *(USER_WORDS if entity.is_user else ())]


def _facts_about(keep: Entity, merge: Entity, evidence: Sequence[str], context: GuardContext) -> list[Fact]:
    """Return the facts of two entities and those given as evidence."""
    facts = [
        *context.facts_by_entity.get(keep.id, ()),
        *context.facts_by_entity.get(merge.id, ()),
        *(context.facts[key] for key in evidence if key in context.facts),
    ]
    return list({fact.memory_id: fact for fact in facts if not fact.is_never_valid}.values())


def _check_traits(keep: Entity, merge: Entity, context: GuardContext, *, is_stated: bool) -> str | None:
    """Return traits that two entities cannot share if they are the same, or None."""
    types = {keep.type, merge.type} - {DEFAULT_ENTITY_TYPE}
    if len(types) > 1 and (PERSON_TYPE in types or not is_stated):
        return f"one is a {keep.type}, the other a {merge.type}"
    ours, theirs = context.facts_by_entity.get(keep.id, ()), context.facts_by_entity.get(merge.id, ())
    for one in _single_valued_facts(ours, keep.id):
        for other in _single_valued_facts(theirs, merge.id):
            if (
                one.predicate == other.predicate
                and one.overlaps(other)
                and (one.object_id != other.object_id or find_number_conflict(one.content, other.content))
            ):
                return f"they differ in {one.predicate}: {one.memory_id} and {other.memory_id}"
    return None


def _single_valued_facts(facts: Iterable[Fact], subject_id: str) -> list[Fact]:
    return [
        fact
        for fact in facts
        if fact.single_valued and fact.subject_id == subject_id and fact.predicate not in IDENTITY_PREDICATES
    ]


def _check_same_name(keep: Entity, merge: Entity, context: GuardContext) -> str | None:
    """Return why the names of two entities are no evidence that they are the same, or None."""
    if keep.is_user and not USER_WORDS.isdisjoint(map(str.casefold, _names_of(merge))):
        return None
    reason = compare_name_lists(_names_of(keep), keep.type, _names_of(merge), merge.type)
    ours, theirs = context.facts_by_entity.get(keep.id, ()), context.facts_by_entity.get(merge.id, ())
    if reason is NameReason.PART_OF_NAME and not _share_a_fact(ours, theirs, keep, merge):
        return f"a part of a name is no evidence that {keep.name} is {merge.name}"
    if not _may_mean_one(reason):
        return f"no memory says that {keep.name} is {merge.name}, and the names are no forms of one another"
    return _find_third_of_name(keep, merge, context) if _may_be_person(keep) and _may_be_person(merge) else None


def _share_a_fact(ours: Iterable[Fact], theirs: Iterable[Fact], one: Entity, other: Entity) -> bool:
    """Return whether both entities are stated to have the same relation to the same thing."""
    relations, others = (
        {(fact.predicate, fact.object_id) for fact in facts if fact.subject_id == entity.id and fact.object_id}
        for facts, entity in ((ours, one), (theirs, other))
    )
    return not relations.isdisjoint(others)


def _find_third_of_name(keep: Entity, merge: Entity, context: GuardContext) -> str | None:
    """Return that one of two people could as well be a third person, or None."""
    for one, other in ((keep, merge), (merge, keep)):
        for third in context.similarly_named.get(other.id, ()):
            if third.id not in (keep.id, merge.id) and (
                _may_mean_one(compare_name_lists([other.name], None, [third.name], None))
                and not _shares_more_of_name(one, third, other)
            ):
                return f"{other.name} could also be {third.name}"
    return None


def _names_of(entity: Entity) -> list[str]:
    return [entity.name, *entity.aliases]


def _may_mean_one(reason: NameReason | None) -> bool:
    return reason is not None and (reason.is_evidence or reason is NameReason.PART_OF_NAME)


def _shares_more_of_name(keep: Entity, third: Entity, merge: Entity) -> bool:
    """Return whether the name of `keep` shares more words with that of `merge` than the name of `third` does."""
    words = set(name_tokens(merge.name))
    return len(words & set(name_tokens(keep.name))) > len(words & set(name_tokens(third.name)))


def _is_person(entity: Entity | None) -> bool:
    return entity is not None and entity.type == PERSON_TYPE


def _may_be_person(entity: Entity) -> bool:
    return entity.type in (PERSON_TYPE, DEFAULT_ENTITY_TYPE)


@dataclass(frozen=True, slots=True)
class LossLimits:
    """The limits of the loss guard.

    - `max_ended_share`: the largest share of a user's current memories that one run may end
    - `min_text_share`: the smallest share of the ended memories' characters that must remain
    - `free_ended_count`: a run that ends at most this many memories is never aborted, so that the few memories of a new
      user can be merged
    """

    max_ended_share: float = 0.3
    min_text_share: float = 0.25
    free_ended_count: int = 4


def check_loss(limits: LossLimits, current: int, ended: int, text_before: int, text_after: int) -> str | None:
    """Return the reason to abort a run, or None.

    The run would end `ended` of a user's `current` memories and leave `text_after` of their `text_before` characters.
    """
    if ended <= limits.free_ended_count:
        return None
    if ended > limits.max_ended_share * current:
        return f"it would end {ended} of {current} memories, more than {limits.max_ended_share:.0%}"
    if text_after < limits.min_text_share * text_before:
        return f"it would shrink {text_before} characters to {text_after}, below {limits.min_text_share:.0%}"
    return None


def memory_ids_of(proposals: Iterable[Proposal]) -> list[str]:
    """Return the distinct ids of the memories that proposals name."""
    found: dict[str, None] = {}
    for proposal in proposals:
        if isinstance(proposal, Merge | Associate | CreateEntity):
            found |= dict.fromkeys(proposal.memory_ids)
        elif isinstance(proposal, Close):
            found |= dict.fromkeys([proposal.memory_id, *proposal.evidence])
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
    """Return the version of each memory and the modification time of each entity that a proposal names.

    Ids missing from `facts` and `entities` are left out.
    """
    versions = {key: str(facts[key].version) for key in memory_ids_of([proposal]) if key in facts}
    return versions | {
        key: entities[key].updated_at.isoformat() for key in entity_ids_of([proposal]) if key in entities
    }
