"""From DBOS's status of a workflow to the job callers see."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from dbos import WorkflowStatus

from graphmem.jobs.job import Job, JobStatus
from graphmem.jobs.records import JobResult

EARLIER_ATTEMPTS, WAIT_COUNT, WAIT_REASON = "earlier_attempts", "waits", "wait_reason"
"""Attributes of a job in DBOS: its attempts before the last retry or wait, how often it waited, and why."""

_STATUS_BY_DBOS_STATUS = {
    "ENQUEUED": JobStatus.QUEUED,
    "DELAYED": JobStatus.QUEUED,
    "PENDING": JobStatus.RUNNING,
    "ERROR": JobStatus.FAILED,
    "CANCELLED": JobStatus.FAILED,
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": JobStatus.FAILED,
}


def job_from_status(status: WorkflowStatus) -> Job:
    """Return the job of a workflow that was listed with its input and output."""
    arguments: Any = status.input
    kind, payload = arguments["args"]
    result = JobResult.model_validate(status.output) if status.output else None
    if result is None or status.status != "SUCCESS":
        result = JobResult(
            status=_STATUS_BY_DBOS_STATUS[status.status],
            error=_failure_message(status),
            finished_at=datetime.fromtimestamp(status.completed_at / 1000, UTC) if status.completed_at else None,
        )
    attributes = status.attributes or {}
    attempts = attributes.get(EARLIER_ATTEMPTS, 0) + (status.recovery_attempts or 0)
    waits_until = datetime.fromtimestamp((status.delay_until_epoch_ms or 0) / 1000, UTC)
    is_waiting = status.status == "DELAYED" and waits_until > datetime.now(UTC)
    return Job(
        id=status.workflow_id,
        kind=kind,
        status=result.status,
        attempts=attempts + result.retries,
        reason=attributes.get(WAIT_REASON) if is_waiting else result.reason,
        waits_until=waits_until if is_waiting else None,
        error=result.error,
        actions=result.actions,
        receipt=result.receipt,
        user_id=payload.get("user_id"),
        session_id=payload.get("session_id"),
        created_at=datetime.fromtimestamp((status.created_at or 0) / 1000, UTC),
        finished_at=result.finished_at,
        partition=status.authenticated_user or "",
    )


def _failure_message(status: WorkflowStatus) -> str | None:
    if status.status == "MAX_RECOVERY_ATTEMPTS_EXCEEDED":
        return f"Given up: the job stopped its worker {(status.recovery_attempts or 1) - 1} times."
    if status.status == "CANCELLED":
        return "The job was cancelled."
    return str(status.error) if status.error else None
