"""The OpenAPI description: what every guarded route can answer, said once."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from graphmem_api.problems import MEDIA_TYPE, FieldProblem, Problem

Responses = dict[int | str, dict[str, Any]]
"""Responses of a route by status, as FastAPI takes them."""

_COMMON_PROBLEMS = {
    401: "No valid key.",
    403: "The key's role or users do not reach this.",
    413: "The body is over the limit.",
    422: "The input cannot be used.",
    429: "Too many requests.",
    503: "A part the service stands on is away.",
}
_RETRY_AFTER = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}
_REQUEST_ID = {
    "name": "X-Request-ID",
    "in": "header",
    "required": False,
    "description": "Comes back in the answer and stands in every log line; made when absent.",
    "schema": {"type": "string"},
}
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same key and request again returns the first answer.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}


def openapi_problem(description: str, *, retry: bool = False) -> dict[str, Any]:
    """Return an OpenAPI response that is a problem document."""
    response: dict[str, Any] = {
        "description": description,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    return {**response, "headers": _RETRY_AFTER} if retry else response


def add_common_docs(path: str, options: dict[str, Any], *, is_write: bool) -> dict[str, Any]:
    """Return a route's options with the problems it can answer, its key and its headers added."""
    problems = dict(_COMMON_PROBLEMS)
    if "{" in path.replace("{user_id", ""):
        problems[404] = "Nothing of that id is this user's."
    if is_write:
        problems[404] = "Something the request names is not this user's."
        problems[409] = "The state, or the first use of the idempotency key, forbids it."
        problems[410] = "Past its retention, or erased."
    responses = {status: openapi_problem(text, retry=status in (429, 503)) for status, text in problems.items()}
    extra = dict(options.get("openapi_extra") or {})
    extra["security"] = [{"key": []}]
    extra["parameters"] = [_REQUEST_ID, *([_IDEMPOTENCY_KEY] if is_write else []), *extra.get("parameters", [])]
    return {**options, "responses": {**responses, **(options.get("responses") or {})}, "openapi_extra": extra}


def install_openapi(app: FastAPI) -> None:
    """Give the app a description with the parts that all routes share."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(
                title=app.title,
                version=app.version,
                summary=app.summary,
                description=app.description,
                routes=app.routes,
            )
            components = schema.setdefault("components", {})
            models = components.setdefault("schemas", {})
            models["FieldProblem"] = FieldProblem.model_json_schema()
            models["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
            models["Problem"].pop("$defs", None)
            components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
