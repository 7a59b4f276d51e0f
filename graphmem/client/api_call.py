"""HTTP requests as values: the request to send and the parser of its response."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel

from graphmem.client.operations import Request
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


def fill_path(template: str, request: Request[Any, Any]) -> str:
    """Return a path with the ids of a request in the places of `{user_id}` and `{resource_id}`.

    Raises InvalidInput for an id that no path can hold.
    """
    ids = {"user_id": request.user_id, "resource_id": request.resource_id}
    return "/".join(_escape_id(ids[part[1:-1]]) if part.startswith("{") else part for part in template.split("/"))


def to_query(parameters: BaseModel | None) -> dict[str, Any]:
    """Return the parameters that were given as query parameters."""
    if parameters is None:
        return {}
    return parameters.model_dump(mode="json", exclude_unset=True, exclude_none=True)


def to_body(parameters: BaseModel | None) -> bytes | None:
    """Return the parameters that were given as JSON."""
    return None if parameters is None else parameters.model_dump_json(exclude_unset=True).encode()


def parse_model(model: type[M], **hidden: Any) -> ResponseParser[M]:
    """Return a parser of a response that is a model; `hidden` are values for its fields that the server never sends."""
    return lambda response: model.model_validate({**response.json(), **hidden})


def parse_items(model: type[M], **hidden: Any) -> ResponseParser[list[M]]:
    """Return a parser of the models listed under `items`; `hidden` as in `parse_model`."""
    return lambda response: [model.model_validate({**item, **hidden}) for item in response.json()["items"]]


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
