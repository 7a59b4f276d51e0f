"""Documents of records: one record, a list of them, or `{"format": "graphmem-records", "records": […]}`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from graphmem.memories.provenance import ImportProvenance
from graphmem.runtime.text import name_key
from graphmem.user_data.formats import to_invalid_input
from graphmem.user_data.import_format import ImportFormat
from graphmem.user_data.models import ParsedStatements
from graphmem.user_data.records import Record, RecordDocument, RecordEntity

DocumentPath = tuple[str | int, ...]


@dataclass(slots=True)
class ParsedRecords:
    """The statements of a document, and the record of each by its id there."""

    statements: ParsedStatements = field(default_factory=ParsedStatements)
    records: dict[str, Record] = field(default_factory=dict)


def parse_records(document: Any, user_id: str) -> ParsedRecords:
    """Return the records of a document for one user; raise InvalidInput for another format.

    If the document has records of several users, those of the others are rejected. A record without an id gets one
    from its content, so that a second import finds it. An entity with the name of the user whom the document is of is
    the user of the import.
    """
    parsed = ParsedRecords()
    exported_id = document.get("user_id") if isinstance(document, Mapping) and "records" in document else None
    records = list(_validate_records(document))
    users = {record.user_id for _, record in records if record.user_id is not None}
    for path, record in records:
        record_id = record.id or _derive_id(record)
        if len(users) > 1 and record.user_id not in (None, user_id):
            parsed.statements.reject(path, record_id, "it belongs to another user")
            continue
        record = _with_self_entity(record, record.user_id or exported_id, user_id)
        parsed.records.setdefault(record_id, record)
        parsed.statements.add(path, record_id, _provenance_of(record, record_id), record.to_memory_fields())
    return parsed


def _validate_records(document: Any) -> Iterator[tuple[DocumentPath, Record]]:
    if isinstance(document, Mapping) and "records" in document:
        try:
            whole = RecordDocument.model_validate(document)
        except ValidationError as error:
            raise to_invalid_input(error, (), "a document of records") from None
        yield from ((("records", index), record) for index, record in enumerate(whole.records))
        return
    is_list = isinstance(document, list)
    for index, item in enumerate(document if is_list else [document]):
        path: DocumentPath = (index,) if is_list else ()
        try:
            yield path, Record.model_validate(item)
        except ValidationError as error:
            raise to_invalid_input(error, path, "a record") from None


def _with_self_entity(record: Record, exported_id: str | None, user_id: str) -> Record:
    """Return a record in which the entities named `exported_id` have the name of the user it is imported for."""
    if exported_id is None:
        return record
    key = name_key(exported_id)

    def rename(entity: RecordEntity | None) -> RecordEntity | None:
        return entity.model_copy(update={"name": user_id}) if entity and name_key(entity.name) == key else entity

    entities = [renamed for entity in record.entities if (renamed := rename(entity))]
    return record.model_copy(
        update={"subject": rename(record.subject), "object": rename(record.object), "entities": entities}
    )


def _provenance_of(record: Record, record_id: str) -> ImportProvenance:
    """Return the known times of a record; one that is no longer active and that nothing replaced was withdrawn."""
    updated = record.updated_at or record.created_at
    is_withdrawn = not record.active and record.metadata.superseded_by is None
    return ImportProvenance(
        f"{ImportFormat.RECORDS}:{record_id}",
        record.created_at,
        record.updated_at,
        updated if is_withdrawn else None,
        memory_id=record.id,
        superseded_by=record.metadata.superseded_by,
    )


def _derive_id(record: Record) -> str:
    content = json.dumps(record.content, sort_keys=True, ensure_ascii=False)
    return "record-" + hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:24]
