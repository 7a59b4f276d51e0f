"""The fields of a fact: one table for the row mapping, the Cypher fragments and the export schema."""

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
    MEMORY_TYPE = auto()
    SCOPE = auto()
    STATUS = auto()


@dataclass(frozen=True, slots=True)
class FactField:
    """One attribute of `Fact` that is a property of its edge.

    `stored_as` is the property's name where it differs from the attribute's. `for_callers` says that a `Memory` is
    made from it, `exported` that an export contains it, and `required` that every exported version has it. `minimum`
    is the least number allowed.
    """

    name: str
    kind: FieldKind
    stored_as: str = ""
    for_callers: bool = True
    exported: bool = True
    required: bool = False
    minimum: int | None = None
    description: str | None = None

    @property
    def property_name(self) -> str:
        """The name of the edge's property."""
        return self.stored_as or self.name

    @property
    def is_time(self) -> bool:
        """Whether the field is a time; queries return times apart from the other properties, as numbers."""
        return self.kind is FieldKind.TIME


FACT_FIELDS = (
    FactField("memory_id", FieldKind.TEXT, required=True, description="The memory; all its versions have the same."),
    FactField("uuid", FieldKind.TEXT, required=True, description="This version."),
    FactField("version", FieldKind.INTEGER, required=True, minimum=1),
    FactField("content", FieldKind.TEXT, stored_as="fact", required=True, description="The statement."),
    FactField("predicate", FieldKind.TEXT, stored_as="name", required=True, description="The predicate."),
    FactField("type", FieldKind.MEMORY_TYPE, required=True),
    FactField("scope", FieldKind.SCOPE, required=True),
    FactField("status", FieldKind.STATUS, required=True),
    FactField("domain", FieldKind.TEXT),
    FactField("tags", FieldKind.TEXT_LIST, required=True),
    FactField("metadata", FieldKind.JSON, required=True),
    FactField("confidence", FieldKind.UNIT, required=True),
    FactField("importance", FieldKind.UNIT, required=True),
    FactField("strength", FieldKind.UNIT, required=True),
    FactField("decay_rate", FieldKind.NUMBER, required=True, minimum=0),
    FactField("access_count", FieldKind.INTEGER, required=True, minimum=0),
    FactField("valid_at", FieldKind.TIME),
    FactField("invalid_at", FieldKind.TIME),
    FactField(
        "claimed_invalid_at",
        FieldKind.TIME,
        for_callers=False,
        description="The end its writer gave, which undoing brings back.",
    ),
    FactField("created_at", FieldKind.TIME, required=True, description="Since when this version is believed."),
    FactField("expired_at", FieldKind.TIME, description="Until when it was believed; absent: it is."),
    FactField("first_created_at", FieldKind.TIME, for_callers=False, required=True),
    FactField("updated_at", FieldKind.TIME, required=True),
    FactField("last_accessed_at", FieldKind.TIME),
    FactField("expires_at", FieldKind.TIME, description="From when on it is not recalled; absent: for ever."),
    FactField("immutable", FieldKind.FLAG, required=True),
    FactField("single_valued", FieldKind.FLAG, required=True),
    FactField("retired", FieldKind.FLAG, required=True),
    FactField("content_hash", FieldKind.TEXT, required=True),
    FactField("active_hash", FieldKind.TEXT, for_callers=False),
    FactField("search_text", FieldKind.TEXT, for_callers=False),
    FactField("source_kind", FieldKind.TEXT, required=True),
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
    FactField("actor", FieldKind.TEXT, for_callers=False),
    FactField("group_id", FieldKind.TEXT, exported=False),
)
"""Every field of `Fact` but `subject_id` and `object_id`, which are the ends of its edge."""

TIME_FIELDS = tuple(field.name for field in FACT_FIELDS if field.is_time)
"""The times of a version in the order of the fragment `fact_times`."""

SHADOW_PROPERTIES = ("valid_from", "valid_to", "known_from", "known_to")
"""Properties that repeat the bounds of both intervals without null, so that indexes can filter by them."""

VECTOR_PROPERTY = "fact_embedding"
"""The property that holds the embedding of the statement."""
