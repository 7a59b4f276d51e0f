"""The evidence in facts that two entities are one, or that they are two. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from graphmem.consolidation.models import StatementQuote
from graphmem.consolidation.text_checks import find_quote
from graphmem.memories.entity import Entity
from graphmem.memories.fact import Fact
from graphmem.memories.names import is_like, mentions_name
from graphmem.text.folding import UNSPACED_LETTER
from graphmem.text.names import name_words, strip_possessive
from graphmem.text.normalising import fold
from graphmem.text.word_lists import WRITTEN_LANGUAGES, load_words

IDENTITY_PREDICATES = frozenset({
    "ALIAS_OF", "ALSO_KNOWN_AS", "HAS_ALIAS", "HAS_NICKNAME", "IDENTICAL_TO", "IS_ALIAS_OF", "IS_SAME_AS",
    "NICKNAME_OF", "SAME_AS", "SAME_PERSON_AS", "SHORT_FOR", "TRANSLITERATION_OF",
})  # fmt: skip
"""Predicates between two entities that mean nothing but that both are one."""

_USER_WORDS = load_words(*WRITTEN_LANGUAGES).user_words


def states_identity(fact: Fact, one: Entity, other: Entity) -> bool:
    """Return whether the predicate of a fact between two entities says that they are one."""
    return fact.predicate in IDENTITY_PREDICATES and _joins(fact, one, other)


def is_quoted_identity(quote: StatementQuote, fact: Fact, one: Entity, other: Entity) -> bool:
    """Return whether a quote stands in a fact and names two entities, or one of them where the other is its subject."""
    if find_quote(quote.words, fact.content) is None:
        return False
    return all(
        entity.id == fact.subject_id or any(mentions_name(quote.words, name) for name in _names_of(entity))
        for entity in (one, other)
    )


def relates(fact: Fact, one: Entity, other: Entity) -> bool:
    """Return whether a fact joins or names two entities and its predicate does not say that they are one."""
    if fact.predicate in IDENTITY_PREDICATES:
        return False
    return _joins(fact, one, other) or names_both(fact, one, other)


def names_both(fact: Fact, one: Entity, other: Entity) -> bool:
    """Return whether a text has a name of each of two entities, at two places."""
    names = [(first, second) for first in _names_of(one) for second in _names_of(other)]
    return any(_has_both(fact.content, first, second) for first, second in names)


def share_a_fact(ours: Iterable[Fact], theirs: Iterable[Fact], one: Entity, other: Entity) -> bool:
    """Return whether the same relation to the same thing is stated of both entities."""
    relations = {(fact.predicate, fact.object_id) for fact in ours if fact.subject_id == one.id and fact.object_id}
    others = {(fact.predicate, fact.object_id) for fact in theirs if fact.subject_id == other.id and fact.object_id}
    return bool(relations & others)


def _joins(fact: Fact, one: Entity, other: Entity) -> bool:
    return {one.id, other.id} <= {fact.subject_id, fact.object_id, *fact.entity_ids}


def _names_of(entity: Entity) -> list[str]:
    return [entity.name, *entity.aliases, *(sorted(_USER_WORDS) if entity.is_user else [])]


def _has_both(text: str, one: str, other: str) -> bool:
    shorter, longer = sorted((fold(one).text.casefold(), fold(other).text.casefold()), key=len)
    if UNSPACED_LETTER.search(shorter + longer):
        folded = fold(text).text.casefold()
        return longer in folded and shorter in folded.replace(longer, " ", 1)
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
