"""The export of one user: a document that holds everything, and how its ids are changed where they are taken."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from graphmem.domain.entity import RECORD_LABELS, RESERVED_LABELS
from graphmem.domain.formats.document import Format, refuse
from graphmem.domain.formats.told import Refused
from graphmem.errors import InvalidInput

TIME = "$time"
"""Key that marks a time among the free properties of a node."""


class Embedding(BaseModel):
    """The model whose vectors an export holds."""

    model: str
    dimension: int


class Node(BaseModel):
    """A node of the graph: an entity, a message, a session, or what was learned; `key` names it in links."""

    model_config = ConfigDict(extra="forbid")

    key: str
    labels: list[str] = Field(min_length=1)
    properties: dict[str, Any]


class Version(BaseModel):
    """One version of a memory: the properties of its edge, its two ends and its vector."""

    model_config = ConfigDict(extra="forbid")

    subject_id: str
    object_id: str
    properties: dict[str, Any]
    vector: list[float] | None = None


class Link(BaseModel):
    """A relationship between two nodes of the export."""

    model_config = ConfigDict(extra="forbid")

    type: str
    start: str
    end: str
    properties: dict[str, Any] = Field(default_factory=dict)


class Export(BaseModel):
    """Everything of one user, as it lies in the graph."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["graphmem-export"] = "graphmem-export"
    schema_version: Literal["1.0"] = "1.0"
    user_id: str
    embedding: Embedding
    user: dict[str, Any] = Field(default_factory=dict)
    entities: list[Node] = Field(default_factory=list)
    memories: list[Version] = Field(default_factory=list)
    records: list[Node] = Field(default_factory=list)
    links: list[Link] = Field(default_factory=list)

    @field_validator("entities")
    @classmethod
    def _are_entities(cls, nodes: list[Node]) -> list[Node]:
        if any("Entity" not in node.labels or RESERVED_LABELS & {*node.labels} != {"Entity"} for node in nodes):
            raise ValueError("holds a node that is no entity")
        return nodes

    @field_validator("records")
    @classmethod
    def _are_records(cls, nodes: list[Node]) -> list[Node]:
        if not all({*node.labels} <= RECORD_LABELS for node in nodes):
            raise ValueError("holds a node of a kind that no export has")
        return nodes


SECTIONS = ("entities", "memories", "records", "links")
"""The lists of an export, in the order they are written."""


class Imported(BaseModel):
    """What an import brought in and what it did not: `ids` leads from ids of the document to those they got here.

    `jobs` are those that read the messages of a chat log.
    """

    format: Format = Format.GRAPHMEM
    imported: dict[str, int]
    unchanged: dict[str, int]
    refused: list[Refused] = Field(default_factory=list)
    ids: dict[str, str] = Field(default_factory=dict)
    jobs: list[str] = Field(default_factory=list)
    vectors_remade: bool = False


class Forgotten(BaseModel):
    """What was erased of a user, by kind, and how much of it is left."""

    erased: dict[str, int]
    residue: int


def written(value: Any) -> Any:
    """Return a property with its times marked, so that reading finds them again."""
    if isinstance(value, datetime):
        return {TIME: value.isoformat()}
    if isinstance(value, list):
        return [written(item) for item in value]
    if isinstance(value, dict):
        return {key: written(item) for key, item in value.items()}
    return value


def read_back(value: Any, ids: Mapping[str, str]) -> Any:
    """Return a written property with its times as times and its ids as they are called now."""
    if isinstance(value, dict):
        if value.keys() == {TIME}:
            return _read_time(value[TIME])
        return {key: read_back(item, ids) for key, item in value.items()}
    if isinstance(value, list):
        return [read_back(item, ids) for item in value]
    return ids.get(value, value) if isinstance(value, str) else value


def _read_time(text: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"The import has a `{TIME}` that is no time.") from error
    if moment.tzinfo is None:
        raise InvalidInput(f"The import has a `{TIME}` without an offset.")
    return moment


class ExportText:
    """An export as text, written entry by entry: JSON, or equivalent YAML."""

    def __init__(self, form: Literal["json", "yaml"], head: Export) -> None:
        """Begin with what stands before the entries; `head` has none."""
        self._json = form == "json"
        told = head.model_dump(mode="json", exclude=set(SECTIONS))
        self._pieces = [head.model_dump_json(exclude=set(SECTIONS))[:-1] if self._json else _as_yaml(told)]
        self._size = len(self._pieces[0])
        self._ahead = list(SECTIONS)
        self._open = ""

    def add(self, section: str, entry: Node | Version | Link) -> None:
        """Write an entry; the sections come in the order of `SECTIONS`."""
        if section != self._open:
            self._begin(section)
        elif self._json:
            self._write(",")
        self._write(entry.model_dump_json() if self._json else _as_yaml([entry.model_dump(mode="json")]))

    def end(self) -> None:
        """Write what stands after the last entry."""
        self._close_and_skip(None)
        self._write("}" if self._json else "")

    def take(self, at_least: int = 0) -> bytes:
        """Return what is written and not yet taken, in UTF-8, where that is so many characters; else nothing."""
        if self._size < at_least:
            return b""
        text = "".join(self._pieces)
        self._pieces, self._size = [], 0
        return text.encode()

    def _write(self, piece: str) -> None:
        self._pieces.append(piece)
        self._size += len(piece)

    def _begin(self, section: str) -> None:
        self._close_and_skip(section)
        self._write(f',"{section}":[' if self._json else f"{section}:\n")
        self._open = section

    def _close_and_skip(self, until: str | None) -> None:
        if self._open and self._json:
            self._write("]")
        while self._ahead:
            section = self._ahead.pop(0)
            if section == until:
                return
            self._write(f',"{section}":[]' if self._json else f"{section}: []\n")


def _as_yaml(value: Any) -> str:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(value, Dumper=dumper, allow_unicode=True, sort_keys=False, width=10**6)
    return text


def read_export(document: Any) -> Export:
    """Return a document as an export; raise InvalidInput where it lacks something."""
    try:
        export = Export.model_validate(document)
    except ValidationError as error:
        raise refuse(error, (), "an export") from error
    _require_whole(export)
    return export


def _require_whole(export: Export) -> None:
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
