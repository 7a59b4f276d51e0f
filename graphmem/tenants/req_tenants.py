"""Split of domain/requests."""

from __future__ import annotations

from pydantic import Field

from graphmem.runtime.paging import PageQuery


class UserListQuery(PageQuery):
    """Which users to list."""

    query: str | None = Field(None, max_length=255, description="Part of a user id, in any case.")
