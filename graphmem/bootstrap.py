"""The composition root: settings become a wired `Services`. Nothing else builds components."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from graphmem.consolidation.analysis import ProposalAnalyser
from graphmem.consolidation.batch_planning import ColdMemoryPolicy
from graphmem.consolidation.consolidation_job import CONSOLIDATION_JOB, ConsolidationJob
from graphmem.consolidation.discovery import Discovery
from graphmem.consolidation.loss_guard import LossLimits
from graphmem.consolidation.maintenance_job import MAINTENANCE_JOB, MaintenanceJob
from graphmem.consolidation.maintenance_tasks import MaintenanceTasks
from graphmem.consolidation.rollback import RunRollback
from graphmem.consolidation.run_executor import RunExecutor
from graphmem.context.learning import ContextLearner
from graphmem.domain.job import JobOutcome
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.profile import TenantProfiles
from graphmem.domain.times import Clock, utc_now
from graphmem.embedding import Embedder, create_embedder
from graphmem.ingestion.extraction_job import EXTRACTION_JOB as EXTRACTION
from graphmem.ingestion.extraction_job import TOOL_EXTRACTION_JOB, ExtractionJob
from graphmem.ingestion.inbox import OBSERVATION_JOB, Inbox
from graphmem.ingestion.memory_writer import MemoryWriter
from graphmem.ingestion.session_summary import CLOSING_JOB, SUMMARY_JOB, SummaryJob
from graphmem.jobs import JobHandler, JobRunner, Steps
from graphmem.llm.client import LanguageModel
from graphmem.llm.prompts import load_prompts
from graphmem.retrieval.entity_name_cache import EntityNameCache
from graphmem.retrieval.hybrid_search import HybridSearch
from graphmem.retrieval.lookup import EntityLookup
from graphmem.retrieval.reinforcement import ReinforcementBuffer
from graphmem.retrieval.rerank import CrossEncoderReranker
from graphmem.service.consolidations import ConsolidationService, schedule_nightly_consolidation
from graphmem.service.context import ContextService
from graphmem.service.entities import EntityService
from graphmem.service.importing import Importer
from graphmem.service.jobs import ERASURE_JOB, JobService
from graphmem.service.keys import KeyService
from graphmem.service.maintenance import MaintenanceService, schedule_maintenance
from graphmem.service.memories import MemoryService
from graphmem.service.messages import MessageService
from graphmem.service.readiness import ReadinessCheck
from graphmem.service.retrieval import RetrievalService
from graphmem.service.storage import StorageMeter
from graphmem.service.transfer import TransferService
from graphmem.settings import Settings
from graphmem.store.context import ContextStore
from graphmem.store.driver import Graph
from graphmem.store.entities import EntityStore
from graphmem.store.episodes import EpisodeStore
from graphmem.store.facts import FactStore
from graphmem.store.idempotency import IdempotencyStore
from graphmem.store.keys import KeyStore
from graphmem.store.migrations import migrate
from graphmem.store.runs import RunStore
from graphmem.store.search import SearchStore
from graphmem.store.transfer import TransferStore

StartupProgress = Callable[[int, int], None] | None
"""Called with the bytes downloaded so far and in total: of Neo4j's jars, then of the embedding model's."""


@dataclass(frozen=True, slots=True)
class Components:
    """One of each part that speaks to the outside."""

    settings: Settings
    clock: Clock
    graph: Graph
    embedder: Embedder
    model: LanguageModel | None
    entities: EntityStore
    facts: FactStore
    episodes: EpisodeStore
    policy: SecretPolicy
    profiles: TenantProfiles
    memory_writer: MemoryWriter


@asynccontextmanager
async def open_graph(settings: Settings, progress: StartupProgress = None) -> AsyncIterator[Graph]:
    """Open the configured Neo4j, or start or join the embedded one.

    Raises ConfigurationError or DatabaseUnavailable with what to do.
    """
    async with AsyncExitStack() as stack:
        if settings.neo4j_uri:
            password = settings.neo4j_password.get_secret_value() if settings.neo4j_password else ""
            graph = Graph(settings.neo4j_uri, settings.neo4j_user, password, settings.neo4j_database)
        else:
            from graphmem.embedded import EmbeddedNeo4j

            server = await stack.enter_async_context(
                await EmbeddedNeo4j.start_or_join(
                    settings.data_dir,
                    settings.cache_dir,
                    bolt_port=settings.bolt_port,
                    http_port=settings.http_port,
                    mirror=settings.jar_mirror,
                    progress=progress,
                )
            )
            graph = Graph(server.info.uri, server.info.user, server.info.password)
        stack.push_async_callback(graph.close)
        await graph.verify_connectivity()
        yield graph


@asynccontextmanager
async def open_components(
    settings: Settings, *, load_embedder: bool = True, clock: Clock = utc_now, progress: StartupProgress = None
) -> AsyncIterator[Components]:
    """Open the components of one process; the database is brought to the schema of this version.

    Unless `load_embedder`, an embedder whose dimension is known is loaded when it is first asked.
    """
    async with AsyncExitStack() as stack:
        graph = await stack.enter_async_context(open_graph(settings, progress))
        embedder = create_embedder(settings, progress)
        if load_embedder or not embedder.dimension:
            await embedder.open()
        stack.push_async_callback(embedder.aclose)
        await migrate(graph, embedder.model, embedder.dimension)
        model = LanguageModel.from_settings(settings)
        if model:
            stack.push_async_callback(model.aclose)
        entities = EntityStore(graph)
        facts = FactStore(graph, entities, clock)
        policy = SecretPolicy(settings.allowed_secret_classes)
        profiles = TenantProfiles(settings.profiles)
        yield Components(
            settings=settings,
            clock=clock,
            graph=graph,
            embedder=embedder,
            model=model,
            entities=entities,
            facts=facts,
            episodes=EpisodeStore(graph, clock),
            policy=policy,
            profiles=profiles,
            memory_writer=MemoryWriter(facts, embedder, policy, profiles),
        )


class DeferredJobQueue:
    """The job queue for components that are built before it: a handler may queue further jobs."""

    jobs: JobRunner

    async def enqueue(self, kind: str, partition: str, payload: dict[str, Any], job_id: str | None = None) -> str:
        """Queue a job."""
        return await self.jobs.enqueue(kind, partition, payload, job_id)

    async def handle_erasure_job(self, payload: dict[str, Any], steps: Steps) -> JobOutcome:
        """Handle a job of kind `erasure`."""
        return await JobService(self.jobs).handle_erasure_job(payload, steps)


@dataclass(frozen=True, slots=True)
class ConsolidationComponents:
    """The components of consolidation that its jobs and its verbs share."""

    runs: RunStore
    discovery: Discovery
    executor: RunExecutor
    consolidation_job: ConsolidationJob

    @classmethod
    def build(cls, components: Components, queue: DeferredJobQueue) -> ConsolidationComponents:
        """Build them from the components of the process."""
        settings, graph = components.settings, components.graph
        runs = RunStore(graph)
        limits = LossLimits(
            settings.consolidation_max_ended, settings.consolidation_min_text, settings.consolidation_free_ended
        )
        executor = RunExecutor(
            graph,
            components.facts,
            components.entities,
            runs,
            components.embedder,
            components.policy,
            limits,
        )
        discovery = Discovery(
            graph,
            batch_size=settings.consolidation_batch,
            max_batches=settings.consolidation_max_batches,
            cold_policy=ColdMemoryPolicy(
                timedelta(days=settings.consolidation_old_days), settings.consolidation_seldom
            ),
        )
        analyser = ProposalAnalyser(graph, components.model, load_prompts())
        consolidation_job = ConsolidationJob(
            graph, runs, discovery, analyser, executor, components.clock, queue.enqueue
        )
        return cls(runs, discovery, executor, consolidation_job)


@dataclass(frozen=True, slots=True)
class RetrievalComponents:
    """The components of retrieval and context that jobs and verbs share."""

    store: SearchStore
    reinforcement: ReinforcementBuffer
    search: HybridSearch
    lookup: EntityLookup
    contexts: ContextService
    learner: ContextLearner

    @classmethod
    def build(cls, components: Components) -> RetrievalComponents:
        """Build them from the components of the process."""
        settings, clock, graph = components.settings, components.clock, components.graph
        store = SearchStore(graph)
        names = EntityNameCache(store, components.facts, clock)
        reinforcement = ReinforcementBuffer(components.facts, clock)
        search = HybridSearch(
            store,
            components.entities,
            components.episodes,
            names,
            reinforcement,
            components.embedder,
            clock,
            rrf_k=settings.rrf_k,
            reranker=CrossEncoderReranker(settings.rerank_model) if settings.rerank_model else None,
            languages=settings.query_languages,
        )
        lookup = EntityLookup(store, names, reinforcement, clock, settings.cache_url)
        context_store = ContextStore(graph, clock)
        contexts = ContextService(context_store, search, reinforcement, components.profiles, clock)
        learner = ContextLearner(
            context_store, components.episodes, lookup, components.policy, components.profiles, clock
        )
        return cls(store, reinforcement, search, lookup, contexts, learner)


class Services:
    """The services of one process, which the HTTP API, the command line, MCP and `GraphMemory` call."""

    def __init__(
        self,
        components: Components,
        jobs: JobRunner,
        retrieval: RetrievalComponents,
        consolidation: ConsolidationComponents,
    ) -> None:
        settings, clock, graph = components.settings, components.clock, components.graph
        facts, entities, episodes = components.facts, components.entities, components.episodes
        self.components = components
        self.inbox = Inbox(
            episodes, components.embedder, components.policy, jobs, summaries=components.model is not None
        )
        self.idempotency = IdempotencyStore(graph, clock, settings.idempotency_days)
        self.jobs = JobService(jobs)
        runs = consolidation.runs
        self.memories = MemoryService(
            components.memory_writer,
            facts,
            entities,
            clock,
            settings.max_memories_per_save,
            [runs.erase_memory, self.idempotency.erase_memory],
            [self.jobs.erase_memory_traces, retrieval.learner.erase_memory_traces],
        )
        self.entities = EntityService(entities, facts, retrieval.store, clock)
        self.retrieval = RetrievalService(retrieval.search, retrieval.lookup, retrieval.reinforcement)
        self.contexts = retrieval.contexts
        self.learner = retrieval.learner
        self.storage = StorageMeter(graph)
        self.messages = MessageService(self.inbox, episodes, jobs, settings.extraction)
        user_erasers = [self.idempotency.erase_user, runs.erase_user]
        rollbacks = RunRollback(graph, facts, runs, clock, settings.rollback_days)
        self.consolidations = ConsolidationService(
            consolidation.discovery, runs, consolidation.executor, rollbacks, jobs, clock
        )
        self.maintenance = MaintenanceService(jobs)
        importer = Importer(components.memory_writer, self.messages, clock, settings.max_memories_per_save)
        self.transfer = TransferService(
            TransferStore(graph, facts, clock), graph, components.embedder, importer, user_erasers, jobs.forget
        )
        self.keys = KeyService(KeyStore(graph), clock, settings.api_key)
        self.readiness = ReadinessCheck(graph, jobs)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        settings: Settings | None = None,
        *,
        worker: bool = True,
        clock: Clock = utc_now,
        progress: StartupProgress = None,
    ) -> AsyncIterator[Services]:
        """Open the service for `async with`; with `worker` this process also runs jobs."""
        async with open_components(
            settings or Settings(), load_embedder=worker, clock=clock, progress=progress
        ) as components:
            queue = DeferredJobQueue()
            consolidation = ConsolidationComponents.build(components, queue)
            retrieval = RetrievalComponents.build(components)
            handlers = _build_job_handlers(components, queue, retrieval, consolidation)
            async with await JobRunner.open(components.settings, handlers, worker=worker) as jobs:
                queue.jobs = jobs
                memory = cls(components, jobs, retrieval, consolidation)
                try:
                    await memory.inbox.requeue_unread()
                    if worker:
                        await schedule_nightly_consolidation(jobs, components.settings)
                        await schedule_maintenance(jobs, components.settings)
                    yield memory
                finally:
                    await memory.retrieval.close()


def _build_job_handlers(
    components: Components,
    queue: DeferredJobQueue,
    retrieval: RetrievalComponents,
    consolidation: ConsolidationComponents,
) -> dict[str, JobHandler]:
    """Return what each kind of job does."""
    extraction = ExtractionJob(
        graph=components.graph,
        episodes=components.episodes,
        facts=components.facts,
        entities=components.entities,
        memory_writer=components.memory_writer,
        policy=components.policy,
        profiles=components.profiles,
        embedder=components.embedder,
        model=components.model,
        zone=components.settings.timezone,
    )
    summaries = SummaryJob(
        graph=components.graph,
        episodes=components.episodes,
        facts=components.facts,
        memory_writer=components.memory_writer,
        policy=components.policy,
        profiles=components.profiles,
        model=components.model,
        zone=components.settings.timezone,
    )
    return {
        EXTRACTION: extraction.run,
        TOOL_EXTRACTION_JOB: extraction.run_tools,
        SUMMARY_JOB: summaries.run,
        CLOSING_JOB: summaries.close,
        OBSERVATION_JOB: retrieval.learner.handle_observation_job,
        MAINTENANCE_JOB: build_maintenance_job(components, queue, retrieval, consolidation).handle,
        CONSOLIDATION_JOB: consolidation.consolidation_job.handle,
        ERASURE_JOB: queue.handle_erasure_job,
    }


def build_maintenance_job(
    components: Components,
    queue: DeferredJobQueue,
    retrieval: RetrievalComponents,
    consolidation: ConsolidationComponents,
) -> MaintenanceJob:
    """Return the maintenance of all rooms."""
    settings, clock = components.settings, components.clock

    async def prune_jobs() -> int:
        return await queue.jobs.prune(clock() - timedelta(days=settings.jobs_days))

    return MaintenanceJob(
        MaintenanceTasks(
            components.graph,
            components.facts,
            consolidation.runs,
            clock,
            archive_days=settings.archive_days,
            compress_days=settings.compress_days,
            rollback_days=settings.rollback_days,
            compress_messages=settings.compress_messages,
        ),
        queue.enqueue,
        summary_kind=SUMMARY_JOB if components.model else None,
        prune_user=[retrieval.learner.prune],
        prune_all={
            "requests": IdempotencyStore(components.graph, clock, settings.idempotency_days).delete_expired,
            "jobs": prune_jobs,
        },
    )
