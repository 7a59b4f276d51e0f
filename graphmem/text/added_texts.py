"""Tagged parts of a text: graphmem contexts, notes of coding agents, and a model's thoughts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

# Invisible characters that could hide a tag from the pattern.
_INVISIBLE = r"[\s\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff]*"


def escape_tags(text: str, tags: Iterable[str]) -> str:
    """Return a text with `&lt;` for each `<` that would open or close one of the tags."""
    if "<" not in text or not (names := frozenset(tags)):
        return text
    return _opening(names).sub("&lt;", text)


@lru_cache(maxsize=64)
def _opening(names: frozenset[str]) -> re.Pattern[str]:
    either = "|".join(map(re.escape, sorted(names)))
    return re.compile(rf"<(?={_INVISIBLE}/?{_INVISIBLE}(?:{either})\b)", re.IGNORECASE)


HOOK_TAG = "graphmem-context"
"""The tag around a context injected by a coding agent's hook."""

PROMPT_TAG = "graphmem_context"
"""The tag around a context in a model's system prompt."""

_TAGS = (
    HOOK_TAG, PROMPT_TAG, "system-reminder", "command-name", "command-message", "command-args", "local-command-stdout",
    "local-command-stderr", "local-command-caveat",
)  # fmt: skip

_ADDED = re.compile(rf"<({'|'.join(_TAGS)})\b[^>]*>.*?</\1>", re.DOTALL)


def fence_line(text: str) -> str:
    """Return a stored text on one line, so that no part of it can be mistaken for a heading, a bullet or a tag."""
    return escape_tags(" ".join(text.split()), _TAGS)


MAX_LABEL_CHARACTERS = 80
"""Maximum characters of a name or title."""

_NO_LABEL = re.compile(r"[#<>\[\]{}|`*\\]|[.!?:;](?=\s)|[。！？；]")


def is_label(text: str) -> bool:
    """Return whether a one-line text can be a name or a title: short, without markup, and not several sentences."""
    return len(text) <= MAX_LABEL_CHARACTERS and not _NO_LABEL.search(re.sub(r"^\w{1,4}\.\s", "", text))


def fence_lines(texts: Iterable[str]) -> list[str]:
    """Return stored texts, each on one line."""
    return [fence_line(text) for text in texts]


def fence_values(value: object) -> object:
    """Return a JSON value with each of its texts fenced on one line."""
    match value:
        case str():
            return fence_line(value)
        case dict():
            return {name: fence_values(part) for name, part in value.items()}
        case list() | tuple():
            return [fence_values(part) for part in value]
    return value


def fence_text(text: str) -> str:
    """Return a text with its lines unchanged, but without opening or closing tags."""
    return escape_tags(text, _TAGS)


def name_source(what: str, named: object) -> str:
    """Return the origin of a text, with its name or address if it is one: "a web page (example.org)"."""
    if not isinstance(named, str):
        return what
    line = fence_line(named)
    return f"{what} ({line})" if line and is_label(line) else what


def fence_context(tag: str, text: str, attributes: str = "") -> str:
    """Return a context between tags, escaped so that it cannot close them or open tags of programs that add texts."""
    return f"<{tag}{attributes}>\n{fence_text(text)}\n</{tag}>"


def without_added_texts(text: str) -> str:
    """Return a message without the texts that a program added to it."""
    return _ADDED.sub("", text).strip()


_THOUGHT_TOKEN = re.compile(
    r"```|`[^`\n]*`|(?:[<◁]|(?-i:\[(?=/?THINK\])))(/?)(think|thinking|thought|reasoning)[>▷\]]", re.IGNORECASE
)
_FINAL_CHANNEL = re.compile(r"<\|channel\|>\s*final\b[^<]*<\|message\|>(.*?)(?:<\|\w+\|>|\Z)", re.DOTALL)
"""The answer in OpenAI's harmony format, in which thoughts have a channel of their own."""


def without_thoughts(text: str) -> str:
    """Return a model's answer without the thoughts that some servers leave in it; code is unchanged.

    A text that begins with truncated thoughts has no answer. Some templates put the opening tag into the prompt, so
    thoughts may end with a tag that was not opened.
    """
    if text.lstrip().startswith(("<|channel|>", "<|start|>")):
        return "".join(match[1] for match in _FINAL_CHANNEL.finditer(text)).strip()
    said: list[str] = []
    position, opened, is_code = 0, None, False
    for token in _THOUGHT_TOKEN.finditer(text):
        closes, tag = token.groups()
        if opened is not None:
            if closes and tag.lower() == opened[2].lower():
                position, opened = token.end(), None
        elif tag is None:
            is_code = is_code is not (token[0] == "```")
        elif is_code:
            continue
        elif closes:
            said, position = [], token.end()
        else:
            said.append(text[position : token.start()])
            opened = token
    if opened is None:
        said.append(text[position:])
    elif any(map(str.strip, said)):
        said.append(text[opened.start() :])  # the tag is only mentioned
    return "".join(said).strip()
