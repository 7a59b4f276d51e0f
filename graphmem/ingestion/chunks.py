"""Documents in parts: messages whose ids name the page or the lines, so that each fact points to its place."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from graphmem.ingestion.blocks import (
    PlaceUnit,
    ReadDocument,
    TextBlock,
    split_block,
)

CHUNK_CHARACTERS = 2_000
"""Characters of one part at most: about 500 tokens, so that a search finds a place and not a document."""

MAX_NAME_LENGTH = 120
"""Characters of a document's name in ids."""


@dataclass(frozen=True, slots=True)
class DocumentChunk:
    """A part of a document: its text, the headings that it stands under, and its pages or lines."""

    text: str
    headings: tuple[str, ...]
    first: int
    last: int


def split_document(document: ReadDocument, size: int = CHUNK_CHARACTERS) -> Iterator[DocumentChunk]:
    """Yield the parts of a document: consecutive blocks under the same heading, of one page."""
    pending: list[TextBlock] = []
    headings: dict[int, str] = {}
    for block in document.blocks:
        if block.level:
            yield from _join(pending, headings)
            pending = []
            headings = {level: text for level, text in headings.items() if level < block.level}
            headings[block.level] = block.text
            continue
        for part in split_block(block, size):
            is_new_page = document.unit is PlaceUnit.PAGE and pending and part.first != pending[-1].last
            if is_new_page or sum(len(earlier.text) + 2 for earlier in pending) + len(part.text) > size:
                yield from _join(pending, headings)
                pending = []
            pending.append(part)
    yield from _join(pending, headings)


def _join(blocks: Sequence[TextBlock], headings: dict[int, str]) -> Iterator[DocumentChunk]:
    text = "\n\n".join(block.text for block in blocks if block.text.strip())
    if text:
        yield DocumentChunk(text, tuple(headings.values()), blocks[0].first, max(block.last for block in blocks))


def messages_of_document(document: ReadDocument) -> list[dict[str, Any]]:
    """Return a document as messages, the parts in order.

    The id of a message names the place as a fragment, `handbook.pdf#page=3`, and a hash of the text: a part that is
    unchanged is not stored or extracted again. The first line of the content names the place for the model.
    """
    messages = []
    occurrences: dict[str, int] = {}
    for chunk in split_document(document):
        place = str(chunk.first) if chunk.first == chunk.last else f"{chunk.first}-{chunk.last}"
        digest = hashlib.sha256(chunk.text.encode()).hexdigest()[:12]
        key = f"{document.name[-MAX_NAME_LENGTH:]}#{document.unit.value}={place}&sha={digest}"
        occurrences[key] = occurrences.get(key, 0) + 1
        metadata: dict[str, Any] = {"document": document.name, document.unit.value: chunk.first}
        if chunk.last != chunk.first:
            metadata[f"last_{document.unit.value}"] = chunk.last
        message = {
            "id": key if occurrences[key] == 1 else f"{key}&part={occurrences[key]}",
            "role": "user",
            "content": f"[{_describe_place(document, chunk)}]\n{chunk.text}",
            "metadata": metadata,
        }
        messages.append(message if document.written_at is None else message | {"timestamp": document.written_at})
    return messages


def _describe_place(document: ReadDocument, chunk: DocumentChunk) -> str:
    unit = document.unit.value
    place = f"{unit} {chunk.first}" if chunk.first == chunk.last else f"{unit}s {chunk.first} to {chunk.last}"
    parts = [f"From the document {document.name}", place, " > ".join(chunk.headings)]
    return ", ".join(part for part in parts if part)
