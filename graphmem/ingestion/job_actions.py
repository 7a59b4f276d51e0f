"""What the jobs of ingestion report in `Job.actions`."""

from __future__ import annotations

from typing import Literal

from pydantic import TypeAdapter

from graphmem.jobs.job import JobAction
from graphmem.memories.memory import MemoryType, SaveResult
from graphmem.text.storable import remove_unstorable

MAX_REASON_CHARACTERS = 200
"""Characters of a model's reason that are stored."""

MemoryActionName = Literal["insert", "reinforce", "supersede", "end", "skip", "delete", "refuse", "note", "promote"]
"""What was done about a statement; `end` gave a memory the end that was stated, `refuse` and `note` wrote none."""


class MemoryAction(JobAction):
    """What was done about one statement, or why it was not done; `superseded` are ids of memories it ended."""

    action: MemoryActionName
    memory_id: str | None = None
    type: str | None = None
    superseded: list[str] | None = None
    reason: str | None = None

    @classmethod
    def from_save(cls, result: SaveResult, type: MemoryType) -> MemoryAction:
        """Return the action for a statement that was saved, or refused by the policy."""
        if result.memory is None:
            return cls(action="refuse", type=type.value, reason=result.reason)
        return cls(action=result.action.value, memory_id=result.memory.id, type=result.memory.type.value)


class LinkAction(JobAction):
    """A known entity that was given a new name, or further aliases."""

    action: Literal["link"] = "link"
    entity_id: str
    name: str | None = None
    aliases: list[str] | None = None


ExtractionAction = MemoryAction | LinkAction
"""What extraction reports of one window."""


def shorten_reason(reason: str) -> str:
    """Return a model's reason on one line, without what cannot be stored, cut at `MAX_REASON_CHARACTERS`."""
    return " ".join(remove_unstorable(reason).split())[:MAX_REASON_CHARACTERS]


_ACTIONS: TypeAdapter[list[ExtractionAction]] = TypeAdapter(list[ExtractionAction])


def parse_extraction_actions(text: str) -> list[ExtractionAction]:
    """Return the actions that an applied window has recorded as JSON."""
    return _ACTIONS.validate_json(text)
