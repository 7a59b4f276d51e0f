"""The order of a user's jobs, in every state of the job in front."""

from __future__ import annotations

import asyncio
import os

from graphmem.jobs.job import JobOutcome, JobStatus
from graphmem.jobs.kinds import JobWaits, Steps
from tests.jobs.conftest import OpenRunner, postgres_first, wait_to_the_end
from tests.jobs.kinds import JobInput, kind

USERS = int(os.environ.get("GRAPHMEM_TEST_ORDER_USERS", "4"))
"""Users whose jobs could overtake each other, each several times a second."""

SECONDS = 1.0
"""How long they have the opportunity."""


class Journal:
    """A handler that records which jobs ran, as pairs of user and number."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, int]] = []

    async def __call__(self, payload: JobInput, steps: Steps) -> JobOutcome:
        self.ran.append((payload.queue, int(payload.number)))
        return JobOutcome()


@postgres_first
async def test_no_job_overtakes_one_that_waits_again_and_again(open_runner: OpenRunner) -> None:
    front = await open_runner()
    users = [f"user-{number}" for number in range(USERS)]
    for user in users:
        await front.enqueue(kind("sing"), JobInput(queue=user, number=1))
        await front.enqueue(kind("note"), JobInput(queue=user, number=2))
    older = await open_runner({"note": (journal := Journal())}, handover_pauses=(0.02,) * 100_000)
    await asyncio.sleep(SECONDS)
    assert journal.ran == []
    await older.close()

    await open_runner({"note": journal, "sing": journal})
    jobs = [job.id for job in await front.list(limit=2 * USERS)]
    assert {(await wait_to_the_end(front, job_id)).status for job_id in jobs} == {JobStatus.SUCCEEDED}
    assert [[number for name, number in journal.ran if name == user] for user in users] == [[1, 2]] * USERS


@postgres_first
async def test_no_job_overtakes_one_that_waits_between_its_steps(open_runner: OpenRunner) -> None:
    waits: list[str] = []
    journal = Journal()

    async def wait_often(payload: JobInput, steps: Steps) -> JobOutcome:
        waits.append(payload.queue)
        if waits.count(payload.queue) < 6:
            raise JobWaits("not yet", 0.01)
        return await journal(payload, steps)

    front = await open_runner({"note": journal, "wait": wait_often})
    users = [f"user-{number}" for number in range(USERS)]
    last = []
    for user in users:
        await front.enqueue(kind("wait"), JobInput(queue=user, number=1))
        last.append(await front.enqueue(kind("note"), JobInput(queue=user, number=2)))
    assert {(await wait_to_the_end(front, job_id)).status for job_id in last} == {JobStatus.SUCCEEDED}
    assert [[number for name, number in journal.ran if name == user] for user in users] == [[1, 2]] * USERS
