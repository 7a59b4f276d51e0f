"""Statements that another memory has told: what they say, when it knew them, and what cannot be taken of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from graphmem.domain.memory import MemoryIn
from graphmem.domain.provenance import ImportProvenance
from graphmem.domain.validation import describe_field_errors, field_errors


@dataclass(frozen=True, slots=True)
class ImportedStatement:
    """A statement with its path in the document and its id there."""

    path: tuple[str | int, ...]
    id: str
    memory: MemoryIn
    provenance: ImportProvenance


class RejectedEntry(BaseModel):
    """Something of an import that was not taken: where it stands, its id there, and why."""

    loc: list[str | int]
    id: str | None
    reason: str


@dataclass(slots=True)
class ParsedStatements:
    """What a document of another memory holds."""

    accepted: list[ImportedStatement] = field(default_factory=list)
    rejected: list[RejectedEntry] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)

    def add(
        self, path: tuple[str | int, ...], id: str, provenance: ImportProvenance, statement: dict[str, Any]
    ) -> None:
        """Take a statement, or refuse it where it is none that could be saved."""
        if id in self._ids:
            self.reject(path, id, "its id stands in the document before")
            return
        self._ids.add(id)
        try:
            memory = MemoryIn.model_validate(statement)
        except ValidationError as error:
            self.reject(path, id, describe_field_errors(field_errors(error)[:1]))
        else:
            self.accepted.append(ImportedStatement(path, id, memory, provenance))

    def reject(self, path: tuple[str | int, ...], id: str | None, reason: str) -> None:
        """Note what is not taken."""
        self.rejected.append(RejectedEntry(loc=list(path), id=id, reason=reason))
