"""A worker process: `worker_process.py <data folder> <jobs url or ""> <folder of journal and signs> <name>`.

Job `three` does the steps one, two and three. Before its step, or after it, the process kills itself once where the
folder contains a file `kill-in-<step>` or `kill-after-<step>`. Job `blocking_job` waits inside its second step for the
file `open`. Every step writes its name to the journal.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from graphmem.jobs.job import JobOutcome
from graphmem.jobs.kinds import Steps
from graphmem.runtime.settings import Settings
from tests.jobs.kinds import HANDOVER_PAUSES, HandleJob, JobInput, Report, open_worker

DATA, URL, FOLDER, NAME = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4]


def note(line: str) -> None:
    with (FOLDER / "journal").open("a") as journal:
        journal.write(f"{line}\n")


def kill_if_requested(when: str) -> None:
    sign = FOLDER / f"kill-{when}"
    if sign.exists():
        sign.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


async def three(payload: JobInput, steps: Steps) -> JobOutcome:
    async def step(name: str) -> str:
        note(name)
        kill_if_requested(f"in-{name}")
        return f"{name} of {payload.text}"

    done = []
    for name in ("one", "two", "three"):
        done.append(await steps.run(name, lambda name=name: step(name)))
        kill_if_requested(f"after-{name}")
    return JobOutcome(actions=[Report(done=done)])


async def blocking_job(payload: JobInput, steps: Steps) -> JobOutcome:
    async def first() -> str:
        note("first")
        return NAME

    async def second() -> str:
        note("second")
        while not (FOLDER / "open").exists():  # noqa: ASYNC110 - the sign is a file
            await asyncio.sleep(0.02)
        note("passed")
        return NAME

    return JobOutcome(actions=[Report(first=await steps.run("first", first), second=await steps.run("second", second))])


async def tick(payload: JobInput, steps: Steps) -> JobOutcome:
    async def write() -> None:
        note(str(payload.scheduled_at))

    await steps.run("write", write)
    return JobOutcome()


async def main() -> None:
    settings = Settings(data_dir=DATA, jobs_url=URL or None)
    functions: dict[str, HandleJob] = {"three": three, "blocking_job": blocking_job, "tick": tick}
    async with open_worker(settings, functions, dead_worker_seconds=2.0, handover_pauses=HANDOVER_PAUSES):
        note("ready")
        await asyncio.Event().wait()


asyncio.run(main())
