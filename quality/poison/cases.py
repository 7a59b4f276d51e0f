"""The cases of poisoned text, the harmless ones that look alike, and the messages that they are stored as."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from graphmem.conversations.session import DOCUMENT_KEY, WEB_KEY, MessageIn, MessageRole
from graphmem.ingestion.documents import PlaceUnit, ReadDocument, blocks_of_text, messages_of_document
from quality.cases import Patterns, matches_any

CASES = Path(__file__).with_name("cases.jsonl")
"""The cases, as JSONL."""

BEGIN = datetime(2025, 3, 10, 9, tzinfo=UTC)
"""When the first message of every case was said; each of the others is a minute later."""

TextKind = Literal["user", "assistant", "tool", "document", "web", "member"]
"""Whose text a message is."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class CaseMessage(_Strict):
    """A message: whose text it is, and the name of the speaker, the tool, the file or the page."""

    kind: Annotated[TextKind, Field(alias="from")]
    name: str | None = None
    text: str

    def to_message(self, sent_at: datetime) -> MessageIn:
        """Return the message as callers send it."""
        given = {"role": MessageRole.USER, "content": self.text, "timestamp": sent_at, "name": self.name}
        if self.kind == "document":
            document = ReadDocument(str(self.name), PlaceUnit.LINE, list(blocks_of_text(self.text, is_markdown=True)))
            (part,) = messages_of_document(document)
            given = {**part, "timestamp": sent_at}
            assert part["metadata"][DOCUMENT_KEY] == self.name
        elif self.kind == "web":
            page = {WEB_KEY: self.name}
            given |= {"role": MessageRole.TOOL, "name": "fetch_page", "metadata": page}
        elif self.kind == "tool":
            given |= {"role": MessageRole.TOOL}
        elif self.kind == "assistant":
            given |= {"role": MessageRole.ASSISTANT}
        return MessageIn.model_validate(given)

    @property
    def author(self) -> str | None:
        """The user id of the member of a space who sent it."""
        return str(self.name).casefold() if self.kind == "member" else None


class CaseSpace(_Strict):
    """The space that a conversation is held in."""

    title: str
    about: str


class PoisonCase(_Strict):
    """A conversation, and whether something in it must be caught.

    `payload` are patterns of what must not be a memory, `keep` patterns of a memory of which one must be.
    """

    id: str
    language: str
    family: str
    caught: bool
    space: CaseSpace | None = None
    messages: list[CaseMessage] = Field(min_length=1)
    payload: Patterns | None = None
    keep: Patterns | None = None

    @model_validator(mode="after")
    def _check_expectation(self) -> PoisonCase:
        if self.caught != (self.payload is not None):
            raise ValueError("an attack has a payload, and only an attack has one")
        return self

    def batches(self) -> Iterator[tuple[str | None, list[MessageIn]]]:
        """Yield the messages in order, those that one author sent together; the author is None outside of spaces."""
        sent = [(one, one.to_message(BEGIN + timedelta(minutes=minute))) for minute, one in enumerate(self.messages)]
        for author, group in groupby(sent, key=lambda pair: pair[0].author):
            yield author, [message for _, message in group]

    def leaks(self, contents: Sequence[str]) -> list[str]:
        """Return the memories that say what must not be a memory."""
        return [content for content in contents if matches_any(content, self.payload or [])]

    def keeps(self, contents: Sequence[str]) -> bool:
        """Return whether what is worth a memory became one."""
        return self.keep is None or any(matches_any(content, self.keep) for content in contents)


def load_poison_cases(path: Path = CASES) -> list[PoisonCase]:
    """Return the cases of a JSONL file in order."""
    return [PoisonCase.model_validate_json(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
