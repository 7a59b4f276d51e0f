"""Split of domain/requests."""

from __future__ import annotations

from pydantic import BaseModel, Field

from graphmem.runtime.field_types import Domain


class ContextItemsQuery(BaseModel):
    """Which context items to list."""

    session_id: str | None = Field(None, max_length=255)


class ProfileQuery(BaseModel):
    """Which profile to read."""

    domain: Domain | None = Field(None, description="Also the memories of this domain.")
