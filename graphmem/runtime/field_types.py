"""Annotated types and small helpers that several models share."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field

from graphmem.runtime.json_values import check_json_value
from graphmem.runtime.text import NonBlankText, StorableText, check_normalised_length

Item = TypeVar("Item", bound=Hashable)

MAX_NAME_LENGTH = 300
"""Longest name of an entity, in characters, as it is given and as it is normalised."""

MAX_METADATA_DEPTH = 8
"""Deepest nesting of objects and lists in metadata, in levels."""


def deduplicate(items: Iterable[Item]) -> list[Item]:
    """Return the items without repetitions, in the order of their first occurrence."""
    return list(dict.fromkeys(items))


def describe_object(data: Mapping[str, Any]) -> str:
    """Return an object as one line of text: `preferred os: Linux; stack.web: Django`."""
    return "; ".join(f"{key.replace('_', ' ')}: {_describe_value(value)}" for key, value in _flatten(data))


def scalar_texts(data: Mapping[str, Any]) -> list[str]:
    """Return the texts and numbers that an object holds at any depth."""
    return [_describe_value(value) for _, value in _flatten(data) if value is not None and not isinstance(value, bool)]


def _flatten(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            yield from ((f"{key}.{inner}", leaf) for inner, leaf in _flatten(value))
        else:
            yield str(key), value


def _describe_value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_describe_value, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _normalise_domain(value: str) -> str:
    return " ".join(value.lower().split())


def _check_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Raise ValueError for metadata that is nested too deeply or holds a value that JSON cannot store."""
    check_json_value(metadata, MAX_METADATA_DEPTH)
    return metadata


def _check_name_length(name: str) -> str:
    return check_normalised_length(name, MAX_NAME_LENGTH)


Id = Annotated[StorableText, Field(min_length=1, max_length=255)]
"""An id that a caller gives."""

EntityName = Annotated[NonBlankText, Field(max_length=MAX_NAME_LENGTH), AfterValidator(_check_name_length)]
"""The name or an alias of an entity."""

Domain = Annotated[NonBlankText, Field(max_length=100), AfterValidator(_normalise_domain)]
"""The area a memory belongs to, in lower case."""

UnitInterval = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A number from 0 to 1."""

Metadata = Annotated[dict[str, Any], AfterValidator(_check_metadata)]
"""A JSON object of the caller's, stored as it is."""

Vector = list[float]
"""An embedding; its dimension is the embedder's."""
