"""What a consolidation run changes, as a table: one row for each field of a memory or an entity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from graphmem.cli.render import Drawn, row, table
from graphmem.domain.proposals import Change

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

Image = Mapping[str, Any]


def difference(changes: Sequence[Change]) -> list[Drawn]:
    """Draw what a run changed, or would change; nothing when it changes nothing."""
    if not changes:
        return []
    names = _names(changes)
    drawn = table("", "which", "what", "before", "after")
    for memory_id, (before, after) in _memories(changes).items():
        _add(drawn, "memory", names.get(memory_id, memory_id), MEMORY_FIELDS, before, after, names)
    for change in changes:
        if change.kind == "entity":
            _add(drawn, "entity", names[change.id], ENTITY_FIELDS, change.before, change.after, names)
    ties = sum(change.kind in ("episode", "mention") for change in changes)
    return [drawn, Text(f"and {ties} ties to messages")] if ties else [drawn]


def _memories(changes: Sequence[Change]) -> dict[str, tuple[Image | None, Image | None]]:
    """Return what is believed of each memory before and after."""
    found: dict[str, tuple[Image | None, Image | None]] = {}
    for change in changes:
        if change.kind == "fact" and change.memory_id:
            before, after = found.get(change.memory_id, (None, None))
            found[change.memory_id] = (_believed(change.before) or before, _believed(change.after) or after)
    return found


def _believed(image: Image | None) -> Image | None:
    return image if image and not image.get("expired_at") else None


def _names(changes: Sequence[Change]) -> dict[str, str]:
    found: dict[str, str] = {}
    for change in changes:
        image = change.after or change.before or {}
        if change.kind == "fact" and change.memory_id:
            found[change.memory_id] = str(image.get("fact"))
        elif change.kind == "entity":
            found[change.id] = str(image.get("name"))
    return found


def _add(
    drawn: Any,
    kind: str,
    which: str,
    fields: Mapping[str, str],
    before: Image | None,
    after: Image | None,
    names: Mapping[str, str],
) -> None:
    if before is None or after is None:
        row(drawn, kind, which, "new" if before is None else "gone")
        return
    for name, was, now in _differing(fields, before, after):
        row(drawn, kind, which, name, _told(was, names), _told(now, names))


def _differing(fields: Mapping[str, str], before: Image, after: Image) -> Iterator[tuple[str, Any, Any]]:
    for field, name in fields.items():
        if before.get(field) != after.get(field):
            yield name, before.get(field), after.get(field)


def _told(value: object, names: Mapping[str, str]) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_told(each, names) for each in value)
    return "" if value is None else names.get(str(value), str(value))
