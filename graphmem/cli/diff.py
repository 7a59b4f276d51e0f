"""What a consolidation run changes, as a table: one row for each field of a memory or an entity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from graphmem.cli.render import Renderable, add_row, make_table
from graphmem.domain.snapshot import ElementChange, ElementImage

MEMORY_FIELDS = {
    "status": "status",
    "superseded_by": "replaced by",
    "from": "about",
    "to": "object",
    "entity_ids": "mentions",
    "associations": "goes with",
    "confidence": "confidence",
    "importance": "importance",
    "tags": "tags",
    "valid_at": "since",
    "invalid_at": "until",
}
ENTITY_FIELDS = {"type": "type", "aliases": "aliases", "summary": "summary", "attributes": "attributes"}
"""The fields that are told, under the names they are told by; the others follow from them."""

Properties = Mapping[str, Any]


def render_changes(changes: Sequence[ElementChange]) -> list[Renderable]:
    """Draw what a run changed, or would change; nothing when it changes nothing."""
    if not changes:
        return []
    names = _display_names(changes)
    drawn = make_table("", "which", "what", "before", "after")
    for memory_id, (before, after) in _memory_states(changes).items():
        _add_rows(drawn, "memory", names.get(memory_id, memory_id), MEMORY_FIELDS, before, after, names)
    for change in changes:
        if change.kind == "entity":
            _add_rows(
                drawn, "entity", names[change.id], ENTITY_FIELDS, _fields(change.before), _fields(change.after), names
            )
    ties = sum(change.kind in ("episode", "mention") for change in changes)
    return [drawn, Text(f"and {ties} ties to messages")] if ties else [drawn]


def _memory_states(changes: Sequence[ElementChange]) -> dict[str, tuple[Properties | None, Properties | None]]:
    """Return what is believed of each memory before and after."""
    found: dict[str, tuple[Properties | None, Properties | None]] = {}
    for change in changes:
        if change.kind == "fact" and change.memory_id:
            before, after = found.get(change.memory_id, (None, None))
            found[change.memory_id] = (
                _known_now(_fields(change.before)) or before,
                _known_now(_fields(change.after)) or after,
            )
    return found


def _fields(image: ElementImage | None) -> Properties | None:
    return image.to_dict() if image else None


def _known_now(properties: Properties | None) -> Properties | None:
    return properties if properties and not properties.get("expired_at") else None


def _display_names(changes: Sequence[ElementChange]) -> dict[str, str]:
    found: dict[str, str] = {}
    for change in changes:
        properties = _fields(change.after or change.before) or {}
        if change.kind == "fact" and change.memory_id:
            found[change.memory_id] = str(properties.get("fact"))
        elif change.kind == "entity":
            found[change.id] = str(properties.get("name"))
    return found


def _add_rows(
    drawn: Any,
    kind: str,
    which: str,
    fields: Mapping[str, str],
    before: Properties | None,
    after: Properties | None,
    names: Mapping[str, str],
) -> None:
    if before is None or after is None:
        add_row(drawn, kind, which, "new" if before is None else "gone")
        return
    for name, was, now in _changed_fields(fields, before, after):
        add_row(drawn, kind, which, name, _format_value(was, names), _format_value(now, names))


def _changed_fields(fields: Mapping[str, str], before: Properties, after: Properties) -> Iterator[tuple[str, Any, Any]]:
    for field, name in fields.items():
        if before.get(field) != after.get(field):
            yield name, before.get(field), after.get(field)


def _format_value(value: object, names: Mapping[str, str]) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_format_value(each, names) for each in value)
    return "" if value is None else names.get(str(value), str(value))
