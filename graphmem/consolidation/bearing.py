"""What a statement denies and what its numbers belong to: a merge may not mix them up. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from graphmem.consolidation.lexicon import AGAINST, FILLERS, FOR, NEGATORS, NUMBER_WORDS
from graphmem.consolidation.wording import dates_of, read_number, stem

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_](?:[^\W_]|['’-](?=[^\W_]))*|[,;:.!?]", re.UNICODE)
_ENDS = frozenset([*",;:.!?", "and", "but", "while", "whereas", "und", "aber", "y", "pero", "et", "mais"])
"""What ends a clause, and with it the reach of a denial."""


def turned(sources: Iterable[str], result: str) -> list[str]:
    """Return the words that a result denies and no source does, or the other way round."""
    denied_before: set[str] = set()
    told_before: set[str] = set()
    for text in sources:
        denied, told = _sides(text)
        denied_before |= denied
        told_before |= told
    denied, told = _sides(result)
    return sorted((denied & told_before - denied_before) | (told & denied_before - told_before))


def displaced(sources: Iterable[str], result: str) -> list[str]:
    """Return the numbers of a result that stand with what another number of the sources stood with."""
    beside: dict[str, set[str]] = defaultdict(set)
    for text in sources:
        for numbers, words in _clauses(text):
            for each in numbers:
                beside[each] |= words
    found = set()
    for numbers, words in _clauses(result):
        for each in numbers & beside.keys():
            others = (len(words & beside[other]) for other in beside.keys() - numbers)
            if max(others, default=0) > len(words & beside[each]):
                found.add(each)
    return sorted(found)


def _sides(text: str) -> tuple[set[str], set[str]]:
    """Return the stems within the reach of a denial, and the others."""
    denied: set[str] = set()
    told: set[str] = set()
    for clause in _parts(text):
        denying = False
        for word in clause:
            if word in NEGATORS | AGAINST or word.endswith(("n't", "n’t")):
                denying = True
            elif word not in FILLERS | FOR and not word[0].isdigit():
                (denied if denying else told).add(stem(word))
    return denied, told


def _clauses(text: str) -> Iterator[tuple[set[str], set[str]]]:
    """Yield the numbers and the stems of each clause; those of dates are left out."""
    _, rest = dates_of(text)
    for clause in _parts(rest):
        told = [NUMBER_WORDS.get(word, word) for word in clause]
        numbers = {read_number(word) for word in told if word[0].isdigit()}
        yield numbers, {stem(word) for word in told if not word[0].isdigit() and word not in FILLERS}


def _parts(text: str) -> Iterator[list[str]]:
    part: list[str] = []
    for token in _TOKEN.findall(text):
        word = token.casefold()
        if word in _ENDS:
            yield part
            part = []
        else:
            part.append(word)
    yield part
