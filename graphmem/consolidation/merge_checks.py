"""What a merge must neither lose, invent nor reverse, and which statements cannot both be true. Pure.

Statements are compared as sets: values, names and denials of all sources on one side, those of the result on the other.
A check that needs words compares only statements that may be in one language.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta

from graphmem.consolidation import polarity
from graphmem.consolidation.statement_features import (
    StatementFeatures,
    content_words,
    extract_features,
    mentions_name,
)
from graphmem.consolidation.statement_values import StatementValues, combine_values, extract_values
from graphmem.consolidation.word_matching import is_like_any, share_of_likes
from graphmem.domain.fact import Fact
from graphmem.text.languages import detect_languages
from graphmem.text.tokenising import UNSPACED_LETTER

MIN_SAME_MATTER = 0.65
"""Smallest share of the content words that two statements have in common if they are about the same matter."""

MIN_SAME_WORDING = 0.85
"""The same if they differ in little more than a negation."""

_SHIFTS = (timedelta(hours=-12), timedelta(0), timedelta(hours=14))
"""The distances of the first and the last time zone from UTC."""

_CLAUSE_END = re.compile(r"[,;:!?、。，；：！？]|\.\s|\band\b|\bbut\b|\bund\b|\bet\b|\by\b|\bи\b")


def find_contradiction(one: str, other: str, subject_names: Sequence[str] = ()) -> str | None:
    """Return why two statements about one subject cannot both hold, or None."""
    first, second = extract_features(one), extract_features(other)
    shared = _shared_matter(first, second, subject_names)
    if shared < MIN_SAME_MATTER:
        return None
    for denial, statement in ((first, second), (second, first)):
        is_affirmed = shared >= MIN_SAME_WORDING or not polarity.may_be_negated(statement.text)
        if is_affirmed and _denies(denial, statement, subject_names):
            return "one denies what the other says"
    own, others = second.values.lacks(first.values), first.values.lacks(second.values)
    if own and others:
        return f"one says {', '.join(own[:3])}, the other {', '.join(others[:3])}"
    return None


def find_missing(
    sources: Sequence[StatementFeatures],
    result: StatementFeatures,
    subject_names: Iterable[str],
    entity_names: Iterable[Sequence[str]],
) -> list[str]:
    """Return the names, values and denials of the sources that the result does not have in any form.

    `subject_names` may be missing; `entity_names` are the names of each other entity, any of which will do.
    """
    missing = combine_missing_values(sources, result)
    named = {name for source in sources for name in _names_to_keep(source, result, subject_names)}
    for names in entity_names:
        if any(mentions_name(result.text, name) for name in names):
            named = {word for word in named if not _is_part_of(word, names)}
        else:
            missing += _missing_unspaced_name(sources, result, names)
    missing += sorted(word for word in named if not is_like_any(word, result.mentioned) and word not in result.text)
    if any(polarity.is_negated(source.text) for source in sources) and not polarity.may_be_negated(result.text):
        missing.append("a negation")
    return list(dict.fromkeys(missing))


def combine_missing_values(sources: Iterable[StatementFeatures], result: StatementFeatures) -> list[str]:
    """Return the values of the sources that the result does not have."""
    return result.values.lacks(combine_values(source.values for source in sources))


def find_invented(
    sources: Sequence[StatementFeatures],
    result: StatementFeatures,
    known_names: Iterable[str],
    known_values: StatementValues,
) -> list[str]:
    """Return the names, values and denials of the result that no source has.

    `known_names` are those of the entities of the sources, `known_values` those of their validity.
    """
    invented = combine_values([known_values, *(source.values for source in sources)]).lacks(result.values)
    known = {word for source in sources for word in source.mentioned}
    known |= {word for name in known_names for word in extract_features(name).mentioned}
    if all(source.may_share_language(result) for source in sources):
        text = " ".join(source.text for source in sources).casefold()
        invented += sorted(word for word in result.names if not is_like_any(word, known) and word not in text)
    if polarity.is_negated(result.text) and not any(polarity.may_be_negated(source.text) for source in sources):
        invented.append("a negation")
    return invented


def find_reversed(sources: Sequence[StatementFeatures], result: StatementFeatures) -> list[str]:
    """Return what the result denies although the sources affirm it, or the other way round."""
    if not all(source.may_share_language(result) for source in sources):
        return []
    return polarity.find_reversals([source.text for source in sources], result.text)


def find_misattributed_numbers(sources: Iterable[StatementFeatures], result: StatementFeatures) -> list[str]:
    """Return the numbers that share a clause of the result with the words of another number of the sources."""
    words_by_number: dict[str, set[str]] = defaultdict(set)
    for source in sources:
        if not source.may_share_language(result):
            return []
        for numbers, words in _numbers_and_words(source.text):
            for number in numbers:
                words_by_number[number] |= words
    misattributed = set()
    for numbers, words in _numbers_and_words(result.text):
        for number in numbers & words_by_number.keys():
            own = words_by_number[number]
            others = {other: words_by_number[other] - own for other in words_by_number.keys() - numbers}
            shared = max((len(words & other) for other in others.values()), default=0)
            if shared and shared > len(words & own):
                misattributed.add(number)
    return sorted(misattributed)


def drops_too_much(sources: Sequence[StatementFeatures], result: StatementFeatures) -> bool:
    """Return whether the result has fewer of the sources' words than any one of them has on average."""
    comparable = [source for source in sources if source.may_share_language(result)]
    words = frozenset(word for source in comparable for word in source.content)
    if not comparable or len(words) < 2:
        return False
    return share_of_likes(words, result.content) < 1 / (len(comparable) + 2)


def says_no_more(earliest: str, others: Iterable[str]) -> bool:
    """Return whether a statement has all values of the others, and denies something if one of them does."""
    features = extract_features(earliest)
    others = list(others)
    if features.values.lacks(combine_values(extract_values(text) for text in others)):
        return False
    return not any(polarity.is_negated(text) for text in others) or polarity.may_be_negated(earliest)


def values_of_validity(facts: Iterable[Fact]) -> StatementValues:
    """Return the days, months and years at which facts start and end, in any time zone."""
    times = [time + shift for fact in facts for time in (fact.valid_at, fact.invalid_at) if time for shift in _SHIFTS]
    found = {value for time in times for value in (str(time.year), f"month {time.month}", str(time.day))}
    return StatementValues(frozenset(), frozenset(found))


def _denies(denial: StatementFeatures, statement: StatementFeatures, subject_names: Iterable[str]) -> bool:
    """Return whether a statement denies nothing but what another one affirms."""
    if not polarity.is_negated(denial.text) or polarity.is_negated(statement.text):
        return False
    own = [word for name in subject_names for word in content_words(name, detect_languages(name))]
    denied = polarity.denied_words(denial.text)
    return all(is_like_any(word, statement.content) or is_like_any(word, own) for word in denied)


def _shared_matter(one: StatementFeatures, other: StatementFeatures, subject_names: Iterable[str]) -> float:
    """Return the share of the content words of two statements that both have, without those of their subject."""
    if not one.may_share_language(other):
        return 0.0
    own = frozenset(word for name in subject_names for word in content_words(name, detect_languages(name)))
    first, second = (
        frozenset(word for word in content if word not in own and not is_like_any(word, own))
        for content in (one.content, other.content)
    )
    if not first or not second:
        return float(first == second)
    shared = sum(is_like_any(word, second) for word in first) + sum(is_like_any(word, first) for word in second)
    return shared / (len(first) + len(second))


def _names_to_keep(source: StatementFeatures, result: StatementFeatures, subject_names: Iterable[str]) -> Iterable[str]:
    if not source.may_share_language(result):
        return ()
    own = {word for name in subject_names for word in extract_features(name).mentioned}
    return (name for name in source.names if not is_like_any(name, own))


def _is_part_of(word: str, names: Iterable[str]) -> bool:
    return any(is_like_any(word, extract_features(name).mentioned) for name in names)


def _missing_unspaced_name(
    sources: Iterable[StatementFeatures], result: StatementFeatures, names: Sequence[str]
) -> list[str]:
    """Return the name of an entity in a script without spaces that a source has and the result lacks."""
    return [
        name
        for name in names
        if UNSPACED_LETTER.search(name)
        and any(name in source.text and source.may_share_language(result) for source in sources)
    ][:1]


def _numbers_and_words(text: str) -> Iterable[tuple[set[str], frozenset[str]]]:
    """Yield the numbers and the content words of each clause; parts of dates with a month are left out."""
    languages = detect_languages(text)
    for clause in _CLAUSE_END.split(text):
        values = extract_values(clause).certain
        if not any(value.startswith("month") for value in values):
            numbers = {value for value in values if not value.startswith(("weekday", "19", "20")) or len(value) != 4}
            yield numbers, content_words(clause, languages)
