"""Times, amounts and things a message mentions: from what its sender told, else read from the text without a model.

Times are read by `dateparser`, amounts by `price-parser`; reading takes milliseconds and belongs behind the reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from price_parser import Price

from graphmem.context.vocabulary import AMOUNT_SUBJECTS
from graphmem.domain.session import Message, Role
from graphmem.store.context_rows import Mentioned

READ_CHARACTERS = 2_000
"""Only the beginning of a long message is read for times and amounts."""

LANGUAGES = ["en", "de", "fr", "es", "it", "pt", "nl"]
"""Languages times are read in; detecting any of hundreds would take a second."""

TIME_RELEVANCE, TIME_TTL = 0.9, timedelta(minutes=60)
AMOUNT_RELEVANCE, AMOUNT_TTL = 0.8, timedelta(minutes=30)
ENTITY_RELEVANCE, ENTITY_TTL = 0.85, timedelta(minutes=120)
"""Relevance and time to live of what a message mentions (TRUE-08)."""

LONGEST_TTL = max(TIME_TTL, AMOUNT_TTL, ENTITY_TTL)

_SYMBOL = r"(?:[A-Z]{0,3}\$|[€£¥₹₽₩₺₴₦₱₪₫฿]|(?:USD|EUR|GBP|CHF|JPY|CAD|AUD|INR|CNY|SEK|NOK|DKK|PLN|BRL|MXN)\b)"
_NUMBER = r"\d(?:[\d.,'’ \u00a0\u202f]*\d)?"
_SCALE = r"(?:[ ]?(?P<scale{0}>k|K|m|M|mn|thousand|million|mio\.?|tsd\.?|tausend|mil(?:lones)?|mille|milioni)\b)?"
_WORD = r"(?:dollars?|bucks|euros?|pounds?|yen|rupees?|francs?|franken|kronor|kroner|pesos|reais|zł)"
_AMOUNT = re.compile(
    rf"(?P<first>{_SYMBOL})[ ]?(?P<leading>{_NUMBER}){_SCALE.format(1)}"
    rf"|(?P<trailing>(?<![\w.,]){_NUMBER}){_SCALE.format(2)}[ ]?(?P<last>{_SYMBOL}|{_WORD}\b)",
    re.IGNORECASE,
)
_SCALES = {"k": 1e3, "thousand": 1e3, "tsd": 1e3, "tausend": 1e3, "mil": 1e3, "mille": 1e3}
GENERAL = "general"

_CLAUSE = re.compile(r"(?<=[.!?;])\s+|\n+")
_PERCENTAGE = re.compile(r"\d[\d.,]*[ ]?%")
_BARE_NUMBER = re.compile(r"^[\d\s.,:%+'-]+$")
_DATE_SHAPE = re.compile(r"\d{1,4}[./-]\d{1,2}(?:[./-]\d{1,4})?|\d{1,2}:\d{2}|^(?:19|20)\d\d$")
_UNTELLING = frozenset(
    [
        "may",
        "march",
        "second",
        "seconds",
        "minute",
        "hour",
        "hours",
        "day",
        "days",
        "week",
        "month",
        "months",
        "year",
        "years",
        "tag",
        "woche",
        "monat",
        "jahr",
    ]
)
_SHORTEST = 4
"""Words of fewer letters are read as weekdays and months in some language or other: alone they tell no time."""

_FILLER = frozenset(
    [
        "the",
        "and",
        "on",
        "at",
        "in",
        "of",
        "about",
        "for",
        "to",
        "by",
        "until",
        "since",
        "from",
        "or",
        "a",
        "it",
        "is",
        "und",
        "der",
        "die",
        "das",
        "am",
        "im",
        "um",
        "de",
        "la",
        "el",
        "le",
        "les",
        "y",
        "et",
    ]
)


def mentions(message: Message, now: datetime, named: Iterable[tuple[str, str]] = ()) -> list[Mentioned]:
    """Return what a message of the user mentions and what is still of use at `now`.

    What its sender told as entities comes first; without any, `named` are the known entities found in it as
    `(type, name)`. A time or amount told as an entity is not read from the text again.
    """
    if message.role is not Role.USER:
        return []
    at = min(message.timestamp, now)
    text = message.content[:READ_CHARACTERS]
    found: list[tuple[str, str, Any, float, timedelta]] = []
    if at + TIME_TTL > now and not message.entities.keys() & {"time", "date", "period"}:
        local = at.astimezone(UTC) + timedelta(minutes=message.utc_offset_minutes)
        found += [("time_reference", each["type"], each, TIME_RELEVANCE, TIME_TTL) for each in times(text, local)]
    if at + AMOUNT_TTL > now and "amount" not in message.entities:
        found += [
            ("amount_reference", f"amount_{each['context']}", each, AMOUNT_RELEVANCE, AMOUNT_TTL)
            for each in amounts(text, message.entities.get("category", ()))
        ]
    if at + ENTITY_TTL > now:
        told = [(kind.lower(), value) for kind, values in message.entities.items() for value in values]
        known = [(kind.lower(), name) for kind, name in named]
        found += [(f"entity_{kind}", kind, value, ENTITY_RELEVANCE, ENTITY_TTL) for kind, value in told or known]
    return [
        Mentioned(message.id, message.session_id, kind, key, value, relevance, at + ttl)
        for kind, key, value, relevance, ttl in found
    ]


def amounts(text: str, categories: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """Return the amounts of money in a text: `{amount, currency, text, context}`.

    The context is the category the sender told, else what the clause speaks of (budget, income, …), else `general`.
    """
    found: dict[tuple[float, str], dict[str, Any]] = {}
    for clause in _CLAUSE.split(text):
        for match in _AMOUNT.finditer(clause):
            price = Price.fromstring(
                match["leading"] or match["trailing"], currency_hint=match["first"] or match["last"]
            )
            if price.amount is None:
                continue
            amount = float(price.amount) * _scale(match["scale1"] or match["scale2"])
            context = str(categories[0]).casefold() if categories else _subject(clause, match.start())
            found.setdefault(
                (amount, context),
                {
                    "amount": amount,
                    "currency": (match["first"] or match["last"]).strip(),
                    "text": match[0].strip(),
                    "context": context,
                },
            )
    return list(found.values())


def read_amount(value: object) -> float | None:
    """Return an amount told as a number or as text ("$1,200.50"); None when it is neither."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    price = Price.fromstring(value) if isinstance(value, str) else None
    return float(price.amount) if price and price.amount is not None else None


def times(text: str, local: datetime) -> list[dict[str, Any]]:
    """Return the times a text mentions, read from `local` on: `{type, text, at}`.

    `type` is how exact it is (time, day, week, month, year), `at` the time meant, on the speaker's clock.
    """
    masked = _PERCENTAGE.sub(" ; ", _AMOUNT.sub(" ; ", text))
    base = local.replace(tzinfo=None)
    found: dict[str, dict[str, Any]] = {}
    for raw, moment in _search(masked, base):
        said = _stripped(raw)
        if said and _tells_time(said, raw):
            exact = _exactness(said, base)
            found.setdefault(
                said.casefold(), {"type": exact, "text": said, "at": moment.replace(tzinfo=None).isoformat()}
            )
    return list(found.values())


def _search(text: str, base: datetime) -> list[tuple[str, datetime]]:
    # Importing and first use take a tenth of a second: not at the start of every process.
    from dateparser.search import search_dates

    return search_dates(text, languages=LANGUAGES, settings={"RELATIVE_BASE": base}) or []


@cache
def _reader() -> Any:
    from dateparser.date import DateDataParser

    return DateDataParser


def _exactness(said: str, base: datetime) -> str:
    read = _reader()(
        languages=LANGUAGES, settings={"RELATIVE_BASE": base, "RETURN_TIME_AS_PERIOD": True}
    ).get_date_data(said)
    return str(read.period) if read and read.date_obj else "day"


def _stripped(raw: str) -> str:
    words = raw.strip(" \t\n,.;:!?()").split()
    while words and words[-1].casefold() in _FILLER:
        words.pop()
    while words and words[0].casefold() in _FILLER:
        words.pop(0)
    return " ".join(words).strip(" ,.;:!?()")


def _tells_time(said: str, raw: str) -> bool:
    if _BARE_NUMBER.match(said):
        return _DATE_SHAPE.search(said) is not None
    words = [word.strip(".,") for word in said.casefold().split() if word not in _FILLER]
    if any(letter.isdigit() for letter in said):
        return True
    if words == ["may"]:
        return (
            re.search(r"\bMay\b", raw) is not None
            and re.search(r"\b(?:in|of|by|since|until|last|next)\b", raw) is not None
        )
    return any(len(word) >= _SHORTEST and word not in _UNTELLING for word in words)


def _scale(word: str | None) -> float:
    return _SCALES.get(word.casefold().rstrip("."), 1e6) if word else 1.0


def _subject(clause: str, place: int) -> str:
    """Return what an amount is about: the subject named nearest to it in its clause."""
    near = [(abs(match.start() - place), name) for name, words in AMOUNT_SUBJECTS for match in words.finditer(clause)]
    return min(near)[1] if near else GENERAL
