"""Re-embedding on demand, and how far it has come."""

from __future__ import annotations

import uuid

from graphmem.jobs.job import Job, JobStatus
from graphmem.jobs.runner import JobRunner
from graphmem.memories.reembedding import REEMBEDDING_JOB, ReembeddingPayload
from graphmem.memories.vectors_store import VectorStore
from graphmem.models.embedder import create_embedder, describe_model
from graphmem.models.embedding_models import EmbeddingModel, EmbeddingStatus
from graphmem.runtime.errors import ConfigurationError, Conflict, InvalidInput
from graphmem.runtime.settings import Settings


class ReembeddingService:
    """Has a worker replace all vectors by those of another model."""

    def __init__(self, vectors: VectorStore, jobs: JobRunner, settings: Settings) -> None:
        self._vectors = vectors
        self._jobs = jobs
        self._settings = settings

    async def start(self, tenant: str, model: str | None) -> Job:
        """Queue the replacement and return its job; absent a model, that of the settings is taken.

        A replacement by the same model that was interrupted or failed goes on under its own job. Raises InvalidInput
        for a model that the embedder cannot use, ConfigurationError for one of the settings, and Conflict while another
        replacement is under way or if the vectors are those of the model already.
        """
        wanted = await self._describe(model)
        state = await self._vectors.get_state()
        assert state is not None
        if state.next is not None and state.job_id is not None:
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
            if state.model.name == wanted.name:
                raise Conflict(
                    f"All vectors are of {wanted.name} already: name another model, or set GRAPHMEM_EMBEDDER and "
                    "GRAPHMEM_EMBEDDING_MODEL to the model that is wanted."
                )
            job_id = str(uuid.uuid4())
            state = await self._vectors.begin(wanted, job_id)
            if state.job_id != job_id:
                raise Conflict(f"A re-embedding has just begun: wait for job {state.job_id} to end.")
        await self._jobs.enqueue(REEMBEDDING_JOB, ReembeddingPayload(tenant=tenant, model=wanted), job_id)
        return await self._jobs.get(job_id)

    async def status(self) -> EmbeddingStatus:
        """Return the model of the vectors, and how far a re-embedding has come."""
        state = await self._vectors.get_state()
        assert state is not None
        status = EmbeddingStatus(model=state.model.name, dimension=state.model.dimension)
        if state.next is None:
            return status
        return status.model_copy(
            update={
                "next_model": state.next.name,
                "phase": state.phase,
                "job_id": state.job_id,
                "done": state.done,
                "total": await self._vectors.count(),
            }
        )

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
