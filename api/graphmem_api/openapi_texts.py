"""The texts of the OpenAPI document: what fields, tags and problems mean, and examples of every operation.

They are data in `documentation/`: `fields.toml` describes fields by name, `examples.json` holds an example of the
request and of the response of each operation.
"""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from fastapi.routing import APIRoute

from graphmem.runtime.errors import GraphmemError
from graphmem.runtime.validation import problem_type
from graphmem_api.openapi_schemas import titled_errors

DOCUMENTATION_FOLDER = Path(__file__).parent / "documentation"

TAGS = [
    {"name": "memories", "description": "Statements and their versions: save, list, correct, end, revert."},
    {"name": "search", "description": "Find memories and messages by meaning, keywords and graph."},
    {"name": "entities", "description": "People, places and things: look up names, walk the graph."},
    {"name": "messages", "description": "Conversations, from which memories are extracted, and their sessions."},
    {"name": "context", "description": "The text for the model's prompt, and what was learned about the user."},
    {"name": "chats", "description": "Calls of models in the protocols of their providers, passed on with memory."},
    {"name": "jobs", "description": "Background work: extraction, summaries, imports."},
    {"name": "user data", "description": "Everything of a user: export, import, erase."},
    {"name": "spaces", "description": "Memories that users and keys of the tenant share, and their members."},
    {"name": "consolidation", "description": "Nightly and curated runs, their rollback, and maintenance (admin)."},
    {"name": "keys", "description": "API keys of the tenant (admin)."},
    {"name": "admin", "description": "Settings of the tenant (admin)."},
    {"name": "health", "description": "Liveness, readiness and metrics."},
]
"""The tags of operations, in the order in which `/docs` shows them."""

SERVERS = [{"url": "/", "description": "The server of this document."}]

_INTRODUCTION = """\
Bi-temporal memories in a graph: save, extract, search, look back in time, undo.

Send `Authorization: Bearer <key>`. A write with an `Idempotency-Key` can be repeated safely. Times are RFC 3339 with an
offset; null bounds are open. **Valid time** says when a statement holds in the world, **known time** when graphmem
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
    """Return the stable id of an operation without one of its own: its tag and the name of its function."""
    tag = str(route.tags[0]).replace(" ", "_") if route.tags else ""
    name = {"page": "list"}.get(route.name, route.name).strip("_")
    return f"{tag}_{name}" if tag else name


def add_texts(document: dict[str, Any]) -> None:
    """Describe the fields and parameters that have no description, and add the examples of operations."""
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
