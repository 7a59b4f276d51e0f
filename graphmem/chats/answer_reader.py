"""Reading an answer while its bytes pass by, streamed or not. Pure."""

from __future__ import annotations

import json
from typing import Any

from graphmem.chats.protocol import ChatAnswer, ChatProtocol

MAX_ANSWER_BYTES = 16 * 1024 * 1024
"""Bytes of an answer that are read; a longer one is passed on and not stored."""

_EVENT_STREAM = "text/event-stream"


class AnswerReader:
    """Reads the answer to one request: `feed` takes its bytes as they come, `finish` returns what they said."""

    def __init__(self, protocol: ChatProtocol, content_type: str) -> None:
        self._protocol = protocol
        self._is_stream = content_type.partition(";")[0].strip().lower() == _EVENT_STREAM
        self._answer = ChatAnswer()
        self._unread = bytearray()
        self._size = 0

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

    def finish(self) -> ChatAnswer | None:
        """Return the answer; None for one that broke off, cannot be read or is too long."""
        if self._size > MAX_ANSWER_BYTES:
            return None
        if not self._is_stream:
            body = _parse_object(bytes(self._unread))
            self._answer = self._protocol.read_answer(body) if body else self._answer
        return self._answer if self._answer.is_complete else None

    def _read_line(self, line: bytes) -> None:
        """Read a line of the stream: each event of these protocols has its JSON in one line."""
        field, _, value = line.rstrip(b"\r").partition(b":")
        if field == b"data" and (event := _parse_object(value)):
            self._protocol.read_event(event, self._answer)


def _parse_object(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
