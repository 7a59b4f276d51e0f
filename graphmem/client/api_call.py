"""HTTP requests of the API as values: the request to send and the parser of its response."""

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


def make_path(template: str, *ids: str) -> str:
    """Return a path with ids in the places of `{}`; raise InvalidInput for an id that no path can hold."""
    return template.format(*map(_escape_id, ids))


def get(path: str, parse: ResponseParser[T], query: BaseModel | None = None, *, waits: bool = False) -> ApiCall[T]:
    """Return a read: the parameters that were given become the query string."""
    return ApiCall("GET", path, parse, params=_to_query(query), waits_for_completion=waits)


def ask(path: str, parse: ResponseParser[T], body: BaseModel, *, waits: bool = False) -> ApiCall[T]:
    """Return a read by POST: the parameters that were given become the body."""
    return ApiCall("POST", path, parse, content=_to_body(body), waits_for_completion=waits)


def post(
    path: str,
    parse: ResponseParser[T],
    body: BaseModel | None = None,
    *,
    query: BaseModel | None = None,
    waits: bool = False,
    method: str = "POST",
) -> ApiCall[T]:
    """Return a write; with the parameter `wait` it waits for completion too."""
    return ApiCall(
        method,
        path,
        parse,
        params=_to_query(query),
        content=_to_body(body),
        is_write=True,
        waits_for_completion=waits or getattr(body, "wait", False),
    )


def patch(path: str, parse: ResponseParser[T], body: BaseModel, if_version: int | None) -> ApiCall[T]:
    """Return a correction, of one version only where a version is given."""
    headers = {} if if_version is None else {"If-Match": f'"{if_version}"'}
    return ApiCall("PATCH", path, parse, content=_to_body(body), headers=headers, is_write=True)


def remove(
    path: str,
    parse: ResponseParser[T],
    *,
    hard: bool = False,
    query: BaseModel | None = None,
    waits: bool = False,
) -> ApiCall[T]:
    """Return a deletion."""
    params = {"hard": "true"} if hard else _to_query(query)
    return ApiCall("DELETE", path, parse, params=params, is_write=True, waits_for_completion=waits)


def upload(path: str, parse: ResponseParser[T], document: bytes, query: BaseModel) -> ApiCall[T]:
    """Return a write whose body is a document, in JSON or in YAML."""
    return ApiCall(
        "POST",
        path,
        parse,
        params=_to_query(query),
        content=document,
        media_type="application/json" if document.lstrip().startswith((b"{", b"[")) else "application/yaml",
        is_write=True,
        waits_for_completion=True,
    )


def parse_model(model: type[M]) -> ResponseParser[M]:
    """Return a parser of a response that is a model."""
    return lambda response: model.model_validate_json(response.content)


def parse_items(model: type[M]) -> ResponseParser[list[M]]:
    """Return a parser of the models listed under `items`."""
    return lambda response: [model.model_validate(item) for item in response.json()["items"]]


def parse_object(response: httpx.Response) -> dict[str, Any]:
    """Return a response that is a JSON object."""
    return dict(response.json())


def parse_bytes(response: httpx.Response) -> bytes:
    """Return the bytes of a response."""
    return response.content


def parse_nothing(_: httpx.Response) -> None:
    """Return None: the response has no content."""


def _to_query(parameters: BaseModel | None) -> dict[str, Any]:
    if parameters is None:
        return {}
    return parameters.model_dump(mode="json", exclude_unset=True, exclude_none=True)


def _to_body(parameters: BaseModel | None) -> bytes | None:
    return None if parameters is None else parameters.model_dump_json(exclude_unset=True).encode()


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
