"""What the jobs of ingestion report in `Job.actions`."""

from __future__ import annotations

from typing import Literal

from pydantic import TypeAdapter

from graphmem.domain.job import JobAction

MemoryActionName = Literal["insert", "reinforce", "supersede", "skip", "delete", "refuse", "note", "promote"]
"""What was done about a statement; `refuse` and `note` wrote no memory."""


class MemoryAction(JobAction):
    """What was done about one statement, or why it was not done; `superseded` are ids of memories it ended."""

    action: MemoryActionName
    memory_id: str | None = None
    type: str | None = None
    superseded: list[str] | None = None
    reason: str | None = None


class LinkAction(JobAction):
    """A known entity that was given a new name, or further aliases."""

    action: Literal["link"] = "link"
    entity_id: str
    name: str | None = None
    aliases: list[str] | None = None


ExtractionAction = MemoryAction | LinkAction
"""What extraction reports of one window."""

_ACTIONS: TypeAdapter[list[ExtractionAction]] = TypeAdapter(list[ExtractionAction])


def parse_extraction_actions(text: str) -> list[ExtractionAction]:
    """Return the actions that an applied window has recorded as JSON."""
    return _ACTIONS.validate_json(text)
