"""Exports of earlier schema versions, brought step by step to the form of the current one. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from graphmem.runtime.errors import InvalidInput

EXPORT_SCHEMA_VERSION: Final = "1.1"
"""Version of the form of exports; it changes with every change by which earlier releases cannot read them."""


def _accept(export: dict[str, Any]) -> dict[str, Any]:
    """Return an export unchanged: the next version only adds properties that may be absent."""
    return export


_STEPS: Mapping[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {"1.0": ("1.1", _accept)}
"""By schema version: the next one, and the step that leads to it."""


def upcast_export(document: Any) -> Any:
    """Return an export in the form of the current schema version; other documents are returned unchanged.

    Raises InvalidInput for a schema version that this release does not know.
    """
    if not isinstance(document, dict):
        return document
    export = document
    version = export.get("schema_version")
    while isinstance(version, str) and version in _STEPS:
        version, step = _STEPS[version]
        export = {**step(export), "schema_version": version}
    if isinstance(version, str) and version != EXPORT_SCHEMA_VERSION:
        raise InvalidInput(
            "The export has a schema version that this release does not know: upgrade graphmem.",
            errors=[{"loc": ["schema_version"], "msg": f"must be {', '.join([*_STEPS, EXPORT_SCHEMA_VERSION])}"}],
        )
    return export
