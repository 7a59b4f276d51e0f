"""What a consolidation run changed, and what its rollback would do, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from graphmem.cli.render import Renderable
from graphmem.cli.tables import add_row, make_table
from graphmem.consolidation.models import RollbackConflict, RollbackElement, RollbackPreview
from graphmem.memories.snapshot import ElementChange, ElementImage, ElementKind
from graphmem.runtime.short_ids import shorten_id

if TYPE_CHECKING:
    from rich.table import Table


MEMORY_FIELDS = {
    "status": "status",
    "superseded_by": "replaced by",
    "from": "subject",
    "to": "object",
    "entity_ids": "mentions",
    "associations": "associated with",
    "confidence": "confidence",
    "importance": "importance",
    "tags": "tags",
    "valid_at": "valid from",
    "invalid_at": "valid until",
}
"""The fields of a memory that are shown, and their names in the table; all others follow from these."""


ENTITY_FIELDS = {"type": "type", "aliases": "aliases", "summary": "summary", "attributes": "attributes"}
"""The fields of an entity that are shown, and their names in the table."""


Properties = Mapping[str, Any]


def render_changes(changes: Sequence[ElementChange]) -> list[Renderable]:
    """Return the changes of a run, or of a dry run, as a table; an empty list when there are none."""
    if not changes:
        return []
    names = _display_names(changes)
    table = make_table("", "which", "field", "before", "after")
    for memory_id, (before, after) in _memory_states(changes).items():
        _add_rows(table, "memory", names.get(memory_id, memory_id), MEMORY_FIELDS, before, after, names)
    for change in changes:
        if change.kind == "entity":
            before, after = _properties_of(change.before), _properties_of(change.after)
            _add_rows(table, "entity", names[change.id], ENTITY_FIELDS, before, after, names)
    link_count = sum(change.kind in ("episode", "mention") for change in changes)
    return [table, Text(f"and {link_count} links to messages")] if link_count else [table]


def _memory_states(changes: Sequence[ElementChange]) -> dict[str, tuple[Properties | None, Properties | None]]:
    """Return the current version of each memory before and after."""
    states: dict[str, tuple[Properties | None, Properties | None]] = {}
    for change in changes:
        if change.kind == "fact" and change.memory_id:
            before, after = states.get(change.memory_id, (None, None))
            states[change.memory_id] = (
                _if_known(_properties_of(change.before)) or before,
                _if_known(_properties_of(change.after)) or after,
            )
    return states


def _properties_of(image: ElementImage | None) -> Properties | None:
    return image.to_dict() if image else None


def _if_known(version: Properties | None) -> Properties | None:
    """Return a version unless its known time has ended."""
    return version if version and not version.get("expired_at") else None


def _display_names(changes: Sequence[ElementChange]) -> dict[str, str]:
    names: dict[str, str] = {}
    for change in changes:
        properties = _properties_of(change.after or change.before) or {}
        if change.kind == "fact" and change.memory_id:
            names[change.memory_id] = str(properties.get("fact"))
        elif change.kind == "entity":
            names[change.id] = str(properties.get("name"))
    return names


def _add_rows(
    table: Table,
    kind: str,
    which: str,
    fields: Mapping[str, str],
    before: Properties | None,
    after: Properties | None,
    names: Mapping[str, str],
) -> None:
    if before is None or after is None:
        add_row(table, kind, which, "new" if before is None else "removed")
        return
    for name, old, new in _changed_fields(fields, before, after):
        add_row(table, kind, which, name, _format_value(old, names), _format_value(new, names))


def _changed_fields(fields: Mapping[str, str], before: Properties, after: Properties) -> Iterator[tuple[str, Any, Any]]:
    for field, name in fields.items():
        if before.get(field) != after.get(field):
            yield name, before.get(field), after.get(field)


def _format_value(value: object, names: Mapping[str, str]) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_format_value(item, names) for item in value)
    return "" if value is None else names.get(str(value), str(value))


_NOUNS = {ElementKind.FACT: "memory", ElementKind.ENTITY: "entity"}
"""What a sentence calls an element; links to messages are counted instead."""


def describe_rollback(preview: RollbackPreview) -> list[str]:
    """Return what goes back, comes back, stays and conflicts, one sentence each."""
    return [
        *_describe("Goes back", preview.goes_back, "is removed"),
        *_describe("Comes back", preview.comes_back, "as it was before the run"),
        *_describe("Stays", preview.stays, "as it is now"),
        *map(_describe_conflict, preview.conflicts),
        _summarise(len(preview.conflicts)),
    ]


def _describe(verb: str, elements: Iterable[RollbackElement], end: str) -> Iterator[str]:
    links = 0
    for element in elements:
        if noun := _NOUNS.get(element.kind):
            name = repr(element.text) if element.text else shorten_id(element.memory_id or element.id)
            yield f"{verb}: the {noun} {name} {end}."
        else:
            links += 1
    if links:
        noun, ending = ("link", end) if links == 1 else ("links", end.replace("is removed", "are removed"))
        yield f"{verb}: {links} {noun} to messages {ending}."


def _describe_conflict(conflict: RollbackConflict) -> str:
    noun = _NOUNS.get(conflict.kind, "link to a message")
    name = shorten_id(conflict.memory_id or conflict.id)
    fields = f" ({', '.join(conflict.fields)})" if conflict.fields else ""
    return f"Conflict: the {noun} {name}{fields}: {conflict.detail.rstrip('.')}."


def _summarise(conflicts: int) -> str:
    if not conflicts:
        return "Nothing conflicts."
    noun = "1 later write" if conflicts == 1 else f"{conflicts} later writes"
    return f"{noun} would be overwritten: give --force to do so, or change them first."
