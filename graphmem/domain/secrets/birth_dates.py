"""Birth dates: a day and month, with or without the year, told as the day somebody was born."""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphmem.domain.secrets.models import Span

_MONTH = (
    r"(?:jan(?:uary|uar|vier|eiro)?|jänner|enero|gennaio|januari|feb(?:ruary|ruar|rero|braio|ruari)?|février"
    r"|fevereiro|mar(?:ch|s|zo|ço)?|märz|mrz|maart|"
    r"apr(?:il|ile)?|avril|abril|may|mai|mayo|maggio|maio|mei|jun[ei]?|juin|junio|giugno|junho|jul[iy]?|juillet"
    r"|julio|luglio|julho|"
    r"aug(?:ust|ustus)?|août|aout|agosto|sep(?:t|tember|tembre|tiembre)?|settembre|setembro|oct(?:ober|obre"
    r"|ubre)?|okt(?:ober)?|ottobre|outubro|"
    r"nov(?:ember|embre|iembre|embro)?|dec(?:ember)?|dez(?:ember|embro)?|déc(?:embre)?|dic(?:iembre|embre)?|"
    r"января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря|"
    r"stycznia|lutego|marca|kwietnia|maja|czerwca|lipca|sierpnia|września|października|listopada|grudnia)"
)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_ORDINAL = r"(?:st|nd|rd|th|er|º|ª|\.)?"
_YEAR = r"(?:[ ]?,?[ ]?(?:of|de|del|do)?[ ]?(?:'\d\d|(?:18|19|20)\d\d))?"
_DATE = (
    rf"(?:(?<!\d)(?:18|19|20)\d\d[-/. ]{_DAY}[-/. ]{_DAY}(?!\d)"
    rf"|(?<![\d.])(?:{_DAY}[-/. ]{{1,2}}{_DAY}[-/. ]{{1,2}}(?:(?:18|19|20)\d\d|\d\d)|{_DAY}[/.]{_DAY}\.?)(?![\d%])"
    rf"|(?<!\d){_DAY}{_ORDINAL}[ \-]?(?:of[ ]|de[ ]|di[ ])?(?:the[ ])?(?<![^\W\d_]){_MONTH}\b\.?{_YEAR}"
    rf"|\b{_MONTH}\.?[ \-]?(?:the[ ])?{_DAY}{_ORDINAL}(?![\d:%]){_YEAR}"
    r"|(?:(?:18|19|20)\d\d[年년][ ]?)?\d{1,2}[月월][ ]?\d{1,2}[日일]|(?<!\d)(?:18|19|20)(?:\d\d)(?:0[1-9]"
    r"|1[0-2])(?:0[1-9]|[12]\d|3[01])(?!\d))"
)
_NOT_PARTY_WORD = (
    r"(?![ ]?-?(?:party|parties|present|gift|cake|dinner|trip|card|celebration|wish|wishes|list|lunch|brunch|suit"
    r"|surprise|bash|feier|geschenk|torte|"
    r"fête|fiesta|festa))"
)
_LABEL = (
    r"(?:\b(?:birth[ _\-]?da(?:y|te)s?|b-day|bday|d\.?o\.?b\b\.?|date[ _]of[ _]birth|geburtstag|geburtsdatum|geboren|"
    r"date[ _]de[ _]naissance|née? (?:le|en|à)|(?:mon|ton|son|notre|votre|leur|l')[ ]?anniversaire(?! de mariage)"
    r"|anniversaire (?:est )?(?=le )|anniversaire de (?-i:(?=[A-Z]))|"
    r"fecha[ _]de[ _]nacimiento|nacid[oa]|nac[ií](?:ó)?|cumpleaños|cumple años|data[ _]di[ _]nascita|nat[oa]"
    r"|compleanno|"
    r"data[ _]de[ _]nascimento|nascid[oa]|nasce[u]|geboortedatum|verjaardag|data urodzenia|urodz\w{2,6}"
    r"|doğum (?:tarihi|günü)|född|født|"
    r"дата рождения|день рождения|родил(?:ся|ась)|(?:was|were|is|am|'s|been|,|\()[ ]?born|born)\b|\b(?:wa|we)re born\b"
    r"|\bturn(?:s|ed|ing)?[ ]\d{1,3}(?=[ ]on\b)|(?<![\w.])(?:geb|b|d\.o\.b)\.(?=[ :]{1,2}(?:am[ ])?\w)"
    r"|誕生日|生年月日|生日|出生(?:日期)?|생일|생년월일)"
)
_GAP = (
    r"(?:(?!\b(?:and|but|then|moved|und|dann|et|puis|y|luego|e|poi|before|after|party|present|gift|cake|dinner"
    r"|trip|wedding|graduated|met|married|"
    r"zog|déménagé|until|deadline|meeting|we|buy|plan|plans|planned|flies|flight)\b)[^\d\n.!?;]"
    r"|[.](?![ ][A-Z\d])){0,40}?"
)
_DATE_AFTER_LABEL = re.compile(rf"{_LABEL}{_NOT_PARTY_WORD}{_GAP}(?<![^\W_])(?P<value>{_DATE})", re.IGNORECASE)
_CJK_DATE_AFTER_LABEL = re.compile(
    rf"(?:誕生日|生年月日|生日|出生|생일|생년월일)[^\d\n。]{{0,8}}(?P<value>{_DATE})", re.IGNORECASE
)
_DATE_BEFORE_LABEL = re.compile(
    rf"(?P<value>{_DATE})[ ,]{{0,2}}\(?[ ]?(?:(?:is|was|ist|war|est|es|è|é|as|marks|:|-"
    rf"|,)[ ])?(?:[^\s\d.!?;]{{1,20}}[ ]){{0,3}}?\(?"
    r"(?:birth[ _\-]?da(?:y|te)|b-day|bday|d\.?o\.?b\b|date of birth|geburtstag|geburtsdatum|geboren"
    r"|date de naissance|anniversaire(?! de mariage)|"
    rf"cumpleaños|fecha de nacimiento|compleanno|data di nascita|verjaardag"
    rf"|(?:is )?born){_NOT_PARTY_WORD}(?![^\W_])(?! of (?:the )?(?:party|company|project))",
    re.IGNORECASE,
)
_CJK_DATE_BEFORE_LABEL = re.compile(
    rf"(?P<value>{_DATE})(?:[^\d\n。]{{0,6}})(?:誕生日|生日|出生|生まれ|생일|태어)", re.IGNORECASE
)


_ANY_LABEL = re.compile(
    r"birth|b-?day|\bd\.?o\.?b|born|\bgeb|geburt|naissance|\bn[ée]e?\b|anniv|\bnac|cumple|nasc|\bnat[oa]\b"
    r"|complean|verjaar|urodz|doğum"
    r"|född|født|рожд|родил|\bturn|\bb\.|生|생",
    re.IGNORECASE,
)


def find_birth_dates(text: str) -> Iterator[Span]:
    """Yield birth dates; a year, a month or a weekday alone is none."""
    if not _ANY_LABEL.search(text):
        return
    for pattern in (_DATE_AFTER_LABEL, _CJK_DATE_AFTER_LABEL, _DATE_BEFORE_LABEL, _CJK_DATE_BEFORE_LABEL):
        for match in pattern.finditer(text):
            yield match.span("value")
