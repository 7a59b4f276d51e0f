"""Jobs that a worker tries again later, because the database or the job store is unavailable."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from dataclasses import dataclass

MAX_PAUSE_SECONDS = 300.0
"""Longest pause in seconds."""

MAX_WAIT_SECONDS = 86_400.0
"""Seconds after which a job that is still postponed fails, so that one that always fails does not block its user."""


@dataclass(slots=True)
class _Postponement:
    since: float
    pause: float
    due: float


class Postponements:
    """The postponed jobs of a worker. Safe to use from any thread.

    They are not stored: a job that is postponed counts as running in the job store, so that another worker runs it when
    this one ends.
    """

    def __init__(self, first_pause: float) -> None:
        self._first_pause = first_pause
        self._jobs: dict[str, _Postponement] = {}
        self._lock = threading.Lock()

    def postpone(self, job_id: str) -> float | None:
        """Return the seconds until a job shall be tried again; None when it has been postponed for too long."""
        now = time.monotonic()
        with self._lock:
            known = self._jobs.get(job_id)
            since = known.since if known else now
            if now - since > MAX_WAIT_SECONDS:
                return None
            pause = min(2 * known.pause, MAX_PAUSE_SECONDS) if known else self._first_pause
            self._jobs[job_id] = _Postponement(since, pause, now + pause)
            return pause

    def is_due(self, job_id: str) -> bool | None:
        """Return whether the pause of a postponed job is over; None for another job."""
        with self._lock:
            known = self._jobs.get(job_id)
            return None if known is None else known.due <= time.monotonic()

    def retain(self, job_ids: Collection[str]) -> None:
        """Forget all other jobs, which have ended or belong to another worker now."""
        with self._lock:
            self._jobs = {job_id: known for job_id, known in self._jobs.items() if job_id in job_ids}
