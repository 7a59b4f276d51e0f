"""Checks that a sentence keeps the content of the statements it replaces, with the quotes that prove it. Pure.

A merged sentence has the numbers and dates of its sources, as written. Everything else is proved by the quotes of a
verification; without one, the sentence must contain each source literally.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product

from graphmem.consolidation.models import Agreement, CarriedPart, StatementCheck, Verification
from graphmem.memories.names import is_like_any, may_be_same_person, mentions_name
from graphmem.text.folding import UNSPACED_LETTER, UNSPACED_SCRIPTS
from graphmem.text.names import POSSESSIVE_ENDING, is_first_name, strip_possessive
from graphmem.text.normalising import fold
from graphmem.text.tokenising import WORD_PATTERN, detect_languages
from graphmem.text.word_lists import WRITTEN_LANGUAGES, load_words

SUBJECT = "\0"
"""Key of the tokens that stand for a name of the subject."""

_WORD = re.compile(WORD_PATTERN)
_DIGITS = r"\d+(?:[A-Za-z](?![^\W_]))?"
_NUMBER = re.compile(rf"(?:(?<![\w.,:/-])-)?{_DIGITS}(?:[.,:/-]{_DIGITS})*")
"""A number, a date or a time as written, including separators and a single trailing letter as in "flat 12a"."""

_YEAR = re.compile(r"\d{4}(?=[./-])|(?<=[./-])\d{4}")
"""The year of a date in digits."""

_SENTENCE_ENDS = frozenset(".!?。！？:：")
_MARKS = frozenset(",;:.!?、。，；：！？،؛؟।")
_MEANINGFUL_PUNCTUATION = frozenset("%‰#@&/")
_MONTHS = load_words(*WRITTEN_LANGUAGES).months


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number, a symbol, a letter of a script without spaces, or a mark between clauses.

    `is_name` means that it is written like a name or number: with digits or, within a sentence, with a capital letter.
    """

    key: str
    is_name: bool = False
    is_mark: bool = False


@lru_cache(maxsize=4096)
def split_statement(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text in order, all of them folded."""
    return tuple(_scan(fold(text).text))


def _scan(text: str) -> Iterator[Token]:
    at, begins = 0, True
    while at < len(text):
        char = text[at]
        if number := _NUMBER.match(text, at):
            yield Token(number[0].casefold(), is_name=True)
            at, begins = number.end(), False
        elif unicodedata.category(char)[0] in "LM":
            end = _end_of_word(text, at)
            is_capital = not begins and unicodedata.category(char) == "Lu"
            yield Token(text[at:end].casefold(), is_name=is_capital)
            at, begins = end, False
        else:
            if unicodedata.category(char)[0] in "SN" or char in _MEANINGFUL_PUNCTUATION:
                yield Token(char)
            elif char in _MARKS:
                yield Token(char, is_mark=True)
                begins = begins or char in _SENTENCE_ENDS
            at += 1


def _end_of_word(text: str, start: int) -> int:
    """Return the end of a word; a letter of a script without spaces ends with the marks on it."""
    end = start + 1
    is_letter = UNSPACED_LETTER.match(text[start]) is not None
    while end < len(text):
        kind = unicodedata.category(text[end])[0]
        if kind != "M" and (is_letter or kind not in "LN" or UNSPACED_LETTER.match(text[end])):
            break
        end += 1
    return end


def is_number(key: str) -> bool:
    """Return whether a token is a number, a date or a time in digits, or an identifier with digits, such as LH1234."""
    return any(map(str.isdigit, key))


@lru_cache(maxsize=4096)
def mark_subject(text: str, subject_names: tuple[str, ...]) -> tuple[Token, ...]:
    """Return the tokens of a text with `SUBJECT` in place of the subject's names."""
    named = {index for name in subject_names for index in find_quote(name, text) or ()}
    tokens = enumerate(split_statement(text))
    return tuple(Token(SUBJECT, is_name=True) if index in named else token for index, token in tokens)


def known_languages(text: str) -> tuple[str, ...]:
    """Return the languages whose neutral words a text may have; a single letter is no evidence of a language."""
    words = {token.key for token in split_statement(text) if len(token.key) > 1}
    return tuple(
        language
        for language in detect_languages(text)
        if not (known := load_words(language).function_words) or language == "ru" or not words.isdisjoint(known)
    )


@cache
def neutral_words(languages: tuple[str, ...]) -> frozenset[str]:
    """Return the articles, copulas and conjunctions of languages."""
    words = load_words(*languages)
    return words.articles | words.copulas | words.conjunctions


# Literal merges

HINT = 'An administrator who has compared them may set "verified": true'
"""How to proceed with a correct merge that uses different words."""

_FINAL_MARKS = " .!?…。！？"


def find_source_not_literal(sources: Mapping[str, str], result: str, subject_names: Iterable[str] = ()) -> str | None:
    """Return which source, by memory id, a merged text does not contain literally, or None.

    Case, white space and final punctuation are ignored. The text must have no other words, which might deny or limit a
    source, except `subject_names` and neutral words.
    """
    text = _as_literal(result)
    for key, source in sources.items():
        wanted = re.escape(_as_literal(source))
        edge = f"[^\\W{UNSPACED_SCRIPTS}]"
        if not re.search(f"(?<!{edge}){wanted}(?!{edge})", text):
            return f'{key} is not covered: "{source}" does not stand literally in the merged text. {HINT}'
    names = _words(subject_names)
    for (key, source), other in product(sources.items(), sources.values()):
        if added := _find_change_of_sense(source, other, names):
            return f'{key} is not covered: with "{added}" another source may say the opposite. {HINT}'
    told = {index for source in sources.values() for index in find_quote(source, result) or ()}
    rest = _uncovered_words(result, told, list(subject_names))
    return f'no source says "{" ".join(rest[:8])}" of the merged text. {HINT}' if rest else None


def _find_change_of_sense(source: str, other: str, names: Collection[str]) -> str | None:
    """Return the words of another source that may deny the source contained in it, or None.

    These are words before it, as in "no longer likes tea", or after it if they include a negation or are all function
    words, as in "mag Tee nicht mehr". Other words after it complete it, as in "keeps bees on the roof".
    """
    stands, tokens = find_quote(source, other), split_statement(other)
    if not stands or len(stands) == len(tokens):
        return None
    neutral = neutral_words(known_languages(other)) | set(names)
    words = load_words(*WRITTEN_LANGUAGES)
    before = [token.key for token in tokens[: stands[0]] if not token.is_mark and token.key not in neutral]
    behind = [token.key for token in tokens[stands[-1] + 1 :] if not token.is_mark]
    unspaced = "".join(behind)  # in Japanese and Chinese, each letter is a token
    denies = (
        not words.negations.isdisjoint(behind)
        or any(word in unspaced for word in load_words("ja", "zh").negations)
        or all(key in words.function_words | words.stop_words for key in behind)
    )
    if behind and not before and not denies:
        return None
    return " ".join([*before, *behind][:5]) or None


def is_literally(source: str, result: str) -> bool:
    """Return whether a merged text literally contains a source."""
    return _as_literal(source) == _as_literal(result)


def _as_literal(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split()).rstrip(_FINAL_MARKS)


# People


def find_subject_mismatch(
    one: str, other: str, subject_names: Sequence[str] = (), people: Iterable[str] = ()
) -> str | None:
    """Return why two statements are about different people, or None.

    `subject_names` are the names of the subject of both, `people` those of other people that the statements name.
    """
    people = list(people)
    first, second = (_foreign_person(text, subject_names, people) for text in (one, other))
    if first and second:
        return None if may_be_same_person(first, second) else f"one is about {first}, the other about {second}"
    for name, text in ((first, other), (second, one)):
        if name and not mentions_name(text, name):
            return f"one is about {name}, the other is not"
    return None


def _foreign_person(text: str, subject_names: Sequence[str], people: Sequence[str]) -> str | None:
    name = _find_leading_person(text, people)
    if name is None or any(may_be_same_person(name, own) for own in subject_names):
        return None
    return name


def _find_leading_person(text: str, people: Sequence[str]) -> str | None:
    """Return the person whose name a statement begins with: a known person, or one with a first name."""
    name: list[str] = []
    at = 0
    for word in _WORD.finditer(text.strip()):
        if not word[0][0].isupper() or text.strip()[at : word.start()].strip():
            break
        name.append(word[0])
        at = word.end()
        if POSSESSIVE_ENDING.search(word[0]):
            break
    if not name:
        return None
    full_name = " ".join(map(strip_possessive, name))
    is_known = any(may_be_same_person(full_name, person) for person in people)
    is_article = name[0].casefold() in load_words(*detect_languages(text)).articles
    is_name = is_known or (not is_article and is_first_name(strip_possessive(name[0])))
    return full_name if is_name else None


# Numbers and dates

MIN_SAME_MATTER = 0.65
"""Minimum share of common words for two statements to be about the same matter."""


def find_number_conflict(one: str, other: str, subject_names: Iterable[str] = ()) -> str | None:
    """Return that two statements differ only in their numbers, so that they cannot both hold, or None.

    Only numbers in the same form are compared: a date in digits does not conflict with one that names its month.
    """
    names = tuple(subject_names)
    first, second = (mark_subject(text, names) for text in (one, other))
    words, others = ({token.key for token in tokens if not is_number(token.key)} for tokens in (first, second))
    if not words or not others or 2 * len(words & others) / (len(words) + len(others)) < MIN_SAME_MATTER:
        return None
    own, theirs = _numbers(first) - _numbers(second), _numbers(second) - _numbers(first)
    forms = {_form(number) for number in own} & {_form(number) for number in theirs}
    if forms:
        said, says = (sorted(key for key in numbers if _form(key) in forms)[:3] for numbers in (own, theirs))
        return f"one says {', '.join(said)}, the other {', '.join(says)}"
    return None


def _form(number: str) -> str:
    """Return the form of a number: the name of a month, a date, a time, or plain."""
    if not is_number(number):
        return "month"
    if number.count(".") > 1:
        return "date with points"
    return next((mark for mark in "/:-" if mark in number[1:]), "plain")


MAX_RESTATED_TOKENS = 5
"""Maximum tokens of a verification part that gives a number in words, or a number word in digits."""


def find_changed_numbers(
    sources: Mapping[str, str], result: str, verification: Verification | None = None
) -> str | None:
    """Return a number or date of a source that a merged text lacks or has too often, or one that it adds; else None.

    They are compared as written. The text must have each at least as often as every single source does, and no more
    often than all of them together, because sources may say the same. Numbers that a verification quotes in words are
    left out.
    """
    restated = _restated_numbers(verification) if verification else set()
    made = _numbers(split_statement(result))
    told: Counter[str] = Counter()
    for key, text in sources.items():
        numbers = _numbers(split_statement(text))
        told += numbers
        if lost := [number for number in numbers - made if (key, number) not in restated]:
            return f"{key} is not covered: the merged text lacks {', '.join(lost[:5])}"
    if new := [number for number in made - told if ("", number) not in restated]:
        return f"no source has {', '.join(new[:5])} of the merged text: write numbers and dates as the sources do"
    return None


def _restated_numbers(verification: Verification) -> set[tuple[str, str]]:
    """Return the numbers that short quotes give in words, each with its memory's id, or "" for the merged text."""
    restated: set[tuple[str, str]] = set()
    for check in verification.statements:
        for part in check.parts:
            sides = split_statement(part.words), split_statement(part.result)
            words, says = ([token.key for token in side if is_number(token.key)] for side in sides)
            if sides[1] and max(map(len, sides)) <= MAX_RESTATED_TOKENS and not (words and says):
                restated |= {(check.memory_id, key) for key in words} | {("", key) for key in says}
    return restated


def _numbers(tokens: Iterable[Token]) -> Counter[str]:
    """Count each number in a text, and each month next to a number: "4 May" is another date than "4"."""
    words = [token.key for token in tokens if not token.is_mark]
    return Counter(
        key
        for at, key in enumerate(words)
        if is_number(key) or (key in _MONTHS and any(map(is_number, words[max(0, at - 2) : at + 3])))
    )


# Names

NOUN_CAPITALISING = frozenset({"de"})
"""Languages that capitalise every noun, so that a capital letter does not indicate a name."""


def _words(names: Iterable[str]) -> frozenset[str]:
    return frozenset(token.key for name in names for token in split_statement(name))


def _capitalised(text: str) -> frozenset[str]:
    """Return the capitalised words within a sentence, unless the language capitalises every noun."""
    if NOUN_CAPITALISING & set(detect_languages(text)):
        return frozenset()
    return frozenset(
        token.key
        for token in split_statement(text)
        if token.is_name and not is_number(token.key) and len(token.key) > 1
    )


# Sentences of profiles

MAX_UNTOLD_SHARE = 0.5
"""Maximum share of a sentence's words missing from its sources, which allows for paraphrase."""


def find_untold(sources: Iterable[str], sentence: str, names: Iterable[str] = ()) -> str | None:
    """Return a number or name of a sentence that its sources lack, or that they lack most of its words, or None.

    `names` are the names of its subject, which are always allowed. Neutral words do not count.
    """
    sources, own = list(sources), _words(names)
    told = {token.key for text in sources for token in split_statement(text)} | own
    told |= {part for key in told for part in _YEAR.findall(key)}
    words = [token.key for token in split_statement(sentence) if not token.is_mark]
    if numbers := [key for key in dict.fromkeys(words) if is_number(key) and key not in told]:
        return f"no source has {', '.join(numbers[:5])}"
    if unnamed := sorted(name for name in _capitalised(sentence) - own if not is_like_any(name, told)):
        return f"no source names {', '.join(unnamed[:5])}"
    neutral = neutral_words(known_languages(" ".join([*sources, sentence])))
    meaningful = [key for key in words if key not in neutral and key not in own]
    untold = [key for key in meaningful if not is_like_any(key, told)]
    if len(untold) > MAX_UNTOLD_SHARE * len(meaningful):
        return f"no source has most of its words: {', '.join(untold[:5])}"
    return None


# Quotes

_DISAGREEMENTS = {
    Agreement.DENIED: "the merged text denies what it affirms, or affirms what it denies",
    Agreement.LIMITED: "the merged text limits it, or says it without its limits",
    Agreement.TIME: "the merged text says it of another time",
    Agreement.CERTAINTY: "the merged text says it with another certainty",
    Agreement.OTHER: "the merged text says it of something else",
    Agreement.LOST: "the merged text lacks a part of it",
}


def find_unverified(
    verification: Verification, sources: Mapping[str, str], result: str, subject_names: Iterable[str]
) -> str | None:
    """Return why the quotes do not prove that a merged text says what its sources say and nothing else, or None."""
    names = list(subject_names)
    covered: set[int] = set()
    for key, text in sources.items():
        checks = [check for check in verification.statements if check.memory_id == key]
        if not checks:
            return f"{key} is not covered: the verification does not speak of it"
        for check in checks:
            if check.agreement is not Agreement.SAME:
                return f"{key} is not covered: {_DISAGREEMENTS[check.agreement]}"
            reason, found = _check_parts(check, text, result)
            if reason:
                return reason
            covered |= found
        if reason := _find_uncovered(key, text, [part for check in checks for part in check.parts], names):
            return reason
    if added := [words for words in verification.added if split_statement(words)]:
        return f'no source says "{added[0]}" of the merged text'
    return _find_uncovered_result(result, covered, names)


def quotes_cover(verification: Verification, memory_id: str, result: str, subject_names: Iterable[str]) -> bool:
    """Return whether the quotes from one source alone cover the whole merged text."""
    parts = [part for check in verification.statements if check.memory_id == memory_id for part in check.parts]
    covered = {index for part in parts for index in find_quote(part.result, result) or ()}
    return bool(parts) and _find_uncovered_result(result, covered, list(subject_names)) is None


def find_quote(quote: str, text: str) -> list[int] | None:
    """Return the positions of all tokens where a quote occurs in a text, or None if it does not.

    Case, width and marks between words are ignored.
    """
    wanted = [token.key for token in split_statement(quote) if not token.is_mark]
    indexed = [(index, token.key) for index, token in enumerate(split_statement(text)) if not token.is_mark]
    keys = [key for _, key in indexed]
    starts = [at for at in range(len(keys) - len(wanted) + 1) if keys[at : at + len(wanted)] == wanted]
    if not wanted or not starts:
        return None
    return [index for start in starts for index, _ in indexed[start : start + len(wanted)]]


def _check_parts(check: StatementCheck, text: str, result: str) -> tuple[str | None, set[int]]:
    """Return why the quotes of one source are unusable, or None, and the positions they cover in the result."""
    covered: set[int] = set()
    for part in check.parts:
        if find_quote(part.words, text) is None:
            return f'{check.memory_id} is not covered: "{part.words}" is no quote from it', covered
        if not split_statement(part.result):
            return f'{check.memory_id} is not covered: nothing in the merged text says "{part.words}"', covered
        found = find_quote(part.result, result)
        if found is None:
            return f'{check.memory_id} is not covered: "{part.result}" is no quote from the merged text', covered
        covered |= set(found)
    return None, covered


def _find_uncovered(key: str, text: str, parts: Sequence[CarriedPart], names: Sequence[str]) -> str | None:
    covered = {index for part in parts for index in find_quote(part.words, text) or ()}
    rest = _uncovered_words(text, covered, names)
    return f'{key} is not covered: the verification leaves out "{" ".join(rest[:8])}"' if rest else None


def _find_uncovered_result(result: str, covered: set[int], names: Sequence[str]) -> str | None:
    rest = _uncovered_words(result, covered, names)
    return f'no source is quoted for "{" ".join(rest[:8])}" of the merged text' if rest else None


def _uncovered_words(text: str, covered: set[int], names: Sequence[str]) -> list[str]:
    """Return the words outside quotes that are neither neutral nor names of the subject."""
    neutral = neutral_words(known_languages(text)) | {SUBJECT}
    return [
        token.key
        for index, token in enumerate(mark_subject(text, tuple(names)))
        if index not in covered and not token.is_mark and token.key not in neutral
    ]
