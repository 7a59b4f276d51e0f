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

from graphmem.consolidation import bearing, wording
from graphmem.consolidation.naming import evidence, name_tokens
from graphmem.domain.entity import DEFAULT_TYPE, PERSON, Entity, read_entity_type
from graphmem.domain.fact import Fact
from graphmem.domain.memory import Scope, Status
from graphmem.domain.proposals import Associate, CreateEntity, LinkEntities, Merge, Proposal, UpdateEntity
from graphmem.domain.text import content_hash, name_key

MIN_KEPT_SHARE = 0.4
"""A merge keeps at least this share of the distinct words of its sources, by stem."""

SAME_AS = frozenset({"SAME_AS", "ALSO_KNOWN_AS", "ALIAS_OF", "NICKNAME_OF", "IS_CALLED"})
"""Predicates that state that two entities are one."""

RESERVED = frozenset({"id", "uuid", "name", "name_key", "group_id", "group_key", "aliases", "labels", "is_user"})
"""What UPDATE_ENTITY cannot set."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What proposals are judged by: the latest believed facts and the entities of one user.

    `named` maps name and alias keys to entity ids; `touching` the facts at or mentioning an entity that is to be
    linked, and `tied` what else lies there; `alike` the other entities that share a word of their names; `current` the
    statements that are current by identity (content and subject).
    """

    now: datetime
    facts: Mapping[str, Fact]
    entities: Mapping[str, Entity]
    named: Mapping[str, str] = field(default_factory=dict)
    touching: Mapping[str, Sequence[Fact]] = field(default_factory=dict)
    alike: Mapping[str, Sequence[Entity]] = field(default_factory=dict)
    tied: Mapping[str, Sequence[str]] = field(default_factory=dict)
    current: Mapping[str, str] = field(default_factory=dict)
    curated: bool = False
    secrets: Callable[[Any], Sequence[str]] = lambda _: ()

    def names_of(self, ids: Iterable[str]) -> list[str]:
        """Return the names and aliases of some entities."""
        found = (self.entities[key] for key in dict.fromkeys(ids) if key in self.entities)
        return [name for entity in found for name in (entity.name, *entity.aliases)]


def refusal(proposal: Proposal, scene: Scene) -> str | None:
    """Return why a proposal may not be executed, or None."""
    match proposal:
        case Merge():
            return _first(
                partial(_usable, proposal.memory_ids, scene),
                partial(_one_place, proposal, scene),
                partial(_one_time, proposal, scene),
                partial(_one_truth, proposal, scene),
                partial(_covers, proposal, scene),
            )
        case Associate():
            return _first(partial(_usable, proposal.memory_ids, scene), partial(_together, proposal, scene))
        case UpdateEntity():
            return _update(proposal, scene)
        case LinkEntities():
            return _link(proposal, scene)
        case CreateEntity():
            return _first(partial(_usable, proposal.memory_ids, scene), partial(_create, proposal, scene))


def _first(*rules: Callable[[], str | None]) -> str | None:
    return next((reason for rule in rules if (reason := rule())), None)


def _usable(memory_ids: Sequence[str], scene: Scene) -> str | None:
    for memory_id in memory_ids:
        fact = scene.facts.get(memory_id)
        if fact is None:
            return f"there is no current memory {memory_id} of this user"
        if fact.immutable:
            return f"{memory_id} is immutable"
        if fact.scope is Scope.GLOBAL:
            return f"{memory_id} is global"
        if fact.expired_at is not None or fact.status is not Status.ACTIVE or not fact.holds_at(scene.now):
            return f"{memory_id} is not current"
    return None


def _one_place(proposal: Merge, scene: Scene) -> str | None:
    facts = [scene.facts[key] for key in proposal.memory_ids]
    if len({fact.subject_id for fact in facts}) > 1:
        return "the memories are about different subjects"
    if len({(fact.scope, fact.domain) for fact in facts}) > 1:
        return "the memories are of different scopes"
    slots = {fact.predicate for fact in facts if fact.single_valued}
    if len(slots) > 1:
        return f"{' and '.join(sorted(slots))} change independently of one another"
    return None


def _one_time(proposal: Merge, scene: Scene) -> str | None:
    facts = [scene.facts[key] for key in proposal.memory_ids]
    if len({fact.valid_at for fact in facts if fact.valid_at}) > 1:
        return "contradictory validity: the memories begin at different times"
    if len({fact.invalid_at for fact in facts}) > 1:
        return "contradictory validity: the memories end at different times"
    if len({fact.expires_at is None for fact in facts}) > 1:
        return "contradictory validity: some of the memories expire, others do not"
    return None


def _one_truth(proposal: Merge, scene: Scene) -> str | None:
    facts = [scene.facts[key] for key in proposal.memory_ids]
    own = scene.names_of([facts[0].subject_id])
    read = [wording.read(fact.content, scene.names_of(fact.entity_ids)) for fact in facts]
    for one, other in combinations(read, 2):
        if reason := wording.across_people(one, other, own) or wording.contradiction(one, other):
            return f"the memories do not go together: {reason}"
    return None


def _covers(proposal: Merge, scene: Scene) -> str | None:
    facts = [scene.facts[key] for key in proposal.memory_ids]
    subject = facts[0].subject_id
    known = scene.names_of(key for fact in facts for key in fact.entity_ids)
    sources = [wording.read(fact.content, scene.names_of(fact.entity_ids)) for fact in facts]
    result = wording.read(proposal.content, known)
    if lost := wording.missing(sources, result):
        return f"the merged text does not cover {', '.join(lost[:5])}"
    if new := wording.invented(sources, result, scene.names_of([subject])):
        return f"the merged text says what no source says: {', '.join(new[:5])}"
    said = [fact.content for fact in facts]
    if turned := bearing.turned(said, proposal.content):
        return f"the merged text turns round what is said of {', '.join(turned[:5])}"
    if displaced := bearing.displaced(said, proposal.content):
        return f"the merged text tells {', '.join(displaced[:5])} of something else"
    if wording.kept_share(sources, result) < MIN_KEPT_SHARE:
        return "the merged text drops most of what the sources say"
    if classes := scene.secrets(proposal.content):
        return f"the merged text holds a secret ({', '.join(classes)})"
    other = scene.current.get(f"{content_hash(proposal.content)}:{subject}")
    if other is not None and other not in proposal.memory_ids:
        return f"{other} says so already: name it among memory_ids"
    return None


def _together(proposal: Associate, scene: Scene) -> str | None:
    facts = [scene.facts[key] for key in proposal.memory_ids]
    if len(facts) < 2:
        return "the memories were merged into one"
    if len({(fact.scope, fact.domain) for fact in facts}) > 1:
        return "the memories are of different scopes"
    people = {fact.subject_id for fact in facts if _is_person(scene.entities.get(fact.subject_id))}
    if len(people) > 1:
        return "the memories are about different people"
    own = scene.names_of([facts[0].subject_id])
    read = [wording.read(fact.content, scene.names_of(fact.entity_ids)) for fact in facts]
    for one, other in combinations([each for each in read if each.leading], 2):
        if reason := wording.across_people(one, other, own):
            return f"the memories do not go together: {reason}"
    return None


def _update(proposal: UpdateEntity, scene: Scene) -> str | None:
    entity = scene.entities.get(proposal.entity_id)
    if entity is None:
        return f"there is no entity {proposal.entity_id} of this user"
    if reserved := sorted(RESERVED & proposal.set.keys()):
        return f"{', '.join(reserved)} cannot be set"
    if "type" in proposal.set and (reason := _retype(entity, proposal.set["type"])):
        return reason
    if "summary" in proposal.set and not isinstance(proposal.set["summary"], str):
        return "summary must be a text"
    for alias in proposal.add_aliases:
        holder = scene.named.get(name_key(alias), entity.id)
        if holder != entity.id:
            return f"{alias!r} is the name of {holder}: LINK_ENTITIES makes the two one"
    if classes := scene.secrets([proposal.set, proposal.add_aliases]):
        return f"it holds a secret ({', '.join(classes)})"
    return None


def _retype(entity: Entity, wanted: object) -> str | None:
    try:
        kind = read_entity_type(wanted)
    except ValueError:
        return "type must be a type name such as Person, Place or Organization"
    if entity.type not in (DEFAULT_TYPE, kind) and (entity.is_user or PERSON in (entity.type, kind)):
        return f"{entity.name} is a {entity.type}"
    return None


def _create(proposal: CreateEntity, scene: Scene) -> str | None:
    if (holder := scene.named.get(name_key(proposal.name))) is not None:
        return f"there is an entity of that name: {holder}"
    for memory_id in proposal.memory_ids:
        if not wording.mentions_name(scene.facts[memory_id].content, proposal.name):
            return f"{memory_id} does not speak of {proposal.name}"
    if classes := scene.secrets(proposal.name):
        return f"the name is a secret ({', '.join(classes)})"
    return None


def _link(proposal: LinkEntities, scene: Scene) -> str | None:
    keep, merge = scene.entities.get(proposal.keep_id), scene.entities.get(proposal.merge_id)
    if keep is None or merge is None:
        return f"there is no entity {proposal.keep_id if keep is None else proposal.merge_id} of this user"
    if merge.is_user:
        return "the user's own entity can only be kept"
    if other := scene.tied.get(merge.id):
        return f"{merge.name} is tied to other things ({', '.join(other)})"
    facts = scene.touching.get(merge.id, ())
    if immutable := next((fact for fact in facts if fact.immutable), None):
        return f"{merge.name} stands in {immutable.memory_id}, which is immutable"
    return _different_things(keep, merge, scene) or _not_the_same_name(keep, merge, scene)


def _different_things(keep: Entity, merge: Entity, scene: Scene) -> str | None:
    """Return what speaks against two entities being one."""
    if keep.type != merge.type and DEFAULT_TYPE not in (keep.type, merge.type):
        return f"one is a {keep.type}, the other a {merge.type}"
    ours, theirs = scene.touching.get(keep.id, ()), scene.touching.get(merge.id, ())
    for fact in theirs:
        ends = {fact.subject_id, fact.object_id}
        if keep.id in ends | set(fact.entity_ids) and not (fact.predicate in SAME_AS and ends == {keep.id, merge.id}):
            return f"{fact.memory_id} speaks of both"
    for one in _values(ours, keep.id, scene.now):
        for other in _values(theirs, merge.id, scene.now):
            if one.predicate == other.predicate and one.object_id != other.object_id:
                return f"they differ in {one.predicate}: {one.memory_id} and {other.memory_id}"
    return None


def _values(facts: Iterable[Fact], subject_id: str, now: datetime) -> list[Fact]:
    return [fact for fact in facts if fact.single_valued and fact.subject_id == subject_id and fact.holds_at(now)]


def _not_the_same_name(keep: Entity, merge: Entity, scene: Scene) -> str | None:
    """Return that nothing says that two entities are one; a curator may say so of what is no person."""
    people = _may_be_person(keep) and _may_be_person(merge)
    names, others = [keep.name, *keep.aliases], [merge.name, *merge.aliases]
    stated = any(
        fact.predicate in SAME_AS and {fact.subject_id, fact.object_id} == {keep.id, merge.id}
        for fact in scene.touching.get(merge.id, ())
    )
    if stated or (scene.curated and not people):
        return None
    if evidence(names, others, people=people) is None:
        return f"nothing in their names says that {keep.name} and {merge.name} are one"
    for third in scene.alike.get(merge.id, ()):
        if third.id == keep.id or not people:
            continue
        if evidence([merge.name], [third.name], people=True) and not _nearer(keep, third, merge):
            return f"{merge.name} may as well be {third.name}"
    return None


def _nearer(keep: Entity, third: Entity, merge: Entity) -> bool:
    """Return whether `keep` shares more of the name of `merge` than `third` does."""
    wanted = set(name_tokens(merge.name))
    return len(wanted & set(name_tokens(keep.name))) > len(wanted & set(name_tokens(third.name)))


def _is_person(entity: Entity | None) -> bool:
    return entity is not None and entity.type == PERSON


def _may_be_person(entity: Entity) -> bool:
    return entity.type in (PERSON, DEFAULT_TYPE)


@dataclass(frozen=True, slots=True)
class Toll:
    """What a run would take from a user: memories ended of those current; text before and after, in characters."""

    current: int
    ended: int
    text_before: int
    text_after: int


def loss(toll: Toll, *, max_share: float, min_text: float, free: int) -> str | None:
    """Return why a run must be given up, or None: it would end too many memories or shrink their text too much.

    Up to `free` memories may end in any run, so that the few memories of a new user can be merged.
    """
    if toll.ended <= free:
        return None
    if toll.ended > max_share * toll.current:
        return f"it would end {toll.ended} of {toll.current} memories, more than {max_share:.0%}"
    if toll.text_after < min_text * toll.text_before:
        return f"it would shrink {toll.text_before} characters to {toll.text_after}, below {min_text:.0%}"
    return None
