"""What a statement says that must not be lost or invented: names, numbers, dates, negation, whom it speaks of. Pure.

The rules are made to err on the side of refusal: what they cannot tell apart is not merged.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from graphmem.consolidation.lexicon import (
    AGAINST,
    AUXILIARIES,
    CAPITAL_MONTHS,
    DETERMINERS,
    FILLERS,
    FOR,
    MONTHS,
    NEGATORS,
    NUMBER_WORDS,
    PRONOUNS,
    ROLES,
    WEEKDAYS,
)
from graphmem.consolidation.naming import is_first_name, may_be_same_person, name_tokens

_WORD = re.compile(r"[^\W\d_](?:[^\W_]|['’-](?=[^\W_]))*", re.UNICODE)
_ISO_DATE = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_YEAR = re.compile(r"\b(?:1[89]\d\d|20\d\d)\b")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+")
_SENTENCE = re.compile(r"(?<=[.!?。])\s+|\n+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class Wording:
    """What one statement says: names and values (numbers and parts of dates), and how."""

    text: str
    names: frozenset[str]
    numbers: frozenset[str]
    dates: frozenset[str]
    words: frozenset[str]
    skeleton: frozenset[str]
    negated: bool
    against: bool
    leading: str | None
    roles: tuple[tuple[str, str], ...]

    @property
    def values(self) -> frozenset[str]:
        """Numbers and parts of dates."""
        return self.numbers | self.dates


def read(text: str, known_names: Iterable[str] = ()) -> Wording:
    """Return the wording of a text; `known_names` are those of the entities it may speak of."""
    return _read(unicodedata.normalize("NFKC", text), frozenset(known_names))


@lru_cache(maxsize=4096)
def _read(text: str, known_names: frozenset[str]) -> Wording:
    known = frozenset(word for name in known_names for word in name_tokens(name))
    dates, rest = dates_of(text)
    numbers = {read_number(match) for match in _NUMBER.findall(rest)}
    words = _WORD.findall(text)
    folded = [word.casefold() for word in words]
    numbers |= {NUMBER_WORDS[word] for word in folded if word in NUMBER_WORDS}
    leading, roles = _leading(text, known), _roles(words)
    names = _names(text, known, leading)
    months = {word for word, plain in zip(folded, words, strict=True) if _month(plain)}
    content = {stem(word) for word in folded if word not in FILLERS}
    stance = NEGATORS | AGAINST | FOR
    skeleton = {
        stem(word)
        for word in folded
        if word not in FILLERS | stance | NUMBER_WORDS.keys() | WEEKDAYS | months and not _is_name(word, names)
    }
    return Wording(
        text=text,
        names=names,
        numbers=frozenset(numbers),
        dates=frozenset(dates),
        words=frozenset(content | _bigrams(text)),
        skeleton=frozenset(skeleton),
        negated=any(word in NEGATORS or word.endswith(("n't", "n’t")) for word in folded),
        against=any(word in AGAINST for word in folded),
        leading=leading,
        roles=roles,
    )


def missing(sources: Iterable[Wording], result: Wording) -> list[str]:
    """Return the names, numbers and dates of the sources that the result does not have."""
    said = {token for word in _WORD.findall(result.text) for token in name_tokens(word)}
    lost: list[str] = []
    for source in sources:
        lost += sorted(name for name in source.names if not _covered(name, said, result.text))
        lost += sorted(source.values - result.values)
        if source.negated and not (result.negated or result.against):
            lost.append("a negation")
    return list(dict.fromkeys(lost))


def invented(sources: Iterable[Wording], result: Wording, own_names: Iterable[str] = ()) -> list[str]:
    """Return the names, numbers and dates of the result that no source has; those of the subject are no invention."""
    sources = list(sources)
    said = {token for source in sources for word in _WORD.findall(source.text) for token in name_tokens(word)}
    said |= {token for name in own_names for token in name_tokens(name)}
    text = " ".join(source.text for source in sources)
    values = frozenset(value for source in sources for value in source.values)
    new = sorted(name for name in result.names if not _covered(name, said, text))
    if (result.negated or result.against) and not any(source.negated or source.against for source in sources):
        new.append("a negation")
    return new + sorted(result.values - values)


def kept_share(sources: Iterable[Wording], result: Wording) -> float:
    """Return which share of the sources' distinct words the result still has, by stem."""
    words = frozenset(word for source in sources for word in source.words)
    return len(words & result.words) / len(words) if words else 1.0


def contradiction(one: Wording, other: Wording) -> str | None:
    """Return why two statements cannot both be said in one breath, or None."""
    alike = _overlap(one.skeleton, other.skeleton)
    if (one.negated or one.against) != (other.negated or other.against) and alike >= 0.6:
        return "one denies what the other says"
    if one.dates - other.dates and other.dates - one.dates and (alike >= 0.4 or one.skeleton == other.skeleton):
        return "they give different dates"
    if one.numbers - other.numbers and other.numbers - one.numbers and alike >= 0.6:
        return "they give different numbers"
    for name, role in one.roles:
        for other_name, other_role in other.roles:
            if name == other_name and role != other_role:
                return f"{name} is called {role} and {other_role}"
    return None


def across_people(one: Wording, other: Wording, own_names: Sequence[str] = ()) -> str | None:
    """Return why two statements speak of different people or things, or None; `own_names` are their subject's."""
    first, second = _not_own(one, own_names), _not_own(other, own_names)
    if first and second:
        if may_be_same_person(first, second):
            return None
        if _is_person(first) or _is_person(second) or not (_mentions(other, first) or _mentions(one, second)):
            return f"one speaks of {first}, the other of {second}"
    elif first and not _mentions(other, first):
        return f"one speaks of {first}, the other does not"
    elif second and not _mentions(one, second):
        return f"one speaks of {second}, the other does not"
    return None


def mentions_name(text: str, name: str) -> bool:
    """Return whether every word of a name stands in a text."""
    said = {token for word in _WORD.findall(text) for token in name_tokens(word)} | set(_NUMBER.findall(text))
    wanted = name_tokens(name)
    return bool(wanted) and (set(wanted) <= said or name.casefold() in text.casefold())


def dates_of(text: str) -> tuple[set[str], str]:
    """Return the parts of the dates in a text, and the text without them."""
    found: set[str] = set()
    for year, month, day in _ISO_DATE.findall(text):
        found |= {f"year {year}", f"month {int(month)}", f"day {int(day)}"}
    rest = _ISO_DATE.sub(" ", text)
    for word in _WORD.findall(rest):
        if month_number := _month(word):
            found.add(f"month {month_number}")
        if word.casefold() in WEEKDAYS:
            found.add(word.casefold())
    found |= {f"year {year}" for year in _YEAR.findall(rest)}
    months = [match for match in _WORD.finditer(rest) if _month(match[0])]
    days = set()
    for month in months:
        near = rest[max(0, month.start() - 8) : month.start()] + " " + rest[month.end() : month.end() + 8]
        days |= {int(day) for day in re.findall(r"\b(\d{1,2})(?:st|nd|rd|th|\.)?(?!\d)", near) if 1 <= int(day) <= 31}
    found |= {f"day {day}" for day in days}
    rest = _YEAR.sub(" ", rest)
    for day in days:
        rest = re.sub(rf"\b0?{day}(?:st|nd|rd|th)?\b", " ", rest)
    return found, rest


def _month(word: str) -> int | None:
    folded = word.casefold().rstrip(".")
    if folded in CAPITAL_MONTHS and not word[0].isupper():
        return None
    if len(folded) == 3 and not word[0].isupper():
        return None
    return MONTHS.get(folded)


def read_number(text: str) -> str:
    """Return a number in digits as it is compared."""
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    return text.lstrip("0") or "0"


def stem(word: str) -> str:
    """Return what the forms of a word have in common."""
    word = re.sub(r"['’]s$", "", word)
    return word[:5] if word.isascii() or len(word) > 5 else word


def _bigrams(text: str) -> set[str]:
    letters = "".join(_CJK.findall(text))
    return {letters[index : index + 2] for index in range(len(letters) - 1)}


def _names(text: str, known: frozenset[str], leading: str | None) -> frozenset[str]:
    found: set[str] = set(name_tokens(leading)) if leading else set()
    for sentence in _SENTENCE.split(text):
        for index, word in enumerate(_WORD.findall(sentence)):
            tokens = name_tokens(word)
            if word.casefold() in PRONOUNS or _month(word):
                continue
            if any(token in known for token in tokens) or (word[0].isupper() and index > 0 and len(word) > 1):
                found.update(tokens)
    return frozenset(found)


def _is_name(word: str, names: frozenset[str]) -> bool:
    return any(token in names for token in name_tokens(word))


def _leading(text: str, known: frozenset[str]) -> str | None:
    """Return the name the first sentence begins with, or the role where a role stands for the name."""
    words = _WORD.findall(_SENTENCE.split(text.strip())[0])
    index, role = 0, None
    if words and words[0].casefold() in DETERMINERS:
        index = 1
    while index < len(words) and words[index].casefold() in ROLES:
        role, index = words[index].casefold(), index + 1
    run: list[str] = []
    while index < len(words) and words[index][0].isupper() and words[index].casefold() not in PRONOUNS:
        run.append(words[index])
        index += 1
        if run[-1].endswith(("'s", "’s")):
            break
    if not run:
        return role
    following = words[index] if index < len(words) else ""
    if len(run) > 1 or role or _is_subject(run[0], following, known):
        return " ".join(re.sub(r"['’]s$", "", word) for word in run)
    return None


def _is_subject(word: str, following: str, known: frozenset[str]) -> bool:
    if word.endswith(("'s", "’s")) or is_first_name(word) or any(token in known for token in name_tokens(word)):
        return True
    verb = following.casefold()
    looks_like_verb = verb in AUXILIARIES or (len(verb) > 2 and verb.endswith(("s", "ed")) and following[0].islower())
    return looks_like_verb and not word.endswith("s")


def _roles(words: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name_tokens(name)[0], role.casefold())
        for role, name in pairwise(words)
        if role.casefold() in ROLES and name[0].isupper() and name_tokens(name)
    )


def _covered(name: str, said: set[str], text: str) -> bool:
    return name in said or (not name.isascii() and name in text.casefold())


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0


def _not_own(wording: Wording, own_names: Sequence[str]) -> str | None:
    leading = wording.leading
    if leading and any(may_be_same_person(leading, own) for own in own_names):
        return None
    return leading


def _is_person(name: str) -> bool:
    words = name.split()
    return is_first_name(words[0]) or name.casefold() in ROLES


def _mentions(wording: Wording, name: str) -> bool:
    said = {token for word in _WORD.findall(wording.text) for token in name_tokens(word)}
    return any(token in said for token in name_tokens(name))
