"""Street addresses: a street with a house number, as several languages write them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphmem.secrets.detection import Span, load_vocabulary

_WORDS = load_vocabulary("addresses")
_NO_UNIT = (
    rf"(?![ ]?{_WORDS.any_of('money', 'length', 'duration', 'counted', 'other_units')}(?![^\W_]))(?![\d:%]|[.,]\d)"
)
_NUMBER = r"(?<![\w$€£#.,:/\-])(?!0)\d{1,5}(?:[ ]?[A-Za-z](?![A-Za-z]))?(?:[-/]\d{1,4}[A-Za-z]?)?"
_NO_YEAR = r"(?!(?:19|20)\d\d\b)"
_LAST_NUMBER = rf"{_NO_YEAR}\d{{1,4}}(?:[ ]?[a-z](?![\w]))?(?:[-/]\d{{1,4}}[a-z]?)?{_NO_UNIT}(?![\w])"

_DIRECTION = r"(?:(?:N|S|E|W|NE|NW|SE|SW|North|South|East|West)\.?[ ])?"
_STREET_END = r"(?![\w'])(?![ ](?:Journal|Boys|Fighter|(?!is\b|was\b|has\b|as\b|its\b|this\b)[a-z]{2,20}s\b))"
_ENGLISH = re.compile(
    rf"{_NUMBER}[ ,]{{1,2}}{_DIRECTION}"
    rf"(?:(?!{_WORDS.any_of('non_street_words')}\b|\d+[ ])[^\W_][\w'.\-]{{0,25}}[ ]){{1,4}}?"
    rf"{_WORDS.any_of('street_types')}\b\.?{_STREET_END}",
    re.IGNORECASE,
)
_ENGLISH_CAPITAL = re.compile(
    rf"{_NUMBER}[ ,]{{1,2}}{_DIRECTION}(?:(?:[A-Z][\w'.\-]{{0,25}}|\d{{1,3}}(?:st|nd|rd|th)|of|the)[ ]){{1,4}}?"
    rf"{_WORDS.any_of('capitalised_street_types')}\b\.?{_STREET_END}"
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
_YEAR_CONTEXT = re.compile(rf"\b{_WORDS.any_of('years_follow')}[ ]$", re.IGNORECASE)

_GERMAN_ENDING = _WORDS.any_of("street_endings")
_GERMAN = re.compile(
    rf"(?<![^\W\d_])(?!{_WORDS.any_of('non_street_prefixes')}(?:platz|weg)"
    rf"|(?:am |den |auf dem )?{_WORDS.any_of('bare_street_words')}\b)"
    rf"(?:[^\W\d_][\w\-.]{{0,30}}[ \-]){{0,2}}?[^\W\d_][\w\-]{{1,40}}?{_GERMAN_ENDING}\b"
    rf"\.?[ ](?:nr\.?[ ])?{_LAST_NUMBER}",
    re.IGNORECASE,
)
_GERMAN_CANDIDATE = re.compile(rf"{_GERMAN_ENDING}\.?[ ](?:nr\.?[ ])?\d", re.IGNORECASE)
_GERMAN_TWO_WORDS = re.compile(
    rf"(?<![^\W_])(?!{_WORDS.any_of('non_street_adjectives')}[ ]){_WORDS.any_of('street_name_adjectives')}[ ]"
    rf"{_WORDS.any_of('separate_street_types')}\b\.?[ ]{_LAST_NUMBER}"
    rf"|(?<![^\W_])(?:Straße|Platz) de[sr] (?:\d{{1,2}}\. )?[A-ZÄÖÜ]\w{{2,20}}[ ]\d{{1,4}}{_NO_UNIT}(?![\w])"
)
_GERMAN_PREPOSITIONAL = re.compile(
    rf"(?<![^\W_]){_WORDS.any_of('street_prepositions')}[ ][A-ZÄÖÜ][a-zäöüß\-]{{2,30}}"
    rf"{_WORDS.any_of('prepositional_endings')}?[ ]\d{{1,3}}[ ]?[a-z]?(?=[ ]?(?:[,;)]|in[ ]|\d{{5}}|$)){_NO_UNIT}"
    rf"|(?<![^\W_])(?:Am|Alter|Neuer)[ ]Markt[ ]\d{{1,3}}[a-z]?{_NO_UNIT}"
    rf"|(?<![^\W_])Unter den Linden[ ]\d{{1,3}}{_NO_UNIT}"
)

_ARTICLES = rf"(?:{_WORDS.any_of('articles')}(?:(?<=')|[ ])){{0,2}}"
_NAME = r"[A-ZÀ-ÖØ-Þ\d][\w'.\-]{1,30}"
_FRENCH = re.compile(
    rf"{_NUMBER}[ ]?(?:bis|ter|quater)?[ ,]{{1,2}}"
    rf"(?:(?i:{_WORDS.any_of('french_street_types')})[ ]{_ARTICLES}[^\W_][\w'.\-]{{2,30}}"
    rf"|(?i:{_WORDS.any_of('french_place_types')})[ ]{_ARTICLES}{_NAME})"
)
_FRENCH_NUMBER_LAST = re.compile(
    rf"(?<![^\W_])(?i:{_WORDS.any_of('french_number_last_types')})[ ]{_ARTICLES}{_NAME}"
    rf"(?:[ \-](?:{_ARTICLES}){_NAME}){{0,2}}?[ ]?,?[ ]{_NO_YEAR}\d{{1,4}}{_NO_UNIT}(?![\w])"
)
_ROMANCE_NUMBER = (
    r"[ ]?,?[ ](?:n\.?[º°o]?\.?[ ]?|n[úu]m(?:ero|\.)?[ ]?|número[ ]|#[ ]?|s/n[ ])?"
    rf"(?!(?:19|20)\d\d\b(?![ ]?[,\d]))\d{{1,4}}[ ]?(?:[A-Za-z](?![\w]))?{_NO_UNIT}"
)
_ROMANCE = re.compile(
    rf"(?<![^\W_])(?:(?i:{_WORDS.any_of('romance_street_types')})|Via|C/|Av\.|(?<=[Ii]n )via|(?<=[Ii]ndirizzo )via"
    rf"|(?<=: )via|via(?=[ ](?:dei|del|della|delle|dello|degli|dell')))[ ]?{_ARTICLES}{_NAME}"
    rf"(?:[ ](?:(?:de|del|della|di|da|y|e|i|la|las|los|el)[ ]){{0,2}}{_NAME}){{0,3}}?{_ROMANCE_NUMBER}"
)
_ROMANCE_LOWER_CASE = re.compile(
    rf"(?<![^\W_]){_WORDS.any_of('unambiguous_romance_types')}[ ]?{_ARTICLES}"
    rf"(?!{_WORDS.any_of('non_street_romance_words')}\b)[^\W\d_]{{3,30}}{_ROMANCE_NUMBER}",
    re.IGNORECASE,
)
_LATIN_AMERICAN = re.compile(
    rf"(?<![^\W_]){_WORDS.any_of('latin_american_types')}[ ]\d{{1,3}}[a-z]?[ ]?#[ ]?\d{{1,3}}[a-z]?[ ]?-[ ]?\d{{1,3}}",
    re.IGNORECASE,
)
_SLAVIC = re.compile(
    r"(?<![^\W_])(?:(?i:ul\.|ulica|ulicy|ул\.|улиц[аеы]|проспект)|[Aa]l\.|[Aa]leja|пр\.)[ ]?"
    rf"[A-ZÀ-ÞĀ-ŽА-Я][\w.\-]{{1,30}}(?:[ ][^\W\d_][\w.\-]{{1,30}})?,?[ ](?:д\.?[ ]?)?\d{{1,4}}{_NO_UNIT}"
)
_JAPANESE = re.compile(r"\d{1,2}丁目\d{1,3}(?:番地?|-)\d{0,3}号?|[^\W\d_]{1,12}[路街道]\d{1,5}[号號]")
_TOWN_WORD = r"[A-ZÀ-ÖØ-Þ][\w'.\-]{0,30}\w"
_TOWN = rf"{_TOWN_WORD}(?:[ ](?:{_WORDS.any_of('town_particles')}[ ]){{0,2}}{_TOWN_WORD}){{0,2}}"
_POSTCODE_BEFORE = r"(?:[A-Z]{1,2}-)?(?:\d{4}[ ]?[A-Z]{2}|\d{4}-\d{3}|\d{4,5})(?!\w)"
_POSTCODE_AFTER = (
    r"(?:[A-Z]{2}[ ]\d{5}(?:-\d{4})?|[A-Z]{1,2}\d[A-Z\d]?[ ]?\d[A-Z]{2}|[A-Z]\d[A-Z][ ]?\d[A-Z]\d|\d{5})(?!\w)"
)
_UNIT = rf"(?i:{_WORDS.any_of('unit_words')})\.?[ ]?#?\w{{1,5}}"
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
    """Yield streets with a house number; a street or a city without one is no address."""
    # The pattern for German compounds is slow on long texts, so a necessary condition is checked first.
    patterns = (*_PATTERNS, _GERMAN) if _GERMAN_CANDIDATE.search(text) else _PATTERNS
    for pattern in patterns:
        for match in pattern.finditer(text):
            if not _starts_with_year(text, match):
                yield _with_unit_and_town(text, *match.span())


def _with_unit_and_town(text: str, start: int, end: int) -> Span:
    """Return the span of a street with the flat before or after it, and with the postcode and the town."""
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
