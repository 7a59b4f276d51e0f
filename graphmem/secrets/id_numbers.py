"""Numbers that identify accounts or people, by check digits or by the label before them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stdnum import iban, numdb
from stdnum.ch import ssn as swiss_ssn
from stdnum.fr import nir
from stdnum.it import codicefiscale
from stdnum.us import itin
from stdnum.us import ssn as us_ssn

from graphmem.secrets.detection import Span, load_vocabulary

_WORDS = load_vocabulary("id_numbers")
_IBAN_LENGTHS = {
    country: 4 + sum(map(int, re.findall(r"(\d+)!", properties["bban"])))
    for _, country, _, properties, _ in numdb.get("iban").prefixes
}
"""Characters of an IBAN by country."""

_SEPARATOR = r"[\W_]{0,4}"
_IBAN_START = re.compile(
    rf"(?:(?<![A-Za-z0-9])|(?<=iban))[A-Z]{_SEPARATOR}[A-Z]{_SEPARATOR}\d{_SEPARATOR}\d(?={_SEPARATOR}[A-Z0-9])",
    re.IGNORECASE | re.ASCII,
)
_NEXT_CHARACTER = re.compile(rf"{_SEPARATOR}([A-Za-z0-9])")


def find_ibans(text: str) -> Iterator[Span]:
    """Yield the IBANs whose country, length and check digits are right, in groups or not, in any case."""
    at = 0
    while match := _IBAN_START.search(text, at):
        end = _find_iban_end(text, match)
        if end is not None:
            yield match.start(), end
        at = end or match.start() + 1


def _find_iban_end(text: str, start: re.Match[str]) -> int | None:
    compact = re.sub(r"[\W_]", "", start.group()).upper()
    at, length = start.end(), _IBAN_LENGTHS.get(compact[:2])
    if length is None:
        return None
    while len(compact) < length:
        following = _NEXT_CHARACTER.match(text, at)
        if following is None:
            return None
        compact += following[1].upper()
        at = following.end()
    return at if iban.is_valid(compact, check_country=False) and not text[at : at + 1].isdigit() else None


_SSN = re.compile(r"(?<![A-Za-z0-9_.\-+])\d{3}(\s|-)\s?\d{2}\1\s?\d{4}(?![A-Za-z0-9_\-]|[.,]\d)")
_SSN_IN_WORDS = re.compile(r"(?<!\d)\d{3}(?P<gap>[^\d.!?\n]{1,20})\d{2}(?P=gap)\d{4}(?!\d)")
"""The three groups of a US number with the same words between them."""
_SSN_LABEL = re.compile(rf"\b{_WORDS.any_of('ssn_labels')}", re.IGNORECASE)
_NATIONAL_ID = (
    r"(?:[A-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D]|[XYZ]-?\d{7}-?[A-Z]|\d{7,8}-?[A-Z]"
    r"|[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]|\d{2} ?\d{6} ?[A-Z] ?\d{3}|\d(?:[ .\-/_]{0,3}\d){8,14}+)"
)
_LABELLED_SSN = re.compile(
    rf"(?:[^\d\n.!?]{{0,30}}[^A-Za-z0-9])?(?P<value>{_NATIONAL_ID})(?![A-Za-z0-9])", re.IGNORECASE
)
_SSN_BEFORE_LABEL = re.compile(
    rf"(?<![A-Za-z0-9_.,$€£¥+\-/])(?P<value>{_NATIONAL_ID})[ ]?[,;:(\-]{{0,2}}[ ]?"
    rf"(?:(?:{_WORDS.any_of('copulas', 'possessives')}|as|for|that's|this is)[ ]){{0,3}}(?:[\w'-]{{1,20}}[ ])?"
    rf"{_WORDS.any_of('ssn_labels')}(?!\w)",
    re.IGNORECASE,
)
_NATIONAL = re.compile(
    r"(?<![A-Za-z0-9_.\-])(?:756[ .]?\d{4}[ .]?\d{4}[ .]?\d{2}"
    r"|[12][ .]?\d{2}[ .]?\d{2}[ .]?\d[\dAB][ .]?\d{3}[ .]?\d{3}[ .]?\d{2}"
    r"|[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z])(?![A-Za-z0-9_\-])",
    re.IGNORECASE,
)


def find_ssns(text: str) -> Iterator[Span]:
    """Yield social security numbers: US ones by their shape, others by check digits or because they are called so."""
    for match in _SSN.finditer(text):
        number = re.sub(r"\D", "", match.group())
        if us_ssn.is_valid(number) or itin.is_valid(number):
            yield match.span()
    for match in _NATIONAL.finditer(text):
        number = re.sub(r"[ .]", "", match.group())
        if nir.is_valid(number) or swiss_ssn.is_valid(number) or codicefiscale.is_valid(number):
            yield match.span()
    labels = [label.end() for label in _SSN_LABEL.finditer(text)]
    for end in labels:
        if number_match := _LABELLED_SSN.match(text, end):
            yield number_match.span("value")
    if labels:
        for match in _SSN_IN_WORDS.finditer(text):
            yield match.span()
        for match in _SSN_BEFORE_LABEL.finditer(text):
            yield match.span("value")


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
