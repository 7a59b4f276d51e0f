"""Reading documents of several formats as text, and splitting them into parts whose ids name a page or lines."""

from __future__ import annotations

import email.policy
import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.parser import BytesParser
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from graphmem.conversations.session import DOCUMENT_KEY
from graphmem.runtime.errors import ConfigurationError, InvalidInput

if TYPE_CHECKING:
    from bs4.element import NavigableString, Tag


_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$")
_FENCE = re.compile(r"^\s*(```|~~~)")


class PlaceUnit(StrEnum):
    """The unit for places in a document."""

    PAGE = "page"
    LINE = "line"


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A paragraph, a heading or a page; `first` to `last` are its pages or lines, counted from 1.

    `level` is the level of a heading, 0 for other blocks.
    """

    text: str
    first: int
    last: int
    level: int = 0


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document: its name, its text in order, and its date if it states one."""

    name: str
    unit: PlaceUnit
    blocks: list[TextBlock]
    written_at: datetime | None = None


def blocks_of_text(text: str, *, is_markdown: bool) -> Iterator[TextBlock]:
    """Yield the paragraphs of a text and, for Markdown, its headings; a fenced code block is one paragraph."""
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
    """Split a block into parts of at most `size` characters, between sentences or words where possible."""
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


SUFFIXES = {".md", ".markdown", ".txt", ".pdf", ".html", ".htm", ".eml"}
"""Supported file name suffixes."""

_MAIL_HEADERS = ("Subject", "From", "To", "Cc", "Date")

_UNSEEN = {"script", "style", "template", "noscript", "head", "svg"}
_BLOCK_TAGS = {
    "address", "article", "aside", "blockquote", "body", "caption", "dd", "div", "dl", "dt", "fieldset", "figcaption",
    "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "html", "li", "main", "nav", "ol", "p",
    "pre", "section", "table", "tr", "ul",
}  # fmt: skip


def read_document(name: str, raw: bytes) -> ReadDocument:
    """Return the text of a document in blocks.

    Raises InvalidInput for a document that cannot be read or has no text, ConfigurationError when the extra
    `documents` is not installed.
    """
    suffix = Path(name).suffix.lower()
    if suffix == ".pdf":
        document = ReadDocument(name, PlaceUnit.PAGE, list(_blocks_of_pdf(name, raw)))
    elif suffix in (".html", ".htm"):
        document = ReadDocument(name, PlaceUnit.LINE, list(_blocks_of_html(raw)))
    elif suffix == ".eml":
        document = _read_mail(name, raw)
    else:
        text = raw.decode("utf-8-sig")
        blocks = blocks_of_text(text, is_markdown=suffix in (".md", ".markdown"))
        document = ReadDocument(name, PlaceUnit.LINE, list(blocks))
    if not any(block.text.strip() for block in document.blocks):
        raise InvalidInput(f"{name} has no text: a scanned document needs text recognition first.")
    return document


def _blocks_of_pdf(name: str, raw: bytes) -> Iterator[TextBlock]:
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError as error:
        _raise_missing_extra(error)
    try:
        reader = PdfReader(io.BytesIO(raw))
        if reader.is_encrypted and not reader.decrypt(""):
            raise InvalidInput(f"{name} is protected by a password: save it without one.")
        for number, page in enumerate(reader.pages, 1):
            if text := page.extract_text().strip():
                yield TextBlock(text, number, number)
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # Broken files make the library raise many kinds of errors.
        raise InvalidInput(f"{name} cannot be read as PDF ({type(error).__name__}): check the file.") from error


def _blocks_of_html(raw: bytes | str) -> Iterator[TextBlock]:
    """Yield the text of each innermost block, with the source line where it begins."""
    try:
        from bs4 import BeautifulSoup
        from bs4.element import Comment, NavigableString
    except ImportError as error:
        _raise_missing_extra(error)
    soup = BeautifulSoup(raw, "html.parser")
    holder: Tag | None = None
    cell: Tag | None = None
    texts: list[str] = []
    for node in soup.descendants:
        if not isinstance(node, NavigableString) or isinstance(node, Comment) or _is_hidden(node):
            continue
        block = next((parent for parent in node.parents if parent.name in _BLOCK_TAGS), node.parent)
        if block is not holder:
            if not node.strip():
                continue
            if holder is not None:
                yield _make_block(holder, texts)
            holder, cell, texts = block, None, []
        own_cell = next((parent for parent in node.parents if parent.name in ("td", "th")), None)
        if node.strip() and own_cell is not cell:
            texts += [" | "] if cell is not None else []
            cell = own_cell
        texts.append(str(node))
    if holder is not None:
        yield _make_block(holder, texts)


def _is_hidden(node: NavigableString) -> bool:
    return any(parent.name in _UNSEEN for parent in node.parents)


def _make_block(tag: Tag, texts: list[str]) -> TextBlock:
    text = "".join(texts)
    level = int(tag.name[1]) if tag.name in ("h1", "h2", "h3", "h4", "h5", "h6") else 0
    line = tag.sourceline or 1
    return TextBlock(text.strip("\n") if tag.name == "pre" else " ".join(text.split()), line, line, level)


def _read_mail(name: str, raw: bytes) -> ReadDocument:
    """Return an e-mail's headers and text, with line numbers; attachments are left out."""
    message = BytesParser(_class=EmailMessage, policy=email.policy.default).parsebytes(raw)
    headers = [f"{header}: {message[header]}" for header in _MAIL_HEADERS if message[header]]
    body = message.get_body(("plain", "html"))
    if not headers or body is None:
        raise InvalidInput(f"{name} is not an e-mail with a text.")
    try:
        content = body.get_content()
    except (LookupError, ValueError) as error:
        raise InvalidInput(f"The text of {name} has an unknown encoding ({error}).") from error
    is_html = body.get_content_subtype() == "html"
    blocks = _blocks_of_html(content) if is_html else blocks_of_text(content, is_markdown=False)
    date = message["Date"].datetime if message["Date"] else None
    return ReadDocument(
        name,
        PlaceUnit.LINE,
        [TextBlock("\n".join(headers), 1, 1), *blocks],
        written_at=date if date and date.tzinfo else None,
    )


def _raise_missing_extra(error: ImportError) -> NoReturn:
    raise ConfigurationError(
        "Reading PDF and HTML needs the extra `documents`: run `pip install graphmem[documents]`."
    ) from error


CHUNK_CHARACTERS = 2_000
"""Maximum characters per part: about 500 tokens, so that a search finds a passage rather than a document."""

MAX_NAME_LENGTH = 120
"""Maximum characters of a document's name in ids."""


@dataclass(frozen=True, slots=True)
class DocumentChunk:
    """A part of a document: its text, the headings above it, and its pages or lines."""

    text: str
    headings: tuple[str, ...]
    first: int
    last: int


def split_document(document: ReadDocument, size: int = CHUNK_CHARACTERS) -> Iterator[DocumentChunk]:
    """Yield the parts of a document: consecutive blocks under the same heading and on one page."""
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
    """Return a document as messages, one per part, in order.

    A message id has the place as a fragment, `handbook.pdf#page=3`, and a hash of the text, so that an unchanged part
    is not stored or extracted again. The first line of the content names the place for the model.
    """
    messages = []
    occurrences: dict[str, int] = {}
    for chunk in split_document(document):
        place = str(chunk.first) if chunk.first == chunk.last else f"{chunk.first}-{chunk.last}"
        digest = hashlib.sha256(chunk.text.encode()).hexdigest()[:12]
        key = f"{document.name[-MAX_NAME_LENGTH:]}#{document.unit.value}={place}&sha={digest}"
        occurrences[key] = occurrences.get(key, 0) + 1
        metadata: dict[str, Any] = {DOCUMENT_KEY: document.name, document.unit.value: chunk.first}
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
