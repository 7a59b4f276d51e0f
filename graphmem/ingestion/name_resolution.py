"""What names come to mean once a window has been read: known entities, new names for them, aliases. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from graphmem.domain.entity import PERSON_TYPE, EntityRef
from graphmem.domain.text import name_key
from graphmem.ingestion.candidates import AliasGroup
from graphmem.ingestion.name_matching import is_short_form


@dataclass(slots=True)
class NameResolution:
    """`proper` are the names to save under, by name key; `renames` new names by entity id; `aliases` other names by
    entity id, or by the name key of an entity that is yet to be made; `refused` pairs that are not one entity.
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
    told: Sequence[AliasGroup],
    own: str,
) -> NameResolution:
    """Return what the names of a window mean.

    `entities` are the ids of known entities by name key, `decided` those a model decided on, `written_names` every name as it
    was written by its key, `names` the known entities by id, `told` the names said to be one, `own` the id of the
    user's entity, or its name key while there is none.
    """
    resolution = NameResolution()
    ids = {key: id for key, id in {**entities, **decided}.items() if key and id in names}
    for key, id in decided.items():
        _add_name(resolution, names[id], written_names.get(key, key))
    for alias in told:
        if not alias.name:
            resolution.aliases.setdefault(own, []).extend(alias.others)
        else:
            _apply_alias_group(resolution, alias, ids, names)
    for key, id in ids.items():
        resolution.canonical_names.setdefault(key, resolution.renames.get(id, names[id].name))
    return resolution


def _apply_alias_group(
    resolution: NameResolution, alias: AliasGroup, ids: dict[str, str], names: Mapping[str, EntityRef]
) -> None:
    """Make the names told for one entity mean one, unless two known ones are behind them."""
    told = [alias.name, *alias.others]
    known = list(dict.fromkeys(ids[name_key(name)] for name in told if name_key(name) in ids))
    if len(known) > 1:
        resolution.rejected_pairs.append("two entities are known by these names")
        return
    if known:
        entity = names[known[0]]
        ids.update({name_key(name): entity.id for name in told})
        # The first name told is the fullest one.
        for name in told:
            _add_name(resolution, entity, name, fuller=name == alias.name)
        return
    for other in alias.others:
        resolution.canonical_names[name_key(other)] = alias.name
    lasting = [other for other in alias.others if not is_short_form(other, alias.name)]
    resolution.aliases.setdefault(name_key(alias.name), []).extend(lasting)


def _add_name(resolution: NameResolution, entity: EntityRef, name: str, *, fuller: bool = False) -> None:
    """Give a known entity one more name: as its proper one where it is fuller, else as an alias.

    A bare first name of a person is neither: the next one of that name would be taken for them.
    """
    current = resolution.renames.get(entity.id, entity.name)
    if name_key(name) == name_key(current):
        return
    if (
        (fuller or is_short_form(current, name))
        and not is_short_form(name, current)
        and not _is_relation_description(name)
    ):
        resolution.renames[entity.id] = name
        current, name = name, current
    kept = resolution.aliases.setdefault(entity.id, [])
    if name not in kept and not (entity.type == PERSON_TYPE and is_short_form(name, current)):
        kept.append(name)


def _is_relation_description(name: str) -> bool:
    """Whether a name only tells a relation, such as Mara's sister."""
    return any(mark in name for mark in ("'s ", "’s ", "s' ", "s’ "))
