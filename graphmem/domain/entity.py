"""Entities: the people, places and things that memories are about."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from graphmem.domain.text import NonBlankText

_LABEL = re.compile(r"[^\w]+", re.UNICODE)

DEFAULT_ENTITY_TYPE = "Thing"
PERSON_TYPE = "Person"

RECORD_LABELS = frozenset(
    {
        "ArchivedEpisode",
        "BehaviorPattern",
        "ContextItem",
        "Episodic",
        "InterestCandidate",
        "LearnedIntent",
        "LearnedPreference",
        "Session",
        "SessionArchive",
    }
)
"""Labels of what is kept of a user beside entities."""

RESERVED_LABELS = RECORD_LABELS | {
    "ApiKey",
    "Change",
    "ConsolidationRun",
    "EmbeddingSchema",
    "Entity",
    "Extraction",
    "IdempotentRequest",
    "Migration",
    "User",
}
"""Labels that nodes of our own carry, so that no entity's type may be one."""


def _to_label(name: str) -> str:
    """Return an entity type in CamelCase, as it is used for a node label; reserved ones become the default."""
    words = [word for word in _LABEL.split(name) if word]
    label = "".join(word[0].upper() + word[1:] for word in words)
    if not label or not label[0].isalpha() or len(label) > 64:
        raise ValueError("must be a type name such as Person, Place or Organization, up to 64 characters")
    if label == "User":
        return PERSON_TYPE
    return DEFAULT_ENTITY_TYPE if label in RESERVED_LABELS else label


EntityType = Annotated[NonBlankText, AfterValidator(_to_label)]
"""The kind of an entity; also a label of its node."""

_ENTITY_TYPE_ADAPTER: TypeAdapter[str] = TypeAdapter(EntityType)


def parse_entity_type(value: object) -> str:
    """Return an entity type in its stored form; raise ValueError for what is none."""
    return _ENTITY_TYPE_ADAPTER.validate_python(value)


class EntityIn(BaseModel):
    """An entity named by a caller."""

    model_config = ConfigDict(extra="forbid")

    name: NonBlankText = Field(max_length=300)
    type: EntityType | None = None


class EntityRef(BaseModel):
    """An entity as a memory names it."""

    id: str
    name: str
    type: str


class Entity(BaseModel):
    """An entity with all that is kept about it."""

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
