"""HTTP requests of the API as values: the request to send and the parser of its response.

The functions take what the response becomes first, a model or a function that reads the response, then the path, and
the ids in the places of its `{}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel

from graphmem.runtime.errors import InvalidInput

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

ResponseParser = Callable[[httpx.Response], T]


@dataclass(frozen=True, slots=True)
class ApiCall(Generic[T]):
    """An HTTP request whose response is parsed as `T`.

    Every attempt of an `is_write` call is sent under the same idempotency key. A call that `waits_for_completion`
    waits for its response without a time limit.
    """

    method: str
    path: str
    parse: ResponseParser[T]
    params: Mapping[str, Any] = field(default_factory=dict)
    content: bytes | None = None
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    is_write: bool = False
    waits_for_completion: bool = False


def get(
    answer: Callable[..., T], path: str, *ids: str, query: BaseModel | None = None, waits: bool = False
) -> ApiCall[T]:
    """Return a read: the parameters that were given become the query string."""
    return ApiCall(
        "GET", _make_path(path, ids), _to_parser(answer), params=_to_query(query), waits_for_completion=waits
    )


def ask(answer: Callable[..., T], path: str, *ids: str, body: BaseModel, waits: bool = False) -> ApiCall[T]:
    """Return a read by POST: the parameters that were given become the body."""
    return ApiCall(
        "POST", _make_path(path, ids), _to_parser(answer), content=_to_body(body), waits_for_completion=waits
    )


def post(
    answer: Callable[..., T],
    path: str,
    *ids: str,
    body: BaseModel | None = None,
    query: BaseModel | None = None,
    waits: bool = False,
    method: str = "POST",
) -> ApiCall[T]:
    """Return a write; with the parameter `wait` it waits for completion too."""
    return ApiCall(
        method,
        _make_path(path, ids),
        _to_parser(answer),
        params=_to_query(query),
        content=_to_body(body),
        is_write=True,
        waits_for_completion=waits or getattr(body, "wait", False),
    )


def patch(answer: Callable[..., T], path: str, *ids: str, body: BaseModel, if_version: int | None) -> ApiCall[T]:
    """Return a correction, of one version only where a version is given."""
    headers = {} if if_version is None else {"If-Match": f'"{if_version}"'}
    return ApiCall(
        "PATCH", _make_path(path, ids), _to_parser(answer), content=_to_body(body), headers=headers, is_write=True
    )


def delete(
    answer: Callable[..., T],
    path: str,
    *ids: str,
    hard: bool = False,
    query: BaseModel | None = None,
    waits: bool = False,
) -> ApiCall[T]:
    """Return a deletion."""
    params = {"hard": "true"} if hard else _to_query(query)
    return ApiCall(
        "DELETE", _make_path(path, ids), _to_parser(answer), params=params, is_write=True, waits_for_completion=waits
    )


def upload(answer: Callable[..., T], path: str, *ids: str, document: bytes, query: BaseModel) -> ApiCall[T]:
    """Return a write whose body is a document, in JSON or in YAML."""
    return ApiCall(
        "POST",
        _make_path(path, ids),
        _to_parser(answer),
        params=_to_query(query),
        content=document,
        media_type="application/json" if document.lstrip().startswith((b"{", b"[")) else "application/yaml",
        is_write=True,
        waits_for_completion=True,
    )


def items_of(model: type[M]) -> ResponseParser[list[M]]:
    """Return a parser of the models listed under `items`."""
    return lambda response: [model.model_validate(item) for item in response.json()["items"]]


def nothing(_: httpx.Response) -> None:
    """Return None: the response has no content."""


def _to_parser(answer: Callable[..., T]) -> ResponseParser[T]:
    read_model = getattr(answer, "model_validate_json", None)
    return answer if read_model is None else lambda response: read_model(response.content)


def _to_query(parameters: BaseModel | None) -> dict[str, Any]:
    if parameters is None:
        return {}
    return parameters.model_dump(mode="json", exclude_unset=True, exclude_none=True)


def _to_body(parameters: BaseModel | None) -> bytes | None:
    return None if parameters is None else parameters.model_dump_json(exclude_unset=True).encode()


def _make_path(template: str, ids: tuple[str, ...]) -> str:
    """Return a path with ids in the places of `{}`; raise InvalidInput for an id that no path can hold."""
    return template.format(*map(_escape_id, ids))


def _escape_id(text: str) -> str:
    """Return an id percent-encoded as one segment; `.` and `..` too, which would change the path."""
    if not text:
        raise InvalidInput("An id must not be empty.")
    if not text.strip("."):
        return text.replace(".", "%2E")
    try:
        return quote(text, safe="")
    except UnicodeEncodeError as error:
        raise InvalidInput("An id must be text that UTF-8 can encode.") from error
