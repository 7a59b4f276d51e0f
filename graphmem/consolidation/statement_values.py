"""The numbers and the parts of dates in a statement, in digits and in the words of many languages. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from graphmem.text.folding import fold
from graphmem.text.languages import detect_languages
from graphmem.text.normalising import fold_accents, normalise
from graphmem.text.tokenising import NUMBER_PATTERN, UNSPACED_SCRIPTS, WORD_PATTERN, stem
from graphmem.text.word_lists import WRITTEN_LANGUAGES, load_words

_TOKEN = re.compile(rf"(?P<number>{NUMBER_PATTERN})|(?P<word>{WORD_PATTERN})|(?P<mark>[^\w\s])")
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_SPACED_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:[\u00a0\u202f' ]\d{3})+(?![\d.,])")
_ISO_DATE = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_NUMERIC_DATE = re.compile(r"\b(\d{1,2})([./-])(\d{1,2})\2(\d{4})\b")
_HALF_DAY = re.compile(r"\b(\d{1,2})(:\d{2})?\s?([ap])\.?\s?m\b\.?", re.IGNORECASE)
_JAPANESE_MONTH = re.compile(r"(\d{1,2})\s?月")
_UNSPACED_NUMBER = re.compile(rf"(?<=[{UNSPACED_SCRIPTS}])(?=\d)|(?<=\d)(?=[{UNSPACED_SCRIPTS}])")
_JAPANESE_WEEKDAY = re.compile(r"([月火水木金土日])曜|(?:星期|礼拜|周)([一二三四五六日天])")

_HAN_DIGITS = {char: value for value, char in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "萬": 10**4, "億": 10**8, "亿": 10**8}
_HAN_NUMERAL = re.compile(
    rf"[\d.,{''.join(_HAN_DIGITS)}{''.join(_HAN_UNITS)}]*[{''.join(_HAN_DIGITS)}{''.join(_HAN_UNITS)}]+"
)
_COUNTERS = (
    "人つ匹本枚冊杯台回年月日時分秒歳才階円元個箇個头頭羽名件度倍週代号號番目合軒室部曲語科班组組级級条條"
    "只隻张張位次点點岁歲层層棵朵辆輛楼樓公里米斤口か"
)
"""Characters after a Han numeral that show that it is one, and no part of a name or another word."""

_PREFIX_OF_HALF_DAY = "p"


@dataclass(frozen=True, slots=True)
class StatementValues:
    """The values in a text: `certain` ones it surely has, `possible` ones it has in some reading."""

    certain: frozenset[str]
    possible: frozenset[str]

    def lacks(self, other: StatementValues) -> list[str]:
        """Return the values that `other` surely has and this one does not in any reading."""
        return sorted(other.certain - self.possible)


NO_VALUES = StatementValues(frozenset(), frozenset())


def combine_values(values: Iterable[StatementValues]) -> StatementValues:
    """Return the values of several texts together."""
    values = list(values)
    return StatementValues(
        frozenset(value for one in values for value in one.certain),
        frozenset(value for one in values for value in one.possible),
    )


@lru_cache(maxsize=4096)
def extract_values(text: str) -> StatementValues:
    """Return the numbers, months and weekdays in a text; days and years are numbers."""
    certain: set[str] = set()
    possible: set[str] = set()
    spaced = _UNSPACED_NUMBER.sub(" ", _replace_han_numerals(fold(text).text, possible))
    rest = _take_dates(spaced, certain, possible)
    rest = _SPACED_THOUSANDS.sub(lambda match: re.sub(r"\D", "", match[0]), rest)
    certain |= _read_numbers(rest, _numbers_of(detect_languages(text) or ("en",)))
    possible |= _read_numbers(rest, _numbers_of(WRITTEN_LANGUAGES))
    possible |= _read_numbers(rest, {})
    words = [normalise(word) for word in re.findall(WORD_PATTERN, rest)]
    for part in {part for word in words for part in (word, *word.split("-"))}:
        possible |= _ambiguous_numbers(fold_accents(part))
    return StatementValues(frozenset(certain), frozenset(certain | possible))


def value_words(text: str) -> frozenset[str]:
    """Return the case-folded words of a text that are values, such as "two", "May" and "Mondays"."""
    numbers = _numbers_of(WRITTEN_LANGUAGES)
    words = {word.casefold(): word for word in re.findall(WORD_PATTERN, text)}
    return frozenset(
        folded
        for folded, word in words.items()
        if fold_accents(folded) in numbers or month_number(word) or _weekday_number(folded)
    )


def month_number(word: str) -> int | None:
    """Return the number of a month; an ambiguous or abbreviated name must begin with a capital letter."""
    folded = word.casefold()
    number = _month_of(folded)
    if number is None or word[0].isupper():
        return number
    is_ambiguous = len(folded) <= 3 or any(folded in load_words(key).ambiguous_months for key in WRITTEN_LANGUAGES)
    return None if is_ambiguous else number


def normalise_number(text: str) -> str:
    """Return a number in digits without separators of thousands, leading zeros and zeros behind the point."""
    if _THOUSANDS.fullmatch(text):
        return re.sub(r"[.,]", "", text).lstrip("0") or "0"
    if ":" in text:
        return text.lstrip("0").removesuffix(":00") or "0"
    text = text.replace(",", ".")
    if text.count(".") == 1:
        text = text.rstrip("0").rstrip(".")
    return text.lstrip("0") or "0" if not text.startswith("0.") else text


def _take_dates(text: str, certain: set[str], possible: set[str]) -> str:
    """Add the dates in a text to its values; return the text without their numbers, but with those of words."""
    for year, month, day in _ISO_DATE.findall(text):
        certain |= {year, f"month {int(month)}", str(int(day))}
    text = _ISO_DATE.sub(" , ", text)
    for first, _, second, year in _NUMERIC_DATE.findall(text):
        one, other = int(first), int(second)
        certain.add(year)
        readings = [{str(day), f"month {month}"} for day, month in ((one, other), (other, one)) if month <= 12]
        for reading in readings:
            (certain if len(readings) == 1 or one == other else possible).update(reading)
    text = _NUMERIC_DATE.sub(" , ", text)
    for hour, minutes, half in _HALF_DAY.findall(text):
        afternoon = int(hour) % 12 + (12 if half.lower() == _PREFIX_OF_HALF_DAY else 0)
        certain.add(normalise_number(f"{afternoon}{minutes}"))
        possible.add(normalise_number(f"{hour}{minutes}"))
    text = _HALF_DAY.sub(" , ", text)
    certain |= {f"month {int(month)}" for month in _JAPANESE_MONTH.findall(text)}
    text = _JAPANESE_MONTH.sub(" , ", text)
    for day, chinese in _JAPANESE_WEEKDAY.findall(text):
        certain.add(f"weekday {'月火水木金土日'.index(day) + 1 if day else '一二三四五六日天'.index(chinese) % 7 + 1}")
    for word in re.findall(WORD_PATTERN, text):
        if number := month_number(word):
            certain.add(f"month {number}")
        elif number := _month_of(word.casefold()):
            possible.add(f"month {number}")
        if number := _weekday_number(word.casefold()):
            (certain if len(word) > 3 else possible).add(f"weekday {number}")
    return text


@cache
def _months() -> Mapping[str, int]:
    found: dict[str, int] = {}
    for language in WRITTEN_LANGUAGES:
        for name, number in load_words(language).months.items():
            found[name] = number
            if not name.isascii() or language == "ru":
                found[fold_accents(name)] = number
    return found


@cache
def _russian_months() -> Mapping[str, int]:
    return {stem(name, "ru"): number for name, number in load_words("ru").months.items()}


def _month_of(folded: str) -> int | None:
    found = _months().get(folded)
    if found is None and not folded.isascii():
        found = _months().get(fold_accents(folded)) or _russian_months().get(stem(folded, "ru"))
    return found


@cache
def _weekdays() -> Mapping[str, int]:
    return {
        form: number
        for language in WRITTEN_LANGUAGES
        for name, number in load_words(language).weekdays.items()
        for form in (name, fold_accents(name))
    }


def _weekday_number(folded: str) -> int | None:
    return _weekdays().get(folded) or _weekdays().get(fold_accents(folded))


# Numbers in words


@cache
def _numbers_of(languages: tuple[str, ...]) -> Mapping[str, str]:
    return {
        fold_accents(normalise(word)): number
        for language in languages
        for word, number in load_words(language).numbers.items()
    }


@cache
def _all_ambiguous_numbers() -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for language in WRITTEN_LANGUAGES:
        for word, number in load_words(language).ambiguous_numbers.items():
            found.setdefault(fold_accents(normalise(word)), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}


def _ambiguous_numbers(word: str) -> frozenset[str]:
    return _all_ambiguous_numbers().get(word, frozenset())


_JOINERS = frozenset({"and", "und", "et", "y", "e", "en"})
"""Words between the parts of one number, as in "treinta y cinco"."""


def _read_numbers(text: str, numbers: Mapping[str, str]) -> set[str]:
    """Return the numbers in a text, those in words read by a table of number words."""
    found: set[str] = set()
    for phrase in [word for word in numbers if " " in word]:
        folded = fold_accents(normalise(text)) if phrase in fold_accents(normalise(text)) else ""
        if folded:
            found.add(numbers[phrase])
            text = folded.replace(phrase, " , ")
    reader = _NumberReader()
    for token in _TOKEN.finditer(text):
        if digits := token["number"]:
            found |= reader.take_digits(normalise_number(digits))
        elif word := token["word"]:
            for part in _number_parts(word, numbers):
                found |= reader.take_word(part) if part is not None else reader.end()
        elif token["mark"] not in "'’":
            found |= reader.end()
    return found | reader.end()


def _number_parts(word: str, numbers: Mapping[str, str]) -> Iterator[int | str | None]:
    """Yield the numbers that a word is made of, joiners, and None for anything else."""
    folded = fold_accents(normalise(word))
    if folded in numbers:
        yield int(numbers[folded])
        return
    if folded in _JOINERS:
        yield folded
        return
    parts = folded.split("-")
    if len(parts) > 1:
        for length in (3, 2, 1):
            head = "-".join(parts[:length])
            if head in numbers:
                yield int(numbers[head])
                for part in parts[length:]:
                    yield from _number_parts(part, numbers)
                return
        for part in parts:
            yield from _number_parts(part, numbers)
        return
    yield _fused_number(folded, numbers)


def _fused_number(word: str, numbers: Mapping[str, str]) -> int | None:
    """Return the number of a word such as "fünfundzwanzig", "zweihundert" or "ventidue", or None."""
    for joiner in ("und", "en"):
        head, found, tail = word.partition(joiner)
        if found and head in numbers and tail in numbers and int(numbers[head]) < 10 <= int(numbers[tail]) < 100:
            return int(numbers[head]) + int(numbers[tail])
    for tail in ("hundert", "tausend", "honderd", "duizend", "cento", "mila"):
        head = word.removesuffix(tail)
        if head != word and head in numbers and tail in numbers:
            return int(numbers[head]) * int(numbers[tail])
    return None


class _NumberReader:
    """Puts the parts of numbers together: "two hundred and fifty" is 250, "3 million" 3000000."""

    def __init__(self) -> None:
        self._total = 0.0
        self._current: float | None = None
        self._digits: str | None = None
        self._joined = False

    def take_digits(self, digits: str) -> set[str]:
        found = self.end()
        self._digits = digits
        try:
            self._current = float(digits)
        except ValueError:
            found.add(digits)
            self._digits = None
        return found

    def take_word(self, part: int | str) -> set[str]:
        if isinstance(part, str):
            if self._current is None or self._digits is not None:
                return self.end()
            self._joined = True
            return set()
        joined, self._joined = self._joined, False
        current = self._current
        if current is None:
            self._current = float(part)
        elif part >= 1000:
            self._total += current * part
            self._current = 0.0
        elif part in (12, 100) and current < 10 and not joined and current:
            self._current = current * part
        elif self._digits is None and _is_continued(current, part):
            self._current = current + part
        else:
            found = self.end()
            self._current = float(part)
            return found
        return set()

    def end(self) -> set[str]:
        """End the number that is being read; return it."""
        found: set[str] = set()
        if self._current is not None:
            if self._total:
                found.add(str(int(self._total + self._current)))
            else:
                found.add(self._digits or str(int(self._current)))
        self._total, self._current, self._digits, self._joined = 0.0, None, None, False
        return found


def _is_continued(current: float, part: int) -> bool:
    """Return whether a smaller part continues a number, as 5 does 20, and 50 does 200."""
    if current == 0:
        return part > 0
    if current % 100 == 0:
        return part < 100
    return (current % 10 == 0 and current % 100 >= 20 and part < 10) or (current % 100 in (60, 80) and 10 <= part < 20)


# Han numerals


def _replace_han_numerals(text: str, possible: set[str]) -> str:
    """Return a text with the Han numerals before a counter in digits; add the others to the possible values."""

    def replace(match: re.Match[str]) -> str:
        value = _read_han_numeral(match[0])
        if value is None:
            return match[0]
        following = text[match.end() : match.end() + 1]
        if match[0][0].isdigit() or (following in _COUNTERS and following):
            return f" {value} "
        possible.add(value)
        return match[0]

    return _HAN_NUMERAL.sub(replace, text)


def _read_han_numeral(text: str) -> str | None:
    total, section, current = 0.0, 0.0, ""
    for char in text:
        if char in _HAN_DIGITS:
            current += str(_HAN_DIGITS[char])
        elif char not in _HAN_UNITS:
            current += char
        else:
            try:
                number = float(current.replace(",", "")) if current else None
            except ValueError:
                return None
            unit = _HAN_UNITS[char]
            if unit >= 10**4:
                total += (section + (number or 0) or 1) * unit
                section = 0
            else:
                section += (1 if number is None else number) * unit
            current = ""
    try:
        value = total + section + (float(current.replace(",", "")) if current else 0)
    except ValueError:
        return None
    return str(int(value)) if value == int(value) else f"{value:g}"
