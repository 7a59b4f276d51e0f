"""Answers that are errors, as errors of graphmem."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx

from graphmem.errors import GraphmemError, Unavailable

UNAVAILABLE_STATUSES = frozenset({502, 503, 504})
"""Statuses of a service, or of a proxy before it, that cannot answer just now."""


def error_from_response(answer: httpx.Response) -> GraphmemError:
    """Return the error an answer stands for, by its title and status; of several alike the most general."""
    problem = _problem_document(answer)
    kinds = list(_error_classes(GraphmemError))
    alike = [kind for kind in kinds if kind.status == answer.status_code]
    titled = [kind for kind in alike if kind.title == problem.get("title")]
    general = Unavailable if answer.status_code in UNAVAILABLE_STATUSES else GraphmemError
    kind = next(iter([*titled, *alike, general]))
    error = kind(str(problem.get("detail") or f"The server answered {answer.status_code} {answer.reason_phrase}."))
    error.retry_after = _parse_retry_after(answer.headers.get("Retry-After"))
    listed = problem.get("errors")
    error.errors = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return error


def _problem_document(answer: httpx.Response) -> dict[str, Any]:
    try:
        read = answer.json()
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _error_classes(kind: type[GraphmemError]) -> Iterator[type[GraphmemError]]:
    """Yield an error and those below it, the general before the special."""
    yield kind
    for below in kind.__subclasses__():
        yield from _error_classes(below)


def _parse_retry_after(header: str | None) -> int | None:
    return int(header) if header and header.isdecimal() else None
