"""The exported properties of every label: their types, and which ones are ids.

The types come from the models that nodes and edges are written from or read into; the table adds properties without a
model, and narrows the values that an import accepts. It omits properties that describe this database rather than the
user (`group_id`, `tenant`, `user_id`, `life`, `write_version`, `pending_job` and its store, the shadow bounds). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)

from graphmem.context.models import (
    MAX_MEMORIES_OF_USE,
    BehaviorPattern,
    ContextItem,
    LearnedIntent,
    LearnedPreference,
)
from graphmem.conversations.session import (
    MAX_MESSAGE_LENGTH,
    MemoryDefaults,
    Message,
    MessageEntities,
    RunMessage,
    Session,
    SessionArchive,
    TimeZoneName,
)
from graphmem.memories.entity import Entity, parse_entity_type
from graphmem.memories.fact import FACT_FIELDS
from graphmem.memories.memory import MAX_CONTENT_LENGTH, Predicate
from graphmem.neo4j.schema import RecordLabel
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
from graphmem.tenants.trust import SourceKind, StatedKind
from graphmem.user_data.models import ElementId

TIME_MARKER = "$time"
"""The key of an object that represents a time."""

MAX_COUNT = 2**31 - 1
"""Upper bound of counters, so that increments stay within 64 bits."""

MAX_UTC_OFFSET_MINUTES = 24 * 60
"""Upper bound of a speaker's UTC offset, in minutes."""


def _unwrap_time(value: object) -> object:
    if isinstance(value, datetime):
        return value
    if isinstance(value, dict) and value.keys() == {TIME_MARKER}:
        return value[TIME_MARKER]
    raise ValueError(f"must be a time, written as an object with the one key {TIME_MARKER}")


def _wrap_time(value: datetime) -> dict[str, str]:
    return {TIME_MARKER: value.isoformat()}


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
"""An embedding; an import checks its dimension."""

EntityLabels = Annotated[list[StorableText], Field(min_length=2, max_length=2)]
"""The labels of an entity node: `Entity` and its type."""

Score = Annotated[int, Field(ge=1, le=5)]
"""A rating."""


def _json_text(content: Any) -> Any:
    """Return the type of a text with JSON of the type `content`."""
    adapter: TypeAdapter[Any] = TypeAdapter(content)

    def check(text: str) -> str:
        try:
            adapter.validate_python(parse_json(text))
        except ValidationError:
            raise ValueError("is JSON with another structure") from None
        except ValueError:
            raise ValueError("is not JSON that can be stored") from None
        return text

    schema = WithJsonSchema({"type": "string", "contentMediaType": "application/json"})
    return Annotated[StorableText, schema, AfterValidator(check)]


JsonObject = _json_text(Metadata)
"""Text that is a JSON object with the limits of metadata."""

_EXPORTED_AS: Mapping[Any, Any] = {
    datetime: MarkedTime,
    str: StorableText,
    int: Count,
    float: FiniteNumber,
    dict[str, Any]: JsonObject,
}
"""The type of a value in an export, by its type in a model; other types stay unchanged."""


def _to_exported(kind: Any) -> Any:
    """Return the type of a field's value in an export; optional values may be absent."""
    if get_origin(kind) in (Union, UnionType):
        [given] = [option for option in get_args(kind) if option is not NoneType]
        return _to_exported(given) | None
    if get_origin(kind) in (list, tuple):
        return list[_to_exported(get_args(kind)[0])]  # pyrefly: ignore[invalid-annotation] - the type is computed
    if get_origin(kind) is dict and kind not in _EXPORTED_AS:
        return _json_text(kind)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return Annotated[kind, Field(strict=False)]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return _json_text(kind)
    return _EXPORTED_AS.get(kind, kind)


def _fields(model: type[BaseModel], names: str) -> dict[str, Any]:
    """Return the export types of a model's fields; fields with a default may be absent."""
    types = {name: _to_exported(model.model_fields[name].annotation) for name in names.split()}
    return {name: kind if model.model_fields[name].is_required() else kind | None for name, kind in types.items()}


def _described(kind: Any, description: str) -> Any:
    return Annotated[kind, Field(description=description)]


def _check_entity_type(name: str) -> str:
    if parse_entity_type(name) != name:
        raise ValueError("must be an entity type in its stored form, such as Person")
    return name


def _check_key_length(key: str) -> str:
    if len(key) > MAX_NAME_LENGTH:
        raise ValueError(f"has more than {MAX_NAME_LENGTH} characters, which no name's key has")
    return key


FACT_MARKS: Mapping[str, Any] = {
    "consolidated_at": _described(MarkedTime | None, "When a consolidation run took it into account."),
    "consolidated_by": Id | None,
    "compressed_at": _described(MarkedTime | None, "When a run considered it for compression."),
    "compressed_by": Id | None,
    "decayed_at": _described(MarkedTime | None, "When its importance was last lowered."),
    "reviewed_at": _described(MarkedTime | None, "When it was last queued for consolidation again."),
}
"""Properties set by maintenance and consolidation that are not fields of a fact."""

_SOURCES_OF_1_0: Mapping[object, str] = {
    "api": "user",
    "extraction": "user",
    "summary": "consolidation",
    **dict.fromkeys(("records", "graphmem", "graphiti", "mem0", "chat"), "import"),
}
"""The kinds of sources by their names in exports of schema version 1.0."""


def _to_source_kind(value: object) -> object:
    return _SOURCES_OF_1_0.get(value, value) if isinstance(value, str) else value


_FACT_LISTS_OF_IDS = (
    "message_ids", "episodes", "entity_ids", "supersedes", "contests", "associations", "derived_from"
)  # fmt: skip

_FACT: Mapping[str, Any] = {
    **{field.property_name: _to_exported(field.type) for field in FACT_FIELDS if field.name != "group_id"},
    **dict.fromkeys(_FACT_LISTS_OF_IDS, list[Id] | None),
    **dict.fromkeys(("session_id", "superseded_by", "ended_by"), Id | None),
    **dict.fromkeys(("confidence", "importance", "strength"), UnitInterval),
    "memory_id": _described(ElementId, "The memory; all its versions have the same."),
    "uuid": _described(ElementId, "This version."),
    "version": Annotated[int, Field(ge=1, le=MAX_COUNT)],
    "fact": _described(Annotated[NonBlankText, Field(max_length=MAX_CONTENT_LENGTH)], "The statement."),
    "content_data": _described(_json_text(dict[str, Any]) | None, "The object that its writer gave as content."),
    "name": _described(Predicate, "The predicate."),
    "subtype": _described(StorableText | None, "The type as its writer gave it."),
    "scope": _described(Literal["profile", "domain", "episodic"], "Global memories are not exported."),
    "decay_rate": _described(Annotated[float, Field(ge=0, allow_inf_nan=False)], "Per day."),
    "search_text": StorableText | None,
    "source_kind": Annotated[SourceKind, BeforeValidator(_to_source_kind)],
    "claimed_invalid_at": _described(MarkedTime | None, "The end its writer gave, which a revert restores."),
    "created_at": _described(MarkedTime, "Since when this version is believed."),
    "expired_at": _described(MarkedTime | None, "Until when it was believed; absent: it still is."),
    "expires_at": _described(MarkedTime | None, "From when on it is not recalled; absent: no limit."),
    "ended_actor": _described(StorableText | None, "Who deleted it."),
    "trusted_as": _described(SourceKind | None, "The kind of source whose trust it has, if another."),
    "source_quote": _described(StorableText | None, "What the source said."),
    "speaker": _described(StorableText | None, "Who stated it."),
    "contests": _described(list[Id] | None, "The memories that it contradicts, or did."),
    "derived_from": _described(list[Id] | None, "For a profile, the memories that it was written from."),
    **FACT_MARKS,
}

PROPERTIES: Mapping[str, Mapping[str, Any]] = {
    "User": {
        "created_at": MarkedTime | None,
        "timezone": TimeZoneName | None,
        "timezone_source_kind": _described(StatedKind | None, "The source that gave the time zone."),
        "persona": _described(
            _json_text(dict[str, float]) | None, "Weights by memory type or tag, which searches use."
        ),
        "persona_source_kind": _described(StatedKind | None, "The source that set the weights."),
    },
    "Entity": {
        **_fields(Entity, "created_at updated_at"),
        "uuid": ElementId,
        "name": EntityName,
        "name_key": Annotated[StorableText, AfterValidator(_check_key_length)],
        "type": Annotated[StorableText, AfterValidator(_check_entity_type)],
        "labels": EntityLabels,
        "summary": StorableText,
        "is_user": bool,
        "aliases": list[StorableText],
        "alias_keys": list[StorableText],
        "detail_sources": list[StorableText] | None,
        "alias_text": StorableText,
        "mentioned_in": _described(
            list[Id] | None,
            "Memories that mention it beside subject and object. An import takes them from the memories.",
        ),
        "attributes": JsonObject,
        "name_embedding": FiniteVector | None,
    },
    "Fact": _FACT,
    RecordLabel.EPISODIC: {
        **_fields(
            Message,
            "session_id position role created_at extracted_at intent domain entities metadata "
            "rich_content query_results confidence sql_executed execution_time_ms feedback_text "
            "feedback_issues",
        ),
        "uuid": ElementId,
        "message_id": Id,
        "session_id": Id,
        "speaker": StorableText | None,
        "author": _described(StorableText | None, "The user who sent it to a space."),
        "content": Annotated[NonBlankText, Field(max_length=MAX_MESSAGE_LENGTH)],
        "redacted": _described(StorableText | None, "The content without secrets; absent when it has none."),
        "content_embedding": FiniteVector | None,
        "sent_as": _described(StatedKind | None, "What its key spoke as."),
        "caught": _described(bool | None, "True where it addresses the assistant, so that it is not quoted."),
        "name": StorableText,
        "source": StorableText,
        "source_description": StorableText,
        "entity_edges": _described(list[Id], "Versions that rest on the message."),
        "valid_at": MarkedTime,
        "utc_offset_minutes": Annotated[int, Field(ge=-MAX_UTC_OFFSET_MINUTES, le=MAX_UTC_OFFSET_MINUTES)] | None,
        "entities": _json_text(MessageEntities),
        "feedback_score": Score | None,
        "memory_defaults": _described(
            _json_text(MemoryDefaults) | None, "Metadata and expiry of the memories that are extracted from it."
        ),
        "learned_from": _described(StorableText | None, "The feedback that preferences were learned from."),
        "rating_source_kind": _described(StatedKind | None, "The source that rated it."),
    },
    RecordLabel.ARCHIVED_EPISODE: {
        **_fields(Message, "position role created_at extracted_at"),
        "uuid": ElementId,
        "message_id": Id,
        "session_id": Id,
        "valid_at": MarkedTime,
        "archived_at": MarkedTime,
    },
    RecordLabel.SESSION: {
        **_fields(
            Session,
            "kind title summary summarized_through message_count intent_sequence topic_tags domain "
            "sentiment_score metadata is_active created_at updated_at ended_at",
        ),
        "uuid": ElementId,
        "session_id": Id,
        "source_session_id": Id | None,
        "last_episode": _described(Id | None, "The `uuid` of its last message."),
        "author": _described(StorableText | None, "The user who opened it in a space."),
        "sent_as": _described(StatedKind | None, "The source whose key opened it, where that is not the user."),
        "archived_at": MarkedTime | None,
        "job_id": _described(Id | None, "The job of an extraction."),
        "transcript": _described(
            list[_json_text(RunMessage)] | None,  # pyrefly: ignore[invalid-annotation] - the type is computed
            "What an extraction and its model said to one another.",
        ),
    },
    RecordLabel.SESSION_ARCHIVE: {
        **_fields(SessionArchive, "summary message_count started_at ended_at"),
        "uuid": ElementId,
        "session_id": Id,
        "created_at": MarkedTime,
    },
    RecordLabel.CONTEXT_ITEM: {
        **_fields(ContextItem, "context_type context_key relevance_score expires_at created_at source_kind"),
        "id": ElementId,
        "session_id": StorableText,
        "item_key": Id,
        "name": StorableText,
        "context_value": _json_text(Any),
    },
    RecordLabel.CONTEXT_USE: {
        "uuid": ElementId,
        "session_id": Id | None,
        "memory_ids": Annotated[list[Id], Field(min_length=1, max_length=MAX_MEMORIES_OF_USE)],
        "score": Score | None,
        "credited": _described(bool | None, "Whether a rating has strengthened the memories."),
        "created_at": MarkedTime,
        "expires_at": MarkedTime,
        "rated_at": MarkedTime | None,
        "rating_source_kind": _described(StatedKind | None, "The source that rated the answer."),
    },
    RecordLabel.LEARNED_PREFERENCE: {
        **_fields(
            LearnedPreference,
            "preference_type preference_key preference_value learned_from confidence_score frequency "
            "last_observed created_at updated_at source_kind",
        ),
        "id": ElementId,
        "name": StorableText,
    },
    RecordLabel.BEHAVIOR_PATTERN: {
        **_fields(
            BehaviorPattern,
            "pattern_type pattern_description pattern_data confidence_score occurrence_count "
            "first_detected last_detected is_active source_kind",
        ),
        "id": ElementId,
        "pattern_key": StorableText,
        "name": StorableText,
    },
    RecordLabel.LEARNED_INTENT: {
        **_fields(LearnedIntent, "intent confidence_score positive negative successful_queries created_at updated_at"),
        "id": ElementId,
        "name": StorableText,
    },
    RecordLabel.INTEREST_CANDIDATE: {
        "uuid": ElementId,
        "key": StorableText,
        "name": StorableText,
        "message_ids": list[Id],
        "created_at": MarkedTime,
    },
    "Link": {"uuid": Id | None, "created_at": MarkedTime | None},
}
"""By label, the type of every property; those that may be None may be absent. `Fact` and `Link` are relationships."""

ID_PROPERTIES: Mapping[str, tuple[str, ...]] = {
    "Entity": ("uuid",),
    "Fact": ("memory_id", "uuid", *(name for name in _FACT_LISTS_OF_IDS if name != "message_ids"), "superseded_by",
             "ended_by"),
    RecordLabel.EPISODIC: ("uuid", "entity_edges"),
    RecordLabel.ARCHIVED_EPISODE: ("uuid",),
    RecordLabel.SESSION: ("uuid", "last_episode"),
    RecordLabel.SESSION_ARCHIVE: ("uuid",),
    RecordLabel.CONTEXT_USE: ("uuid", "memory_ids"),
    RecordLabel.INTEREST_CANDIDATE: ("uuid",),
}  # fmt: skip
"""By label, the properties with ids that an import may replace."""

IDENTITY_PROPERTIES: Mapping[RecordLabel, tuple[str, ...]] = {
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
"""Properties that are unique among a user's records with a label."""

Identity = tuple[str, ...]
"""The identity of a record among its user's: its kind and the values of the unique properties."""


def record_identity(label: RecordLabel, properties: Mapping[str, Any]) -> Identity:
    """Return the identity of a record; an archived message keeps its identity."""
    kind = RecordLabel.EPISODIC if label is RecordLabel.ARCHIVED_EPISODE else label
    return (kind.value, *(str(properties[name]) for name in IDENTITY_PROPERTIES[label]))


def _may_be_absent(kind: Any) -> bool:
    options = get_args(kind)
    if get_origin(kind) is Annotated:
        return _may_be_absent(options[0])
    return NoneType in options


REQUIRED_LISTS: Mapping[str, tuple[str, ...]] = {
    label: tuple(name for name, kind in types.items() if not _may_be_absent(kind) and list in (get_origin(kind), kind))
    for label, types in PROPERTIES.items()
}
"""By label, the lists that an export always has, although empty ones are not stored."""


def replace_id_properties(label: str, properties: Mapping[str, Any], ids: Mapping[str, str]) -> dict[str, Any]:
    """Return an element's properties with ids replaced according to `ids`."""
    replaced = {name: replace_ids(properties[name], ids) for name in ID_PROPERTIES.get(label, ()) if name in properties}
    return {**properties, **replaced}


def replace_ids(value: Any, ids: Mapping[str, str]) -> Any:
    """Return a property value (an id, several, or None) with ids replaced according to `ids`."""
    if isinstance(value, str):
        return ids.get(value, value)
    if isinstance(value, (list, tuple)):
        return type(value)(ids.get(item, item) for item in value)
    return value
