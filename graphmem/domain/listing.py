"""Lists without ranking: their filters, sort orders, pages and cursors."""

from __future__ import annotations

import base64
import json
from datetime import datetime
from enum import StrEnum
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from graphmem.domain.filters import MemoryFilters, SharedFilters, TagFilter
from graphmem.domain.memory import MemoryTypeInput
from graphmem.domain.tags import Tag
from graphmem.domain.text import NonBlankText
from graphmem.domain.times import Instant
from graphmem.domain.types import Id
from graphmem.errors import InvalidInput

T = TypeVar("T")

_INSTANT: TypeAdapter[datetime] = TypeAdapter(Instant)
_FOREIGN_CURSOR = "The cursor does not belong to this list: send `next_cursor` of a page with the same sort."


class SortOrder(StrEnum):
    """Orders of a list; a leading minus reverses."""

    CREATED_AT = "created_at"
    NEWEST = "-created_at"
    IMPORTANCE = "importance"
    MOST_IMPORTANT = "-importance"
    VALID_AT = "valid_at"
    LATEST_VALID = "-valid_at"

    @property
    def property_name(self) -> str:
        """The property that the list is sorted by."""
        return self.value.removeprefix("-")

    @property
    def direction(self) -> Literal[1, -1]:
        """1 for ascending, -1 for descending."""
        return -1 if self.value.startswith("-") else 1


class ListFilters(SharedFilters):
    """Which memories to list and in which order; every `tag` must be there, no `not_tag` may be.

    `type`, `tag` and `not_tag` are `types`, `tags.all` and `tags.none` of `MemoryFilters` in a query string.
    """

    type: list[MemoryTypeInput] = Field(default_factory=list)
    tag: list[Tag] = Field(default_factory=list)
    not_tag: list[Tag] = Field(default_factory=list)
    keyword: NonBlankText | None = Field(None, max_length=500)
    session_id: Id | None = None
    sort: SortOrder = SortOrder.NEWEST
    limit: int = Field(50, ge=1, le=200)
    cursor: str | None = Field(None, max_length=2000)

    def to_memory_filters(self) -> MemoryFilters:
        """Return the filters without those of lists alone; the values are validated already."""
        return MemoryFilters.model_construct(
            types=self.type or None,
            tags=TagFilter.model_construct(any=[], all=self.tag, none=self.not_tag),
            **{name: getattr(self, name) for name in SharedFilters.model_fields},
        )


class Page(BaseModel, Generic[T]):
    """One page of a list and the cursor of the next (None at the end)."""

    items: list[T]
    next_cursor: str | None = None


def encode_time_cursor(time: datetime, item_id: str) -> str:
    """Return the cursor of a list that is sorted by time, then by id."""
    return encode_cursor(time.isoformat(), item_id)


def decode_time_cursor(cursor: str) -> tuple[datetime, str]:
    """Return the time and id that a cursor holds; raise InvalidInput when it is not a cursor of such a list."""
    time, item_id = map(str, decode_cursor(cursor, (str, str)))
    try:
        return _INSTANT.validate_python(time), item_id
    except ValidationError:
        raise InvalidInput(_FOREIGN_CURSOR) from None


def encode_cursor(*position: object) -> str:
    """Return a cursor for the position at which a page ended."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def decode_cursor(cursor: str, element_types: tuple[type | tuple[type, ...], ...]) -> list[object]:
    """Return the position that a cursor holds; raise InvalidInput when it is not a cursor of this list."""
    try:
        position = json.loads(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
    except (ValueError, UnicodeError, RecursionError):
        position = None
    if (
        not isinstance(position, list)
        or len(position) != len(element_types)
        or not all(
            isinstance(element, element_type) and not isinstance(element, bool)
            for element, element_type in zip(position, element_types, strict=True)
        )
    ):
        raise InvalidInput(_FOREIGN_CURSOR)
    return position
