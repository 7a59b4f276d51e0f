"""What the rollback of a run would do, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from graphmem.consolidation.models import RollbackConflict, RollbackElement, RollbackPreview
from graphmem.memories.short_ids import shorten_id
from graphmem.memories.snapshot import ElementKind

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
