"""Times that a question names: "in May 2023", "last week", "yesterday"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dateparser.date import DateData, DateDataParser
from dateparser.search import search_dates

MAX_SEARCHED_CHARACTERS = 500
"""So many characters of a question are searched for times."""

_AMBIGUOUS_WORD_LIST = "may march mar sat sun second now dec on in at to of the do a m am pm"
_AMBIGUOUS_WORDS = frozenset(_AMBIGUOUS_WORD_LIST.split())
"""Words that, written small, name times only now and then."""

_NUMBER = re.compile(r"^\d{1,3}s?$")


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A stretch of time `[start, end)` in milliseconds since 1970."""

    start: int
    end: int

    def contains(self, moment: int) -> bool:
        """Return whether a moment lies in it."""
        return self.start <= moment < self.end


def find_time_ranges(text: str, now: datetime, languages: Sequence[str] = ("en",)) -> list[TimeRange]:
    """Return the times a text names, read as of `now`; what could be a time and is more likely a word is left out."""
    base = {"RELATIVE_BASE": now.replace(tzinfo=None), "PREFER_DATES_FROM": "past"}
    found = search_dates(text[:MAX_SEARCHED_CHARACTERS], languages=list(languages), settings=base) or []
    parser = DateDataParser(languages=list(languages), settings={**base, "PREFER_DAY_OF_MONTH": "first"})
    named = (_time_range_of(parser.get_date_data(phrase)) for phrase, _ in found if _is_unambiguous(phrase, text))
    return [time_range for time_range in named if time_range]


def _is_unambiguous(phrase: str, text: str) -> bool:
    """Return whether a phrase names a time beyond doubt: "May" does inside a sentence, "may" does not."""
    capitals = phrase[:1].isupper() and not text.startswith(phrase)
    words = re.findall(r"\w+", phrase if capitals else phrase.lower())
    return any(word not in _AMBIGUOUS_WORDS and not _NUMBER.match(word) for word in words)


def _time_range_of(read: DateData) -> TimeRange | None:
    """Return the day, week, month or year a parsed phrase means; None beyond what can be told."""
    if read.date_obj is None or not 2 <= read.date_obj.year <= 9990:
        return None
    start = read.date_obj.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=UTC)
    if read.period == "week":
        start -= timedelta(days=start.weekday())
        end = start + timedelta(weeks=1)
    elif read.period == "month":
        start = start.replace(day=1)
        end = (start + timedelta(days=32)).replace(day=1)
    elif read.period == "year":
        start = start.replace(month=1, day=1)
        end = start.replace(year=start.year + 1)
    else:
        end = start + timedelta(days=1)
    return TimeRange(int(start.timestamp() * 1000), int(end.timestamp() * 1000))
