"""Street addresses: a street with its house number, as several languages write them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphmem.domain.secrets.models import Span

_NOT_FOLLOWED_BY_UNIT = (
    r"(?![ ]?(?:minutes?|mins?|minuten|stunden?|km|m|meters?|metres?|meter|miles?|blocks?|uhr|euros?|€|\$|£|%|°"
    r"|jahren?|tagen?|mal|times|years?|days?|hours?|"
    r"leute|personen|people|prozent|grad|ans|années|jours|heures|fois|personnes|mètres|minutos|horas|días|años"
    r"|veces|metros|personas|minuti|ore|giorni|"
    r"anni|volte|metri|persone|x|am|pm|h|weeks?|months?|wochen|monaten?|stars?|sterne|guests?|rooms?|zimmer|autos"
    r"|cars|bäume|häuser)(?![^\W_]))(?![\d:%]|[.,]\d)"
)
_NUMBER = r"(?<![\w$€£#.,:/\-])(?!0)\d{1,5}(?:[ ]?[A-Za-z](?![A-Za-z]))?(?:[-/]\d{1,4}[A-Za-z]?)?"

_NON_STREET_WORDS = (
    r"(?:of|from|on|in|the|a|an|at|down|off|to|near|minutes?|mins?|miles?|km|blocks?|people|houses?|years?|days?"
    r"|weeks?|months?|hours?|times?|per|each|every|"
    r"and|or|by|for|with|his|her|my|our|their|is|are|was|were|has|have|away|along|up|more|other|new|different|big"
    r"|small|lane|cars?|shops?|trees?|"
    r"lanes?|men|women|kids|children|friends|clients|meters|metres|feet|am|pm|percent|dollars|euros|am|different"
    r"|busy|main roads|this|that|these)"
)
_STREET = r"(?:street|str|avenue|ave|road|rd|boulevard|blvd|lane|ln)"
_STREET_CAPITAL = (
    r"(?:St|Drive|Dr|Court|Ct|Place|Pl|Square|Sq|Terrace|Ter|Way|Parkway|Pkwy|Highway|Hwy|Circle|Cir|Close"
    r"|Crescent|Cres|Gardens|Grove|Mews|Row|"
    r"Walk|Alley|Trail|Loop|Quay|Wharf|Hill|Rise|Green|Embankment|Esplanade|Turnpike|Plaza)"
)
_DIRECTION = r"(?:(?:N|S|E|W|NE|NW|SE|SW|North|South|East|West)\.?[ ])?"
_STREET_BOUNDARY = r"(?![\w'])(?![ ](?:Journal|Boys|Fighter|(?!is\b|was\b|has\b|as\b|its\b|this\b)[a-z]{2,20}s\b))"
_ENGLISH = re.compile(
    rf"{_NUMBER}[ ,]{{1,2}}{_DIRECTION}(?:(?!{_NON_STREET_WORDS}\b"
    rf"|\d+[ ])[^\W_][\w'.\-]{{0,25}}[ ]){{1,4}}?{_STREET}\b\.?{_STREET_BOUNDARY}",
    re.IGNORECASE,
)
_ENGLISH_CAPITAL = re.compile(
    rf"{_NUMBER}[ ,]{{1,2}}{_DIRECTION}(?:(?:[A-Z][\w'.\-]{{0,25}}|\d{{1,3}}(?:st|nd|rd|th)|of"
    rf"|the)[ ]){{1,4}}?{_STREET_CAPITAL}\b\.?{_STREET_BOUNDARY}"
)
_BROADWAY_OR_PO_BOX = re.compile(
    r"(?<![\w$€£#.,:/\-])[1-9]\d{2,4}[ ]Broadway\b(?![ ](?:shows?|musicals?|plays?|tickets?|performances?))"
    r"|\bP\.?[ ]?O\.?[ ]?Box[ ]\d{1,6}\b|\bPostfach[ ]\d{2,6}\b"
    r"|\b(?:[Aa]partado (?:de correos )?|[Bb]oîte postale |BP )\d{2,6}\b"
)
_ENGLISH_NUMBER_LAST = re.compile(
    rf"(?<![^\W_])[A-Z][\w']{{1,25}}[ ](?:Street|Road|Avenue|Lane)[ ]"
    rf"(?!(?:19|20)\d\d\b)\d{{1,4}}[ ]?[A-Za-z]?(?![\w]){_NOT_FOLLOWED_BY_UNIT}"
    r"(?=[ ]?(?:[,.;)]|$|in\b))"
)
_YEAR_CONTEXT = re.compile(
    r"\b(?:in|since|until|till|by|of|from|the|during|before|after|around|a|for|early|late|mid|summer|spring"
    r"|autumn|fall|winter|january|february|march|april|"
    r"may|june|july|august|september|october|november|december)[ ]$",
    re.IGNORECASE,
)

_GERMAN = re.compile(
    r"(?<![^\W\d_])(?!(?:park|arbeits|sitz|steh|stell|spiel|camping|fußball|fussball|tennis|golf|bolz|fern|schlaf"
    r"|rast|lager|lande|markt|heim|rück|hin|"
    r"um|schul|arbeits|rad|wander|feld(?=platz)|start|ziel|zelt)(?:platz|weg)|(?:am |den |auf dem )?(?:platz|weg"
    r"|damm|pfad|ufer|gasse|allee|straße|strasse)\b)"
    r"(?:[^\W\d_][\w\-.]{0,30}[ \-]){0,2}?[^\W\d_][\w\-]{1,40}?"
    r"(?:straße|strasse|(?<=[a-zäöüß]{3})str|platz|weg|allee|gasse|damm|(?<!ä)ufer|pfad|chaussee|promenade"
    r"|(?<=-)ring|(?<=er )ring|"
    r"straat|laan|gracht|plein|kade|singel|gatan|vägen|vej|veien)\b\.?[ ](?:nr\.?[ ])?"
    rf"(?!(?:19|20)\d\d\b)\d{{1,4}}(?:[ ]?[a-z](?![\w]))?(?:[-/]\d{{1,4}}[a-z]?)?{_NOT_FOLLOWED_BY_UNIT}(?![\w])",
    re.IGNORECASE,
)
_GERMAN_TWO_WORDS = re.compile(
    r"(?<![^\W_])(?!(?:Dieser|Unser|Unserer|Euer|Jeder|Einer|Mancher|Welcher|Aber|Oder|Immer|Wieder|Über|Unter"
    r"|Hinter|Seiner|Ihrer|Meiner|Deiner|Der|Hier|Nur)[ ])"
    r"(?:[A-ZÄÖÜ][\w\-]{1,30}er|[Ll]ange|Kurze|Hohe|Neue|Alte|Breite|Große|Kleine|Obere|Untere"
    r"|Mittlere)[ ](?:Straße|Strasse|Str|Platz|Weg|Allee|Damm|Ufer|Ring|Chaussee|Promenade|Landstraße"
    r"|Gasse)\b\.?[ ]"
    rf"(?!(?:19|20)\d\d\b)\d{{1,4}}(?:[ ]?[a-z](?![\w]))?(?:[-/]\d{{1,4}}[a-z]?)?{_NOT_FOLLOWED_BY_UNIT}(?![\w])"
    rf"|(?<![^\W_])(?:Straße|Platz) de[sr] (?:\d{{1,2}}\. )?[A-ZÄÖÜ]\w{{2,20}}[ ]\d{{1,4}}{_NOT_FOLLOWED_BY_UNIT}(?![\w])"
)
_GERMAN_PREPOSITIONAL = re.compile(
    r"(?<![^\W_])(?:Am|An der|An den|Auf der|Auf dem|Unter den|Im|In der|Zum|Zur|Hinter der|Hinter den|Vor dem"
    r"|Beim|Alter|Neuer)[ ]"
    r"[A-ZÄÖÜ][a-zäöüß\-]{2,30}(?:markt|berg|graben|hof|linden|bach|see|hang|wall|tor|feld|grund|park|garten|kamp"
    r"|anger|rain|ring|mühle|Markt|Linden|"
    rf"Alster|Mauer|Mühle|Graben|Bach|Berg|Hof|Kirche|Wall|Tor)?[ ]\d{{1,3}}[ ]?[a-z]?(?=[ ]?(?:[,;)]|in[ ]"
    rf"|\d{{5}}|$)){_NOT_FOLLOWED_BY_UNIT}"
    rf"|(?<![^\W_])(?:Am|Alter|Neuer)[ ]Markt[ ]\d{{1,3}}[a-z]?{_NOT_FOLLOWED_BY_UNIT}|(?<![^\W_])Unter den Linden[ ]\d{{1,3}}{_NOT_FOLLOWED_BY_UNIT}"
)

_ARTICLES = (
    r"(?:(?:de la|de l'|de las|de los|du|des|de|del|della|dell'|delle|dello|dei|degli|di|da|do|dos|das|d'|la|le"
    r"|les|l'|el|los|las)(?:(?<=')|[ ])){0,2}"
)
_NAME = r"[A-ZÀ-ÖØ-Þ\d][\w'.\-]{1,30}"
_FRENCH = re.compile(
    rf"{_NUMBER}[ ]?(?:bis|ter|quater)?[ ,]{{1,2}}(?:(?i:rue|avenue|av\.|boulevard|boul\.|bd\.?|impasse|allée"
    rf"|allee|ruelle|faubourg)[ ]{_ARTICLES}[^\W_][\w'.\-]{{2,30}}"
    rf"|(?i:place|cours|route|passage|square|quai|chemin|villa|cité|rond-point|sentier|esplanade)[ ]{_ARTICLES}{_NAME})"
)
_FRENCH_NUMBER_LAST = re.compile(
    rf"(?<![^\W_])(?i:rue|avenue|chemin|chaussée|boulevard"
    rf"|route)[ ]{_ARTICLES}{_NAME}(?:[ \-](?:{_ARTICLES}){_NAME}){{0,2}}?[ ]?,?[ ](?!(?:19"
    rf"|20)\d\d\b)\d{{1,4}}{_NOT_FOLLOWED_BY_UNIT}(?![\w])"
)
_ROMANCE_STREET = (
    r"(?:calle|avenida|avda\.?|paseo|plaza|camino|carretera|ronda|travesía|carrer|passeig|plaça|rua|praça"
    r"|travessa|alameda|estrada|viale|piazza|"
    r"piazzale|corso|vicolo|largo|lungotevere|p\.zza|v\.le)"
)
_HOUSE_NUMBER = (
    rf"[ ]?,?[ ](?:n\.?[º°o]?\.?[ ]?|n[úu]m(?:ero|\.)?[ ]?|número[ ]|#[ ]?|s/n[ ])?(?!(?:19"
    rf"|20)\d\d\b(?![ ]?[,\d]))\d{{1,4}}[ ]?(?:[A-Za-z](?![\w]))?{_NOT_FOLLOWED_BY_UNIT}"
)
_ROMANCE = re.compile(
    rf"(?<![^\W_])(?:(?i:{_ROMANCE_STREET})|Via|C/|Av\.|(?<=[Ii]n )via|(?<=[Ii]ndirizzo )via|(?<=: )via"
    rf"|via(?=[ ](?:dei|del|della|delle|dello|degli|dell')))[ ]?"
    rf"{_ARTICLES}{_NAME}(?:[ ](?:(?:de|del|della|di|da|y|e|i|la|las|los|el)[ ]){{0,2}}{_NAME}){{0,3}}?{_HOUSE_NUMBER}"
)
_ROMANCE_LOWER_CASE = re.compile(
    rf"(?<![^\W_])(?:calle|avenida|avda\.?|c/|rua|carrer|viale|piazza|(?<=in )via)[ ]?{_ARTICLES}"
    rf"(?!(?:desde|hace|con|en|por|que|tiene|desde|para|e|y|a|del?)\b)[^\W\d_]{{3,30}}{_HOUSE_NUMBER}",
    re.IGNORECASE,
)
_LATIN_AMERICAN = re.compile(
    r"(?<![^\W_])(?:calle|carrera|cra\.?|cl\.?|diagonal|transversal"
    r"|avenida)[ ]\d{1,3}[a-z]?[ ]?#[ ]?\d{1,3}[a-z]?[ ]?-[ ]?\d{1,3}",
    re.IGNORECASE,
)
_SLAVIC = re.compile(
    r"(?<![^\W_])(?:(?i:ul\.|ulica|ulicy|ул\.|улиц[аеы]|проспект)|[Aa]l\.|[Aa]leja|пр\.)[ ]?"
    rf"[A-ZÀ-ÞĀ-ŽА-Я][\w.\-]{{1,30}}(?:[ ][^\W\d_][\w.\-]{{1,30}})?,?[ ](?:д\.?[ ]?)?\d{{1,4}}{_NOT_FOLLOWED_BY_UNIT}"
)
_JAPANESE = re.compile(r"\d{1,2}丁目\d{1,3}(?:番地?|-)\d{0,3}号?|[^\W\d_]{1,12}[路街道]\d{1,5}[号號]")
_UNCONDITIONAL_PATTERNS = (
    _ENGLISH_CAPITAL, _ENGLISH_NUMBER_LAST, _BROADWAY_OR_PO_BOX, _GERMAN_TWO_WORDS, _GERMAN_PREPOSITIONAL, _FRENCH, _FRENCH_NUMBER_LAST, _ROMANCE,
    _ROMANCE_LOWER_CASE, _LATIN_AMERICAN, _SLAVIC, _JAPANESE,
)  # fmt: skip


_GERMAN_ENDING = re.compile(
    r"(?:str|stra(?:ß|ss)e|platz|weg|allee|gasse|damm|ufer|pfad|chaussee|promenade|ring|straat|laan|gracht|plein"
    r"|kade|singel|gatan|vägen"
    r"|vej|veien)\.?[ ](?:nr\.?[ ])?\d",
    re.IGNORECASE,
)


def find_addresses(text: str) -> Iterator[Span]:
    """Yield streets with a house number; a street or a city alone is none."""
    patterns = (
        (_ENGLISH, *_UNCONDITIONAL_PATTERNS, _GERMAN)
        if _GERMAN_ENDING.search(text)
        else (_ENGLISH, *_UNCONDITIONAL_PATTERNS)
    )
    for pattern in patterns:
        for match in pattern.finditer(text):
            if not _starts_with_year(text, match):
                yield match.span()


def _starts_with_year(text: str, match: re.Match[str]) -> bool:
    """Tell whether the "house number" is the year of a phrase such as "in 2019 Baker Street flooded"."""
    if re.match(r"(?:19|20)\d\d(?:-(?:19|20)\d\d|,)", match.group()):
        return True
    if not re.match(r"(?:19|20)\d\d\b", match.group()):
        return False
    return _YEAR_CONTEXT.search(text, max(0, match.start() - 12), match.start()) is not None
