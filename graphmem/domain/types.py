"""Annotated types and small helpers that several models share."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field

from graphmem.domain.text import NonBlankText, StorableText
from graphmem.text.storable import check_storable

Item = TypeVar("Item", bound=Hashable)

MAX_METADATA_DEPTH = 8
"""Deepest nesting of objects and lists in metadata, in levels."""

MAX_TAG_LENGTH = 64
"""Longest tag, in characters."""

TOPIC_TAGS = frozenset(
    {
        "HOUSEHOLD_AND_CONTEXT",
        "GOALS_AND_TIMELINES",
        "RISK_TOLERANCE",
        "CASHFLOW_AND_SPENDING",
        "COMMUNICATION_PREFERENCES",
        "FINANCIAL_PLANNING",
        "OTHER",
    }
)
"""Tags that are stored in capitals; every other tag is lower case."""

_TAG_PATTERN = re.compile(r"^\w[\w:./-]*$", re.UNICODE)


def deduplicate(items: Iterable[Item]) -> list[Item]:
    """Return the items without repetitions, in the order of their first occurrence."""
    return list(dict.fromkeys(items))


def parse_tag(value: str) -> str:
    """Return a tag in its stored form: lower case with dashes for spaces, topic tags in capitals.

    Raises ValueError for text that cannot be a tag.
    """
    tag = "-".join(value.split())
    if tag.upper().replace("-", "_") in TOPIC_TAGS:
        return tag.upper().replace("-", "_")
    tag = tag.lower()
    if len(tag) > MAX_TAG_LENGTH or not _TAG_PATTERN.match(tag):
        raise ValueError(f"is not a tag: use letters, digits, '-', '_', ':', up to {MAX_TAG_LENGTH} characters")
    return tag


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

Tag = Annotated[StorableText, AfterValidator(parse_tag)]
"""A tag in its stored form."""

Tags = Annotated[list[Tag], Field(max_length=50), AfterValidator(deduplicate)]
"""Up to 50 different tags."""

Domain = Annotated[NonBlankText, Field(max_length=100), AfterValidator(_normalise_domain)]
"""The area a memory belongs to, in lower case."""

UnitInterval = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A number from 0 to 1."""

Metadata = Annotated[dict[str, Any], AfterValidator(_check_metadata)]
"""A JSON object of the caller's, stored as it is."""

Vector = list[float]
"""An embedding; its dimension is the embedder's."""
