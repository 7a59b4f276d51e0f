"""The export of one user: a document that holds everything, and how its ids are changed where they are taken."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from graphmem.domain.entity import RECORD_LABELS, RESERVED_LABELS
from graphmem.domain.formats.document import ImportFormat, to_invalid_input
from graphmem.domain.formats.provenance import RejectedEntry
from graphmem.errors import InvalidInput

TIME_MARKER = "$time"
"""Key that marks a time among the free properties of a node."""


class EmbeddingInfo(BaseModel):
    """The model whose vectors an export holds."""

    model: str
    dimension: int


class ExportedNode(BaseModel):
    """A node of the graph: an entity, a message, a session, or what was learned; `key` names it in links."""

    model_config = ConfigDict(extra="forbid")

    key: str
    labels: list[str] = Field(min_length=1)
    properties: dict[str, Any]


class ExportedVersion(BaseModel):
    """One version of a memory: the properties of its edge, its two ends and its vector."""

    model_config = ConfigDict(extra="forbid")

    subject_id: str
    object_id: str
    properties: dict[str, Any]
    vector: list[float] | None = None


class ExportedRelationship(BaseModel):
    """A relationship between two nodes of the export."""

    model_config = ConfigDict(extra="forbid")

    type: str
    start: str
    end: str
    properties: dict[str, Any] = Field(default_factory=dict)


class UserExport(BaseModel):
    """Everything of one user, as it lies in the graph."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["graphmem-export"] = "graphmem-export"
    schema_version: Literal["1.0"] = "1.0"
    user_id: str
    embedding: EmbeddingInfo
    user: dict[str, Any] = Field(default_factory=dict)
    entities: list[ExportedNode] = Field(default_factory=list)
    memories: list[ExportedVersion] = Field(default_factory=list)
    records: list[ExportedNode] = Field(default_factory=list)
    links: list[ExportedRelationship] = Field(default_factory=list)

    @field_validator("entities")
    @classmethod
    def _check_entity_labels(cls, nodes: list[ExportedNode]) -> list[ExportedNode]:
        if any("Entity" not in node.labels or RESERVED_LABELS & {*node.labels} != {"Entity"} for node in nodes):
            raise ValueError("holds a node that is no entity")
        return nodes

    @field_validator("records")
    @classmethod
    def _check_record_labels(cls, nodes: list[ExportedNode]) -> list[ExportedNode]:
        if not all({*node.labels} <= RECORD_LABELS for node in nodes):
            raise ValueError("holds a node of a kind that no export has")
        return nodes


EXPORT_SECTIONS = ("entities", "memories", "records", "links")
"""The lists of an export, in the order they are written."""


class ImportResult(BaseModel):
    """What an import brought in and what it did not: `ids` leads from ids of the document to those they got here.

    `jobs` are those that read the messages of a chat log.
    """

    format: ImportFormat = ImportFormat.GRAPHMEM
    imported: dict[str, int]
    unchanged: dict[str, int]
    refused: list[RejectedEntry] = Field(default_factory=list)
    ids: dict[str, str] = Field(default_factory=dict)
    jobs: list[str] = Field(default_factory=list)
    vectors_remade: bool = False


class ErasureResult(BaseModel):
    """What was erased of a user, by kind, and how much of it is left."""

    erased: dict[str, int]
    residue: int


def encode_property(value: Any) -> Any:
    """Return a property with its times marked, so that reading finds them again."""
    if isinstance(value, datetime):
        return {TIME_MARKER: value.isoformat()}
    if isinstance(value, list):
        return [encode_property(item) for item in value]
    if isinstance(value, dict):
        return {key: encode_property(item) for key, item in value.items()}
    return value


def decode_property(value: Any, ids: Mapping[str, str]) -> Any:
    """Return an encoded property with its times as times and its ids as they are called now."""
    if isinstance(value, dict):
        if value.keys() == {TIME_MARKER}:
            return _parse_time(value[TIME_MARKER])
        return {key: decode_property(item, ids) for key, item in value.items()}
    if isinstance(value, list):
        return [decode_property(item, ids) for item in value]
    return ids.get(value, value) if isinstance(value, str) else value


def _parse_time(text: Any) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"The import has a `{TIME_MARKER}` that is no time.") from error
    if instant.tzinfo is None:
        raise InvalidInput(f"The import has a `{TIME_MARKER}` without an offset.")
    return instant


class ExportWriter:
    """An export as text, written entry by entry: JSON, or equivalent YAML."""

    def __init__(self, form: Literal["json", "yaml"], head: UserExport) -> None:
        """Begin with what stands before the entries; `head` has none."""
        self._json = form == "json"
        header = head.model_dump(mode="json", exclude=set(EXPORT_SECTIONS))
        self._chunks = [head.model_dump_json(exclude=set(EXPORT_SECTIONS))[:-1] if self._json else _to_yaml(header)]
        self._size = len(self._chunks[0])
        self._remaining_sections = list(EXPORT_SECTIONS)
        self._current_section = ""

    def add(self, section: str, entry: ExportedNode | ExportedVersion | ExportedRelationship) -> None:
        """Write an entry; the sections come in the order of `EXPORT_SECTIONS`."""
        if section != self._current_section:
            self._begin_section(section)
        elif self._json:
            self._write(",")
        self._write(entry.model_dump_json() if self._json else _to_yaml([entry.model_dump(mode="json")]))

    def end(self) -> None:
        """Write what stands after the last entry."""
        self._close_and_skip(None)
        self._write("}" if self._json else "")

    def drain(self, at_least: int = 0) -> bytes:
        """Return what is written and not yet taken, in UTF-8, where that is so many characters; else nothing."""
        if self._size < at_least:
            return b""
        text = "".join(self._chunks)
        self._chunks, self._size = [], 0
        return text.encode()

    def _write(self, piece: str) -> None:
        self._chunks.append(piece)
        self._size += len(piece)

    def _begin_section(self, section: str) -> None:
        self._close_and_skip(section)
        self._write(f',"{section}":[' if self._json else f"{section}:\n")
        self._current_section = section

    def _close_and_skip(self, until: str | None) -> None:
        if self._current_section and self._json:
            self._write("]")
        while self._remaining_sections:
            section = self._remaining_sections.pop(0)
            if section == until:
                return
            self._write(f',"{section}":[]' if self._json else f"{section}: []\n")


def _to_yaml(value: Any) -> str:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(value, Dumper=dumper, allow_unicode=True, sort_keys=False, width=10**6)
    return text


def parse_export(document: Any) -> UserExport:
    """Return a document as an export; raise InvalidInput where it lacks something."""
    try:
        export = UserExport.model_validate(document)
    except ValidationError as error:
        raise to_invalid_input(error, (), "an export") from error
    _check_integrity(export)
    return export


def _check_integrity(export: UserExport) -> None:
    """Raise InvalidInput for an export whose parts do not belong together."""
    entities = {node.key for node in export.entities}
    for node in export.entities:
        if not isinstance(node.properties.get("name"), str) or node.properties.get("uuid") != node.key:
            raise InvalidInput("An entity in the import lacks its name or its id.")
    for version in export.memories:
        if not {version.subject_id, version.object_id} <= entities:
            raise InvalidInput("A version in the import lies between entities that the import does not hold.")
        if version.vector is None or len(version.vector) != export.embedding.dimension:
            raise InvalidInput(f"A version in the import has no vector of {export.embedding.dimension} numbers.")
        if version.properties.get("scope") == "global":
            raise InvalidInput("The import holds a global memory; those are saved by admins.")
