"""Numbers that identify: payment cards, IBANs, social security numbers and bank accounts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from stdnum import iban, luhn
from stdnum.ch import ssn as swiss_ssn
from stdnum.fr import nir
from stdnum.it import codicefiscale
from stdnum.us import itin
from stdnum.us import ssn as us_ssn

from graphmem.domain.secrets.models import Span
from graphmem.domain.secrets.vocabulary import load_vocabulary

_WORDS = load_vocabulary("id_numbers")
_DIGIT_RUN = re.compile(r"\d(?:(?:[\s.\-_/*]{0,3}|,)\d){12,}+")
_DIGIT_GROUP = re.compile(r"\d+")
_YEAR = re.compile(r"(?:19|20)\d\d")
# The ranges of issuers with the lengths they use (ISO/IEC 7812, as the networks publish them).
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


def find_cards(text: str) -> Iterator[Span]:
    """Yield payment card numbers: 13 to 19 digits, grouped or not, that pass Luhn and may be an issuer's."""
    for run in _DIGIT_RUN.finditer(text):
        groups = [(match.group(), match.start(), match.end()) for match in _DIGIT_GROUP.finditer(text, *run.span())]
        has_card_word = _CARD_WORD.search(text, max(0, run.start() - 40), min(len(text), run.end() + 20)) is not None
        first = 0
        while first < len(groups):
            last = _find_card_end(groups, first, has_card_word)
            if last is None:
                first += 1
            else:
                yield groups[first][1], groups[last][2]
                first = last + 1


def _find_card_end(groups: list[tuple[str, int, int]], first: int, has_card_word: bool) -> int | None:
    digits, sizes, best = "", [], None
    for index in range(first, len(groups)):
        digits += groups[index][0]
        sizes.append(len(groups[index][0]))
        if len(digits) > 19:
            break
        if len(digits) < 13 or not luhn.is_valid(digits):
            continue
        is_whole_run = first == 0 and index == len(groups) - 1
        taken = groups[first : index + 1]
        is_evenly_grouped = len({after[1] - before[2] for before, after in pairwise(taken)}) <= 1
        if _is_card(digits, sizes, is_whole_run, is_evenly_grouped, has_card_word) and not all(
            _YEAR.fullmatch(group[0]) for group in taken
        ):
            best = index
    return best


def _is_card(digits: str, sizes: list[int], is_whole_run: bool, is_evenly_grouped: bool, has_card_word: bool) -> bool:
    if len(set(digits)) == 1:
        return False
    if sizes == [4, 4, 4, 4]:
        return True
    has_card_grouping = (
        len(sizes) == 1 or (sizes[0] >= 4 and min(sizes[:-1]) >= 4) or (set(sizes) == {1} and is_evenly_grouped)
    )
    if not has_card_grouping and not (is_whole_run and min(sizes) >= 2 and max(sizes) <= 6):
        return False
    return has_card_word or _ISSUER_RANGES.fullmatch(digits) is not None


_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}[ ]?\d{2}(?:[ .\-]{0,2}[A-Za-z0-9]){11,30}")


def find_ibans(text: str) -> Iterator[Span]:
    """Yield the IBANs whose country, length and check digits are right, in groups or not, in any case."""
    at = 0
    while match := _IBAN.search(text, at):
        end = _find_iban_end(text, match.start(), match.end())
        if end is not None:
            yield match.start(), end
        at = end or match.start() + 2


def _find_iban_end(text: str, start: int, limit: int) -> int | None:
    if sum(char.isdigit() for char in text[start:limit]) < 9:
        return None
    compact = ""
    for at in range(start, limit):
        if not text[at].isalnum():
            continue
        compact += text[at].upper()
        if len(compact) < 15 or int(_iban_to_digits(compact)) % 97 != 1:
            continue
        if iban.is_valid(compact, check_country=False) and not text[at + 1 : at + 2].isdigit():
            return at + 1
    return None


def _iban_to_digits(compact: str) -> str:
    return "".join(str(int(char, 36)) for char in compact[4:] + compact[:4])


_SSN = re.compile(r"(?<![A-Za-z0-9_.\-+])\d{3}(\s|-)\s?\d{2}\1\s?\d{4}(?![A-Za-z0-9_\-]|[.,]\d)")
_SSN_LABEL = re.compile(rf"\b{_WORDS.any_of('ssn_labels')}", re.IGNORECASE)
_LABELLED_SSN = re.compile(
    r"(?:[^\d\n.!?]{0,30}[^A-Za-z0-9])?"
    r"(?P<value>[A-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D]|[XYZ]-?\d{7}-?[A-Z]|\d{7,8}-?[A-Z]"
    r"|\d{2} ?\d{6} ?[A-Z] ?\d{3}|\d(?:[ .\-]{0,2}\d){8,14})"
    r"(?![A-Za-z0-9])",
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
    for label in _SSN_LABEL.finditer(text):
        if number_match := _LABELLED_SSN.match(text, label.end()):
            yield number_match.span("value")


_ACCOUNT = _WORDS.any_of("account_words")
_CJK_ACCOUNT = _WORDS.any_of("cjk_account_words")
_DIGITS = r"(?<![A-Za-z0-9_.,$€£¥+\-/])\d(?:[ .\-]?\d){7,16}(?![A-Za-z0-9_%]|[.,\-/]\d)"
_GAP = (
    r"(?:[ ](?:hat|has)(?:[ ](?:the|die))?(?=[ ](?:konto|account )?num))?"
    rf"(?:[ ]+(?!{_WORDS.any_of('account_breaks')}\b)[^\s\d.!?;]{{1,20}}){{0,5}}?"
)
_ACCOUNT_BEFORE = re.compile(
    rf"(?:\b{_ACCOUNT}\b\.?{_GAP}|{_CJK_ACCOUNT}\D{{0,3}})[ ]?[:=#(\-]{{0,2}}[ ]*(?P<value>{_DIGITS})", re.IGNORECASE
)
_ACCOUNT_AFTER = re.compile(
    rf"(?P<value>{_DIGITS})[ ]?[,(]?[ ]?(?:{_WORDS.any_of('copulas')}[ ])?"
    rf"(?:(?:{_WORDS.any_of('possessives')}|as|for)[ ]){{1,2}}(?:[\w'-]{{1,20}}[ ]){{0,2}}?{_ACCOUNT}\b",
    re.IGNORECASE,
)
_EXPLICIT_ACCOUNT_NUMBER = re.compile(
    rf"{_ACCOUNT}\W{{0,3}}{_WORDS.any_of('number_words')}|{_WORDS.any_of('account_number_words')}|{_CJK_ACCOUNT}",
    re.IGNORECASE,
)
_AMOUNT_AFTER = re.compile(rf"\s?(?:[$€£¥₹%]|{_WORDS.any_of('money', 'counted', 'other_units')}\b)", re.IGNORECASE)
_DATE = re.compile(r"(?:19|20)\d\d[.\- ]?(?:0[1-9]|1[0-2])[.\- ]?(?:0[1-9]|[12]\d|3[01])")


def find_accounts(text: str) -> Iterator[Span]:
    """Yield account numbers told in full: 8 to 17 digits that a nearby word calls an account."""
    for pattern in (_ACCOUNT_BEFORE, _ACCOUNT_AFTER):
        for match in pattern.finditer(text):
            date = _DATE.fullmatch(match["value"]) and not _EXPLICIT_ACCOUNT_NUMBER.search(match.group())
            if not date and not _AMOUNT_AFTER.match(text, match.end("value")):
                yield match.span("value")
