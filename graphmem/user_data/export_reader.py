"""Reading an export of any size from a file: one entry after the other, never the whole of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from graphmem.runtime.errors import InvalidInput
from graphmem.user_data.export_document import UserExport, begins_as_export, upcast_export
from graphmem.user_data.export_entries import (
    EXPORT_SECTIONS,
    ExportedEntity,
    ExportedLink,
    ExportedRecord,
    ExportedVersion,
    ExportEntry,
    Section,
)
from graphmem.user_data.formats import to_invalid_input

CHUNK_BYTES = 1 << 20
"""Bytes that are read from the file at once."""

MAX_ENTRY_BYTES = 64 << 20
"""Bytes of the longest entry: what is longer is no entry, but a file that is not JSON."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]|"', re.DOTALL)
"""A text, a bracket, or the beginning of a text whose end has not been read yet."""

_SPACE = b" \t\r\n"
_OPENING, _CLOSING = frozenset(b"{["), frozenset(b"}]")
_OPENING_LIST, _QUOTE = b"["[0], b'"'[0]
_SCALAR_END = re.compile(rb"[,}\]\s]")

_ADAPTERS: dict[Section, TypeAdapter[Any]] = {
    "entities": TypeAdapter(ExportedEntity),
    "memories": TypeAdapter(ExportedVersion),
    "records": TypeAdapter(ExportedRecord),
    "links": TypeAdapter(ExportedLink),
}


LARGE_BYTES = 64_000_000
"""Bytes from which on an export is imported in parts: some six thousand memories with their vectors."""


def is_large_export(path: Path) -> bool:
    """Return whether a file is an export in JSON that is too large for one transaction."""
    if not path.is_file() or path.stat().st_size < LARGE_BYTES:
        return False
    with path.open("rb") as file:
        return begins_as_export(file.read(200))


class _FileBuffer:
    """The bytes of a file that have been read and not been used."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._buffer = b""
        self._at = 0

    def peek(self) -> bytes:
        """Return the next byte that is no space; raise ValueError at the end of the file."""
        while True:
            while self._at < len(self._buffer):
                if (byte := self._buffer[self._at]) not in _SPACE:
                    return bytes((byte,))
                self._at += 1
            self._read_more()

    def take(self, expected: bytes) -> None:
        """Read one byte that is no space; raise ValueError for another one than expected."""
        if self.peek() != expected:
            raise ValueError
        self._at += 1

    def take_value(self) -> bytes:
        """Return the text of the next value."""
        first = self.peek()
        if first in (b"{", b"[", b'"'):
            return self._take_to(self._find_end_of_brackets)
        return self._take_to(self._find_end_of_scalar)

    def _take_to(self, find_end: Callable[[], int | None]) -> bytes:
        while (end := find_end()) is None:
            if len(self._buffer) - self._at > MAX_ENTRY_BYTES:
                raise ValueError
            self._read_more()
        value = self._buffer[self._at : end]
        self._at = end
        return value

    def _find_end_of_scalar(self) -> int | None:
        found = _SCALAR_END.search(self._buffer, self._at)
        return found.start() if found else None

    def _find_end_of_brackets(self) -> int | None:
        """Return where the value ends that begins here, or None when not all of it has been read."""
        depth, at = 0, self._at
        while token := _TOKEN.search(self._buffer, at):
            at = token.end()
            first = self._buffer[token.start()]
            if first == _QUOTE and at - token.start() == 1:
                return None
            if first == _OPENING_LIST and (end := self._find_end_of_numbers(at)):
                at = end
            elif first in _OPENING:
                depth += 1
            elif first in _CLOSING:
                depth -= 1
            if depth == 0:
                return at
        return None

    def _find_end_of_numbers(self, start: int) -> int | None:
        """Return where a list ends that has neither texts nor lists: vectors are most of an export."""
        end = self._buffer.find(b"]", start)
        if end < 0 or any(self._buffer.find(mark, start, end) >= 0 for mark in (b'"', b"[", b"{")):
            return None
        return end + 1

    def _read_more(self) -> None:
        chunk = self._file.read(max(CHUNK_BYTES, len(self._buffer) - self._at))
        if not chunk:
            raise ValueError
        self._buffer, self._at = self._buffer[self._at :] + chunk, 0


class ExportReader:
    """An export in a file in JSON, as `graphmem export` writes it; each iteration reads it from the start."""

    def __init__(self, path: Path) -> None:
        """Read what precedes the entries; raise InvalidInput for another document, or one of an unknown version.

        `bytes_read` is how far the latest iteration has come.
        """
        self._path = path
        self.bytes_read = 0
        head = {}
        for name, value in self._members(until_entries=True):
            head[name] = from_json(value)
        try:
            self.head = UserExport.model_validate(upcast_export(head))
        except ValidationError as error:
            raise to_invalid_input(error, (), "an export") from None

    @property
    def size(self) -> int:
        """The number of bytes of the file."""
        return self._path.stat().st_size

    def entries(self) -> Iterator[tuple[int, ExportEntry]]:
        """Yield every entry with its place in its section; raise InvalidInput for one that is not valid.

        The sections are in the order of `EXPORT_SECTIONS`: what an entry names in another section, is known before it.
        """
        section, index, remaining = "", 0, list(EXPORT_SECTIONS)
        for name, value in self._members(until_entries=False):
            if name != section and name not in remaining:
                raise InvalidInput(
                    f"The sections of {self._path} are in another order than those of an export: write it anew with "
                    "`graphmem export`."
                )
            if name != section:
                del remaining[: remaining.index(name) + 1]
            section, index = name, index + 1 if name == section else 0
            try:
                yield index, _ADAPTERS[name].validate_json(value)
            except ValidationError as error:
                raise to_invalid_input(error, (section, index), "an export") from None

    def _members(self, *, until_entries: bool) -> Iterator[tuple[Any, bytes]]:
        """Yield what precedes the first entry by name, or else each entry with the name of its section."""
        try:
            with self._path.open("rb") as file:
                for member in _read_members(_FileBuffer(file), until_entries=until_entries):
                    self.bytes_read = file.tell()
                    yield member
        except OSError as error:
            raise InvalidInput(f"{self._path} cannot be read: {error.strerror}.") from error
        except ValueError as error:
            raise InvalidInput(
                f"{self._path} is not a complete export in JSON: write it anew with `graphmem export`."
            ) from error


def _read_members(source: _FileBuffer, *, until_entries: bool) -> Iterator[tuple[Any, bytes]]:
    source.take(b"{")
    while True:
        name = str(from_json(source.take_value()))
        source.take(b":")
        if name in EXPORT_SECTIONS:
            if until_entries:
                return
            yield from ((name, item) for item in _read_items(source))
        elif until_entries:
            yield name, source.take_value()
        else:
            source.take_value()
        if source.peek() == b"}":
            return
        source.take(b",")


def _read_items(source: _FileBuffer) -> Iterator[bytes]:
    source.take(b"[")
    if source.peek() == b"]":
        source.take(b"]")
        return
    while True:
        yield source.take_value()
        if source.peek() == b"]":
            source.take(b"]")
            return
        source.take(b",")
