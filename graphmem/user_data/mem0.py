"""mem0 exports: `{"results": [{id, memory, created_at, updated_at, user_id, categories, …}]}`, or only the list."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError

from graphmem.memories.provenance import ImportProvenance
from graphmem.runtime.times import Instant
from graphmem.user_data.formats import to_invalid_input
from graphmem.user_data.import_format import ImportFormat
from graphmem.user_data.models import ParsedStatements

_NON_TAG_CHARS = re.compile(r"[^\w:./-]+")


def _parse_expiration_date(value: object) -> object:
    """Return the end of a date in UTC; return other values unchanged."""
    try:
        day = datetime.strptime(value, "%Y-%m-%d").replace(tzinfo=UTC) if isinstance(value, str) else None
        return day + timedelta(days=1) if day else value
    except (ValueError, OverflowError):
        return value


class _Mem0Memory(BaseModel):
    id: str = Field(min_length=1)
    memory: str
    metadata: dict[str, Any] | None = None
    categories: list[str] | None = None
    created_at: Instant | None = None
    updated_at: Instant | None = None
    expiration_date: Annotated[Instant | None, BeforeValidator(_parse_expiration_date)] = None
    user_id: str | None = None
    run_id: str | None = None
    immutable: bool | None = None


_MEMORIES: TypeAdapter[list[_Mem0Memory]] = TypeAdapter(list[_Mem0Memory])


def parse_mem0(document: Any, user_id: str) -> ParsedStatements:
    """Return the memories of a mem0 export for one user; raise InvalidInput for another format.

    If the export has several users, the memories of the others are rejected.
    """
    path: tuple[str | int, ...] = () if isinstance(document, list) else ("results",)
    try:
        memories = _MEMORIES.validate_python(document if isinstance(document, list) else _results(document))
    except ValidationError as error:
        raise to_invalid_input(error, path, "an export of mem0") from None
    statements = ParsedStatements()
    users = {memory.user_id for memory in memories if memory.user_id is not None}
    for index, memory in enumerate(memories):
        at = (*path, index)
        if len(users) > 1 and memory.user_id != user_id:
            statements.reject(at, memory.id, "it belongs to another user")
            continue
        provenance = ImportProvenance(f"{ImportFormat.MEM0}:{memory.id}", memory.created_at, memory.updated_at)
        statements.add(at, memory.id, provenance, _to_memory_fields(memory))
    relations = document.get("relations") if isinstance(document, dict) else None
    for index, _ in enumerate(relations if isinstance(relations, list) else []):
        statements.reject(("relations", index), None, "a relation has neither a sentence nor a time")
    return statements


def _results(document: Any) -> Any:
    return document.get("results") if isinstance(document, dict) else document


def _to_memory_fields(memory: _Mem0Memory) -> dict[str, Any]:
    statement: dict[str, Any] = {
        "content": memory.memory,
        "metadata": memory.metadata or {},
        "tags": [tag for category in memory.categories or [] if (tag := _NON_TAG_CHARS.sub("-", category).strip("-"))],
        "expires_at": memory.expiration_date,
        "immutable": bool(memory.immutable),
    }
    if memory.run_id:
        statement["source"] = {"session_id": memory.run_id}
    return statement
