"""Durable jobs: queued at once, run in order for each user, resumed after a crash at the step it interrupted."""

from graphmem.jobs.runner import JobRunner
from graphmem.jobs.steps import JobHandler, Steps

__all__ = ["JobHandler", "JobRunner", "Steps"]
