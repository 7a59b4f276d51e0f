"""Types of the fields of an export, and the base of its models."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_serializer,
)

from graphmem.runtime.field_types import Metadata
from graphmem.runtime.json_values import parse_json
from graphmem.runtime.text import StorableText
from graphmem.runtime.times import Instant

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

    def with_ids(self, ids: Mapping[str, str]) -> Self:
        """Return the properties with the ids that `ids` maps replaced."""
        return self.model_copy(update={name: _replace_ids(getattr(self, name), ids) for name in self.id_fields})

    def to_graph(self) -> dict[str, Any]:
        """Return the properties as Neo4j stores them: times as `datetime`, enumerations as text."""
        return {name: str(value) if isinstance(value, str) else value for name, value in self.model_dump().items()}


def _replace_ids(value: object, ids: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return ids.get(value, value)
    if isinstance(value, list):
        return [ids.get(item, item) for item in value]
    return value


class NodeProperties(Properties):
    """The properties of a node that has a key in an export."""

    export_key_field: ClassVar[str] = "uuid"
    """The field that contains the key."""

    @property
    def export_key(self) -> str:
        """The name of the node in the links of an export."""
        return str(getattr(self, self.export_key_field))
