"""Types of memories and entities that a tenant declares beside those of graphmem."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from graphmem.memories.entity import EntityType
from graphmem.memories.memory import (
    MemoryType,
    MemoryTypeInput,
    is_built_in_type,
    normalise_type_name,
)
from graphmem.runtime.field_types import Metadata, StorableText
from graphmem.runtime.validation import RequestBody

MAX_DECLARED_TYPES = 30
"""Types of memories, and types of entities, that a tenant may declare; every prompt of extraction lists them."""

MAX_DESCRIPTION_LENGTH = 300
"""Characters of the description of a type."""

MAX_SCHEMA_LENGTH = 4000
"""Characters of the JSON Schema of a type's attributes."""

_REFUSED_KEYWORDS = frozenset({"$ref", "$dynamicRef", "$recursiveRef", "pattern", "patternProperties"})
"""Keywords by which a schema could load other documents, recurse without end or take any time to check."""


def _parse_type_name(value: object) -> object:
    return normalise_type_name(value) if isinstance(value, str) else value


def _check_new_name(name: str) -> str:
    if is_built_in_type(name):
        raise ValueError("is one of graphmem's memory types and needs no declaration")
    return name


def _check_attribute_schema(schema: dict[str, Any]) -> dict[str, Any]:
    if len(json.dumps(schema)) > MAX_SCHEMA_LENGTH:
        raise ValueError(f"must have at most {MAX_SCHEMA_LENGTH} characters")
    if refused := _REFUSED_KEYWORDS & set(_keywords(schema)):
        raise ValueError(f"must not use {', '.join(sorted(refused))}")
    if schema.get("type", "object") != "object":
        raise ValueError("must describe an object: its properties are the attributes")
    return schema


def _keywords(schema: object) -> Iterator[str]:
    """Yield the keywords of a schema and its parts; the names of properties are none."""
    if isinstance(schema, list):
        for part in schema:
            yield from _keywords(part)
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        yield keyword
        if keyword in ("properties", "dependentSchemas", "$defs") and isinstance(value, dict):
            yield from _keywords(list(value.values()))
        elif keyword not in ("enum", "const", "default", "examples"):
            yield from _keywords(value)


MemoryTypeName = Annotated[
    str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$"), BeforeValidator(_parse_type_name), AfterValidator(_check_new_name)
]
"""The name of a declared memory type, read in any case."""

AttributeSchema = Annotated[Metadata, AfterValidator(_check_attribute_schema)]
"""A JSON Schema of an object whose properties are attributes."""


class _DeclaredType(RequestBody):
    description: StorableText = Field("", max_length=MAX_DESCRIPTION_LENGTH)
    attributes: AttributeSchema = Field(default_factory=dict, description="A JSON Schema (2020-12) of an object.")

    @property
    def attribute_types(self) -> dict[str, str]:
        """The JSON types of the attributes that the schema lists, by name; `string` where it says none."""
        properties: Mapping[str, Any] = self.attributes.get("properties", {})
        return {
            name: kind if isinstance(kind, str) else "string"
            for name, schema in properties.items()
            for kind in (schema.get("type", "string") if isinstance(schema, dict) else "string",)
        }


class DeclaredMemoryType(_DeclaredType):
    """A memory type; decay, maintenance and consolidation treat its memories as those of the type `base`.

    The `metadata` of its memories holds the attributes.
    """

    name: MemoryTypeName
    base: MemoryTypeInput = MemoryType.FACT


class DeclaredEntityType(_DeclaredType):
    """An entity type; `attributes` of its entities are checked."""

    name: EntityType


class DeclaredTypesIn(RequestBody):
    """The types that a tenant declares; they replace those declared before, and empty lists remove them."""

    memory_types: list[DeclaredMemoryType] = Field(default_factory=list, max_length=MAX_DECLARED_TYPES)
    entity_types: list[DeclaredEntityType] = Field(default_factory=list, max_length=MAX_DECLARED_TYPES)

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for types in (self.memory_types, self.entity_types):
            names = [declared.name for declared in types]
            if len(set(names)) < len(names):
                raise ValueError("declares a type twice")
        return self


class DeclaredTypes(DeclaredTypesIn):
    """The declared types of a tenant, with who set them and when; empty where there are none."""

    updated_at: datetime | None = None
    updated_by: str | None = None

    def find_memory_type(self, name: str) -> DeclaredMemoryType | None:
        """Return the declared memory type of a name, if any."""
        return next((declared for declared in self.memory_types if declared.name == normalise_type_name(name)), None)

    def find_entity_type(self, name: str | None) -> DeclaredEntityType | None:
        """Return the declared entity type of a name, if any."""
        return next((declared for declared in self.entity_types if declared.name == name), None)
