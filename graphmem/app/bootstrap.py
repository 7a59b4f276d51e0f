"""The composition root: builds `Services` from the settings. No other module does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from graphmem.app.components import Components, ConsolidationComponents, RetrievalComponents, open_components
from graphmem.app.health import ReadinessCheck, StorageMeter, Sweep, WarmUp, attempt
from graphmem.ask.service import AskService
from graphmem.changes.feed import ChangeStore
from graphmem.changes.sending import WebhookSender
from graphmem.changes.webhooks import WATCH_SECONDS, WebhookDelivery, WebhookService, WebhookStore
from graphmem.chats.service import ChatService, UpstreamService
from graphmem.consolidation.rollback import RunRollback
from graphmem.consolidation.run_store import RunStore
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
from graphmem.ingestion.inferred_save import InferredSave
from graphmem.ingestion.quarantine import QuarantineService
from graphmem.ingestion.service import Inbox, MessageService
from graphmem.jobs.runner import JobRunner, JobWaiting
from graphmem.jobs.store import DEMO_QUEUE, JOB_QUEUE
from graphmem.memories.declarations import DeclaredTypeService, DeclaredTypeStore
from graphmem.memories.service import MemoryService
from graphmem.memories.vectors import ReembeddingService, VectorStore
from graphmem.models.embedder import Embedder
from graphmem.models.language_model import LanguageModel
from graphmem.placement.service import PlacementService
from graphmem.runtime.progress import StartProgress
from graphmem.runtime.settings import Settings
from graphmem.runtime.times import Clock, utc_now
from graphmem.search.service import EntityService, RetrievalService
from graphmem.tenants.keys import KeyService
from graphmem.tenants.space_store import SpaceService, SpaceStore
from graphmem.tenants.tenant_settings import InstructionService, InstructionStore, TrustService
from graphmem.tenants.users import PersonaStore, UserService, UserStore
from graphmem.user_data.export import ExportService, ExportStore
from graphmem.user_data.export_import import ExportImporter
from graphmem.user_data.forget import ForgetService, ForgetStore, UserData, load_receipt_key
from graphmem.user_data.importing import ImportService
from graphmem.user_data.records import RecordImporter


class Services:
    """The services of one process, which the HTTP API, the command line, MCP and `GraphMemory` call."""

    def __init__(self, components: Components, jobs: JobRunner, consolidation: ConsolidationComponents) -> None:
        graph, clock = components.graph, components.clock
        retrieval = RetrievalComponents.build(components)
        context_store, context_uses = ContextStore(graph, clock), ContextUseStore(graph, clock)
        self.settings = components.settings
        self.components = components
        self.idempotency = components.idempotency
        self.jobs = jobs
        # Order matters: later services use earlier ones.
        self._wire_contexts(retrieval, context_store, context_uses)
        self._wire_changes()
        self._wire_memories()
        self._wire_search(retrieval)
        self._wire_placements()
        self._wire_messages(retrieval)
        self._wire_consolidation(consolidation)
        self._wire_user_data()
        self._wire_forgetting(retrieval, context_store, context_uses, consolidation.runs)
        self._wire_tenants(retrieval)
        self._wire_readiness()

    def _wire_contexts(
        self, retrieval: RetrievalComponents, context_store: ContextStore, context_uses: ContextUseStore
    ) -> None:
        components, clock = self.components, self.components.clock
        policy, profiles = components.policy, components.profiles
        self.inbox = Inbox(
            components.episodes,
            components.embedder,
            policy,
            self.jobs,
            queue_observation=partial(queue_observation, self.jobs),
            has_model=components.model is not None,
        )
        self.context_usage = ContextUsage(context_uses, components.facts, clock, self.settings.context_days)
        self.contexts = ContextService(
            context_store,
            SurroundingsStore(components.graph, clock),
            retrieval.search,
            retrieval.reinforcement,
            profiles,
            policy,
            clock,
            self.context_usage,
        )
        self.answers = AskService(self.contexts, components.episodes, components.model, clock, self.settings.timezone)
        self.trust = TrustService(components.graph, clock)
        self.learner = ContextLearner(
            context_store,
            components.episodes,
            retrieval.lookup,
            policy,
            profiles,
            clock,
            self.context_usage,
            self.trust,
        )

    def _wire_changes(self) -> None:
        graph, clock, settings = self.components.graph, self.components.clock, self.settings
        self.changes = ChangeStore(graph, self.components.entities, clock)
        webhooks = WebhookStore(graph)
        self.webhooks = WebhookService(webhooks, self.jobs, clock, allow_private=settings.webhook_allow_private)
        self.webhook_sender = WebhookSender(allow_private=settings.webhook_allow_private)
        self.webhook_delivery = WebhookDelivery(
            webhooks, self.changes, self.jobs, self.webhook_sender, clock, settings.webhook_failing_days
        )

    def _wire_memories(self) -> None:
        components, clock = self.components, self.components.clock
        graph, facts, entities = components.graph, components.facts, components.entities
        self.declared_types = DeclaredTypeService(DeclaredTypeStore(graph), components.policy, clock)
        self.memories = MemoryService(
            components.memory_writer,
            InferredSave(
                graph,
                facts,
                entities,
                components.memory_writer,
                components.policy,
                components.embedder,
                components.model,
                clock,
            ).save,
            self.declared_types,
            facts,
            entities,
            clock,
            self.settings.max_memories_per_save,
            self.trust,
        )
        self.quarantine = QuarantineService(graph, facts, components.embedder)

    def _wire_search(self, retrieval: RetrievalComponents) -> None:
        components, graph, clock = self.components, self.components.graph, self.components.clock
        self.entities = EntityService(components.entities, components.facts, graph, clock)
        self.retrieval = RetrievalService(
            retrieval.search,
            retrieval.lookup,
            retrieval.reinforcement,
            self.declared_types,
            PersonaStore(graph, clock),
        )

    def _wire_placements(self) -> None:
        components = self.components
        self.placements = PlacementService(components.graph, components.placed, self.jobs, components.clock)
        self.storage = StorageMeter(components.graph, self.placements.run_everywhere)

    def _wire_messages(self, retrieval: RetrievalComponents) -> None:
        graph, episodes = self.components.graph, self.components.episodes
        self.waiting = JobWaiting(graph, self.jobs)
        self.messages = MessageService(self.inbox, episodes, self.jobs, self.waiting, self.settings.extraction)
        self.chats = ChatService(
            self.contexts, self.messages, episodes, UserStore(graph), retrieval.rights, self.components.clock
        )
        self.upstream = UpstreamService(self.settings)

    def _wire_consolidation(self, consolidation: ConsolidationComponents) -> None:
        components, graph, clock = self.components, self.components.graph, self.components.clock
        runs = consolidation.runs
        rollbacks = RunRollback(graph, components.facts, runs, clock, self.settings.rollback_days)
        self.consolidations = ConsolidationService(
            consolidation.discovery, runs, consolidation.executor, rollbacks, self.jobs, self.waiting, clock
        )
        self.maintenance = MaintenanceService(self.jobs, self.waiting)
        self.reembedding = ReembeddingService(VectorStore(graph), self.jobs, self.settings, components.placed)

    def _wire_user_data(self) -> None:
        components, settings, clock = self.components, self.settings, self.components.clock
        self.exports = ExportService(ExportStore(components.graph), clock)
        self.export_imports = ExportImporter(
            components.graph, components.facts, components.embedder, max_entries=settings.max_import_entries
        )
        self.imports = ImportService(
            components.graph,
            components.facts,
            self.export_imports,
            components.memory_writer,
            self.messages,
            self.declared_types,
            RecordImporter(components.facts, self.memories),
            components.entities,
            clock,
            max_entries=settings.max_import_entries,
            max_memories_per_save=settings.max_memories_per_save,
        )

    def _wire_forgetting(
        self,
        retrieval: RetrievalComponents,
        context_store: ContextStore,
        context_uses: ContextUseStore,
        runs: RunStore,
    ) -> None:
        graph, clock = self.components.graph, self.components.clock
        self.keys = KeyService(
            self.components.home,
            graph,
            clock,
            self.settings.admin_key,
            max_failures_per_minute=self.settings.max_unknown_keys,
        )
        self.forgetting = ForgetService(
            graph,
            UserData(
                jobs=self.jobs,
                graph=ForgetStore(graph, clock),
                facts=self.components.facts,
                runs=runs,
                context_uses=context_uses,
                idempotency=self.idempotency,
                context=context_store,
                reinforcement=retrieval.reinforcement,
                lookup=retrieval.lookup,
                vectors=retrieval.vectors,
                context_snapshots=self.contexts,
                keys=self.keys,
                webhooks=WebhookStore(graph),
            ),
            clock,
            partial(load_receipt_key, self.settings),
        )

    def _wire_tenants(self, retrieval: RetrievalComponents) -> None:
        components = self.components
        graph, policy, clock = components.graph, components.policy, components.clock
        self.rights = retrieval.rights
        self.spaces = SpaceService(SpaceStore(graph, components.home), self.trust, policy, clock)
        users = UserStore(graph)
        self.users = UserService(users, clock)
        self.warm_up = WarmUp(users, self.contexts, self.messages, self.memories, self.forgetting)
        self.instructions = InstructionService(InstructionStore(graph), policy, clock)

    def _wire_readiness(self) -> None:
        others = self.components.placed.others if self.components.placed else {}
        graphs = {name: database.graph for name, database in others.items()}
        self.readiness = ReadinessCheck(self.components.home, self.jobs, self.settings, graphs)

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

        `embedder` and `model` replace the configured ones; the caller closes them. With `demo`, jobs go to a queue that
        only this process's worker serves, and all other jobs and schedules are left alone. `progress` reports what
        startup is waiting for; without it, nothing is reported.
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
                    # Imported here: a process without a worker needs no job handlers.
                    from graphmem.app.job_handlers import build_job_handlers

                    await jobs.start_worker(build_job_handlers(services, consolidation))
                if not demo:
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
                # Concurrently: each waits for the database while it is unavailable.
                await asyncio.gather(services.contexts.close(), services.retrieval.close(), services.rights.close())
