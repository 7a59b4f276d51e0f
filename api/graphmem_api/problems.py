"""Converting exceptions of a request to problem documents, without ever quoting the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from graphmem.runtime.errors import GraphmemError, InvalidInput, NotFound
from graphmem.runtime.validation import (
    MAX_REPORTED_ERRORS,
    PROBLEM_MEDIA_TYPE,
    count_errors,
    problem_document,
    problem_headers,
    to_field_errors,
)

OPENAI_PREFIX, ANTHROPIC_PREFIX = "/openai", "/anthropic"
"""Path prefixes below which errors use a provider's format, which its clients print."""

_ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}
"""Error types of both protocols by status."""

_BASE_URLS = {
    OPENAI_PREFIX: "There is no such route: the base URL of OpenAI clients ends with /openai/v1.",
    ANTHROPIC_PREFIX: "There is no such route: the base URL of Anthropic clients ends with /anthropic.",
}

_CALLED_PATHS = {
    **dict.fromkeys(("/chat/completions", "/responses", "/embeddings", "/models"), OPENAI_PREFIX),
    "/messages": ANTHROPIC_PREFIX,
}
"""Paths called by provider clients whose base URL lacks the prefix, at the root or below /v1."""

_WITH_PATH = "There is no such route: the server's address has no path such as /v1."
"""The detail for a client whose base URL already contains the version."""

_DETAIL_BY_STATUS = {
    404: "There is no such route: see /docs.",
    405: "The route does not support this method: see /docs.",
}


def make_problem_response(
    path: str,
    status: int,
    title: str,
    detail: str,
    *,
    errors: Sequence[Mapping[str, Any]] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return a problem document for a request to `path`, or an error in the format of that path's protocol."""
    document = problem_document(path, status, title, detail, errors)
    if prefix := protocol_prefix(path):
        return JSONResponse(_protocol_error(prefix, document), status, headers=dict(headers or {}))
    return JSONResponse(document, status, headers=dict(headers or {}), media_type=PROBLEM_MEDIA_TYPE)


def protocol_prefix(path: str) -> str | None:
    """Return the prefix of a path whose errors use a provider's format; None for any other path."""
    below = (prefix for prefix in _BASE_URLS if path == prefix or path.startswith(f"{prefix}/"))
    return next(below, _CALLED_PATHS.get(path.removeprefix("/v1")))


def _protocol_error(prefix: str, problem: Mapping[str, Any]) -> dict[str, Any]:
    """Return a problem as an error of OpenAI's or Anthropic's API, with all details in its message."""
    status = problem["status"]
    places = (
        f"{' '.join(str(part) for part in error['loc'])} {error['msg']}".strip() for error in problem.get("errors", ())
    )
    message = " ".join([problem["detail"], *(f"({place})" for place in places)])
    if prefix == ANTHROPIC_PREFIX:
        kind = _ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}
    kind = _ERROR_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    code = problem["title"].lower().replace(" ", "_")
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def respond_to_error(request: Request, error: Exception) -> Response:
    """Return the problem document of an expected error; raise any other error."""
    if isinstance(error, RequestValidationError):
        details = error.errors()
        errors = [
            field_error
            for detail in details[:MAX_REPORTED_ERRORS]
            for field_error in to_field_errors(
                [{**detail, "loc": detail["loc"][1:]}], detail["loc"][:1], _model_of(request, detail["loc"][:1])
            )
        ]
        more = count_errors(len(details))
        error = InvalidInput(f"The request cannot be used: see the list of errors.{more}", errors=errors)
    if isinstance(error, GraphmemError):
        return make_problem_response(
            _path_of(request, hide_id=isinstance(error, NotFound)),
            error.status,
            error.title,
            error.detail,
            errors=error.errors,
            headers=problem_headers(error),
        )
    if isinstance(error, HTTPException):
        phrase = HTTPStatus(error.status_code).phrase
        detail = _DETAIL_BY_STATUS.get(error.status_code, f"{phrase}.")
        if error.status_code == HTTPStatus.NOT_FOUND:
            path = request.scope["path"]
            detail = _WITH_PATH if "/v1/" in path[1:] else detail
            detail = _BASE_URLS.get(protocol_prefix(path) or "", detail)
        return make_problem_response(
            _path_of(request), error.status_code, phrase.capitalize(), detail, headers=error.headers
        )
    raise error


def add_exception_handlers(app: FastAPI) -> None:
    """Make an application answer expected errors with problem documents."""
    for kind in (GraphmemError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, respond_to_error)


def _model_of(request: Request, place: Sequence[str | int]) -> object:
    """Return the model of a route's body, or of another part of the request such as the query string."""
    dependant = getattr(request.scope.get("route"), "dependant", None)
    parameters = {"body": "body_params", "query": "query_params"}.get("".join(map(str, place)))
    fields = getattr(dependant, parameters, []) if parameters else []
    return fields[0].field_info.annotation if len(fields) == 1 else None


def _path_of(request: Request, *, hide_id: bool = False) -> str:
    """Return the path of a request; `hide_id` cuts off its last id, so that unknown ids get equal responses."""
    path: str = request.scope["path"]
    route = request.scope.get("route")
    if hide_id and route is not None and "{" in route.path_format:
        depth = route.path_format[: route.path_format.rindex("{")].count("/")
        path = "/".join(path.split("/")[:depth])
    return path
