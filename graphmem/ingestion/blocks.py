"""The text of documents in blocks, such as paragraphs, each with its page or its lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$")
_FENCE = re.compile(r"^\s*(```|~~~)")


class PlaceUnit(StrEnum):
    """What places in a document are counted in."""

    PAGE = "page"
    LINE = "line"


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A paragraph, a heading or a page; `first` to `last` are the pages or lines that it stands at, from 1 on.

    `level` is that of a heading, 0 for other blocks.
    """

    text: str
    first: int
    last: int
    level: int = 0


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document: its name, its text in order, and when it was written, if it says so."""

    name: str
    unit: PlaceUnit
    blocks: list[TextBlock]
    written_at: datetime | None = None


def blocks_of_text(text: str, *, is_markdown: bool) -> Iterator[TextBlock]:
    """Yield the paragraphs of a text, and the headings of Markdown; a fenced block of code is one paragraph."""
    lines: list[str] = []
    first, is_fenced = 1, False
    for number, line in enumerate(text.splitlines(), 1):
        if is_markdown and _FENCE.match(line):
            is_fenced = not is_fenced
        heading = _HEADING.match(line) if is_markdown and not is_fenced else None
        if lines and (heading or not (line.strip() or is_fenced)):
            yield TextBlock("\n".join(lines), first, first + len(lines) - 1)
            lines = []
        if heading:
            yield TextBlock(heading[2], number, number, len(heading[1]))
        elif line.strip() or lines:
            first = first if lines else number
            lines.append(line.rstrip())
    if lines:
        yield TextBlock("\n".join(lines), first, first + len(lines) - 1)


def split_block(block: TextBlock, size: int) -> Iterable[TextBlock]:
    """Return a block in parts of at most `size` characters, cut between sentences or words where there are some."""
    if len(block.text) <= size:
        return [block]
    parts, rest, first = [], block.text, block.first
    is_lined = block.last - block.first == block.text.count("\n")
    while rest:
        end = _find_cut(rest, size)
        part, rest = rest[:end], rest[end:]
        last = first + part.rstrip("\n").count("\n") if is_lined else block.last
        if part.strip():
            parts.append(TextBlock(part.strip(), first, last))
        first = first + part.count("\n") if is_lined else block.first
    return parts


def _find_cut(text: str, size: int) -> int:
    if len(text) <= size:
        return len(text)
    for separator in ("\n", ". ", " "):
        cut = text.rfind(separator, size // 2, size)
        if cut > 0:
            return cut + len(separator)
    return size
