"""The format of an export as JSON Schema; YAML exports have the same structure."""

from __future__ import annotations

from typing import Any

from graphmem.domain.export import EXPORT_SECTIONS, TIME_MARKER, UserExport
from graphmem.domain.fact_fields import FACT_FIELDS, FactField, FieldKind
from graphmem.domain.memory import MemoryStatus, MemoryType, Scope

JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_INSTANT = {
    "type": "object",
    "properties": {TIME_MARKER: {"type": "string", "format": "date-time"}},
    "required": [TIME_MARKER],
    "additionalProperties": False,
}

_SCHEMAS: dict[FieldKind, dict[str, Any]] = {
    FieldKind.TEXT: {"type": "string"},
    FieldKind.INTEGER: {"type": "integer"},
    FieldKind.NUMBER: {"type": "number"},
    FieldKind.UNIT: {"type": "number", "minimum": 0, "maximum": 1},
    FieldKind.FLAG: {"type": "boolean"},
    FieldKind.TIME: _INSTANT,
    FieldKind.TEXT_LIST: {"type": "array", "items": {"type": "string"}},
    FieldKind.JSON: {"type": "string", "contentMediaType": "application/json"},
    FieldKind.MEMORY_TYPE: {"enum": [kind.value for kind in MemoryType]},
    FieldKind.SCOPE: {"enum": [scope.value for scope in Scope if scope is not Scope.GLOBAL]},
    FieldKind.STATUS: {"enum": [status.value for status in MemoryStatus]},
}
"""The JSON Schema of a property by the kind of its field; an export holds no global memory."""


def _property_schema(field: FactField) -> dict[str, Any]:
    schema = dict(_SCHEMAS[field.kind])
    if field.minimum is not None:
        schema["minimum"] = field.minimum
    if field.description:
        schema["description"] = field.description
    return schema


def export_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of an export, with the fields of a version from `FACT_FIELDS`."""
    schema = UserExport.model_json_schema()
    versions = schema["$defs"]["ExportedVersion"]
    versions["properties"]["properties"] = {
        "type": "object",
        "title": "Properties",
        "properties": {field.property_name: _property_schema(field) for field in FACT_FIELDS if field.exported},
        "required": [field.property_name for field in FACT_FIELDS if field.required],
        "additionalProperties": False,
    }
    versions["required"] = [*versions["required"], "vector"]
    schema["required"] = ["format", "schema_version", "user_id", "embedding", "user", *EXPORT_SECTIONS]
    return {"$schema": JSON_SCHEMA_DIALECT, **schema}
