"""The result of forgetting a user."""

from __future__ import annotations

from pydantic import BaseModel


class ErasureResult(BaseModel):
    """What was erased of a user, counted by kind, and how many traces are left."""

    erased: dict[str, int]
    residue: int
