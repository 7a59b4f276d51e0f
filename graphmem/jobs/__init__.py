"""Durable jobs: stored before they start, run in order for each user, resumed after a crash at the step it cut."""

from graphmem.jobs.kinds import SYSTEM_PARTITION, JobHandler, JobKind, JobPayload, ScheduledPayload, UserJobPayload
from graphmem.jobs.runner import JobRunner
from graphmem.jobs.steps import JobWaits, Steps
from graphmem.jobs.store import DEMO_QUEUE, JOB_QUEUE

__all__ = [
    "DEMO_QUEUE",
    "JOB_QUEUE",
    "SYSTEM_PARTITION",
    "JobHandler",
    "JobKind",
    "JobPayload",
    "JobRunner",
    "JobWaits",
    "ScheduledPayload",
    "Steps",
    "UserJobPayload",
]
