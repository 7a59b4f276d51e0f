"""Where the words of a quote stand in a text. Pure."""

from __future__ import annotations

import re

from graphmem.text.folding import UNSPACED_LETTER
from graphmem.text.normalising import fold

_WORD = re.compile(r"\w+")


def find_words(quote: str, text: str) -> tuple[int, int] | None:
    """Return the start and the end of the first place in a text that repeats the words of a quote, or None.

    Case, width and what stands between words make no difference. A quote without a word stands nowhere.
    """
    words = _WORD.findall(fold(quote).text)
    if not words:
        return None
    before = "" if UNSPACED_LETTER.match(words[0]) else r"(?<!\w)"
    after = "" if UNSPACED_LETTER.match(words[-1][-1]) else r"(?!\w)"
    pattern = before + r"[\W_]+".join(map(re.escape, words)) + after
    folded = fold(text)
    match = re.search(pattern, folded.text, re.IGNORECASE)
    return None if match is None else folded.original_span(*match.span())
