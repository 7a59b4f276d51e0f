"""Error responses of the HTTP API as the errors of graphmem."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx

from graphmem.runtime.errors import GraphmemError, Unavailable

UNAVAILABLE_STATUSES = frozenset({502, 503, 504})
"""Statuses of a service, or of a proxy before it, that may succeed later."""


def error_from_response(response: httpx.Response) -> GraphmemError:
    """Return the error that a response stands for: of the classes with its status the one with its title."""
    problem = _problem_document(response)
    matching = [kind for kind in _error_classes(GraphmemError) if kind.status == response.status_code]
    titled = [kind for kind in matching if kind.title == problem.get("title")]
    fallback = Unavailable if response.status_code in UNAVAILABLE_STATUSES else GraphmemError
    kind = [*titled, *matching, fallback][0]
    detail = problem.get("detail") or f"The server answered {response.status_code} {response.reason_phrase}."
    error = kind(str(detail))
    error.retry_after = _parse_retry_after(response.headers.get("Retry-After"))
    errors = problem.get("errors")
    error.errors = [item for item in errors if isinstance(item, dict)] if isinstance(errors, list) else []
    return error


def _problem_document(response: httpx.Response) -> dict[str, Any]:
    try:
        document = response.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _error_classes(kind: type[GraphmemError]) -> Iterator[type[GraphmemError]]:
    """Yield an error class and its subclasses, the general ones first."""
    yield kind
    for subclass in kind.__subclasses__():
        yield from _error_classes(subclass)


def _parse_retry_after(header: str | None) -> int | None:
    return int(header) if header and header.isdecimal() else None
