"""Times: the clock, the bounds of both time axes, and how times are read and sent.

Valid time says when a statement is true in the world, known time when graphmem believed it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import BeforeValidator, TypeAdapter

MIN_TIME = datetime(1, 1, 1, tzinfo=UTC)
"""Stored start of an interval that is open to the past."""

MAX_TIME = datetime(9999, 12, 31, tzinfo=UTC)
"""Stored end of an interval that is open to the future."""

AS_OF_NOW = MAX_TIME - timedelta(days=1)
"""A known time that only current beliefs include, however far the clocks of other machines are ahead."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""The time from which seconds and microseconds are counted."""

MICROSECOND = timedelta(microseconds=1)
"""The smallest step between two stored times."""

Clock = Callable[[], datetime]
"""Returns the current time in UTC."""


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


_DATETIME: TypeAdapter[datetime] = TypeAdapter(datetime)


def _parse_zoned(value: object) -> datetime:
    """Return an RFC 3339 time with its own offset; raise ValueError for anything else."""
    if not isinstance(value, str | datetime):
        raise ValueError("must be an RFC 3339 time with an offset, for example 2026-05-01T12:00:00Z")
    if isinstance(value, str) and "T" not in value.upper() and " " not in value.strip():
        raise ValueError("must be an RFC 3339 time with an offset, for example 2026-05-01T12:00:00Z")
    time = _DATETIME.validate_python(value)
    if time.tzinfo is None:
        raise ValueError("has no offset; write for example 2026-05-01T12:00:00Z or …+02:00")
    if not 2 <= time.year <= 9998:
        raise ValueError("must be between the years 0002 and 9998")
    return time


def _parse_instant(value: object) -> datetime:
    return _parse_zoned(value).astimezone(UTC)


Instant = Annotated[datetime, BeforeValidator(_parse_instant)]
"""A time in UTC, read from a time with an offset; naive times, bare dates and numbers are rejected."""

ZonedDatetime = Annotated[datetime, BeforeValidator(_parse_zoned)]
"""A time with the offset that the caller gave, from which the caller's local time follows."""


def interval_contains(start: datetime, end: datetime, instant: datetime) -> bool:
    """Return whether `instant` lies in the half-open interval `[start, end)`."""
    return start <= instant < end


def to_epoch_pair(time: datetime) -> list[int]:
    """Return a time as seconds since 1970 and microseconds of the second, from 0."""
    since = time - EPOCH
    return [since.days * 86_400 + since.seconds, since.microseconds]


def parse_times(names: Sequence[str], microseconds: Sequence[int | None]) -> dict[str, datetime | None]:
    """Return times by name from microseconds since 1970; None stays None."""
    return {
        name: None if count is None else EPOCH + count * MICROSECOND
        for name, count in zip(names, microseconds, strict=True)
    }
