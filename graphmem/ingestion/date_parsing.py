"""Dates as a model writes them: local, with the precision of the conversation. Pure."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo

_DATE_PATTERN = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d{2})(?:-(?P<day>\d{2})"
    r"(?:[T ](?P<hour>\d{2}):(?P<minute>\d{2})(?::\d{2}(?:\.\d+)?)?)?)?)?"
    r"(?:Z|[+-]\d{2}:\d{2})?"
)


def parse_local_date(text: str | None, zone: tzinfo) -> datetime | None:
    """Return the first moment of a year, month, day or minute in `zone`, or None for text that is no such date.

    An offset in the text is ignored, because the model saw local times only.
    """
    match = _DATE_PATTERN.fullmatch((text or "").strip())
    if not match or not 2 <= int(match["year"]) <= 9998:
        return None
    month, day, hour, minute = (int(match[part] or least) for part, least in _DEFAULT_FIELDS.items())
    try:
        return datetime(int(match["year"]), month, day, hour, minute, tzinfo=zone)
    except ValueError:
        return None


_DEFAULT_FIELDS = {"month": 1, "day": 1, "hour": 0, "minute": 0}
