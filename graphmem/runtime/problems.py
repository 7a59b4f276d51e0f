"""Problem documents (RFC 9457): the form in which errors leave over HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, Field

from graphmem.runtime.errors import GraphmemError, RequestTimeout, Unauthenticated
from graphmem.text.storable import replace_surrogates

PROBLEM_MEDIA_TYPE = "application/problem+json"

DEFAULT_RETRY_AFTER_SECONDS = 5
"""Seconds in the `Retry-After` of errors that may pass and name no time themselves."""

_MAX_NAME_CHARS = 64


class FieldProblem(BaseModel):
    """The location of a problem in the request and its description; for a conflict also the conflicting element."""

    loc: list[str | int]
    msg: str
    kind: str | None = None
    id: str | None = None
    memory_id: str | None = None
    fields: list[str] | None = None


class Problem(BaseModel):
    """A problem document."""

    type: str = Field(description="URN of the problem: the list is in the description of the API.")
    title: str = Field(description="The problem in a few words; the same for every problem of the type.")
    status: int = Field(ge=400, le=599, description="The HTTP status.")
    detail: str
    instance: str
    errors: list[FieldProblem] | None = None


def problem_type(title: str) -> str:
    """Return the URN of the problems with a title."""
    return "urn:graphmem:problem:" + re.sub(r"[^a-z]+", "-", title.lower()).strip("-")


def problem_document(
    path: str, status: int, title: str, detail: str, errors: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Return the problem document of a request to `path`; each of `errors` has at least `loc` and `msg`."""
    document: dict[str, Any] = {
        "type": problem_type(title),
        "title": title,
        "status": status,
        "detail": detail,
        "instance": quote(path, safe="/%:@!$&'()*+,;=-._~"),
    }
    if errors:
        document["errors"] = [{**error, "loc": _printable_location(error["loc"])} for error in errors]
    return document


def problem_headers(error: GraphmemError) -> dict[str, str]:
    """Return the response headers that belong to an error."""
    headers = {}
    if error.retry_after is not None or error.status in (429, 503):
        headers["Retry-After"] = str(error.retry_after or DEFAULT_RETRY_AFTER_SECONDS)
    if isinstance(error, RequestTimeout):
        headers["Connection"] = "close"
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    return headers


def _printable_location(parts: Iterable[str | int]) -> list[str | int]:
    """Return a location whose names, which callers may have chosen, are cut short and encodable."""
    return [part if isinstance(part, int) else replace_surrogates(part[:_MAX_NAME_CHARS]) for part in parts]
