"""What export, import and erasure take and return: formats, imported statements, results, signed receipts."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from graphmem.memories.fact import ImportProvenance
from graphmem.memories.memory import MemoryIn
from graphmem.runtime.validation import describe_field_errors, field_errors
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import PlaceQuery


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


class ErasureReceipt(BaseModel):
    """A signed statement that a user was erased; it names neither the user nor anything that was stored.

    `signature` is the HMAC-SHA256, under the receipt key of the server, of the JSON of all other fields, with sorted
    keys and without spaces.
    """

    user_hash: str = Field(description="SHA-256 of `<tenant>:<user id>`.")
    begun_at: datetime
    ended_at: datetime
    erased: dict[str, int] = Field(description="Erased elements by kind.")
    residue: dict[str, int] = Field(description="Elements left, by place: the graph, the job store and the caches.")
    signature: str = ""

    def signed(self, key: bytes) -> ErasureReceipt:
        """Return the receipt with its signature under a key."""
        return self.model_copy(update={"signature": self._compute_signature(key)})

    def is_signed_by(self, key: bytes) -> bool:
        """Return whether the signature is that of this receipt under a key."""
        return hmac.compare_digest(self._compute_signature(key), self.signature)

    def _compute_signature(self, key: bytes) -> str:
        fields = self.model_dump(mode="json", exclude={"signature"})
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class ErasureResult(BaseModel):
    """What was erased of a user, counted by kind, how many traces are left, and the receipt once there are none."""

    erased: dict[str, int]
    residue: int
    receipt: ErasureReceipt | None = None


def hash_user(owner: Owner) -> str:
    """Return the SHA-256 of the name of a user, by which a receipt refers to them."""
    return hashlib.sha256(owner.group_id.encode()).hexdigest()


class ImportFormat(StrEnum):
    """Format of an imported document; `auto` detects it."""

    AUTO = "auto"
    GRAPHMEM = "graphmem"
    MEM0 = "mem0"
    GRAPHITI = "graphiti"
    CHAT = "chat"
    RECORDS = "records"


class ImportResult(BaseModel):
    """What an import wrote, found unchanged and refused; `ids` maps ids of the document to those they got here.

    `jobs` are the extraction jobs of an imported chat log.
    """

    format: ImportFormat = ImportFormat.GRAPHMEM
    imported: dict[str, int]
    unchanged: dict[str, int]
    refused: list[RejectedEntry] = Field(default_factory=list)
    ids: dict[str, str] = Field(default_factory=dict)
    jobs: list[str] = Field(default_factory=list)
    vectors_remade: bool = False


class FailedFile(BaseModel):
    """A file of a folder that was not imported, or not all of it, and why."""

    file: str
    reason: str


class FolderImport(BaseModel):
    """What an import of a folder wrote and found unchanged, over all users, and the files that failed."""

    users: int = 0
    imported: dict[str, int] = Field(default_factory=dict)
    unchanged: dict[str, int] = Field(default_factory=dict)
    failed: list[FailedFile] = Field(default_factory=list)


ExportFormat = Literal["json", "yaml"]
"""The formats in which a user is exported."""


ExportView = Literal["full", "records"]
"""What an export contains: everything without loss, or the current memories as records to read and edit."""


class ExportQuery(PlaceQuery):
    """The format and the view of an export."""

    format: ExportFormat = "json"
    view: ExportView = Field("full", description="records: the current memories in a lean form to read and edit.")


class ImportQuery(PlaceQuery):
    """The format of a document to import."""

    format: ImportFormat = Field(ImportFormat.AUTO, description="Absent: detected from the document.")


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """A document to import and its format."""

    document: bytes
    format: ImportFormat
