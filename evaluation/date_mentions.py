"""Dates named in sentences, in the languages of the conversations. Pure."""

from __future__ import annotations

import re

from evaluation.cases import fold_text

_MONTHS = (
    "january januar januari enero janvier gennaio",
    "february februar februari febrero fevrier febbraio",
    "march marz maerz mars marzo",
    "april abril avril aprile",
    "may mai maj mayo maggio",
    "june juni junio juin giugno",
    "july juli julio juillet luglio",
    "august augusti agosto aout",
    "september septiembre septembre settembre",
    "october oktober octubre octobre ottobre",
    "november noviembre novembre",
    "december dezember diciembre decembre dicembre",
)


def mentions_date(sentence: str, date: str) -> bool:
    """Return whether a sentence names a year, month or day written `YYYY`, `YYYY-MM` or `YYYY-MM-DD`."""
    text = fold_text(sentence)
    year, month, day = [*date.split("-"), "", ""][:3]
    if re.search(rf"(?<!\d){re.escape(date)}", text):
        return True
    if not month:
        return re.search(rf"(?<!\d){year}(?!\d)", text) is not None
    names = "|".join(fold_text(_MONTHS[int(month) - 1]).split())
    if not day:
        return re.search(rf"\b(?:{names})(?:\s+(?:de|del|of))?,?\s+{year}\b", text) is not None
    number = str(int(day))
    forms = (
        rf"(?<!\d)0?{number}(?:st|nd|rd|th|er|[.:aº°])?\s+(?:of\s+|de\s+)?(?:{names})\b",
        rf"\b(?:{names})\s+(?:the\s+)?0?{number}(?:st|nd|rd|th)?(?!\d)",
        rf"(?<!\d)0?{number}[./]0?{int(month)}[./](?:{year}|{year[2:]})(?!\d)",
    )
    return any(re.search(form, text) for form in forms)
