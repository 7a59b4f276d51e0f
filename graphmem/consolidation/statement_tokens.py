"""The words, numbers and symbols of a statement, as statements of any language are compared. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from graphmem.text.folding import fold
from graphmem.text.tokenising import NUMBER_PATTERN, UNSPACED_LETTER
from graphmem.text.word_lists import WRITTEN_LANGUAGES, load_words

SUBJECT = "\0"
"""Key of the token that stands for a name of the subject."""

MAX_NAME_TOKENS = 64
"""Most tokens of a name that are compared."""

_NUMBER = re.compile(rf"(?<![\w.,:])-(?={NUMBER_PATTERN})|{NUMBER_PATTERN}")
_ISO_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?!\d)")
_DAY_FIRST_DATE = re.compile(r"(\d{1,2})[./](\d{1,2})[./](\d{4})(?!\d)")
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_SENTENCE_ENDS = frozenset(".!?。！？:：")
_MARKS = frozenset(",;:.!?、。，；：！？،؛؟।")
_MEANINGFUL_PUNCTUATION = frozenset("%‰#@&/")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a number, a symbol, a letter of a script without spaces, or a mark between clauses.

    `is_name` says that it is written as only names and numbers are: with digits or, within a sentence, with a capital
    letter.
    """

    key: str
    is_name: bool = False
    is_mark: bool = False


@lru_cache(maxsize=4096)
def split_statement(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text in order; all of them are folded."""
    return tuple(_scan(fold(text).text))


def _scan(text: str) -> Iterator[Token]:
    at, begins = 0, True
    while at < len(text):
        char = text[at]
        if date := _ISO_DATE.match(text, at) or _DAY_FIRST_DATE.match(text, at):
            yield from (Token(normalise_number(part), is_name=True) for part in date.groups())
            at, begins = date.end(), False
        elif number := _NUMBER.match(text, at):
            sign = number[0] == "-"
            digits = re.compile(NUMBER_PATTERN).match(text, at + sign)
            assert digits is not None
            yield Token(("-" if sign else "") + normalise_number(digits[0]), is_name=True)
            at, begins = digits.end(), False
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
    """Return where a word ends; a letter of a script without spaces ends with the marks on it."""
    end = start + 1
    is_letter = UNSPACED_LETTER.match(text[start]) is not None
    while end < len(text):
        kind = unicodedata.category(text[end])[0]
        if kind != "M" and (is_letter or kind not in "LN" or UNSPACED_LETTER.match(text[end])):
            break
        end += 1
    return end


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


def is_number(key: str) -> bool:
    """Return whether a token is a number in digits."""
    return key[-1:].isdigit() and key.lstrip("-")[:1].isdigit()


def name_keys(name: str) -> tuple[str, ...]:
    """Return the keys of the tokens of a name."""
    return tuple(token.key for token in split_statement(name) if not token.is_mark)


def mark_subject(tokens: Sequence[Token], subject_names: Iterable[str]) -> list[Token]:
    """Return tokens with one `SUBJECT` for each name of the subject, or for "the user" with its article."""
    names = _names_by_first_key(tuple(subject_names))
    marked: list[Token] = []
    at = 0
    while at < len(tokens):
        following = tuple(token.key for token in tokens[at : at + MAX_NAME_TOKENS])
        found = next((name for name in names.get(tokens[at].key, ()) if following[: len(name)] == name), None)
        marked.append(tokens[at] if found is None else Token(SUBJECT, is_name=True))
        at += 1 if found is None else len(found)
    return marked


@lru_cache(maxsize=256)
def _names_by_first_key(subject_names: tuple[str, ...]) -> dict[str, list[tuple[str, ...]]]:
    """Return the tokens of names by the first of them, the longest name first."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for name in sorted({name_keys(name) for name in subject_names} - {()}, key=len, reverse=True):
        found.setdefault(name[0], []).append(name)
    return found


@cache
def user_names() -> tuple[str, ...]:
    """Return what statements call the user who has no name in them, with and without an article."""
    return tuple(
        phrase
        for language in WRITTEN_LANGUAGES
        for word in load_words(language).user_words
        for phrase in (word, *(f"{article} {word}" for article in load_words(language).articles))
    )


def with_names(tokens: Iterable[Token], names: Iterable[str]) -> list[Token]:
    """Return tokens of which those in the names of known entities are names, however they are written."""
    known = {key for name in names for key in name_keys(name)}
    return [replace(token, is_name=token.is_name or token.key in known) for token in tokens]
