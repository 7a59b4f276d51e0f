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
    AMBIGUOUS_MONTHS,
    AUXILIARIES,
    DETERMINERS,
    FILLER_WORDS,
    MONTHS,
    NEGATIONS,
    NEGATIVE_STANCE,
    NUMBER_WORDS,
    PERSON_ROLES,
    POSITIVE_STANCE,
    PRONOUNS,
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
class StatementFeatures:
    """What one statement says: names and values (numbers and parts of dates), and how."""

    text: str
    names: frozenset[str]
    numbers: frozenset[str]
    dates: frozenset[str]
    stems: frozenset[str]
    core_stems: frozenset[str]
    is_negated: bool
    has_negative_stance: bool
    leading_name: str | None
    roles: tuple[tuple[str, str], ...]

    @property
    def values(self) -> frozenset[str]:
        """Numbers and parts of dates."""
        return self.numbers | self.dates


def extract_features(text: str, known_names: Iterable[str] = ()) -> StatementFeatures:
    """Return the features of a text; `known_names` are those of the entities it may speak of."""
    return _extract(unicodedata.normalize("NFKC", text), frozenset(known_names))


@lru_cache(maxsize=4096)
def _extract(text: str, known_names: frozenset[str]) -> StatementFeatures:
    known = frozenset(word for name in known_names for word in name_tokens(name))
    dates, rest = extract_dates(text)
    numbers = {normalise_number(match) for match in _NUMBER.findall(rest)}
    words = _WORD.findall(text)
    folded = [word.casefold() for word in words]
    numbers |= {NUMBER_WORDS[word] for word in folded if word in NUMBER_WORDS}
    leading_name, roles = _find_leading_name(text, known), _find_roles(words)
    names = _find_names(text, known, leading_name)
    months = {word for word, plain in zip(folded, words, strict=True) if _month_number(plain)}
    content = {word_stem(word) for word in folded if word not in FILLER_WORDS}
    stance = NEGATIONS | NEGATIVE_STANCE | POSITIVE_STANCE
    core_stems = {
        word_stem(word)
        for word in folded
        if word not in FILLER_WORDS | stance | NUMBER_WORDS.keys() | WEEKDAYS | months and not _is_name(word, names)
    }
    return StatementFeatures(
        text=text,
        names=names,
        numbers=frozenset(numbers),
        dates=frozenset(dates),
        stems=frozenset(content | _cjk_bigrams(text)),
        core_stems=frozenset(core_stems),
        is_negated=any(word in NEGATIONS or word.endswith(("n't", "n’t")) for word in folded),
        has_negative_stance=any(word in NEGATIVE_STANCE for word in folded),
        leading_name=leading_name,
        roles=roles,
    )


def missing_details(sources: Iterable[StatementFeatures], result: StatementFeatures) -> list[str]:
    """Return the names, numbers and dates of the sources that the result does not have."""
    said = {token for word in _WORD.findall(result.text) for token in name_tokens(word)}
    lost: list[str] = []
    for source in sources:
        lost += sorted(name for name in source.names if not _is_mentioned(name, said, result.text))
        lost += sorted(source.values - result.values)
        if source.is_negated and not (result.is_negated or result.has_negative_stance):
            lost.append("a negation")
    return list(dict.fromkeys(lost))


def invented_details(
    sources: Iterable[StatementFeatures], result: StatementFeatures, own_names: Iterable[str] = ()
) -> list[str]:
    """Return the names, numbers and dates of the result that no source has; those of the subject are no invention."""
    sources = list(sources)
    said = {token for source in sources for word in _WORD.findall(source.text) for token in name_tokens(word)}
    said |= {token for name in own_names for token in name_tokens(name)}
    text = " ".join(source.text for source in sources)
    values = frozenset(value for source in sources for value in source.values)
    new = sorted(name for name in result.names if not _is_mentioned(name, said, text))
    if (result.is_negated or result.has_negative_stance) and not any(
        source.is_negated or source.has_negative_stance for source in sources
    ):
        new.append("a negation")
    return new + sorted(result.values - values)


def retained_word_share(sources: Iterable[StatementFeatures], result: StatementFeatures) -> float:
    """Return which share of the sources' distinct words the result still has, by stem."""
    words = frozenset(word for source in sources for word in source.stems)
    return len(words & result.stems) / len(words) if words else 1.0


def find_contradiction(one: StatementFeatures, other: StatementFeatures) -> str | None:
    """Return why two statements cannot both be said in one breath, or None."""
    alike = _overlap_ratio(one.core_stems, other.core_stems)
    if (one.is_negated or one.has_negative_stance) != (other.is_negated or other.has_negative_stance) and alike >= 0.6:
        return "one denies what the other says"
    if one.dates - other.dates and other.dates - one.dates and (alike >= 0.4 or one.core_stems == other.core_stems):
        return "they give different dates"
    if one.numbers - other.numbers and other.numbers - one.numbers and alike >= 0.6:
        return "they give different numbers"
    for name, role in one.roles:
        for other_name, other_role in other.roles:
            if name == other_name and role != other_role:
                return f"{name} is called {role} and {other_role}"
    return None


def find_subject_mismatch(
    one: StatementFeatures, other: StatementFeatures, own_names: Sequence[str] = ()
) -> str | None:
    """Return why two statements speak of different people or things, or None; `own_names` are their subject's."""
    first, second = _foreign_leading_name(one, own_names), _foreign_leading_name(other, own_names)
    if first and second:
        if may_be_same_person(first, second):
            return None
        if (
            _looks_like_person(first)
            or _looks_like_person(second)
            or not (_mentions_part_of(other, first) or _mentions_part_of(one, second))
        ):
            return f"one speaks of {first}, the other of {second}"
    elif first and not _mentions_part_of(other, first):
        return f"one speaks of {first}, the other does not"
    elif second and not _mentions_part_of(one, second):
        return f"one speaks of {second}, the other does not"
    return None


def mentions_name(text: str, name: str) -> bool:
    """Return whether every word of a name stands in a text."""
    said = {token for word in _WORD.findall(text) for token in name_tokens(word)} | set(_NUMBER.findall(text))
    wanted = name_tokens(name)
    return bool(wanted) and (set(wanted) <= said or name.casefold() in text.casefold())


def extract_dates(text: str) -> tuple[set[str], str]:
    """Return the parts of the dates in a text, and the text without them."""
    found: set[str] = set()
    for year, month, day in _ISO_DATE.findall(text):
        found |= {f"year {year}", f"month {int(month)}", f"day {int(day)}"}
    rest = _ISO_DATE.sub(" ", text)
    for word in _WORD.findall(rest):
        if month_number := _month_number(word):
            found.add(f"month {month_number}")
        if word.casefold() in WEEKDAYS:
            found.add(word.casefold())
    found |= {f"year {year}" for year in _YEAR.findall(rest)}
    months = [match for match in _WORD.finditer(rest) if _month_number(match[0])]
    days = set()
    for month in months:
        near = rest[max(0, month.start() - 8) : month.start()] + " " + rest[month.end() : month.end() + 8]
        days |= {int(day) for day in re.findall(r"\b(\d{1,2})(?:st|nd|rd|th|\.)?(?!\d)", near) if 1 <= int(day) <= 31}
    found |= {f"day {day}" for day in days}
    rest = _YEAR.sub(" ", rest)
    for day in days:
        rest = re.sub(rf"\b0?{day}(?:st|nd|rd|th)?\b", " ", rest)
    return found, rest


def _month_number(word: str) -> int | None:
    folded = word.casefold().rstrip(".")
    if folded in AMBIGUOUS_MONTHS and not word[0].isupper():
        return None
    if len(folded) == 3 and not word[0].isupper():
        return None
    return MONTHS.get(folded)


def normalise_number(text: str) -> str:
    """Return a number in digits as it is compared."""
    if _GROUPED.fullmatch(text):
        text = text.replace(",", "")
    return text.lstrip("0") or "0"


def word_stem(word: str) -> str:
    """Return what the forms of a word have in common."""
    word = re.sub(r"['’]s$", "", word)
    return word[:5] if word.isascii() or len(word) > 5 else word


def _cjk_bigrams(text: str) -> set[str]:
    letters = "".join(_CJK.findall(text))
    return {letters[index : index + 2] for index in range(len(letters) - 1)}


def _find_names(text: str, known: frozenset[str], leading_name: str | None) -> frozenset[str]:
    found: set[str] = set(name_tokens(leading_name)) if leading_name else set()
    for sentence in _SENTENCE.split(text):
        for index, word in enumerate(_WORD.findall(sentence)):
            tokens = name_tokens(word)
            if word.casefold() in PRONOUNS or _month_number(word):
                continue
            if any(token in known for token in tokens) or (word[0].isupper() and index > 0 and len(word) > 1):
                found.update(tokens)
    return frozenset(found)


def _is_name(word: str, names: frozenset[str]) -> bool:
    return any(token in names for token in name_tokens(word))


def _find_leading_name(text: str, known: frozenset[str]) -> str | None:
    """Return the name the first sentence begins with, or the role where a role stands for the name."""
    words = _WORD.findall(_SENTENCE.split(text.strip())[0])
    index, role = 0, None
    if words and words[0].casefold() in DETERMINERS:
        index = 1
    while index < len(words) and words[index].casefold() in PERSON_ROLES:
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


def _find_roles(words: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name_tokens(name)[0], role.casefold())
        for role, name in pairwise(words)
        if role.casefold() in PERSON_ROLES and name[0].isupper() and name_tokens(name)
    )


def _is_mentioned(name: str, said: set[str], text: str) -> bool:
    return name in said or (not name.isascii() and name in text.casefold())


def _overlap_ratio(one: frozenset[str], other: frozenset[str]) -> float:
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0


def _foreign_leading_name(statement: StatementFeatures, own_names: Sequence[str]) -> str | None:
    leading_name = statement.leading_name
    if leading_name and any(may_be_same_person(leading_name, own) for own in own_names):
        return None
    return leading_name


def _looks_like_person(name: str) -> bool:
    words = name.split()
    return is_first_name(words[0]) or name.casefold() in PERSON_ROLES


def _mentions_part_of(statement: StatementFeatures, name: str) -> bool:
    said = {token for word in _WORD.findall(statement.text) for token in name_tokens(word)}
    return any(token in said for token in name_tokens(name))
