"""Time expressions in text, such as "in May 2023" and "la semana pasada", read in the language of the text.

`dateparser` reads dates, and relative times in English. It misses many in other languages: these are data in
`relative_times/<language>.toml`, patterns by the English phrase with the same meaning.
"""

from __future__ import annotations

import re
import tomllib
from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any, NamedTuple

from dateparser.date import DateDataParser
from dateparser.languages.loader import default_loader
from dateparser.search import search_dates
from dateparser.utils import normalize_unicode

from graphmem.text.folding import UNSPACED_LETTER
from graphmem.text.text_cache import cache_by_text
from graphmem.text.tokenising import script_language, split_words
from graphmem.text.word_lists import LANGUAGES, WESTERN_LANGUAGES, WordLists, load_words

MAX_SCORE_GAP = 1
"""Maximum lag in language-specific words behind the likeliest language for a text to be read in that language too."""

_FOLDER = files("graphmem.text") / "relative_times"
_ENGLISH_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SCRIPT_LANGUAGES = {"zh": ("zh", "ja")}
"""The languages of scripts shared by several languages."""


class RelativeTime(NamedTuple):
    """A relative time in a text: its place, its words, and the English phrase with the same meaning."""

    start: int
    end: int
    text: str
    english: str


@dataclass(frozen=True, slots=True)
class TimePhrases:
    """The time phrases of one language: `relative` are patterns with the English phrase that each means.

    The groups `unit` and `number` of a pattern stand for the words in `units` and `numbers`, which give the English
    words and the digits. `frequent` are words that identify a text as being in the language.
    """

    frequent: frozenset[str]
    units: Mapping[str, str]
    numbers: Mapping[str, str]
    relative: Sequence[tuple[re.Pattern[str], str]]
    deadline: re.Pattern[str] | None = None
    """Finds, at the end of a text, a word that indicates a time ahead, such as "by"."""
    between: re.Pattern[str] | None = None
    """Finds a range of dates by its groups `first` and `last`, as in "from March to May 2026", or `day` and `end`."""

    def find(self, text: str) -> Iterator[RelativeTime]:
        """Yield the relative times in a text; of overlapping ones the first, and of these the longest."""
        found = [(match, english) for pattern, english in self.relative for match in pattern.finditer(text)]
        end = 0
        for match, english in sorted(found, key=lambda pair: (pair[0].start(), -pair[0].end())):
            if match.start() >= end:
                end = match.end()
                yield RelativeTime(match.start(), end, match[0], self._translate(match, english))

    def _translate(self, match: re.Match[str], english: str) -> str:
        groups = match.groupdict()
        number = (groups.get("number") or "").casefold()
        unit = self.units.get((groups.get("unit") or "").casefold(), "")
        year = groups.get("year") or ""
        return english.format(unit=unit, number=self.numbers.get(number, number), year=year).strip()


@cache
def load_time_phrases(language: str) -> TimePhrases:
    """Return the time phrases of a language, empty for a language without a file."""
    source = _FOLDER / f"{language}.toml"
    if not source.is_file():
        return TimePhrases(frozenset(), {}, {}, ())
    data = tomllib.loads(source.read_text("utf-8"))
    words = load_words(language)
    units = {word: unit for unit, names in data["units"].items() for word in names.split()}
    weekdays = {word: _ENGLISH_WEEKDAYS[number - 1] for word, number in words.weekdays.items()}
    numbers = {**words.ambiguous_numbers, **words.numbers}
    named = {
        "unit": rf"(?P<unit>{_any_of({**units, **weekdays})})",
        "number": rf"(?P<number>\d{{1,3}}|{_any_of(numbers)})",
        "year": r"(?: (?:\w{1,3} )?(?P<year>(?:19|20)\d\d))?",
    }
    return TimePhrases(
        frequent=frozenset(data["frequent"].split()),
        units={**units, **weekdays},
        numbers=numbers,
        relative=[
            (re.compile(rf"\b{_fill(pattern, named)}(?!\w)", re.IGNORECASE), english)
            for english, patterns in data["relative"].items()
            for pattern in patterns
        ],
        deadline=re.compile(rf"\b(?:{data['deadline']})\s+(?:\w{{2,3}}\s+)?$", re.IGNORECASE)
        if "deadline" in data
        else None,
        between=_compile_between(words, data["between"]) if "between" in data else None,
    )


def _compile_between(words: WordLists, joints: Mapping[str, str]) -> re.Pattern[str]:
    article, ordinal = r"(?:[^\W\d]{2,3}\s+)?", r"\d{1,2}(?:\.|[^\W\d]{1,2}|[ºª])?"
    month = rf"(?:{_any_of(words.months)})\b\.?(?:\s+(?:\w{{2}}\s+)?\d{{4}})?"
    day_of_month = rf"{article}{ordinal}\s+(?:\w{{2}}\s+)?{month}"
    date = rf"(?:{day_of_month}|{month}|\d{{4}}-\d\d-\d\d|\d{{1,2}}\.\d{{1,2}}\.(?:\d{{4}})?)"
    connector = rf"\s*(?:\b(?:{joints['connectors']})\b|[-–—])\s*"
    # Two days of one month need no opener: "3 to 17 June".
    return re.compile(
        rf"\b(?:(?:{joints['openers']})\s+(?P<first>{date}|{article}{ordinal}){connector}(?P<last>{date})"
        rf"|(?P<day>{article}{ordinal}){connector}(?P<end>{day_of_month}))",
        re.IGNORECASE,
    )


def likely_languages(text: str, preferred: Sequence[str]) -> dict[str, bool]:
    """Return the languages (ISO 639-1) that a text may be in, the likeliest first, and whether each is certain.

    They are identified by its script and its frequent words. In a tie, `preferred` languages come first; a text without
    any frequent word may be in each of these and in no other.
    """
    if (by_script := script_language(text)) is not None:
        return dict.fromkeys(_SCRIPT_LANGUAGES.get(by_script, (by_script,)), True)
    words = {word for word in split_words(text.casefold()) if not word.isdigit()}
    counts = {language: len(words & load_time_phrases(language).frequent) for language in LANGUAGES}
    best = max(counts.values())
    if not best:
        return dict.fromkeys(preferred, len(preferred) == 1)
    likely = [
        language
        for language in dict.fromkeys([*preferred, *LANGUAGES])
        if counts.get(language, 0) >= max(best - MAX_SCORE_GAP, 0 if language in preferred else 1)
    ]
    is_clear = sum(count == best for count in counts.values()) == 1
    ordered = sorted(likely, key=lambda language: -counts.get(language, 0))
    return {language: is_clear and counts.get(language) == best for language in ordered}


def _any_of(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=lambda word: (-len(word), word))))


def _fill(pattern: str, named: Mapping[str, str]) -> str:
    for name, group in named.items():
        pattern = pattern.replace(f"{{{name}}}", group)
    return pattern


MAX_QUESTION_CHARACTERS = 500
"""Maximum characters of a question that are searched for times."""

MIN_WORD_LENGTH = {True: 3, False: 4}
"""Minimum letters of a word that can mean a time, by whether the language is certain.

Shorter ones are weekdays in some language ("Je", "we", "ma"), and three-letter words are times in some. Words of a
script without spaces may have any length.
"""

_BARE_NUMBER = re.compile(r"^[\d\s.,:%+'-]+$")
_DATE_SHAPE = re.compile(r"\d{1,4}[./-]\d{1,2}(?:[./-]\d{1,4})?|\d{1,2}:\d{2}|^(?:1[89]|20)\d\d$")
_ARTICLE = re.compile(r"^[^\W\d]{2,3}\s+(?=\d{1,2}(?!\d))")
_DAY = re.compile(r"\d{1,2}(?:\.|[^\W\d]{1,2}|[ºª])?")
_DECADE = re.compile(r"^['’]?\d{2,4}s$", re.IGNORECASE)
_YEAR_ALONE = re.compile(r"^(?P<words>(?:[^\W\d]{1,2}\s+)*)(?P<sign>\W?)\d{4}(?:\s+[^\W\d]{1,2})*$")
"""A year without a month or other time word; words of two letters are prepositions of some language."""

_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_DATE_BEFORE, _DATE_AFTER = re.compile(r"\d[./-]$"), re.compile(r"^[./-]\d")
_LAST_PART = re.compile(r"(\w+|[^\w\s])(\s*)$")
_GLUED = re.compile(r"^[^\w\s]\w")
_CLAUSE_MARKS = frozenset(",;:!?()[]\"'“”„«»–—…")
_AMOUNT_SIGN = re.compile(r"[$€£¥%^]")
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class TimeExpression:
    """A time named by a text: its words, the time meant without a zone, and its precision.

    The precision is `time`, `day`, `week`, `month` or `year`; for a range, which ends before `until`, it is `weekend`,
    `quarter` or `range`.
    """

    text: str
    at: datetime
    precision: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The range `[start, end)` of times, in milliseconds since 1970."""

    start: int
    end: int

    def contains(self, time: int) -> bool:
        """Return whether `time`, in milliseconds since 1970, is in the range."""
        return self.start <= time < self.end


def find_time_expressions(
    text: str, base: datetime, languages: Sequence[str], *, prefer_past: bool = False
) -> list[TimeExpression]:
    """Return the times that `text` names as of `base`, which has no zone; words that rarely mean a time are left out.

    A text is read in its own language. If that is uncertain, it is read in each possible language, preferring
    `languages`, and the one that understands most of it counts. With `prefer_past`, a month or weekday without a year
    is the latest one before `base`, else the nearest.
    """
    readings = [
        _read(text, base, language, prefer_past=prefer_past, min_length=MIN_WORD_LENGTH[is_certain])
        for language, is_certain in likely_languages(text, languages).items()
    ]
    return max(readings, key=_understood_letters, default=[])


def find_time_ranges(question: str, now: datetime, languages: Sequence[str] = ("en",)) -> list[TimeRange]:
    """Return the days, weeks, months and years that a question names as of `now`, in UTC."""
    expressions = find_time_expressions(
        question[:MAX_QUESTION_CHARACTERS], now.replace(tzinfo=None), languages, prefer_past=True
    )
    return [_to_range(expression) for expression in expressions if 2 <= expression.at.year <= 9990]


@cache_by_text
def names_year(text: str) -> bool:
    """Return whether a text names a year, alone or in a date."""
    return any(_is_year(text, match) for match in _YEAR.finditer(text))


def _is_year(text: str, match: re.Match[str]) -> bool:
    before, after = text[: match.start()], text[match.end() :]
    if _DATE_BEFORE.search(before) or _DATE_AFTER.match(after):
        return True
    last = _LAST_PART.search(before)
    follows_month = last is not None and last[1].casefold() in load_words(*LANGUAGES).months
    return follows_month or (_may_precede_year(before) and not _is_count(before, after))


def _read(text: str, base: datetime, language: str, *, prefer_past: bool, min_length: int) -> list[TimeExpression]:
    """Return the times named by a text in a language, in order."""
    placed, rest = _read_relative_times(text, base, language, prefer_past=prefer_past)
    settings = {"RELATIVE_BASE": base, **({"PREFER_DATES_FROM": "past"} if prefer_past else {})}
    parser = DateDataParser(languages=[language], settings={**settings, "RETURN_TIME_AS_PERIOD": True})
    ahead = DateDataParser(
        languages=[language],
        settings={"RELATIVE_BASE": base, "PREFER_DATES_FROM": "future", "RETURN_TIME_AS_PERIOD": True},
    )
    words, deadline = load_words(language), load_time_phrases(language).deadline
    time_words = _time_words(language) - (words.stop_words - words.months.keys())
    position = 0
    for sentence_start, phrase, at in _search_sentences(rest, language, settings):
        position = max(position, rest.find(phrase, max(position, sentence_start)))
        core = _strip_fillers(phrase, words)
        start = position + phrase.find(core)
        before, after = rest[:start], rest[start + len(core) :]
        if core and _means_time(core, before, after, words, time_words, min_length=min_length):
            is_ahead = not prefer_past and deadline is not None and deadline.search(before) is not None
            parsed = (ahead if is_ahead else parser).get_date_data(core)
            precision = parsed.period if parsed and parsed.date_obj else "day"
            if is_ahead and parsed.date_obj:
                at = parsed.date_obj
            placed.append((position, TimeExpression(core, at.replace(tzinfo=None), precision)))
    return [expression for _, expression in sorted(placed, key=lambda pair: pair[0])]


_SENTENCE_END = re.compile(r"\n|(?<=[!?。！？])|(?<=[^\W\d]{5}\.)\s")
"""A full stop ends a sentence after a word of five letters or more: "5. Mai" and "Sept. 3" remain whole."""


def _search_sentences(text: str, language: str, settings: Mapping[str, Any]) -> Iterator[tuple[int, str, datetime]]:
    """Yield what `dateparser` takes for a time, each with the start of its sentence.

    Its search takes long, so only the sentences that may name a time are given to it.
    """
    start = 0
    for end in (*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)):
        sentence = text[start:end]
        if _may_name_time(sentence, language):
            for phrase, at in search_dates(sentence, languages=[language], settings=settings) or []:
                yield start, phrase, at
        start = end


_DIGITS_OF_TIME = re.compile(r"\d[./:-]\d|(?<!\d)(?:1[89]|20)\d\d(?!\d)|\d[^\W\d]|\d [ap]\.?m\b", re.IGNORECASE)
"""Digits that can be a time without a time word: parts of a date or a clock, a year, "3rd" and "5 pm"."""

_UNCERTAIN_TERMS = frozenset(["name", "date_order", "skip", "pertain", "ago", "in", "simplifications"])
"""Sections of `dateparser`'s language data that do not name a time on their own."""

_PATTERN_SIGNS = re.compile(r"\\.|[^\W\d_]*\?|[^\w\s'-]")
"""Non-word parts of a pattern: escapes, optional letters, and signs."""


def _may_name_time(text: str, language: str) -> bool:
    """Return whether a text has a date in digits or a word that `dateparser` needs to find a time in it."""
    if language not in WESTERN_LANGUAGES or UNSPACED_LETTER.search(text) or _DIGITS_OF_TIME.search(text):
        return True
    return not _time_words(language).isdisjoint(_words_of(text))


@cache
def _time_words(language: str) -> frozenset[str]:
    """Return the words of a language, one of which `dateparser` needs to find a time, if no digits name it."""
    terms: Mapping[str, Any] = default_loader.get_locale(language).info
    named = [words for key, words in terms.items() if key not in _UNCERTAIN_TERMS and isinstance(words, list)]
    names = chain.from_iterable([*named, *terms["relative-type"].values()])
    needed = {max(_words_of(name), key=len, default="") for name in names}
    patterns = [pattern for simpler in terms.get("simplifications", ()) for pattern in simpler if "\\d" not in pattern]
    replaced = {word for pattern in patterns for word in _words_of(_PATTERN_SIGNS.sub(" ", pattern))}
    needed |= {word for word in replaced - load_words(language).stop_words if len(word) > 2}
    return frozenset(word for word in needed if len(word) > 1)


def _words_of(text: str) -> list[str]:
    return _WORD.findall(normalize_unicode(text.casefold()))


def _read_relative_times(
    text: str, base: datetime, language: str, *, prefer_past: bool
) -> tuple[list[tuple[int, TimeExpression]], str]:
    """Return the relative times and ranges in a text with their places, and the text with blanks in their place."""
    parser = DateDataParser(languages=["en"], settings={"RELATIVE_BASE": base, "RETURN_TIME_AS_PERIOD": True})
    phrases = load_time_phrases(language)
    placed, rest = [], text
    for match in phrases.between.finditer(text) if phrases.between else ():
        if expression := _read_between(match, base, language):
            placed.append((match.start(), expression))
            rest = _blank(rest, match.start(), match.end())
    for found in phrases.find(rest):
        expression = _to_named_range(found, base, prefer_past=prefer_past)
        if expression is None and (parsed := parser.get_date_data(found.english)).date_obj:
            expression = TimeExpression(found.text, parsed.date_obj, parsed.period)
        if expression:
            placed.append((found.start, expression))
            rest = _blank(rest, found.start, found.end)
    return placed, rest


def _blank(text: str, start: int, end: int) -> str:
    return text[:start] + ";".ljust(end - start) + text[end:]


def _read_between(match: re.Match[str], base: datetime, language: str) -> TimeExpression | None:
    """Return the range of a match; the first date takes over a month and year that only the last one has."""
    parser = DateDataParser(languages=[language], settings={"RELATIVE_BASE": base, "PREFER_DAY_OF_MONTH": "first"})
    first, last = (_ARTICLE.sub("", part) for part in (match["first"] or match["day"], match["last"] or match["end"]))
    if _DAY.fullmatch(first):
        first = _DAY.sub(first, last, count=1)
    year = _YEAR.search(last)
    if year and not _YEAR.search(first):
        first = f"{first} {year[0]}"
    begin, end = parser.get_date_data(first), parser.get_date_data(last)
    if not begin.date_obj or not end.date_obj:
        return None
    start = _bounds(TimeExpression(first, begin.date_obj, begin.period))[0]
    until = _bounds(TimeExpression(last, end.date_obj, end.period))[1]
    if until <= start:
        start = start.replace(year=start.year - 1)
    return TimeExpression(match[0], start, "range", until) if start < until else None


def _to_named_range(found: RelativeTime, base: datetime, *, prefer_past: bool) -> TimeExpression | None:
    """Return the range meant by a relative time's English phrase, or None if it means no range."""
    match found.english.split():
        case [("last" | "this" | "next") as side, "weekend"]:
            start = _midnight(base) - timedelta(days=base.weekday() - 5) + timedelta(weeks=_SIDES[side])
            return TimeExpression(found.text, start, "weekend", start + timedelta(days=2))
        case [("last" | "this" | "next") as side, "quarter"]:
            return _quarter(found.text, base.year, (base.month - 1) // 3 + _SIDES[side])
        case ["quarter", number, *year]:
            quarter = _quarter(found.text, int(year[0]) if year else base.year, int(number) - 1)
            is_ahead = prefer_past and not year and quarter.at > base
            return _quarter(found.text, base.year - 1, int(number) - 1) if is_ahead else quarter
        case ["half", number, *year]:
            first = _shift(datetime(int(year[0]) if year else base.year, 1, 1), 6 * (int(number) - 1), "month")
            return TimeExpression(found.text, first, "range", _shift(first, 6, "month"))
        case ["end", "of", ("month" | "year") as unit]:
            until = _bounds(TimeExpression(found.text, base, unit))[1]
            return TimeExpression(found.text, until - timedelta(days=1), "day")
        case [("month" | "year") as unit, "to", "date"]:
            start = _bounds(TimeExpression(found.text, base, unit))[0]
            return TimeExpression(found.text, start, "range", _midnight(base) + timedelta(days=1))
        case [("past" | "coming") as side, number, unit]:
            today, count = _midnight(base), int(number)
            start, until = (
                (_shift(today, -count, unit), today) if side == "past" else (today, _shift(today, count, unit))
            )
            return TimeExpression(found.text, start, "range", until + timedelta(days=1))
    return None


_SIDES = {"last": -1, "this": 0, "next": 1}


def _quarter(text: str, year: int, number: int) -> TimeExpression:
    """Return a quarter by its number, counted from 0 in `year`; it may be in another year."""
    start = _shift(datetime(year, 1, 1), 3 * number, "month")
    return TimeExpression(text, start, "quarter", _shift(start, 3, "month"))


def _shift(time: datetime, count: int, unit: str) -> datetime:
    """Return a time some days, weeks, months or years later, at most the last day of a shorter month."""
    if unit.startswith(("day", "week")):
        return time + timedelta(days=count * (7 if unit.startswith("week") else 1))
    months = time.month - 1 + count * (12 if unit.startswith("year") else 1)
    year, month = time.year + months // 12, months % 12 + 1
    return time.replace(year=year, month=month, day=min(time.day, monthrange(year, month)[1]))


def _midnight(time: datetime) -> datetime:
    return time.replace(hour=0, minute=0, second=0, microsecond=0)


def _understood_letters(expressions: Sequence[TimeExpression]) -> int:
    return sum(len(expression.text) for expression in expressions)


def _strip_fillers(phrase: str, words: WordLists) -> str:
    parts = phrase.strip(" \t\n,.;:!?()").split()
    while parts and parts[-1].casefold() in words.time_fillers:
        parts.pop()
    while parts and parts[0].casefold() in words.time_fillers:
        parts.pop(0)
    return " ".join(parts).strip(" ,.;:!?()")


def _means_time(core: str, before: str, after: str, words: WordLists, time_words: Set[str], *, min_length: int) -> bool:
    """Return whether a phrase names a time between the text `before` and `after` it.

    "3 March" and "in May" do; "may", "March on", "12", "3 of 7" and "a second" do not.
    """
    if year := _YEAR_ALONE.match(core):
        before += year["words"]
        return not (year["sign"] or _GLUED.match(after) or _is_count(before, after)) and _may_precede_year(before)
    if _BARE_NUMBER.match(core):
        return _DATE_SHAPE.search(core) is not None
    if _AMOUNT_SIGN.search(core) or _DECADE.match(core):
        return False
    if any(char.isdigit() for char in core):
        return _DIGITS_OF_TIME.search(core) is not None or not time_words.isdisjoint(_words_of(core))
    previous = [*_WORD.findall(before)[-1:], *_WORD.findall(core)]
    for place, word in enumerate(_WORD.findall(core)):
        if word.casefold() in words.ambiguous_time_words:
            is_after_preposition = not words.time_prepositions.isdisjoint(map(str.casefold, previous[: place + 1]))
            if word[0].isupper() and is_after_preposition:
                return True
        elif (len(word) >= min_length or UNSPACED_LETTER.match(word)) and word.casefold() not in words.time_fillers:
            return True
    return False


def _may_precede_year(before: str) -> bool:
    """Return whether a four-digit number after the text `before` is a year.

    It is at the beginning of a clause and after a function word of any language, such as "in", "since", "my" and "and";
    after any other word or sign it belongs to a name, as in "Windows Server 2012", "room 1803" and "#1234".
    """
    last = _LAST_PART.search(before)
    if last is None:
        return True
    part = last[1].casefold()
    words = load_words(*LANGUAGES)
    function_words = (words.stop_words, words.time_fillers, words.time_prepositions, words.year_introducers)
    return part in _CLAUSE_MARKS or any(part in listed for listed in function_words)


def _is_count(before: str, after: str) -> bool:
    """Return whether a four-digit number between two texts is a sum of money or a count.

    It is a sum if it states what a sum of money is ("the rent is 1950"), and a count if a thing follows it and no time
    word or possessive stands before it: "are there 2017 files?", but not "my 2017 budget".
    """
    words = load_words(*LANGUAGES)
    said = [word.casefold() for word in _WORD.findall(re.split(r"[.!?;]", before)[-1])]
    if not said:
        return False
    if said[-1] in words.copulas and not words.money_words.isdisjoint(said):
        return True
    thing = re.match(r"\s+([^\W\d_]+)", after)
    of_year = (words.time_fillers, words.time_prepositions, words.year_introducers, words.articles, words.first_person)
    is_thing = thing is not None and thing[1].casefold() not in words.stop_words | words.copulas
    return is_thing and not any(said[-1] in listed for listed in of_year)


def _to_range(expression: TimeExpression) -> TimeRange:
    return TimeRange(*(int(time.replace(tzinfo=UTC).timestamp() * 1000) for time in _bounds(expression)))


def _bounds(expression: TimeExpression) -> tuple[datetime, datetime]:
    """Return the start and end of an expression's day, week, month, year or range."""
    start = _midnight(expression.at)
    match expression.precision:
        case _ if expression.until is not None:
            end = expression.until
        case "week":
            start -= timedelta(days=start.weekday())
            end = start + timedelta(weeks=1)
        case "month":
            start = start.replace(day=1)
            end = (start + timedelta(days=32)).replace(day=1)
        case "year":
            start = start.replace(month=1, day=1)
            end = start.replace(year=start.year + 1)
        case _:
            end = start + timedelta(days=1)
    return start, end
