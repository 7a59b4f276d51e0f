"""The JSON Schema of an export; YAML has the same structure."""

from __future__ import annotations

from typing import Any

from graphmem.user_data.export_document import UserExport
from graphmem.user_data.export_entries import EXPORT_SECTIONS, ExportedVersion

JSON_SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def export_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of an export: its sections and the type of each value."""
    schema = UserExport.model_json_schema()
    for name, definition in schema["$defs"].items():
        if name.endswith("Properties"):
            definition["properties"] = {key: _without_null(value) for key, value in definition["properties"].items()}
    version = schema["$defs"][ExportedVersion.__name__]
    version["required"] = [*version["required"], "vector"]
    schema["required"] = ["format", "schema_version", "user_id", "embedding", "user", *EXPORT_SECTIONS]
    return {"$schema": JSON_SCHEMA_DIALECT, **schema}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a property that an export leaves out where it is absent."""
    if "anyOf" not in schema:
        return schema
    given: dict[str, Any] = next(option for option in schema["anyOf"] if option != {"type": "null"})
    return given | {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
