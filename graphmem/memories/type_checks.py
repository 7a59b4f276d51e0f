"""What declared types demand: known names, and attributes that fit their JSON Schema. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from graphmem.memories.declared_types import (
    DeclaredEntityType,
    DeclaredMemoryType,
    DeclaredTypes,
    DeclaredTypesIn,
)
from graphmem.memories.entity import EntityIn
from graphmem.memories.memory import (
    DEFAULT_PREDICATES,
    MemoryIn,
    MemoryPatch,
    MemoryType,
    is_built_in_type,
)

HOW_TO_DECLARE = "an admin declares it with PUT /v1/admin/types or `graphmem types set`"
"""What to do about a type that is not known."""

MAX_QUOTED_SCHEMA = 200
"""Characters that an error quotes of the part of a schema that is not satisfied."""

FieldPath = tuple[str | int, ...]


class UndeclaredType(ValueError):
    """A type is neither graphmem's nor declared, or the attributes do not fit it; `path` leads to the field."""

    def __init__(self, path: Sequence[str | int], message: str) -> None:
        super().__init__(message)
        self.path = tuple(path)


def find_invalid_schemas(types: DeclaredTypesIn) -> Iterator[tuple[FieldPath, str]]:
    """Yield the attributes of declared types that are no JSON Schema."""
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
    """Return what is wrong with the attributes of a type, in words that do not quote them; None when they fit."""
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
    """Return whether a memory has a type or attributes that only the tenant's declarations explain."""
    return memory.declared_type is not None or any(entity.attributes for _, entity in _named_entities(memory))


def resolve_memory(types: DeclaredTypes, memory: MemoryIn) -> MemoryIn:
    """Return a memory with the type that its declared type is based on; raise UndeclaredType where it fits none."""
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
    """Return a correction with the type that its declared type is based on; raise UndeclaredType where it fits none."""
    if patch.declared_type is None:
        return patch
    declared = _require(types, patch.declared_type)
    if patch.metadata is not None and (problem := find_attribute_problem(declared, patch.metadata)):
        raise UndeclaredType(("metadata",), f"does not fit the type {declared.name}: {problem}")
    return patch.model_copy(update={"type": declared.base, "subtype": declared.name})


def check_type_filter(types: DeclaredTypes, names: Iterable[str]) -> None:
    """Raise UndeclaredType for a type that is neither graphmem's nor declared."""
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
