"""Methods of several operations: what each of them calls, in order, the same for every surface.

A method of this kind is a generator. It yields steps, each a call of another method, and receives their results.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, Unpack, cast

from graphmem.client.inputs import ListMemoriesFilters, MemoryInput, is_message
from graphmem.conversations.session import MessageIn
from graphmem.jobs.job import Job, JobStatus
from graphmem.memories.memory import (
    Memory,
    MemoryIn,
    SaveAction,
    SaveResult,
)
from graphmem.runtime.errors import InvalidInput, Unavailable

T = TypeVar("T")

PAGE_SIZE = 200
"""Memories that `get_all` reads at once."""


@dataclass(frozen=True, slots=True)
class ComposedStep:
    """A call of another method of the same object."""

    method: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


ComposedSteps = Generator[ComposedStep, Any, T]
"""The steps of a method that returns a `T`."""


def add(
    user_id: str,
    memories: MemoryInput | MessageIn | Sequence[MemoryInput | MessageIn],
    *,
    session_id: str | None = None,
    infer: bool = False,
) -> ComposedSteps[list[SaveResult]]:
    """Save statements without a language model, all or none; or store messages and return what was extracted from them.

    With `infer` a model compares statements with what is known, and they are inserted, reinforce or supersede memories
    or are skipped.

    A list of `{"role", "content"}` is a conversation, of the session `session_id`; the call ends when its extraction
    has. `add_messages` extracts in the background.
    """
    items = [memories] if isinstance(memories, str | MemoryIn | MessageIn | Mapping) else list(memories)
    if not any(map(is_message, items)):
        if session_id is not None:
            raise InvalidInput("session_id is the session of messages: give a statement a `source` instead.")
        saved: list[SaveResult] = yield _step("_save_statements", user_id, memories, infer=infer)
        return saved
    if not all(map(is_message, items)):
        raise InvalidInput("The list mixes messages, which have a role, with statements: add them in two calls.")
    job = yield _step("add_messages", user_id, items, session_id=session_id, wait=True)
    if not isinstance(job, Job):
        return [_skipped("No memories are extracted: the messages are known already, or extraction is manual.")]
    results = []
    for action, memory_id, superseded in _read_saves(job):
        memory = yield _step("memory", user_id, memory_id)
        results.append(SaveResult(action=action, memory=memory, superseded=superseded))
    return results + _read_refusals(job, is_empty=not results)


def get_all(
    user_id: str, *, limit: int | None = None, **filters: Unpack[ListMemoriesFilters]
) -> ComposedSteps[list[Memory]]:
    """Return all current memories, or the first `limit` of them, by attributes: every page of `memories`."""
    found: list[Memory] = []
    cursor: str | None = None
    while limit is None or len(found) < limit:
        size = PAGE_SIZE if limit is None else min(PAGE_SIZE, limit - len(found))
        page = yield _step("memories", user_id, limit=size, cursor=cursor, **filters)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


class ComposedOperations:
    """The methods of several operations."""

    add = staticmethod(add)
    get_all = staticmethod(get_all)


async def take_steps(surface: object, steps: ComposedSteps[T]) -> T:
    """Call the methods of an asynchronous surface that the steps name, and return the result."""
    result: Any = None
    while True:
        try:
            step = steps.send(result)
        except StopIteration as ended:
            return cast(T, ended.value)
        result = await getattr(surface, step.method)(*step.args, **step.kwargs)


def take_steps_blocking(surface: object, steps: ComposedSteps[T]) -> T:
    """Call the methods of a blocking surface that the steps name, and return the result."""
    result: Any = None
    while True:
        try:
            step = steps.send(result)
        except StopIteration as ended:
            return cast(T, ended.value)
        result = getattr(surface, step.method)(*step.args, **step.kwargs)


def _step(method: str, *args: Any, **kwargs: Any) -> ComposedStep:
    return ComposedStep(method, args, {name: value for name, value in kwargs.items() if value is not None})


def _read_saves(job: Job) -> Iterator[tuple[SaveAction, str, list[str]]]:
    """Yield the memories that a job saved."""
    for action in job.actions:
        if action.get("memory_id") and action.get("action") in {*SaveAction} - {SaveAction.SKIP}:
            yield SaveAction(action["action"]), action["memory_id"], action.get("superseded") or []


def _read_refusals(job: Job, *, is_empty: bool) -> list[SaveResult]:
    """Return a result for each statement that a job refused, and why there is no result at all."""
    if job.status is JobStatus.FAILED:
        raise Unavailable(
            f"The messages are stored, but their extraction failed ({job.error}): call retry_job({job.id!r}).",
            retry_after=None,
        )
    refused = [_skipped(action.get("reason")) for action in job.actions if action.get("action") == "refuse"]
    if not (is_empty and not refused):
        return refused
    if not job.status.is_final:
        return [_skipped(f"The extraction has not ended: read its result with job({job.id!r}).")]
    return [_skipped(job.reason)] if job.reason else []


def _skipped(reason: str | None) -> SaveResult:
    return SaveResult(action=SaveAction.SKIP, memory=None, reason=reason)
