"""Excerpts: the part of a long message that says most about a question. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from graphmem.context.relevance import content_word_prefixes
from graphmem.text.token_counts import count_tokens, truncate_to_tokens

CHARACTERS_PER_TOKEN = 4
"""Characters by which the length of a part is estimated; an excerpt is counted exactly at the end."""

OMISSION = "…"
"""Stands for what an excerpt leaves out."""

_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])\s+|\s*\n\s*")


class ExcerptWords:
    """The words of a question, by which the part of a text that answers it is found."""

    def __init__(self, question: str) -> None:
        prefixes = content_word_prefixes(question)
        self.count = len(prefixes)
        alternatives = "|".join(f"({re.escape(prefix)})" for prefix in prefixes)
        self._pattern = re.compile(rf"(?<![^\W_])(?:{alternatives})" if prefixes else r"(?!)")

    def count_in(self, text: str) -> int:
        """Return how many of the words a text has."""
        return len({number for _, number in self._find(text)})

    def excerpt(self, text: str, limit: int) -> str:
        """Return the part of a text that has most of the words, on one line and in at most `limit` tokens.

        It is consecutive sentences, of parts with equally many words the first. A part from further on follows the
        first sentence of the text, which says what the text is about.
        """
        flat = " ".join(text.split())
        if len(flat) <= 2 * CHARACTERS_PER_TOKEN * limit and count_tokens(flat) <= limit:
            return flat
        start, end = self._find_best_part(text, CHARACTERS_PER_TOKEN * limit)
        if start:
            opening = _opening(text, limit // 2)
            rest = limit - count_tokens(opening) - 1
            part = self._find_best_part(text, CHARACTERS_PER_TOKEN * rest)
            if part[0]:
                return opening + _cut_out(text, *part, rest)
        return _cut_out(text, start, end, limit)

    def _find_best_part(self, text: str, limit: int) -> tuple[int, int]:
        """Return where the best part of a text starts and ends, of at most `limit` characters or one sentence."""
        starts = [0, *(match.end() for match in _SENTENCE_END.finditer(text) if match.end() < len(text)), len(text)]
        words: list[set[int]] = [set() for _ in starts]
        for position, number in self._find(text):
            words[bisect_right(starts, position) - 1].add(number)
        best, most = (starts[0], starts[1]), -1
        last = 1
        for first in range(len(starts) - 1):
            last = max(last, first + 1)
            while last + 1 < len(starts) and starts[last + 1] - starts[first] <= limit:
                last += 1
            found = len(set().union(*words[first:last]))
            if found > most:
                best, most = (starts[first], starts[last]), found
        return best

    def _find(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the position and the number of each of the words found."""
        folded = text.casefold()
        for match in self._pattern.finditer(folded if len(folded) == len(text) else text.lower()):
            yield match.start(), match.lastindex or 0


def _opening(text: str, limit: int) -> str:
    """Return the first sentence of a text, in at most `limit` tokens."""
    end = _SENTENCE_END.search(text)
    sentence = " ".join(text[: end.start() if end else len(text)].split())
    return sentence if count_tokens(sentence) <= limit else truncate_to_tokens(sentence, limit).rstrip()


def _cut_out(text: str, start: int, end: int, limit: int) -> str:
    """Return a part of a text on one line, in at most `limit` tokens, with marks of what it leaves out."""
    part = " ".join(text[start:end].split())
    before, after = (OMISSION if start else ""), (OMISSION if end < len(text) else "")
    if count_tokens(f"{before}{part}{after}") > limit:
        part, after = truncate_to_tokens(part, limit - count_tokens(before + OMISSION)).rstrip(), OMISSION
    return f"{before}{part}{after}"
