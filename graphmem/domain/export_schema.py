"""The form of an export as JSON Schema, for whoever writes or checks one; YAML has the same form."""

from __future__ import annotations

from typing import Any

from graphmem.domain.export import EXPORT_SECTIONS, TIME_MARKER, UserExport
from graphmem.domain.memory import MemoryStatus, MemoryType, Scope

JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_INSTANT = {
    "type": "object",
    "properties": {TIME_MARKER: {"type": "string", "format": "date-time"}},
    "required": [TIME_MARKER],
    "additionalProperties": False,
}
_TEXT = {"type": "string"}
_FLAG = {"type": "boolean"}
_UNIT = {"type": "number", "minimum": 0, "maximum": 1}
_IDS = {"type": "array", "items": _TEXT}

_VERSION_PROPERTIES: dict[str, Any] = {
    "memory_id": {**_TEXT, "description": "The memory; all its versions have the same."},
    "uuid": {**_TEXT, "description": "This version."},
    "version": {"type": "integer", "minimum": 1},
    "fact": {**_TEXT, "description": "The statement."},
    "name": {**_TEXT, "description": "The predicate."},
    "type": {"enum": [each.value for each in MemoryType]},
    "scope": {"enum": [each.value for each in Scope if each is not Scope.GLOBAL]},
    "status": {"enum": [each.value for each in MemoryStatus]},
    "domain": _TEXT,
    "tags": _IDS,
    "metadata": {**_TEXT, "contentMediaType": "application/json"},
    "confidence": _UNIT,
    "importance": _UNIT,
    "strength": _UNIT,
    "decay_rate": {"type": "number", "minimum": 0},
    "access_count": {"type": "integer", "minimum": 0},
    "valid_at": _INSTANT,
    "invalid_at": _INSTANT,
    "claimed_invalid_at": {**_INSTANT, "description": "The end its writer gave, which undoing brings back."},
    "created_at": {**_INSTANT, "description": "Since when this version is believed."},
    "expired_at": {**_INSTANT, "description": "Until when it was believed; absent: it is."},
    "first_created_at": _INSTANT,
    "updated_at": _INSTANT,
    "last_accessed_at": _INSTANT,
    "expires_at": {**_INSTANT, "description": "From when on it is not recalled; absent: for ever."},
    "immutable": _FLAG,
    "single_valued": _FLAG,
    "retired": _FLAG,
    "content_hash": _TEXT,
    "active_hash": _TEXT,
    "search_text": _TEXT,
    "source_kind": _TEXT,
    "session_id": _TEXT,
    "message_ids": _IDS,
    "episodes": _IDS,
    "entity_ids": _IDS,
    "supersedes": _IDS,
    "superseded_by": _TEXT,
    "associations": _IDS,
    "end_status": {"enum": [each.value for each in MemoryStatus]},
    "ended_reason": _TEXT,
    "ended_by": _TEXT,
    "actor": _TEXT,
}
_REQUIRED_PROPERTIES = (
    "memory_id", "uuid", "version", "fact", "name", "type", "scope", "status", "tags", "metadata", "confidence",
    "importance", "strength", "decay_rate", "access_count", "created_at", "first_created_at", "updated_at",
    "immutable", "single_valued", "retired", "content_hash", "source_kind",
)  # fmt: skip


def export_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of an export: what stands in it and of which kind each value is."""
    schema = UserExport.model_json_schema()
    versions = schema["$defs"]["ExportedVersion"]
    versions["properties"]["properties"] = {
        "type": "object",
        "title": "Properties",
        "properties": _VERSION_PROPERTIES,
        "required": list(_REQUIRED_PROPERTIES),
        "additionalProperties": False,
    }
    versions["required"] = [*versions["required"], "vector"]
    schema["required"] = ["format", "schema_version", "user_id", "embedding", "user", *EXPORT_SECTIONS]
    return {"$schema": JSON_SCHEMA_DIALECT, **schema}
