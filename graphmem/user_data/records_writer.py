"""Records as text, written one by one, and their JSON Schema."""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter

from graphmem.user_data.export_writer import to_yaml
from graphmem.user_data.records import (
    RECORD_SCHEMA_VERSION,
    RECORDS_FORMAT,
    Record,
    RecordDocument,
)
from graphmem.user_data.req_user_data import ExportFormat
from graphmem.user_data.schema import JSON_SCHEMA_DIALECT


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
