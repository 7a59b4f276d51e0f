"""An export as a document: its sections, schema, earlier versions, and the checks of an import. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal, Self, TypeVar

from pydantic import Field, ValidationError

from graphmem.memories.fact import Fact
from graphmem.models.embedding_models import VectorState, embedding_text
from graphmem.neo4j.schema import LinkType
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import JsonPath, Vector, name_key
from graphmem.user_data.export_entries import (
    EXPORT_SECTIONS,
    ExportedArchivedEpisode,
    ExportedEntity,
    ExportedEpisode,
    ExportedLink,
    ExportedRecord,
    ExportedSession,
    ExportedVersion,
    ExportEntry,
    ExportModel,
    FactProperties,
    Section,
    UserProperties,
)
from graphmem.user_data.formats import to_invalid_input

Problem = tuple[JsonPath, str]
"""The place of an entry, and what is wrong with it as the end of a sentence."""

ExportedMessage = ExportedEpisode | ExportedArchivedEpisode


@dataclass(frozen=True, slots=True)
class VersionOutline:
    """What the checks and the plan of an import need of a version: all but its texts and its vector."""

    subject_id: str
    object_id: str
    properties: Fact


AnyVersion = ExportedVersion | VersionOutline
"""A version of an export, as it is or without its texts."""


def find_version_problems(versions: Sequence[AnyVersion]) -> Iterator[Problem]:
    """Yield the versions that do not follow one another: numbered from 1, each believed when the one before it ends."""
    by_memory: dict[str, list[tuple[int, FactProperties | Fact]]] = defaultdict(list)
    for index, version in enumerate(versions):
        by_memory[version.properties.memory_id].append((index, version.properties))
    for numbered in by_memory.values():
        numbered.sort(key=lambda entry: entry[1].version)
        earlier: FactProperties | Fact | None = None
        for index, fact in numbered:
            if fact.version != (earlier.version + 1 if earlier else 1):
                yield ("memories", index, "properties", "version"), "is not the one after an earlier version"
            elif earlier and earlier.expired_at != fact.created_at:
                yield ("memories", index, "properties", "created_at"), "is not when the earlier version ends"
            if fact.expired_at is not None and fact.expired_at <= fact.created_at:
                yield ("memories", index, "properties", "expired_at"), "is not after created_at"
            earlier = fact
        index, last = numbered[-1]
        if last.expired_at is not None and last.end_status is None:
            yield ("memories", index, "properties", "end_status"), "is needed where no later version follows"


def find_message_problems(records: Sequence[ExportedRecord], links: Sequence[ExportedLink]) -> Iterator[Problem]:
    """Yield the messages that are not in exactly the session that they name, or share their position with another."""
    sessions: dict[str, set[str]] = defaultdict(set)
    for link in links:
        if link.type is LinkType.HAS_EPISODE:
            sessions[link.end].add(link.start)
    names = {record.key: record.properties.session_id for record in records if isinstance(record, ExportedSession)}
    positions: set[tuple[str, int]] = set()
    for index, record in enumerate(records):
        if not isinstance(record, ExportedMessage):
            continue
        message = record.properties
        if [names.get(key) for key in sessions[record.key]] != [message.session_id]:
            yield ("records", index), "is a message without a link HAS_EPISODE from its session alone"
        place = (message.session_id, message.position)
        if place in positions:
            yield ("records", index, "properties", "position"), "is that of another message of the session"
        positions.add(place)


def find_lost_references(
    versions: Sequence[AnyVersion], entity_ids: Set[str], message_ids: Set[str], memory_ids: Set[str]
) -> Iterator[Problem]:
    """Yield the references of memories to none of the ids, which are those of the import and of the user.

    An id of neither may be another user's, and must not be stored.
    """
    for index, version in enumerate(versions):
        fact = version.properties
        ended_by = [fact.superseded_by] if fact.superseded_by else []
        for name, ids, known in (
            ("entity_ids", fact.entity_ids, entity_ids),
            ("episodes", fact.episodes, message_ids),
            ("supersedes", fact.supersedes, memory_ids),
            ("contests", fact.contests, memory_ids),
            ("associations", fact.associations, memory_ids),
            ("superseded_by", ended_by, memory_ids),
        ):
            if lost := [reference for reference in ids or () if reference not in known]:
                yield (
                    ("memories", index, "properties", name),
                    f"names {lost[0]}, which neither the import nor the user has",
                )


EXPORT_SCHEMA_VERSION: Final = "1.1"
"""Version of the form of exports; it changes with every change by which earlier releases cannot read them."""


def _accept(export: dict[str, Any]) -> dict[str, Any]:
    """Return an export unchanged: the next version only adds properties that may be absent."""
    return export


_STEPS: Mapping[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {"1.0": ("1.1", _accept)}
"""By schema version: the next one, and the step that leads to it."""


def upcast_export(document: Any) -> Any:
    """Return an export in the form of the current schema version; other documents are returned unchanged.

    Raises InvalidInput for a schema version that this release does not know.
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


NodeT = TypeVar("NodeT", ExportedEntity, ExportedEpisode)

MAX_REPORTED_PROBLEMS = 20
"""Problems that one refusal names at most."""


class EmbeddingInfo(ExportModel):
    """The embedding model whose vectors an export contains."""

    model: str
    dimension: int

    @classmethod
    def of(cls, vectors: VectorState) -> Self:
        """Return the model that a graph in this state is searched with."""
        return cls(model=vectors.searched_model.name, dimension=vectors.searched_model.dimension)


class UserExport(ExportModel):
    """Everything of one user."""

    format: Literal["graphmem-export"] = "graphmem-export"
    schema_version: Literal["1.1"] = EXPORT_SCHEMA_VERSION
    user_id: str
    embedding: EmbeddingInfo
    user: UserProperties = Field(default_factory=UserProperties)
    entities: list[ExportedEntity] = Field(default_factory=list)
    memories: list[ExportedVersion] = Field(default_factory=list)
    records: list[ExportedRecord] = Field(default_factory=list)
    links: list[ExportedLink] = Field(default_factory=list)

    @property
    def entry_count(self) -> int:
        """The number of entries of all sections."""
        return sum(len(getattr(self, section)) for section in EXPORT_SECTIONS)

    @property
    def embedded_texts(self) -> list[str]:
        """The texts that have a vector: of memories, of entities, of messages."""
        return [
            *(version.properties.fact for version in self.memories),
            *(entity.properties.name for entity in self.entities),
            *(
                embedding_text(record.properties.speaker, record.properties.content)
                for record in self.records
                if isinstance(record, ExportedEpisode)
            ),
        ]

    def with_vectors(self, embedding: EmbeddingInfo, vectors: Sequence[list[float]]) -> UserExport:
        """Return the export with the vectors of another model, one for each of `embedded_texts`."""
        remaining = iter(vectors)
        return self.model_copy(
            update={
                "embedding": embedding,
                "memories": [version.model_copy(update={"vector": next(remaining)}) for version in self.memories],
                "entities": [_with_property(node, "name_embedding", next(remaining)) for node in self.entities],
                "records": [
                    _with_property(node, "content_embedding", next(remaining))
                    if isinstance(node, ExportedEpisode)
                    else node
                    for node in self.records
                ],
            }
        )


def _with_property(node: NodeT, name: str, value: object) -> NodeT:
    return node.model_copy(update={"properties": node.properties.model_copy(update={name: value})})


_IN_JSON = re.compile(rb'\s*\{\s*"format"\s*:\s*"graphmem-export"')


def begins_as_export(raw: bytes) -> bool:
    """Return whether a text begins as an export in JSON does."""
    return _IN_JSON.match(raw) is not None


def parse_current_export(raw: bytes) -> UserExport | None:
    """Return an export in JSON of the current schema version, four times as fast as by way of its values.

    None for any other text, and for an export that is not valid: what is wrong with it is said by `parse_export`.
    """
    if not begins_as_export(raw):
        return None
    try:
        export = UserExport.model_validate_json(raw)
    except ValidationError:
        return None
    refuse_problems("The entries of the import do not fit together.", _find_problems(export))
    return export


def parse_export(document: Any) -> UserExport:
    """Return a document of any schema version as an export; raise InvalidInput that names the entries at fault."""
    try:
        export = UserExport.model_validate(upcast_export(document))
    except ValidationError as error:
        raise to_invalid_input(error, (), "an export") from None
    refuse_problems("The entries of the import do not fit together.", _find_problems(export))
    return export


def refuse_problems(detail: str, problems: Iterator[Problem]) -> None:
    """Raise InvalidInput that names the first of `problems`, unless there are none."""
    errors = [{"loc": list(path), "msg": message} for path, message in islice(problems, MAX_REPORTED_PROBLEMS)]
    if errors:
        raise InvalidInput(detail, errors=errors)


def _find_problems(export: UserExport) -> Iterator[Problem]:
    """Yield what is wrong in and between entries."""
    yield from find_structural_problems(export)
    for section in ("memories", "entities", "records"):
        for index, entry in enumerate(getattr(export, section)):
            yield from find_vector_problem(index, entry, export.embedding)


def find_structural_problems(export: UserExport) -> Iterator[Problem]:
    """Yield what is wrong between entries: ids used twice, what is missing."""
    yield from _find_duplicates("entities", [entity.key for entity in export.entities])
    yield from _find_duplicates("entities", [entity.properties.name_key for entity in export.entities])
    yield from _find_duplicates("records", [record.key for record in export.records])
    yield from _find_duplicates("records", [record.identity for record in export.records])
    yield from _find_duplicates("memories", [version.properties.uuid for version in export.memories])
    versions = [(version.properties.memory_id, version.properties.version) for version in export.memories]
    yield from _find_duplicates("memories", versions)
    entities = {entity.key for entity in export.entities}
    nodes = entities | {record.key for record in export.records}
    for index, link in enumerate(export.links):
        if not {link.start, link.end} <= nodes:
            yield ("links", index), "names a node that is not in the import"
    yield from find_version_problems(export.memories)
    yield from find_message_problems(export.records, export.links)
    for index, version in enumerate(export.memories):
        if not {version.subject_id, version.object_id} <= entities:
            yield ("memories", index), "is about an entity that is not in the import"


def find_vector_problem(index: int, entry: ExportEntry, embedding: EmbeddingInfo) -> Iterator[Problem]:
    """Yield the vector of an entry that is missing, of another length, or zero."""
    path: JsonPath
    match entry:
        case ExportedVersion():
            path, vector = ("memories", index, "vector"), entry.vector
        case ExportedEntity():
            path, vector = ("entities", index, "properties", "name_embedding"), entry.properties.name_embedding
        case ExportedEpisode():
            path, vector = ("records", index, "properties", "content_embedding"), entry.properties.content_embedding
        case _:
            return
    is_optional = not isinstance(entry, ExportedVersion)
    if (vector is None and not is_optional) or (
        vector is not None and not (len(vector) == embedding.dimension and any(vector))
    ):
        yield path, f"must be a vector of {embedding.dimension} numbers that are not all zero"


def _find_duplicates(section: Section, keys: Sequence[object]) -> Iterator[Problem]:
    counts = Counter(keys)
    if len(counts) < len(keys):
        for index, key in enumerate(keys):
            if counts[key] > 1:
                yield (section, index), "has the same id as another entry"


def rename_self_entity(export: UserExport, user_id: str, vector: Vector) -> UserExport:
    """Return an export with the id of the user it is imported for as a name of the user's own entity.

    It takes the place of the id of the exported user, as a name or an alias, by which every write finds the entity.
    `vector` is that of the id. Raises InvalidInput when another entity has the id as its name.
    """
    for index, entity in enumerate(export.entities):
        keys = {entity.properties.name_key, *entity.properties.alias_keys}
        if not entity.properties.is_user and name_key(user_id) in keys:
            message = "has the id of the user as a name, and is not the user: rename it, or import as another user"
            raise InvalidInput(
                "An entity of the import would be taken for the user.",
                errors=[{"loc": ["entities", index, "properties", "name"], "msg": message}],
            )
    entities = [
        with_user_id(entity, export.user_id, user_id, vector) if entity.properties.is_user else entity
        for entity in export.entities
    ]
    return export.model_copy(update={"entities": entities})


def find_self_entity(export: UserExport) -> ExportedEntity | None:
    """Return the entity that stands for the user, if the export has it."""
    return next((entity for entity in export.entities if entity.properties.is_user), None)


def with_user_id(entity: ExportedEntity, old_id: str, new_id: str, vector: Vector) -> ExportedEntity:
    """Return the user's own entity of an export for another user: see `rename_self_entity`."""
    properties = entity.properties
    aliases = [alias for alias in properties.aliases if name_key(alias) != name_key(old_id)]
    changes: dict[str, object] = {}
    if properties.name_key == name_key(old_id):
        changes |= {"name": new_id, "name_key": name_key(new_id), "name_embedding": vector}
    elif properties.name_key != name_key(new_id):
        aliases.append(new_id)
    aliases = [alias for alias in aliases if name_key(alias) != changes.get("name_key", properties.name_key)]
    changes |= {
        "aliases": aliases,
        "alias_keys": [name_key(alias) for alias in aliases],
        "alias_text": " ".join(aliases),
    }
    return entity.model_copy(update={"properties": properties.model_copy(update=changes)})


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
    """Return the schema of a property that an export leaves out where it is absent."""
    if "anyOf" not in schema:
        return schema
    given: dict[str, Any] = next(option for option in schema["anyOf"] if option != {"type": "null"})
    return given | {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
