"""Split of domain/requests."""

from __future__ import annotations

from pydantic import BaseModel

from graphmem.runtime.times import Instant


class AsOfQuery(BaseModel):
    """The times that a read looks back to; absent: now."""

    valid_as_of: Instant | None = None
    known_as_of: Instant | None = None
