"""The characters that cannot be stored as text: NUL, which Neo4j refuses, and lone surrogates, which UTF-8 refuses."""

from __future__ import annotations


def is_storable(text: str) -> bool:
    """Return whether `text` contains neither a NUL character nor a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in text


def check_storable(text: str) -> str:
    """Return `text` unchanged; raise ValueError if it cannot be stored."""
    if not is_storable(text):
        raise ValueError("contains a NUL character or a lone surrogate, which is not text")
    return text


def remove_unstorable(text: str) -> str:
    """Return `text` with a space for each NUL character and without lone surrogates."""
    return text.replace("\x00", " ").encode("utf-8", "ignore").decode()


def replace_surrogates(text: str) -> str:
    """Return `text` with a question mark for each lone surrogate."""
    return text.encode("utf-8", "replace").decode()
