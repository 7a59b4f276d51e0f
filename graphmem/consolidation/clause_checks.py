"""Checks of what a merged text negates and what its numbers count, clause by clause. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from graphmem.consolidation.statement_features import FILLER_WORDS, WORDS, is_negation
from graphmem.consolidation.statement_values import extract_dates, normalise_number
from graphmem.text.names import strip_possessive
from graphmem.text.tokenising import NUMBER_PATTERN, WORD_PATTERN, stem

_TOKEN = re.compile(rf"{NUMBER_PATTERN}|{WORD_PATTERN}|[,;:.!?]")
_CLAUSE_BREAKS = WORDS.clause_breaks | frozenset(",;:.!?")


def flipped_negations(sources: Iterable[str], result: str) -> list[str]:
    """Return the stems that `result` negates and the sources affirm, or the other way round."""
    negated_before: set[str] = set()
    affirmed_before: set[str] = set()
    for text in sources:
        negated, affirmed = _negated_and_affirmed(text)
        negated_before |= negated
        affirmed_before |= affirmed
    negated, affirmed = _negated_and_affirmed(result)
    return sorted((negated & affirmed_before - negated_before) | (affirmed & negated_before - affirmed_before))


def misattributed_numbers(sources: Iterable[str], result: str) -> list[str]:
    """Return the numbers that share a clause of `result` with the words of another number of the sources."""
    words_by_number: dict[str, set[str]] = defaultdict(set)
    for text in sources:
        for numbers, words in _numbers_and_stems(text):
            for number in numbers:
                words_by_number[number] |= words
    misattributed = set()
    for numbers, words in _numbers_and_stems(result):
        for number in numbers & words_by_number.keys():
            shared = (len(words & words_by_number[other]) for other in words_by_number.keys() - numbers)
            if max(shared, default=0) > len(words & words_by_number[number]):
                misattributed.add(number)
    return sorted(misattributed)


def _negated_and_affirmed(text: str) -> tuple[set[str], set[str]]:
    """Return the stems within the scope of a negation, and the other stems."""
    negated: set[str] = set()
    affirmed: set[str] = set()
    for clause in _split_clauses(text):
        is_negated = False
        for word in clause:
            if is_negation(word) or word in WORDS.negative_stance:
                is_negated = True
            elif word not in FILLER_WORDS | WORDS.positive_stance and not word[0].isdigit():
                (negated if is_negated else affirmed).add(stem(strip_possessive(word)))
    return negated, affirmed


def _numbers_and_stems(text: str) -> Iterator[tuple[set[str], set[str]]]:
    """Yield the numbers and the stems of each clause, without those of dates."""
    _, rest = extract_dates(text)
    for clause in _split_clauses(rest):
        words = [WORDS.numbers.get(word, word) for word in clause]
        numbers = {normalise_number(word) for word in words if word[0].isdigit()}
        yield (
            numbers,
            {stem(strip_possessive(word)) for word in words if not word[0].isdigit() and word not in FILLER_WORDS},
        )


def _split_clauses(text: str) -> Iterator[list[str]]:
    clause: list[str] = []
    for token in _TOKEN.findall(text):
        word = token.casefold()
        if word in _CLAUSE_BREAKS:
            yield clause
            clause = []
        else:
            clause.append(word)
    yield clause
