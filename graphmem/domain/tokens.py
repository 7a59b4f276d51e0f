"""Counting tokens as GPT-4 does (cl100k_base); the vocabulary comes inside the package `bpe-openai`."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def _encoding() -> Any:
    # The vocabulary takes half a second to load: not at import.
    from bpe_openai import get_encoding

    return get_encoding("cl100k_base")


def count_tokens(text: str) -> int:
    """Return how many cl100k_base tokens `text` has; special tokens are counted as the plain text they are."""
    return len(_encoding().encode_ordinary(_encodable(text)))


def truncate_to_tokens(text: str, limit: int) -> str:
    """Return the beginning of `text`, in whole characters, that has at most `limit` tokens."""
    if limit <= 0:
        return ""
    text = _encodable(text)
    tokens = _encoding().encode_ordinary(text)
    if len(tokens) <= limit:
        return text
    while True:
        kept: str = _encoding().decode_bytes(tokens[:limit]).decode("utf-8", "ignore")
        # What a cut leaves of a character can take more tokens than the whole did.
        again = _encoding().encode_ordinary(kept)
        if len(again) <= limit:
            return kept
        tokens = again


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
