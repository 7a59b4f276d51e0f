"""Numbers identified by check digits or by a preceding label: payment cards, accounts and people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from stdnum import iban, luhn, numdb
from stdnum.ch import ssn as swiss_ssn
from stdnum.fr import nir
from stdnum.it import codicefiscale
from stdnum.us import itin
from stdnum.us import ssn as us_ssn

from graphmem.secrets.detection import Span, load_vocabulary, month_pattern

_WORDS = load_vocabulary("id_numbers")
_DIGIT_RUN = re.compile(r"\d(?:[\W_]{0,8}\d){12,}+")
_DIGIT_GROUP = re.compile(r"\d+")
_YEAR = re.compile(r"(?:19|20)\d\d")
_CLOSE_GAP = re.compile(r"[ .\-_/*]{0,3}| {4,8}")
"""Separators between the groups of one number; anything else may also separate the items of a list."""

_LENGTHS = range(13, 20)
_MOST_DIGITS = 19
_SHORTEST_GROUP = 4
_MOST_SHORT_GROUPS = 9
_LISTED_SIZES = ([4, 4, 4, 4], [4, 6, 5], [4, 6, 4])
# The issuer ranges with the lengths they use (ISO/IEC 7812, as published by the networks).
_ISSUER_RANGES = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[0-9]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|220[0-4]\d{12,15}"
    r"|3[47]\d{13}|3(?:0[0-5]|09|[68]\d|9\d)\d{11}|3(?:0[0-59]|[689]\d)\d{13}|35(?:2[89]|[3-8]\d)\d{12,15}"
    r"|(?:2131|1800)\d{11}"
    r"|6\d{15}|6[25]\d{14,17}|(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{9,15}|50[67]\d{13,16}|8[12]\d{14,17}"
    r"|9792\d{12}"
)
_CARD_WORD = re.compile(
    rf"\b(?:credit|debit|kredit|bank|giro)?{_WORDS.any_of('card_words')}(?:nummer)?\b|\b{_WORDS.any_of('card_brands')}\b"
    rf"|{_WORDS.any_of('unbounded_card_words')}",
    re.IGNORECASE,
)
_BETWEEN = r"[\s,;:.&|/()\-]{0,4}"
_SIGN = r"(?:[\s:.=#]{0,3}|[ ]is[ ])"
_MONTH = month_pattern()
_EXPIRY_DATE = rf"(?:(?:0?[1-9]|1[0-2])[ ]?[/.\-][ ]?(?:20)?\d\d|{_MONTH}\.?[ ]?(?:20)?\d\d)(?!\d)"
_CHECK_VALUE = rf"{_BETWEEN}(?:and[ ])?{_WORDS.any_of('check_value_words')}{_SIGN}\d{{3,4}}(?!\d)"
_EXPIRY = rf"{_BETWEEN}(?:and[ ])?{_WORDS.any_of('expiry_words')}{_SIGN}(?:{_EXPIRY_DATE}|(?:0[1-9]|1[0-2])\d\d(?!\d))"
_TAIL = re.compile(
    rf"(?:{_CHECK_VALUE}|(?:{_EXPIRY}|{_BETWEEN}{_EXPIRY_DATE})(?:[\s,;/|\-]{{1,3}}\d{{3,4}}(?![\d/.\-]))?){{1,3}}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Groups:
    """The groups of digits of a run, and the gap between each and the next."""

    digits: Sequence[str]
    spans: Sequence[Span]
    gaps: Sequence[str]

    def __len__(self) -> int:
        return len(self.digits)

    def continues(self, index: int) -> bool:
        """Return whether the group at `index` continues the previous one: same length, after an equal gap."""
        if not 0 < index < len(self):
            return False
        others = self.gaps[index - 2 : index - 1] or self.gaps[index : index + 1]
        return len(self.digits[index]) == len(self.digits[index - 1]) and self.gaps[index - 1] in others


def find_cards(text: str) -> Iterator[Span]:
    """Yield payment card numbers: 13 to 19 digits, grouped or not, that pass Luhn and may be an issuer's.

    The span includes an expiry date and a check value after the number.
    """
    for run in _DIGIT_RUN.finditer(text):
        spans = [match.span() for match in _DIGIT_GROUP.finditer(text, *run.span())]
        groups = _Groups(
            [text[start:end] for start, end in spans],
            spans,
            [text[before[1] : after[0]] for before, after in pairwise(spans)],
        )
        has_card_word = _CARD_WORD.search(text, max(0, run.start() - 40), min(len(text), run.end() + 20)) is not None
        first = 0
        while first < len(groups):
            last = _find_card_end(groups, first, has_card_word)
            if last is not None:
                end = groups.spans[last][1]
                tail = _TAIL.match(text, end)
                yield groups.spans[first][0], tail.end() if tail else end
            first = first + 1 if last is None else last + 1


def _find_card_end(groups: _Groups, first: int, has_card_word: bool) -> int | None:
    size = len(groups.digits[first])
    if size == 1 and not has_card_word and groups.continues(first):
        return None  # the digits of a long sequence
    if 1 < size < _SHORTEST_GROUP and (first or len(groups) > _MOST_SHORT_GROUPS):
        return None
    digits, best = "", None
    for last in range(first, len(groups)):
        digits += groups.digits[last]
        if len(digits) > _MOST_DIGITS or (size == 1 and len(groups.digits[last]) > 1):
            break
        if len(digits) in _LENGTHS and _is_card(groups, first, last, digits, has_card_word):
            best = last
    return best


def _is_card(groups: _Groups, first: int, last: int, digits: str, has_card_word: bool) -> bool:
    taken, gaps = groups.digits[first : last + 1], groups.gaps[first:last]
    sizes = [len(group) for group in taken]
    is_issued = has_card_word or _ISSUER_RANGES.fullmatch(digits) is not None
    is_in_two_lines = {*gaps} == {" ", "\n"} and gaps.count("\n") == 1
    is_even = len({*gaps}) <= 1 or is_in_two_lines
    is_alone = has_card_word or not (groups.continues(first) or groups.continues(last + 1))
    if set(sizes) == {1} and len(sizes) > 1:
        fits = is_even and is_issued and is_alone
    elif not all(_is_close(gap, has_card_word) for gap in gaps):
        fits = is_even and sizes in _LISTED_SIZES and is_issued and is_alone
    elif sizes == [4, 4, 4, 4]:
        fits = is_issued or is_alone
    else:
        has_long_groups = min(sizes[:-1], default=_SHORTEST_GROUP) >= _SHORTEST_GROUP
        is_whole_run = len(sizes) == len(groups) and min(sizes) >= 2 and max(sizes) <= 6
        fits = is_issued and (has_long_groups or is_whole_run)
    if not fits or len(set(digits)) == 1 or all(map(_YEAR.fullmatch, taken)):
        return False
    return bool(luhn.is_valid(digits))


def _is_close(gap: str, has_card_word: bool) -> bool:
    """Return whether a gap may be inside a number; numbers called cards may continue on the next line."""
    return _CLOSE_GAP.fullmatch(gap.replace("\n", "", 1) if has_card_word else gap) is not None


_IBAN_LENGTHS = {
    country: 4 + sum(map(int, re.findall(r"(\d+)!", properties["bban"])))
    for _, country, _, properties, _ in numdb.get("iban").prefixes
}
"""Number of characters of an IBAN by country."""

_SEPARATOR = r"[\W_]{0,4}"
_IBAN_START = re.compile(
    rf"(?:(?<![A-Za-z0-9])|(?<=iban))[A-Z]{_SEPARATOR}[A-Z]{_SEPARATOR}\d{_SEPARATOR}\d(?={_SEPARATOR}[A-Z0-9])",
    re.IGNORECASE | re.ASCII,
)
_NEXT_CHARACTER = re.compile(rf"{_SEPARATOR}([A-Za-z0-9])")


def find_ibans(text: str) -> Iterator[Span]:
    """Yield the IBANs with valid country, length and check digits, grouped or not, in any case."""
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


_SSN = re.compile(r"(?<![A-Za-z0-9_.\-+])\d{3}(\s|-)\s?\d{2}(?:\1\s?|\n)\d{4}(?![A-Za-z0-9_\-]|[.,]\d)")
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
    """Yield social security numbers: US ones by their format, others by check digits or by label."""
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
_WRITTEN_DATE = re.compile(r"(?:19|20)\d\d[.\- ]?(?:0[1-9]|1[0-2])[.\- ]?(?:0[1-9]|[12]\d|3[01])")
_COPULA_GAP = re.compile(rf"(?:[ ]{_WORDS.any_of('copulas')})?", re.IGNORECASE)

_NUMBER_GAP = re.compile(
    rf"(?:[ ]{_WORDS.any_of('number_words')}\.?)?(?:[ ]{_WORDS.any_of('copulas')})?", re.IGNORECASE
)

_FEWEST_DIGITS = 6
"""Minimum digits of an account number unless the text explicitly says that it is one."""

_FEWEST_UNLABELLED_DIGITS = 8
"""Minimum digits of an account number if an arbitrary word stands in between."""


def find_accounts(text: str) -> Iterator[Span]:
    """Yield complete account numbers, which a nearby word calls an account, and routing numbers.

    They have 8 to 17 digits; 6 or 7 if the text says that they are a number or has nothing in between; or 5 if both
    hold.
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
    return (is_explicit or not _WRITTEN_DATE.fullmatch(value)) and not _AMOUNT_AFTER.match(text, match.end("value"))
