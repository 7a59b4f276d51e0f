"""The OpenAPI document: problems and headers that all authenticated routes share."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from graphmem.runtime.validation import PROBLEM_MEDIA_TYPE
from graphmem.tenants.owners import MAX_USER_ID_LENGTH
from graphmem_api import headers
from graphmem_api.openapi_schemas import add_problem_schemas, problem_schema, require_sent_fields
from graphmem_api.openapi_texts import add_texts
from graphmem_api.problems import protocol_prefix

Responses = dict[int | str, dict[str, Any]]
"""Responses of a route by status, as FastAPI takes them."""

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
    "description": "Whose memory it is: an id of the caller's own.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_USER_ID_LENGTH},
    "example": "ada",
}
_REQUEST_ID = {
    "name": headers.REQUEST_ID,
    "in": "header",
    "required": False,
    "description": "Returned in the response and written to every log line; generated when absent.",
    "schema": {"type": "string"},
}
_IDEMPOTENCY_KEY = {
    "name": headers.IDEMPOTENCY_KEY,
    "in": "header",
    "required": False,
    "description": "The same key and request again returns the first response.",
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
    """Return the options of a route with the shared problems, the security scheme and the shared headers added."""
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
    """Describe the errors of routes below `/openai` and `/anthropic`, which have the shape of these protocols."""
    for path, operations in paths.items():
        if protocol_prefix(path):
            for operation in operations.values():
                for response in operation["responses"].values():
                    if PROBLEM_MEDIA_TYPE in response.get("content", {}):
                        response["content"] = {"application/json": {"schema": _PROTOCOL_ERROR}}


def install_openapi(app: FastAPI) -> None:
    """Add the shared schemas and the security scheme to the OpenAPI document of an application."""

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

    app.openapi = openapi  # type: ignore[method-assign]
