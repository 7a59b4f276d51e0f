"""A worker process that is killed at a step: `ingestion_worker.py DATA_DIR [STEP]`; without a step it works on."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from graphmem.bootstrap import open_components
from graphmem.domain.job import JobOutcome
from graphmem.ingestion.extraction_job import EXTRACTION_JOB, ExtractionJob
from graphmem.ingestion.inbox import OBSERVATION_JOB
from graphmem.jobs import JobRunner, Steps
from graphmem.llm.client import LanguageModel
from graphmem.settings import Settings


class StepsKilledAfter:
    """Steps that kill the process when one has done its work and before that is recorded."""

    def __init__(self, steps: Steps, step: str) -> None:
        self._steps = steps
        self._step = step
        self.job_id = steps.job_id

    async def run(self, name: str, fn: Callable[[], Awaitable[Any]]) -> Any:
        return await self._steps.run(name, self._killed_after(name, fn))

    async def run_idempotent(self, name: str, fn: Callable[[], Awaitable[Any]]) -> Any:
        return await self._steps.run_idempotent(name, self._killed_after(name, fn))

    def _killed_after(self, name: str, fn: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
        async def killed() -> Any:
            value = await fn()
            if name == self._step:
                os.kill(os.getpid(), signal.SIGKILL)
            return value

        return killed


async def main(data_dir: Path, step: str) -> None:
    settings = Settings(
        data_dir=data_dir,
        neo4j_uri=os.environ["GRAPHMEM_NEO4J_URI"],
    )
    async with open_components(settings) as parts, LanguageModel(base_url=os.environ["MODEL_ADDRESS"]) as model:
        extraction = ExtractionJob(
            graph=parts.graph,
            episodes=parts.episodes,
            facts=parts.facts,
            entities=parts.entities,
            memory_writer=parts.memory_writer,
            policy=parts.policy,
            profiles=parts.profiles,
            embedder=parts.embedder,
            model=model,
        )

        async def handle(payload: dict[str, Any], steps: Steps) -> JobOutcome:
            return await extraction.run(payload, StepsKilledAfter(steps, step))  # type: ignore[arg-type]

        async def nothing(payload: dict[str, Any], steps: Steps) -> JobOutcome:
            return JobOutcome()

        async with await JobRunner.open(
            settings, {EXTRACTION_JOB: handle, OBSERVATION_JOB: nothing}, dead_worker_seconds=3
        ):
            await asyncio.sleep(120)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""))
