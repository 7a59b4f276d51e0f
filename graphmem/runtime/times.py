"""Times: the clock, the bounds of both time axes, and parsing and formatting.

Valid time says when a statement is true in the world, known time when graphmem believed it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Final

from pydantic import BeforeValidator, TypeAdapter, ValidationError, ValidationInfo

MIN_TIME = datetime(1, 1, 1, tzinfo=UTC)
"""Stored start of an interval without a start."""

MAX_TIME = datetime(9999, 12, 31, tzinfo=UTC)
"""Stored end of an interval without an end."""

AS_OF_NOW = MAX_TIME - timedelta(days=1)
"""A known time that only current beliefs include, even if other machines' clocks are ahead."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Origin of times in seconds and microseconds."""

MICROSECOND = timedelta(microseconds=1)
"""The smallest step between two stored times."""

Clock = Callable[[], datetime]
"""Returns the current time in UTC."""


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


_DATETIME: TypeAdapter[datetime] = TypeAdapter(datetime)


LOCAL_DATES: Final = "local_dates"
"""Validation context key that allows dates, for callers in this machine's time zone."""


def start_of_local_day(value: object) -> object:
    """Return a date, or its ISO text, as the start of that day in this machine's time zone; other values unchanged."""
    try:
        day = date.fromisoformat(value.strip()) if isinstance(value, str) else value
    except ValueError:
        return value
    if not isinstance(day, date) or isinstance(day, datetime) or not 2 <= day.year <= 9998:
        return value
    return datetime.combine(day, time()).astimezone()


_NO_TIME = "must be an RFC 3339 time with an offset, for example 2026-05-01T12:00:00Z"


def _parse_zoned(value: object, info: ValidationInfo) -> datetime:
    """Return an RFC 3339 time with its own offset; raise ValueError for anything else."""
    if info.context and info.context.get(LOCAL_DATES):
        value = start_of_local_day(value)
    if not isinstance(value, str | datetime):
        raise ValueError(_NO_TIME)
    if isinstance(value, str) and "T" not in value.upper() and " " not in value.strip():
        raise ValueError(_NO_TIME)
    try:
        moment = _DATETIME.validate_python(value)
    except ValidationError:
        raise ValueError(_NO_TIME) from None
    if moment.tzinfo is None:
        raise ValueError("has no offset; write for example 2026-05-01T12:00:00Z or …+02:00")
    if not 2 <= moment.year <= 9998:
        raise ValueError("must be between the years 0002 and 9998")
    return moment


def _parse_instant(value: object, info: ValidationInfo) -> datetime:
    return _parse_zoned(value, info).astimezone(UTC)


Instant = Annotated[datetime, BeforeValidator(_parse_instant)]
"""A time in UTC, read from a time with an offset; naive times and numbers are rejected.

A date is also rejected, unless the validation context has `LOCAL_DATES`: then it means the start of that local day.
"""

ZonedDatetime = Annotated[datetime, BeforeValidator(_parse_zoned)]
"""A time with the caller's offset, which gives the caller's local time."""


def interval_contains(start: datetime, end: datetime, instant: datetime) -> bool:
    """Return whether `instant` lies in the half-open interval `[start, end)`."""
    return start <= instant < end


def to_epoch_pair(moment: datetime) -> list[int]:
    """Return a time as seconds since 1970 and microseconds of the second, from 0."""
    since = moment - EPOCH
    return [since.days * 86_400 + since.seconds, since.microseconds]


def to_micros(moment: datetime) -> int:
    """Return a time as microseconds since 1970, the format of times in query results."""
    return (moment - EPOCH) // MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the time from microseconds since 1970."""
    return EPOCH + micros * MICROSECOND


def parse_times(names: Sequence[str], microseconds: Sequence[int | None]) -> dict[str, datetime | None]:
    """Return times by name from microseconds since 1970; None stays None."""
    return {
        name: None if count is None else from_micros(count) for name, count in zip(names, microseconds, strict=True)
    }
