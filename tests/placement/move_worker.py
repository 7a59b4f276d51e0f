"""A worker that moves a tenant or a user and kills itself: `move_worker.py SETTINGS [QUERY TIMES]`.

SETTINGS is JSON with the addresses of both graphs and the data folder. The process ends by SIGKILL when it has run the
query that many times; without a query it never ends itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from graphmem.app.components import open_components
from graphmem.jobs.job_run import WorkerOptions
from graphmem.jobs.kinds import JobHandler
from graphmem.jobs.runner import JobRunner
from graphmem.placement.move import MOVE_JOB, MoveJob
from graphmem.runtime.settings import Settings
from tests.faults.reembedding_worker import die_at_query


async def main(given: dict[str, Any]) -> None:
    settings = Settings(**given)
    async with open_components(settings, load_embedder=False) as components:
        assert components.placed
        job = MoveJob(components.placed, components.clock)
        async with await JobRunner.open(settings) as jobs:
            await jobs.start_worker([JobHandler(MOVE_JOB, job.handle)], WorkerOptions(dead_worker_seconds=2))
            await asyncio.sleep(120)


if __name__ == "__main__":
    os.setpgrp()
    if len(sys.argv) > 2:
        die_at_query(sys.argv[2], int(sys.argv[3]))
    asyncio.run(main(json.loads(sys.argv[1])))
