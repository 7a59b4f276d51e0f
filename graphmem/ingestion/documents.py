"""Reading documents by their format: Markdown, text, PDF, HTML and e-mail."""

from __future__ import annotations

import email.policy
import io
import logging
from collections.abc import Iterator
from email.message import EmailMessage
from email.parser import BytesParser
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from graphmem.ingestion.blocks import (
    PlaceUnit,
    ReadDocument,
    TextBlock,
    blocks_of_text,
)
from graphmem.runtime.errors import ConfigurationError, InvalidInput

if TYPE_CHECKING:
    from bs4.element import NavigableString, Tag

SUFFIXES = {".md", ".markdown", ".txt", ".pdf", ".html", ".htm", ".eml"}
"""Endings of the names of documents."""

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
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    try:
        reader = PdfReader(io.BytesIO(raw))
        if reader.is_encrypted and not reader.decrypt(""):
            raise InvalidInput(f"{name} is protected by a password: save it without one.")
        for number, page in enumerate(reader.pages, 1):
            if text := page.extract_text().strip():
                yield TextBlock(text, number, number)
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # Broken files make the library raise errors of many kinds.
        raise InvalidInput(f"{name} cannot be read as PDF ({type(error).__name__}): check the file.") from error


def _blocks_of_html(raw: bytes | str) -> Iterator[TextBlock]:
    """Yield the text of each innermost block, with the line that it begins at in the source."""
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
    """Return an e-mail: its headers and its text, with the lines of the text; attachments are left out."""
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
