"""The entries of an export: entities, versions of memories, records and links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self, TypeVar

from pydantic import Discriminator, Field, Tag, model_validator

from graphmem.neo4j.schema import LinkType, RecordLabel
from graphmem.user_data.fields import (
    EntityLabels,
    ExportModel,
    FiniteVector,
    NodeProperties,
)
from graphmem.user_data.properties import (
    ArchivedEpisodeProperties,
    BehaviorPatternProperties,
    ContextItemProperties,
    ContextUseProperties,
    EntityProperties,
    EpisodicProperties,
    FactProperties,
    Identity,
    InterestCandidateProperties,
    LearnedIntentProperties,
    LearnedPreferenceProperties,
    LinkProperties,
    SessionArchiveProperties,
    SessionProperties,
    record_identity,
)

Section = Literal["entities", "memories", "records", "links"]

EXPORT_SECTIONS: tuple[Section, ...] = ("entities", "memories", "records", "links")
"""The lists of an export, in the order in which they are written."""

LabelT = TypeVar("LabelT")
OneLabel = Annotated[list[LabelT], Field(min_length=1, max_length=1)]


class ExportedVersion(ExportModel):
    """One version of a memory: the properties of its edge, the ids of its two entities and its vector."""

    section: ClassVar[Section] = "memories"

    subject_id: str
    object_id: str
    properties: FactProperties
    vector: FiniteVector | None = None


class ExportedLink(ExportModel):
    """A relationship between two nodes, which `start` and `end` name by their keys."""

    section: ClassVar[Section] = "links"

    type: Annotated[LinkType, Field(strict=False)]
    start: str
    end: str
    properties: LinkProperties = Field(default_factory=LinkProperties)


class _ExportedNode(ExportModel):
    """A node; `key` names it in links."""

    key: str
    labels: Sequence[str]
    properties: NodeProperties

    @model_validator(mode="after")
    def _check_key(self) -> Self:
        if self.key != self.properties.export_key:
            raise ValueError("has a key that is not the id in its properties")
        return self


class ExportedEntity(_ExportedNode):
    """An entity."""

    section: ClassVar[Section] = "entities"

    labels: EntityLabels
    properties: EntityProperties

    @model_validator(mode="after")
    def _check_labels(self) -> Self:
        self.properties.check_labels(self.labels)
        return self


class _ExportedRecord(_ExportedNode):
    section: ClassVar[Section] = "records"

    @property
    def identity(self) -> Identity:
        """What identifies the record among those of its user."""
        return record_identity(RecordLabel(self.labels[0]), dict(self.properties))


class ExportedArchivedEpisode(_ExportedRecord):
    """A message whose text was replaced by a summary."""

    labels: OneLabel[Literal["ArchivedEpisode"]]
    properties: ArchivedEpisodeProperties


class ExportedBehaviorPattern(_ExportedRecord):
    """A behaviour pattern."""

    labels: OneLabel[Literal["BehaviorPattern"]]
    properties: BehaviorPatternProperties


class ExportedContextItem(_ExportedRecord):
    """A context item."""

    labels: OneLabel[Literal["ContextItem"]]
    properties: ContextItemProperties


class ExportedContextUse(_ExportedRecord):
    """The memories that a context held."""

    labels: OneLabel[Literal["ContextUse"]]
    properties: ContextUseProperties


class ExportedEpisode(_ExportedRecord):
    """A message."""

    labels: OneLabel[Literal["Episodic"]]
    properties: EpisodicProperties


class ExportedInterestCandidate(_ExportedRecord):
    """An interest that is not yet a memory."""

    labels: OneLabel[Literal["InterestCandidate"]]
    properties: InterestCandidateProperties


class ExportedIntent(_ExportedRecord):
    """A learned intent."""

    labels: OneLabel[Literal["LearnedIntent"]]
    properties: LearnedIntentProperties


class ExportedPreference(_ExportedRecord):
    """A learned preference."""

    labels: OneLabel[Literal["LearnedPreference"]]
    properties: LearnedPreferenceProperties


class ExportedSession(_ExportedRecord):
    """A session."""

    labels: OneLabel[Literal["Session"]]
    properties: SessionProperties


class ExportedSessionArchive(_ExportedRecord):
    """The summary that replaced the first messages of a session."""

    labels: OneLabel[Literal["SessionArchive"]]
    properties: SessionArchiveProperties


def _record_label(value: object) -> str | None:
    """Return the one label of a record; None when it has another number of labels, or one that no record has."""
    labels = value.get("labels") if isinstance(value, dict) else getattr(value, "labels", None)
    if isinstance(labels, list) and len(labels) == 1 and isinstance(labels[0], str) and labels[0] in set(RecordLabel):
        return labels[0]
    return None


ExportedRecord = Annotated[
    Annotated[ExportedArchivedEpisode, Tag("ArchivedEpisode")]
    | Annotated[ExportedBehaviorPattern, Tag("BehaviorPattern")]
    | Annotated[ExportedContextItem, Tag("ContextItem")]
    | Annotated[ExportedContextUse, Tag("ContextUse")]
    | Annotated[ExportedEpisode, Tag("Episodic")]
    | Annotated[ExportedInterestCandidate, Tag("InterestCandidate")]
    | Annotated[ExportedIntent, Tag("LearnedIntent")]
    | Annotated[ExportedPreference, Tag("LearnedPreference")]
    | Annotated[ExportedSession, Tag("Session")]
    | Annotated[ExportedSessionArchive, Tag("SessionArchive")],
    Discriminator(
        _record_label,
        custom_error_type="unknown_label",
        custom_error_message=f"must have one label, out of {', '.join(RecordLabel)}",
    ),
]
"""A node other than an entity; its label decides the model."""

ExportEntry = ExportedEntity | ExportedVersion | ExportedRecord | ExportedLink
