"""Payment cards: their numbers, with the expiry date and the check value that follow them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from stdnum import luhn

from graphmem.secrets.detection import Span, load_vocabulary, month_pattern

_WORDS = load_vocabulary("id_numbers")
_DIGIT_RUN = re.compile(r"\d(?:[\W_]{0,8}\d){12,}+")
_DIGIT_GROUP = re.compile(r"\d+")
_YEAR = re.compile(r"(?:19|20)\d\d")
_CLOSE_GAP = re.compile(r"[ .\-_/*]{0,3}| {4,8}")
"""What is written between the groups of one number; anything else may also separate the items of a list."""

_LENGTHS = range(13, 20)
_MOST_DIGITS = 19
_SHORTEST_GROUP = 4
_MOST_SHORT_GROUPS = 9
_LISTED_SIZES = ([4, 4, 4, 4], [4, 6, 5], [4, 6, 4])
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
_BETWEEN = r"[\s,;:.&|/()\-]{0,4}"
_SIGN = r"(?:[\s:.=#]{0,3}|[ ]is[ ])"
_MONTH = month_pattern()
_DATE = rf"(?:(?:0?[1-9]|1[0-2])[ ]?[/.\-][ ]?(?:20)?\d\d|{_MONTH}\.?[ ]?(?:20)?\d\d)(?!\d)"
_CHECK_VALUE = rf"{_BETWEEN}(?:and[ ])?{_WORDS.any_of('check_value_words')}{_SIGN}\d{{3,4}}(?!\d)"
_EXPIRY = rf"{_BETWEEN}(?:and[ ])?{_WORDS.any_of('expiry_words')}{_SIGN}(?:{_DATE}|(?:0[1-9]|1[0-2])\d\d(?!\d))"
_TAIL = re.compile(
    rf"(?:{_CHECK_VALUE}|(?:{_EXPIRY}|{_BETWEEN}{_DATE})(?:[\s,;/|\-]{{1,3}}\d{{3,4}}(?![\d/.\-]))?){{1,3}}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Groups:
    """The groups of digits of a run, and what stands between each and the next."""

    digits: Sequence[str]
    spans: Sequence[Span]
    gaps: Sequence[str]

    def __len__(self) -> int:
        return len(self.digits)

    def continues(self, index: int) -> bool:
        """Return whether the group at an index goes on like the one before it: as long, and after an equal gap."""
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
    is_even = len(set(gaps)) <= 1
    is_alone = has_card_word or not (groups.continues(first) or groups.continues(last + 1))
    if set(sizes) == {1} and len(sizes) > 1:
        fits = is_even and is_issued and is_alone
    elif not all(map(_CLOSE_GAP.fullmatch, gaps)):
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
