"""Which words a statement denies: a merge may not turn them round. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from graphmem.consolidation.lexicon import AGAINST, FILLERS, FOR, NEGATORS
from graphmem.consolidation.wording import stem

_TOKEN = re.compile(r"[^\W\d_](?:[^\W_]|['’-](?=[^\W_]))*|[,;:.!?]", re.UNICODE)
_ENDS = frozenset([*",;:.!?", "and", "but", "while", "whereas", "und", "aber", "y", "pero", "et", "mais"])
"""What ends the reach of a denial."""


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


def _sides(text: str) -> tuple[set[str], set[str]]:
    """Return the stems within the reach of a denial, and the others."""
    denied: set[str] = set()
    told: set[str] = set()
    denying = False
    for token in _TOKEN.findall(text):
        word = token.casefold()
        if word in _ENDS:
            denying = False
        elif word in NEGATORS | AGAINST or word.endswith(("n't", "n’t")):
            denying = True
        elif word not in FILLERS | FOR:
            (denied if denying else told).add(stem(word))
    return denied, told
