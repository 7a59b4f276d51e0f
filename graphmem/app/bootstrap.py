"""The composition root: settings become wired `Services`. Nothing else builds them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from graphmem.app.components import (
    Components,
    RetrievalComponents,
    open_components,
    opening_patience,
)
from graphmem.app.consolidation import ConsolidationComponents
from graphmem.app.health import ReadinessCheck, StorageMeter, Sweep, attempt
from graphmem.app.warm_up import WarmUp
from graphmem.ask.service import AskService
from graphmem.changes.feed import ChangeService, ChangeStore
from graphmem.changes.sender import WebhookSender
from graphmem.changes.webhooks import WATCH_SECONDS, WebhookDelivery, WebhookService, WebhookStore
from graphmem.chats.service import ChatService
from graphmem.chats.upstream import UpstreamService
from graphmem.consolidation.rollback import RunRollback
from graphmem.consolidation.service import (
    ConsolidationService,
    MaintenanceService,
    schedule_maintenance,
    schedule_nightly_consolidation,
)
from graphmem.context.learning import ContextLearner, queue_observation
from graphmem.context.service import ContextService
from graphmem.context.store import ContextStore
from graphmem.context.surroundings import SurroundingsStore
from graphmem.context.usage import ContextUsage, ContextUseStore
from graphmem.ingestion.inbox import Inbox, MessageService
from graphmem.ingestion.inferred_save import InferredSave
from graphmem.ingestion.quarantine import QuarantineService
from graphmem.jobs.runner import JobRunner, JobWaiting
from graphmem.jobs.store import DEMO_QUEUE, JOB_QUEUE
from graphmem.memories.declarations import DeclaredTypeService, DeclaredTypeStore
from graphmem.memories.reembedding import ReembeddingService
from graphmem.memories.service import MemoryService
from graphmem.memories.vectors import VectorStore
from graphmem.models.embedder import Embedder
from graphmem.models.language_model import LanguageModel
from graphmem.placement.service import PlacementService
from graphmem.runtime.progress import StartProgress
from graphmem.runtime.settings import Settings
from graphmem.runtime.times import Clock, utc_now
from graphmem.search.candidates import EntityGraphStore
from graphmem.search.service import EntityService, RetrievalService
from graphmem.tenants.keys import KeyService, KeyStore
from graphmem.tenants.space_store import SpaceService, SpaceStore
from graphmem.tenants.trust_store import TrustService, TrustStore
from graphmem.tenants.users import InstructionService, InstructionStore, PersonaStore, UserService, UserStore
from graphmem.user_data.export import ExportService, ExportStore
from graphmem.user_data.file_import import FileImporter
from graphmem.user_data.forget import ForgetService, ForgetStore, UserData, load_receipt_key
from graphmem.user_data.import_store import ImportStore
from graphmem.user_data.importing import ImportService
from graphmem.user_data.record_import import RecordImporter


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
            queue_observation=partial(queue_observation, jobs),
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
        self.answers = AskService(self.contexts, episodes, components.model, clock, settings.timezone)
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
        self.trust = TrustService(TrustStore(graph), clock)
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
            self.trust,
        )
        self.quarantine = QuarantineService(graph, facts, components.embedder)
        self.entities = EntityService(entities, facts, EntityGraphStore(graph), clock)
        self.retrieval = RetrievalService(
            retrieval.search,
            retrieval.lookup,
            retrieval.reinforcement,
            self.declared_types,
            PersonaStore(graph, clock),
        )
        self.placements = PlacementService(graph, components.placed, jobs, clock)
        self.storage = StorageMeter(graph, self.placements.run_everywhere)
        self.waiting = JobWaiting(graph, jobs)
        self.messages = MessageService(self.inbox, episodes, jobs, self.waiting, settings.extraction)
        self.chats = ChatService(self.contexts, self.messages, episodes, UserStore(graph), retrieval.rights, clock)
        self.upstream = UpstreamService(settings)
        rollbacks = RunRollback(graph, facts, runs, clock, settings.rollback_days)
        self.consolidations = ConsolidationService(
            consolidation.discovery, runs, consolidation.executor, rollbacks, jobs, self.waiting, clock
        )
        self.maintenance = MaintenanceService(jobs, self.waiting)
        self.reembedding = ReembeddingService(VectorStore(graph), jobs, settings, components.placed)
        self.exports = ExportService(ExportStore(graph), clock)
        import_store = ImportStore(graph, facts)
        self.file_imports = FileImporter(import_store, components.embedder)
        self.imports = ImportService(
            import_store,
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
            KeyStore(components.home, graph), clock, settings.api_key, max_failures_per_minute=settings.max_unknown_keys
        )
        self.rights = retrieval.rights
        self.spaces = SpaceService(SpaceStore(graph, components.home), policy, clock)
        users = UserStore(graph)
        self.users = UserService(users, clock)
        self.warm_up = WarmUp(users, self.contexts, self.messages, self.memories, self.forgetting)
        self.instructions = InstructionService(InstructionStore(graph), policy, clock)
        others = components.placed.others if components.placed else {}
        self.readiness = ReadinessCheck(
            components.home, jobs, settings, {name: database.graph for name, database in others.items()}
        )

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
            everywhere = services.placements.run_everywhere
            sweep = Sweep(
                partial(everywhere, services.inbox.requeue_stranded),
                partial(everywhere, services.consolidations.end_stranded),
                partial(everywhere, services.forgetting.resume_interrupted),
            )
            deliveries = Sweep(partial(everywhere, services.webhook_delivery.queue_due), seconds=WATCH_SECONDS)
            try:
                if worker:
                    # Imported here: a process without a worker does without what only jobs do.
                    from graphmem.app.job_handlers import build_job_handlers

                    await jobs.start_worker(build_job_handlers(services, consolidation))
                if not demo:
                    async with opening_patience(components.graph, settings):
                        await attempt(partial(everywhere, services.inbox.requeue_unread))
                if worker and not demo:
                    sweep.start()
                    if settings.webhook_delivery:
                        deliveries.start()
                    for name in services.placements.names:
                        await schedule_nightly_consolidation(jobs, settings, name)
                        await schedule_maintenance(jobs, settings, name)
                yield services
            finally:
                await sweep.stop()
                await deliveries.stop()
                await services.webhook_sender.aclose()
                await services.chats.close()
                await services.upstream.aclose()
                # Side by side: where the database is unavailable, each waits for it.
                await asyncio.gather(services.contexts.close(), services.retrieval.close(), services.rights.close())
