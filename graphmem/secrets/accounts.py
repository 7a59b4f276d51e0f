"""Bank accounts and the routing numbers of banks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphmem.secrets.detection import Span
from graphmem.secrets.vocabulary import load_vocabulary

_WORDS = load_vocabulary("id_numbers")
_ACCOUNT = _WORDS.any_of("account_words")
_CJK_ACCOUNT = _WORDS.any_of("cjk_account_words")
_DIGITS = r"(?<![A-Za-z0-9_.,$€£¥+\-/])\d(?:[ \t.\-]?\d){4,16}+(?![A-Za-z0-9_%]|[.,\-/]\d)"
_GAP = (
    r"(?:[ ](?:hat|has)(?:[ ](?:the|die))?(?=[ ](?:konto|account )?num))?"
    rf"(?:[ ]+(?!{_WORDS.any_of('account_breaks')}\b)[^\s\d.!?;]{{1,20}}){{0,5}}?"
)
_ACCOUNT_BEFORE = re.compile(
    rf"(?:\b{_ACCOUNT}\b\.?(?P<gap>{_GAP})\.?|{_CJK_ACCOUNT}\D{{0,3}})[ ]?[:=#(\-]{{0,2}}[ ]*(?P<value>{_DIGITS})",
    re.IGNORECASE,
)
_ACCOUNT_AFTER = re.compile(
    rf"(?P<value>{_DIGITS})[ ]?[,(]?[ ]?(?:{_WORDS.any_of('copulas')}[ ])?"
    rf"(?:(?:{_WORDS.any_of('possessives')}|as|for)[ ]){{1,2}}(?P<gap>(?:[\w'-]{{1,20}}[ ]){{0,2}}?){_ACCOUNT}\b"
    rf"(?:[ ]{_WORDS.any_of('number_words')}\b)?",
    re.IGNORECASE,
)
_ROUTING = re.compile(
    rf"\b{_WORDS.any_of('routing_words')}\b\.?(?:[ ]{_WORDS.any_of('number_words')}\.?)?"
    rf"[ ]?[:=#]?[ ]?(?:{_WORDS.any_of('copulas')}[ ])?(?P<value>\d(?:[ \-]?\d){{5,8}})(?![\w%]|[.,/]\d)",
    re.IGNORECASE,
)
_EXPLICIT_NUMBER = re.compile(
    rf"{_ACCOUNT}\W{{0,3}}{_WORDS.any_of('number_words')}|{_WORDS.any_of('account_number_words')}|{_CJK_ACCOUNT}"
    rf"|{_WORDS.any_of('number_words')}\W{{1,3}}(?:\w{{1,5}}\W){{0,2}}{_ACCOUNT}",
    re.IGNORECASE,
)
_NUMBER_WORD_BEFORE = re.compile(rf"{_WORDS.any_of('number_words')}\W{{1,3}}(?:\w{{1,5}}\W){{0,2}}$", re.IGNORECASE)
_ANY_LABEL = re.compile(rf"{_WORDS.any_of('account_words', 'cjk_account_words', 'routing_words')}", re.IGNORECASE)
_AMOUNT_AFTER = re.compile(rf"\s?(?:[$€£¥₹%]|{_WORDS.any_of('money', 'counted', 'other_units')}\b)", re.IGNORECASE)
_DATE = re.compile(r"(?:19|20)\d\d[.\- ]?(?:0[1-9]|1[0-2])[.\- ]?(?:0[1-9]|[12]\d|3[01])")
_COPULA_GAP = re.compile(rf"(?:[ ]{_WORDS.any_of('copulas')})?", re.IGNORECASE)

_NUMBER_GAP = re.compile(
    rf"(?:[ ]{_WORDS.any_of('number_words')}\.?)?(?:[ ]{_WORDS.any_of('copulas')})?", re.IGNORECASE
)

_FEWEST_DIGITS = 6
"""Digits from which a number is an account's where the text does not say outright that it is the number of one."""

_FEWEST_UNLABELLED_DIGITS = 8
"""Digits from which a number is an account's where a word in between stands for anything."""


def find_accounts(text: str) -> Iterator[Span]:
    """Yield complete account numbers, which a nearby word calls an account, and routing numbers.

    They have 8 to 17 digits, or 6 and 7 where the text says that they are a number, or says nothing in between; or 5
    where it does both.
    """
    if not _ANY_LABEL.search(text):
        return
    for match in _ROUTING.finditer(text):
        yield match.span("value")
    for pattern in (_ACCOUNT_BEFORE, _ACCOUNT_AFTER):
        for match in pattern.finditer(text):
            if _is_account(text, match):
                yield match.span("value")


def _is_account(text: str, match: re.Match[str]) -> bool:
    value = match["value"]
    is_explicit = (
        _EXPLICIT_NUMBER.search(match.group()) is not None
        or _NUMBER_WORD_BEFORE.search(text, max(0, match.start() - 20), match.start()) is not None
    )
    digits, gap = sum(char.isdigit() for char in value), match["gap"] or ""
    if digits < _FEWEST_DIGITS and not (is_explicit and _NUMBER_GAP.fullmatch(gap)):
        return False
    if digits < _FEWEST_UNLABELLED_DIGITS and not (is_explicit or _COPULA_GAP.fullmatch(gap)):
        return False
    return (is_explicit or not _DATE.fullmatch(value)) and not _AMOUNT_AFTER.match(text, match.end("value"))
