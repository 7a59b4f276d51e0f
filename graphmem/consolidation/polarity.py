"""Whether a merged statement denies what its sources deny, clause by clause. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from graphmem.consolidation.statement_features import WORDS, content_words
from graphmem.consolidation.word_matching import is_like_any
from graphmem.text.languages import detect_languages
from graphmem.text.tokenising import UNSPACED_LETTER, WORD_PATTERN
from graphmem.text.word_lists import WRITTEN_LANGUAGES, load_words

_WORD = re.compile(WORD_PATTERN)
_MARK = re.compile(r"[,;:.!?、。，；：！？]")
_FRENCH_NOT = re.compile(r"^n['’]\w")
_IMPLIED_ENDINGS = ("free", "less", "frei", "los")
_IMPLIED_BEGINNINGS = ("non", "nicht", "без")


@dataclass(frozen=True, slots=True)
class Clause:
    """The content words of a clause, and whether it is negated, surely or perhaps."""

    words: frozenset[str]
    is_negated: bool
    may_be_negated: bool


@lru_cache(maxsize=4096)
def split_clauses(text: str) -> tuple[Clause, ...]:
    """Return the clauses of a text; the end of a clause is a mark or a word such as "but"."""
    languages = detect_languages(text)
    clauses: list[Clause] = []
    for part in _split(_without_idioms(text, languages), languages):
        clause = _read_clause(part, languages)
        if clauses and clauses[-1].is_negated and _continues(part, languages):
            clause = replace(clause, may_be_negated=True)
        clauses.append(clause)
    return tuple(clauses)


def _continues(part: str, languages: tuple[str, ...]) -> bool:
    """Return whether a part is too short for a clause, so that a negation before it may apply to it as well."""
    lists = load_words(*(languages or ("en",)))
    dropped = lists.function_words | lists.determiners | lists.stop_words
    return len([word for word in _WORD.findall(part) if word.casefold() not in dropped]) <= 1


def is_negated(text: str) -> bool:
    """Return whether a text surely negates something."""
    return any(clause.is_negated for clause in split_clauses(text))


def may_be_negated(text: str) -> bool:
    """Return whether a text denies something in any reading, as "allergic" and "sugar-free" may."""
    return any(clause.may_be_negated for clause in split_clauses(text))


def find_reversals(sources: Iterable[str], result: str) -> list[str]:
    """Return words that `result` denies although only affirmed statements have them, or the other way round."""
    clauses = [clause for text in sources for clause in split_clauses(text)]
    made = split_clauses(result)
    negated, affirmed = _words(clauses, negated=True), _words(clauses, negated=False)
    made_negated, made_affirmed = _words(made, negated=True), _words(made, negated=False)
    only_negated, only_affirmed = _without(negated, affirmed), _without(affirmed, negated)
    found: set[str] = set()
    for clause in made:
        if clause.is_negated and negated and not _shared(clause.words, only_negated):
            found |= _shared(clause.words, _without(only_affirmed, made_affirmed))
    for clause in clauses:
        words = _shared(clause.words, only_negated)
        if clause.is_negated and words and not _shared(words, made_negated | _undecided_words(made)):
            found |= _shared(words, made_affirmed)
    return sorted(found)


def denied_words(text: str) -> frozenset[str]:
    """Return the content words of the clauses that surely are negated."""
    return _words(split_clauses(text), negated=True)


def _split(text: str, languages: tuple[str, ...]) -> Iterator[str]:
    breaks = load_words(*(languages or ("en",))).clause_breaks
    for part in _MARK.split(text):
        start = 0
        for word in _WORD.finditer(part):
            if word[0].casefold() in breaks:
                yield part[start : word.start()]
                start = word.end()
        yield part[start:]


def _read_clause(text: str, languages: tuple[str, ...]) -> Clause:
    words = [word.casefold() for word in _WORD.findall(text)]
    lists = load_words(*(languages or ("en",)))
    surely = any(_negates(word, lists.negations) or word in lists.negative_stance for word in words)
    surely = surely or _has_unspaced_negation(text, languages)
    perhaps = (
        surely or any(_may_negate(word) for word in words) or any(phrase in text for phrase in _implied_unspaced())
    )
    return Clause(content_words(text, languages), surely, perhaps)


def _negates(word: str, negations: frozenset[str]) -> bool:
    return word in negations or word.endswith(("n't", "n’t")) or _FRENCH_NOT.match(word) is not None


def _may_negate(word: str) -> bool:
    return (
        _negates(word, WORDS.negations)
        or word in WORDS.negative_stance
        or any(part in WORDS.implied_denials or part == "non" for part in word.split("-"))
        or word.endswith(_IMPLIED_ENDINGS)
        or (len(word) > 5 and word.startswith(_IMPLIED_BEGINNINGS))
        or (len(word) > 4 and is_like_any(word, _long_denials()))
    )


@cache
def _long_denials() -> frozenset[str]:
    return frozenset(word for word in WORDS.implied_denials if len(word) > 5)


def _has_unspaced_negation(text: str, languages: tuple[str, ...]) -> bool:
    if not UNSPACED_LETTER.search(text):
        return False
    return any(word in text for word in load_words(*languages).negations if UNSPACED_LETTER.search(word))


@cache
def _implied_unspaced() -> tuple[str, ...]:
    return tuple(
        word
        for language in WRITTEN_LANGUAGES
        for word in load_words(language).implied_denials | load_words(language).negations
        if UNSPACED_LETTER.search(word)
    )


def _without_idioms(text: str, languages: tuple[str, ...]) -> str:
    for phrase in load_words(*(languages or ("en",))).no_negations:
        text = re.sub(re.escape(phrase), " ", text, flags=re.IGNORECASE)
    return text


def _words(clauses: Iterable[Clause], *, negated: bool) -> frozenset[str]:
    chosen = [clause for clause in clauses if clause.is_negated == negated and (negated or not clause.may_be_negated)]
    return frozenset(word for clause in chosen for word in clause.words)


def _undecided_words(clauses: Iterable[Clause]) -> frozenset[str]:
    return frozenset(word for clause in clauses if clause.may_be_negated for word in clause.words)


def _shared(words: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if is_like_any(word, others))


def _without(words: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if not is_like_any(word, others))
