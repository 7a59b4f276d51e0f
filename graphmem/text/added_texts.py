"""What programs add to what a user says, in tags: contexts of graphmem, and notes of coding agents."""

from __future__ import annotations

import re

from graphmem.text.tags import escape_tags

HOOK_TAG = "graphmem-context"
"""The tag around a context that a hook of a coding agent injects."""

PROMPT_TAG = "graphmem_context"
"""The tag around a context in the system prompt of a model."""

_TAGS = (
    HOOK_TAG, PROMPT_TAG, "system-reminder", "command-name", "command-message", "command-args", "local-command-stdout",
    "local-command-stderr", "local-command-caveat",
)  # fmt: skip

_ADDED = re.compile(rf"<({'|'.join(_TAGS)})\b[^>]*>.*?</\1>", re.DOTALL)


def fence_context(tag: str, text: str, attributes: str = "") -> str:
    """Return a context between tags; nothing in it can close them, or open those of a program that adds texts."""
    return f"<{tag}{attributes}>\n{escape_tags(text, _TAGS)}\n</{tag}>"


def without_added_texts(text: str) -> str:
    """Return what was said, without what a program added to it."""
    return _ADDED.sub("", text).strip()
