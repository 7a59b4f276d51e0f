"""Annotated types and small helpers that several models share."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field

from graphmem.domain.text import NonBlankText, StorableText
from graphmem.text.storable import check_storable

Item = TypeVar("Item", bound=Hashable)

MAX_METADATA_DEPTH = 8
"""Deepest nesting of objects and lists in metadata, in levels."""


def deduplicate(items: Iterable[Item]) -> list[Item]:
    """Return the items without repetitions, in the order of their first occurrence."""
    return list(dict.fromkeys(items))


def _normalise_domain(value: str) -> str:
    return " ".join(value.lower().split())


def _check_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Raise ValueError for metadata that is nested too deeply or holds text that cannot be stored."""
    level: list[Any] = [metadata]
    for _ in range(MAX_METADATA_DEPTH):
        deeper: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                deeper.extend(value.values())
                deeper.extend(value.keys())
            elif isinstance(value, list):
                deeper.extend(value)
            elif isinstance(value, str):
                check_storable(value)
        level = deeper
    if any(isinstance(value, dict | list) for value in level):
        raise ValueError(f"is nested deeper than {MAX_METADATA_DEPTH} levels")
    return metadata


Id = Annotated[StorableText, Field(min_length=1, max_length=255)]
"""An id that a caller gives."""

EntityName = Annotated[NonBlankText, Field(max_length=300)]
"""The name or an alias of an entity."""

Domain = Annotated[NonBlankText, Field(max_length=100), AfterValidator(_normalise_domain)]
"""The area a memory belongs to, in lower case."""

UnitInterval = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A number from 0 to 1."""

Metadata = Annotated[dict[str, Any], AfterValidator(_check_metadata)]
"""A JSON object of the caller's, stored as it is."""

Vector = list[float]
"""An embedding; its dimension is the embedder's."""
