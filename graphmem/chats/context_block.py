"""The block in which a context stands in a prompt, by which it is found again. Pure."""

from __future__ import annotations

import re

from graphmem.text.added_texts import PROMPT_TAG, fence_context

OPENING, CLOSING = f"<{PROMPT_TAG}>", f"</{PROMPT_TAG}>"

_BLOCK = re.compile(rf"\s*{OPENING}.*?{CLOSING}", re.DOTALL)


def make_context_block(preamble: str) -> str:
    """Return a context as it stands in a prompt."""
    return fence_context(PROMPT_TAG, preamble)


def is_context_block(text: str) -> bool:
    """Return whether a text is a context that `make_context_block` returned."""
    return text.startswith(OPENING) and text.rstrip().endswith(CLOSING)


def without_context_blocks(text: str) -> str:
    """Return a text without the contexts in it."""
    return _BLOCK.sub("", text).lstrip("\n") if OPENING in text else text


def with_context_block(text: str, block: str) -> str:
    """Return a system prompt with a context at its end, in place of an earlier one."""
    return "\n\n".join(part for part in (without_context_blocks(text), block) if part)
