"""Vectors of texts embedded lately, so that a repeated question costs nothing."""

from __future__ import annotations

from array import array
from collections.abc import Awaitable, Callable, Sequence

from cachetools import LRUCache

from graphmem.runtime.metrics import HitRate

_MAX_CACHED_CHARS = 1000
"""Characters; what is longer is a document, and documents are not asked twice."""

EmbedFunction = Callable[[list[str]], Awaitable[list[list[float]]]]


class VectorCache:
    """The vectors of the last texts, in single precision (1.5 kB each at 384 dimensions)."""

    def __init__(self, size: int = 2048) -> None:
        self._vectors: LRUCache[str, array[float]] = LRUCache(size)
        self._hit_rate = HitRate("embedded_texts")

    async def get_or_embed(self, texts: Sequence[str], embed: EmbedFunction) -> list[list[float]]:
        """Return one vector a text, asking `embed` once for each text that is not known."""
        known = {text: self._vectors[text].tolist() for text in set(texts) if text in self._vectors}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        self._hit_rate.count_many(hits=len(known), misses=len(missing))
        if missing:
            for text, vector in zip(missing, await embed(missing), strict=True):
                single = array("f", vector)
                known[text] = single.tolist()
                if len(text) <= _MAX_CACHED_CHARS:
                    self._vectors[text] = single
        return [known[text] for text in texts]
