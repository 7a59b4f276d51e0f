"""Split of domain/session."""

from __future__ import annotations


def embedding_text(name: str | None, content: str) -> str:
    """Return the text of a message that is embedded: with the speaker's name, if known."""
    return f"{name}: {content}" if name else content
