"""The OpenAPI document: parts common to all routes, problem schemas, field descriptions and examples.

The texts are data in `documentation/`: `fields.toml` describes fields by name, `examples.json` has an example request
and response for each operation.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from graphmem.runtime.errors import GraphmemError
from graphmem.runtime.validation import PROBLEM_MEDIA_TYPE, FieldProblem, Problem, problem_type
from graphmem.tenants.owners import MAX_USER_ID_LENGTH
from graphmem_api import headers
from graphmem_api.problems import protocol_prefix

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
    ("BehaviorPattern", "source_kind"),
    ("ContextItem", "source_kind"),
    ("LearnedPreference", "source_kind"),
    ("Space", "source_kind"),
    ("Citation", "space"),
    ("SpaceMember", "user"),
    ("SpaceMember", "key"),
}
"""Fields, by schema, that responses omit if they have no value."""


def titled_errors() -> Iterator[type[GraphmemError]]:
    """Yield the errors with their own title, sorted by status: each is a problem type."""
    errors = [error for error in _subclasses(GraphmemError) if "title" in vars(error)]
    yield from sorted(errors, key=lambda error: error.status)


def problem_schema(status: int) -> dict[str, Any]:
    """Return the schema of problems with a status."""
    return _any_of([error for error in titled_errors() if error.status == status])


def add_problem_schemas(schemas: dict[str, Any]) -> None:
    """Add a schema for each problem type, and `Problem` for any of them, with `type` as discriminator."""
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
    """Mark all fields of models used only in successful responses as required, since all of them are sent."""
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
    """Return the names of the schemas that a part of the document refers to, directly or indirectly."""
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


DOCUMENTATION_FOLDER = Path(__file__).parent / "documentation"

TAGS = [
    {"name": "memories", "description": "Statements and their versions: save, list, correct, end, revert."},
    {"name": "search", "description": "Find memories and messages by meaning, keywords and graph."},
    {"name": "entities", "description": "People, places and things: look up names, walk the graph."},
    {"name": "messages", "description": "Conversations, from which memories are extracted, and their sessions."},
    {"name": "context", "description": "Text for the model's prompt, and what was learned about the user."},
    {"name": "chats", "description": "Model calls in the providers' protocols, forwarded with memory."},
    {"name": "jobs", "description": "Background work: extraction, summaries, imports."},
    {"name": "user data", "description": "All data of a user: export, import, erase."},
    {"name": "spaces", "description": "Memories that users and keys of the tenant share, and their members."},
    {"name": "consolidation", "description": "Nightly and curated runs, their rollback, and maintenance (admin)."},
    {"name": "keys", "description": "API keys of the tenant (admin)."},
    {"name": "admin", "description": "Settings of the tenant (admin)."},
    {"name": "health", "description": "Liveness, readiness and metrics."},
]
"""Tags of operations, in the order of `/docs`."""

SERVERS = [{"url": "/", "description": "The server of this document."}]

_INTRODUCTION = """\
Bi-temporal memories in a graph: save, extract, search, look back in time, undo.

Send `Authorization: Bearer <key>`. A write with an `Idempotency-Key` can be repeated safely. Times are RFC 3339 with an
offset; null bounds are open. **Valid time** says when a statement is true in the world, **known time** when graphmem
believed it.

Errors are problem documents (RFC 9457):

| type | status | means |
|---|---|---|
"""


def make_description() -> str:
    """Return the description of the API, with the list of problem types."""
    rows = [f"| `{problem_type(error.title)}` | {error.status} | {_first_line(error)} |" for error in titled_errors()]
    return _INTRODUCTION + "\n".join(rows)


def make_operation_id(route: APIRoute) -> str:
    """Return a stable id for an operation without an explicit one: its tag and the name of its function."""
    tag = str(route.tags[0]).replace(" ", "_") if route.tags else ""
    name = {"page": "list"}.get(route.name, route.name).strip("_")
    return f"{tag}_{name}" if tag else name


def add_texts(document: dict[str, Any]) -> None:
    """Describe fields and parameters without a description, and add the examples of operations."""
    texts = _read_field_texts()
    for schema, model in document["components"]["schemas"].items():
        for name, field in model.get("properties", {}).items():
            _describe(field, texts, schema, name)
    for methods in document["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", []):
                _describe(parameter, texts, "", parameter["name"])
            _add_examples(operation)


def _describe(field: dict[str, Any], texts: dict[str, dict[str, str]], schema: str, name: str) -> None:
    text = texts.get(schema, {}).get(name) or texts["any"].get(name)
    if text and not field.get("description"):
        field["description"] = text


def _add_examples(operation: dict[str, Any]) -> None:
    example = _read_examples().get(operation["operationId"], {})
    if "request" in example and "requestBody" in operation:
        _json_content(operation["requestBody"])["example"] = example["request"]
    if "response" in example:
        responses = operation["responses"]
        status = example.get("status") or next(status for status in responses if status.startswith("2"))
        _json_content(responses[str(status)])["example"] = example["response"]
    for parameter in operation.get("parameters", []):
        if parameter["name"] in example.get("parameters", {}):
            parameter["example"] = example["parameters"][parameter["name"]]


def _json_content(body: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = body["content"]
    return next(iter(content.values())) if "application/json" not in content else content["application/json"]


@cache
def _read_field_texts() -> dict[str, dict[str, str]]:
    return tomllib.loads((DOCUMENTATION_FOLDER / "fields.toml").read_text("utf-8"))


@cache
def _read_examples() -> dict[str, dict[str, Any]]:
    examples: dict[str, dict[str, Any]] = json.loads((DOCUMENTATION_FOLDER / "examples.json").read_text("utf-8"))
    return examples


def _first_line(error: type[GraphmemError]) -> str:
    return (error.__doc__ or "").strip().splitlines()[0]


Responses = dict[int | str, dict[str, Any]]
"""Responses of a route by status, in FastAPI's form."""

UNAVAILABLE_DESCRIPTION = "A dependency is unavailable."
RETRYABLE_STATUSES = (409, 429, 503)
"""Statuses of responses that may have a `Retry-After` header."""

_COMMON_PROBLEMS = {
    401: "No valid key.",
    403: "The key's role or users do not permit this.",
    408: "The body did not arrive in time.",
    413: "The body is larger than the limit.",
    422: "The input cannot be used.",
    429: "Too many requests.",
    503: UNAVAILABLE_DESCRIPTION,
}
_PROTOCOL_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type"],
            "properties": {"message": {"type": "string"}, "type": {"type": "string"}},
        }
    },
}
_RETRY_AFTER = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
_USER_ID = {
    "name": "user_id",
    "in": "path",
    "required": True,
    "description": "Id of the user, chosen by the caller.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_USER_ID_LENGTH},
    "example": "ada",
}
_REQUEST_ID = {
    "name": headers.REQUEST_ID,
    "in": "header",
    "required": False,
    "description": "Returned in the response and written to every log line; generated by default.",
    "schema": {"type": "string"},
}
_IDEMPOTENCY_KEY = {
    "name": headers.IDEMPOTENCY_KEY,
    "in": "header",
    "required": False,
    "description": "A repeated request with the same key returns the first response.",
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": headers.IDEMPOTENCY_KEY_MAX_LENGTH,
        "pattern": headers.IDEMPOTENCY_KEY_PATTERN,
    },
}


def openapi_problem(status: int, description: str) -> dict[str, Any]:
    """Return the OpenAPI description of a response that is a problem document."""
    response: dict[str, Any] = {
        "description": description,
        "content": {PROBLEM_MEDIA_TYPE: {"schema": problem_schema(status)}},
    }
    return {**response, "headers": _RETRY_AFTER} if status in RETRYABLE_STATUSES else response


def add_common_docs(path: str, options: dict[str, Any], *, is_write: bool) -> dict[str, Any]:
    """Return a route's options with the common problems, the security scheme and the common headers added."""
    problems = dict(_COMMON_PROBLEMS)
    if "{" in path:
        problems[404] = "The user has nothing with that id, or no right to a space."
    if is_write:
        problems[404] = "The request names something that the user does not have."
        problems[409] = (
            "The current state, or the first use of the idempotency key, forbids it; with `Retry-After`, the user is "
            "being forgotten."
        )
        problems[410] = "Past its retention, or erased."
    responses = {status: openapi_problem(status, text) for status, text in problems.items()}
    extra = dict(options.get("openapi_extra") or {})
    extra["security"] = [{"key": []}]
    extra["parameters"] = [
        *([_USER_ID] if "{user_id" in path else []),
        _REQUEST_ID,
        *([_IDEMPOTENCY_KEY] if is_write else []),
        *extra.get("parameters", []),
    ]
    return {**options, "responses": {**responses, **(options.get("responses") or {})}, "openapi_extra": extra}


def _describe_protocol_errors(paths: dict[str, Any]) -> None:
    """Describe the errors of routes below `/openai` and `/anthropic`, which use these protocols' format."""
    for path, operations in paths.items():
        if protocol_prefix(path):
            for operation in operations.values():
                for response in operation["responses"].values():
                    if PROBLEM_MEDIA_TYPE in response.get("content", {}):
                        response["content"] = {"application/json": {"schema": _PROTOCOL_ERROR}}


def install_openapi(app: FastAPI) -> None:
    """Add the common schemas and the security scheme to an application's OpenAPI document."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(
                title=app.title,
                version=app.version,
                summary=app.summary,
                description=app.description,
                routes=app.routes,
                servers=app.servers,
                tags=app.openapi_tags,
            )
            components = schema.setdefault("components", {})
            add_problem_schemas(components.setdefault("schemas", {}))
            require_sent_fields(schema)
            _describe_protocol_errors(schema["paths"])
            components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
            add_texts(schema)
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # pyrefly: ignore[method-assign] - as FastAPI documents it
