"""The jobs of consolidation: their kinds and payloads."""

from __future__ import annotations

from enum import StrEnum

from graphmem.jobs.kinds import SYSTEM_PARTITION, JobKind, ScheduledPayload, UserJobPayload


class Stage(StrEnum):
    """The stages of a run; a nightly job ends after one of them."""

    DISCOVERY = "discovery"
    ANALYSIS = "analysis"
    EXECUTION = "execution"


class ConsolidationPayload(UserJobPayload):
    """One run of one user, to be done up to and including a stage."""

    run_id: str
    stage: Stage = Stage.EXECUTION


class NightlyStagePayload(ScheduledPayload):
    """One stage of the nightly runs of a tenant, or of all tenants."""

    stage: Stage
    tenant: str | None = None

    @property
    def partition(self) -> str:
        """The partition of the stage's schedule."""
        return f"{SYSTEM_PARTITION}{nightly_schedule_name(self.stage)}"


CONSOLIDATION_JOB = JobKind("consolidate", ConsolidationPayload)
"""Does one run of one user, up to and including a stage."""

NIGHTLY_STAGE_JOB = JobKind("consolidation_stage", NightlyStagePayload)
"""Queues a stage of the nightly runs of all users, as jobs of kind `consolidate`."""


def nightly_schedule_name(stage: Stage) -> str:
    """Return the name of the schedule of a stage."""
    return f"consolidation-{stage.value}"
