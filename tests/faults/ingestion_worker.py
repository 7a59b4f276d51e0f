"""A worker process that kills itself at a step, if one is given: `ingestion_worker.py DATA_DIR [STEP]`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from graphmem.app.components import open_components
from graphmem.ingestion.extraction_job import ExtractionJob
from graphmem.ingestion.jobs import EXTRACTION_JOB, ExtractionPayload
from graphmem.jobs.job import JobOutcome
from graphmem.jobs.kinds import JobHandler, Steps
from graphmem.jobs.runner import JobRunner
from graphmem.jobs.worker import WorkerOptions
from graphmem.memories.declarations import DeclaredTypeStore
from graphmem.models.provider_model import ProviderModel
from graphmem.runtime.settings import Settings
from graphmem.tenants.tenant_settings import InstructionStore

T = TypeVar("T")


class StepsKilledAfter(Steps):
    """Steps that kill the process when one has done its work and before that is recorded."""

    def __init__(self, steps: Steps, step: str) -> None:
        self._steps = steps
        self._step = step
        self.job_id = steps.job_id

    async def run(self, name: str, fn: Callable[[], Awaitable[T]], returns: type[T] | None = None) -> T:
        return await self._steps.run(name, self._killed_after(name, fn), returns)

    async def run_idempotent(self, name: str, fn: Callable[[], Awaitable[T]], returns: type[T] | None = None) -> T:
        return await self._steps.run_idempotent(name, self._killed_after(name, fn), returns)

    def _killed_after(self, name: str, fn: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
        async def killed() -> T:
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
    async with open_components(settings) as parts, ProviderModel(base_url=os.environ["MODEL_ADDRESS"]) as model:
        extraction = ExtractionJob(
            graph=parts.graph,
            instructions=InstructionStore(parts.graph),
            declared_types=DeclaredTypeStore(parts.graph),
            episodes=parts.episodes,
            facts=parts.facts,
            entities=parts.entities,
            memory_writer=parts.memory_writer,
            policy=parts.policy,
            profiles=parts.profiles,
            embedder=parts.embedder,
            model=model,
        )

        async def extract(payload: ExtractionPayload, steps: Steps) -> JobOutcome:
            return await extraction.run(payload, StepsKilledAfter(steps, step))

        async with await JobRunner.open(settings) as jobs:
            await jobs.start_worker([JobHandler(EXTRACTION_JOB, extract)], WorkerOptions(dead_worker_seconds=3))
            await asyncio.sleep(120)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""))
