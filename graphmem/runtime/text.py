"""The text fields of the domain: their types, content hashes and name keys."""

from __future__ import annotations

import hashlib
from typing import Annotated

from pydantic import AfterValidator

from graphmem.text.folding import is_blank
from graphmem.text.normalising import normalise
from graphmem.text.storable import check_storable


def content_hash(content: str) -> str:
    """Return the SHA-256 (hex) of the normalised statement, without its closing full stop or exclamation mark."""
    return hashlib.sha256(normalise(content).rstrip(".!。 ").encode()).hexdigest()


def name_key(name: str) -> str:
    """Return the key under which an entity's name or alias is unique for its user."""
    return normalise(name)


def _strip_non_blank(text: str) -> str:
    if is_blank(text):
        raise ValueError("must not be empty")
    return text.strip()


StorableText = Annotated[str, AfterValidator(check_storable)]
"""Text that UTF-8 and Neo4j can store."""

NonBlankText = Annotated[StorableText, AfterValidator(_strip_non_blank)]
"""Text with at least one visible character, stripped."""


def check_normalised_length(text: str, limit: int) -> str:
    """Return `text` unchanged; raise ValueError when its normalised form, which indexes hold, is over `limit`.

    One character may become up to 18 when it is normalised.
    """
    if not text.isascii() and len(normalise(text)) > limit:
        raise ValueError(f"must have at most {limit} characters when it is normalised (NFKC)")
    return text
