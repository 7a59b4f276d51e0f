"""Personal details: e-mail addresses, telephone numbers, street addresses and birth dates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from phonenumbers import Leniency, PhoneNumberMatch, PhoneNumberMatcher, PhoneNumberType, number_type

from graphmem.secrets.detection import Span, load_vocabulary, month_pattern

_TOP_LEVEL = (
    r"(?:com|net|org|edu|gov|io|dev|app|co|me|info|biz|ai|eu|uk|us|ca|au|de|at|ch|fr|es|it|nl|be|pt|pl|se|no|dk"
    r"|fi|ie|in|jp|cn|br|mx|ru)"
)
_CONTACTS = load_vocabulary("contacts")
_EMAIL = re.compile(
    r"(?<![\w.+%&\-@/])(?!git@[\w.\-]+:)[\w.+%&'\-]{1,64}+[ ]?(?:@"
    r"|＠)[ ]?[\w\-]{1,63}+(?:\.[\w\-]{1,63}+){1,6}+(?<=[^\W\d_]{2})"
)
_IMAGE_FILE_NAME = re.compile(r"@\dx\.\w+$")
_AT, _DOT = _CONTACTS.any_of("at_words"), _CONTACTS.any_of("dot_words")
_DOT_IN_BRACKETS = rf"[ ]?[\[({{<][ ]?{_DOT}[ ]?[\])}}>][ ]?"
_SPELLED_EMAIL = re.compile(
    rf"(?<![\w.+\-])(?!{_CONTACTS.any_of('no_mailboxes')}[ ])[\w.+\-]{{1,64}}+[ ]?"
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
"""Regions to try for a number without a country code, in this order."""

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
"""Maximum digits of a telephone number: 15 (E.164) and an international prefix."""
_UNIT_AFTER = re.compile(rf"[ ]?{_CONTACTS.any_of('money', 'length', 'counted', 'other_units')}\b", re.IGNORECASE)
_PHONE_WORD = re.compile(
    rf"\b{_CONTACTS.any_of('phone_words')}(?!\w)|{_CONTACTS.any_of('cjk_phone_words')}", re.IGNORECASE
)
_REFERENCE_BEFORE = re.compile(
    rf"(?:\b{_CONTACTS.any_of('references')}\b(?:[ .]{{0,2}}{_CONTACTS.any_of('reference_fillers')})*"
    r"\.?[ ]?[:=#]?|#|№)[ ]*$",
    re.IGNORECASE,
)
_EXTENSION = re.compile(rf"[ ,]{{0,2}}{_CONTACTS.any_of('extensions')}[ ]?\d{{1,6}}(?!\w)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?][ ]+(?=[^\W\d_a-z])|\n")


def find_phones(text: str, region: str | None = None) -> Iterator[Span]:
    """Yield telephone numbers; without a country code, `region` (ISO 3166-1 alpha-2) is tried first."""
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
    """Return the longest part of a candidate that is a valid number in one of the regions."""
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


_STREETS = load_vocabulary("addresses")
_NO_UNIT = (
    rf"(?![ ]?{_STREETS.any_of('money', 'length', 'duration', 'counted', 'other_units')}(?![^\W_]))"
    r"(?![\d:%]|[.,]\d)"
)
_NUMBER = r"(?<![\w$€£#.,:/\-])(?!0)\d{1,5}(?:[ ]?[A-Za-z](?![A-Za-z]))?(?:[-/]\d{1,4}[A-Za-z]?)?"
_NO_YEAR = r"(?!(?:19|20)\d\d\b)"
_LAST_NUMBER = rf"{_NO_YEAR}\d{{1,4}}(?:[ ]?[a-z](?![\w]))?(?:[-/]\d{{1,4}}[a-z]?)?{_NO_UNIT}(?![\w])"

_DIRECTION = r"(?:(?:N|S|E|W|NE|NW|SE|SW|North|South|East|West)\.?[ ])?"
_STREET_END = r"(?![\w'])(?![ ](?:Journal|Boys|Fighter|(?!is\b|was\b|has\b|as\b|its\b|this\b)[a-z]{2,20}s\b))"
_ENGLISH = re.compile(
    rf"{_NUMBER}[ ,]{{1,2}}{_DIRECTION}"
    rf"(?:(?!{_STREETS.any_of('non_street_words')}\b|\d+[ ])[^\W_][\w'.\-]{{0,25}}[ ]){{1,4}}?"
    rf"{_STREETS.any_of('street_types')}\b\.?{_STREET_END}",
    re.IGNORECASE,
)
_ENGLISH_CAPITAL = re.compile(
    rf"{_NUMBER}[ ,]{{1,2}}{_DIRECTION}(?:(?:[A-Z][\w'.\-]{{0,25}}|\d{{1,3}}(?:st|nd|rd|th)|of|the)[ ]){{1,4}}?"
    rf"{_STREETS.any_of('capitalised_street_types')}\b\.?{_STREET_END}"
)
_BROADWAY_OR_PO_BOX = re.compile(
    r"(?<![\w$€£#.,:/\-])[1-9]\d{2,4}[ ]Broadway\b(?![ ](?:shows?|musicals?|plays?|tickets?|performances?))"
    r"|\bP\.?[ ]?O\.?[ ]?Box[ ]\d{1,6}\b|\bPostfach[ ]\d{2,6}\b"
    r"|\b(?:[Aa]partado (?:de correos )?|[Bb]oîte postale |BP )\d{2,6}\b"
)
_ENGLISH_NUMBER_LAST = re.compile(
    rf"(?<![^\W_])[A-Z][\w']{{1,25}}[ ](?:Street|Road|Avenue|Lane)[ ]{_NO_YEAR}\d{{1,4}}[ ]?[A-Za-z]?(?![\w]){_NO_UNIT}"
    r"(?=[ ]?(?:[,.;)]|$|in\b))"
)
_YEAR_CONTEXT = re.compile(rf"\b{_STREETS.any_of('years_follow')}[ ]$", re.IGNORECASE)

_GERMAN_ENDING = _STREETS.any_of("street_endings")
_GERMAN = re.compile(
    rf"(?<![^\W\d_])(?!{_STREETS.any_of('non_street_prefixes')}(?:platz|weg)"
    rf"|(?:am |den |auf dem )?{_STREETS.any_of('bare_street_words')}\b)"
    rf"(?:[^\W\d_][\w\-.]{{0,30}}[ \-]){{0,2}}?[^\W\d_][\w\-]{{1,40}}?{_GERMAN_ENDING}\b"
    rf"\.?[ ](?:nr\.?[ ])?{_LAST_NUMBER}",
    re.IGNORECASE,
)
_GERMAN_CANDIDATE = re.compile(rf"{_GERMAN_ENDING}\.?[ ](?:nr\.?[ ])?\d", re.IGNORECASE)
_GERMAN_TWO_WORDS = re.compile(
    rf"(?<![^\W_])(?!{_STREETS.any_of('non_street_adjectives')}[ ]){_STREETS.any_of('street_name_adjectives')}[ ]"
    rf"{_STREETS.any_of('separate_street_types')}\b\.?[ ]{_LAST_NUMBER}"
    rf"|(?<![^\W_])(?:Straße|Platz) de[sr] (?:\d{{1,2}}\. )?[A-ZÄÖÜ]\w{{2,20}}[ ]\d{{1,4}}{_NO_UNIT}(?![\w])"
)
_GERMAN_PREPOSITIONAL = re.compile(
    rf"(?<![^\W_]){_STREETS.any_of('street_prepositions')}[ ][A-ZÄÖÜ][a-zäöüß\-]{{2,30}}"
    rf"{_STREETS.any_of('prepositional_endings')}?[ ]\d{{1,3}}[ ]?[a-z]?(?=[ ]?(?:[,;)]|in[ ]|\d{{5}}|$)){_NO_UNIT}"
    rf"|(?<![^\W_])(?:Am|Alter|Neuer)[ ]Markt[ ]\d{{1,3}}[a-z]?{_NO_UNIT}"
    rf"|(?<![^\W_])Unter den Linden[ ]\d{{1,3}}{_NO_UNIT}"
)

_ARTICLES = rf"(?:{_STREETS.any_of('articles')}(?:(?<=')|[ ])){{0,2}}"
_NAME = r"[A-ZÀ-ÖØ-Þ\d][\w'.\-]{1,30}"
_FRENCH = re.compile(
    rf"{_NUMBER}[ ]?(?:bis|ter|quater)?[ ,]{{1,2}}"
    rf"(?:(?i:{_STREETS.any_of('french_street_types')})[ ]{_ARTICLES}[^\W_][\w'.\-]{{2,30}}"
    rf"|(?i:{_STREETS.any_of('french_place_types')})[ ]{_ARTICLES}{_NAME})"
)
_FRENCH_NUMBER_LAST = re.compile(
    rf"(?<![^\W_])(?i:{_STREETS.any_of('french_number_last_types')})[ ]{_ARTICLES}{_NAME}"
    rf"(?:[ \-](?:{_ARTICLES}){_NAME}){{0,2}}?[ ]?,?[ ]{_NO_YEAR}\d{{1,4}}{_NO_UNIT}(?![\w])"
)
_ROMANCE_NUMBER = (
    r"[ ]?,?[ ](?:n\.?[º°o]?\.?[ ]?|n[úu]m(?:ero|\.)?[ ]?|número[ ]|#[ ]?|s/n[ ])?"
    rf"(?!(?:19|20)\d\d\b(?![ ]?[,\d]))\d{{1,4}}[ ]?(?:[A-Za-z](?![\w]))?{_NO_UNIT}"
)
_ROMANCE = re.compile(
    rf"(?<![^\W_])(?:(?i:{_STREETS.any_of('romance_street_types')})|Via|C/|Av\.|(?<=[Ii]n )via|(?<=[Ii]ndirizzo )via"
    rf"|(?<=: )via|via(?=[ ](?:dei|del|della|delle|dello|degli|dell')))[ ]?{_ARTICLES}{_NAME}"
    rf"(?:[ ](?:(?:de|del|della|di|da|y|e|i|la|las|los|el)[ ]){{0,2}}{_NAME}){{0,3}}?{_ROMANCE_NUMBER}"
)
_ROMANCE_LOWER_CASE = re.compile(
    rf"(?<![^\W_]){_STREETS.any_of('unambiguous_romance_types')}[ ]?{_ARTICLES}"
    rf"(?!{_STREETS.any_of('non_street_romance_words')}\b)[^\W\d_]{{3,30}}{_ROMANCE_NUMBER}",
    re.IGNORECASE,
)
_LATIN_AMERICAN = re.compile(
    rf"(?<![^\W_]){_STREETS.any_of('latin_american_types')}"
    r"[ ]\d{1,3}[a-z]?[ ]?#[ ]?\d{1,3}[a-z]?[ ]?-[ ]?\d{1,3}",
    re.IGNORECASE,
)
_SLAVIC = re.compile(
    r"(?<![^\W_])(?:(?i:ul\.|ulica|ulicy|ул\.|улиц[аеы]|проспект)|[Aa]l\.|[Aa]leja|пр\.)[ ]?"
    rf"[A-ZÀ-ÞĀ-ŽА-Я][\w.\-]{{1,30}}(?:[ ][^\W\d_][\w.\-]{{1,30}})?,?[ ](?:д\.?[ ]?)?\d{{1,4}}{_NO_UNIT}"
)
_JAPANESE = re.compile(r"\d{1,2}丁目\d{1,3}(?:番地?|-)\d{0,3}号?|[^\W\d_]{1,12}[路街道]\d{1,5}[号號]")
_TOWN_WORD = r"[A-ZÀ-ÖØ-Þ][\w'.\-]{0,30}\w"
_TOWN = rf"{_TOWN_WORD}(?:[ ](?:{_STREETS.any_of('town_particles')}[ ]){{0,2}}{_TOWN_WORD}){{0,2}}"
_POSTCODE_BEFORE = r"(?:[A-Z]{1,2}-)?(?:\d{4}[ ]?[A-Z]{2}|\d{4}-\d{3}|\d{4,5})(?!\w)"
_POSTCODE_AFTER = (
    r"(?:[A-Z]{2}[ ]\d{5}(?:-\d{4})?|[A-Z]{1,2}\d[A-Z\d]?[ ]?\d[A-Z]{2}|[A-Z]\d[A-Z][ ]?\d[A-Z]\d|\d{5})(?!\w)"
)
_UNIT = rf"(?i:{_STREETS.any_of('unit_words')})\.?[ ]?#?\w{{1,5}}"
_UNIT_BEFORE = re.compile(rf"(?<!\w){_UNIT},[ ]$")
_TAIL = re.compile(
    rf"(?:,?[ ]{_UNIT}(?=[,;.\n]|$))?(?:[,;\n][ \n]?{_POSTCODE_BEFORE}(?:[ ]{_TOWN})?|[,;]?[ \n]{_POSTCODE_AFTER}"
    rf"|[,;]?[ \n]{_TOWN},?[ ]{_POSTCODE_AFTER}|,[ ]{_TOWN}(?=[ ]?(?:[.,;)\n]|$)))?"
)
_PATTERNS = (
    _ENGLISH, _ENGLISH_CAPITAL, _ENGLISH_NUMBER_LAST, _BROADWAY_OR_PO_BOX, _GERMAN_TWO_WORDS, _GERMAN_PREPOSITIONAL,
    _FRENCH, _FRENCH_NUMBER_LAST, _ROMANCE, _ROMANCE_LOWER_CASE, _LATIN_AMERICAN, _SLAVIC, _JAPANESE,
)  # fmt: skip


def find_addresses(text: str) -> Iterator[Span]:
    """Yield streets with a house number; a street or a city without one is not an address."""
    # The pattern for German compounds is slow on long texts, so a necessary condition is checked first.
    patterns = (*_PATTERNS, _GERMAN) if _GERMAN_CANDIDATE.search(text) else _PATTERNS
    for pattern in patterns:
        for match in pattern.finditer(text):
            if not _starts_with_year(text, match):
                yield _with_unit_and_town(text, *match.span())


def _with_unit_and_town(text: str, start: int, end: int) -> Span:
    """Return the span of a street including an adjacent flat number, the postcode and the town."""
    unit = _UNIT_BEFORE.search(text, max(0, start - 20), start)
    tail = _TAIL.match(text, end)
    return unit.start() if unit else start, tail.end() if tail else end


def _starts_with_year(text: str, match: re.Match[str]) -> bool:
    """Return whether the "house number" is the year of a phrase such as "in 2019 Baker Street flooded"."""
    if re.match(r"(?:19|20)\d\d(?:-(?:19|20)\d\d|,)", match.group()):
        return True
    if not re.match(r"(?:19|20)\d\d\b", match.group()):
        return False
    return _YEAR_CONTEXT.search(text, max(0, match.start() - 12), match.start()) is not None


_BIRTH = load_vocabulary("birth_dates")
_MONTH = month_pattern()
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_ORDINAL = r"(?:st|nd|rd|th|er|º|ª|\.)?"
_YEAR = r"(?:[ ]?[,\-]?[ ]?(?:of|de|del|do)?[ ]?(?:'\d\d|(?:18|19|20)\d\d))?"
_DATE = (
    rf"(?:(?<!\d)(?:18|19|20)\d\d[-/. ]{_DAY}[-/. ]{_DAY}(?!\d)"
    rf"|(?<![\d.])(?:{_DAY}[-/. ]{{1,2}}{_DAY}[-/. ]{{1,2}}(?:(?:18|19|20)\d\d|\d\d)|{_DAY}[/.]{_DAY}\.?)(?![\d%])"
    rf"|(?<!\d){_DAY}{_ORDINAL}[ \-]?(?:of[ ]|de[ ]|di[ ])?(?:the[ ])?(?<![^\W\d_]){_MONTH}\b\.?{_YEAR}"
    rf"|\b{_MONTH}\.?[ \-]?(?:the[ ])?{_DAY}{_ORDINAL}(?![\d:%]){_YEAR}"
    r"|(?:(?:18|19|20)\d\d[年년][ ]?)?\d{1,2}[月월][ ]?\d{1,2}[日일]|(?<!\d)(?:18|19|20)(?:\d\d)(?:0[1-9]"
    r"|1[0-2])(?:0[1-9]|[12]\d|3[01])(?!\d))"
)
_NO_PARTY = rf"(?![ ]?-?{_BIRTH.any_of('party_words')})"
_LABEL = (
    rf"(?:\b{_BIRTH.any_of('labels', 'before_date')}\b|\bturn(?:s|ed|ing)?[ ]\d{{1,3}}(?=[ ]on\b)"
    rf"|(?<![\w.])(?:geb|b|d\.o\.b)\.(?=[ :]{{1,2}}(?:am[ ])?\w)|{_BIRTH.any_of('cjk_labels')})"
)
_GAP = rf"(?:(?!\b{_BIRTH.any_of('gap_breaks')}\b)[^\d\n.!?;]|[.](?![ ][A-Z\d])){{0,40}}?"
_DATE_AFTER_LABEL = re.compile(rf"{_LABEL}{_NO_PARTY}{_GAP}(?<![^\W_])(?P<value>{_DATE})", re.IGNORECASE)
_CJK_DATE_AFTER_LABEL = re.compile(rf"{_BIRTH.any_of('cjk_labels')}[^\d\n。]{{0,8}}(?P<value>{_DATE})", re.IGNORECASE)
_LABEL_AFTER = (
    rf"{_BIRTH.any_of('labels', 'after_date')}{_NO_PARTY}(?![^\W_])(?! of (?:the )?(?:party|company|project))"
)
_DATE_BEFORE_LABEL = re.compile(
    rf"(?P<value>{_DATE})[ ,]{{0,2}}\(?[ ]?(?:(?:{_BIRTH.any_of('copulas')}|as|marks|:|-|,)[ ])?"
    rf"(?:[^\s\d.!?;]{{1,20}}[ ]){{0,3}}?\(?{_LABEL_AFTER}",
    re.IGNORECASE,
)
_CJK_DATE_BEFORE_LABEL = re.compile(
    rf"(?P<value>{_DATE})[^\d\n。]{{0,6}}{_BIRTH.any_of('cjk_after_date')}", re.IGNORECASE
)
_ANY_LABEL = re.compile(
    rf"{_BIRTH.any_of('labels', 'before_date', 'after_date', 'cjk_labels', 'cjk_after_date')}"
    r"|\bturn|\b(?:geb|b|d\.o\.b)\.",
    re.IGNORECASE,
)


def find_birth_dates(text: str) -> Iterator[Span]:
    """Yield birth dates; a year, a month or a weekday alone does not count."""
    # Looking for labels first is faster than looking for dates.
    if not _ANY_LABEL.search(text):
        return
    for pattern in (_DATE_AFTER_LABEL, _CJK_DATE_AFTER_LABEL, _DATE_BEFORE_LABEL, _CJK_DATE_BEFORE_LABEL):
        for match in pattern.finditer(text):
            yield match.span("value")
