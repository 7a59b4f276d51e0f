"""What programs add to what a user says, in tags: contexts of graphmem, and notes of coding agents."""

from __future__ import annotations

import re

HOOK_TAG = "graphmem-context"
"""The tag around a context that a hook of a coding agent injects."""

PROMPT_TAG = "graphmem_context"
"""The tag around a context in the system prompt of a model."""

_ADDED = re.compile(
    rf"<({HOOK_TAG}|{PROMPT_TAG}|system-reminder|command-name|command-message|command-args|local-command-stdout"
    r"|local-command-stderr|local-command-caveat)\b[^>]*>.*?</\1>",
    re.DOTALL,
)


def without_added_texts(text: str) -> str:
    """Return what was said, without what a program added to it."""
    return _ADDED.sub("", text).strip()
