"""The jobs of ingestion: their payloads, what they report, and the candidates that an error dropped."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import structlog
from pydantic import TypeAdapter

from graphmem.ingestion.transcript import MessagePart
from graphmem.jobs.job import JobAction
from graphmem.jobs.kinds import JobKind, UserJobPayload
from graphmem.memories.memory import MemoryType, SaveResult
from graphmem.runtime.errors import GraphmemError, Unavailable, UserBeingForgotten
from graphmem.runtime.metrics import CANDIDATES_DROPPED
from graphmem.text.normalising import remove_unstorable


class ExtractionPayload(UserJobPayload):
    """Messages to extract memories from, cut into windows when the job is queued.

    `embedded_texts` is how many of them were embedded when they arrived, which the receipt of the job counts.
    """

    session_id: str
    message_ids: list[str]
    windows: list[list[MessagePart]]
    embedded_texts: int = 0


class SummaryPayload(UserJobPayload):
    """A session to summarize up to the message at position `through`."""

    session_id: str
    through: int


class ClosingPayload(SummaryPayload):
    """A session that was closed; `summarize` says whether to summarize it, `reason` why not."""

    summarize: bool
    reason: str | None = None


class EmbeddingPayload(UserJobPayload):
    """Messages that were stored without a vector."""

    message_ids: list[str]


EXTRACTION_JOB = JobKind("extraction", ExtractionPayload)
"""Extracts memories from a batch of messages."""

TOOL_EXTRACTION_JOB = JobKind("tool_extraction", ExtractionPayload)
"""Extracts memories by letting the model call the tool `upsert_memories`."""

EMBEDDING_JOB = JobKind("message_embedding", EmbeddingPayload)
"""Computes the vectors of messages that were stored while the embedder was unavailable or slow."""

SUMMARY_JOB = JobKind("summary", SummaryPayload)
"""Summarizes a session."""

CLOSING_JOB = JobKind("session_closing", ClosingPayload)
"""Promotes the important memories of a closed session and summarizes it."""


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


log = structlog.get_logger(__name__)

T = TypeVar("T")


def describe_error(error: Exception) -> str:
    """Return the sentence that a refused action gives for an error, without text of the user."""
    if isinstance(error, GraphmemError):
        return error.detail
    return f"an unexpected error ({type(error).__name__}), which the log of the worker locates"


def report_dropped(stage: str, error: Exception) -> None:
    """Log and count that an error dropped a candidate in a stage: the error's class and place, never its message."""
    CANDIDATES_DROPPED.labels(stage).inc()
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
    log.warning("candidate dropped", stage=stage, error=type(error).__name__, place=place)


@contextmanager
def dropping_errors(stage: str, index: int, dropped: MutableMapping[int, str]) -> Iterator[None]:
    """Note the first error in the work on a candidate in `dropped`, with its reason, instead of raising it."""
    try:
        yield
    except Exception as error:
        if index not in dropped:
            report_dropped(stage, error)
            dropped[index] = describe_error(error)


# Writing


@dataclass(frozen=True, slots=True)
class WriteScope:
    """What of a window a write carries out; the parts are the candidates, by index, and after them the names.

    `bare` are candidates that are saved as mere statements, which change no other memory, and `refused` are parts that
    are not written, both with the reason. A trial writes the first `trial_size` parts only, and is rolled back.
    """

    bare: Mapping[int, str] = field(default_factory=dict)
    refused: Mapping[int, str] = field(default_factory=dict)
    trial_size: int | None = None

    @property
    def is_trial(self) -> bool:
        """Whether the write is rolled back."""
        return self.trial_size is not None

    def includes(self, part: int) -> bool:
        """Return whether a part is written."""
        return part not in self.refused and (self.trial_size is None or part < self.trial_size)


class TrialSucceeded(Exception):
    """Rolls back a trial that has succeeded."""


async def write_without_culprits(write: Callable[[WriteScope], Awaitable[T]], candidate_count: int) -> T:
    """Return the result of writing a window without the parts that prevent it, of which there are mostly none.

    A candidate that prevents it becomes a mere statement first and is refused if that cannot be written either. Raises
    what the write raises when it fails without any part too, and when the database is unavailable.
    """
    bare: dict[int, str] = {}
    refused: dict[int, str] = {}
    while True:
        try:
            return await write(WriteScope(bare, refused))
        except (Unavailable, UserBeingForgotten):
            raise
        except Exception as error:
            part, cause = await _find_culprit(write, WriteScope(bare, refused), candidate_count + 1, error)
        report_dropped("write", cause)
        is_last_try = part in bare or part == candidate_count
        (refused if is_last_try else bare)[part] = describe_error(cause)


async def _find_culprit(
    write: Callable[[WriteScope], Awaitable[object]], scope: WriteScope, part_count: int, error: Exception
) -> tuple[int, Exception]:
    """Return a part with which a write fails and without which, and what follows it, it succeeds; and how it fails."""

    async def fails_with(size: int) -> Exception | None:
        try:
            await write(WriteScope(scope.bare, scope.refused, size))
        except TrialSucceeded:
            return None
        except (Unavailable, UserBeingForgotten):
            raise
        except Exception as error:
            return error
        return None

    if await fails_with(0):
        raise error
    good, bad = 0, part_count
    while bad - good > 1:
        middle = (good + bad) // 2
        if found := await fails_with(middle):
            bad, error = middle, found
        else:
            good = middle
    return bad - 1, error
