"""Entities: the people, places and things that memories are about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, TypeAdapter

from graphmem.neo4j.schema import RESERVED_LABELS
from graphmem.runtime.field_types import EntityName, Metadata, NonBlankText
from graphmem.runtime.validation import RequestBody

DEFAULT_ENTITY_TYPE = "Thing"
"""The type of an entity whose type is unknown."""

PERSON_TYPE = "Person"
"""The type of people, users among them."""

GROUP_TYPE = "Group"
"""The type of the entity that a tenant's global memories are about."""

MAX_ENTITY_TYPE_LENGTH = 64
"""Longest entity type, in characters."""

MAX_ALIASES = 20
"""Most aliases of an entity in one statement."""

_NON_WORD = re.compile(r"[^\w]+", re.UNICODE)


def _to_label(name: str) -> str:
    """Return an entity type in CamelCase; a reserved one becomes the default type, `User` becomes `Person`."""
    words = [word for word in _NON_WORD.split(name) if word]
    label = "".join(word[0].upper() + word[1:] for word in words)
    if not label or not label[0].isalpha() or len(label) > MAX_ENTITY_TYPE_LENGTH:
        raise ValueError(
            f"must be a type name such as Person, Place or Organization, up to {MAX_ENTITY_TYPE_LENGTH} characters"
        )
    if label == "User":
        return PERSON_TYPE
    return DEFAULT_ENTITY_TYPE if label in RESERVED_LABELS else label


EntityType = Annotated[NonBlankText, AfterValidator(_to_label)]
"""The kind of an entity, which is also a label of its node."""

_ENTITY_TYPE_ADAPTER: TypeAdapter[str] = TypeAdapter(EntityType)


def parse_entity_type(value: object) -> str:
    """Return an entity type in its stored form; raise ValueError for a value that cannot be one."""
    return _ENTITY_TYPE_ADAPTER.validate_python(value)


class EntityIn(RequestBody):
    """An entity as a caller names it; its `aliases` are added to those that it has."""

    name: EntityName
    type: EntityType | None = None
    attributes: Metadata = Field(default_factory=dict, description="Attributes of its declared type.")
    aliases: list[EntityName] = Field(default_factory=list, max_length=MAX_ALIASES)


class EntityRef(BaseModel):
    """An entity as a memory refers to it."""

    id: str
    name: str
    type: str


class Entity(BaseModel):
    """An entity with everything stored about it; `memory_count` counts its current facts."""

    id: str
    name: str
    type: str
    aliases: list[str] = Field(default_factory=list)
    summary: str = ""
    attributes: dict[str, Any] = Field(default_factory=dict)
    is_user: bool = False
    created_at: datetime
    updated_at: datetime
    memory_count: int | None = None


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """An entity with its name and aliases; `is_user` marks the user's own entity."""

    id: str
    name: str
    type: str
    aliases: Sequence[str]
    is_user: bool
