"""Whom a statement is about, beyond the subject that it is stored with. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from graphmem.consolidation.names import may_be_same_person, mentions_name
from graphmem.text.languages import detect_languages
from graphmem.text.names import POSSESSIVE_ENDING, is_first_name, strip_possessive
from graphmem.text.tokenising import WORD_PATTERN
from graphmem.text.word_lists import load_words

_WORD = re.compile(WORD_PATTERN)


def find_subject_mismatch(
    one: str, other: str, subject_names: Sequence[str] = (), people: Iterable[str] = ()
) -> str | None:
    """Return why two statements are about different people, or None.

    `subject_names` are those of the subject of both, `people` those of other people that the statements name.
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
    """Return the person whose name a statement begins with: a known one, or one with a first name."""
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
