"""The composition root: settings become wired `Services` and job handlers. Nothing else builds them."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from graphmem.app.components import (
    Components,
    RetrievalComponents,
    open_components,
    opening_patience,
)
from graphmem.app.health import ReadinessCheck, StorageMeter, Sweep, WarmUp, attempt
from graphmem.changes.feed import ChangeService, ChangeStore
from graphmem.changes.sender import WebhookSender
from graphmem.changes.webhooks import WATCH_SECONDS, WEBHOOK_JOB, WebhookDelivery, WebhookService, WebhookStore
from graphmem.chats.service import ChatService
from graphmem.chats.upstream import UpstreamService
from graphmem.consolidation.analysis import ProposalAnalyser
from graphmem.consolidation.batch_planning import ColdMemoryPolicy
from graphmem.consolidation.consolidation_job import CONSOLIDATION_JOB, NIGHTLY_STAGE_JOB, ConsolidationJob, Discovery
from graphmem.consolidation.guards import LossLimits
from graphmem.consolidation.maintenance import ARCHIVE_JOB, MAINTENANCE_JOB, MaintenanceJob, MaintenanceTasks
from graphmem.consolidation.rollback import RunRollback
from graphmem.consolidation.run_executor import RunExecutor
from graphmem.consolidation.run_store import RunStore
from graphmem.consolidation.service import (
    ConsolidationService,
    MaintenanceService,
    schedule_maintenance,
    schedule_nightly_consolidation,
)
from graphmem.context.learning import OBSERVATION_JOB, ContextLearner, ObservationPayload
from graphmem.context.service import ContextService
from graphmem.context.store import ContextStore
from graphmem.context.surroundings import SurroundingsStore
from graphmem.context.usage import ContextUsage, ContextUseStore
from graphmem.ingestion.extraction_job import ExtractionJob
from graphmem.ingestion.inbox import Inbox, MessageService
from graphmem.ingestion.inferred_save import InferredSave
from graphmem.ingestion.jobs import (
    CLOSING_JOB,
    EMBEDDING_JOB,
    EXTRACTION_JOB,
    SUMMARY_JOB,
    TOOL_EXTRACTION_JOB,
    SummaryPayload,
)
from graphmem.ingestion.session_summary import SummaryJob
from graphmem.jobs.kinds import JobHandler
from graphmem.jobs.runner import JobRunner, JobWaiting
from graphmem.jobs.store import DEMO_QUEUE, JOB_QUEUE
from graphmem.memories.declarations import DeclaredTypeService, DeclaredTypeStore
from graphmem.memories.reembedding import REEMBEDDING_JOB, ReembeddingJob, ReembeddingService
from graphmem.memories.service import MemoryService
from graphmem.memories.vectors import VectorStore
from graphmem.models.embedder import Embedder, RecordedEmbedder
from graphmem.models.language_model import LanguageModel
from graphmem.models.prompts import load_prompts
from graphmem.runtime.progress import StartProgress
from graphmem.runtime.settings import Settings
from graphmem.runtime.times import Clock, utc_now
from graphmem.search.candidates import EntityGraphStore
from graphmem.search.service import EntityService, RetrievalService
from graphmem.tenants.keys import KeyService, KeyStore
from graphmem.tenants.owners import Owner
from graphmem.tenants.users import InstructionService, InstructionStore, PersonaStore, UserService, UserStore
from graphmem.user_data.export import ExportService, ExportStore
from graphmem.user_data.forget import ERASURE_JOB, ForgetService, ForgetStore, UserData, load_receipt_key
from graphmem.user_data.import_store import ImportStore
from graphmem.user_data.importing import ImportService
from graphmem.user_data.record_import import RecordImporter


@dataclass(frozen=True, slots=True)
class ConsolidationComponents:
    """The components of consolidation that its jobs and its service share."""

    runs: RunStore
    discovery: Discovery
    executor: RunExecutor

    @classmethod
    def build(cls, components: Components) -> ConsolidationComponents:
        """Build them from the shared components."""
        settings, graph = components.settings, components.graph
        runs = RunStore(graph)
        executor = RunExecutor(
            graph,
            components.facts,
            components.entities,
            runs,
            components.embedder,
            components.policy,
            LossLimits(
                settings.consolidation_max_ended, settings.consolidation_min_text, settings.consolidation_free_ended
            ),
        )
        discovery = Discovery(
            graph,
            batch_size=settings.consolidation_batch,
            max_batches=settings.consolidation_max_batches,
            cold_policy=ColdMemoryPolicy(
                timedelta(days=settings.consolidation_old_days), settings.consolidation_seldom
            ),
        )
        return cls(runs, discovery, executor)


class Services:
    """The services of one process, which the HTTP API, the command line, MCP and `GraphMemory` call."""

    def __init__(self, components: Components, jobs: JobRunner, consolidation: ConsolidationComponents) -> None:
        settings, clock, graph = components.settings, components.clock, components.graph
        self.settings = settings
        facts, entities, episodes = components.facts, components.entities, components.episodes
        policy, profiles = components.policy, components.profiles
        retrieval = RetrievalComponents.build(components)
        context_store = ContextStore(graph, clock)
        runs = consolidation.runs
        self.components = components
        self.idempotency = components.idempotency
        self.inbox = Inbox(
            episodes,
            components.embedder,
            policy,
            jobs,
            queue_observation=partial(_queue_observation, jobs),
            summaries=components.model is not None,
        )
        self.jobs = jobs
        context_uses = ContextUseStore(graph, clock)
        self.context_usage = ContextUsage(context_uses, facts, clock, settings.context_days)
        self.contexts = ContextService(
            context_store,
            SurroundingsStore(graph, clock),
            retrieval.search,
            retrieval.reinforcement,
            profiles,
            policy,
            clock,
            self.context_usage,
        )
        self.learner = ContextLearner(
            context_store, episodes, retrieval.lookup, policy, profiles, clock, self.context_usage
        )
        changes = ChangeStore(graph, entities, clock)
        self.changes = ChangeService(changes, clock)
        webhooks = WebhookStore(graph)
        self.webhooks = WebhookService(webhooks, jobs, clock, allow_private=settings.webhook_allow_private)
        self.webhook_sender = WebhookSender(allow_private=settings.webhook_allow_private)
        self.webhook_delivery = WebhookDelivery(
            webhooks, changes, jobs, self.webhook_sender, clock, settings.webhook_failing_days
        )
        self.declared_types = DeclaredTypeService(DeclaredTypeStore(graph), policy, clock)
        self.memories = MemoryService(
            components.memory_writer,
            InferredSave(
                graph, facts, entities, components.memory_writer, policy, components.embedder, components.model, clock
            ).save,
            self.declared_types,
            facts,
            entities,
            clock,
            settings.max_memories_per_save,
        )
        self.entities = EntityService(entities, facts, EntityGraphStore(graph), clock)
        self.retrieval = RetrievalService(
            retrieval.search,
            retrieval.lookup,
            retrieval.reinforcement,
            self.declared_types,
            PersonaStore(graph, clock),
        )
        self.storage = StorageMeter(graph)
        self.waiting = JobWaiting(graph, jobs)
        self.messages = MessageService(self.inbox, episodes, jobs, self.waiting, settings.extraction)
        self.chats = ChatService(self.contexts, self.messages, episodes, UserStore(graph), clock)
        self.upstream = UpstreamService(settings)
        rollbacks = RunRollback(graph, facts, runs, clock, settings.rollback_days)
        self.consolidations = ConsolidationService(
            consolidation.discovery, runs, consolidation.executor, rollbacks, jobs, self.waiting, clock
        )
        self.maintenance = MaintenanceService(jobs, self.waiting)
        self.reembedding = ReembeddingService(VectorStore(graph), jobs, settings)
        self.exports = ExportService(ExportStore(graph), components.embedder, clock)
        self.imports = ImportService(
            ImportStore(graph, facts),
            components.embedder,
            components.memory_writer,
            self.messages,
            self.declared_types,
            RecordImporter(facts, self.memories),
            clock,
            max_entries=settings.max_import_entries,
            max_memories_per_save=settings.max_memories_per_save,
        )
        self.forgetting = ForgetService(
            graph,
            UserData(
                jobs=jobs,
                graph=ForgetStore(graph, clock),
                facts=facts,
                runs=runs,
                context_uses=context_uses,
                idempotency=self.idempotency,
                context=context_store,
                reinforcement=retrieval.reinforcement,
                lookup=retrieval.lookup,
                vectors=retrieval.vectors,
                context_snapshots=self.contexts,
            ),
            clock,
            partial(load_receipt_key, settings),
        )
        self.keys = KeyService(
            KeyStore(graph), clock, settings.api_key, max_failures_per_minute=settings.max_unknown_keys
        )
        users = UserStore(graph)
        self.users = UserService(users, clock)
        self.warm_up = WarmUp(users, retrieval.search)
        self.instructions = InstructionService(InstructionStore(graph), policy, clock)
        self.readiness = ReadinessCheck(graph, jobs, settings)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        settings: Settings | None = None,
        *,
        worker: bool = True,
        embedder: Embedder | None = None,
        model: LanguageModel | None = None,
        clock: Clock = utc_now,
        progress: StartProgress | None = None,
        demo: bool = False,
    ) -> AsyncIterator[Services]:
        """Open the services for `async with`; with `worker` this process also runs jobs.

        `embedder` and `model` replace those of the settings; whoever passes them closes them. A `demo` queues its jobs
        where only its own worker takes them, and leaves the jobs and schedules of all others alone. `progress` reports
        what the start waits for; without it, nothing is reported.
        """
        settings = settings or Settings()
        async with (
            open_components(
                settings, embedder=embedder, model=model, load_embedder=worker, clock=clock, progress=progress
            ) as components,
            await JobRunner.open(settings, DEMO_QUEUE if demo else JOB_QUEUE) as jobs,
        ):
            consolidation = ConsolidationComponents.build(components)
            services = cls(components, jobs, consolidation)
            sweep = Sweep(
                services.inbox.requeue_stranded,
                services.consolidations.end_stranded,
                services.forgetting.resume_interrupted,
            )
            deliveries = Sweep(services.webhook_delivery.queue_due, seconds=WATCH_SECONDS)
            try:
                if worker:
                    await jobs.start_worker(_build_job_handlers(services, jobs, consolidation))
                if not demo:
                    async with opening_patience(components.graph, settings):
                        await attempt(services.inbox.requeue_unread)
                if worker and not demo:
                    sweep.start()
                    if settings.webhook_delivery:
                        deliveries.start()
                    await schedule_nightly_consolidation(jobs, settings)
                    await schedule_maintenance(jobs, settings)
                yield services
            finally:
                await sweep.stop()
                await deliveries.stop()
                await services.webhook_sender.aclose()
                await services.chats.close()
                await services.upstream.aclose()
                # Side by side: where the database is unavailable, each waits for it.
                await asyncio.gather(services.contexts.close(), services.retrieval.close())


def _build_job_handlers(
    services: Services, jobs: JobRunner, consolidation: ConsolidationComponents
) -> list[JobHandler[Any]]:
    components = services.components
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
        queue_learning=partial(_queue_observation, jobs, is_derived=True),
        zone=components.settings.timezone,
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
            components.graph, instructions, components.model, load_prompts(), components.settings.timezone
        ),
        consolidation.executor,
        components.clock,
        jobs,
    )
    maintenance = build_maintenance_job(components, jobs, consolidation.runs, services.learner, services.context_usage)
    embedder = components.embedder
    reembedding = (
        [JobHandler(REEMBEDDING_JOB, ReembeddingJob(VectorStore(components.graph), embedder).handle)]
        if isinstance(embedder, RecordedEmbedder)
        else []
    )
    return [
        *reembedding,
        JobHandler(EXTRACTION_JOB, extraction.run),
        JobHandler(TOOL_EXTRACTION_JOB, extraction.run_tools),
        JobHandler(EMBEDDING_JOB, services.inbox.handle_embedding_job),
        JobHandler(SUMMARY_JOB, summaries.run),
        JobHandler(CLOSING_JOB, summaries.close),
        JobHandler(OBSERVATION_JOB, services.learner.handle_observation_job),
        JobHandler(CONSOLIDATION_JOB, consolidation_job.handle),
        JobHandler(NIGHTLY_STAGE_JOB, consolidation_job.handle_nightly_stage),
        JobHandler(MAINTENANCE_JOB, maintenance.handle),
        JobHandler(ARCHIVE_JOB, maintenance.handle_archive),
        JobHandler(WEBHOOK_JOB, services.webhook_delivery.handle),
        JobHandler(ERASURE_JOB, services.forgetting.handle_erasure_job),
    ]


def build_maintenance_job(
    components: Components, jobs: JobRunner, runs: RunStore, learner: ContextLearner, usage: ContextUsage
) -> MaintenanceJob:
    """Return the job that does maintenance for all packages."""
    settings, clock = components.settings, components.clock

    async def prune_jobs(_tenant: str | None) -> int:
        # The job store does not know tenants: finished jobs of all of them end with their retention.
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


async def _queue_observation(
    jobs: JobRunner, owner: Owner, message_ids: Sequence[str], *, is_derived: bool = False
) -> None:
    payload = ObservationPayload(
        tenant=owner.tenant, user_id=owner.user_id, message_ids=list(message_ids), is_derived=is_derived
    )
    # The same messages are the same job, so that a repeated request does not queue them twice.
    name = f"{OBSERVATION_JOB.name} derived" if is_derived else OBSERVATION_JOB.name
    job_id = str(uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([name, owner.group_id, *message_ids])))
    await jobs.enqueue(OBSERVATION_JOB, payload, job_id)
