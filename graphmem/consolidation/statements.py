"""What a merge must keep in every language: numbers, names and entities; and which statements conflict. Pure.

Only what is written in one way in every language is compared: digits, names with capital letters, and the names of
known entities. `restated` are what a verification quotes as the same in another form, as "three" and "3" are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from graphmem.consolidation.names import mentions_name
from graphmem.consolidation.statement_tokens import Token, is_number, mark_subject, split_statement
from graphmem.consolidation.word_comparison import NOUN_CAPITALISING, known_languages, neutral_words
from graphmem.consolidation.word_matching import is_like_any
from graphmem.text.languages import detect_languages
from graphmem.text.word_lists import load_words

MIN_SAME_MATTER = 0.65
"""Smallest share of their words that two statements have in common if they are about the same matter."""


HALF_DAY_HOURS = 12
"""Hours between an hour of the afternoon and its name in half a day."""


@dataclass(frozen=True, slots=True)
class Restated:
    """The tokens of sources, by memory id, and of the merged text that are the same in another form."""

    in_sources: Mapping[str, frozenset[str]] = field(default_factory=dict)
    in_result: frozenset[str] = frozenset()


def find_number_conflict(one: str, other: str, subject_names: Iterable[str] = ()) -> str | None:
    """Return that two statements are alike but for their numbers, so that they cannot both hold, or None."""
    names = list(subject_names)
    first, second = (mark_subject(split_statement(text), names) for text in (one, other))
    words, others = ({token.key for token in tokens if not is_number(token.key)} for tokens in (first, second))
    if not words or not others or 2 * len(words & others) / (len(words) + len(others)) < MIN_SAME_MATTER:
        return None
    own, theirs = _numbers(first) - _numbers(second), _numbers(second) - _numbers(first)
    if not may_be_one_number(frozenset(own), frozenset(theirs)):
        return f"one says {', '.join(sorted(own)[:3])}, the other {', '.join(sorted(theirs)[:3])}"
    return None


def may_be_one_number(own: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether one side has no numbers but those of the other, or both one hour of day: 5 pm and 17:00."""
    if own <= others or others <= own:
        return True
    hours = sorted(int(key) for key in own | others if key.isdigit())
    return len(own) == len(others) == 1 and len(hours) == 2 and hours[1] - hours[0] == HALF_DAY_HOURS


def find_changed_numbers(sources: Mapping[str, str], result: str, restated: Restated) -> str | None:
    """Return which number of a source a merged text lacks, or which one it has that no source has, or None."""
    made = _numbers(split_statement(result))
    told: Counter[str] = Counter()
    for key, text in sources.items():
        numbers = _numbers(split_statement(text))
        told += numbers
        lost = [number for number in numbers - made if number not in restated.in_sources.get(key, ())]
        if lost:
            return f"{key} is not covered: the merged text lacks {', '.join(lost[:5])}"
    if new := [number for number in made - told if number not in restated.in_result]:
        return f"no source has {', '.join(new[:5])} of the merged text: write numbers as the sources do"
    return None


def find_changed_names(
    sources: Mapping[str, str],
    result: str,
    own_names: Iterable[str],
    entity_names: Iterable[Sequence[str]],
    restated: Restated,
) -> str | None:
    """Return which name of a source a merged text lacks, or which one it has that no source has, or None.

    `own_names` are those of the subject, which may be missing; `entity_names` are the names of each other entity, any
    of which will do.
    """
    own_names, entity_names = list(own_names), list(entity_names)
    for key, text in sources.items():
        kept = restated.in_sources.get(key, frozenset())
        for names in entity_names:
            named = [name for name in names if mentions_name(text, name)]
            is_kept = any(mentions_name(result, name) for name in names)
            if named and not is_kept and not _words(named) & kept:
                return f"{key} is not covered: the merged text does not name {named[0]}"
    if not _may_share_language([*sources.values(), result]):
        return None
    known = _words([*own_names, *(name for names in entity_names for name in names)])
    made = {token.key for token in split_statement(result)}
    for key, text in sources.items():
        kept = restated.in_sources.get(key, frozenset())
        for name in sorted(_capitalised(text) - known - kept):
            if not is_like_any(name, made):
                return f"{key} is not covered: the merged text does not name {name}"
    told = {token.key for text in sources.values() for token in split_statement(text)} | known | restated.in_result
    if new := sorted(name for name in _capitalised(result) if not is_like_any(name, told)):
        return f"no source names {', '.join(new[:5])}"
    return None


def find_misattributed_numbers(sources: Iterable[str], result: str) -> list[str]:
    """Return the numbers that share a clause of the result with the words of another number of the sources."""
    words_by_number: dict[str, set[str]] = defaultdict(set)
    for text in sources:
        for numbers, words in _numbers_and_words(text):
            for number in numbers:
                words_by_number[number] |= words
    misattributed = set()
    for numbers, words in _numbers_and_words(result):
        for number in numbers & words_by_number.keys():
            own = words_by_number[number]
            others = [words_by_number[other] - own for other in words_by_number.keys() - numbers]
            shared = max((len(words & other) for other in others), default=0)
            if shared and shared > len(words & own):
                misattributed.add(number)
    return sorted(misattributed)


def _numbers_and_words(text: str) -> Iterable[tuple[set[str], set[str]]]:
    """Yield the numbers and the other words of each clause, which a mark or a conjunction ends."""
    languages = known_languages(text)
    neutral = neutral_words(languages)
    clause: list[str] = []
    for token in [*split_statement(text), Token(",", is_mark=True)]:
        if not token.is_mark and token.key not in neutral:
            clause.append(token.key)
        elif token.is_mark or token.key in _conjunctions(languages):
            yield {key for key in clause if is_number(key)}, {key for key in clause if not is_number(key)}
            clause = []


def _conjunctions(languages: tuple[str, ...]) -> frozenset[str]:
    return load_words(*languages).conjunctions


def _numbers(tokens: Iterable[Token]) -> Counter[str]:
    return Counter(token.key for token in tokens if is_number(token.key))


def _words(names: Iterable[str]) -> frozenset[str]:
    return frozenset(token.key for name in names for token in split_statement(name))


def _capitalised(text: str) -> frozenset[str]:
    """Return the words with a capital letter within a sentence, unless the language writes every noun with one."""
    if NOUN_CAPITALISING & set(detect_languages(text)):
        return frozenset()
    return frozenset(
        token.key
        for token in split_statement(text)
        if token.is_name and not is_number(token.key) and len(token.key) > 1
    )


def _may_share_language(texts: Iterable[str]) -> bool:
    """Return whether nothing says that texts are in several languages."""
    known = [set(languages) for text in texts if (languages := detect_languages(text))]
    return not known or bool(set.intersection(*known))
