"""Compact JSON of stored values."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from pydantic import BaseModel


def to_json(value: object) -> str:
    """Return a value as compact JSON; times become ISO 8601 in UTC, models objects, other unknown types their `str`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_encode)


def _encode(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump()
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)
