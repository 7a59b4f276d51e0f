"""One request as a value: what is sent, and how its answer is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel
from pydantic_core import to_json

from graphmem.errors import InvalidInput

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

ResponseParser = Callable[[httpx.Response], T]


@dataclass(frozen=True, slots=True)
class ApiCall(Generic[T]):
    """A request whose answer is read as `T`.

    A call that `is_write` is sent under one idempotency key however often it is tried; one that is `waits_for_completion` waits for
    its answer as long as it takes.
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


def join_path(*segments: str) -> str:
    """Return a path of segments; an id among them may hold any character."""
    return "".join(f"/{_escape_segment(each)}" for each in segments)


def user_path(user_id: str, *segments: str) -> str:
    """Return a path below a user."""
    return join_path("v1", "users", user_id, *segments)


def without_none(**params: Any) -> dict[str, Any]:
    """Return query parameters without those that are None."""
    return {name: value for name, value in params.items() if value is not None}


def to_json_body(value: BaseModel | Mapping[str, Any]) -> bytes:
    """Return a model, as far as it was filled in, or plain data as JSON."""
    if isinstance(value, BaseModel):
        return value.model_dump_json(exclude_unset=True).encode()
    return to_json(value)


def parse_model(model: type[M], **hidden: Any) -> ResponseParser[M]:
    """Return a reader of an answer that is a model; `hidden` are its fields that never leave the server."""
    return lambda answer: model.model_validate({**answer.json(), **hidden})


def parse_list(model: type[M], under: str = "items", **hidden: Any) -> ResponseParser[list[M]]:
    """Return a reader of the models listed under a name of the answer."""
    return lambda answer: [model.model_validate({**each, **hidden}) for each in answer.json()[under]]


def _escape_segment(segment: str) -> str:
    """Return a segment percent-encoded, dots that would lead elsewhere included."""
    if not segment:
        raise InvalidInput("An id must not be empty.")
    if not segment.strip("."):
        return segment.replace(".", "%2E")
    try:
        return quote(segment, safe="")
    except UnicodeEncodeError as error:
        raise InvalidInput("An id must be text that UTF-8 can carry.") from error
