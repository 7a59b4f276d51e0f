"""An export as a document: its sections, and the checks that an import must pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from graphmem.models.embedding_text import embedding_text
from graphmem.runtime.errors import InvalidInput
from graphmem.user_data.consistency import Problem, find_message_problems, find_version_problems
from graphmem.user_data.export_entries import (
    EXPORT_SECTIONS,
    ExportedEntity,
    ExportedEpisode,
    ExportedLink,
    ExportedRecord,
    ExportedVersion,
    Section,
)
from graphmem.user_data.fields import ExportModel
from graphmem.user_data.formats import to_invalid_input
from graphmem.user_data.properties import UserProperties
from graphmem.user_data.upcasting import EXPORT_SCHEMA_VERSION, upcast_export

NodeT = TypeVar("NodeT", ExportedEntity, ExportedEpisode)

MAX_REPORTED_PROBLEMS = 20
"""Problems that one refusal names at most."""


class EmbeddingInfo(ExportModel):
    """The embedding model whose vectors an export contains."""

    model: str
    dimension: int


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
    """Yield what is wrong between entries: ids used twice, what is missing, vectors of another length."""
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
        if not _has_dimension(version.vector, export):
            yield ("memories", index, "vector"), _vector_problem(export)
    for index, entity in enumerate(export.entities):
        vector = entity.properties.name_embedding
        if vector is not None and not _has_dimension(vector, export):
            yield ("entities", index, "properties", "name_embedding"), _vector_problem(export)
    for index, record in enumerate(export.records):
        vector = record.properties.content_embedding if isinstance(record, ExportedEpisode) else None
        if vector is not None and not _has_dimension(vector, export):
            yield ("records", index, "properties", "content_embedding"), _vector_problem(export)


def _find_duplicates(section: Section, keys: Sequence[object]) -> Iterator[Problem]:
    counts = Counter(keys)
    if len(counts) < len(keys):
        for index, key in enumerate(keys):
            if counts[key] > 1:
                yield (section, index), "has the same id as another entry"


def _has_dimension(vector: list[float] | None, export: UserExport) -> bool:
    return vector is not None and len(vector) == export.embedding.dimension and any(vector)


def _vector_problem(export: UserExport) -> str:
    return f"must be a vector of {export.embedding.dimension} numbers that are not all zero"
