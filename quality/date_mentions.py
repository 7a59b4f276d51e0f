"""Dates named in sentences, in the languages of the conversations. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from quality.cases import fold_text

_MONTHS = (
    "january januar januari enero janvier gennaio janeiro",
    "february februar februari febrero fevrier febbraio fevereiro",
    "march marz maerz mars marzo marco",
    "april abril avril aprile",
    "may mai maj mayo maggio maio",
    "june juni junio juin giugno junho",
    "july juli julio juillet luglio julho",
    "august augusti agosto aout",
    "september septiembre septembre settembre setembro",
    "october oktober octubre octobre ottobre outubro",
    "november noviembre novembre novembro",
    "december dezember diciembre decembre dicembre dezembro",
)

_WEEK = re.compile(r"(?P<year>\d{4})-W(?P<week>\d{2})")
_TO = r"(?:\s*[-–]\s*|\s+(?:to|until|and|bis|und|al?|au|et|e|y|ate)\s+)"
_WEEK_NAMES = "week|cw|kw|kalenderwoche|woche|semaine|semana|settimana|vecka"


def falls_on(moment: str | None, date: str) -> bool:
    """Return whether a local time is in a year, month, day or ISO week, or in one of several between `|`."""
    return any((moment or "").startswith(day) for part in date.split("|") for day in _days_of(part))


def mentions_date(sentence: str, date: str) -> bool:
    """Return whether a sentence names a year, month, day or ISO week, or one of several between `|`.

    They are written `YYYY`, `YYYY-MM`, `YYYY-MM-DD` and `YYYY-Www`; a day of a week, or its number, names the week.
    """
    return any(_mentions(sentence, part) for part in date.split("|"))


def _days_of(date: str) -> list[str]:
    """Return the seven days of an ISO week, or another date alone."""
    week = _WEEK.fullmatch(date)
    if not week:
        return [date]
    monday = datetime.fromisocalendar(int(week["year"]), int(week["week"]), 1)
    return [f"{monday + timedelta(days=day):%Y-%m-%d}" for day in range(7)]


def _mentions(sentence: str, date: str) -> bool:
    week = _WEEK.fullmatch(date)
    if not week:
        return _mentions_day(sentence, date)
    text, number = fold_text(sentence), int(week["week"])
    named = re.search(rf"\b(?:{_WEEK_NAMES})\.?\s*(?:no\.?\s*)?0?{number}(?!\d)|第?{number}[週周]|w{number}\b", text)
    return named is not None or any(_mentions_day(sentence, day) for day in _days_of(date))


def _mentions_day(sentence: str, date: str) -> bool:
    text = fold_text(sentence)
    year, month, day = [*date.split("-"), "", ""][:3]
    if re.search(rf"(?<!\d){re.escape(date)}", text):
        return True
    if not month:
        return re.search(rf"(?<!\d){year}(?!\d)", text) is not None
    names = "|".join(fold_text(_MONTHS[int(month) - 1]).split())
    if not day:
        form = rf"\b(?:{names})(?:\s+(?:de|del|of))?,?\s+{year}\b|{year}年\s*0?{int(month)}月"
        return re.search(form, text) is not None
    number = str(int(day))
    forms = (
        rf"(?<!\d)0?{number}(?:st|nd|rd|th|er|[.:aº°])?\s+(?:of\s+|de\s+)?(?:{names})\b",
        rf"\b(?:{names})\s+(?:the\s+)?0?{number}(?:st|nd|rd|th)?(?!\d)",
        rf"(?<!\d)0?{number}\.?{_TO}\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?(?:{names})\b",
        rf"\b(?:{names})\s+\d{{1,2}}{_TO}0?{number}(?!\d)",
        rf"(?<!\d)0?{number}[./]0?{int(month)}[./](?:{year}|{year[2:]})(?!\d)",
        rf"(?<!\d)0?{int(month)}月\s*0?{number}[日号]",
    )
    return any(re.search(form, text) for form in forms)
