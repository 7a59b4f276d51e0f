"""The numbers and dates in a statement, in a form in which two statements can be compared. Pure."""

from __future__ import annotations

import re

from graphmem.text.tokenising import NUMBER_PATTERN, WORD_PATTERN
from graphmem.text.word_lists import WESTERN_LANGUAGES, load_words

MAX_DISTANCE_TO_MONTH = 8
"""Characters before or after a month in which the number of its day is looked for."""

_WORDS = load_words(*WESTERN_LANGUAGES)
_WORD = re.compile(WORD_PATTERN)
_NUMBER = re.compile(NUMBER_PATTERN)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_ISO_DATE = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_YEAR = re.compile(r"\b(?:1[89]\d\d|20\d\d)\b")
_DAY = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th|\.)?(?!\d)")


def extract_numbers(text: str) -> set[str]:
    """Return the numbers in a text, written in digits or as words."""
    words = (word.casefold() for word in _WORD.findall(text))
    return {
        *(normalise_number(number) for number in _NUMBER.findall(text)),
        *(_WORDS.numbers[word] for word in words if word in _WORDS.numbers),
    }


def extract_dates(text: str) -> tuple[set[str], str]:
    """Return the parts of the dates in a text, such as "month 5" and "day 3", and the text without them."""
    found: set[str] = set()
    for year, month, day in _ISO_DATE.findall(text):
        found |= {f"year {year}", f"month {int(month)}", f"day {int(day)}"}
    rest = _ISO_DATE.sub(" ", text)
    days: set[int] = set()
    for word in _WORD.finditer(rest):
        if number := month_number(word[0]):
            found.add(f"month {number}")
            days |= _days_near(rest, word)
        if word[0].casefold() in _WORDS.weekdays:
            found.add(word[0].casefold())
    found |= {f"year {year}" for year in _YEAR.findall(rest)}
    found |= {f"day {day}" for day in days}
    rest = _YEAR.sub(" ", rest)
    for day in days:
        rest = re.sub(rf"\b0?{day}(?:st|nd|rd|th)?\b", " ", rest)
    return found, rest


def normalise_number(text: str) -> str:
    """Return a number in digits without thousands separators and leading zeros."""
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    return text.lstrip("0") or "0"


def month_number(word: str) -> int | None:
    """Return the number of a month; an ambiguous or abbreviated name must begin with a capital letter."""
    folded = word.casefold()
    if (folded in _WORDS.ambiguous_months or len(folded) == 3) and not word[0].isupper():
        return None
    return _WORDS.months.get(folded)


def _days_near(text: str, month: re.Match[str]) -> set[int]:
    before = text[max(0, month.start() - MAX_DISTANCE_TO_MONTH) : month.start()]
    after = text[month.end() : month.end() + MAX_DISTANCE_TO_MONTH]
    return {int(day) for day in _DAY.findall(f"{before} {after}") if 1 <= int(day) <= 31}
