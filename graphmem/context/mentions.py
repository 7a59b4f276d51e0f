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

from graphmem.context.cue_patterns import AMOUNT_CONTEXT_PATTERNS
from graphmem.domain.session import Message, MessageRole
from graphmem.store.context_mapping import Mention

MAX_CHARACTERS_READ = 2_000
"""Only the beginning of a long message is read for times and amounts."""

DATE_LANGUAGES = ["en", "de", "fr", "es", "it", "pt", "nl"]
"""Languages times are read in; detecting any of hundreds would take a second."""

TIME_RELEVANCE, TIME_TTL = 0.9, timedelta(minutes=60)
AMOUNT_RELEVANCE, AMOUNT_TTL = 0.8, timedelta(minutes=30)
ENTITY_RELEVANCE, ENTITY_TTL = 0.85, timedelta(minutes=120)
"""Relevance and time to live of what a message mentions (TRUE-08)."""

MAX_TTL = max(TIME_TTL, AMOUNT_TTL, ENTITY_TTL)

_CURRENCY_SYMBOL = r"(?:[A-Z]{0,3}\$|[€£¥₹₽₩₺₴₦₱₪₫฿]|(?:USD|EUR|GBP|CHF|JPY|CAD|AUD|INR|CNY|SEK|NOK|DKK|PLN|BRL|MXN)\b)"
_NUMBER = r"\d(?:[\d.,'’ \u00a0\u202f]*\d)?"
_SCALE_SUFFIX = (
    r"(?:[ ]?(?P<scale{0}>k|K|m|M|mn|thousand|million|mio\.?|tsd\.?|tausend|mil(?:lones)?|mille|milioni)\b)?"
)
_CURRENCY_WORD = r"(?:dollars?|bucks|euros?|pounds?|yen|rupees?|francs?|franken|kronor|kroner|pesos|reais|zł)"
_AMOUNT = re.compile(
    rf"(?P<first>{_CURRENCY_SYMBOL})[ ]?(?P<leading>{_NUMBER}){_SCALE_SUFFIX.format(1)}"
    rf"|(?P<trailing>(?<![\w.,]){_NUMBER}){_SCALE_SUFFIX.format(2)}[ ]?(?P<last>{_CURRENCY_SYMBOL}|{_CURRENCY_WORD}\b)",
    re.IGNORECASE,
)
_SCALE_FACTORS = {"k": 1e3, "thousand": 1e3, "tsd": 1e3, "tausend": 1e3, "mil": 1e3, "mille": 1e3}
GENERAL_CONTEXT = "general"

_CLAUSE_BOUNDARY = re.compile(r"(?<=[.!?;])\s+|\n+")
_PERCENTAGE = re.compile(r"\d[\d.,]*[ ]?%")
_BARE_NUMBER = re.compile(r"^[\d\s.,:%+'-]+$")
_DATE_SHAPE = re.compile(r"\d{1,4}[./-]\d{1,2}(?:[./-]\d{1,4})?|\d{1,2}:\d{2}|^(?:19|20)\d\d$")
_AMBIGUOUS_TIME_WORDS = frozenset(
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
_MIN_TIME_WORD_LENGTH = 4
"""Words of fewer letters are read as weekdays and months in some language or other: alone they tell no time."""

_FILLER_WORDS = frozenset(
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


def extract_mentions(message: Message, now: datetime, named: Iterable[tuple[str, str]] = ()) -> list[Mention]:
    """Return what a message of the user mentions and what is still of use at `now`.

    What its sender told as entities comes first; without any, `named` are the known entities found in it as
    `(type, name)`. A time or amount told as an entity is not read from the text again.
    """
    if message.role is not MessageRole.USER:
        return []
    at = min(message.timestamp, now)
    text = message.content[:MAX_CHARACTERS_READ]
    found: list[tuple[str, str, Any, float, timedelta]] = []
    if at + TIME_TTL > now and not message.entities.keys() & {"time", "date", "period"}:
        local = at.astimezone(UTC) + timedelta(minutes=message.utc_offset_minutes)
        found += [
            ("time_reference", each["type"], each, TIME_RELEVANCE, TIME_TTL) for each in extract_times(text, local)
        ]
    if at + AMOUNT_TTL > now and "amount" not in message.entities:
        found += [
            ("amount_reference", f"amount_{each['context']}", each, AMOUNT_RELEVANCE, AMOUNT_TTL)
            for each in extract_amounts(text, message.entities.get("category", ()))
        ]
    if at + ENTITY_TTL > now:
        told = [(kind.lower(), value) for kind, values in message.entities.items() for value in values]
        known = [(kind.lower(), name) for kind, name in named]
        found += [(f"entity_{kind}", kind, value, ENTITY_RELEVANCE, ENTITY_TTL) for kind, value in told or known]
    return [
        Mention(message.id, message.session_id, kind, key, value, relevance, at + ttl)
        for kind, key, value, relevance, ttl in found
    ]


def extract_amounts(text: str, categories: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """Return the amounts of money in a text: `{amount, currency, text, context}`.

    The context is the category the sender told, else what the clause speaks of (budget, income, …), else `general`.
    """
    found: dict[tuple[float, str], dict[str, Any]] = {}
    for clause in _CLAUSE_BOUNDARY.split(text):
        for match in _AMOUNT.finditer(clause):
            price = Price.fromstring(
                match["leading"] or match["trailing"], currency_hint=match["first"] or match["last"]
            )
            if price.amount is None:
                continue
            amount = float(price.amount) * _scale_factor(match["scale1"] or match["scale2"])
            context = str(categories[0]).casefold() if categories else _amount_context(clause, match.start())
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


def parse_amount(value: object) -> float | None:
    """Return an amount told as a number or as text ("$1,200.50"); None when it is neither."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    price = Price.fromstring(value) if isinstance(value, str) else None
    return float(price.amount) if price and price.amount is not None else None


def extract_times(text: str, local: datetime) -> list[dict[str, Any]]:
    """Return the times a text mentions, read from `local` on: `{type, text, at}`.

    `type` is how exact it is (time, day, week, month, year), `at` the time meant, on the speaker's clock.
    """
    masked = _PERCENTAGE.sub(" ; ", _AMOUNT.sub(" ; ", text))
    base = local.replace(tzinfo=None)
    found: dict[str, dict[str, Any]] = {}
    for raw, moment in _search_dates(masked, base):
        said = _strip_filler_words(raw)
        if said and _is_time_expression(said, raw):
            exact = _date_precision(said, base)
            found.setdefault(
                said.casefold(), {"type": exact, "text": said, "at": moment.replace(tzinfo=None).isoformat()}
            )
    return list(found.values())


def _search_dates(text: str, base: datetime) -> list[tuple[str, datetime]]:
    # Importing and first use take a tenth of a second: not at the start of every process.
    from dateparser.search import search_dates

    return search_dates(text, languages=DATE_LANGUAGES, settings={"RELATIVE_BASE": base}) or []


@cache
def _date_parser() -> Any:
    from dateparser.date import DateDataParser

    return DateDataParser


def _date_precision(said: str, base: datetime) -> str:
    read = _date_parser()(
        languages=DATE_LANGUAGES, settings={"RELATIVE_BASE": base, "RETURN_TIME_AS_PERIOD": True}
    ).get_date_data(said)
    return str(read.period) if read and read.date_obj else "day"


def _strip_filler_words(raw: str) -> str:
    words = raw.strip(" \t\n,.;:!?()").split()
    while words and words[-1].casefold() in _FILLER_WORDS:
        words.pop()
    while words and words[0].casefold() in _FILLER_WORDS:
        words.pop(0)
    return " ".join(words).strip(" ,.;:!?()")


def _is_time_expression(said: str, raw: str) -> bool:
    if _BARE_NUMBER.match(said):
        return _DATE_SHAPE.search(said) is not None
    words = [word.strip(".,") for word in said.casefold().split() if word not in _FILLER_WORDS]
    if any(letter.isdigit() for letter in said):
        return True
    if words == ["may"]:
        return (
            re.search(r"\bMay\b", raw) is not None
            and re.search(r"\b(?:in|of|by|since|until|last|next)\b", raw) is not None
        )
    return any(len(word) >= _MIN_TIME_WORD_LENGTH and word not in _AMBIGUOUS_TIME_WORDS for word in words)


def _scale_factor(word: str | None) -> float:
    return _SCALE_FACTORS.get(word.casefold().rstrip("."), 1e6) if word else 1.0


def _amount_context(clause: str, place: int) -> str:
    """Return what an amount is about: the subject named nearest to it in its clause."""
    near = [
        (abs(match.start() - place), name)
        for name, words in AMOUNT_CONTEXT_PATTERNS
        for match in words.finditer(clause)
    ]
    return min(near)[1] if near else GENERAL_CONTEXT
