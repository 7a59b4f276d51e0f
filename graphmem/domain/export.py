"""The export of one user: a document that holds everything, and how its ids are changed where they are taken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from graphmem.domain.entity import RECORD_LABELS, RESERVED_LABELS
from graphmem.errors import InvalidInput

TIME = "$time"
"""Key that marks a time among the free properties of a node."""

MAX_DEPTH = 64
"""Levels an import in YAML may be nested."""


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


class Imported(BaseModel):
    """What an import brought in: counts, what was there already, and the ids that had to change."""

    imported: dict[str, int]
    unchanged: dict[str, int]
    ids: dict[str, str]
    vectors_remade: bool


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


def render(export: Export, form: Literal["json", "yaml"]) -> bytes:
    """Return an export as JSON or as equivalent YAML, in UTF-8."""
    if form == "json":
        return export.model_dump_json().encode()
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(
        export.model_dump(mode="json"), Dumper=dumper, allow_unicode=True, sort_keys=False, width=10**6
    )
    return text.encode()


def _read_yaml(text: str) -> Any:
    """Read YAML of few levels and without aliases: either can make a small text too much for the reader."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    for event in yaml.parse(text, loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH or isinstance(event, yaml.AliasEvent):
            raise InvalidInput(f"The import has aliases or more than {MAX_DEPTH} levels.")
    return yaml.load(text, loader)


def parse(raw: bytes) -> Export:
    """Read an export in JSON or YAML; raise InvalidInput where it is neither or lacks something."""
    try:
        text = raw.decode()
        data = json.loads(text) if text.lstrip().startswith("{") else _read_yaml(text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise InvalidInput("The import is neither JSON nor YAML.") from error
    if not isinstance(data, dict) or data.get("format") != "graphmem-export":
        raise InvalidInput("The import is no export of graphmem: it lacks `format: graphmem-export`.")
    try:
        export = Export.model_validate(data)
    except ValidationError as error:
        errors: list[dict[str, object]] = [
            {"loc": list(each["loc"]), "msg": each["msg"]} for each in error.errors()[:20]
        ]
        raise InvalidInput("The import does not have the form of an export.", errors=errors) from error
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
