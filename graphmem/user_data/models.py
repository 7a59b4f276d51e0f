"""Statements imported from another memory system: their content, their known times, and the rejected entries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from graphmem.memories.memory import MemoryIn
from graphmem.memories.provenance import ImportProvenance
from graphmem.runtime.validation_domain import describe_field_errors, field_errors


@dataclass(frozen=True, slots=True)
class ImportedStatement:
    """A statement with its path and its id in the document."""

    path: tuple[str | int, ...]
    id: str
    memory: MemoryIn
    provenance: ImportProvenance


class RejectedEntry(BaseModel):
    """An entry of a document that was not imported: its path, its id and the reason."""

    loc: list[str | int]
    id: str | None
    reason: str


@dataclass(slots=True)
class ParsedStatements:
    """The statements of a document, and the entries that were rejected."""

    accepted: list[ImportedStatement] = field(default_factory=list)
    rejected: list[RejectedEntry] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)

    def add(
        self, path: tuple[str | int, ...], id: str, provenance: ImportProvenance, statement: dict[str, Any]
    ) -> None:
        """Accept a statement, or reject it when it is not a valid memory or its id was used before."""
        if id in self._ids:
            self.reject(path, id, "its id is used earlier in the document")
            return
        self._ids.add(id)
        try:
            memory = MemoryIn.model_validate(statement)
        except ValidationError as error:
            self.reject(path, id, describe_field_errors(field_errors(error)[:1]))
        else:
            self.accepted.append(ImportedStatement(path, id, memory, provenance))

    def reject(self, path: tuple[str | int, ...], id: str | None, reason: str) -> None:
        """Add a rejected entry."""
        self.rejected.append(RejectedEntry(loc=list(path), id=id, reason=reason))
