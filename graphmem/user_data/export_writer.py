"""An export as text, written entry by entry."""

from __future__ import annotations

import json
from typing import Any

import yaml
from pydantic import TypeAdapter

from graphmem.user_data.export_document import JSON_SCHEMA_DIALECT, UserExport
from graphmem.user_data.export_entries import EXPORT_SECTIONS, ExportEntry, Section
from graphmem.user_data.models import ExportFormat
from graphmem.user_data.records import (
    RECORD_SCHEMA_VERSION,
    RECORDS_FORMAT,
    Record,
    RecordDocument,
)


class ExportWriter:
    """Writes an export as JSON, or as the equivalent YAML."""

    def __init__(self, format: ExportFormat, head: UserExport) -> None:
        """Write what precedes the entries; the sections of `head` are not read."""
        self._json = format == "json"
        exclude: set[str] = {*EXPORT_SECTIONS}
        text = (
            head.model_dump_json(exclude=exclude)[:-1]
            if self._json
            else to_yaml(head.model_dump(mode="json", exclude=exclude))
        )
        self._chunks = [text]
        self._size = len(text)
        self._remaining_sections = list(EXPORT_SECTIONS)
        self._current_section: Section | None = None

    def add(self, entry: ExportEntry) -> None:
        """Write an entry; entries come in the order of `EXPORT_SECTIONS`."""
        if entry.section != self._current_section:
            self._begin_section(entry.section)
        elif self._json:
            self._write(",")
        self._write(entry.model_dump_json() if self._json else to_yaml([entry.model_dump(mode="json")]))

    def end(self) -> None:
        """Write what follows the last entry."""
        self._end_section(before=None)
        self._write("}" if self._json else "")

    def drain(self, at_least: int = 0) -> bytes:
        """Return the UTF-8 text written since the last call; nothing if it has fewer than `at_least` characters."""
        if self._size < at_least:
            return b""
        text = "".join(self._chunks)
        self._chunks, self._size = [], 0
        return text.encode()

    def _write(self, piece: str) -> None:
        self._chunks.append(piece)
        self._size += len(piece)

    def _begin_section(self, section: Section) -> None:
        self._end_section(before=section)
        self._write(f',"{section}":[' if self._json else f"{section}:\n")
        self._current_section = section

    def _end_section(self, before: Section | None) -> None:
        """End the current section, and write those up to `before` as empty lists."""
        if self._current_section and self._json:
            self._write("]")
        while self._remaining_sections:
            section = self._remaining_sections.pop(0)
            if section == before:
                return
            self._write(f',"{section}":[]' if self._json else f"{section}: []\n")


def to_yaml(value: Any) -> str:
    """Return a value of JSON types as YAML."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(value, Dumper=dumper, allow_unicode=True, sort_keys=False, width=10**6)
    return text


class RecordsWriter:
    """Writes the records of a user as JSON, or as the equivalent YAML, both indented for editing."""

    def __init__(self, format: ExportFormat, user_id: str) -> None:
        self._json = format == "json"
        self._is_empty = True
        head = {"format": RECORDS_FORMAT, "schema_version": RECORD_SCHEMA_VERSION, "user_id": user_id}
        self._head = json.dumps(head, ensure_ascii=False, indent=2)[:-2] if self._json else to_yaml(head)

    def start(self) -> str:
        """Return what precedes the records."""
        return f'{self._head},\n  "records": [' if self._json else f"{self._head}records:"

    def write(self, record: dict[str, Any]) -> str:
        """Return the text of the next record."""
        is_first, self._is_empty = self._is_empty, False
        if self._json:
            text = json.dumps(record, ensure_ascii=False, indent=2).replace("\n", "\n    ")
            return f"{'' if is_first else ','}\n    {text}"
        return ("\n" if is_first else "") + to_yaml([record])

    def end(self) -> str:
        """Return what follows the last record."""
        if self._json:
            return "]\n}\n" if self._is_empty else "\n  ]\n}\n"
        return " []\n" if self._is_empty else ""


def records_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of what an import of records takes: a document, one record or a list of records.

    YAML has the same structure.
    """
    schema = TypeAdapter(RecordDocument | Record | list[Record]).json_schema()
    return {"$schema": JSON_SCHEMA_DIALECT, "title": "Records", **schema}
