"""The ingestion jobs: kinds, payloads (which hold no text), and the actions reported in `Job.actions`."""

from __future__ import annotations

from typing import Literal

from pydantic import TypeAdapter

from graphmem.ingestion.transcript import MessagePart
from graphmem.jobs.job import JobAction
from graphmem.jobs.kinds import JobKind, UserJobPayload
from graphmem.memories.memory import MemoryType, SaveResult
from graphmem.text.normalising import remove_unstorable

NO_MODEL_REASON = "no language model is configured: set OPENAI_API_KEY or OPENAI_BASE_URL"
"""Why a job that needs a model is skipped without one."""


class ExtractionPayload(UserJobPayload):
    """Messages to extract memories from, cut into batches when the job is queued.

    `embedded_texts` is the number of them embedded on arrival, which the job's receipt counts.
    """

    session_id: str
    message_ids: list[str]
    batches: list[list[MessagePart]]
    embedded_texts: int = 0


class SummaryPayload(UserJobPayload):
    """A session to summarize up to the message at position `through`."""

    session_id: str
    through: int


class ClosingPayload(SummaryPayload):
    """A closed session; `summarize` says whether to summarize it, and `reason` why not."""

    summarize: bool
    reason: str | None = None


class EmbeddingPayload(UserJobPayload):
    """Messages stored without a vector."""

    message_ids: list[str]


EXTRACTION_JOB = JobKind("extraction", ExtractionPayload)
"""Extracts memories from a batch of messages."""

TOOL_EXTRACTION_JOB = JobKind("tool_extraction", ExtractionPayload)
"""Extracts memories by letting the model call the tool `upsert_memories`."""

EMBEDDING_JOB = JobKind("message_embedding", EmbeddingPayload)
"""Computes the vectors of messages stored while the embedder was unavailable or slow."""

SUMMARY_JOB = JobKind("summary", SummaryPayload)
"""Summarizes a session."""

CLOSING_JOB = JobKind("session_closing", ClosingPayload)
"""Promotes the important memories of a closed session and summarizes it."""


MAX_REASON_CHARACTERS = 200
"""Maximum characters stored of a model's reason."""

MemoryActionName = Literal[
    "insert", "reinforce", "supersede", "contest", "end", "skip", "delete", "refuse", "quarantine", "note", "promote"
]
"""What was done about a statement; `end` gave a memory its stated end, `refuse` and `note` wrote nothing.

`quarantine` holds the statement back until an admin releases or drops it.
"""


class MemoryAction(JobAction):
    """What was done about one statement, or why nothing was; `superseded` are the ids of memories it ended.

    `quarantine_id` is the id of a statement in quarantine.
    """

    action: MemoryActionName
    memory_id: str | None = None
    type: str | None = None
    superseded: list[str] | None = None
    quarantine_id: str | None = None
    reason: str | None = None

    @classmethod
    def refused(cls, type: str, reason: str | None, memory_id: str | None = None) -> MemoryAction:
        """Return the action for a refused statement, never with its text."""
        return cls(action="refuse", memory_id=memory_id, type=type, reason=reason)

    @classmethod
    def from_save(cls, result: SaveResult, type: MemoryType) -> MemoryAction:
        """Return the action for a statement that was saved, or refused by the policy."""
        if result.memory is None:
            return cls.refused(type.value, result.reason)
        return cls(action=result.action.value, memory_id=result.memory.id, type=result.memory.type.value)


class LinkAction(JobAction):
    """A known entity that received a new name or further aliases."""

    action: Literal["link"] = "link"
    entity_id: str
    name: str | None = None
    aliases: list[str] | None = None


ExtractionAction = MemoryAction | LinkAction
"""The report of extraction on one batch."""


def shorten_reason(reason: str) -> str:
    """Return a model's reason on one line, without unstorable characters, cut to `MAX_REASON_CHARACTERS`."""
    return " ".join(remove_unstorable(reason).split())[:MAX_REASON_CHARACTERS]


_ACTIONS: TypeAdapter[list[ExtractionAction]] = TypeAdapter(list[ExtractionAction])


def parse_extraction_actions(text: str) -> list[ExtractionAction]:
    """Return the actions recorded as JSON for an applied batch."""
    return _ACTIONS.validate_json(text)
