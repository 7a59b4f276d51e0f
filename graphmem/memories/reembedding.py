"""The durable job that replaces all vectors by those of another model.

Its progress is in the database, so a job that is killed goes on where it was. The phases are those of
`ReembeddingPhase`: vectors of the next model are written beside the current ones; then searches read those, while the
current ones are replaced; then searches read the replaced ones, and the copies are removed. Before a phase that
removes what the former one reads, the job waits until every process has seen the change.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from graphmem.jobs.job import JobAction, JobOutcome
from graphmem.jobs.kinds import JobKind, JobPayload
from graphmem.jobs.steps import Steps
from graphmem.memories.vectors_store import VectorStore
from graphmem.models.embedding_models import EmbeddingModel, ReembeddingPhase
from graphmem.models.receipt import Receipt
from graphmem.models.recorded import RecordedEmbedder
from graphmem.neo4j.driver import NONE_HIDDEN_SECONDS
from graphmem.tenants.owners import Owner

BATCH_SIZE = 128
"""Texts that are embedded and written at once; a killed job repeats at most these."""

SWITCH_SECONDS = 2 * NONE_HIDDEN_SECONDS
"""Seconds after which every process has seen a change of phase, and finished the request that it was answering."""


class ReembeddingPayload(JobPayload):
    """The tenant whose admin asked for the re-embedding, and the model of the new vectors."""

    tenant: str
    model: EmbeddingModel

    @property
    def partition(self) -> str:
        """The partition of the tenant's jobs that belong to no user."""
        return Owner(self.tenant, "").group_id


REEMBEDDING_JOB = JobKind("reembed", ReembeddingPayload)
"""Replaces the vectors of all users by those of another model."""


class ReembeddingAction(JobAction):
    """The end of a re-embedding: the model of all vectors, and how many this attempt computed."""

    action: Literal["reembed"] = "reembed"
    model: str
    vectors: int


class ReembeddingJob:
    """Handles the jobs of kind `reembed`."""

    def __init__(
        self,
        vectors: VectorStore,
        embedder: RecordedEmbedder,
        pause: float = SWITCH_SECONDS,
        batch_size: int = BATCH_SIZE,
    ) -> None:
        """Create the handler; `pause` is the time in seconds that a change of phase takes to reach every process."""
        self._vectors = vectors
        self._embedder = embedder
        self._pause = pause
        self._batch_size = batch_size

    async def handle(self, payload: ReembeddingPayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `reembed`."""
        count = await steps.run_idempotent("reembed", lambda: self._replace_all(payload.model, steps.job_id))
        return JobOutcome(
            actions=[ReembeddingAction(model=payload.model.name, vectors=count)],
            receipt=Receipt(embedded_texts=count),
        )

    async def _replace_all(self, model: EmbeddingModel, job_id: str) -> int:
        state = await self._vectors.begin(model, job_id)
        if state.job_id != job_id:
            return 0
        count, phase = 0, state.phase
        if phase is ReembeddingPhase.FILLING:
            await self._vectors.create_indexes(model.dimension, of_next=True)
            count += await self._fill(model)
            await self._switch_to(ReembeddingPhase.SERVING)
            phase = ReembeddingPhase.SERVING
        if phase is ReembeddingPhase.SERVING:
            count += await self._fill(model)
            await self._vectors.drop_indexes(of_next=False)
            await self._move(model)
            await self._vectors.create_indexes(model.dimension, of_next=False)
            count += await self._fill(model)
            await self._move(model)
            await self._switch_to(ReembeddingPhase.CLEANING)
        await self._vectors.drop_indexes(of_next=True)
        async for group_id in self._vectors.groups():
            await self._vectors.remove_next(group_id)
        await self._vectors.end()
        return count

    async def _switch_to(self, phase: ReembeddingPhase) -> None:
        await self._vectors.enter(phase)
        await asyncio.sleep(self._pause)

    async def _fill(self, model: EmbeddingModel) -> int:
        """Write the vectors of the next model that are missing, until a pass finds none, and return how many."""
        embedder, total = await self._embedder.get(model), 0
        while True:
            found = 0
            async for group_id in self._vectors.groups():
                while missing := await self._vectors.list_missing(group_id, self._batch_size):
                    vectors = await embedder.embed([element.text for element in missing])
                    await self._vectors.store_next(group_id, missing, vectors)
                    found += len(missing)
            total += found
            if not found:
                return total

    async def _move(self, model: EmbeddingModel) -> None:
        """Replace the current vectors by the next ones, and those that rollbacks restore by new ones."""
        embedder = await self._embedder.get(model)
        async for group_id in self._vectors.groups():
            await self._vectors.move(group_id)
            while images := await self._vectors.list_old_images(group_id, model.name, self._batch_size):
                vectors = await embedder.embed([image.text for image in images])
                await self._vectors.store_image_vectors(images, vectors, model.name)
