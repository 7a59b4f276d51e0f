"""The texts and values that a request wants to store, taken from its model, so that a new field is never left out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from enum import Enum
from typing import Any, TypeVar

from pydantic import BaseModel

from graphmem.runtime.field_types import JSON

MAX_REQUEST_TEXT = 1_000_000
"""Most characters of text in one request, with keys and the digits of integers."""

MAX_REQUEST_VALUES = 50_000
"""Most keys and values in one request."""

Model = TypeVar("Model", bound=BaseModel)


def stored_values(value: object) -> JSON:
    """Return what a model holds as JSON, without times and without words from a fixed list.

    The names of its fields are left out: unlike the keys of metadata, they say nothing of what a caller wrote, and each
    would be read for secrets with every value.
    """
    match value:
        case Enum() | date():
            return None
        case BaseModel():
            return [stored for _, part in value if (stored := stored_values(part)) not in (None, "", [], {})]
        case list() | tuple():
            return [stored_values(part) for part in value]
        case dict():
            return dict(value)
        case str() | int() | float():
            return value
    return None


def text_length(value: object) -> int:
    """Return the number of characters in a value or a model, with about as many as its digits for an integer."""
    return _measure(value)[0]


def check_request_size(request: Model) -> Model:
    """Return a request; raise ValueError when it holds more than can be checked for secrets at once."""
    characters, values = _measure(request)
    if characters > MAX_REQUEST_TEXT:
        raise ValueError(
            f"holds {characters:,} characters of text, and a request may hold {MAX_REQUEST_TEXT:,}: "
            "send it in several requests"
        )
    if values > MAX_REQUEST_VALUES:
        raise ValueError(
            f"holds {values:,} values, and a request may hold {MAX_REQUEST_VALUES:,}: send it in several requests"
        )
    return request


def _measure(value: object) -> tuple[int, int]:
    """Return the number of characters of text, and the number of keys and values."""
    characters, values = 0, 1
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            characters += len(item)
            continue
        if isinstance(item, int):
            characters += 1 + item.bit_length() // 3
            continue
        parts: list[Any]
        if isinstance(item, BaseModel):
            parts = [*vars(item).values(), *(item.model_extra or {}).values()]
        elif isinstance(item, Mapping):
            parts = [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple):
            parts = list(item)
        else:
            continue
        values += len(parts)
        pending += [part for part in parts if part is not None and type(part) is not float]  # most fields are either
    return characters, values
