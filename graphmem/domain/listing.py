"""Lists without ranking: their filters, sort orders, pages and cursors."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    model_serializer,
    model_validator,
)

from graphmem.domain.filters import MemoryFilters, MetadataFilter, SharedFilters, TagFilter
from graphmem.domain.memory import MemoryTypeWord
from graphmem.domain.tags import Tag
from graphmem.domain.text import NonBlankText, StorableText
from graphmem.domain.times import Instant
from graphmem.domain.types import Id
from graphmem.errors import InvalidInput

T = TypeVar("T")
P = TypeVar("P")

_METADATA = "metadata."
"""What the name of a query parameter begins with if it is a filter on metadata."""


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


class QueryStringFilters(SharedFilters):
    """Every filter on memories, as a query string has them: every `tag` must be there, no `not_tag` may be.

    `type`, `tag` and `not_tag` are `types`, `tags.all` and `tags.none` of `MemoryFilters`; `metadata.KEY=VALUE` is an
    entry of `metadata`.
    """

    type: list[MemoryTypeWord] = Field(default_factory=list)
    tag: list[Tag] = Field(default_factory=list)
    not_tag: list[Tag] = Field(default_factory=list)
    metadata: MetadataFilter = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _collect_metadata(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        pairs = {key.removeprefix(_METADATA): given[key] for key in given if str(key).startswith(_METADATA)}
        if not pairs:
            return given
        return {
            **{key: value for key, value in given.items() if not str(key).startswith(_METADATA)},
            "metadata": {**given.get("metadata", {}), **pairs},
        }

    @model_serializer(mode="wrap")
    def _spread_metadata(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        serialized: dict[str, Any] = handler(self)
        pairs = serialized.pop("metadata", {})
        return serialized | {f"{_METADATA}{key}": value for key, value in pairs.items()}

    def to_memory_filters(self) -> MemoryFilters:
        """Return the filters on memories without anything else; the values are validated already."""
        return MemoryFilters.model_construct(
            types=self.type or None,
            tags=TagFilter.model_construct(any=[], all=self.tag, none=self.not_tag),
            metadata=self.metadata,
            **{name: getattr(self, name) for name in SharedFilters.model_fields},
        )


class ListFilters(QueryStringFilters):
    """Which memories to list and in which order."""

    keyword: NonBlankText | None = Field(None, max_length=500)
    session_id: Id | None = None
    sort: SortOrder = SortOrder.NEWEST
    limit: int = Field(50, ge=1, le=200)
    cursor: str | None = Field(None, max_length=2000)


class Page(BaseModel, Generic[T]):
    """One page of a list and the cursor of the next (None at the end)."""

    items: list[T]
    next_cursor: str | None = None

    def __iter__(self) -> Iterator[T]:  # type: ignore[override] # pydantic iterates over fields
        """Iterate over the items of this page."""
        return iter(self.items)

    def __len__(self) -> int:
        """Return how many items this page has."""
        return len(self.items)


def take_page(found: Sequence[T], limit: int) -> tuple[list[T], T | None]:
    """Return the first `limit` of what was found, and the last of these if more follow.

    A list is read with one more than `limit`, so that no cursor leads to an empty page.
    """
    kept = list(found[:limit])
    return kept, kept[-1] if len(found) > limit else None


class Cursor(Generic[P]):
    """The cursors of one list: positions of the type `P`, at which a page ended, as opaque text."""

    def __init__(self, position_type: Any) -> None:
        self._position: TypeAdapter[P] = TypeAdapter(position_type, config=ConfigDict(strict=True))

    def encode(self, position: P) -> str:
        """Return the cursor of a position."""
        return base64.urlsafe_b64encode(self._position.dump_json(position)).decode().rstrip("=")

    def make_page(self, found: Sequence[T], limit: int, position_of: Callable[[T], P]) -> Page[T]:
        """Return a page of a list that was read with one more than `limit`."""
        items, last = take_page(found, limit)
        return Page(items=items, next_cursor=None if last is None else self.encode(position_of(last)))

    def decode(self, cursor: str) -> P:
        """Return the position that a cursor holds; raise InvalidInput when it is not a cursor of this list."""
        try:
            return self._position.validate_json(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
        except ValueError:  # not base64, not JSON or not a position
            raise InvalidInput(
                "The cursor does not belong to this list: send `next_cursor` of a page with the same sort."
            ) from None


StoredInteger = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
"""An integer that Neo4j can store."""

TIME_CURSOR: Cursor[tuple[datetime, str]] = Cursor(tuple[Instant, StorableText])
"""Cursors of lists that are sorted by time, then by id."""
