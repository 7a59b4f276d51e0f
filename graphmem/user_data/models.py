"""Models of export, import and erasure: formats, imported statements, results, signed receipts."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from graphmem.memories.fact import ImportProvenance
from graphmem.memories.memory import MemoryIn
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import UnstorableValue, check_json_value
from graphmem.runtime.validation import describe_field_errors, field_errors
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import SpaceQuery

MAX_ID_LENGTH = 255
"""Longest id, in characters."""

_PRINTABLE_ASCII = r"^[!-~]([ -~]*[!-~])?$"


def _check_printable_ascii(text: str) -> str:
    if not re.fullmatch(_PRINTABLE_ASCII, text):
        raise ValueError("must be printable ASCII without a space at its ends")
    return text


ElementId = Annotated[
    str,
    Field(min_length=1, max_length=MAX_ID_LENGTH, json_schema_extra={"pattern": _PRINTABLE_ASCII}),
    AfterValidator(_check_printable_ascii),
]
"""The id of a memory, a version or a node: printable ASCII, since webhooks send it in a header."""


@dataclass(frozen=True, slots=True)
class ImportedStatement:
    """A statement with its path and id in the document."""

    path: tuple[str | int, ...]
    id: str
    memory: MemoryIn
    provenance: ImportProvenance


class RejectedEntry(BaseModel):
    """An entry of a document that was not imported: its path, its id and the reason."""

    loc: list[str | int]
    id: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class UnreadableLine:
    """A line of JSONL that is not JSON, replacing its value."""

    number: int


EntryT = TypeVar("EntryT", bound=BaseModel)

DocumentPath = tuple[str | int, ...]

MAX_REPORTED_ERRORS = 20
"""Most errors named in one refusal."""


MAX_MALFORMED_ENTRIES = 10_000
"""Entries of a document that are listed because they lack its form; a document with more has another form."""


@dataclass(slots=True)
class ParsedEntries:
    """The entries of a document, validated one by one: an invalid entry is listed without affecting the others.

    `what` names their expected form.
    """

    what: str
    rejected: list[RejectedEntry] = field(default_factory=list)
    _errors: list[Mapping[str, Any]] = field(default_factory=list)
    _malformed: int = 0

    def parse(self, path: DocumentPath, model: type[EntryT], value: object) -> EntryT | None:
        """Return a JSON entry as a model, or reject it and return None."""
        try:
            if isinstance(value, UnreadableLine):
                raise UnstorableValue((), f"line {value.number} is not JSON")
            check_json_value(value)
        except UnstorableValue as error:
            self._reject_malformed(path, _find_id(value), [{"loc": [*path, *error.path], "msg": str(error)}])
            return None
        return self.validate(path, model, value, _find_id(value))

    def validate(self, path: DocumentPath, model: type[EntryT], value: object, id: str | None) -> EntryT | None:
        """Return an entry as a model, or reject it and return None."""
        try:
            return model.model_validate(value)
        except ValidationError as error:
            self._reject_malformed(path, id, field_errors(error, path))
            return None

    def reject(self, path: DocumentPath, id: str | None, reason: str) -> None:
        """Report an entry, or a part of one, as not imported."""
        self.rejected.append(RejectedEntry(loc=[_to_storable(part) for part in path], id=id, reason=reason))

    def reject_members(self, document: object, known: Collection[str], reason: str, path: DocumentPath = ()) -> None:
        """Report the members of an object that are neither known nor empty."""
        if isinstance(document, dict):
            for name, value in document.items():
                if name not in known and not is_empty(value):
                    self.reject((*path, name), None, reason)

    def refuse_if_malformed(self, *, unless: bool) -> None:
        """Raise InvalidInput naming the errors in the entries, unless some entries are valid."""
        if self._errors and not unless:
            errors = self._errors[:MAX_REPORTED_ERRORS]
            raise InvalidInput(f"The import does not have the form of {self.what}.", errors=errors)

    def _reject_malformed(self, path: DocumentPath, id: str | None, errors: Sequence[Mapping[str, Any]]) -> None:
        self._malformed += 1
        if self._malformed > MAX_MALFORMED_ENTRIES:
            raise InvalidInput(
                f"More than {MAX_MALFORMED_ENTRIES:,} entries do not have the form of {self.what}.",
                errors=self._errors[:MAX_REPORTED_ERRORS],
            )
        self._errors += [{**error, "loc": [_to_storable(part) for part in error["loc"]]} for error in errors]
        inner = [{**error, "loc": error["loc"][len(path) :]} for error in errors]
        self.reject(path, id, _to_storable(describe_field_errors(inner)))


@dataclass(slots=True)
class ParsedStatements(ParsedEntries):
    """The statements of a document, and the rejected entries."""

    accepted: list[ImportedStatement] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)

    def add(self, path: DocumentPath, id: str, provenance: ImportProvenance, statement: dict[str, Any]) -> None:
        """Accept a statement, or reject it if it is not a valid memory or its id was used before."""
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


def is_empty(value: object) -> bool:
    """Return whether a value is empty: null, or an empty text, list or object."""
    return value is None or (isinstance(value, (str, list, dict)) and not value)


def _find_id(value: object) -> str | None:
    """Return the id of an invalid entry, if it has one that can be shown."""
    given = (value.get("id") or value.get("uuid")) if isinstance(value, dict) else None
    return given if isinstance(given, str) and len(given) <= MAX_ID_LENGTH and given.isprintable() else None


def _to_storable(part: Any) -> Any:
    """Return a part of a path or reason without characters that cannot be sent."""
    if isinstance(part, int) and not isinstance(part, bool):
        return part
    return str(part).encode("utf-8", "backslashreplace").decode()


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
        """Return whether the signature is valid for this receipt and a key."""
        return hmac.compare_digest(self._compute_signature(key), self.signature)

    def _compute_signature(self, key: bytes) -> str:
        fields = self.model_dump(mode="json", exclude={"signature"})
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class ErasureResult(BaseModel):
    """The erased items of a user by kind, the number of items left, and a receipt if there are none."""

    erased: dict[str, int]
    residue: int
    receipt: ErasureReceipt | None = None


def hash_user(owner: Owner) -> str:
    """Return the SHA-256 of a user's name, by which receipts refer to them."""
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
    """A file of a folder that was not imported completely, and why."""

    file: str
    reason: str


class RefusedInFile(RejectedEntry):
    """An entry of a folder's file that was not imported."""

    file: str


class FolderImport(BaseModel):
    """The results of importing a folder over all users (imported, unchanged, refused), and the failed files."""

    users: int = 0
    imported: dict[str, int] = Field(default_factory=dict)
    unchanged: dict[str, int] = Field(default_factory=dict)
    refused: list[RefusedInFile] = Field(default_factory=list)
    failed: list[FailedFile] = Field(default_factory=list)


ExportFormat = Literal["json", "yaml"]
"""Formats of an export."""


ExportView = Literal["full", "records"]
"""The content of an export: all data without loss, or the current memories as records to read and edit."""


class ExportQuery(SpaceQuery):
    """The format and the view of an export."""

    format: ExportFormat = "json"
    view: ExportView = Field("full", description="records: the current memories in an editable form.")


class ImportQuery(SpaceQuery):
    """The format of a document to import."""

    format: ImportFormat = Field(ImportFormat.AUTO, description="Detected from the document by default.")
