"""The fields of a fact: one table for the row mapping and the Cypher fragments; the export model is checked by it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class FieldKind(Enum):
    """The type of a field; it decides how the field is stored and described."""

    TEXT = auto()
    INTEGER = auto()
    NUMBER = auto()
    UNIT = auto()
    FLAG = auto()
    TIME = auto()
    TEXT_LIST = auto()
    JSON = auto()
    OPTIONAL_JSON = auto()
    MEMORY_TYPE = auto()
    SCOPE = auto()
    STATUS = auto()


@dataclass(frozen=True, slots=True)
class FactField:
    """One attribute of `Fact` that is a property of its edge.

    `stored_as` is the property's name where it differs from the attribute's. `for_callers` says that a `Memory` is
    made from it.
    """

    name: str
    kind: FieldKind
    stored_as: str = ""
    for_callers: bool = True

    @property
    def property_name(self) -> str:
        """The name of the edge's property."""
        return self.stored_as or self.name

    @property
    def is_time(self) -> bool:
        """Whether the field is a time; queries return times apart from the other properties, as numbers."""
        return self.kind is FieldKind.TIME


FACT_FIELDS = (
    FactField("memory_id", FieldKind.TEXT),
    FactField("uuid", FieldKind.TEXT),
    FactField("version", FieldKind.INTEGER),
    FactField("content", FieldKind.TEXT, stored_as="fact"),
    FactField("predicate", FieldKind.TEXT, stored_as="name"),
    FactField("content_data", FieldKind.OPTIONAL_JSON),
    FactField("type", FieldKind.MEMORY_TYPE),
    FactField("subtype", FieldKind.TEXT),
    FactField("scope", FieldKind.SCOPE),
    FactField("status", FieldKind.STATUS),
    FactField("domain", FieldKind.TEXT),
    FactField("tags", FieldKind.TEXT_LIST),
    FactField("metadata", FieldKind.JSON),
    FactField("confidence", FieldKind.UNIT),
    FactField("importance", FieldKind.UNIT),
    FactField("strength", FieldKind.UNIT),
    FactField("decay_rate", FieldKind.NUMBER),
    FactField("access_count", FieldKind.INTEGER),
    FactField("valid_at", FieldKind.TIME),
    FactField("invalid_at", FieldKind.TIME),
    FactField("claimed_invalid_at", FieldKind.TIME, for_callers=False),
    FactField("created_at", FieldKind.TIME),
    FactField("expired_at", FieldKind.TIME),
    FactField("first_created_at", FieldKind.TIME, for_callers=False),
    FactField("updated_at", FieldKind.TIME),
    FactField("last_accessed_at", FieldKind.TIME),
    FactField("expires_at", FieldKind.TIME),
    FactField("immutable", FieldKind.FLAG),
    FactField("single_valued", FieldKind.FLAG),
    FactField("retired", FieldKind.FLAG),
    FactField("content_hash", FieldKind.TEXT),
    FactField("active_hash", FieldKind.TEXT, for_callers=False),
    FactField("search_text", FieldKind.TEXT, for_callers=False),
    FactField("source_kind", FieldKind.TEXT),
    FactField("source_quote", FieldKind.TEXT),
    FactField("session_id", FieldKind.TEXT),
    FactField("message_ids", FieldKind.TEXT_LIST),
    FactField("episodes", FieldKind.TEXT_LIST, for_callers=False),
    FactField("entity_ids", FieldKind.TEXT_LIST),
    FactField("supersedes", FieldKind.TEXT_LIST),
    FactField("superseded_by", FieldKind.TEXT),
    FactField("associations", FieldKind.TEXT_LIST),
    FactField("end_status", FieldKind.STATUS),
    FactField("ended_reason", FieldKind.TEXT, for_callers=False),
    FactField("ended_by", FieldKind.TEXT, for_callers=False),
    FactField("ended_actor", FieldKind.TEXT, for_callers=False),
    FactField("actor", FieldKind.TEXT, for_callers=False),
    FactField("group_id", FieldKind.TEXT),
)
"""Every field of `Fact` but `subject_id` and `object_id`, which are the ends of its edge."""

TIME_FIELDS = tuple(field.name for field in FACT_FIELDS if field.is_time)
"""The times of a version in the order of the fragment `fact_times`."""

SHADOW_PROPERTIES = ("valid_from", "valid_to", "known_from", "known_to")
"""Properties that repeat the bounds of both intervals without null, so that indexes can filter by them."""

VECTOR_PROPERTY = "fact_embedding"
"""The property that holds the embedding of the statement."""

NEXT_VECTOR_PROPERTY = "next_vector"
"""The property of facts, entities and messages that holds their vector of the next model while they are re-embedded."""
