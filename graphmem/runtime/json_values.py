"""JSON values that can be stored: finite 64-bit numbers, UTF-8 text without NUL, a bounded nesting depth."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from graphmem.text.storable import is_storable

MAX_JSON_DEPTH = 64
"""Most levels of nesting in a stored value and in the body of a request."""

MAX_INTEGER = 2**63 - 1
"""Largest integer, without its sign, that is stored."""

JSON = dict[str, "JSON"] | list["JSON"] | str | int | float | bool | None
"""A JSON value."""

JsonPath = tuple[str | int, ...]


class UnstorableValue(ValueError):
    """A value is not JSON or cannot be stored; `path` leads to it."""

    def __init__(self, path: JsonPath, message: str) -> None:
        super().__init__(message)
        self.path = path


def parse_json(text: str) -> Any:
    """Return the value of a JSON text; raise ValueError when it is not JSON or cannot be stored."""
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise UnstorableValue((), f"is nested deeper than {MAX_JSON_DEPTH} levels") from error
    check_json_value(value)
    return value


def check_json_value(value: object, max_depth: int = MAX_JSON_DEPTH) -> None:
    """Raise UnstorableValue unless a value consists of JSON types in at most `max_depth` levels and can be stored."""
    pending: list[tuple[JsonPath, object]] = [((), value)]
    while pending:
        path, current = pending.pop()
        items: Iterable[tuple[str | int, object]]
        if isinstance(current, dict):
            _check_keys(path, current)
            items = current.items()
        elif isinstance(current, list):
            items = enumerate(current)
        else:
            if problem := _describe_problem(current):
                raise UnstorableValue(path, problem)
            continue
        if len(path) >= max_depth:
            raise UnstorableValue(path, f"is nested deeper than {max_depth} levels")
        for key, item in items:
            if type(item) is float and math.isfinite(item):  # most items: vectors are long
                continue
            if isinstance(item, dict | list):
                pending.append(((*path, key), item))
            elif problem := _describe_problem(item):
                raise UnstorableValue((*path, key), problem)


def _check_keys(path: JsonPath, value: dict[Any, Any]) -> None:
    for key in value:
        if not isinstance(key, str):
            raise UnstorableValue(path, "has a key that is not text")
        if problem := _describe_problem(key):
            raise UnstorableValue(path, f"has a key that {problem}")


def _describe_problem(value: object) -> str | None:
    """Return why a value without items cannot be stored; None when it can be."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else "is not a finite number"
    if isinstance(value, int):
        return None if abs(value) <= MAX_INTEGER else "is an integer of more than 64 bits"
    if isinstance(value, str):
        return None if is_storable(value) else "contains a NUL character or a lone surrogate, which is not text"
    return f"has the type {type(value).__name__}, which JSON does not have"
