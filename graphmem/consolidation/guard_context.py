"""The data that the guards review proposals with. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from graphmem.domain.entity import Entity
from graphmem.domain.fact import Fact

SecretFinder = Callable[[Any], Sequence[str]]
"""Returns the classes of secrets that a value contains and that may not be stored."""


@dataclass(frozen=True, slots=True)
class GuardContext:
    """The latest believed facts and the entities of one user that proposals name, and what surrounds them.

    - `entity_ids_by_name`: entity ids by name key, for all names and aliases that a proposal wants to give
    - `facts_by_entity`: for each entity to be linked, the believed facts at its edges and those that mention it
    - `other_relationships`: for each entity to be linked, the types of its other relationships
    - `similarly_named`: for the entity to be merged, the other entities whose names share a word with its name
    - `current`: memory ids of the current statements by their deduplication key (content and subject)
    - `curated`: whether a person wrote the proposals
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
    find_secrets: SecretFinder = lambda _: ()

    def names_of(self, ids: Iterable[str]) -> list[str]:
        """Return the names and aliases of known entities."""
        entities = (self.entities[key] for key in dict.fromkeys(ids) if key in self.entities)
        return [name for entity in entities for name in (entity.name, *entity.aliases)]
