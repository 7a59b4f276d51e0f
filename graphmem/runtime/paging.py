"""Pages of a list, and the cursors that link them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
)

from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import StorableText
from graphmem.runtime.times import Instant

T = TypeVar("T")


P = TypeVar("P")


class Page(BaseModel, Generic[T]):
    """One page of a list and the cursor of the next (None at the end)."""

    items: list[T]
    next_cursor: str | None = None

    def __iter__(self) -> Iterator[T]:  # pyrefly: ignore[bad-override] - pydantic iterates over fields
        """Iterate over the items of this page."""
        return iter(self.items)

    def __len__(self) -> int:
        """Return the number of items on this page."""
        return len(self.items)


def take_page(found: Sequence[T], limit: int) -> tuple[list[T], T | None]:
    """Return the first `limit` items, and the last of these if more follow.

    Read the list with one item more than `limit`, so that no cursor leads to an empty page.
    """
    kept = list(found[:limit])
    return kept, kept[-1] if len(found) > limit else None


class Cursor(Generic[P]):
    """The cursors of one list: end positions of pages, of type `P`, as opaque text."""

    def __init__(self, position_type: Any) -> None:
        self._position: TypeAdapter[P] = TypeAdapter(position_type, config=ConfigDict(strict=True))

    def encode(self, position: P) -> str:
        """Return the cursor of a position."""
        return base64.urlsafe_b64encode(self._position.dump_json(position)).decode().rstrip("=")

    def make_page(self, found: Sequence[T], limit: int, position_of: Callable[[T], P]) -> Page[T]:
        """Return a page of a list that was read with one item more than `limit`."""
        items, last = take_page(found, limit)
        return Page(items=items, next_cursor=None if last is None else self.encode(position_of(last)))

    def decode(self, cursor: str) -> P:
        """Return the position that a cursor holds; raise InvalidInput if it is not a cursor of this list."""
        try:
            return self._position.validate_json(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
        except ValueError:  # not base64, not JSON or not a position
            raise InvalidInput(
                "The cursor does not belong to this list: send `next_cursor` of a page with the same sort."
            ) from None


StoredInteger = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
"""An integer that Neo4j can store."""


TIME_CURSOR: Cursor[tuple[datetime, str]] = Cursor(tuple[Instant, StorableText])
"""Cursors of lists sorted by time, then by id."""


MAX_PAGE_SIZE = 200
"""Maximum number of items per page."""


PageLimit = Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE)]


class PageQuery(BaseModel):
    """The page of a list to return."""

    limit: PageLimit = 50
    cursor: str | None = Field(None, max_length=2000)
