"""Token counts of GPT-4 (cl100k_base); the vocabulary is part of the package `bpe-openai`."""

from __future__ import annotations

from functools import cache
from typing import Any

from graphmem.text.storable import replace_surrogates


@cache
def _encoding() -> Any:
    # Loading the vocabulary takes half a second, so it does not happen at import.
    from bpe_openai import get_encoding

    return get_encoding("cl100k_base")


def count_tokens(text: str) -> int:
    """Return how many cl100k_base tokens `text` has; the names of special tokens count as plain text."""
    return len(_encoding().encode_ordinary(replace_surrogates(text)))


def truncate_to_tokens(text: str, limit: int) -> str:
    """Return the beginning of `text`, cut between characters, that has at most `limit` tokens."""
    if limit <= 0:
        return ""
    text = replace_surrogates(text)
    tokens = _encoding().encode_ordinary(text)
    if len(tokens) <= limit:
        return text
    while True:
        kept: str = _encoding().decode_bytes(tokens[:limit]).decode("utf-8", "ignore")
        # Without the character that the cut split, the rest can have more tokens than before.
        recounted = _encoding().encode_ordinary(kept)
        if len(recounted) <= limit:
            return kept
        tokens = recounted
