"""What a merge must neither lose nor invent: names, numbers, dates, negations, and whom a statement is about. Pure.

Where the rules cannot tell two readings apart, they take the one that refuses the merge.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from graphmem.consolidation.naming import may_be_same_person, name_tokens
from graphmem.consolidation.statement_values import extract_dates, extract_numbers, month_number
from graphmem.text.names import POSSESSIVE_ENDING, is_first_name, strip_possessive
from graphmem.text.tokenising import NUMBER_PATTERN, UNSPACED_LETTER, WORD_PATTERN, letter_pairs, stem
from graphmem.text.word_lists import WESTERN_LANGUAGES, load_words

WORDS = load_words(*WESTERN_LANGUAGES)
"""The word lists that statements are compared with, whatever language they are in."""

FILLER_WORDS = WORDS.determiners | WORDS.non_names | WORDS.filler_words
"""Words that a merge may drop."""

MIN_OVERLAP = 0.6
"""Smallest share of common core stems at which two statements are about the same matter."""

MIN_OVERLAP_WITH_DATES = 0.4
"""The same for two statements that give different dates."""

_WORD = re.compile(WORD_PATTERN)
_NUMBER = re.compile(NUMBER_PATTERN)
_SENTENCE_END = re.compile(r"(?<=[.!?。])\s+|\n+")


@dataclass(frozen=True, slots=True)
class StatementFeatures:
    """The features of one statement.

    `stems` are those of its content words, `core_stems` the same without names, numbers, dates and stance.
    `leading_name` is the person or thing it begins with; `roles` are pairs of a name and what it is called, such as
    ("john", "brother").
    """

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
    """Return the features of a text; `known_names` are those of the entities it may name."""
    return _extract(unicodedata.normalize("NFKC", text), frozenset(known_names))


@lru_cache(maxsize=4096)
def _extract(text: str, known_names: frozenset[str]) -> StatementFeatures:
    known = frozenset(token for name in known_names for token in name_tokens(name))
    dates, rest = extract_dates(text)
    words = _WORD.findall(text)
    folded = [word.casefold() for word in words]
    leading_name = _find_leading_name(text, known)
    names = _find_names(text, known, leading_name)
    months = {word for word, plain in zip(folded, words, strict=True) if month_number(plain)}
    stance = WORDS.negations | WORDS.negative_stance | WORDS.positive_stance
    no_core_words = FILLER_WORDS | stance | WORDS.numbers.keys() | WORDS.weekdays | months
    return StatementFeatures(
        text=text,
        names=names,
        numbers=frozenset(extract_numbers(rest)),
        dates=frozenset(dates),
        stems=frozenset(
            [
                *(_word_stem(word) for word in folded if word not in FILLER_WORDS),
                *letter_pairs("".join(UNSPACED_LETTER.findall(text))),
            ]
        ),
        core_stems=frozenset(
            _word_stem(word) for word in folded if word not in no_core_words and not _is_name(word, names)
        ),
        is_negated=any(map(is_negation, folded)),
        has_negative_stance=not WORDS.negative_stance.isdisjoint(folded),
        leading_name=leading_name,
        roles=_find_roles(words),
    )


def missing_details(sources: Iterable[StatementFeatures], result: StatementFeatures) -> list[str]:
    """Return the names, numbers, dates and negations of the sources that the result does not have."""
    mentioned = _mentioned_tokens(result.text)
    missing: list[str] = []
    for source in sources:
        missing += sorted(name for name in source.names if not _is_mentioned(name, mentioned, result.text))
        missing += sorted(source.values - result.values)
        if source.is_negated and not (result.is_negated or result.has_negative_stance):
            missing.append("a negation")
    return list(dict.fromkeys(missing))


def invented_details(
    sources: Iterable[StatementFeatures], result: StatementFeatures, subject_names: Iterable[str] = ()
) -> list[str]:
    """Return the names, numbers, dates and negations of the result that no source has; `subject_names` are allowed."""
    sources = list(sources)
    mentioned = {token for source in sources for token in _mentioned_tokens(source.text)}
    mentioned |= {token for name in subject_names for token in name_tokens(name)}
    text = " ".join(source.text for source in sources)
    values = frozenset(value for source in sources for value in source.values)
    invented = sorted(name for name in result.names if not _is_mentioned(name, mentioned, text))
    if (result.is_negated or result.has_negative_stance) and not any(
        source.is_negated or source.has_negative_stance for source in sources
    ):
        invented.append("a negation")
    return invented + sorted(result.values - values)


def retained_word_share(sources: Iterable[StatementFeatures], result: StatementFeatures) -> float:
    """Return the share of the sources' distinct stems that the result has; 1 for sources without any."""
    stems = frozenset(word for source in sources for word in source.stems)
    return len(stems & result.stems) / len(stems) if stems else 1.0


def find_contradiction(one: StatementFeatures, other: StatementFeatures) -> str | None:
    """Return why two statements cannot both hold, or None."""
    overlap = _overlap_ratio(one.core_stems, other.core_stems)
    if (one.is_negated or one.has_negative_stance) != (
        other.is_negated or other.has_negative_stance
    ) and overlap >= MIN_OVERLAP:
        return "one denies what the other says"
    if _both_have_own(one.dates, other.dates) and (
        overlap >= MIN_OVERLAP_WITH_DATES or one.core_stems == other.core_stems
    ):
        return "they give different dates"
    if _both_have_own(one.numbers, other.numbers) and overlap >= MIN_OVERLAP:
        return "they give different numbers"
    for name, role in one.roles:
        for other_name, other_role in other.roles:
            if name == other_name and role != other_role:
                return f"{name} is called {role} and {other_role}"
    return None


def find_subject_mismatch(
    one: StatementFeatures, other: StatementFeatures, subject_names: Sequence[str] = ()
) -> str | None:
    """Return why two statements are about different people or things, or None; `subject_names` are their subject's."""
    first, second = _foreign_leading_name(one, subject_names), _foreign_leading_name(other, subject_names)
    if first and second:
        if may_be_same_person(first, second):
            return None
        if (
            _looks_like_person(first)
            or _looks_like_person(second)
            or not (_mentions_part_of(other, first) or _mentions_part_of(one, second))
        ):
            return f"one is about {first}, the other about {second}"
    elif first and not _mentions_part_of(other, first):
        return f"one is about {first}, the other is not"
    elif second and not _mentions_part_of(one, second):
        return f"one is about {second}, the other is not"
    return None


def mentions_name(text: str, name: str) -> bool:
    """Return whether a text contains every word of a name."""
    mentioned = _mentioned_tokens(text) | set(_NUMBER.findall(text))
    tokens = name_tokens(name)
    return bool(tokens) and (set(tokens) <= mentioned or name.casefold() in text.casefold())


def is_negation(word: str) -> bool:
    """Return whether a case-folded word negates, as "not" and "isn't" do."""
    return word in WORDS.negations or word.endswith(("n't", "n’t"))


def _word_stem(word: str) -> str:
    return stem(strip_possessive(word))


def _find_names(text: str, known: frozenset[str], leading_name: str | None) -> frozenset[str]:
    found: set[str] = set(name_tokens(leading_name)) if leading_name else set()
    for sentence in _SENTENCE_END.split(text):
        for index, word in enumerate(_WORD.findall(sentence)):
            if word.casefold() in WORDS.non_names or month_number(word):
                continue
            tokens = name_tokens(word)
            if any(token in known for token in tokens) or (word[0].isupper() and index > 0 and len(word) > 1):
                found.update(tokens)
    return frozenset(found)


def _is_name(word: str, names: frozenset[str]) -> bool:
    return any(token in names for token in name_tokens(word))


def _find_leading_name(text: str, known: frozenset[str]) -> str | None:
    """Return the name that the first sentence begins with, or the role that stands for the name."""
    words = _WORD.findall(_SENTENCE_END.split(text.strip())[0])
    index, role = 0, None
    if words and words[0].casefold() in WORDS.determiners:
        index = 1
    while index < len(words) and words[index].casefold() in WORDS.person_roles:
        role, index = words[index].casefold(), index + 1
    name: list[str] = []
    while index < len(words) and words[index][0].isupper() and words[index].casefold() not in WORDS.non_names:
        name.append(words[index])
        index += 1
        if _is_possessive(name[-1]):
            break
    if not name:
        return role
    following = words[index] if index < len(words) else ""
    if len(name) > 1 or role or _is_subject(name[0], following, known):
        return " ".join(map(strip_possessive, name))
    return None


def _is_subject(word: str, following: str, known: frozenset[str]) -> bool:
    if _is_possessive(word) or is_first_name(word) or any(token in known for token in name_tokens(word)):
        return True
    verb = following.casefold()
    looks_like_verb = verb in WORDS.auxiliaries or (
        len(verb) > 2 and verb.endswith(("s", "ed")) and following[0].islower()
    )
    return looks_like_verb and not word.endswith("s")


def _is_possessive(word: str) -> bool:
    return POSSESSIVE_ENDING.search(word) is not None


def _find_roles(words: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name_tokens(name)[0], role.casefold())
        for role, name in pairwise(words)
        if role.casefold() in WORDS.person_roles and name[0].isupper() and name_tokens(name)
    )


def _mentioned_tokens(text: str) -> set[str]:
    return {token for word in _WORD.findall(text) for token in name_tokens(word)}


def _is_mentioned(name: str, mentioned: set[str], text: str) -> bool:
    return name in mentioned or (not name.isascii() and name in text.casefold())


def _both_have_own(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one - other and other - one)


def _overlap_ratio(one: frozenset[str], other: frozenset[str]) -> float:
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0


def _foreign_leading_name(statement: StatementFeatures, subject_names: Sequence[str]) -> str | None:
    name = statement.leading_name
    return None if name and any(may_be_same_person(name, own) for own in subject_names) else name


def _looks_like_person(name: str) -> bool:
    return is_first_name(name.split()[0]) or name.casefold() in WORDS.person_roles


def _mentions_part_of(statement: StatementFeatures, name: str) -> bool:
    return not _mentioned_tokens(statement.text).isdisjoint(name_tokens(name))
