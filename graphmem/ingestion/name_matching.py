"""Whether the name of a new entity may mean a known one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from itertools import pairwise

from graphmem.memories.entity import DEFAULT_ENTITY_TYPE, PERSON_TYPE
from graphmem.text.names import edit_distance, max_typos, name_words
from graphmem.text.word_lists import LANGUAGES, load_words

MIN_NAME_COSINE = 0.82
"""Least cosine of two names' vectors at which they may be spellings or translations of each other."""

_QUALIFIER = re.compile(r"[(（][^)）]*[)）]?")
"""What distinguishes people of one name, as in "Anna (colleague)"."""

_POSSESSOR = re.compile(r"([^()（）,，]*?)(?:['’]s|(?<=s)['’])(?=\s)")
"""Who somebody or something belongs to, as in "Calvin's agent"."""

_IGNORED_WORDS = load_words(*LANGUAGES).legal_forms | {"the"}


class NameMatch(IntEnum):
    """How alike two names are."""

    DIFFERENT = 0
    POSSIBLE = 1
    SAME = 2


def match_names(name: str, type: str | None, known: str, known_type: str | None, similarity: float) -> NameMatch:
    """Return whether two names may mean one entity; `similarity` is the cosine of their vectors.

    SAME: they differ in accents, punctuation and legal forms only. POSSIBLE: one is part of the other, they differ in
    a qualifier or in a few typos, or their vectors are near. DIFFERENT: none of these, or their types differ, or one
    is a person whom the other only relates somebody to, as "Calvin" and "Calvin's agent".
    """
    if not _are_compatible_types(type, known_type):
        return NameMatch.DIFFERENT
    words, known_words = _significant_words(name), _significant_words(known)
    if not words or not known_words:
        return NameMatch.DIFFERENT
    if words == known_words:
        return NameMatch.SAME
    if PERSON_TYPE in (type, known_type) and (is_only_related_to(name, known) or is_only_related_to(known, name)):
        return NameMatch.DIFFERENT
    if set(words) < set(known_words) or set(known_words) < set(words):
        return NameMatch.POSSIBLE
    if _without_qualifier(name) in (_without_qualifier(known), known) or name == _without_qualifier(known):
        return NameMatch.POSSIBLE
    if are_different_people(name, known):
        return NameMatch.DIFFERENT
    if _is_similar_spelling("".join(words), "".join(known_words)) or similarity >= MIN_NAME_COSINE:
        return NameMatch.POSSIBLE
    return NameMatch.DIFFERENT


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


def is_named_in(name: str, text: str, *, but: str) -> bool:
    """Return whether a text has every word of a name, except its words that begin like a word of the name `but`."""
    own = tuple(word for word in name_words(but) if len(word) > 1)
    words = [word for word in _significant_words(name) if len(word) > 1 and not (own and word.startswith(own))]
    return bool(words) and set(words) <= set(_words_in(text, words))


def _words_in(text: str, words: list[str]) -> Iterator[str]:
    """Yield the words that occur in a text; one without spaces around its words contains them anywhere."""
    folded = name_words(text)
    yield from (word for word in words if word in folded or (not word.isascii() and word in "".join(folded)))


def _without_qualifier(name: str) -> str:
    return " ".join(_QUALIFIER.sub(" ", name).split()) or name


def _are_compatible_types(type: str | None, other: str | None) -> bool:
    unknown = {None, "", DEFAULT_ENTITY_TYPE}
    return type in unknown or other in unknown or type == other


def _significant_words(name: str) -> list[str]:
    words = name_words(name)
    return [word for word in words if word not in _IGNORED_WORDS] or words


def _is_similar_spelling(name: str, other: str) -> bool:
    return edit_distance(name, other, max_typos(min(len(name), len(other)))) is not None
