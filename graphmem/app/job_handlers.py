"""The handlers of all job kinds, built on the services of a worker process."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from graphmem.app.components import Components, ConsolidationComponents
from graphmem.changes.webhooks import WEBHOOK_JOB
from graphmem.consolidation.analysis import ProposalAnalyser
from graphmem.consolidation.consolidation_job import ConsolidationJob
from graphmem.consolidation.maintenance import ARCHIVE_JOB, MAINTENANCE_JOB, MaintenanceJob, MaintenanceTasks
from graphmem.consolidation.profiles import ProfileWriter
from graphmem.consolidation.run_store import RunStore
from graphmem.consolidation.service import CONSOLIDATION_JOB, NIGHT_JOB
from graphmem.context.learning import OBSERVATION_JOB, ContextLearner, queue_derived_observation
from graphmem.context.usage import ContextUsage
from graphmem.ingestion.extraction_job import ExtractionJob
from graphmem.ingestion.jobs import (
    CLOSING_JOB,
    EMBEDDING_JOB,
    EXTRACTION_JOB,
    SUMMARY_JOB,
    TOOL_EXTRACTION_JOB,
    SummaryPayload,
)
from graphmem.ingestion.summary import SummaryJob
from graphmem.jobs.kinds import JobHandler
from graphmem.jobs.runner import JobRunner
from graphmem.memories.declarations import DeclaredTypeStore
from graphmem.memories.vectors import REEMBEDDING_JOB, ReembeddingJob, VectorStore
from graphmem.models.embedder import RecordedEmbedder
from graphmem.models.language_model import load_prompts
from graphmem.placement.move import MOVE_JOB, MoveJob
from graphmem.tenants.owners import Owner
from graphmem.tenants.tenant_settings import InstructionStore
from graphmem.tenants.users import UserStore
from graphmem.user_data.forget import ERASURE_JOB

if TYPE_CHECKING:
    from graphmem.app.bootstrap import Services


def build_job_handlers(services: Services, consolidation: ConsolidationComponents) -> list[JobHandler[Any]]:
    """Return the handler of every kind of job."""
    components, jobs = services.components, services.jobs
    instructions = InstructionStore(components.graph)
    extraction = ExtractionJob(
        graph=components.graph,
        instructions=instructions,
        declared_types=DeclaredTypeStore(components.graph),
        episodes=components.episodes,
        facts=components.facts,
        entities=components.entities,
        memory_writer=components.memory_writer,
        policy=components.policy,
        profiles=components.profiles,
        embedder=components.embedder,
        model=components.model,
        queue_summary=services.inbox.summarize_session,
        queue_learning=partial(queue_derived_observation, jobs),
        zone=components.settings.timezone,
        quarantine=components.settings.quarantine,
    )
    summaries = SummaryJob(
        graph=components.graph,
        episodes=components.episodes,
        facts=components.facts,
        memory_writer=components.memory_writer,
        policy=components.policy,
        model=components.model,
        zone=components.settings.timezone,
    )
    consolidation_job = ConsolidationJob(
        components.graph,
        consolidation.runs,
        consolidation.discovery,
        ProposalAnalyser(
            components.graph,
            instructions,
            components.model,
            load_prompts(),
            components.clock,
            components.settings.timezone,
        ),
        consolidation.executor,
        components.clock,
        jobs,
        _build_profile_writer(components, consolidation),
    )
    maintenance = build_maintenance_job(components, jobs, consolidation.runs, services.learner, services.context_usage)
    embedder = components.embedder
    reembedding = (
        [JobHandler(REEMBEDDING_JOB, ReembeddingJob(VectorStore(components.graph), embedder, components.placed).handle)]
        if isinstance(embedder, RecordedEmbedder)
        else []
    )
    moves = [JobHandler(MOVE_JOB, MoveJob(components.placed, components.clock).handle)] if components.placed else []
    return [
        *reembedding,
        *moves,
        JobHandler(EXTRACTION_JOB, extraction.run),
        JobHandler(TOOL_EXTRACTION_JOB, extraction.run_tools),
        JobHandler(EMBEDDING_JOB, services.inbox.handle_embedding_job),
        JobHandler(SUMMARY_JOB, summaries.run),
        JobHandler(CLOSING_JOB, summaries.close),
        JobHandler(OBSERVATION_JOB, services.learner.handle_observation_job),
        JobHandler(CONSOLIDATION_JOB, consolidation_job.handle),
        JobHandler(NIGHT_JOB, consolidation_job.handle_night),
        JobHandler(MAINTENANCE_JOB, maintenance.handle),
        JobHandler(ARCHIVE_JOB, maintenance.handle_archive),
        JobHandler(WEBHOOK_JOB, services.webhook_delivery.handle),
        JobHandler(ERASURE_JOB, services.forgetting.handle_erasure_job),
    ]


def _build_profile_writer(components: Components, consolidation: ConsolidationComponents) -> ProfileWriter | None:
    if components.model is None:
        return None
    return ProfileWriter(
        components.graph,
        components.facts,
        consolidation.runs,
        components.embedder,
        components.policy,
        components.model,
        load_prompts()["profile"],
        components.clock,
        components.settings.timezone,
    )


def build_maintenance_job(
    components: Components, jobs: JobRunner, runs: RunStore, learner: ContextLearner, usage: ContextUsage
) -> MaintenanceJob:
    """Return the maintenance job for all packages."""
    settings, clock = components.settings, components.clock

    async def prune_jobs(_tenant: str | None) -> int:
        # The job store knows no tenants: finished jobs of all tenants are deleted after their retention period.
        return await jobs.prune(clock() - timedelta(days=settings.jobs_days))

    async def queue_summary(owner: Owner, session_id: str, through: int, job_id: str) -> None:
        payload = SummaryPayload(tenant=owner.tenant, user_id=owner.user_id, session_id=session_id, through=through)
        await jobs.enqueue(SUMMARY_JOB, payload, job_id)

    return MaintenanceJob(
        MaintenanceTasks(
            components.graph,
            components.facts,
            runs,
            clock,
            archive_days=settings.archive_days,
            compress_days=settings.compress_days,
            rollback_days=settings.rollback_days,
            compress_messages=settings.compress_messages,
        ),
        UserStore(components.graph),
        jobs,
        queue_summary=queue_summary if components.model and settings.extraction == "auto" else None,
        prune_user=[learner.prune, usage.prune],
        prune_tenant={"requests": components.idempotency.delete_expired, "jobs": prune_jobs},
    )
