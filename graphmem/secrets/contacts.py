"""E-mail addresses and telephone numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from phonenumbers import Leniency, PhoneNumberMatch, PhoneNumberMatcher, PhoneNumberType, number_type

from graphmem.secrets.detection import Span, load_vocabulary

_TOP_LEVEL = (
    r"(?:com|net|org|edu|gov|io|dev|app|co|me|info|biz|ai|eu|uk|us|ca|au|de|at|ch|fr|es|it|nl|be|pt|pl|se|no|dk"
    r"|fi|ie|in|jp|cn|br|mx|ru)"
)
_WORDS = load_vocabulary("contacts")
_EMAIL = re.compile(
    r"(?<![\w.+%&\-@/])(?!git@[\w.\-]+:)[\w.+%&'\-]{1,64}+[ ]?(?:@"
    r"|＠)[ ]?[\w\-]{1,63}+(?:\.[\w\-]{1,63}+){1,6}+(?<=[^\W\d_]{2})"
)
_IMAGE_FILE_NAME = re.compile(r"@\dx\.\w+$")
_AT, _DOT = _WORDS.any_of("at_words"), _WORDS.any_of("dot_words")
_DOT_IN_BRACKETS = rf"[ ]?[\[({{<][ ]?{_DOT}[ ]?[\])}}>][ ]?"
_SPELLED_EMAIL = re.compile(
    rf"(?<![\w.+\-])(?!{_WORDS.any_of('no_mailboxes')}[ ])[\w.+\-]{{1,64}}+[ ]?"
    rf"(?:[\[({{<][ ]?{_AT}[ ]?[\])}}>]|[ ]{_AT}[ ](?=[\w\-]{{1,40}}(?:[ ]{_DOT}[ ])))[ ]?"
    rf"[\w\-]{{1,63}}+(?:(?:\.|{_DOT_IN_BRACKETS}|[ ]{_DOT}[ ])[\w\-]{{1,40}}){{0,3}}?"
    rf"(?:\.|{_DOT_IN_BRACKETS}|[ ]{_DOT}[ ]){_TOP_LEVEL}\b",
    re.IGNORECASE,
)


def find_emails(text: str) -> Iterator[Span]:
    """Yield e-mail addresses, also those spelled `name (at) host (dot) com`."""
    for match in _EMAIL.finditer(text):
        if not _IMAGE_FILE_NAME.search(match.group()):
            yield match.span()
    for match in _SPELLED_EMAIL.finditer(text):
        yield match.span()


DEFAULT_PHONE_REGIONS = ("US", "GB", "DE", "FR", "ES", "IT")
"""Regions that a number without a country code may be from, in this order."""

_TIME_OF_DAY = r"\d{1,2}:\d{2}(?::\d{2})?"
_NOT_A_PHONE = re.compile(
    r"(?<!\d)(?:19|20)\d\d([-/. ])(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12]\d|3[01])(?![\d])(?:[T ]"
    + _TIME_OF_DAY
    + r")?"  # ISO dates
    r"|(?<!\d)(?:0?[1-9]|[12]\d|3[01])([-/. ])(?:0?[1-9]|[12]\d|3[01])\2(?:19|20)\d\d(?!\d)"  # 31.12.2024, 12/31/2024
    r"|(?<![\d+])" + _TIME_OF_DAY + r"(?!\d)"  # times of day
    r"|(?<![\d+.])(?!1\.\d{3}\.\d{3}\.\d{4})(?:\d{1,5}\.){3}\d{1,5}(?![\d]|\.\d)"  # IPv4, four-part versions
    r"|(?<![\w.])v\d+(?:\.\d+)+|(?<![\d+.])\d{1,2}\.\d{1,3}\.\d{1,3}(?![\d.])"  # versions
    r"|(?<![\d+])97[89](?:[- ]?\d){10}(?!\d)"  # ISBN-13
    r"|[$€£¥₹][ ]?\d[\d .,']*+|(?:\b(?:USD|EUR|GBP|CHF|JPY|Rs\.?)[ ]?)\d[\d .,']*+"  # prices
    r"|\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"  # UUIDs
    r"|(?<!\d)(?:19|20)\d\d[ ]?[-/][ ]?(?:19|20)\d\d(?!\d)"  # ranges of years
    r"|\b(?:https?|ftp)://(?!wa\.me)\S++|\bwww\.\S++",  # addresses on the web
    re.ASCII,
)
_PHONE_CANDIDATE = re.compile(
    r"(?<![A-Za-z0-9_.,#\-/])(?:\(?\+[ ]?)?\(?\d(?:[ \t().\-/]{0,3}\d){6,}+(?![A-Za-z0-9_%°€$£]|[.,:]\d)"
)
_FORMATTED_NUMBER = re.compile(r"(?<!\d)(?:\(?[2-9]\d{2}\)?[ .\-][2-9]\d{2}[ .\-]\d{4}|0[1-9](?:[ .]\d{2}){4})(?!\d)")
_MAX_DIGITS = 18
"""Most digits of a telephone number: 15 (E.164) and an international prefix."""
_UNIT_AFTER = re.compile(rf"[ ]?{_WORDS.any_of('money', 'length', 'counted', 'other_units')}\b", re.IGNORECASE)
_PHONE_WORD = re.compile(rf"\b{_WORDS.any_of('phone_words')}(?!\w)|{_WORDS.any_of('cjk_phone_words')}", re.IGNORECASE)
_REFERENCE_BEFORE = re.compile(
    rf"(?:\b{_WORDS.any_of('references')}\b(?:[ .]{{0,2}}{_WORDS.any_of('reference_fillers')})*\.?[ ]?[:=#]?|#|№)[ ]*$",
    re.IGNORECASE,
)
_EXTENSION = re.compile(rf"[ ,]{{0,2}}{_WORDS.any_of('extensions')}[ ]?\d{{1,6}}(?!\w)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?][ ]+(?=[^\W\d_a-z])|\n")


def find_phones(text: str, region: str | None = None) -> Iterator[Span]:
    """Yield telephone numbers; one without a country code is tried as one of `region` (ISO 3166-1 alpha-2) first."""
    masked = _NOT_A_PHONE.sub(lambda match: "\x1f" * len(match.group()), text)
    regions = [*([region.upper()] if region else []), *DEFAULT_PHONE_REGIONS]
    for start, end in _find_phone_candidates(masked):
        number = text[start:end]
        leniency = None if _UNIT_AFTER.match(text, end) else _required_leniency(text, start, end, number)
        if leniency is None:
            continue
        if span := _match_number(number, [None] if number.startswith(("+", "(+")) else regions, leniency):
            yield start + span[0], _phone_end(text, start + span[1])


def _match_number(number: str, regions: Sequence[str | None], leniency: int) -> Span | None:
    """Return the longest part of a candidate that is a number of one of the regions."""
    best: Span | None = None
    for region in regions:
        found = next(iter(PhoneNumberMatcher(number, region, leniency=leniency)), None)
        if found is None or (leniency == Leniency.VALID and number.isdigit() and not _is_mobile(found)):
            continue
        if best is None or found.end - found.start > best[1] - best[0]:
            best = (found.start, found.end)
        if found.end - found.start >= len(number) - 1:
            break
    return best


def _phone_end(text: str, end: int) -> int:
    """Return the end of a number with its extension."""
    extension = _EXTENSION.match(text, end)
    return extension.end() if extension else end


def _is_mobile(found: PhoneNumberMatch) -> bool:
    return number_type(found.number) in (PhoneNumberType.MOBILE, PhoneNumberType.FIXED_LINE_OR_MOBILE)


def _find_phone_candidates(text: str) -> Iterator[Span]:
    for run in _PHONE_CANDIDATE.finditer(text):
        if sum(char.isdigit() for char in run.group()) < _MAX_DIGITS:
            yield run.span()
        else:
            yield from (match.span() for match in _FORMATTED_NUMBER.finditer(text, *run.span()))


def _required_leniency(text: str, start: int, end: int, number: str) -> int | None:
    """Return how strictly a number is validated, or None if nothing indicates a telephone number."""
    if number.startswith(("+", "(+")):
        return Leniency.POSSIBLE
    before = _SENTENCE_END.split(text[max(0, start - 50) : start])[-1]
    if _REFERENCE_BEFORE.search(before):
        return None
    groups = [len(group) for group in re.findall(r"\d+", number)]
    if _PHONE_WORD.search(before) or _PHONE_WORD.search(_SENTENCE_END.split(text[end : end + 30])[0]):
        return Leniency.POSSIBLE
    if re.fullmatch(r"\d{5}-\d{4}|[0 .\-]+", number):
        return None
    if (
        re.match(r"\(?0(?:0[1-9]|[1-9])", number)
        and 9 <= sum(groups) <= 14
        and 2 <= len(groups) <= (7 if number.startswith("00") else 5)
    ):
        return Leniency.POSSIBLE
    if "." in number and "-" in number:
        return None
    if groups in ([3, 3, 4], [1, 3, 3, 4]) or re.match(r"\(\d{2,5}\)", number):
        return Leniency.VALID
    if number.startswith("0") and len(groups) == 1 and 10 <= groups[0] <= 11:
        return Leniency.VALID
    return None
