"""Split of domain/requests."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class RequestBody(BaseModel):
    """A request body that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid")
