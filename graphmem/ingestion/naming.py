"""What names come to mean once a window has been read: known entities, new names for them, aliases. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from graphmem.domain.entity import PERSON, EntityRef
from graphmem.domain.text import name_key
from graphmem.ingestion.claims import Alias
from graphmem.ingestion.likeness import is_short_form


@dataclass(slots=True)
class Naming:
    """`proper` are the names to save under, by name key; `renames` new names by entity id; `aliases` other names by
    entity id, or by the name key of an entity that is yet to be made; `refused` pairs that are not one entity.
    """

    proper: dict[str, str] = field(default_factory=dict)
    renames: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, list[str]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)


def settle(
    entities: Mapping[str, str],
    decided: Mapping[str, str],
    spelt: Mapping[str, str],
    names: Mapping[str, EntityRef],
    told: Sequence[Alias],
    own: str,
) -> Naming:
    """Return what the names of a window mean.

    `entities` are the ids of known entities by name key, `decided` those a model decided on, `spelt` every name as it
    was written by its key, `names` the known entities by id, `told` the names said to be one, `own` the id of the
    user's entity, or its name key while there is none.
    """
    naming = Naming()
    ids = {key: id for key, id in {**entities, **decided}.items() if key and id in names}
    for key, id in decided.items():
        _take(naming, names[id], spelt.get(key, key))
    for alias in told:
        if not alias.name:
            naming.aliases.setdefault(own, []).extend(alias.others)
        else:
            _join(naming, alias, ids, names)
    for key, id in ids.items():
        naming.proper.setdefault(key, naming.renames.get(id, names[id].name))
    return naming


def _join(naming: Naming, alias: Alias, ids: dict[str, str], names: Mapping[str, EntityRef]) -> None:
    """Make the names told for one entity mean one, unless two known ones are behind them."""
    told = [alias.name, *alias.others]
    known = list(dict.fromkeys(ids[name_key(name)] for name in told if name_key(name) in ids))
    if len(known) > 1:
        naming.refused.append("two entities are known by these names")
        return
    if known:
        entity = names[known[0]]
        ids.update({name_key(name): entity.id for name in told})
        # The first name told is the fullest one.
        for name in told:
            _take(naming, entity, name, fuller=name == alias.name)
        return
    for other in alias.others:
        naming.proper[name_key(other)] = alias.name
    lasting = [other for other in alias.others if not is_short_form(other, alias.name)]
    naming.aliases.setdefault(name_key(alias.name), []).extend(lasting)


def _take(naming: Naming, entity: EntityRef, name: str, *, fuller: bool = False) -> None:
    """Give a known entity one more name: as its proper one where it is fuller, else as an alias.

    A bare first name of a person is neither: the next one of that name would be taken for them.
    """
    current = naming.renames.get(entity.id, entity.name)
    if name_key(name) == name_key(current):
        return
    if (fuller or is_short_form(current, name)) and not is_short_form(name, current) and not _is_description(name):
        naming.renames[entity.id] = name
        current, name = name, current
    kept = naming.aliases.setdefault(entity.id, [])
    if name not in kept and not (entity.type == PERSON and is_short_form(name, current)):
        kept.append(name)


def _is_description(name: str) -> bool:
    """Whether a name only tells a relation, such as Mara's sister."""
    return any(mark in name for mark in ("'s ", "’s ", "s' ", "s’ "))
