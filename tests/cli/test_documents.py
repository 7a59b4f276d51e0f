"""Ingesting documents: each part has its page or its lines, and each fact points to them."""

from __future__ import annotations

import json
from email.message import EmailMessage

import pytest

from graphmem.cli.ingest import read_document_batches
from graphmem.conversations.session import MessageIn
from graphmem.runtime.errors import InvalidInput
from tests.cli.conftest import Cli
from tests.model_server import ModelServer

MARKDOWN = """# Tidepool

A sensor network for the coast.

## Deployment

Run `make ship`.

```sh
# no heading
make ship
```
"""

HTML = """<html><head><title>Plan</title><style>p {}</style></head><body>
<h1>Plan</h1>
<p>The launch is on <b>12 May</b>.</p>
<!-- hidden -->
<table>
<tr><td>Port</td><td>8321</td></tr>
</table>
<script>evil()</script>
<div>Questions to Omar.</div></body></html>"""


def make_pdf(*pages: str) -> bytes:
    """Return a PDF with one line of text a page."""
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        font,
    ]
    for index, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET"
        box = "/MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R {box} /Contents {5 + 2 * index} 0 R >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    body, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n".encode()
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return body + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{trailer}".encode()


def make_mail() -> bytes:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Müsli", "Ada <ada@example.com>", "omar@example.com"
    mail["Date"] = "Mon, 01 Jun 2026 12:00:00 +0200"
    mail.set_content("Hello Omar,\n\nthe order of Müsli arrives on Friday.\n")
    mail.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="order.pdf")
    return mail.as_bytes()


def read(name: str, raw: bytes) -> list[MessageIn]:
    [batch] = read_document_batches(name, raw)
    assert batch.session_id == name
    return batch.messages


def places(messages: list[MessageIn]) -> list[str]:
    return [str(message.id).partition("&")[0] for message in messages]


def test_markdown_is_divided_at_headings() -> None:
    messages = read("notes.md", MARKDOWN.encode())
    assert places(messages) == ["notes.md#line=3", "notes.md#line=7-12"]
    assert messages[0].content == "[From the document notes.md, line 3, Tidepool]\nA sensor network for the coast."
    assert messages[1].content.startswith("[From the document notes.md, lines 7 to 12, Tidepool > Deployment]\nRun")
    assert "# no heading" in messages[1].content
    assert messages[1].metadata == {"document": "notes.md", "line": 7, "last_line": 12}
    assert [message.id for message in read("notes.md", MARKDOWN.encode())] == [message.id for message in messages]


def test_a_long_text_is_divided_between_sentences() -> None:
    text = "First line.\n\n" + "A sentence of some length stands here. " * 200
    messages = read("long.txt", text.encode())
    assert len(messages) > 4
    assert all(len(message.content) < 2_200 for message in messages)
    assert all(message.content.endswith(".") for message in messages)
    assert len({message.id for message in messages}) == len(messages)


def test_a_pdf_has_pages() -> None:
    messages = read("book.pdf", make_pdf("The port is 8321.", "", "Omar sails."))
    assert places(messages) == ["book.pdf#page=1", "book.pdf#page=3"]
    assert messages[1].content == "[From the document book.pdf, page 3]\nOmar sails."


def test_html_has_the_lines_of_its_source_and_shows_what_a_reader_sees() -> None:
    messages = read("plan.html", HTML.encode())
    assert places(messages) == ["plan.html#line=3-9"]
    text = messages[0].content
    assert "Plan]\nThe launch is on 12 May.\n\nPort | 8321" in text
    assert "Questions to Omar." in text
    assert not [word for word in ("evil", "hidden", "p {}") if word in text]


def test_an_e_mail_has_its_headers_and_its_date() -> None:
    [message] = read("mail.eml", make_mail())
    assert "Subject: Müsli\nFrom: Ada <ada@example.com>" in message.content
    assert "the order of Müsli arrives on Friday." in message.content
    assert "PDF" not in message.content
    assert message.timestamp
    assert message.timestamp.isoformat() == "2026-06-01T12:00:00+02:00"


@pytest.mark.parametrize(
    ("name", "raw"), [("a.pdf", b"no pdf"), ("a.md", b" \n"), ("a.eml", b""), ("b.pdf", make_pdf(""))]
)
def test_a_document_without_text_is_refused(name: str, raw: bytes) -> None:
    with pytest.raises(InvalidInput, match=name):
        read_document_batches(name, raw)


@pytest.mark.usefixtures("served")
async def test_facts_of_a_document_point_to_their_page(cli_with_models: Cli, models: ModelServer, user: str) -> None:
    path = cli_with_models.folder / "book.pdf"
    path.write_bytes(make_pdf("Nothing to remember here.", "Tidepool listens on port 8321."))
    candidate = {
        "content": "Tidepool listens on port 8321",
        "type": "fact",
        "subject": {"name": "Tidepool", "type": "Project"},
        "predicate": "LISTENS_ON",
        "object": {"name": "port 8321", "type": "Thing"},
        "entities": [],
        "valid_at": None,
        "invalid_at": None,
        "confidence": 0.9,
        "importance": 0.5,
        "tags": [],
        "domain": None,
        "single_valued": False,
        "retracts": False,
        "messages": [2],
        "screening": {"speech": "informs", "addressee": None, "quote": "Tidepool listens on port 8321"},
    }
    models.completion = json.dumps(
        {"skip": False, "reason": "", "keywords": [], "names": [], "candidates": [candidate]}
    )
    done = await cli_with_models("ingest", "--user", user, "book.pdf", "--json")
    assert done.code == 0, done.err
    found = await cli_with_models("search", "--user", user, "Which port does Tidepool use?", "--json")
    source = found.json["results"][0]["memory"]["source"]
    assert source["session_id"] == "book.pdf"
    assert [place.partition("&")[0] for place in source["message_ids"]] == ["book.pdf#page=2"]
    again = await cli_with_models("ingest", "--user", user, "book.pdf")
    assert "known already" in again.out
