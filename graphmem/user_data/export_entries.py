"""The entries of an export: entities, versions of memories, records and links, one model per label. Pure.

An import writes what these models accept, so they are closed: properties that describe this database rather than the
user (`group_id`, `tenant`, `user_id`, `life`, `write_version`, `pending_job` and its store, the shadow bounds) are not
among their fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    Tag,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from graphmem.context.models import MAX_MEMORIES_OF_USE, PreferenceSource, PreferenceType
from graphmem.conversations.session import (
    MAX_MESSAGE_LENGTH,
    MessageEntities,
    MessageRole,
    RunMessage,
    SessionKind,
    TimeZoneName,
)
from graphmem.memories.entity import parse_entity_type
from graphmem.memories.memory import MAX_CONTENT_LENGTH, MemoryStatus, MemoryType, Predicate
from graphmem.neo4j.schema import LISTS_OF_GRAPHITI, LinkType, RecordLabel
from graphmem.runtime.field_types import (
    MAX_NAME_LENGTH,
    EntityName,
    Id,
    Metadata,
    NonBlankText,
    StorableText,
    UnitInterval,
    parse_json,
)
from graphmem.runtime.times import Instant
from graphmem.tenants.profiles import PatternType
from graphmem.tenants.trust import SourceKind, StatedKind

TIME_MARKER = "$time"
"""The key of an object that represents a time."""

MAX_COUNT = 2**31 - 1
"""Upper bound of counters: adding to one stays within 64 bits."""


def _unwrap_time(value: object) -> object:
    if isinstance(value, datetime):
        return value
    if isinstance(value, dict) and value.keys() == {TIME_MARKER}:
        return value[TIME_MARKER]
    raise ValueError(f"must be a time, written as an object with the one key {TIME_MARKER}")


def _wrap_time(value: datetime) -> dict[str, str]:
    return {TIME_MARKER: value.isoformat()}


def json_text(content: Any) -> AfterValidator:
    """Return a validator of text that is JSON of the type `content`."""
    adapter: TypeAdapter[Any] = TypeAdapter(content)

    def check(text: str) -> str:
        try:
            adapter.validate_python(parse_json(text))
        except ValidationError:
            raise ValueError("is JSON with another structure") from None
        except ValueError:
            raise ValueError("is not JSON that can be stored") from None
        return text

    return AfterValidator(check)


MarkedTime = Annotated[
    Instant,
    BeforeValidator(_unwrap_time),
    PlainSerializer(_wrap_time, when_used="json"),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {TIME_MARKER: {"type": "string", "format": "date-time"}},
            "required": [TIME_MARKER],
            "additionalProperties": False,
        }
    ),
]
"""A time, written `{"$time": "2026-05-01T12:00:00+00:00"}`."""

Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
"""A counter or a position."""

FiniteNumber = Annotated[float, Field(allow_inf_nan=False)]
"""A number other than NaN and the infinities."""

FiniteVector = Annotated[list[FiniteNumber], Field(min_length=1)]
"""An embedding; `UserExport` checks its dimension."""

EntityLabels = Annotated[list[StorableText], Field(min_length=2, max_length=2)]
"""The labels of an entity node: `Entity` and its type."""

JsonText = Annotated[StorableText, WithJsonSchema({"type": "string", "contentMediaType": "application/json"})]
"""Text that is JSON."""

JsonObject = Annotated[JsonText, json_text(Metadata)]
"""Text that is a JSON object with the limits of metadata."""


class ExportModel(BaseModel):
    """A part of an export: closed, without conversions between types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Properties(ExportModel):
    """The properties of a node or edge, serialised in alphabetical order without those that are absent."""

    id_fields: ClassVar[tuple[str, ...]] = ()
    """Fields whose values are ids that an import may replace."""

    @model_serializer(mode="wrap")
    def _sort_present(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in sorted(handler(self).items()) if value is not None}

    @classmethod
    @cache
    def required_lists(cls) -> tuple[str, ...]:
        """Return the names of the lists that an export always has."""
        fields = cls.model_fields.items()
        return tuple(name for name, field in fields if field.is_required() and get_origin(field.annotation) is list)

    def with_ids(self, ids: Mapping[str, str]) -> Self:
        """Return the properties with the ids that `ids` maps replaced."""
        return self.model_copy(update={name: replace_ids(getattr(self, name), ids) for name in self.id_fields})

    def to_graph(self) -> dict[str, Any]:
        """Return the properties as the graph stores them: times as `datetime`, enumerations as text, no empty lists."""
        return {name: _to_stored(name, value) for name, value in self.model_dump().items()}


def _to_stored(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return str(value)
    return None if value == [] and name not in LISTS_OF_GRAPHITI else value


def replace_ids(value: Any, ids: Mapping[str, str]) -> Any:
    """Return the value of a property, an id, several or None, with the ids that `ids` maps replaced."""
    if isinstance(value, str):
        return ids.get(value, value)
    if isinstance(value, list | tuple):
        return type(value)(ids.get(item, item) for item in value)
    return value


class NodeProperties(Properties):
    """The properties of a node that has a key in an export."""

    export_key_field: ClassVar[str] = "uuid"
    """The field that contains the key."""

    @property
    def export_key(self) -> str:
        """The name of the node in the links of an export."""
        return str(getattr(self, self.export_key_field))


MAX_UTC_OFFSET_MINUTES = 24 * 60
"""Upper bound of a speaker's distance from UTC, in minutes."""


def _check_entity_type(name: str) -> str:
    if parse_entity_type(name) != name:
        raise ValueError("must be an entity type in its stored form, such as Person")
    return name


class UserProperties(Properties):
    """The user's own node."""

    created_at: MarkedTime | None = None
    timezone: TimeZoneName | None = None
    persona: Annotated[JsonText, json_text(dict[str, float])] | None = Field(
        None, description="Weights by memory type or tag, which searches use."
    )


def _check_key_length(key: str) -> str:
    if len(key) > MAX_NAME_LENGTH:
        raise ValueError(f"has more than {MAX_NAME_LENGTH} characters, which no name's key has")
    return key


class EntityProperties(NodeProperties):
    """A person, place or thing that memories are about."""

    id_fields = ("uuid",)

    uuid: Id
    name: EntityName
    name_key: Annotated[StorableText, AfterValidator(_check_key_length)]
    type: Annotated[StorableText, AfterValidator(_check_entity_type)]
    labels: EntityLabels
    summary: StorableText
    aliases: list[StorableText]
    alias_keys: list[StorableText]
    alias_text: StorableText
    mentioned_in: list[Id] | None = Field(
        None, description="Memories that mention it beside subject and object. An import takes them from the memories."
    )
    attributes: JsonObject
    is_user: bool
    name_embedding: FiniteVector | None = None
    created_at: MarkedTime
    updated_at: MarkedTime

    @model_validator(mode="after")
    def _check_labels(self) -> Self:
        self.check_labels(self.labels)
        return self

    def to_graph(self) -> dict[str, Any]:
        """Return the properties as Neo4j stores them; the memories that mention the entity are relationships there."""
        return {name: value for name, value in super().to_graph().items() if name != "mentioned_in"}

    def check_labels(self, labels: Sequence[str]) -> None:
        """Raise ValueError unless labels are those of an entity of this type."""
        if {*labels} != {"Entity", self.type}:
            raise ValueError("has other labels than Entity and its type")


class FactProperties(Properties):
    """One version of a memory."""

    id_fields = (
        "memory_id", "uuid", "entity_ids", "episodes", "supersedes", "superseded_by", "contests", "associations",
        "derived_from", "ended_by",
    )  # fmt: skip

    memory_id: Id = Field(description="The memory; all its versions have the same.")
    uuid: Id = Field(description="This version.")
    version: Annotated[int, Field(ge=1, le=MAX_COUNT)]
    fact: Annotated[NonBlankText, Field(max_length=MAX_CONTENT_LENGTH)] = Field(description="The statement.")
    content_data: Annotated[JsonText, json_text(dict[str, Any])] | None = Field(
        None, description="The object that its writer gave as content."
    )
    name: Predicate = Field(description="The predicate.")
    subtype: StorableText | None = Field(None, description="The type as its writer gave it.")
    type: Annotated[MemoryType, Field(strict=False)]
    scope: Literal["profile", "domain", "episodic"] = Field(description="Global memories are not exported.")
    status: Annotated[MemoryStatus, Field(strict=False)]
    domain: StorableText | None = None
    tags: list[StorableText]
    metadata: JsonObject
    confidence: UnitInterval
    importance: UnitInterval
    strength: UnitInterval
    decay_rate: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(description="Per day.")
    access_count: Count
    valid_at: MarkedTime | None = None
    invalid_at: MarkedTime | None = None
    claimed_invalid_at: MarkedTime | None = Field(None, description="The end its writer gave, which a revert restores.")
    created_at: MarkedTime = Field(description="Since when this version is believed.")
    expired_at: MarkedTime | None = Field(None, description="Until when it was believed; absent: it still is.")
    first_created_at: MarkedTime
    updated_at: MarkedTime
    last_accessed_at: MarkedTime | None = None
    expires_at: MarkedTime | None = Field(None, description="From when on it is not recalled; absent: no limit.")
    immutable: bool
    single_valued: bool
    retired: bool
    content_hash: StorableText
    active_hash: StorableText | None = None
    search_text: StorableText | None = None
    source_kind: SourceKind
    trusted_as: SourceKind | None = Field(None, description="The kind of source whose trust it has, if another.")
    source_quote: StorableText | None = Field(None, description="What the source said.")
    speaker: StorableText | None = Field(None, description="Who stated it.")
    session_id: Id | None = None
    message_ids: list[Id] | None = None
    episodes: list[Id] | None = None
    entity_ids: list[Id] | None = None
    supersedes: list[Id] | None = None
    superseded_by: Id | None = None
    contests: list[Id] | None = Field(None, description="The memories that it contradicts, or did.")
    associations: list[Id] | None = None
    derived_from: list[Id] | None = Field(None, description="Of a profile, the memories that it was written from.")
    end_status: Annotated[MemoryStatus | None, Field(strict=False)] = None
    ended_reason: StorableText | None = None
    ended_by: Id | None = None
    ended_actor: StorableText | None = Field(None, description="Who deleted it.")
    actor: StorableText | None = None
    consolidated_at: MarkedTime | None = Field(None, description="When a consolidation run took it into account.")
    consolidated_by: Id | None = None
    compressed_at: MarkedTime | None = Field(None, description="When a run considered it for compression.")
    compressed_by: Id | None = None
    decayed_at: MarkedTime | None = Field(None, description="When its importance was last lowered.")
    reviewed_at: MarkedTime | None = Field(None, description="When it was last queued for consolidation again.")


class EpisodicProperties(NodeProperties):
    """A message."""

    id_fields = ("uuid", "entity_edges")

    uuid: Id
    message_id: Id
    session_id: Id
    position: Count
    role: Annotated[MessageRole, Field(strict=False)]
    speaker: StorableText | None = None
    author: StorableText | None = Field(None, description="The user who sent it to a space.")
    sent_as: StatedKind | None = Field(None, description="What its key spoke as.")
    content: Annotated[NonBlankText, Field(max_length=MAX_MESSAGE_LENGTH)]
    redacted: StorableText | None = Field(None, description="The content without secrets; absent when it has none.")
    content_embedding: FiniteVector | None = None
    caught: bool | None = Field(None, description="True where it addresses the assistant, so that it is not quoted.")
    name: StorableText
    source: StorableText
    source_description: StorableText
    entity_edges: list[Id] = Field(description="Versions that rest on the message.")
    valid_at: MarkedTime
    utc_offset_minutes: Annotated[int, Field(ge=-MAX_UTC_OFFSET_MINUTES, le=MAX_UTC_OFFSET_MINUTES)] | None = None
    created_at: MarkedTime
    extracted_at: MarkedTime | None = None
    intent: StorableText | None = None
    domain: StorableText | None = None
    entities: Annotated[JsonText, json_text(MessageEntities)]
    metadata: JsonObject
    rich_content: JsonObject | None = None
    query_results: JsonObject | None = None
    confidence: FiniteNumber | None = None
    sql_executed: StorableText | None = None
    execution_time_ms: FiniteNumber | None = None
    feedback_score: Annotated[int, Field(ge=1, le=5)] | None = None
    feedback_text: StorableText | None = None
    feedback_issues: list[StorableText] | None = None
    learned_from: StorableText | None = Field(None, description="The feedback that preferences were learned from.")


class ArchivedEpisodeProperties(NodeProperties):
    """A message whose text was replaced by a summary."""

    id_fields = ("uuid",)

    uuid: Id
    message_id: Id
    session_id: Id
    position: Count
    role: Annotated[MessageRole, Field(strict=False)]
    valid_at: MarkedTime
    created_at: MarkedTime
    extracted_at: MarkedTime | None = None
    archived_at: MarkedTime


class SessionProperties(NodeProperties):
    """A session."""

    id_fields = ("uuid", "last_episode")

    uuid: Id
    session_id: Id
    kind: Annotated[SessionKind, Field(strict=False)]
    title: StorableText | None = None
    summary: StorableText | None = None
    summarized_through: Count
    source_session_id: Id | None = None
    message_count: Count
    last_episode: Id | None = Field(None, description="The `uuid` of its last message.")
    intent_sequence: list[StorableText]
    topic_tags: list[StorableText]
    domain: StorableText | None = None
    sentiment_score: FiniteNumber | None = None
    author: StorableText | None = Field(None, description="The user who opened it in a space.")
    metadata: JsonObject
    is_active: bool
    created_at: MarkedTime
    updated_at: MarkedTime
    ended_at: MarkedTime | None = None
    archived_at: MarkedTime | None = None
    job_id: Id | None = Field(None, description="The job of an extraction.")
    transcript: list[Annotated[JsonText, json_text(RunMessage)]] | None = Field(
        None, description="What an extraction and its model said to one another."
    )

    @property
    def export_key(self) -> str:
        """The name of the session in the links of an export."""
        return f"session:{self.session_id}"


class SessionArchiveProperties(NodeProperties):
    """The summary that replaced the first messages of a session."""

    id_fields = ("uuid",)

    uuid: Id
    session_id: Id
    summary: StorableText
    message_count: Count
    started_at: MarkedTime
    ended_at: MarkedTime
    created_at: MarkedTime


class ContextItemProperties(NodeProperties):
    """A date, amount or thing that a message mentioned, or what a caller stated; `session_id` may then be empty."""

    export_key_field = "id"

    id: Id
    session_id: StorableText
    item_key: Id
    name: StorableText
    context_type: StorableText
    context_key: StorableText
    context_value: Annotated[JsonText, json_text(Any)]
    relevance_score: FiniteNumber
    expires_at: MarkedTime
    created_at: MarkedTime


class ContextUseProperties(NodeProperties):
    """The memories that a context held, and how the answer that it led to was rated."""

    id_fields = ("uuid", "memory_ids")

    uuid: Id
    session_id: Id | None = None
    memory_ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_MEMORIES_OF_USE)]
    score: Annotated[int, Field(ge=1, le=5)] | None = None
    credited: bool | None = Field(None, description="Whether a rating has strengthened the memories.")
    created_at: MarkedTime
    expires_at: MarkedTime
    rated_at: MarkedTime | None = None


class LearnedPreferenceProperties(NodeProperties):
    """How the user likes to be answered."""

    export_key_field = "id"

    id: Id
    preference_type: Annotated[PreferenceType, Field(strict=False)]
    preference_key: StorableText
    preference_value: Annotated[JsonText, json_text(dict[str, str])]
    name: StorableText
    learned_from: Annotated[JsonText, json_text(PreferenceSource)]
    confidence_score: FiniteNumber
    frequency: Count
    last_observed: MarkedTime
    created_at: MarkedTime
    updated_at: MarkedTime


class BehaviorPatternProperties(NodeProperties):
    """A behaviour that the user repeats."""

    export_key_field = "id"

    id: Id
    pattern_type: Annotated[PatternType, Field(strict=False)]
    pattern_key: StorableText
    pattern_description: StorableText
    pattern_data: JsonObject
    name: StorableText
    confidence_score: FiniteNumber
    occurrence_count: Count
    first_detected: MarkedTime
    last_detected: MarkedTime
    is_active: bool


class LearnedIntentProperties(NodeProperties):
    """How well an intent of the user is understood."""

    export_key_field = "id"

    id: Id
    intent: StorableText
    name: StorableText
    confidence_score: FiniteNumber
    positive: Count
    negative: Count
    successful_queries: list[StorableText]
    created_at: MarkedTime
    updated_at: MarkedTime


class InterestCandidateProperties(NodeProperties):
    """An interest that too few messages have shown to be a memory."""

    id_fields = ("uuid",)

    uuid: Id
    key: StorableText
    name: StorableText
    message_ids: list[Id]
    created_at: MarkedTime


class LinkProperties(Properties):
    """The properties of a relationship."""

    uuid: Id | None = None
    created_at: MarkedTime | None = None


Identity = tuple[str, ...]
"""What identifies a record among those of its user: its kind and the values of the properties that are unique."""

IDENTITY_FIELDS: dict[RecordLabel, tuple[str, ...]] = {
    RecordLabel.ARCHIVED_EPISODE: ("message_id",),
    RecordLabel.BEHAVIOR_PATTERN: ("pattern_type", "pattern_key"),
    RecordLabel.CONTEXT_ITEM: ("session_id", "item_key"),
    RecordLabel.CONTEXT_USE: ("uuid",),
    RecordLabel.EPISODIC: ("message_id",),
    RecordLabel.INTEREST_CANDIDATE: ("key",),
    RecordLabel.LEARNED_INTENT: ("intent",),
    RecordLabel.LEARNED_PREFERENCE: ("preference_type", "preference_key"),
    RecordLabel.SESSION: ("session_id",),
    RecordLabel.SESSION_ARCHIVE: ("uuid",),
}
"""Properties that are unique among the records of one user with a label."""


def record_identity(label: RecordLabel, properties: Mapping[str, Any]) -> Identity:
    """Return the identity of a record; a message keeps its identity when it is archived."""
    kind = RecordLabel.EPISODIC if label is RecordLabel.ARCHIVED_EPISODE else label
    return (kind.value, *(str(properties[name]) for name in IDENTITY_FIELDS[label]))


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


def _record_properties() -> Iterator[tuple[str, type[NodeProperties]]]:
    for tagged in get_args(get_args(ExportedRecord)[0]):
        record, tag = get_args(tagged)
        yield tag.tag, record.model_fields["properties"].annotation


RECORD_PROPERTIES = dict(_record_properties())
"""The properties of every kind of record, by its label."""

ExportEntry = ExportedEntity | ExportedVersion | ExportedRecord | ExportedLink
