"""Which entity each name of a window means: known entities, new names for them, aliases. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field

from graphmem.ingestion.candidates import AliasGroup, ValidatedCandidate
from graphmem.memories.entity import PERSON_TYPE, EntityIn, EntityRef
from graphmem.memories.memory import MemoryIn
from graphmem.memories.names import is_short_form
from graphmem.runtime.field_types import name_key
from graphmem.text.names import is_possessive_phrase


@dataclass(slots=True)
class NameResolution:
    """What the names of a window mean.

    `canonical_names` are the names to save under, by name key. `renames` are new names by entity id. `aliases` are
    other names by entity id, or by the name key of an entity that does not exist yet. `rejected_pairs` are the reasons
    why names that were said to mean one entity do not.
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
    """Return what the names of a window mean.

    `entities` are the ids of known entities by name key, `decided` the ids that a model chose, `written_names` the
    names as they were written, by name key, `names` the known entities by id, and `own` the id of the user's entity,
    or its name key if there is none yet.
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
    """Return the name that the user's own entity gets instead of its current one, or None.

    The user id gives way to any name, another name to a fuller form of it. What the messages say comes before the name
    on the user's lines, which is in the first group.
    """
    names_of_user = [group.others[0] for group in alias_groups if group.is_of_user and group.others]
    for name in reversed(names_of_user):
        if name_key(name) != name_key(user_id) and (
            name_key(current) == name_key(user_id) or is_short_form(current, name)
        ):
            return name
    return None


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
        # The first name of a group is the fullest one.
        for name in group_names:
            _add_name(resolution, entity, name, is_fuller=name == group.name)
        return
    for other in group.others:
        resolution.canonical_names[name_key(other)] = group.name
    lasting = [other for other in group.others if not is_short_form(other, group.name)]
    resolution.aliases.setdefault(name_key(group.name), []).extend(lasting)


def _add_name(resolution: NameResolution, entity: EntityRef, name: str, *, is_fuller: bool = False) -> None:
    """Give a known entity one more name: as its canonical name if it is fuller, else as an alias.

    A person's bare first name becomes no alias, because the next person of that name would be taken for this one.
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


class EntityIds(BaseModel):
    """The ids of known entities that statements name; `user` is the user's own entity, None before its first fact."""

    model_config = ConfigDict(frozen=True)

    user: str | None = None
    by_name_key: dict[str, str] = Field(default_factory=dict)

    @property
    def all_ids(self) -> set[str]:
        """All ids."""
        return {*self.by_name_key.values(), *([self.user] if self.user else ())}

    def with_names(self, ids: Mapping[str, str]) -> EntityIds:
        """Return these ids and those of further name keys."""
        return EntityIds(user=self.user, by_name_key={**self.by_name_key, **ids})

    def of_entity(self, entity: EntityIn | None) -> str | None:
        """Return the id of a named entity, or None for an unknown one."""
        return self.by_name_key.get(name_key(entity.name)) if entity else None

    def of_subject(self, candidate: ValidatedCandidate) -> str | None:
        """Return the id of the entity a statement is about; one without a subject is about the user."""
        return self.of_entity(candidate.memory.subject) if candidate.memory.subject else self.user

    def named_in(self, candidate: ValidatedCandidate) -> set[str]:
        """Return the ids of the known entities that a statement names."""
        return {entity_id for entity in candidate.named_entities if (entity_id := self.of_entity(entity))}


class PossibleEntity(BaseModel):
    """A known entity that an ambiguous name may mean; `relation` is a fact that says who a person is."""

    id: str
    name: str
    type: str
    aliases: list[str] = Field(default_factory=list)
    relation: str | None = None


class AmbiguousName(BaseModel):
    """A name that may mean one of several known entities, by id, or none."""

    name: str
    type: str | None
    options: list[str]


class LinkingResult(BaseModel):
    """What linking found for the statements of a window.

    `related` are the memory ids of known facts in the order in which they were learned; `related_by_candidate` are
    positions in that list, for each statement.
    """

    entities: EntityIds = Field(default_factory=EntityIds)
    known: list[PossibleEntity] = Field(default_factory=list)
    ambiguous_names: list[AmbiguousName] = Field(default_factory=list)
    related: list[str] = Field(default_factory=list)
    related_by_candidate: list[list[int]] = Field(default_factory=list)
