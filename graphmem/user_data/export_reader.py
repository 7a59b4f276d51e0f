"""Reading a JSON export of any size entry by entry, without loading all of it."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from pydantic import ValidationError
from pydantic_core import from_json

from graphmem.runtime.errors import InvalidInput
from graphmem.user_data.export_schema import (
    ENTRY_TYPES,
    EXPORT_SECTIONS,
    ExportEntry,
    ExportHead,
    UserExport,
    upcast_export,
)
from graphmem.user_data.foreign import to_invalid_input

CHUNK_BYTES = 1 << 20
"""Bytes read from the file at once."""

MAX_ENTRY_BYTES = 64 << 20
"""Most bytes of an entry; anything longer means that the file is not JSON."""

LARGE_BYTES = 64_000_000
"""Size in bytes from which an export is imported in parts: some six thousand memories with their vectors."""

_BEGINNING = re.compile(rb'\s*\{\s*"format"\s*:\s*"graphmem-export"')

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]|"', re.DOTALL)
"""A text, a bracket, or the beginning of a text that has not been read completely."""

_SPACE = b" \t\r\n"
_OPENING, _CLOSING = frozenset(b"{["), frozenset(b"}]")
_OPENING_LIST, _QUOTE = b"["[0], b'"'[0]
_SCALAR_END = re.compile(rb"[,}\]\s]")


class ExportSource(Protocol):
    """A source of an export's entries, section by section, which can be iterated several times."""

    @property
    def head(self) -> ExportHead:
        """The header."""

    def entries(self) -> Iterator[tuple[int, ExportEntry]]:
        """Yield every entry with its place in its section; raise InvalidInput for an invalid one."""


def begins_as_export(raw: bytes) -> bool:
    """Return whether a text begins like a JSON export."""
    return _BEGINNING.match(raw) is not None


def is_export_file(path: Path) -> bool:
    """Return whether a file begins like a JSON export."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return begins_as_export(file.read(200))


def is_large(path: Path) -> bool:
    """Return whether an export is too large for one transaction."""
    return path.stat().st_size >= LARGE_BYTES


def read_export(document: Any) -> UserExport:
    """Return a value of any schema version as an export; raise InvalidInput naming the invalid entries."""
    try:
        return UserExport.model_validate(upcast_export(document))
    except ValidationError as error:
        raise to_invalid_input(error, (), "an export") from None


class _FileBuffer:
    """The bytes read from a file but not consumed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._buffer = b""
        self._at = 0

    def peek(self) -> bytes:
        """Return the next byte that is not white space; raise ValueError at the end of the file."""
        while True:
            while self._at < len(self._buffer):
                if (byte := self._buffer[self._at]) not in _SPACE:
                    return bytes((byte,))
                self._at += 1
            self._read_more()

    def take(self, expected: bytes) -> None:
        """Consume one byte after white space; raise ValueError if it is not the expected one."""
        if self.peek() != expected:
            raise ValueError
        self._at += 1

    def take_end(self) -> None:
        """Raise ValueError unless only white space follows."""
        try:
            self.peek()
        except ValueError:
            return
        raise ValueError

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
        """Return the end of the value that begins here; None if it has not been read completely."""
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
        """Return the end of a list without texts and lists, for speed: vectors are most of an export."""
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
    """A JSON export as written by `graphmem export`; each iteration reads it from the start."""

    def __init__(self, source: Path | bytes) -> None:
        """Read everything before the entries; raise InvalidInput for another document or an unknown version.

        `bytes_read` is the progress of the latest iteration.
        """
        self._source = source
        self._name = "The document" if isinstance(source, bytes) else str(source)
        self.bytes_read = 0
        head = {}
        for name, value in self._members(until_entries=True):
            try:
                head[name] = from_json(value)
            except ValueError:
                raise InvalidInput(f"{self._name} is not an export: its member {name!r} is not JSON.") from None
        try:
            self.head = ExportHead.model_validate(upcast_export(head))
        except ValidationError as error:
            raise to_invalid_input(error, (), "an export") from None

    @property
    def size(self) -> int:
        """The total number of bytes."""
        return len(self._source) if isinstance(self._source, bytes) else self._source.stat().st_size

    def entries(self) -> Iterator[tuple[int, ExportEntry]]:
        """Yield every entry with its place in its section; raise InvalidInput for an invalid one.

        The sections are in the order of `EXPORT_SECTIONS`, so that entries precede references to them from other
        sections.
        """
        section, index, remaining = "", 0, list(EXPORT_SECTIONS)
        for name, value in self._members(until_entries=False):
            if name != section and name not in remaining:
                raise InvalidInput(
                    f"{self._name} has the member {name} out of order: write the file again with `graphmem export`."
                )
            if name != section:
                del remaining[: remaining.index(name) + 1]
            section, index = name, index + 1 if name == section else 0
            try:
                yield index, ENTRY_TYPES[name].validate_json(value)
            except ValidationError as error:
                raise to_invalid_input(error, (section, index), "an export") from None

    def _members(self, *, until_entries: bool) -> Iterator[tuple[Any, bytes]]:
        """Yield the members before the first entry by name, or else each entry with the name of its section."""
        try:
            with self._open() as file:
                for member in _read_members(_FileBuffer(file), until_entries=until_entries):
                    self.bytes_read = file.tell()
                    yield member
        except OSError as error:
            raise InvalidInput(f"{self._name} cannot be read: {error.strerror}.") from error
        except ValueError as error:
            raise InvalidInput(
                f"{self._name} is not a complete export in JSON: write it again with `graphmem export`."
            ) from error

    def _open(self) -> BinaryIO:
        return io.BytesIO(self._source) if isinstance(self._source, bytes) else self._source.open("rb")


def _read_members(source: _FileBuffer, *, until_entries: bool) -> Iterator[tuple[Any, bytes]]:
    source.take(b"{")
    is_after_head = False
    while True:
        name = str(from_json(source.take_value()))
        source.take(b":")
        if name in EXPORT_SECTIONS:
            if until_entries:
                return
            is_after_head = True
            yield from ((name, item) for item in _read_items(source))
        else:
            value = source.take_value()
            if until_entries or is_after_head:
                yield name, value
        if source.peek() == b"}":
            source.take(b"}")
            source.take_end()
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
