"""The evidence in facts that two entities are one, or that they are distinct. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from graphmem.consolidation.statement_features import mentioned_words, mentions_name
from graphmem.consolidation.word_matching import is_like
from graphmem.domain.entity import Entity
from graphmem.domain.fact import Fact
from graphmem.domain.memory import DEFAULT_PREDICATES
from graphmem.text.folding import fold
from graphmem.text.names import name_words, strip_possessive
from graphmem.text.tokenising import UNSPACED_LETTER
from graphmem.text.word_lists import WRITTEN_LANGUAGES, load_words

IDENTITY_PREDICATES = frozenset({
    "ABBREVIATION_OF", "ABBREVIATED_AS", "ACRONYM_OF", "ALIAS", "ALIAS_OF", "ALSO_CALLED", "ALSO_KNOWN_AS",
    "ALSO_NAMED", "ALSO_WRITTEN_AS", "ARTIST_NAME_OF", "BORN_AS", "CALLED", "CALLED_BY", "EQUALS", "FORMER_NAME",
    "FORMER_NAME_OF", "FORMERLY", "FORMERLY_CALLED", "FORMERLY_KNOWN_AS", "FORMERLY_NAMED", "FULL_NAME",
    "FULL_NAME_OF", "GOES_BY", "HAS_ALIAS", "HAS_FULL_NAME", "HAS_NAME", "HAS_NICKNAME", "IDENTICAL_TO",
    "INITIALS_OF", "IS_ALIAS_OF", "IS_CALLED", "IS_KNOWN_AS", "IS_NAMED", "IS_NICKNAME_OF", "IS_SAME_AS",
    "IS_SHORT_FOR", "KNOWN_AS", "MAIDEN_NAME", "MAIDEN_NAME_OF", "NAME_IS", "NAME_OF", "NEW_NAME", "NEW_NAME_OF",
    "NICKNAME", "NICKNAME_OF", "NICKNAMED", "NOW_CALLED", "NOW_KNOWN_AS", "OLD_NAME", "OLD_NAME_OF",
    "OTHER_NAME_OF", "PEN_NAME", "PEN_NAME_OF", "PREVIOUSLY", "PREVIOUSLY_CALLED", "PREVIOUSLY_KNOWN_AS",
    "PREVIOUSLY_NAMED", "PSEUDONYM", "PSEUDONYM_OF", "REAL_NAME", "REAL_NAME_OF", "REBRANDED_AS", "REBRANDED_TO",
    "RENAMED", "RENAMED_AS", "RENAMED_FROM", "RENAMED_TO", "SAME_AS", "SAME_PERSON_AS", "SHORT_FOR",
    "SHORT_NAME_OF", "SPELLED_AS", "STAGE_NAME", "STAGE_NAME_OF", "STANDS_FOR", "TRANSLITERATION_OF", "WRITTEN_AS",
})  # fmt: skip
"""Predicates that state that two names mean one thing."""

DISTINCTION_PREDICATES = frozenset({"DIFFERENT_FROM", "DISTINCT_FROM", "NOT_SAME_AS", "IS_NOT", "NOT", "UNRELATED_TO"})
"""Predicates that state that two entities are two."""

NEUTRAL_PREDICATES = frozenset({*DEFAULT_PREDICATES.values(), "IS", "RELATES_TO", "RELATED_TO", "MENTIONS"})
"""Predicates that do not say how the two ends of a fact are related."""

_GAP = r"[\s\"'«»“”„’()]{0,3}"


def states_identity(fact: Fact, one: Entity, other: Entity, *, is_cited: bool) -> bool:
    """Return whether a fact about one of two entities says that they are one.

    Its predicate says so, or its text, which then names both and has a phrase that gives one thing two names. A cited
    one that names both needs no phrase unless one of them is the user, whom sentences about relatives name as well.
    """
    if says_distinct(fact, one, other):
        return False
    ends, pair = {fact.subject_id, fact.object_id}, {one.id, other.id}
    if fact.predicate in IDENTITY_PREDICATES and ends == pair:
        return True
    if not ends & pair or not _names_both(fact, one, other):
        return False
    if fact.predicate in IDENTITY_PREDICATES:
        return fact.subject_id in pair
    has_user = one.is_user or other.is_user
    if has_identity_phrase(fact.content):
        return not (has_user and _has_person_role(fact.content))
    return is_cited and not has_user


def gives_alias(fact: Fact, entity: Entity, alias: str) -> bool:
    """Return whether a fact about an entity says that it is known by another name."""
    if entity.id not in {fact.subject_id, fact.object_id, *fact.entity_ids} or not mentions_name(fact.content, alias):
        return False
    if fact.predicate in DISTINCTION_PREDICATES or _has_distinction_phrase(fact.content):
        return False
    return fact.predicate in IDENTITY_PREDICATES or has_identity_phrase(fact.content)


def says_distinct(fact: Fact, one: Entity, other: Entity) -> bool:
    """Return whether a fact says or shows that two entities are two: by relating, listing or distinguishing them."""
    joins = {fact.subject_id, fact.object_id} == {one.id, other.id}
    if fact.predicate in IDENTITY_PREDICATES:
        return joins and _has_distinction_phrase(fact.content) and not has_identity_phrase(fact.content)
    if joins and (fact.predicate in DISTINCTION_PREDICATES or fact.predicate not in NEUTRAL_PREDICATES):
        return True
    if not joins and not _names_both(fact, one, other):
        return False
    return _has_distinction_phrase(fact.content) or _lists_both(fact, one, other)


def has_identity_phrase(text: str) -> bool:
    """Return whether a text has a phrase that gives one person or thing two names."""
    return _identity_phrases().search(fold(text).text.casefold()) is not None


def share_a_fact(ours: Iterable[Fact], theirs: Iterable[Fact], one: Entity, other: Entity) -> bool:
    """Return whether the same relation to the same thing is stated of both entities."""
    relations = {(fact.predicate, fact.object_id) for fact in ours if fact.subject_id == one.id and fact.object_id}
    others = {(fact.predicate, fact.object_id) for fact in theirs if fact.subject_id == other.id and fact.object_id}
    return bool(relations & others)


def _has_distinction_phrase(text: str) -> bool:
    return _distinction_phrases().search(fold(text).text.casefold()) is not None


def _has_person_role(text: str) -> bool:
    return not _person_roles().isdisjoint(mentioned_words(text)) or any(
        role in text for role in _person_roles() if UNSPACED_LETTER.search(role)
    )


def _names_both(fact: Fact, one: Entity, other: Entity) -> bool:
    """Return whether a text has a name of each of two entities, at two places."""
    names = [(first, second) for first in _names_of(one) for second in _names_of(other)]
    return any(_has_both(fact.content, first, second) for first, second in names)


def _names_of(entity: Entity) -> list[str]:
    return [entity.name, *entity.aliases, *(sorted(_user_words()) if entity.is_user else [])]


def _has_both(text: str, one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    if UNSPACED_LETTER.search(shorter + longer):
        return longer in text and shorter in text.replace(longer, " ", 1)
    words = name_words(strip_possessive(text))
    rest = _without_name(words, name_words(longer))
    return rest is not None and _without_name(rest, name_words(shorter)) is not None


def _without_name(words: list[str], name: list[str]) -> list[str] | None:
    """Return words without the first occurrence of a name in any inflection; None if they do not have it."""
    for start in range(len(words) - len(name) + 1 if name else 0):
        if all(_is_inflected(word, part) for word, part in zip(words[start:], name, strict=False)):
            return [*words[:start], "", *words[start + len(name) :]]
    return None


def _is_inflected(word: str, name: str) -> bool:
    """Return whether a word is a name, with a genitive "s", or in a script whose languages inflect names."""
    if word == name or word == f"{name}s":
        return True
    return not word.isascii() and not name.isascii() and not name.isdigit() and len(name) > 1 and is_like(word, name)


def _lists_both(fact: Fact, one: Entity, other: Entity) -> bool:
    """Return whether a text lists names of both entities, as in "lunch with John and John Smith"."""
    text = fold(fact.content).text.casefold()
    conjunction = rf"{_conjunctions()}|,"
    pairs = [
        (first.casefold(), second.casefold())
        for first in (one.name, *one.aliases)
        for second in (other.name, *other.aliases)
    ]
    return any(
        re.search(rf"{re.escape(first)}{_GAP}(?:{conjunction}){_GAP}{re.escape(second)}", text)
        for pair in pairs
        for first, second in (pair, pair[::-1])
    )


@cache
def _person_roles() -> frozenset[str]:
    return load_words(*WRITTEN_LANGUAGES).person_roles


@cache
def _user_words() -> frozenset[str]:
    return load_words(*WRITTEN_LANGUAGES).user_words


@cache
def _conjunctions() -> str:
    words = sorted({word for language in WRITTEN_LANGUAGES for word in load_words(language).conjunctions})
    spaced = [rf"(?<!\w){re.escape(word)}(?!\w)" for word in words if not UNSPACED_LETTER.search(word)]
    return "|".join([*spaced, *(re.escape(word) for word in words if UNSPACED_LETTER.search(word)), "&"])


@cache
def _identity_phrases() -> re.Pattern[str]:
    return _compile({phrase for language in WRITTEN_LANGUAGES for phrase in load_words(language).identity_phrases})


@cache
def _distinction_phrases() -> re.Pattern[str]:
    return _compile({phrase for language in WRITTEN_LANGUAGES for phrase in load_words(language).distinction_phrases})


def _compile(phrases: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds phrases at the limits of words, and anywhere in scripts without spaces."""
    parts = [
        re.escape(phrase) if UNSPACED_LETTER.search(phrase) else rf"(?<!\w){re.escape(phrase)}(?!\w)"
        for phrase in sorted(phrases, key=len, reverse=True)
    ]
    return re.compile("|".join(parts))
