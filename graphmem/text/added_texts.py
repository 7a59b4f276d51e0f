"""Tagged text that nobody said: contexts of graphmem, notes of coding agents, and a model's thoughts."""

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


_THOUGHT_TAGS = "think|thinking|thought|thoughts|reasoning"
_THOUGHTS = re.compile(rf"<({_THOUGHT_TAGS})>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_END_OF_THOUGHTS = re.compile(rf"</(?:{_THOUGHT_TAGS})>", re.IGNORECASE)
"""Ends thoughts whose opening tag was part of the prompt, as in the chat templates of several models."""


def fence_context(tag: str, text: str, attributes: str = "") -> str:
    """Return a context between tags; nothing in it can close them, or open those of a program that adds texts."""
    return f"<{tag}{attributes}>\n{escape_tags(text, _TAGS)}\n</{tag}>"


def without_added_texts(text: str) -> str:
    """Return what was said, without what a program added to it."""
    return _ADDED.sub("", text).strip()


def without_thoughts(text: str) -> str:
    """Return what a model says in an answer, without the thoughts that it wrote into it.

    Thoughts that were cut off before their closing tag reach to the end of the answer.
    """
    if "<" not in text:
        return text
    said = _THOUGHTS.sub("", text)
    if ends := [*_END_OF_THOUGHTS.finditer(said)]:
        said = said[ends[-1].end() :]
    return said.strip() if said != text else text
