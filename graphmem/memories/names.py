"""Whether two names may mean one thing, and whether a text has a name. Pure.

Names with digits are identifiers: their words with digits match exactly, those without may have typos.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise

from graphmem.memories.entity import DEFAULT_ENTITY_TYPE, PERSON_TYPE
from graphmem.text.folding import UNSPACED_LETTER
from graphmem.text.names import (
    edit_distance,
    max_typos,
    may_be_same_first_name,
    name_words,
    strip_possessive,
    words_with_digits,
)
from graphmem.text.normalising import fold, to_latin
from graphmem.text.tokenising import split_words
from graphmem.text.word_lists import LANGUAGES, WRITTEN_LANGUAGES, load_words

_WORDS = load_words(*WRITTEN_LANGUAGES)
_GENERIC_WORDS = _WORDS.generic_name_words | _WORDS.legal_forms
_IGNORED_WORDS = load_words(*LANGUAGES).legal_forms | {"the"}
_NEUTRAL_TITLES = frozenset({"dr", "prof", "доктор"})
"""Titles that one person has next to another title."""


# Two names

MIN_NAME_COSINE = 0.82
"""Least cosine of two names' vectors at which they may be spellings or translations of each other."""

MAX_TYPO_SHARE = 0.1
"""Largest share of the letters by which two names may differ and still be evidence that they mean one thing.

It is stricter than `max_typos`: nobody checks the names again before two entities are merged.
"""

MIN_SHORT_FORM_LENGTH = 3
"""Fewest letters of a short form such as "Fred"."""

MIN_DROPPED_LETTERS = 2
"""Fewest letters by which a name is longer than its short form: "Fred" may be "Frederick", "Alex" is not "Alexa"."""


class NameReason(StrEnum):
    """Why two names may mean one entity."""

    SAME_WORDS = "the same words"
    SAME_LETTERS = "the same letters"
    OTHER_SCRIPT = "the same letters in another script"
    SHORT_FORM = "a short form of the name"
    GENERIC_WORD = "the same name with a generic word"
    INITIALS = "the initials of the name"
    BEGINNING = "the beginning of the name"
    FEW_TYPOS = "almost the same letters"
    TYPOS = "similar letters"
    PART_OF_NAME = "a part of the name"
    CONTAINED = "the name with further words"
    QUALIFIER = "the name with a qualifier"
    VECTOR = "a similar meaning"

    @property
    def is_evidence(self) -> bool:
        """Whether the names alone are evidence enough to merge two entities that nothing else tells apart."""
        return self not in _WEAK_REASONS

    @property
    def strength(self) -> tuple[bool, bool, bool]:
        """A key that is greater for a better match."""
        return (self is NameReason.SAME_WORDS, self.is_evidence, self is NameReason.TYPOS)


_WEAK_REASONS = frozenset(
    {NameReason.TYPOS, NameReason.PART_OF_NAME, NameReason.CONTAINED, NameReason.QUALIFIER, NameReason.VECTOR}
)


def compare_names(
    name: str, type: str | None, other: str, other_type: str | None, similarity: float = 0.0
) -> NameReason | None:
    """Return why two names may mean one entity, or None; `similarity` is the cosine of their vectors.

    Names of the same words, which differ in accents, punctuation and legal forms only, mean one. Others may, if one is
    a form or a part of the other, if they differ in a qualifier or in a few typos, or if their vectors are near: not if
    their types or digits differ, or if one is a person to whom the other only relates somebody, as "Calvin" and
    "Calvin's agent".
    """
    unknown = {None, "", DEFAULT_ENTITY_TYPE}
    words, other_words = _significant_words(name), _significant_words(other)
    if not (type in unknown or other_type in unknown or type == other_type) or not words or not other_words:
        return None
    if words == other_words:
        return NameReason.SAME_WORDS
    is_person = PERSON_TYPE in (type, other_type)
    if is_person and (
        is_only_related_to(name, other) or is_only_related_to(other, name) or _have_different_titles(name, other)
    ):
        return None
    may_be_people = {type, other_type} <= unknown | {PERSON_TYPE}
    return find_evidence(name, other, may_be_people=may_be_people) or _find_likeness(
        name, other, similarity, may_be_people=may_be_people
    )


def compare_name_lists(
    names: Iterable[str], type: str | None, others: Iterable[str], other_type: str | None, similarity: float = 0.0
) -> NameReason | None:
    """Return the best reason for which two entities' names may mean one, or None."""
    others = list(others)
    found = (compare_names(name, type, other, other_type, similarity) for name in names for other in others)
    return max(filter(None, found), key=lambda reason: reason.strength, default=None)


def have_same_identifiers(name: str, other: str) -> bool:
    """Return whether two names have the same words with digits, if any, or are written alike but for spaces."""
    words, other_words = name_words(name), name_words(other)
    return words_with_digits(words) == words_with_digits(other_words) or "".join(words) == "".join(other_words)


def find_evidence(name: str, other: str, *, may_be_people: bool) -> NameReason | None:
    """Return what shows from two names alone that they mean one thing, or None."""
    if not have_same_identifiers(name, other) or (may_be_people and _have_different_titles(name, other)):
        return None
    shorter, longer = sorted((name_tokens(name), name_tokens(other)), key=lambda words: len("".join(words)))
    letters, other_letters = "".join(shorter), "".join(longer)
    if not letters:
        return None
    if letters == other_letters:
        return NameReason.SAME_LETTERS
    if name.isascii() != other.isascii() and _is_transliterated(shorter, longer):
        return NameReason.OTHER_SCRIPT
    if may_be_people and may_be_same_person(name, other):
        return NameReason.SHORT_FORM if len(shorter) == len(longer) else NameReason.PART_OF_NAME
    if set(shorter) < set(longer) and set(longer) - set(shorter) <= _GENERIC_WORDS:
        return NameReason.GENERIC_WORD
    if len(shorter) == 1 and len(longer) > 1 and shorter[0] == "".join(word[0] for word in longer):
        return NameReason.INITIALS
    if may_be_people:
        return (
            NameReason.BEGINNING if len(shorter) == len(longer) == 1 and _is_clipped(letters, other_letters) else None
        )
    limit = int(MAX_TYPO_SHARE * len(other_letters))
    return NameReason.FEW_TYPOS if edit_distance(letters, other_letters, limit) is not None else None


def _find_likeness(name: str, other: str, similarity: float, *, may_be_people: bool) -> NameReason | None:
    """Return why two names may mean one thing though nothing shows it, or None."""
    words, other_words = _significant_words(name), _significant_words(other)
    have_same = have_same_identifiers(name, other)
    if not have_same and words_with_digits(words) and words_with_digits(other_words):
        return None
    if set(words) < set(other_words) or set(other_words) < set(words):
        return NameReason.PART_OF_NAME if may_be_people else NameReason.CONTAINED
    if not have_same:
        return None
    plain, other_plain = _without_qualifier(name), _without_qualifier(other)
    if plain in (other_plain, other) or name == other_plain:
        return NameReason.QUALIFIER
    if are_different_people(name, other):
        return None
    if _is_similar_spelling("".join(words), "".join(other_words)):
        return NameReason.TYPOS
    return NameReason.VECTOR if similarity >= MIN_NAME_COSINE else None


def _have_different_titles(one: str, other: str) -> bool:
    """Return whether two names have titles that one person does not have both of, such as "Mr" and "Mrs"."""
    titles, other_titles = (
        {word for word in name_words(name) if word in _WORDS.titles} - _NEUTRAL_TITLES for name in (one, other)
    )
    return bool(titles and other_titles) and titles.isdisjoint(other_titles)


def _is_transliterated(words: list[str], others: list[str]) -> bool:
    return len(words) == len(others) and all(
        edit_distance(to_latin(word), to_latin(other), 1 if len(word) > MIN_SHORT_FORM_LENGTH else 0) is not None
        for word, other in zip(words, others, strict=True)
    )


def _is_clipped(short: str, name: str) -> bool:
    return (
        len(short) >= MIN_SHORT_FORM_LENGTH and len(name) >= len(short) + MIN_DROPPED_LETTERS and name.startswith(short)
    )


def _is_similar_spelling(name: str, other: str) -> bool:
    return edit_distance(name, other, max_typos(min(len(name), len(other)))) is not None


# Names of people

_QUALIFIER = re.compile(r"[(（][^)）]*[)）]?")
"""What distinguishes people of one name, as in "Anna (colleague)"."""

_POSSESSOR = re.compile(r"([^()（）,，]*?)(?:['’]s|(?<=s)['’])(?=\s)")
"""Who somebody or something belongs to, as in "Calvin's agent"."""


def is_short_form(name: str, full: str) -> bool:
    """Return whether a name is only part of a fuller one, such as a bare first name."""
    return set(_significant_words(name)) < set(_significant_words(full)) and not is_only_related_to(name, full)


def is_only_related_to(name: str, phrase: str) -> bool:
    """Return whether a phrase names somebody by a relation to `name`, as "Calvin's agent" and "madre de Calvin" do."""
    possessors = [match[1] for match in _POSSESSOR.finditer(phrase)]
    words = _POSSESSOR.sub(" ", phrase).split()
    for position, (word, following) in enumerate(pairwise(words), 1):
        if word.islower() and following.islower():
            possessors += words[position:]
            words = words[:position]
            break
    own, related_to = _significant_words(name), _significant_words(" ".join(possessors))
    return set(own) <= set(related_to) and not set(own) <= set(name_words(" ".join(words)))


def are_different_people(name: str, other: str) -> bool:
    """Return whether two full names have the same first name and different last names."""
    words, other_words = (_significant_words(_without_qualifier(text)) for text in (name, other))
    return (
        min(len(words), len(other_words)) > 1
        and words[0] == other_words[0]
        and not _is_similar_spelling(words[-1], other_words[-1])
    )


def may_mean_same_person(name: str, other: str) -> bool:
    """Return whether two names share a word or differ in a few typos, and are not those of two people."""
    words, other_words = (_significant_words(_without_qualifier(text)) for text in (name, other))
    if are_different_people(name, other):
        return False
    return bool(set(words) & set(other_words)) or _is_similar_spelling("".join(words), "".join(other_words))


def may_be_same_person(one: str, other: str) -> bool:
    """Return whether every word of the shorter of two names is one of the longer, its initial or its nickname."""
    shorter, longer = sorted((name_tokens(one), name_tokens(other)), key=len)
    if not shorter:
        return False
    if set(shorter) <= set(longer):
        return True
    unmatched = list(longer)
    for word in shorter:
        match = next((candidate for candidate in unmatched if may_be_same_first_name(word, candidate)), None)
        if match is None:
            return False
        unmatched.remove(match)
    return True


def name_tokens(name: str) -> list[str]:
    """Return the folded words of a name without titles and possessive endings."""
    words = name_words(strip_possessive(name))
    return [word for word in words if word not in _WORDS.titles] or words


def _significant_words(name: str) -> list[str]:
    words = name_words(name)
    return [word for word in words if word not in _IGNORED_WORDS] or words


def _without_qualifier(name: str) -> str:
    return " ".join(_QUALIFIER.sub(" ", name).split()) or name


# Names in texts

MIN_COMMON_PREFIX = 4
"""Fewest letters with which two forms of one word begin; words that are shorter begin with all of the shorter one."""

MAX_ENDING = 3
"""Most letters of the ending of a form."""

MIN_COMPOUND_PART = 4
"""Fewest letters of a word that is looked for within a compound."""


def mentions_name(text: str, name: str) -> bool:
    """Return whether a text contains every word of a name, as it is or inflected; a word with digits as it is."""
    tokens = name_tokens(name)
    if not tokens:
        return False
    text, name = fold(text).text.casefold(), fold(name).text.casefold()
    if UNSPACED_LETTER.search(name):
        return name in text
    mentioned = {token for word in split_words(text) for token in name_words(word)}
    return all(
        token in mentioned or (not words_with_digits([token]) and is_like_any(token, mentioned)) for token in tokens
    )


def is_named_in(name: str, text: str, *, but: str) -> bool:
    """Return whether a text has every word of a name, except its words that begin like a word of the name `but`."""
    own = tuple(word for word in name_words(but) if len(word) > 1)
    words = [word for word in _significant_words(name) if len(word) > 1 and not (own and word.startswith(own))]
    return bool(words) and set(words) <= set(_words_in(text, words))


def is_like_any(word: str, others: Iterable[str]) -> bool:
    """Return whether a case-folded word may be a form of one of `others`."""
    return any(is_like(word, other) for other in others)


@lru_cache(maxsize=65536)
def is_like(one: str, other: str) -> bool:
    """Return whether two case-folded words may be forms of one word."""
    if one == other:
        return True
    shorter, longer = sorted((to_latin(one), to_latin(other)), key=len)
    if not shorter or shorter == longer:
        return shorter == longer
    if len(shorter) >= MIN_COMPOUND_PART and shorter in longer:
        return True
    common = next((at for at, (a, b) in enumerate(zip(shorter, longer, strict=False)) if a != b), len(shorter))
    needed = min(MIN_COMMON_PREFIX, max(len(shorter) - 1, 2)) if not one.isascii() else MIN_COMMON_PREFIX
    if common >= needed and len(shorter) - common <= MAX_ENDING and len(longer) - common <= MAX_ENDING:
        return True
    if common == len(shorter) >= 3 and len(longer) - common <= 2:
        return True
    is_other_script = one.isascii() != other.isascii() and shorter[0] == longer[0]
    return is_other_script and edit_distance(shorter, longer, len(longer) // 3) is not None


def _words_in(text: str, words: list[str]) -> Iterator[str]:
    """Yield the words that occur in a text; one without spaces around its words contains them anywhere."""
    folded = name_words(text)
    yield from (word for word in words if word in folded or (not word.isascii() and word in "".join(folded)))
