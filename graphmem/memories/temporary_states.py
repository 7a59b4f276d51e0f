"""Temporary states, such as a current balance or a transaction of today, which never become memories."""

from __future__ import annotations

import re

from graphmem.tenants.profiles import TemporaryStateRules
from graphmem.text.folding import fold

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^\W\d_])|\n+")


def is_temporary_state(text: str, rules: TemporaryStateRules) -> bool:
    """Return whether a sentence of the text states a condition of the moment and nothing lasting."""
    lasting, temporary = rules.compiled
    return any(
        not lasting.search(sentence) and any(pattern.search(sentence) for pattern in temporary)
        for sentence in _SENTENCE_END.split(fold(text).text)
    )
