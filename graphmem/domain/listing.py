"""Lists without ranking: filters, pages and cursors."""

from __future__ import annotations

import base64
import json
from enum import StrEnum
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from graphmem.domain.memory import Domain, Id, MemoryTypeInput, Scope, Tag, UnitInterval
from graphmem.domain.text import NonBlankText
from graphmem.domain.times import Instant
from graphmem.errors import InvalidInput

T = TypeVar("T")


class SortOrder(StrEnum):
    """Orders of a list; a leading minus reverses."""

    CREATED_AT = "created_at"
    NEWEST = "-created_at"
    IMPORTANCE = "importance"
    MOST_IMPORTANT = "-importance"
    VALID_AT = "valid_at"
    LATEST_VALID = "-valid_at"


class ListFilters(BaseModel):
    """Which memories to list and in which order; every `tag` must be there, no `not_tag` may be."""

    model_config = ConfigDict(extra="forbid")

    type: list[MemoryTypeInput] = Field(default_factory=list)
    tag: list[Tag] = Field(default_factory=list)
    not_tag: list[Tag] = Field(default_factory=list)
    domain: Domain | None = None
    scope: Scope | None = None
    entity: NonBlankText | None = Field(None, max_length=300)
    keyword: NonBlankText | None = Field(None, max_length=500)
    session_id: Id | None = None
    min_importance: UnitInterval | None = None
    min_confidence: UnitInterval | None = None
    created_after: Instant | None = None
    created_before: Instant | None = None
    valid_as_of: Instant | None = None
    known_as_of: Instant | None = None
    include_superseded: bool = False
    sort: SortOrder = SortOrder.NEWEST
    limit: int = Field(50, ge=1, le=200)
    cursor: str | None = Field(None, max_length=2000)

    @property
    def sort_property(self) -> tuple[str, Literal[1, -1]]:
        """The property to sort by and its direction."""
        return self.sort.value.removeprefix("-"), -1 if self.sort.value.startswith("-") else 1


class Page(BaseModel, Generic[T]):
    """One page of a list and the cursor of the next (None at the end)."""

    items: list[T]
    next_cursor: str | None = None


def encode_cursor(*position: object) -> str:
    """Return a cursor for the position a page ended at."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def decode_cursor(cursor: str, element_types: tuple[type | tuple[type, ...], ...]) -> list[object]:
    """Return the position a cursor names; raise InvalidInput when it is not one of this list."""
    try:
        position = json.loads(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
    except (ValueError, UnicodeError, RecursionError):
        position = None
    if (
        not isinstance(position, list)
        or len(position) != len(element_types)
        or not all(
            isinstance(part, kind) and not isinstance(part, bool)
            for part, kind in zip(position, element_types, strict=True)
        )
    ):
        raise InvalidInput("The cursor is not one of this list: take it from `next_cursor`, with the same sort.")
    return position
