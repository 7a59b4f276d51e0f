"""Times on the command line."""

from __future__ import annotations

from datetime import date, datetime, time


def with_zone(text: str | None) -> str | None:
    """Return a date without a time as its first moment in this machine's time zone; any other text as it is."""
    if text is None:
        return None
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        return text
    return datetime.combine(day, time()).astimezone().isoformat()
