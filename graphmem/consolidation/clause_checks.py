"""What a statement denies and what its numbers belong to: a merge may not mix them up. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from graphmem.consolidation.lexicon import FILLER_WORDS, NEGATIONS, NEGATIVE_STANCE, NUMBER_WORDS, POSITIVE_STANCE
from graphmem.consolidation.statement_features import extract_dates, normalise_number, word_stem

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_](?:[^\W_]|['’-](?=[^\W_]))*|[,;:.!?]", re.UNICODE)
_CLAUSE_ENDS = frozenset([*",;:.!?", "and", "but", "while", "whereas", "und", "aber", "y", "pero", "et", "mais"])
"""What ends a clause, and with it the reach of a denial."""


def flipped_negations(sources: Iterable[str], result: str) -> list[str]:
    """Return the words that a result denies and no source does, or the other way round."""
    denied_before: set[str] = set()
    affirmed_before: set[str] = set()
    for text in sources:
        denied, affirmed = _denied_and_affirmed(text)
        denied_before |= denied
        affirmed_before |= affirmed
    denied, affirmed = _denied_and_affirmed(result)
    return sorted((denied & affirmed_before - denied_before) | (affirmed & denied_before - affirmed_before))


def misattributed_numbers(sources: Iterable[str], result: str) -> list[str]:
    """Return the numbers of a result that stand with what another number of the sources stood with."""
    words_by_number: dict[str, set[str]] = defaultdict(set)
    for text in sources:
        for numbers, words in _numbers_and_stems(text):
            for each in numbers:
                words_by_number[each] |= words
    found = set()
    for numbers, words in _numbers_and_stems(result):
        for each in numbers & words_by_number.keys():
            others = (len(words & words_by_number[other]) for other in words_by_number.keys() - numbers)
            if max(others, default=0) > len(words & words_by_number[each]):
                found.add(each)
    return sorted(found)


def _denied_and_affirmed(text: str) -> tuple[set[str], set[str]]:
    """Return the stems within the reach of a denial, and the others."""
    denied: set[str] = set()
    affirmed: set[str] = set()
    for clause in _split_clauses(text):
        is_denied = False
        for word in clause:
            if word in NEGATIONS | NEGATIVE_STANCE or word.endswith(("n't", "n’t")):
                is_denied = True
            elif word not in FILLER_WORDS | POSITIVE_STANCE and not word[0].isdigit():
                (denied if is_denied else affirmed).add(word_stem(word))
    return denied, affirmed


def _numbers_and_stems(text: str) -> Iterator[tuple[set[str], set[str]]]:
    """Yield the numbers and the stems of each clause; those of dates are left out."""
    _, rest = extract_dates(text)
    for clause in _split_clauses(rest):
        words = [NUMBER_WORDS.get(word, word) for word in clause]
        numbers = {normalise_number(word) for word in words if word[0].isdigit()}
        yield numbers, {word_stem(word) for word in words if not word[0].isdigit() and word not in FILLER_WORDS}


def _split_clauses(text: str) -> Iterator[list[str]]:
    clause: list[str] = []
    for token in _TOKEN.findall(text):
        word = token.casefold()
        if word in _CLAUSE_ENDS:
            yield clause
            clause = []
        else:
            clause.append(word)
    yield clause
