"""A worker that re-embeds and kills itself: `reembedding_worker.py DATA_DIR [QUERY TIMES]`.

It ends by SIGKILL when it has run the query that many times; without a query it never ends itself.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from graphmem.app.components import open_components
from graphmem.jobs.kinds import JobHandler
from graphmem.jobs.runner import JobRunner
from graphmem.jobs.worker import WorkerOptions
from graphmem.memories.vectors import REEMBEDDING_JOB, ReembeddingJob, VectorStore
from graphmem.models.embedder import RecordedEmbedder
from graphmem.neo4j import driver
from graphmem.runtime.settings import Settings


def die_at_query(query: str, times: int) -> None:
    run, left = driver.Transaction.run, [times]

    async def counted(self: driver.Transaction, name: str, **parameters: Any) -> Any:
        answer = await run(self, name, **parameters)
        if name == query:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return answer

    driver.Transaction.run = counted  # pyrefly: ignore[method-assign]


async def main(data_dir: Path) -> None:
    settings = Settings(data_dir=data_dir)
    async with open_components(settings, load_embedder=False) as components:
        assert isinstance(components.embedder, RecordedEmbedder)
        job = ReembeddingJob(
            VectorStore(components.graph), components.embedder, components.placed, pause=1.2, batch_size=3
        )
        async with await JobRunner.open(settings) as jobs:
            await jobs.start_worker([JobHandler(REEMBEDDING_JOB, job.handle)], WorkerOptions(dead_worker_seconds=2))
            await asyncio.sleep(120)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        die_at_query(sys.argv[2], int(sys.argv[3]))
    asyncio.run(main(Path(sys.argv[1])))
