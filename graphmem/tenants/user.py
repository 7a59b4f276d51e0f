"""Users of a tenant, as a list shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field


class UserSummary(BaseModel):
    """A user: since when they are known, when something last changed, and how much is stored."""

    user_id: str
    created_at: datetime | None = Field(None, description="Time of the first write.")
    last_write_at: datetime | None = Field(None, description="Time of the latest write; null: no memory was written.")
    memory_count: int = Field(description="Number of current memories.")
    session_count: int = Field(description="Number of sessions.")
