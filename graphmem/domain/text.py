"""Text as it is compared: normal forms, content hashes and name keys."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator

_SPACES = re.compile(r"\s+")


def normalise(text: str) -> str:
    """Return `text` in NFKC, case-folded, with runs of white space as one space."""
    return _SPACES.sub(" ", unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())).strip()


def content_hash(content: str) -> str:
    """Return the SHA-256 (hex) of the normalised statement, without its closing full stop or exclamation mark."""
    return hashlib.sha256(normalise(content).rstrip(".!。 ").encode()).hexdigest()


def name_key(name: str) -> str:
    """Return the key under which an entity's name or alias is unique for its user."""
    return normalise(name)


def _check_storable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("contains a lone surrogate, which is not text") from error
    if "\x00" in text:
        raise ValueError("contains a NUL character")
    return text


def _strip_non_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text.strip()


StorableText = Annotated[str, AfterValidator(_check_storable)]
"""Any text that UTF-8 can carry, without NUL."""

NonBlankText = Annotated[StorableText, AfterValidator(_strip_non_blank)]
"""Text with at least one visible character, stripped."""
