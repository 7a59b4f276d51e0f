"""The format of an export: its entries, sections, JSON Schema and earlier schema versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, Union

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    Tag,
    TypeAdapter,
    create_model,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from graphmem.models.embedding_models import VectorState
from graphmem.neo4j.schema import LISTS_OF_GRAPHITI, LinkType, RecordLabel
from graphmem.runtime.errors import InvalidInput
from graphmem.user_data.export_properties import (
    PROPERTIES,
    EntityLabels,
    FiniteVector,
    Identity,
    _may_be_absent,
    record_identity,
    replace_id_properties,
)


class _PropertiesOf:
    """Marks a dictionary as the properties of a label, by name: no others, and no type conversions."""

    def __init__(self, label: str) -> None:
        self._label = label

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        name = f"{self._label}Properties"
        fields = {
            key: core_schema.typed_dict_field(handler.generate_schema(kind), required=not _may_be_absent(kind))
            for key, kind in sorted(PROPERTIES[self._label].items())
        }
        return core_schema.typed_dict_schema(
            fields,
            extra_behavior="forbid",
            config={"strict": True},
            ref=f"{__name__}.{name}:{self._label}",
            metadata={"pydantic_js_updates": {"title": name, "additionalProperties": False}},
        )


Section = Literal["entities", "memories", "records", "links"]

EXPORT_SECTIONS: tuple[Section, ...] = ("entities", "memories", "records", "links")
"""The lists of an export, in the order of writing."""


class ExportModel(BaseModel):
    """A part of an export: closed, without conversions between types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ExportedNode(ExportModel):
    """A node; `key` names it in links."""

    section: ClassVar[Section]

    key: str
    labels: Sequence[str]
    properties: dict[str, Any]

    @property
    def label(self) -> str:
        """The label that determines the node's properties."""
        return "Entity" if self.section == "entities" else self.labels[0]

    @property
    def uuid(self) -> str | None:
        """The id by which other elements refer to the node; None if none do."""
        return self.properties.get("uuid")

    def to_graph(self, ids: Mapping[str, str]) -> dict[str, Any]:
        """Return the properties as the graph stores them, with ids replaced according to `ids`.

        Enumerations become text, and empty lists are left out. So are the memories that mention an entity, which the
        graph stores as relationships.
        """
        replaced = replace_id_properties(self.label, self.properties, ids)
        return {name: _to_stored(name, value) for name, value in replaced.items() if name != "mentioned_in"}

    @model_validator(mode="after")
    def _check_key(self) -> Self:
        properties = self.properties
        key = f"session:{properties['session_id']}" if self.label == "Session" else self.uuid or properties["id"]
        if self.key != key:
            raise ValueError("has a key that is not the id in its properties")
        return self


class ExportedEntity(ExportedNode):
    """A person, place or thing that memories are about."""

    section: ClassVar[Section] = "entities"

    labels: EntityLabels
    properties: Annotated[dict[str, Any], _PropertiesOf("Entity")]

    @model_validator(mode="after")
    def _check_labels(self) -> Self:
        for labels in (self.labels, self.properties["labels"]):
            if {*labels} != {"Entity", self.properties["type"]}:
                raise ValueError("has other labels than Entity and its type")
        return self


class ExportedRecord(ExportedNode):
    """A node other than an entity; its label decides which properties it has."""

    section: ClassVar[Section] = "records"

    @property
    def identity(self) -> Identity:
        """The record's identity among its user's."""
        return record_identity(RecordLabel(self.labels[0]), self.properties)

    @property
    def is_message(self) -> bool:
        """Whether the record is a message, in full or archived."""
        return self.labels[0] in (RecordLabel.EPISODIC, RecordLabel.ARCHIVED_EPISODE)


class ExportedVersion(ExportModel):
    """One version of a memory: the properties of its edge, the ids of its two entities and its vector."""

    section: ClassVar[Section] = "memories"

    subject_id: str
    object_id: str
    properties: Annotated[dict[str, Any], _PropertiesOf("Fact")]
    vector: FiniteVector | None = None


class ExportedLink(ExportModel):
    """A relationship between two nodes, which `start` and `end` name by their keys."""

    section: ClassVar[Section] = "links"

    type: Annotated[LinkType, Field(strict=False)]
    start: str
    end: str
    properties: Annotated[dict[str, Any], _PropertiesOf("Link")] = Field(default_factory=dict)


ExportEntry = ExportedEntity | ExportedVersion | ExportedRecord | ExportedLink


def _to_stored(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return str(value)
    return None if value == [] and name not in LISTS_OF_GRAPHITI else value


_RECORDS: Mapping[RecordLabel, str] = {
    RecordLabel.ARCHIVED_EPISODE: "A message whose text was replaced by a summary.",
    RecordLabel.BEHAVIOR_PATTERN: "A behaviour that the user repeats.",
    RecordLabel.CONTEXT_ITEM: "A date, amount or thing that a message mentioned, or what a caller stated.",
    RecordLabel.CONTEXT_USE: "The memories that a context held, and how the answer that it led to was rated.",
    RecordLabel.EPISODIC: "A message.",
    RecordLabel.INTEREST_CANDIDATE: "An interest that too few messages have shown to be a memory.",
    RecordLabel.LEARNED_INTENT: "How well an intent of the user is understood.",
    RecordLabel.LEARNED_PREFERENCE: "How the user likes to be answered.",
    RecordLabel.SESSION: "A session.",
    RecordLabel.SESSION_ARCHIVE: "The summary that replaced the first messages of a session.",
}
"""The description of a record, by its label."""


def _record_model(label: RecordLabel) -> type[ExportedRecord]:
    one_label: Any = Literal[label.value]  # pyrefly: ignore[invalid-literal] - the type is computed
    return create_model(
        f"Exported{label}",
        __base__=ExportedRecord,
        __doc__=_RECORDS[label],
        labels=(Annotated[list[one_label], Field(min_length=1, max_length=1)], ...),
        properties=(Annotated[dict[str, Any], _PropertiesOf(label)], ...),
    )


def _record_label(value: object) -> str | None:
    """Return the single label of a record; None for several labels, none, or an unknown one."""
    labels = value.get("labels") if isinstance(value, dict) else getattr(value, "labels", None)
    if isinstance(labels, list) and len(labels) == 1 and isinstance(labels[0], str) and labels[0] in set(RecordLabel):
        return labels[0]
    return None


if TYPE_CHECKING:
    AnyRecord = ExportedRecord
else:
    AnyRecord = Annotated[
        Union[tuple(Annotated[_record_model(label), Tag(label.value)] for label in RecordLabel)],  # noqa: UP007
        Discriminator(
            _record_label,
            custom_error_type="unknown_label",
            custom_error_message=f"must have one label, out of {', '.join(RecordLabel)}",
        ),
    ]

ENTRY_TYPES: Mapping[Section, TypeAdapter[Any]] = {
    "entities": TypeAdapter(ExportedEntity),
    "memories": TypeAdapter(ExportedVersion),
    "records": TypeAdapter(AnyRecord),
    "links": TypeAdapter(ExportedLink),
}
"""The models that validate the entries of each section."""


class EmbeddingInfo(ExportModel):
    """The embedding model whose vectors an export contains."""

    model: str
    dimension: int

    @classmethod
    def of(cls, vectors: VectorState) -> Self:
        """Return the model used for search in a graph with these vectors."""
        return cls(model=vectors.searched_model.name, dimension=vectors.searched_model.dimension)


EXPORT_SCHEMA_VERSION: Final = "1.1"
"""Version of the export format; it changes whenever earlier releases cannot read new exports."""


class ExportHead(ExportModel):
    """The header of an export."""

    format: Literal["graphmem-export"] = "graphmem-export"
    schema_version: Literal["1.1"] = EXPORT_SCHEMA_VERSION
    user_id: str
    embedding: EmbeddingInfo
    user: Annotated[dict[str, Any], _PropertiesOf("User")] = Field(default_factory=dict)


class UserExport(ExportHead):
    """Everything of one user."""

    entities: list[ExportedEntity] = Field(default_factory=list)
    memories: list[ExportedVersion] = Field(default_factory=list)
    records: list[AnyRecord] = Field(default_factory=list)
    links: list[ExportedLink] = Field(default_factory=list)

    @property
    def head(self) -> ExportHead:
        """The header."""
        return self

    def entries(self) -> Iterator[tuple[int, ExportEntry]]:
        """Yield every entry with its place in its section, section by section."""
        for section in EXPORT_SECTIONS:
            yield from enumerate(getattr(self, section))


def _accept(export: dict[str, Any]) -> dict[str, Any]:
    """Return an export unchanged: the next version only adds optional properties."""
    return export


_STEPS: Mapping[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {"1.0": ("1.1", _accept)}
"""By schema version: the next version, and the function that converts to it."""


def upcast_export(document: Any) -> Any:
    """Return an export converted to the current schema version; return other documents unchanged.

    Raises InvalidInput for a schema version unknown to this release.
    """
    if not isinstance(document, dict):
        return document
    export = document
    version = export.get("schema_version")
    while isinstance(version, str) and version in _STEPS:
        version, step = _STEPS[version]
        export = {**step(export), "schema_version": version}
    if isinstance(version, str) and version != EXPORT_SCHEMA_VERSION:
        raise InvalidInput(
            "The export has a schema version that this release does not know: upgrade graphmem.",
            errors=[{"loc": ["schema_version"], "msg": f"must be {', '.join([*_STEPS, EXPORT_SCHEMA_VERSION])}"}],
        )
    return export


JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def export_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of an export: its sections and the type of each value."""
    schema = UserExport.model_json_schema()
    for name, definition in schema["$defs"].items():
        if name.endswith("Properties"):
            definition["properties"] = {key: _without_null(value) for key, value in definition["properties"].items()}
    version = schema["$defs"][ExportedVersion.__name__]
    version["required"] = [*version["required"], "vector"]
    schema["required"] = ["format", "schema_version", "user_id", "embedding", "user", *EXPORT_SECTIONS]
    return {"$schema": JSON_SCHEMA_DIALECT, **schema}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a property that an export omits instead of writing null."""
    if "anyOf" not in schema:
        return schema
    given: dict[str, Any] = next(option for option in schema["anyOf"] if option != {"type": "null"})
    return given | {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
