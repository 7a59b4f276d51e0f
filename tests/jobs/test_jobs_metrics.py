"""The metrics of the queue, on SQLite and Postgres."""

from __future__ import annotations

import asyncio
import math
import time

from prometheus_client import REGISTRY

from graphmem.jobs.job import JobOutcome
from graphmem.jobs.kinds import Steps
from graphmem.runtime.errors import InvalidInput
from tests.jobs.conftest import OpenRunner, postgres_first
from tests.jobs.kinds import JobInput, kind


def unfinished(status: str) -> float | None:
    return REGISTRY.get_sample_value("graphmem_jobs_unfinished", {"status": status})


def finished(name: str, status: str) -> float | None:
    return REGISTRY.get_sample_value("graphmem_jobs_finished_total", {"kind": name, "status": status})


@postgres_first
async def test_metrics_count_queued_running_and_failed_jobs(open_runner: OpenRunner) -> None:
    inside, gate = asyncio.Event(), asyncio.Event()

    async def fail_later(payload: JobInput, steps: Steps) -> JobOutcome:
        inside.set()
        await gate.wait()
        raise InvalidInput("Not this one.")

    runner = await open_runner({"fail_later": fail_later})
    failed_before = finished("fail_later", "failed")
    assert failed_before is not None
    began = time.monotonic()
    jobs = [await runner.enqueue(kind("fail_later"), JobInput(number=number)) for number in range(3)]
    await inside.wait()
    await runner.measure()
    assert (unfinished("running"), unfinished("queued"), unfinished("waiting")) == (1, 2, 0)
    oldest = REGISTRY.get_sample_value("graphmem_oldest_queued_job_seconds") or 0
    assert 0 <= oldest < time.monotonic() - began + 1
    gate.set()
    await runner.wait(jobs[-1], 60)
    await runner.measure()
    assert (unfinished("running"), unfinished("queued")) == (0, 0)
    assert finished("fail_later", "failed") == failed_before + 3
    await runner.close()
    await runner.measure()
    assert math.isnan(unfinished("queued") or 0)
