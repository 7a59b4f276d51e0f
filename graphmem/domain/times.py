"""The two axes of time: valid time (in the world) and known time (in graphmem)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import BeforeValidator, TypeAdapter

MIN_TIME = datetime(1, 1, 1, tzinfo=UTC)
"""Shadow bound of an interval that is open to the past."""

MAX_TIME = datetime(9999, 12, 31, tzinfo=UTC)
"""Shadow bound of an interval that is open to the future."""

AS_OF_NOW = MAX_TIME - timedelta(days=1)
"""A known time that only what is believed now contains, whatever the clocks of other machines say."""

Clock = Callable[[], datetime]
"""Anything that tells the time, in UTC."""


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


_DATETIME = TypeAdapter(datetime)


def _parse_instant(value: object) -> datetime:
    if not isinstance(value, str | datetime):
        raise ValueError("must be an RFC 3339 time with an offset, for example 2026-05-01T12:00:00Z")
    if isinstance(value, str) and "T" not in value.upper() and " " not in value.strip():
        raise ValueError("must be an RFC 3339 time with an offset, for example 2026-05-01T12:00:00Z")
    instant = _DATETIME.validate_python(value)
    if instant.tzinfo is None:
        raise ValueError("has no offset; write for example 2026-05-01T12:00:00Z or …+02:00")
    if not 2 <= instant.year <= 9998:
        raise ValueError("must lie between the years 0002 and 9998")
    return instant.astimezone(UTC)


Instant = Annotated[datetime, BeforeValidator(_parse_instant)]
"""A time with an offset, kept in UTC; naive times, bare dates and numbers are refused."""


def interval_contains(start: datetime, end: datetime, instant: datetime) -> bool:
    """Return whether `instant` lies in the half-open interval `[start, end)`."""
    return start <= instant < end
