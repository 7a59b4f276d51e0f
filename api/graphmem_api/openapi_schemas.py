"""Schemas of the OpenAPI document from which clients generate exact types: one for each problem, and what is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphmem.runtime.errors import GraphmemError
from graphmem.runtime.validation import FieldProblem, Problem, problem_type

_SCHEMAS = "#/components/schemas/"
_SOMETIMES_SENT = {
    ("SearchHit", "explain"),
    ("MemorySource", "speaker"),
    ("MemorySource", "trusted_as"),
    ("Message", "sent_as"),
    ("MessagesAccepted", "skipped"),
    ("Memory", "derived_from"),
    ("MemoryVersion", "derived_from"),
    ("ContextResponse", "profiles"),
    ("ApiKey", "spaces"),
    ("ApiKey", "source_kind"),
    ("CreatedApiKey", "spaces"),
    ("CreatedApiKey", "source_kind"),
    ("Citation", "space"),
    ("SpaceMember", "user"),
    ("SpaceMember", "key"),
}
"""Fields, by schema, that responses leave out where there is nothing to say."""


def titled_errors() -> Iterator[type[GraphmemError]]:
    """Yield the errors with a title of their own, by status: each is one type of problem."""
    errors = [error for error in _subclasses(GraphmemError) if "title" in vars(error)]
    yield from sorted(errors, key=lambda error: error.status)


def problem_schema(status: int) -> dict[str, Any]:
    """Return the schema of the problems with a status."""
    return _any_of([error for error in titled_errors() if error.status == status])


def add_problem_schemas(schemas: dict[str, Any]) -> None:
    """Add `Problem`, any problem, and a schema for each type, by which `type` tells them apart."""
    every: list[type[GraphmemError]] = [*titled_errors(), GraphmemError]
    base = Problem.model_json_schema(ref_template=_SCHEMAS + "{model}")
    schemas["FieldProblem"] = FieldProblem.model_json_schema()
    schemas["Problem"] = {"title": "Problem", "description": base["description"], **_any_of(every)}
    for error in every:
        told_apart = {"type": problem_type(error.title), "title": error.title, "status": error.status}
        properties = {
            name: {**field, "const": told_apart[name]} if name in told_apart else field
            for name, field in base["properties"].items()
        }
        schemas[_schema_name(error)] = {
            "title": _schema_name(error),
            "description": (error.__doc__ or "").strip().splitlines()[0],
            "type": "object",
            "properties": properties,
            "required": base["required"],
        }


def require_sent_fields(document: dict[str, Any]) -> None:
    """Mark every field of the models that only successful responses hold as required: they are sent with all fields."""
    schemas = document["components"]["schemas"]
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    received = _schemas_in([[o.get("requestBody"), o.get("parameters")] for o in operations], schemas)
    answers = [answer for o in operations for status, answer in o["responses"].items() if status.startswith("2")]
    for name in _schemas_in(answers, schemas) - received:
        if fields := [field for field in schemas[name].get("properties", {}) if (name, field) not in _SOMETIMES_SENT]:
            schemas[name]["required"] = fields


def _any_of(errors: list[type[GraphmemError]]) -> dict[str, Any]:
    if len(errors) == 1:
        return {"$ref": _SCHEMAS + _schema_name(errors[0])}
    references = {problem_type(error.title): _SCHEMAS + _schema_name(error) for error in errors}
    return {
        "oneOf": [{"$ref": reference} for reference in references.values()],
        "discriminator": {"propertyName": "type", "mapping": references},
    }


def _schema_name(error: type[GraphmemError]) -> str:
    return ("InternalError" if error is GraphmemError else error.__name__) + "Problem"


def _schemas_in(part: Any, schemas: dict[str, Any]) -> set[str]:
    """Return the names of the schemas that a part of the document refers to, directly or through others."""
    found: set[str] = set()
    parts = [part]
    while parts:
        part = parts.pop()
        if isinstance(part, list):
            parts += part
        elif isinstance(part, dict):
            name = str(part.get("$ref", "")).removeprefix(_SCHEMAS)
            if name in schemas and name not in found:
                found.add(name)
                parts.append(schemas[name])
            parts += part.values()
    return found


def _subclasses(error: type[GraphmemError]) -> Iterator[type[GraphmemError]]:
    for child in error.__subclasses__():
        yield child
        yield from _subclasses(child)
