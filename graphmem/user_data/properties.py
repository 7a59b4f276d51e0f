"""The properties of a user's nodes and edges, one model per label.

An import writes what these models accept, so they are closed: properties that describe this database rather than the
user (`group_id`, `tenant`, `user_id`, `life`, `write_version`, `pending_job`, the shadow bounds) are not among their
fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from graphmem.context.context_use import MAX_MEMORIES_OF_USE
from graphmem.context.learned_preferences import PreferenceSource, PreferenceType
from graphmem.conversations.session import (
    MAX_MESSAGE_LENGTH,
    MessageEntities,
    MessageRole,
    RunMessage,
    SessionKind,
    TimeZoneName,
)
from graphmem.memories.entity import parse_entity_type
from graphmem.memories.memory import (
    MAX_CONTENT_LENGTH,
    MemoryStatus,
    MemoryType,
    Predicate,
)
from graphmem.neo4j.schema import RecordLabel
from graphmem.runtime.field_types import (
    MAX_NAME_LENGTH,
    EntityName,
    Id,
    UnitInterval,
)
from graphmem.runtime.text import NonBlankText, StorableText
from graphmem.tenants.pattern_type import PatternType
from graphmem.user_data.fields import (
    MAX_COUNT,
    Count,
    EntityLabels,
    FiniteNumber,
    FiniteVector,
    JsonObject,
    JsonText,
    MarkedTime,
    NodeProperties,
    Properties,
    json_text,
)

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
        "memory_id", "uuid", "entity_ids", "episodes", "supersedes", "superseded_by", "associations", "ended_by",
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
    source_kind: StorableText
    source_quote: StorableText | None = Field(None, description="What the source said.")
    session_id: Id | None = None
    message_ids: list[Id] | None = None
    episodes: list[Id] | None = None
    entity_ids: list[Id] | None = None
    supersedes: list[Id] | None = None
    superseded_by: Id | None = None
    associations: list[Id] | None = None
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
    content: Annotated[NonBlankText, Field(max_length=MAX_MESSAGE_LENGTH)]
    redacted: StorableText | None = Field(None, description="The content without secrets; absent when it has none.")
    content_embedding: FiniteVector | None = None
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
