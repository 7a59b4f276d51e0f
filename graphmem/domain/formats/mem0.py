"""Exports of mem0: `{"results": [{id, memory, created_at, updated_at, user_id, categories, …}]}`, or the list alone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError

from graphmem.domain.formats.document import ImportFormat, to_invalid_input
from graphmem.domain.formats.provenance import ParsedStatements
from graphmem.domain.provenance import ImportProvenance
from graphmem.domain.times import Instant

_NON_TAG_CHARS = re.compile(r"[^\w:./-]+")


def _parse_expiration_date(value: object) -> object:
    """Return the end of a day in UTC; anything else as it is."""
    try:
        day = datetime.strptime(value, "%Y-%m-%d") if isinstance(value, str) else None
    except ValueError:
        day = None
    return datetime.combine(day, time(), UTC) + timedelta(days=1) if day else value


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
    """Return the memories of an export of mem0 for one user; raise InvalidInput where it has not that form.

    An export of several users gives the one of that id only: nothing crosses from one user to another.
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
            statements.reject(at, memory.id, "it is another user's")
            continue
        provenance = ImportProvenance(f"{ImportFormat.MEM0}:{memory.id}", memory.created_at, memory.updated_at)
        statements.add(at, memory.id, provenance, _to_memory_fields(memory))
    relations = document.get("relations") if isinstance(document, dict) else None
    for index, _ in enumerate(relations if isinstance(relations, list) else []):
        statements.reject(("relations", index), None, "a relation has no sentence and no time; the memories tell it")
    return statements


def _results(document: Any) -> Any:
    return document.get("results") if isinstance(document, dict) else document


def _to_memory_fields(memory: _Mem0Memory) -> dict[str, Any]:
    statement: dict[str, Any] = {
        "content": memory.memory,
        "metadata": memory.metadata or {},
        "tags": [tag for each in memory.categories or [] if (tag := _NON_TAG_CHARS.sub("-", each).strip("-"))],
        "expires_at": memory.expiration_date,
        "immutable": bool(memory.immutable),
    }
    if memory.run_id:
        statement["source"] = {"session_id": memory.run_id}
    return statement
