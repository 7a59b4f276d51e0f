"""Provenance of imported statements: which other memory they come from and when it knew them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ImportProvenance:
    """The id of a statement in another memory and its known time there; None means unknown, or open.

    `key` identifies the statement, so that importing it again changes nothing. `memory_id` is the id that its memory
    shall have, and `superseded_by` that of the memory which replaced it.
    """

    key: str
    created_at: datetime | None = None
    updated_at: datetime | None = None
    expired_at: datetime | None = None
    memory_id: str | None = None
    superseded_by: str | None = None
