"""Times, amounts and things mentioned in a message: named by its sender, else read from the text. Pure.

Times are read by `dateparser`, amounts by `price-parser`; both take milliseconds and run after the reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from price_parser import Price

from graphmem.context.models import AmountMention, Mention, TimeMention
from graphmem.conversations.session import Message, MessageRole
from graphmem.tenants.profiles import ProductRules
from graphmem.text.time_expressions import find_time_expressions
from graphmem.text.word_lists import LANGUAGES, load_words

MAX_CHARACTERS_READ = 2_000
"""Number of characters at the beginning of a message that are read for times and amounts."""

TIME_RELEVANCE = 0.9
"""Relevance (0 to 1) of a time mentioned in a message."""

AMOUNT_RELEVANCE = 0.8
"""Relevance (0 to 1) of an amount mentioned in a message."""

ENTITY_RELEVANCE = 0.85
"""Relevance (0 to 1) of a thing mentioned in a message."""

TIME_TTL = timedelta(minutes=60)
AMOUNT_TTL = timedelta(minutes=30)
ENTITY_TTL = timedelta(minutes=120)

TIME_KINDS = ("time", "date", "period")
"""Entity types that senders use for times."""

MAX_TTL = max(TIME_TTL, AMOUNT_TTL, ENTITY_TTL)
"""Age at which a message's mentions have all expired."""

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
_MONEY = rf"(?:{'|'.join(map(re.escape, sorted(load_words(*LANGUAGES).money_words)))})"
_IS = r"(?:\s*[:=]|\s+(?:is|are|was|were|of|at|ist|sind|beträgt|von|es|son|de|est|sont))"
_AMOUNT_END = r"(?=\s*(?:[.,;:!?)/]|$|(?:an?|per|each|every|and|but|pro|im|und|al|por|y|par|et)\b))"
_ABOUT = r"(?:\s+(?:about|around|only|just|rund|etwa|unos|environ))?"
_AMOUNT_OF_MONEY_WORD = re.compile(
    rf"\b{_MONEY}{_IS}{_ABOUT}\s+(?P<said>(?!(?:19|20)\d\d(?!\d)){_NUMBER}{_SCALE_SUFFIX.format(1)}){_AMOUNT_END}"
    rf"|(?<![\w.,])(?P<before>{_NUMBER}[ ]?(?P<scale2>k|thousand|million|mio\.?|tsd\.?|tausend|mil|mille))"
    rf"\s+(?:of\s+|in\s+)?(?:\w+\s+)?{_MONEY}\b",
    re.IGNORECASE,
)
_NUMBER_WORDS = {
    word: int(digits) for word, digits in load_words(*LANGUAGES).numbers.items() if digits.isdigit() and " " not in word
}
_NUMBER_WORD = "|".join(sorted(map(re.escape, _NUMBER_WORDS), key=len, reverse=True))
_AMOUNT_IN_WORDS = re.compile(
    rf"\b(?P<words>(?:an? |one )?(?:{_NUMBER_WORD})(?:(?:[ -]| and )(?:{_NUMBER_WORD}))*) (?P<last>{_CURRENCY_WORD})\b",
    re.IGNORECASE,
)
_SCALE_FACTORS = {"k": 1e3, "thousand": 1e3, "tsd": 1e3, "tausend": 1e3, "mil": 1e3, "mille": 1e3}
GENERAL_CONTEXT = "general"
"""Context of an amount that no nearby word explains."""

_CLAUSE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_PERCENTAGE = re.compile(r"\d[\d.,]*[ ]?%")


def extract_mentions(
    message: Message, now: datetime, profile: ProductRules, known_entities: Iterable[tuple[str, str]] = ()
) -> list[Mention]:
    """Return the mentions in a user's message that have not expired at `now`; other messages have none.

    Entities named by the sender come first; without any, `known_entities` are those found in the text as `(type,
    name)`. A time or amount that the sender names as an entity is not read from the text again.
    """
    if message.role is not MessageRole.USER:
        return []
    return [
        mention
        for mention in (
            *_time_mentions(message, now),
            *_amount_mentions(message, now, profile),
            *_entity_mentions(message, now, known_entities),
        )
        if mention.expires_at > now
    ]


def extract_named_things(message: Message, now: datetime) -> list[Mention]:
    """Return the things named in a message, as found earlier, that have not expired at `now`.

    Times and amounts are excluded, since they are read from the text.
    """
    kinds = message.entities.keys() - {*TIME_KINDS, "amount"}
    named = message.model_copy(update={"entities": {kind: message.entities[kind] for kind in sorted(kinds)}})
    return [mention for mention in _entity_mentions(named, now, ()) if mention.expires_at > now]


def _time_mentions(message: Message, now: datetime) -> list[Mention]:
    at = min(message.timestamp, now)
    if at + TIME_TTL <= now:
        return []
    given = {str(value).casefold() for kind in TIME_KINDS for value in message.entities.get(kind, ())}
    local = at.astimezone(timezone(timedelta(minutes=message.utc_offset_minutes)))
    return [
        Mention(
            message.id,
            message.session_id,
            "time_reference",
            time.type,
            time,
            TIME_RELEVANCE,
            at + TIME_TTL,
            message.stated_by,
        )
        for time in extract_times(message.content[:MAX_CHARACTERS_READ], local)
        if given.isdisjoint((time.text.casefold(), time.at.casefold(), time.at[:10], time.at[:7]))
    ]


def _amount_mentions(message: Message, now: datetime, profile: ProductRules) -> list[Mention]:
    at = min(message.timestamp, now)
    if at + AMOUNT_TTL <= now:
        return []
    given = {parse_amount(value) for value in message.entities.get("amount", ())}
    text, categories = message.content[:MAX_CHARACTERS_READ], message.entities.get("category", ())
    return [
        Mention(
            message.id,
            message.session_id,
            "amount_reference",
            f"amount_{amount.context}",
            amount,
            AMOUNT_RELEVANCE,
            at + AMOUNT_TTL,
            message.stated_by,
        )
        for amount in extract_amounts(text, profile, categories)
        if amount.amount not in given
    ]


def _entity_mentions(message: Message, now: datetime, known_entities: Iterable[tuple[str, str]]) -> list[Mention]:
    named = [(kind.lower(), value) for kind, values in message.entities.items() for value in values]
    found = named or [(kind.lower(), name) for kind, name in known_entities]
    expires_at = min(message.timestamp, now) + ENTITY_TTL
    return [
        Mention(
            message.id,
            message.session_id,
            f"entity_{kind}",
            kind,
            value,
            ENTITY_RELEVANCE,
            expires_at,
            message.stated_by,
        )
        for kind, value in found
    ]


def extract_amounts(text: str, profile: ProductRules, categories: Sequence[Any] = ()) -> list[AmountMention]:
    """Return the amounts of money in a text.

    An amount's context is the category that the sender names, else the topic of the nearest words in its clause
    according to the profile, else `general`.
    """
    category = str(categories[0]).casefold() if categories else None
    found: dict[tuple[float, str], AmountMention] = {}
    for clause in _CLAUSE_END.split(text):
        for position, words, number, currency in sorted(_amounts_in(clause)):
            amount = AmountMention(
                amount=number,
                currency=currency,
                text=words,
                context=category or _amount_context(clause, position, profile),
            )
            found.setdefault((amount.amount, amount.context), amount)
    return list(found.values())


def _amounts_in(clause: str) -> Iterator[tuple[int, str, float, str]]:
    """Yield a clause's amounts: the position, the words, the number, and the currency, which may be empty."""
    for match in _AMOUNT.finditer(clause):
        currency = match["first"] or match["last"]
        price = Price.fromstring(match["leading"] or match["trailing"], currency_hint=currency)
        if price.amount is not None:
            scale = _scale_factor(match["scale1"] or match["scale2"])
            yield match.start(), match[0].strip(), float(price.amount) * scale, currency.strip()
    for match in _AMOUNT_IN_WORDS.finditer(clause):
        yield match.start(), match[0], _number_in_words(match["words"]), match["last"]
    for match in _AMOUNT_OF_MONEY_WORD.finditer(_AMOUNT.sub(lambda match: " " * len(match[0]), clause)):
        number = (match["said"] or match["before"]).strip()
        price = Price.fromstring(number)
        if price.amount is not None:
            yield match.start(), number, float(price.amount) * _scale_factor(match["scale1"] or match["scale2"]), ""


def _number_in_words(words: str) -> float:
    """Return the number meant by words such as "two hundred and fifty"."""
    total = part = 0
    for word in re.split(r"[ -]", words.casefold()):
        value = _NUMBER_WORDS.get(word)
        if value is None:
            continue
        if value >= 1000:
            total, part = total + (part or 1) * value, 0
        elif value == 100:
            part = (part or 1) * value
        else:
            part += value
    return float(total + part)


def parse_amount(value: object) -> float | None:
    """Return an amount given as a number or as text, such as "$1,200.50"; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    price = Price.fromstring(value) if isinstance(value, str) else None
    return float(price.amount) if price and price.amount is not None else None


def extract_times(text: str, local: datetime) -> list[TimeMention]:
    """Return the times mentioned in a text, relative to `local`, the time on the speaker's clock.

    Their type is their precision: time, part_of_day, day, week, month, year, weekend, quarter or range.
    """
    masked = text
    for amounts in (_AMOUNT, _AMOUNT_IN_WORDS, _PERCENTAGE):
        masked = amounts.sub(" ; ", masked)
    found: dict[str, TimeMention] = {}
    for expression in find_time_expressions(masked, local.replace(tzinfo=None), LANGUAGES):
        at, until = expression.at.replace(tzinfo=local.tzinfo), expression.until
        mention = TimeMention(
            type=expression.precision,
            text=expression.text,
            at=at.isoformat(),
            until=until.replace(tzinfo=local.tzinfo).isoformat() if until else None,
        )
        found.setdefault(expression.text.casefold(), mention)
    return list(found.values())


def _scale_factor(word: str | None) -> float:
    return _SCALE_FACTORS.get(word.casefold().rstrip("."), 1e6) if word else 1.0


def _amount_context(clause: str, position: int, profile: ProductRules) -> str:
    """Return the topic of an amount from the nearest word of its clause."""
    distances = [
        (abs(match.start() - position), name)
        for name, pattern in profile.amount_context_patterns
        for match in pattern.finditer(clause)
    ]
    return min(distances)[1] if distances else GENERAL_CONTEXT
