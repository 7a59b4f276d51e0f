"""Times, amounts and entities that a message mentions, as its sender gave them or read from its text without a model.

`dateparser` reads times and `price-parser` amounts; a message takes some milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from price_parser import Price

from graphmem.context.cue_patterns import AMOUNT_CONTEXT_PATTERNS
from graphmem.domain.session import Message, MessageRole
from graphmem.store.context_mapping import Mention
from graphmem.text.time_expressions import find_time_expressions
from graphmem.text.word_lists import WESTERN_LANGUAGES

MAX_CHARACTERS_READ = 2_000
"""Characters of a message that are read for times and amounts."""

TIME_RELEVANCE = 0.9
"""Relevance score of a time."""

TIME_TTL = timedelta(minutes=60)
"""Time to live of a time after its message."""

AMOUNT_RELEVANCE = 0.8
"""Relevance score of an amount."""

AMOUNT_TTL = timedelta(minutes=30)
"""Time to live of an amount after its message."""

ENTITY_RELEVANCE = 0.85
"""Relevance score of an entity."""

ENTITY_TTL = timedelta(minutes=120)
"""Time to live of an entity after its message."""

MAX_TTL = max(TIME_TTL, AMOUNT_TTL, ENTITY_TTL)
"""Age of a message from which all its mentions have expired."""

GENERAL_CONTEXT = "general"
"""The context of an amount whose clause does not say what it is for."""

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
_CLAUSE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_PERCENTAGE = re.compile(r"\d[\d.,]*[ ]?%")


@dataclass(frozen=True, slots=True)
class TimeMention:
    """A time: its precision (`time`, `day`, `week`, `month` or `year`), its words, the local time meant in ISO 8601."""

    type: str
    text: str
    at: str


@dataclass(frozen=True, slots=True)
class AmountMention:
    """An amount of money, its currency as it is written, its words, and what it is for."""

    amount: float
    currency: str
    text: str
    context: str


def extract_mentions(message: Message, now: datetime, known_entities: Iterable[tuple[str, str]] = ()) -> list[Mention]:
    """Return what a message of the user mentions, without what has expired at `now`.

    Times or amounts that the sender gave as entities are not read from the text too. Without entities of the sender,
    `known_entities` are mentioned, pairs of a type and a name.
    """
    if message.role is not MessageRole.USER:
        return []
    start = min(message.timestamp, now)
    text = message.content[:MAX_CHARACTERS_READ]
    found: list[tuple[str, str, Any, float, timedelta]] = []
    if start + TIME_TTL > now and message.entities.keys().isdisjoint(("time", "date", "period")):
        local = start.astimezone(UTC) + timedelta(minutes=message.utc_offset_minutes)
        found += [
            ("time_reference", time.type, asdict(time), TIME_RELEVANCE, TIME_TTL) for time in extract_times(text, local)
        ]
    if start + AMOUNT_TTL > now and "amount" not in message.entities:
        found += [
            ("amount_reference", f"amount_{amount.context}", asdict(amount), AMOUNT_RELEVANCE, AMOUNT_TTL)
            for amount in extract_amounts(text, message.entities.get("category", ()))
        ]
    if start + ENTITY_TTL > now:
        given = [(kind.lower(), value) for kind, values in message.entities.items() for value in values]
        known = [(kind.lower(), name) for kind, name in known_entities]
        found += [(f"entity_{kind}", kind, value, ENTITY_RELEVANCE, ENTITY_TTL) for kind, value in given or known]
    return [
        Mention(message.id, message.session_id, kind, key, value, relevance, start + ttl)
        for kind, key, value, relevance, ttl in found
    ]


def extract_amounts(text: str, categories: Sequence[Any] = ()) -> list[AmountMention]:
    """Return the amounts of money in a text, each once per context.

    The context is the first of the sender's `categories`, else what the clause is about (budget, income, …), else
    `general`.
    """
    found: dict[tuple[float, str], AmountMention] = {}
    for clause in _CLAUSE_END.split(text):
        for match in _AMOUNT.finditer(clause):
            currency = match["first"] or match["last"]
            price = Price.fromstring(match["leading"] or match["trailing"], currency_hint=currency)
            if price.amount is None:
                continue
            amount = float(price.amount) * _scale_factor(match["scale1"] or match["scale2"])
            context = str(categories[0]).casefold() if categories else _amount_context(clause, match.start())
            found.setdefault((amount, context), AmountMention(amount, currency.strip(), match[0].strip(), context))
    return list(found.values())


def parse_amount(value: object) -> float | None:
    """Return an amount given as a number or as text ("$1,200.50"); None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    price = Price.fromstring(value) if isinstance(value, str) else None
    return float(price.amount) if price and price.amount is not None else None


def extract_times(text: str, local: datetime) -> list[TimeMention]:
    """Return the times that a text mentions as of `local`, the speaker's local time, each once."""
    masked = _PERCENTAGE.sub(" ; ", _AMOUNT.sub(" ; ", text))
    found: dict[str, TimeMention] = {}
    for expression in find_time_expressions(masked, local.replace(tzinfo=None), WESTERN_LANGUAGES):
        found.setdefault(
            expression.text.casefold(),
            TimeMention(expression.precision, expression.text, expression.at.isoformat()),
        )
    return list(found.values())


def _scale_factor(word: str | None) -> float:
    return _SCALE_FACTORS.get(word.casefold().rstrip("."), 1e6) if word else 1.0


def _amount_context(clause: str, position: int) -> str:
    """Return what an amount is for: the cue nearest to it in its clause."""
    near = [
        (abs(match.start() - position), name)
        for name, words in AMOUNT_CONTEXT_PATTERNS
        for match in words.finditer(clause)
    ]
    return min(near)[1] if near else GENERAL_CONTEXT
