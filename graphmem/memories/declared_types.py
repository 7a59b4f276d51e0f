"""A tenant's own types of memories and entities, with their requirements. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from graphmem.memories.entity import EntityIn, EntityType
from graphmem.memories.memory import (
    DEFAULT_PREDICATES,
    MemoryIn,
    MemoryPatch,
    MemoryType,
    MemoryTypeInput,
    is_built_in_type,
    normalise_type_name,
)
from graphmem.runtime.field_types import Metadata, StorableText
from graphmem.runtime.validation import RequestBody

MAX_DECLARED_TYPES = 30
"""Maximum memory types, and entity types, that a tenant may declare; every extraction prompt lists them."""

MAX_DESCRIPTION_LENGTH = 300
"""Maximum length of a type's description, in characters."""

MAX_SCHEMA_LENGTH = 4000
"""Maximum length of the JSON Schema of a type's attributes, in characters."""

_REFUSED_KEYWORDS = frozenset({"$ref", "$dynamicRef", "$recursiveRef", "pattern", "patternProperties"})
"""Keywords that let a schema load other documents, recurse endlessly or take unlimited time to check."""


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
    """Yield the keywords of a schema and its parts, without property names."""
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
"""The name of a declared memory type, in any case."""

AttributeSchema = Annotated[Metadata, AfterValidator(_check_attribute_schema)]
"""A JSON Schema of an object whose properties are attributes."""


class _DeclaredType(RequestBody):
    description: StorableText = Field("", max_length=MAX_DESCRIPTION_LENGTH)
    attributes: AttributeSchema = Field(default_factory=dict, description="A JSON Schema (2020-12) of an object.")

    @property
    def attribute_types(self) -> dict[str, str]:
        """The JSON types of the schema's attributes, by name; `string` if the schema does not say."""
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
        """Return the declared memory type with this name, if any."""
        return next((declared for declared in self.memory_types if declared.name == normalise_type_name(name)), None)

    def find_entity_type(self, name: str | None) -> DeclaredEntityType | None:
        """Return the declared entity type with this name, if any."""
        return next((declared for declared in self.entity_types if declared.name == name), None)


# Requirements: known names, and attributes that fit their JSON Schema

HOW_TO_DECLARE = "an admin declares it with PUT /v1/admin/types or `graphmem types set`"
"""Next step for an unknown type."""

MAX_QUOTED_SCHEMA = 200
"""Maximum characters that an error quotes of the unsatisfied part of a schema."""

FieldPath = tuple[str | int, ...]


class UndeclaredType(ValueError):
    """A type is neither built in nor declared, or the attributes do not fit it; `path` leads to the field."""

    def __init__(self, path: Sequence[str | int], message: str) -> None:
        super().__init__(message)
        self.path = tuple(path)


def find_invalid_schemas(types: DeclaredTypesIn) -> Iterator[tuple[FieldPath, str]]:
    """Yield the attributes of declared types that are not a valid JSON Schema."""
    # Imported here and below: jsonschema takes 2.4 MB, and few tenants declare types.
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    for section, declared_types in (("memory_types", types.memory_types), ("entity_types", types.entity_types)):
        for index, declared in enumerate(declared_types):
            try:
                Draft202012Validator.check_schema(declared.attributes)
            except SchemaError as error:
                path = (section, index, "attributes", *error.absolute_path)
                yield path, f"is no JSON Schema: it does not satisfy {error.validator}"


def find_attribute_problem(
    declared: DeclaredMemoryType | DeclaredEntityType, attributes: Mapping[str, Any]
) -> str | None:
    """Return the problem with a type's attributes, without quoting them, or None if they fit."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

    error: ValidationError | None = next(Draft202012Validator(declared.attributes).iter_errors(dict(attributes)), None)
    if error is None:
        return None
    place = ".".join(map(str, error.absolute_path)) or "the object"
    if error.validator == "required":
        return f"{place} lacks {', '.join(name for name in error.validator_value if name not in error.instance)}"
    return f"{place} does not satisfy {error.validator}: {json.dumps(error.validator_value)[:MAX_QUOTED_SCHEMA]}"


def needs_declared_types(memory: MemoryIn) -> bool:
    """Return whether a memory has a type or attributes that require the tenant's declarations."""
    return memory.declared_type is not None or any(entity.attributes for _, entity in _named_entities(memory))


def resolve_memory(types: DeclaredTypes, memory: MemoryIn) -> MemoryIn:
    """Return a memory with its declared type's base type; raise UndeclaredType if it fits none."""
    for path, entity in _named_entities(memory):
        _check_entity(types, path, entity)
    if memory.declared_type is None:
        return memory
    declared = _require(types, memory.declared_type)
    if problem := find_attribute_problem(declared, memory.metadata):
        raise UndeclaredType(("metadata",), f"does not fit the type {declared.name}: {problem}")
    is_default = memory.predicate == DEFAULT_PREDICATES[memory.type]
    predicate = DEFAULT_PREDICATES[declared.base] if is_default else memory.predicate
    return memory.model_copy(update={"type": declared.base, "subtype": declared.name, "predicate": predicate})


def resolve_patch(types: DeclaredTypes, patch: MemoryPatch) -> MemoryPatch:
    """Return a correction with its declared type's base type; raise UndeclaredType if it fits none."""
    if patch.declared_type is None:
        return patch
    declared = _require(types, patch.declared_type)
    if patch.metadata is not None and (problem := find_attribute_problem(declared, patch.metadata)):
        raise UndeclaredType(("metadata",), f"does not fit the type {declared.name}: {problem}")
    return patch.model_copy(update={"type": declared.base, "subtype": declared.name})


def check_type_filter(types: DeclaredTypes, names: Iterable[str]) -> None:
    """Raise UndeclaredType for a type that is neither built in nor declared."""
    for name in names:
        if not is_built_in_type(name):
            _require(types, name)


def _require(types: DeclaredTypes, name: str) -> DeclaredMemoryType:
    if declared := types.find_memory_type(name):
        return declared
    known = ", ".join([*MemoryType, *(declared.name for declared in types.memory_types)])
    raise UndeclaredType(("type",), f"is not a memory type: use one of {known}, or declare it first ({HOW_TO_DECLARE})")


def _check_entity(types: DeclaredTypes, path: FieldPath, entity: EntityIn) -> None:
    if not entity.attributes:
        return
    declared = types.find_entity_type(entity.type)
    if declared is None:
        raise UndeclaredType(
            (*path, "type"), f"is not a declared entity type, which attributes require: {HOW_TO_DECLARE}"
        )
    if problem := find_attribute_problem(declared, entity.attributes):
        raise UndeclaredType((*path, "attributes"), f"do not fit the type {declared.name}: {problem}")


def _named_entities(memory: MemoryIn) -> Iterator[tuple[FieldPath, EntityIn]]:
    if memory.subject:
        yield ("subject",), memory.subject
    if memory.object:
        yield ("object",), memory.object
    for index, entity in enumerate(memory.entities):
        yield ("entities", index), entity
