"""What says that two entities are one, and what tells them apart. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from graphmem.consolidation.statement_features import mentions_name
from graphmem.domain.entity import Entity
from graphmem.domain.fact import Fact
from graphmem.text.folding import fold
from graphmem.text.tokenising import UNSPACED_LETTER
from graphmem.text.word_lists import WRITTEN_LANGUAGES, load_words

IDENTITY_PREDICATES = frozenset(
    ["ABBREVIATION_OF", "ABBREVIATED_AS", "ACRONYM_OF", "ALIAS", "ALIAS_OF", "ALSO_CALLED", "ALSO_KNOWN_AS", "ALSO_NAMED", "ALSO_WRITTEN_AS", "ARTIST_NAME_OF", "BORN_AS", "CALLED", "CALLED_BY", "EQUALS", "FORMER_NAME", "FORMER_NAME_OF", "FORMERLY", "FORMERLY_CALLED", "FORMERLY_KNOWN_AS", "FORMERLY_NAMED", "FULL_NAME", "FULL_NAME_OF", "GOES_BY", "HAS_ALIAS", "HAS_FULL_NAME", "HAS_NAME", "HAS_NICKNAME", "IDENTICAL_TO", "INITIALS_OF", "IS_ALIAS_OF", "IS_CALLED", "IS_KNOWN_AS", "IS_NAMED", "IS_NICKNAME_OF", "IS_SAME_AS", "IS_SHORT_FOR", "KNOWN_AS", "MAIDEN_NAME", "MAIDEN_NAME_OF", "NAME_IS", "NAME_OF", "NEW_NAME", "NEW_NAME_OF", "NICKNAME", "NICKNAME_OF", "NICKNAMED", "NOW_CALLED", "NOW_KNOWN_AS", "OLD_NAME", "OLD_NAME_OF", "OTHER_NAME_OF", "PEN_NAME", "PEN_NAME_OF", "PREVIOUSLY", "PREVIOUSLY_CALLED", "PREVIOUSLY_KNOWN_AS", "PREVIOUSLY_NAMED", "PSEUDONYM", "PSEUDONYM_OF", "REAL_NAME", "REAL_NAME_OF", "REBRANDED_AS", "REBRANDED_TO", "RENAMED", "RENAMED_AS", "RENAMED_FROM", "RENAMED_TO", "SAME_AS", "SAME_PERSON_AS", "SHORT_FOR", "SHORT_NAME_OF", "SPELLED_AS", "STAGE_NAME", "STAGE_NAME_OF", "STANDS_FOR", "TRANSLITERATION_OF", "WRITTEN_AS"]
)
"""Predicates that state that two names mean one thing."""

DISTINCTION_PREDICATES = frozenset({"DIFFERENT_FROM", "DISTINCT_FROM", "NOT_SAME_AS", "IS_NOT", "NOT", "UNRELATED_TO"})
"""Predicates that state that two entities are two."""

_GAP = r"[\s\"'«»“”„’()]{0,3}"


def states_identity(fact: Fact, one: Entity, other: Entity, *, is_cited: bool) -> bool:
    """Return whether a fact says that two entities are one.

    It has both as its ends, or names both, and a predicate or a phrase that gives one thing two names. A cited one that
    names both needs no phrase, unless it tells them apart.
    """
    if tells_apart(fact, one, other):
        return False
    joins = {fact.subject_id, fact.object_id} == {one.id, other.id}
    concerns = joins or bool({fact.subject_id, fact.object_id, *fact.entity_ids} & {one.id, other.id})
    names_both = _names(fact, one) and _names(fact, other)
    if fact.predicate in IDENTITY_PREDICATES and (joins or (concerns and names_both)):
        return True
    if not (concerns and names_both and _names_in_text(fact, one, other)):
        return False
    return has_identity_phrase(fact.content) or (is_cited and not _relates(fact, one, other))


def gives_alias(fact: Fact, entity: Entity, alias: str, *, is_cited: bool) -> bool:
    """Return whether a fact about an entity says that it is known by another name."""
    if entity.id not in {fact.subject_id, fact.object_id, *fact.entity_ids} or not mentions_name(fact.content, alias):
        return False
    if fact.predicate in DISTINCTION_PREDICATES or _has_distinction_phrase(fact.content):
        return False
    return fact.predicate in IDENTITY_PREDICATES or is_cited or has_identity_phrase(fact.content)


def tells_apart(fact: Fact, one: Entity, other: Entity) -> bool:
    """Return whether a fact about two entities says or shows that they are two."""
    ends = {fact.subject_id, fact.object_id}
    if not {one.id, other.id} <= ends | set(fact.entity_ids) and not (_names(fact, one) and _names(fact, other)):
        return False
    if fact.predicate in DISTINCTION_PREDICATES:
        return True
    if fact.predicate in IDENTITY_PREDICATES:
        return _has_distinction_phrase(fact.content) and not has_identity_phrase(fact.content)
    if _names_in_text(fact, one, other) and (_has_distinction_phrase(fact.content) or _lists_both(fact, one, other)):
        return True
    return _relates(fact, one, other) and not has_identity_phrase(fact.content)


def has_identity_phrase(text: str) -> bool:
    """Return whether a text has a phrase that gives one person or thing two names."""
    return _identity_phrases().search(fold(text).text.casefold()) is not None


def share_a_fact(ours: Iterable[Fact], theirs: Iterable[Fact], one: Entity, other: Entity) -> bool:
    """Return whether the same relation to the same thing is told of both entities."""
    relations = {(fact.predicate, fact.object_id) for fact in ours if fact.subject_id == one.id and fact.object_id}
    others = {(fact.predicate, fact.object_id) for fact in theirs if fact.subject_id == other.id and fact.object_id}
    return bool(relations & others)


def _has_distinction_phrase(text: str) -> bool:
    return _distinction_phrases().search(fold(text).text.casefold()) is not None


def _relates(fact: Fact, one: Entity, other: Entity) -> bool:
    """Return whether a fact relates two entities as two things are related, such as "John met John Smith"."""
    return {fact.subject_id, fact.object_id} == {one.id, other.id} and fact.predicate not in IDENTITY_PREDICATES


def _names(fact: Fact, entity: Entity) -> bool:
    if entity.id in (fact.subject_id, fact.object_id):
        return True
    return any(mentions_name(fact.content, name) for name in (entity.name, *entity.aliases))


def _names_in_text(fact: Fact, one: Entity, other: Entity) -> bool:
    """Return whether the text of a fact has a name of each entity, the user's own not needed."""
    return all(
        entity.is_user or any(mentions_name(fact.content, name) for name in (entity.name, *entity.aliases))
        for entity in (one, other)
    )


def _lists_both(fact: Fact, one: Entity, other: Entity) -> bool:
    """Return whether a text lists names of both entities, as in "lunch with John and John Smith"."""
    text = fold(fact.content).text.casefold()
    conjunction = _conjunctions()
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
