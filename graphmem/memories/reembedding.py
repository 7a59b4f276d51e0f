"""Re-embedding: the durable job that replaces all vectors by those of another model, while searches go on.

Its progress is in the database, so a job that is killed goes on where it was. The phases are those of
`ReembeddingPhase`: vectors of the next model are written beside the current ones; then searches read those, while the
current ones are replaced; then searches read the replaced ones, and the copies are removed. Before a phase that
removes what the former one reads, the job waits until every process has seen the change.

Where tenants live in several graphs, all of them get the next model before the first vector is computed, and one is
replaced after the other. No tenant moves meanwhile: a move that has begun is waited for, and none begins.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from typing import Literal

from graphmem.jobs.job import Job, JobAction, JobOutcome, JobStatus
from graphmem.jobs.kinds import JobKind, JobPayload, Steps
from graphmem.jobs.runner import JobRunner
from graphmem.memories.vectors import VectorStore
from graphmem.models.embedder import RecordedEmbedder, create_embedder, describe_model
from graphmem.models.embedding_models import EmbeddingModel, EmbeddingStatus, ReembeddingPhase, VectorState
from graphmem.models.language_model import Receipt
from graphmem.neo4j.driver import NONE_HIDDEN_SECONDS
from graphmem.neo4j.placed_graph import MoveState, PlacedGraph, run_in_each_graph
from graphmem.runtime.errors import ConfigurationError, Conflict, InvalidInput
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner

BATCH_SIZE = 128
"""Texts that are embedded and written at once; a killed job repeats at most these."""

SWITCH_SECONDS = 2 * NONE_HIDDEN_SECONDS
"""Seconds after which every process has seen a change of phase, and finished the request that it was answering."""

MOVE_PAUSE = 1.0
"""Seconds between two questions whether a move is over."""


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
        placed: PlacedGraph | None = None,
        pause: float = SWITCH_SECONDS,
        batch_size: int = BATCH_SIZE,
    ) -> None:
        """Create the handler; `pause` is the time in seconds that a change of phase takes to reach every process."""
        self._vectors = vectors
        self._embedder = embedder
        self._placed = placed
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
        await run_in_each_graph(self._placed, lambda: self._vectors.begin(model, job_id))
        await self._await_moves()
        return sum(await run_in_each_graph(self._placed, lambda: self._replace_in_graph(model, job_id)))

    async def _await_moves(self) -> None:
        """Wait until the moves that had begun before all graphs had a next model are over; later ones are refused."""
        while self._placed is not None:
            locations = await self._placed.locations.list_all()
            if all(location.state is MoveState.SETTLED for location in locations):
                return
            await asyncio.sleep(MOVE_PAUSE)

    async def _replace_in_graph(self, model: EmbeddingModel, job_id: str) -> int:
        state = await self._vectors.get_state()
        if state is None or state.job_id != job_id:
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


class ReembeddingService:
    """Has a worker replace all vectors by those of another model."""

    def __init__(
        self, vectors: VectorStore, jobs: JobRunner, settings: Settings, placed: PlacedGraph | None = None
    ) -> None:
        self._vectors = vectors
        self._jobs = jobs
        self._settings = settings
        self._placed = placed

    async def start(self, tenant: str, model: str | None) -> Job:
        """Queue the replacement and return its job; absent a model, that of the settings is taken.

        A replacement by the same model that was interrupted or failed goes on under its own job. Raises InvalidInput
        for a model that the embedder cannot use, ConfigurationError for one of the settings, and Conflict while another
        replacement is under way or if the vectors are those of the model already.
        """
        wanted = await self._describe(model)
        states = await self._list_states()
        state = _under_way(states)
        if state is not None and state.next is not None and state.job_id is not None:
            if state.next.name != wanted.name:
                raise Conflict(
                    f"A re-embedding with {state.next.name} is under way: wait for job {state.job_id} to end, then "
                    "start another."
                )
            job = await self._jobs.find(state.job_id)
            if job is not None and job.status is JobStatus.FAILED:
                return await self._jobs.retry(job.id)
            if job is not None and not job.status.is_final:
                return job
            job_id = state.job_id
        else:
            if all(state.model.name == wanted.name for state in states):
                raise Conflict(
                    f"All vectors are of {wanted.name} already: name another model, or set GRAPHMEM_EMBEDDER and "
                    "GRAPHMEM_EMBEDDING_MODEL to the new model."
                )
            job_id = str(uuid.uuid4())
        for begun in await run_in_each_graph(self._placed, lambda: self._vectors.begin(wanted, job_id)):
            if begun.job_id not in (None, job_id):
                raise Conflict(f"A re-embedding has just begun: wait for job {begun.job_id} to end.")
        await self._jobs.enqueue(REEMBEDDING_JOB, ReembeddingPayload(tenant=tenant, model=wanted), job_id)
        return await self._jobs.get(job_id)

    async def status(self) -> EmbeddingStatus:
        """Return the model of the vectors, and how far a re-embedding has come, in all graphs together."""
        states = await self._list_states()
        state = _under_way(states) or states[0]
        status = EmbeddingStatus(model=state.model.name, dimension=state.model.dimension)
        if state.next is None:
            return status
        counts = await run_in_each_graph(self._placed, self._vectors.count)
        return status.model_copy(
            update={
                "next_model": state.next.name,
                "phase": state.phase,
                "job_id": state.job_id,
                "done": sum(state.done for state in states),
                "total": sum(counts),
            }
        )

    async def _list_states(self) -> list[VectorState]:
        """Return the state of the vectors in each graph, the home first."""
        found = await run_in_each_graph(self._placed, self._vectors.get_state)
        assert None not in found, "a graph is prepared before it is used"
        return [state for state in found if state is not None]

    async def _describe(self, model: str | None) -> EmbeddingModel:
        """Return a model of the configured embedder, which is loaded to see that it works."""
        settings = self._settings if model is None else self._settings.model_copy(update={"embedding_model": model})
        try:
            embedder = create_embedder(settings)
            try:
                await embedder.open()
                return describe_model(embedder, settings)
            finally:
                await embedder.aclose()
        except ConfigurationError as error:
            if model is None:
                raise
            raise InvalidInput(error.detail, errors=[{"loc": ["model"], "msg": "cannot be used"}]) from error


def _under_way(states: Sequence[VectorState]) -> VectorState | None:
    """Return the state of the first graph whose vectors are being replaced."""
    return next((state for state in states if state.next is not None), None)
