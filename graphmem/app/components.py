"""The components that several packages share, opened from the settings: database, embedder, model, stores."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from pydantic import SecretStr

from graphmem.consolidation.batch_planning import ColdMemoryPolicy
from graphmem.consolidation.discovery import Discovery
from graphmem.consolidation.guards import LossLimits
from graphmem.consolidation.run_executor import RunExecutor
from graphmem.consolidation.run_store import RunStore
from graphmem.conversations.episode_store import EpisodeStore
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact_store import FactStore, ReinforcementBuffer
from graphmem.memories.vectors import StoredVectors
from graphmem.memories.writer import MemoryWriter
from graphmem.models.embedder import (
    Embedder,
    RecordedEmbedder,
    create_embedder,
    create_recorded_embedder,
    describe_model,
)
from graphmem.models.embedding_models import EmbeddingModel
from graphmem.models.language_model import LanguageModel
from graphmem.models.sentence_transformers import CrossEncoderReranker
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.migrations import migrate
from graphmem.neo4j.placed_graph import PlacedDatabase, PlacedGraph
from graphmem.runtime.artifacts import DownloadProgress
from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.progress import StartProgress
from graphmem.runtime.settings import Settings, ensure_extras
from graphmem.runtime.times import Clock, utc_now
from graphmem.search.hybrid_search import HybridSearch
from graphmem.search.lookup import EntityLookup, EntityNameCache
from graphmem.search.resident.copies import ResidentCopies
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.idempotency import IdempotencyStore
from graphmem.tenants.profiles import TenantProfiles
from graphmem.tenants.rights import Rights

if TYPE_CHECKING:
    from graphmem.neo4j.embedded.server import EmbeddedNeo4j

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Components:
    """The components that several packages share; `placed` is set if tenants are spread over several graphs."""

    settings: Settings
    clock: Clock
    graph: Graph
    placed: PlacedGraph | None
    embedder: Embedder
    model: LanguageModel | None
    entities: EntityStore
    facts: FactStore
    episodes: EpisodeStore
    idempotency: IdempotencyStore
    policy: SecretPolicy
    profiles: TenantProfiles
    memory_writer: MemoryWriter

    @property
    def home(self) -> Graph:
        """The graph that holds the keys; if it is the only graph, it holds everything."""
        return self.placed.home if self.placed else self.graph


@asynccontextmanager
async def running_database(settings: Settings, progress: StartProgress | None = None) -> AsyncIterator[Settings]:
    """Yield the settings with the address and password of a running Neo4j, starting or joining the embedded one.

    Raises ConfigurationError or DatabaseUnavailable; the message says what to do.
    """
    if settings.neo4j_uri:
        yield settings
        return
    async with await _embedded_server(settings, progress) as server:
        yield _settings_of(server, settings)


@asynccontextmanager
async def open_graph(settings: Settings, progress: StartProgress | None = None) -> AsyncIterator[Graph]:
    """Connect to the configured Neo4j, or to the embedded one.

    Raises ConfigurationError or DatabaseUnavailable; the message says what to do.
    """
    progress = progress or StartProgress()
    async with nullcontext() if settings.neo4j_uri else await _embedded_server(settings, progress) as server:
        found = _settings_of(server, settings) if server else settings
        password = found.neo4j_password.get_secret_value() if found.neo4j_password else ""
        is_running = server.is_running if server else None
        graph = Graph(str(found.neo4j_uri), found.neo4j_user, password, found.neo4j_database, is_running=is_running)
        try:
            async with progress.waiting_for("waiting for Neo4j to answer"):
                await graph.verify_connectivity()
            yield graph
        finally:
            await graph.close()


async def _embedded_server(settings: Settings, progress: StartProgress | None) -> EmbeddedNeo4j:
    from graphmem.neo4j.embedded.server import EmbeddedNeo4j

    return await EmbeddedNeo4j.start_or_join(
        settings.data_dir,
        settings.cache_dir,
        bolt_port=settings.bolt_port,
        http_port=settings.http_port,
        mirror=settings.jar_mirror,
        progress=progress,
    )


def _settings_of(server: EmbeddedNeo4j, settings: Settings) -> Settings:
    info = server.info
    return settings.model_copy(
        update={
            "neo4j_uri": info.uri,
            "neo4j_user": info.user,
            "neo4j_password": SecretStr(info.password),
            "neo4j_database": "neo4j",
        }
    )


@asynccontextmanager
async def open_components(
    settings: Settings,
    *,
    embedder: Embedder | None = None,
    model: LanguageModel | None = None,
    load_embedder: bool = True,
    clock: Clock = utc_now,
    progress: StartProgress | None = None,
) -> AsyncIterator[Components]:
    """Open the components of one process, and migrate the database to this version's schema.

    `embedder` and `model` replace the configured ones; the caller closes them. Without `load_embedder`, an embedder
    with a known dimension is loaded on first use.
    """
    async with AsyncExitStack() as stack:
        # Before the database, so that a missing package is reported before Neo4j is started.
        ensure_extras(settings if embedder is None else settings.model_copy(update={"embedder": "local"}))
        if model is None and settings.has_model:
            model = await stack.enter_async_context(_open_model(settings))
        progress = progress or StartProgress()
        graph = await stack.enter_async_context(open_graph(settings, progress))
        async with progress.waiting_for("loading the embedding model and preparing the database"):
            if embedder is not None:
                await _check_model(graph, embedder)
            embedder = embedder or await _open_recorded_embedder(
                settings, graph, stack, load=load_embedder, progress=progress.download
            )
            model_of_vectors = describe_model(embedder, settings)
            await migrate(graph, model_of_vectors, progress=progress)
        placed = await stack.enter_async_context(_open_placed_graph(graph, settings, model_of_vectors, clock))
        graph = placed or graph
        entities = EntityStore(graph)
        facts = FactStore(graph, entities, clock)
        policy = SecretPolicy(settings.allowed_secret_classes)
        profiles = TenantProfiles(settings.profiles)
        yield Components(
            settings=settings,
            clock=clock,
            graph=graph,
            placed=placed,
            embedder=embedder,
            model=model,
            entities=entities,
            facts=facts,
            episodes=EpisodeStore(graph, clock, timedelta(hours=settings.repeat_window_hours)),
            idempotency=IdempotencyStore(graph, clock, settings.idempotency_days),
            policy=policy,
            profiles=profiles,
            memory_writer=MemoryWriter(facts, embedder, policy, profiles, settings.quarantine),
        )


@asynccontextmanager
async def _open_placed_graph(
    home: Graph, settings: Settings, model: EmbeddingModel, clock: Clock
) -> AsyncIterator[PlacedGraph | None]:
    """Open the graphs of `GRAPHMEM_PLACEMENTS` besides the home graph; yield None if there are none."""
    if not settings.placements:
        yield None
        return

    async def prepare(graph: Graph) -> None:
        await migrate(graph, model)
        state, of_home = await graph.vector_state(refresh=True), await home.vector_state()
        # During a re-embedding, one graph may already use the model that the other one will change to.
        if state is None or of_home is None or state.models.isdisjoint(of_home.models):
            raise ConfigurationError(
                f"its vectors are of {state.searched_model.name if state else 'no model'}, those of the home graph of "
                f"{of_home.searched_model.name if of_home else 'no model'}."
            )

    async with AsyncExitStack() as stack:
        others = {}
        for name, address in settings.placements.items():
            graph = Graph(address.uri, address.user, address.read_password(name), address.database)
            stack.push_async_callback(graph.close)
            others[name] = PlacedDatabase(name, graph, prepare)
        placed = PlacedGraph(home, others, clock)
        await placed.prepare_all()
        yield placed


async def _check_model(graph: Graph, embedder: Embedder) -> None:
    """Raise ConfigurationError if the database holds vectors of another model than the caller's embedder."""
    state = await graph.vector_state(refresh=True)
    if state and state.searched_model.name != embedder.model:
        raise ConfigurationError(
            f"The database holds vectors of {state.searched_model.name}, but the embedder is {embedder.model}: pass an "
            "embedder of that model, or run `graphmem reembed`."
        )


async def _open_recorded_embedder(
    settings: Settings, graph: Graph, stack: AsyncExitStack, *, load: bool, progress: DownloadProgress | None
) -> Embedder:
    """Return the embedder of the database's vectors, or the configured one for a new database."""
    state = await graph.vector_state(refresh=True)
    embedder = create_embedder(settings, progress)
    if state and state.searched_model.name != embedder.model:
        log.warning(
            "The database holds vectors of %s, which is used for now although the settings name %s: run `graphmem "
            "reembed` to change to it, or set GRAPHMEM_EMBEDDER and GRAPHMEM_EMBEDDING_MODEL to the previous model.",
            state.searched_model.name,
            embedder.model,
        )
        await embedder.aclose()
        embedder = create_recorded_embedder(state.searched_model, settings, progress)
    recorded = RecordedEmbedder(
        embedder, graph.vector_state, partial(create_recorded_embedder, settings=settings, progress=progress)
    )
    stack.push_async_callback(recorded.aclose)
    if load or not recorded.dimension:
        await recorded.open()
    return recorded


@asynccontextmanager
async def _open_model(settings: Settings) -> AsyncIterator[LanguageModel | None]:
    # Imported here: the provider libraries take a second to load.
    from graphmem.models.provider_model import ProviderModel

    if (model := ProviderModel.from_settings(settings)) is None:
        yield None
        return
    async with model:
        yield model


@dataclass(frozen=True, slots=True)
class RetrievalComponents:
    """The components of retrieval that services and benchmarks share."""

    sources: ResidentCopies
    rights: Rights
    vectors: StoredVectors
    reinforcement: ReinforcementBuffer
    search: HybridSearch
    lookup: EntityLookup

    @classmethod
    def build(cls, components: Components) -> RetrievalComponents:
        """Build them from the shared components."""
        settings, clock, graph = components.settings, components.clock, components.graph
        rights, vectors, names = Rights(graph), StoredVectors(graph), EntityNameCache(clock)
        sources = ResidentCopies(graph, vectors, rights, clock, settings.resident_mb * 1_000_000)
        reinforcement = ReinforcementBuffer(components.facts, clock)
        search = HybridSearch(
            sources,
            components.entities,
            names,
            reinforcement,
            components.embedder,
            clock,
            rrf_k=settings.rrf_k,
            channel_weights=settings.channel_weights,
            reranker=CrossEncoderReranker(settings.rerank_model) if settings.rerank_model else None,
            languages=settings.query_languages,
        )
        lookup = EntityLookup(sources, components.entities, names, reinforcement, clock, settings.cache_url)
        return cls(sources, rights, vectors, reinforcement, search, lookup)


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
            max_profiles=settings.consolidation_max_profiles if components.model else 0,
        )
        return cls(runs, discovery, executor)
