"""Errors as problem documents (RFC 9457): every failure leaves as `application/problem+json`, without what was sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from graphmem.errors import GraphmemError, NotFound, Unauthenticated
from graphmem.text.storable import replace_surrogates

MEDIA_TYPE = "application/problem+json"
_MAX_NAME_CHARS = 64


class FieldProblem(BaseModel):
    """Where in the request something is wrong, and what; of a conflict, also what is in the way."""

    loc: list[str | int]
    msg: str
    kind: str | None = None
    id: str | None = None
    memory_id: str | None = None
    fields: list[str] | None = None


class Problem(BaseModel):
    """A problem document."""

    type: str = Field(examples=["urn:graphmem:problem:not-found"])
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    instance: str
    errors: list[FieldProblem] | None = None


def make_problem_response(
    instance: str,
    status: int,
    title: str,
    detail: str,
    *,
    errors: Sequence[Mapping[str, Any]] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return a problem document as a response; `errors` holds `{loc, msg}` and what else tells of each."""
    document: dict[str, Any] = {
        "type": "urn:graphmem:problem:" + re.sub(r"[^a-z]+", "-", title.lower()).strip("-"),
        "title": title,
        "status": status,
        "detail": detail,
        "instance": instance,
    }
    if errors:
        document["errors"] = [{**each, "loc": _printable_location(each["loc"])} for each in errors]
    return JSONResponse(document, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def respond_to_error(request: Request, error: Exception) -> Response:
    """Return the problem document of an error a request may meet; raise any other again, as it is a fault of ours."""
    if isinstance(error, GraphmemError):
        return make_problem_response(
            _instance_path(request, hide_id=isinstance(error, NotFound)),
            error.status,
            error.title,
            error.detail,
            errors=error.errors,
            headers=_problem_headers(error),
        )
    if isinstance(error, RequestValidationError):
        errors = [{"loc": each["loc"], "msg": _field_message(each)} for each in error.errors()]
        return make_problem_response(
            _instance_path(request), 422, "Invalid input", "The request cannot be used: see `errors`.", errors=errors
        )
    if isinstance(error, HTTPException):
        title = HTTPStatus(error.status_code).phrase.capitalize()
        return make_problem_response(
            _instance_path(request), error.status_code, title, _http_error_detail(error), headers=error.headers
        )
    raise error


def add_exception_handlers(app: FastAPI) -> None:
    """Make every error of a known kind leave as a problem document."""
    for kind in (GraphmemError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, respond_to_error)


def _problem_headers(error: GraphmemError) -> dict[str, str]:
    headers = {}
    if error.retry_after is not None or error.status in (429, 503):
        headers["Retry-After"] = str(error.retry_after or 5)
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    return headers


def _instance_path(request: Request, *, hide_id: bool = False) -> str:
    """Return the path asked for; with `hide_id` up to the last id, so that all unknown ids answer alike."""
    path: str = request.scope["path"]
    route = request.scope.get("route")
    if hide_id and route is not None and "{" in route.path_format:
        depth = route.path_format[: route.path_format.rindex("{")].count("/")
        path = "/".join(path.split("/")[:depth])
    return quote(path, safe="/%:@!$&'()*+,;=-._~")


def _http_error_detail(error: HTTPException) -> str:
    if error.status_code == 404:
        return "There is no such route: see /docs."
    if error.status_code == 405:
        return "The route does not take this method: see /docs."
    return f"{HTTPStatus(error.status_code).phrase}."


def _field_message(error: Mapping[str, Any]) -> str:
    """Return what is wrong with a field, without the value; pydantic quotes it for unknown tags only."""
    if error["type"] == "union_tag_invalid":
        return f"must be one of {error['ctx']['expected_tags']}"
    return str(error["msg"]).removeprefix("Value error, ")


def _printable_location(parts: Iterable[str | int]) -> list[str | int]:
    """Return a location with names cut short and made printable: they can be the caller's own."""
    return [part if isinstance(part, int) else replace_surrogates(part[:_MAX_NAME_CHARS]) for part in parts]
