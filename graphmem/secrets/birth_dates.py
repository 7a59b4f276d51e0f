"""Birth dates: a day and month, with or without a year, that the text calls somebody's day of birth."""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphmem.secrets.detection import Span, load_vocabulary, month_pattern

_WORDS = load_vocabulary("birth_dates")
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
_NO_PARTY = rf"(?![ ]?-?{_WORDS.any_of('party_words')})"
_LABEL = (
    rf"(?:\b{_WORDS.any_of('labels', 'before_date')}\b|\bturn(?:s|ed|ing)?[ ]\d{{1,3}}(?=[ ]on\b)"
    rf"|(?<![\w.])(?:geb|b|d\.o\.b)\.(?=[ :]{{1,2}}(?:am[ ])?\w)|{_WORDS.any_of('cjk_labels')})"
)
_GAP = rf"(?:(?!\b{_WORDS.any_of('gap_breaks')}\b)[^\d\n.!?;]|[.](?![ ][A-Z\d])){{0,40}}?"
_DATE_AFTER_LABEL = re.compile(rf"{_LABEL}{_NO_PARTY}{_GAP}(?<![^\W_])(?P<value>{_DATE})", re.IGNORECASE)
_CJK_DATE_AFTER_LABEL = re.compile(rf"{_WORDS.any_of('cjk_labels')}[^\d\n。]{{0,8}}(?P<value>{_DATE})", re.IGNORECASE)
_LABEL_AFTER = (
    rf"{_WORDS.any_of('labels', 'after_date')}{_NO_PARTY}(?![^\W_])(?! of (?:the )?(?:party|company|project))"
)
_DATE_BEFORE_LABEL = re.compile(
    rf"(?P<value>{_DATE})[ ,]{{0,2}}\(?[ ]?(?:(?:{_WORDS.any_of('copulas')}|as|marks|:|-|,)[ ])?"
    rf"(?:[^\s\d.!?;]{{1,20}}[ ]){{0,3}}?\(?{_LABEL_AFTER}",
    re.IGNORECASE,
)
_CJK_DATE_BEFORE_LABEL = re.compile(
    rf"(?P<value>{_DATE})[^\d\n。]{{0,6}}{_WORDS.any_of('cjk_after_date')}", re.IGNORECASE
)
_ANY_LABEL = re.compile(
    rf"{_WORDS.any_of('labels', 'before_date', 'after_date', 'cjk_labels', 'cjk_after_date')}"
    r"|\bturn|\b(?:geb|b|d\.o\.b)\.",
    re.IGNORECASE,
)


def find_birth_dates(text: str) -> Iterator[Span]:
    """Yield birth dates; a year, a month or a weekday alone is none."""
    # Looking for labels first is faster than looking for dates.
    if not _ANY_LABEL.search(text):
        return
    for pattern in (_DATE_AFTER_LABEL, _CJK_DATE_AFTER_LABEL, _DATE_BEFORE_LABEL, _CJK_DATE_BEFORE_LABEL):
        for match in pattern.finditer(text):
            yield match.span("value")
