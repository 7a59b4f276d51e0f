"""What an extraction job saved and refused, as the results of a save."""

from __future__ import annotations

from collections.abc import Iterator

from graphmem.jobs.job import Job, JobStatus
from graphmem.memories.memory import SaveAction, SaveResult
from graphmem.runtime.errors import Unavailable


def read_saves(job: Job) -> Iterator[tuple[SaveAction, str, list[str]]]:
    """Yield the memories that a job saved."""
    for action in job.actions:
        if action.get("memory_id") and action.get("action") in {*SaveAction} - {SaveAction.SKIP}:
            yield SaveAction(action["action"]), action["memory_id"], action.get("superseded") or []


def read_refusals(job: Job, *, is_empty: bool) -> list[SaveResult]:
    """Return a result for each statement that a job refused, and why there is no result at all."""
    if job.status is JobStatus.FAILED:
        raise Unavailable(
            f"The messages are stored, but their extraction failed ({job.error}): call retry_job({job.id!r}).",
            retry_after=None,
        )
    refused = [skipped(action.get("reason")) for action in job.actions if action.get("action") == "refuse"]
    if not (is_empty and not refused):
        return refused
    if not job.status.is_final:
        return [skipped(f"The extraction has not ended: read its result with job({job.id!r}).")]
    return [skipped(job.reason)] if job.reason else []


def skipped(reason: str | None) -> SaveResult:
    """Return the result of a statement that was not saved."""
    return SaveResult(action=SaveAction.SKIP, memory=None, reason=reason)
