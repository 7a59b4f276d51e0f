"""Whom a statement is about, beyond the subject that it is stored with. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from graphmem.consolidation.naming import may_be_same_person, name_tokens
from graphmem.consolidation.statement_features import WORDS, mentioned_words
from graphmem.text.languages import detect_languages
from graphmem.text.names import POSSESSIVE_ENDING, is_first_name, strip_possessive
from graphmem.text.tokenising import WORD_PATTERN
from graphmem.text.word_lists import load_words

_WORD = re.compile(WORD_PATTERN)
_SENTENCE_END = re.compile(r"(?<=[.!?。])\s+|\n+")


def find_subject_mismatch(
    one: str, other: str, subject_names: Sequence[str] = (), people: Iterable[str] = ()
) -> str | None:
    """Return why two statements are about different people, or None.

    `subject_names` are those of the subject of both, `people` those of other people that the statements name.
    """
    people = list(people)
    first = _foreign_person(one, subject_names, people)
    second = _foreign_person(other, subject_names, people)
    if first and second:
        return None if may_be_same_person(first, second) else f"one is about {first}, the other about {second}"
    for name, text in ((first, other), (second, one)):
        if name and mentioned_words(text).isdisjoint(name_tokens(name)):
            return f"one is about {name}, the other is not"
    return None


def find_role_mismatch(one: str, other: str) -> str | None:
    """Return that one name has two roles, as in "my brother John" and "my colleague John", or None."""
    for name, role in _find_roles(one):
        for other_name, other_role in _find_roles(other):
            if name == other_name and role != other_role:
                return f"{name} is called {role} and {other_role}"
    return None


def _foreign_person(text: str, subject_names: Sequence[str], people: Sequence[str]) -> str | None:
    name = _find_leading_person(text, people)
    if name is None or any(may_be_same_person(name, own) for own in subject_names):
        return None
    return name


def _find_leading_person(text: str, people: Sequence[str]) -> str | None:
    """Return the person that the first sentence surely begins with, or the role that stands for the person."""
    words = _WORD.findall(_SENTENCE_END.split(text.strip())[0])
    is_english = "en" in (detect_languages(text) or ("en",))
    index, role = 0, None
    lists = load_words("en")
    if is_english and words and words[0].casefold() in lists.determiners:
        index = 1
    while is_english and index < len(words) and words[index].casefold() in lists.person_roles:
        role, index = words[index].casefold(), index + 1
    name: list[str] = []
    while index < len(words) and words[index][0].isupper() and words[index].casefold() not in WORDS.non_names:
        name.append(words[index])
        index += 1
        if POSSESSIVE_ENDING.search(name[-1]):
            break
    if not name or name[0].casefold() in WORDS.user_words:
        return role
    full_name = " ".join(map(strip_possessive, name))
    is_known = any(may_be_same_person(full_name, person) for person in people)
    if role or is_known or (is_english and is_first_name(strip_possessive(name[0]))):
        return full_name
    return None


def _find_roles(text: str) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name_tokens(name)[0], role.casefold())
        for role, name in pairwise(_WORD.findall(text))
        if role.casefold() in WORDS.person_roles and name[0].isupper() and name_tokens(name)
    )
