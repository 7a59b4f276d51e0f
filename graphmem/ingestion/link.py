"""Linking: the entities meant by names in statements, and the facts related to the statements. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from graphmem.ingestion.candidates import (
    SAID_BY_KEY,
    STATED_START_KEY,
    AliasGroup,
    Statement,
)
from graphmem.memories.entity import PERSON_TYPE, EntityIn, EntityRef
from graphmem.memories.fact import Fact
from graphmem.memories.memory import PENDING_TYPES, MemoryIn
from graphmem.memories.names import is_short_form
from graphmem.runtime.field_types import content_hash, name_key
from graphmem.text.names import is_possessive_phrase

MAX_RELATED_PER_STATEMENT = 8
"""Maximum related facts to compare with one statement."""

MAX_RELATED_PER_BATCH = 40
"""Maximum related facts to compare with one batch."""

MIN_CONTENT_COSINE = 0.40
"""Minimum cosine for two statements to count as possibly about the same thing."""

MIN_CONTENT_COSINE_IF_CLOSE = 0.25
"""Minimum cosine for a plan, or for a fact about an entity that the statement names."""

MAX_PENDING_PER_BATCH = 12
"""Maximum further plans and open loops to compare with a batch, since any statement may settle one."""

# Results of linking


class EntityIds(BaseModel):
    """The ids of known entities named by statements; `user` is the user's own entity, None before its first fact."""

    model_config = ConfigDict(frozen=True)

    user: str | None = None
    by_name_key: dict[str, str] = Field(default_factory=dict)

    @property
    def all_ids(self) -> set[str]:
        """All ids."""
        return {*self.by_name_key.values(), *([self.user] if self.user else ())}

    def with_names(self, ids: Mapping[str, str]) -> EntityIds:
        """Return these ids plus those of further name keys."""
        return EntityIds(user=self.user, by_name_key={**self.by_name_key, **ids})

    def of_entity(self, entity: EntityIn | None) -> str | None:
        """Return the id of a named entity, or None if it is unknown."""
        return self.by_name_key.get(name_key(entity.name)) if entity else None

    def of_subject(self, statement: Statement) -> str | None:
        """Return the id of the entity a statement is about; without a subject, that is the user."""
        return self.of_entity(statement.memory.subject) if statement.memory.subject else self.user

    def named_in(self, statement: Statement) -> set[str]:
        """Return the ids of the known entities that a statement names."""
        return {entity_id for entity in statement.named_entities if (entity_id := self.of_entity(entity))}


class PossibleEntity(BaseModel):
    """A known entity that an ambiguous name may mean; `relation` is a fact that says who a person is."""

    id: str
    name: str
    type: str
    aliases: list[str] = Field(default_factory=list)
    relation: str | None = None


class AmbiguousName(BaseModel):
    """A name that may mean one of several known entities, by id, or none of them."""

    name: str
    type: str | None
    options: list[str]


class LinkingResult(BaseModel):
    """The result of linking the statements of a batch.

    `related` are the memory ids of known facts in the order they were learned; `related_by_statement` holds, for each
    statement, positions in that list.
    """

    entities: EntityIds = Field(default_factory=EntityIds)
    known: list[PossibleEntity] = Field(default_factory=list)
    ambiguous_names: list[AmbiguousName] = Field(default_factory=list)
    related: list[str] = Field(default_factory=list)
    related_by_statement: list[list[int]] = Field(default_factory=list)


def collect_named_entities(statements: Sequence[Statement], aliases: Sequence[AliasGroup]) -> dict[str, EntityIn]:
    """Return every entity named by statements and alias groups, by name key, preferring one with a type."""
    named: dict[str, EntityIn] = {}
    for statement in statements:
        for entity in statement.named_entities:
            key = name_key(entity.name)
            if key not in named or named[key].type is None:
                named[key] = entity
    for group in aliases:
        for name in () if group.is_of_user else (group.name, *group.others):
            named.setdefault(name_key(name), EntityIn(name=name))
    return named


# Related facts


class RelatedFact(NamedTuple):
    """A known fact and its cosine with each statement."""

    fact: Fact
    similarities: Sequence[float]

    @property
    def learning_order(self) -> tuple[datetime, str]:
        """The sort key for the order in which facts were learned, the same on every machine."""
        return self.fact.first_created_at, self.fact.content


def has_same_subject(statement: Statement, fact: Fact, entities: EntityIds) -> bool:
    """Return whether a statement is about the subject of a fact."""
    return entities.of_subject(statement) == fact.subject_id


def has_same_slot(statement: Statement, fact: Fact, entities: EntityIds) -> bool:
    """Return whether a statement has a fact's subject and predicate, so that it competes if single-valued."""
    return has_same_subject(statement, fact, entities) and fact.predicate == statement.memory.predicate


def has_same_wording(statement: Statement, fact: Fact) -> bool:
    """Return whether a statement has exactly the text of a fact."""
    return content_hash(statement.memory.content) == fact.content_hash


def repeats(statement: Statement, fact: Fact, entities: EntityIds) -> bool:
    """Return whether a statement has the text, subject, predicate and object of a fact."""
    return (
        has_same_wording(statement, fact)
        and has_same_slot(statement, fact, entities)
        and has_same_object(statement, fact, entities)
    )


def has_same_object(statement: Statement, fact: Fact, entities: EntityIds) -> bool:
    """Return whether a statement and a fact have the same object or none; an unknown object counts as different."""
    given = statement.memory.object
    if given is None or fact.object_id is None:
        return given is None and fact.object_id is None
    return entities.of_entity(given) == fact.object_id


def has_stated_start(fact: Fact) -> bool:
    """Return whether the start of a fact was stated, rather than taken from the time of its message."""
    return SAID_BY_KEY not in fact.metadata or STATED_START_KEY in fact.metadata


def select_related_facts(
    found: Sequence[RelatedFact], statements: Sequence[Statement], entities: EntityIds
) -> tuple[list[Fact], list[list[int]]]:
    """Return the facts worth comparing, in the order they were learned, and their positions for each statement.

    The best facts of each statement are taken in turn up to the batch limit, then the plans and open loops closest to
    any statement.
    """
    best_by_statement: list[list[RelatedFact]] = []
    for index, statement in enumerate(statements):
        scores = [(score_relatedness(known, index, statement, entities), known) for known in found]
        ranked = sorted(
            ((score, known) for score, known in scores if score > 0),
            key=lambda scored: (-round(scored[0], 4), scored[1].learning_order),
        )
        best_by_statement.append([known for _, known in ranked[:MAX_RELATED_PER_STATEMENT]])
    by_id = {
        known.fact.memory_id: known
        for rank in range(MAX_RELATED_PER_STATEMENT)
        for best in best_by_statement
        for known in best[rank : rank + 1]
    }
    chosen = list(by_id.values())[:MAX_RELATED_PER_BATCH]
    pending = [known for known in found if known.fact.type in PENDING_TYPES and known not in chosen]
    pending.sort(key=lambda known: (-round(max(known.similarities), 4), known.learning_order))
    selected = sorted(chosen + pending[:MAX_PENDING_PER_BATCH], key=lambda known: known.learning_order)
    positions = {known.fact.memory_id: position for position, known in enumerate(selected)}
    return [known.fact for known in selected], [
        sorted(positions[known.fact.memory_id] for known in best if known.fact.memory_id in positions)
        for best in best_by_statement
    ]


def score_relatedness(known: RelatedFact, index: int, statement: Statement, entities: EntityIds) -> float:
    """Return how related a fact is to the statement at `index`, or 0 if it is not worth comparing.

    The same statement scores 3, a competing single value 2, the same two entities 1 to 2, and any other fact its
    cosine.
    """
    fact, similarity = known.fact, known.similarities[index]
    same_subject = has_same_subject(statement, fact, entities)
    same_slot = has_same_slot(statement, fact, entities)
    if same_subject and has_same_wording(statement, fact):
        return 3.0
    if same_slot and statement.memory.single_valued:
        return 2.0
    object_id = entities.of_entity(statement.memory.object)
    if same_subject and object_id and fact.object_id == object_id:
        return 1.0 + max(similarity, 0.0)
    names_same = bool(entities.named_in(statement) & set(fact.entity_ids))
    is_close = same_slot or names_same or fact.type in PENDING_TYPES
    threshold = MIN_CONTENT_COSINE_IF_CLOSE if is_close else MIN_CONTENT_COSINE
    return similarity if similarity >= threshold else 0.0


# Names


@dataclass(slots=True)
class NameResolution:
    """The meanings of the names in a batch.

    `canonical_names` are the names to save under, by name key. `renames` are new names by entity id. `aliases` are
    other names by entity id, or by name key for an entity that does not exist yet. `rejected_pairs` are the reasons why
    names said to mean one entity do not.
    """

    canonical_names: dict[str, str] = field(default_factory=dict)
    renames: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, list[str]] = field(default_factory=dict)
    rejected_pairs: list[str] = field(default_factory=list)


def resolve_names(
    entities: Mapping[str, str],
    decided: Mapping[str, str],
    written_names: Mapping[str, str],
    names: Mapping[str, EntityRef],
    alias_groups: Sequence[AliasGroup],
    own: str,
) -> NameResolution:
    """Return the meanings of the names in a batch.

    `entities` are the ids of known entities by name key, `decided` the ids that a model chose, `written_names` the
    names as written, by name key, `names` the known entities by id, and `own` the id of the user's entity, or its name
    key if there is none yet.
    """
    resolution = NameResolution()
    ids = {key: entity_id for key, entity_id in {**entities, **decided}.items() if key and entity_id in names}
    for key in decided:
        if key in ids:
            _add_name(resolution, names[ids[key]], written_names.get(key, key))
    for group in alias_groups:
        if not group.name:
            resolution.aliases.setdefault(own, []).extend(group.others)
        else:
            _apply_alias_group(resolution, group, ids, names)
    for key, entity_id in ids.items():
        resolution.canonical_names.setdefault(key, resolution.renames.get(entity_id, names[entity_id].name))
    for entity_id, name in resolution.renames.items():
        resolution.canonical_names.setdefault(name_key(names[entity_id].name), name)
    return resolution


def with_canonical_names(memory: MemoryIn, canonical_names: Mapping[str, str]) -> MemoryIn:
    """Return a memory with the canonical names, by name key, of the entities it names."""

    def rename(entity: EntityIn | None) -> EntityIn | None:
        if entity is None or name_key(entity.name) not in canonical_names:
            return entity
        return EntityIn(name=canonical_names[name_key(entity.name)], type=entity.type)

    entities = [renamed for entity in memory.entities if (renamed := rename(entity))]
    return memory.model_copy(
        update={"subject": rename(memory.subject), "object": rename(memory.object), "entities": entities}
    )


def choose_user_name(current: str, user_id: str, alias_groups: Sequence[AliasGroup]) -> str | None:
    """Return the new name for the user's own entity, or None to keep the current one.

    Any name replaces the user id; another name is replaced by a fuller form of it, or by one with a different, new
    surname. Names from the messages take precedence over known names, which are in the first group.
    """
    groups = [group for group in alias_groups if group.is_of_user and group.others]
    known_keys = {name_key(name) for group in alias_groups[:1] for name in group.others}
    for name in reversed([group.others[0] for group in groups]):
        is_new = name_key(name) not in known_keys and _has_other_surname(name, current)
        if name_key(name) != name_key(user_id) and (
            name_key(current) == name_key(user_id) or is_short_form(current, name) or is_new
        ):
            return name
    return None


def _has_other_surname(name: str, current: str) -> bool:
    """Return whether two full names begin alike and end differently, as before and after a marriage."""
    words, current_words = name_key(name).split(), name_key(current).split()
    return min(len(words), len(current_words)) > 1 and words[0] == current_words[0] and words[-1] != current_words[-1]


def _apply_alias_group(
    resolution: NameResolution, group: AliasGroup, ids: dict[str, str], names: Mapping[str, EntityRef]
) -> None:
    """Make the names of a group mean one entity, unless two known entities have them."""
    group_names = [group.name, *group.others]
    known_ids = list(dict.fromkeys(ids[name_key(name)] for name in group_names if name_key(name) in ids))
    if len(known_ids) > 1:
        resolution.rejected_pairs.append("two entities are known by these names")
        return
    if known_ids:
        entity = names[known_ids[0]]
        ids.update({name_key(name): entity.id for name in group_names})
        # The first name of a group is the fullest.
        for name in group_names:
            _add_name(resolution, entity, name, is_fuller=name == group.name)
        return
    for other in group.others:
        resolution.canonical_names[name_key(other)] = group.name
    lasting = [other for other in group.others if not is_short_form(other, group.name)]
    resolution.aliases.setdefault(name_key(group.name), []).extend(lasting)


def _add_name(resolution: NameResolution, entity: EntityRef, name: str, *, is_fuller: bool = False) -> None:
    """Give a known entity another name: as its canonical name if it is fuller, else as an alias.

    A person's bare first name does not become an alias, or the next person with that name would be mistaken for this
    one.
    """
    current = resolution.renames.get(entity.id, entity.name)
    if name_key(name) == name_key(current):
        return
    if (
        (is_fuller or is_short_form(current, name))
        and not is_short_form(name, current)
        and not is_possessive_phrase(name)
    ):
        resolution.renames[entity.id] = name
        current, name = name, current
    aliases = resolution.aliases.setdefault(entity.id, [])
    if name not in aliases and not (entity.type == PERSON_TYPE and is_short_form(name, current)):
        aliases.append(name)
