"""Reading answers as they stream, and recording failures of memory without affecting the calls."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from threading import Lock
from typing import Any

from graphmem.chats.protocol import ChatAnswer, ChatProtocol
from graphmem.runtime.errors import GraphmemError
from graphmem.text.added_texts import without_thoughts


class ChatFailure(StrEnum):
    """The part of a chat's memory that failed."""

    READ = "read"
    CONTEXT = "context"
    ANSWER = "answer"
    STORE = "store"

    @property
    def text(self) -> str:
        """Its meaning, for the log."""
        return _TEXTS[self]


_TEXTS = {
    ChatFailure.READ: "a request cannot be read, so that its model is called without memory",
    ChatFailure.CONTEXT: "a model is called without memory",
    ChatFailure.ANSWER: "an answer cannot be read",
    ChatFailure.STORE: "the turns of a call are not stored",
}

log = logging.getLogger(__name__)


class ChatFailures:
    """Counts failures, and logs the first of consecutive failures of a kind; `on_failure` is called with the kind."""

    def __init__(self, on_failure: Callable[[ChatFailure], None] | None = None) -> None:
        self.count = 0
        self._on_failure = on_failure
        self._logged: set[ChatFailure] = set()
        self._lock = Lock()

    @contextmanager
    def noted(self, kind: ChatFailure, errors: tuple[type[Exception], ...] = (Exception,)) -> Iterator[None]:
        """Return a block whose `errors` are noted and suppressed."""
        try:
            yield
        except errors as error:
            with self._lock:
                self.count += 1
                is_first = kind not in self._logged
                self._logged.add(kind)
            if self._on_failure:
                self._on_failure(kind)
            if is_first:
                # The text of an unexpected error may quote the conversation.
                reason = error.detail if isinstance(error, GraphmemError) else type(error).__name__
                log.warning("%s: %s", kind.text, reason)
        else:
            self._logged.discard(kind)


MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""Most bytes read of an answer; a longer one is passed on but not stored."""

_EVENT_STREAM = "text/event-stream"


class AnswerReader:
    """Reads the answer to one request: `feed` takes its bytes as they arrive, `finish` returns its content."""

    def __init__(self, protocol: ChatProtocol, content_type: str) -> None:
        self._protocol = protocol
        self._is_stream = content_type.partition(";")[0].strip().lower() == _EVENT_STREAM
        self._answer = ChatAnswer()
        self._unread = bytearray()
        self._size = 0

    @property
    def is_complete(self) -> bool:
        """Whether the provider has signalled the end of the answer."""
        return self._answer.is_complete

    def feed(self, data: bytes) -> None:
        """Read the next bytes."""
        self._size += len(data)
        if self._size > MAX_ANSWER_BYTES:
            self._unread.clear()
            return
        self._unread += data
        if self._is_stream and b"\n" in data:
            *lines, rest = self._unread.split(b"\n")
            self._unread = rest
            for line in lines:
                self._read_line(bytes(line))

    def finish(self, *, is_broken: bool = False) -> ChatAnswer | None:
        """Return the answer without the model's thoughts; None if it cannot be read or is too long.

        A stream need not signal its end: servers leave the finish reason out, and callers stop reading. The text read
        so far is the answer, unless the connection broke (`is_broken`) or the provider reported an error.
        """
        if self._size > MAX_ANSWER_BYTES:
            return None
        answer = self._answer
        if not self._is_stream:
            body = _parse_object(bytes(self._unread))
            answer = self._protocol.read_answer(body) if body else answer
        elif self._unread:
            self._read_line(bytes(self._unread))  # the last line of a stream may lack its line break
        answer.text = without_thoughts(answer.text)
        ended = answer.is_complete or (self._is_stream and not is_broken and bool(answer.text))
        return answer if ended and not answer.has_failed else None

    def _read_line(self, line: bytes) -> None:
        """Read a line of the stream; in these protocols, an event's JSON is on one line."""
        field, _, value = line.rstrip(b"\r").partition(b":")
        if field == b"data" and (event := _parse_object(value)):
            self._answer.has_failed |= bool(event.get("error"))
            self._protocol.read_event(event, self._answer)


def _parse_object(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class PassingAnswer:
    """Reads an answer that is passed on, and hands it over at its end; failures are noted and do not stop the answer.

    `on_answer` is called once, with None for an answer that broke off or cannot be read.
    """

    def __init__(
        self, reader: AnswerReader, failures: ChatFailures, on_answer: Callable[[ChatAnswer | None], None]
    ) -> None:
        self._reader: AnswerReader | None = reader
        self._failures = failures
        self._on_answer: Callable[[ChatAnswer | None], None] | None = on_answer

    @property
    def is_complete(self) -> bool:
        """Whether the provider has signalled the end of the answer."""
        return self._reader is not None and self._reader.is_complete

    def feed(self, data: bytes) -> None:
        """Read the next bytes."""
        reader, self._reader = self._reader, None
        if reader is not None:
            with self._failures.noted(ChatFailure.ANSWER):
                reader.feed(data)
                self._reader = reader

    def end(self, *, is_broken: bool = False) -> None:
        """Hand over the answer on the first call; `is_broken` means that the provider's connection broke off."""
        on_answer, self._on_answer = self._on_answer, None
        if on_answer is not None:
            with self._failures.noted(ChatFailure.ANSWER):
                on_answer(self._reader.finish(is_broken=is_broken) if self._reader else None)
