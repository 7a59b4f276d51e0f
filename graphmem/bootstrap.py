"""The composition root: settings become a wired `GraphMemory`. Nothing else builds parts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from graphmem.consolidation.analyse import Analyst
from graphmem.consolidation.attempt import Limits
from graphmem.consolidation.discover import Discovery, Seldom
from graphmem.consolidation.execute import Executor
from graphmem.consolidation.maintenance import Upkeep
from graphmem.consolidation.pipeline import KIND as CONSOLIDATION
from graphmem.consolidation.pipeline import Consolidator
from graphmem.consolidation.rollback import Rollbacks
from graphmem.consolidation.upkeep import KIND as UPKEEP
from graphmem.consolidation.upkeep import UpkeepJob
from graphmem.domain.job import JobOutcome
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.times import Clock, utc_now
from graphmem.embedding import Embedder
from graphmem.embedding import from_settings as embedder_from_settings
from graphmem.ingestion.messages import OBSERVATION_JOB, Inbox
from graphmem.ingestion.pipeline import JOB as EXTRACTION
from graphmem.ingestion.pipeline import TOOL_JOB, ExtractionJob
from graphmem.ingestion.saving import Saving
from graphmem.ingestion.summary import CLOSING_JOB, SUMMARY_JOB, SummaryJob
from graphmem.jobs import JobHandler, JobRunner, Steps
from graphmem.llm.client import LanguageModel
from graphmem.llm.prompts import load_prompts
from graphmem.retrieval.entities import NamesAtHand
from graphmem.retrieval.lookup import Lookup
from graphmem.retrieval.reinforce import Reinforcement
from graphmem.retrieval.rerank import CrossEncoderReranker
from graphmem.retrieval.search import Search
from graphmem.service.consolidations import Consolidations, schedule_nights
from graphmem.service.context import Contexts
from graphmem.service.entities import Entities
from graphmem.service.importing import Arrivals
from graphmem.service.jobs import ERASURE_JOB, Jobs
from graphmem.service.keys import Keys
from graphmem.service.maintenance import Maintenance, schedule_upkeep
from graphmem.service.memories import Memories
from graphmem.service.messages import Conversations
from graphmem.service.readiness import Readiness
from graphmem.service.retrieval import Retrieval
from graphmem.service.transfer import Transfer
from graphmem.service.verbs import Verbs
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
from graphmem.store.snapshots import SnapshotStore
from graphmem.store.transfer import TransferStore

Progress = Callable[[int, int], None] | None
"""Told the bytes fetched and the bytes in all while jars are fetched: Neo4j's, then the embedding model's."""


@dataclass(frozen=True, slots=True)
class Parts:
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
    saving: Saving


@asynccontextmanager
async def open_graph(settings: Settings, progress: Progress = None) -> AsyncIterator[Graph]:
    """Open the configured Neo4j, or start or join the embedded one.

    Raises SetupError or DatabaseUnavailable with what to do.
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
        await graph.verify()
        yield graph


@asynccontextmanager
async def open_parts(
    settings: Settings, *, warm: bool = True, clock: Clock = utc_now, progress: Progress = None
) -> AsyncIterator[Parts]:
    """Open the parts of one process; the database is brought to the schema of this version.

    Unless `warm`, an embedder whose dimension is known is loaded when it is first asked.
    """
    async with AsyncExitStack() as stack:
        graph = await stack.enter_async_context(open_graph(settings, progress))
        embedder = embedder_from_settings(settings, progress)
        if warm or not embedder.dimension:
            await embedder.open()
        stack.push_async_callback(embedder.aclose)
        await migrate(graph, embedder.model, embedder.dimension)
        model = LanguageModel.from_settings(settings)
        if model:
            stack.push_async_callback(model.aclose)
        entities = EntityStore(graph)
        facts = FactStore(graph, entities, clock)
        policy = SecretPolicy(settings.allowed_secret_classes)
        yield Parts(
            settings=settings,
            clock=clock,
            graph=graph,
            embedder=embedder,
            model=model,
            entities=entities,
            facts=facts,
            episodes=EpisodeStore(graph, clock),
            policy=policy,
            saving=Saving(facts, embedder, policy),
        )


def _seldom(settings: Settings) -> Seldom:
    return Seldom(timedelta(days=settings.consolidation_old_days), settings.consolidation_seldom)


class Queue:
    """The job queue for parts that are built before it: a handler may queue further jobs."""

    jobs: JobRunner

    async def enqueue(self, kind: str, partition: str, payload: dict[str, Any], job_id: str | None = None) -> str:
        """Queue a job."""
        return await self.jobs.enqueue(kind, partition, payload, job_id)

    async def erase_late(self, payload: dict[str, Any], steps: Steps) -> JobOutcome:
        """Handle a job of kind `erasure`."""
        return await Jobs(self.jobs).erase_late(payload, steps)


@dataclass(frozen=True, slots=True)
class Consolidation:
    """The parts of consolidation that its jobs and its verbs share."""

    runs: RunStore
    snapshots: SnapshotStore
    executor: Executor
    consolidator: Consolidator

    @classmethod
    def of(cls, parts: Parts, queue: Queue) -> Consolidation:
        """Build them from the parts of the process."""
        settings, graph = parts.settings, parts.graph
        snapshots = SnapshotStore()
        runs = RunStore(graph, snapshots)
        limits = Limits(
            settings.consolidation_max_ended, settings.consolidation_min_text, settings.consolidation_free_ended
        )
        executor = Executor(graph, parts.facts, parts.entities, snapshots, runs, parts.embedder, parts.policy, limits)
        discovery = Discovery(
            graph,
            batch_size=settings.consolidation_batch,
            max_batches=settings.consolidation_max_batches,
            seldom=_seldom(settings),
        )
        analyst = Analyst(graph, parts.model, load_prompts())
        consolidator = Consolidator(graph, runs, discovery, analyst, executor, parts.clock, queue.enqueue)
        return cls(runs, snapshots, executor, consolidator)


@dataclass(frozen=True, slots=True)
class Reading:
    """The parts of retrieval and context that jobs and verbs share."""

    store: SearchStore
    reinforcement: Reinforcement
    search: Search
    lookup: Lookup
    contexts: Contexts

    @classmethod
    def of(cls, parts: Parts) -> Reading:
        """Build them from the parts of the process."""
        settings, clock, graph = parts.settings, parts.clock, parts.graph
        store = SearchStore(graph)
        names = NamesAtHand(store, parts.facts, clock)
        reinforcement = Reinforcement(graph, parts.facts, clock)
        search = Search(
            store,
            parts.entities,
            parts.episodes,
            names,
            reinforcement,
            parts.embedder,
            clock,
            rrf_k=settings.rrf_k,
            reranker=CrossEncoderReranker(settings.rerank_model) if settings.rerank_model else None,
            languages=settings.query_languages,
        )
        lookup = Lookup(store, names, reinforcement, clock, settings.cache_url)
        context_store = ContextStore(graph, clock)
        contexts = Contexts(context_store, parts.episodes, search, lookup, reinforcement, parts.policy, clock)
        return cls(store, reinforcement, search, lookup, contexts)


class GraphMemory(Verbs):
    """The memory service in one process: the families of verbs that surfaces call."""

    def __init__(self, parts: Parts, jobs: JobRunner, reading: Reading, consolidation: Consolidation) -> None:
        settings, clock, graph = parts.settings, parts.clock, parts.graph
        facts, entities, episodes = parts.facts, parts.entities, parts.episodes
        self.parts = parts
        self.inbox = Inbox(episodes, parts.embedder, parts.policy, jobs, summaries=parts.model is not None)
        self.idempotency = IdempotencyStore(graph, clock, settings.idempotency_days)
        self.jobs = Jobs(jobs)
        snapshots = consolidation.snapshots
        self.memories = Memories(
            parts.saving,
            facts,
            entities,
            clock,
            settings.max_memories_per_save,
            [snapshots.erase_memory, self.idempotency.forget_memory],
            [self.jobs.forget_memory, reading.contexts.forget_memory],
        )
        self.entities = Entities(entities, facts, reading.store, clock)
        self.retrieval = Retrieval(reading.search, reading.lookup, reading.reinforcement)
        self.contexts = reading.contexts
        self.messages = Conversations(self.inbox, episodes, jobs, settings.extraction)
        erasures = [self.idempotency.forget_within, snapshots.forget]
        rollbacks = Rollbacks(graph, facts, snapshots, consolidation.runs, clock, settings.rollback_days)
        self.consolidations = Consolidations(
            graph, consolidation.runs, consolidation.executor, rollbacks, jobs, clock, _seldom(settings)
        )
        self.maintenance = Maintenance(jobs)
        arrivals = Arrivals(parts.saving, self.messages, clock, settings.max_memories_per_save)
        self.transfer = Transfer(
            TransferStore(graph, facts, clock), graph, parts.embedder, arrivals, erasures, jobs.forget
        )
        self.keys = Keys(KeyStore(graph), clock, settings.api_key)
        self.readiness = Readiness(graph, jobs)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, settings: Settings | None = None, *, worker: bool = True, clock: Clock = utc_now, progress: Progress = None
    ) -> AsyncIterator[GraphMemory]:
        """Open the service for `async with`; with `worker` this process also runs jobs."""
        async with open_parts(settings or Settings(), warm=worker, clock=clock, progress=progress) as parts:
            queue = Queue()
            consolidation = Consolidation.of(parts, queue)
            reading = Reading.of(parts)
            handlers = _handlers(parts, queue, reading, consolidation)
            async with await JobRunner.open(parts.settings, handlers, worker=worker) as jobs:
                queue.jobs = jobs
                memory = cls(parts, jobs, reading, consolidation)
                try:
                    await memory.inbox.resume()
                    if worker:
                        await schedule_nights(jobs, parts.settings)
                        await schedule_upkeep(jobs, parts.settings)
                    yield memory
                finally:
                    await memory.retrieval.close()


def _handlers(parts: Parts, queue: Queue, reading: Reading, consolidation: Consolidation) -> dict[str, JobHandler]:
    """Return what each kind of job does."""
    extraction = ExtractionJob(
        graph=parts.graph,
        episodes=parts.episodes,
        facts=parts.facts,
        entities=parts.entities,
        saving=parts.saving,
        policy=parts.policy,
        embedder=parts.embedder,
        model=parts.model,
        zone=parts.settings.timezone,
    )
    summaries = SummaryJob(
        graph=parts.graph,
        episodes=parts.episodes,
        facts=parts.facts,
        saving=parts.saving,
        policy=parts.policy,
        model=parts.model,
        zone=parts.settings.timezone,
    )
    return {
        EXTRACTION: extraction.run,
        TOOL_JOB: extraction.run_tools,
        SUMMARY_JOB: summaries.run,
        CLOSING_JOB: summaries.close,
        OBSERVATION_JOB: reading.contexts.observe,
        UPKEEP: upkeep_of(parts, queue, reading, consolidation).handle,
        CONSOLIDATION: consolidation.consolidator.handle,
        ERASURE_JOB: queue.erase_late,
    }


def upkeep_of(parts: Parts, queue: Queue, reading: Reading, consolidation: Consolidation) -> UpkeepJob:
    """Return the upkeep of all rooms."""
    settings, clock = parts.settings, parts.clock

    async def prune_jobs() -> int:
        return await queue.jobs.prune(clock() - timedelta(days=settings.jobs_days))

    return UpkeepJob(
        Upkeep(
            parts.graph,
            parts.facts,
            consolidation.snapshots,
            clock,
            archive_days=settings.archive_days,
            compress_days=settings.compress_days,
            rollback_days=settings.rollback_days,
            compress_messages=settings.compress_messages,
        ),
        queue.enqueue,
        summary_kind=SUMMARY_JOB if parts.model else None,
        prune_user=[reading.contexts.prune],
        prune_all={
            "requests": IdempotencyStore(parts.graph, clock, settings.idempotency_days).prune,
            "jobs": prune_jobs,
        },
    )
