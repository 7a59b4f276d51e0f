"""Another embedding model in place: the job is killed, searches go on, and every vector is the new model's."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from graphmem.app.bootstrap import Services
from graphmem.conversations.session import MessagesIn
from graphmem.jobs.job import JobStatus
from graphmem.memories.memory import MemoryIn
from graphmem.models.embedding_models import ReembeddingPhase
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.embedded.server import EmbeddedNeo4j
from graphmem.neo4j.placed_graph import PlacedDatabase, PlacedGraph, use_graph, use_tenant
from graphmem.placement.move import Move, MovePayload
from graphmem.runtime.errors import Conflict
from graphmem.runtime.settings import HOME_GRAPH, GraphAddress, Settings
from graphmem.runtime.times import utc_now
from graphmem.search.models import MessageSearchQuery, SearchQuery
from graphmem.tenants.owners import Owner
from tests.forks import Fork, start_script
from tests.models.embeddings_server import EmbeddingsServer, serve_embeddings

WORKER = Path(__file__).with_name("reembedding_worker.py")
WAIT_SECONDS = 240
NEXT_MODEL = "bge-small-en-v1.5"
MARA, FAR_MARA = Owner("default", "mara"), Owner("far", "mara")

STATEMENTS = [
    "Mara works as a nurse in a children's hospital",
    "Mara's brother Jonas plays the violin",
    "Mara is afraid of spiders",
    "Mara cycles to work every day",
    "Mara bought a flat in Lund",
    "Mara is learning Italian",
]
QUESTION, ANSWER = "What is her profession?", STATEMENTS[0]

pytestmark = pytest.mark.timeout(600)


@contextmanager
def worker(settings: Settings, *death: str) -> Iterator[Fork]:
    assert settings.neo4j_uri
    assert settings.neo4j_password
    environment = {
        **os.environ,
        "GRAPHMEM_NEO4J_URI": settings.neo4j_uri,
        "GRAPHMEM_NEO4J_PASSWORD": settings.neo4j_password.get_secret_value(),
        "GRAPHMEM_PLACEMENTS": json.dumps(
            {
                name: {"uri": at.uri, "user": at.user, "password": at.password.get_secret_value()}
                for name, at in settings.placements.items()
                if at.password
            }
        ),
    }
    process = start_script(WORKER, str(settings.data_dir), *death, environment=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
async def other_graph(database: Settings, graph: Graph) -> AsyncIterator[Graph]:
    """The database of the run, with vectors of the default model."""
    assert database.neo4j_uri
    assert database.neo4j_password
    other = Graph(database.neo4j_uri, database.neo4j_user, database.neo4j_password.get_secret_value())
    yield other
    await other.close()


async def migrated(graph: Graph) -> None:
    """Prepare a graph that needs nothing."""


@pytest.fixture
async def home_database(tmp_path: Path) -> AsyncIterator[Settings]:
    """One that no test has re-embedded yet."""
    settings = Settings(data_dir=tmp_path, _env_file=None)
    async with await EmbeddedNeo4j.start_or_join(tmp_path, settings.cache_dir, mirror=settings.jar_mirror) as server:
        yield Settings(
            data_dir=tmp_path, neo4j_uri=server.info.uri, neo4j_password=server.info.password, _env_file=None
        )


@pytest.fixture
async def second_database(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[GraphAddress]:
    """Another one, in which a tenant lives."""
    cache = Settings(_env_file=None)
    folder = tmp_path_factory.mktemp("second")
    async with await EmbeddedNeo4j.start_or_join(folder, cache.cache_dir, mirror=cache.jar_mirror) as server:
        yield GraphAddress(uri=server.info.uri, user=server.info.user, password=SecretStr(server.info.password))


async def fill(services: Services, owner: Owner = MARA) -> None:
    await services.memories.save(owner, [MemoryIn(content=statement) for statement in STATEMENTS])
    turn = {"id": "m1", "role": "user", "content": "My shift at the clinic was long", "name": "Mara"}
    await services.messages.add(
        owner, MessagesIn.model_validate({"session_id": "s", "messages": [turn], "extract": False})
    )


async def best_answers(services: Services, owner: Owner = MARA) -> tuple[str, str]:
    """Return the memory and the message that vectors alone find first."""
    by_meaning = SearchQuery(query=QUESTION, keyword=False, graph=False, limit=1, reinforce=False)
    [hit] = (await services.retrieval.search(owner, by_meaning)).results
    [message] = (await services.retrieval.search_messages(owner, MessageSearchQuery(query=QUESTION, limit=1))).results
    return hit.memory.content, message.message.id


async def move(placed: PlacedGraph, source: str, target: str) -> None:
    """Move the tenant of `FAR_MARA`, or raise what a job that moves it fails with."""
    moving = Move(placed, utc_now, MovePayload(tenant=FAR_MARA.tenant, source=source, target=target), str(uuid.uuid4()))
    await moving.run()
    await moving.erase()


@asynccontextmanager
async def searching(services: Services, owner: Owner = MARA) -> AsyncIterator[list[tuple[str, str]]]:
    """Search again and again; the list holds the answers."""
    answers: list[tuple[str, str]] = []

    async def search() -> None:
        while True:
            with use_tenant(owner.tenant):
                answers.append(await best_answers(services, owner))
            await asyncio.sleep(0.6)

    task = asyncio.create_task(search())
    try:
        yield answers
        assert not task.done(), task.exception()
    finally:
        task.cancel()


async def vectors_in(services: Services) -> dict[str, list[float]]:
    """Return every stored vector by its text."""
    rows = await services.components.graph.read(
        lambda transaction: transaction.run_text(
            """MATCH ()-[r:RELATES_TO]->() RETURN r.fact AS text, r.fact_embedding AS vector, r.next_vector AS next
            UNION MATCH (e:Entity) WHERE e.name_embedding IS NOT NULL
            RETURN e.name AS text, e.name_embedding AS vector, e.next_vector AS next
            UNION MATCH (m:Episodic)
            RETURN m.speaker + ': ' + m.content AS text, m.content_embedding AS vector, m.next_vector AS next"""
        )
    )
    assert all(row["next"] is None for row in rows)
    return {row["text"]: row["vector"] for row in rows}


async def check_vectors(services: Services, *added: str) -> None:
    """Assert that everything has a vector, and that it is the one of the model in force."""
    stored = await vectors_in(services)
    assert {*STATEMENTS, *added, "Mara: My shift at the clinic was long"} <= stored.keys()
    expected = await services.components.embedder.embed(list(stored))
    for vector, new in zip(stored.values(), expected, strict=True):
        assert vector == pytest.approx(new, abs=1e-6)


async def test_re_embedding_that_is_killed_is_continued_and_searches_go_on(
    own_database: Settings, other_graph: Graph
) -> None:
    async with Services.open(own_database, worker=False) as services:
        await fill(services)
        job = await services.reembedding.start("default", NEXT_MODEL)
        async with searching(services) as answers:
            with worker(own_database, "vectors.store_next", "2") as first:
                assert await asyncio.to_thread(first.wait, WAIT_SECONDS) == -9
            status = await services.reembedding.status()
            assert (status.phase, status.job_id) == (ReembeddingPhase.FILLING, job.id)
            with pytest.raises(Conflict, match=f"wait for job {job.id}"):
                await services.reembedding.start("default", "all-MiniLM-L6-v2")
            placed = PlacedGraph(services.components.graph, {"other": PlacedDatabase("other", other_graph, migrated)})
            with pytest.raises(Conflict, match="no re-embedding under way"):
                await move(placed, HOME_GRAPH, "other")
            assert (await placed.locations.find(FAR_MARA.tenant)).graph == HOME_GRAPH
            with worker(own_database):
                ended = await services.jobs.wait(job.id, WAIT_SECONDS)
        assert ended.status is JobStatus.SUCCEEDED, ended.error
        assert {*answers} == {(ANSWER, "m1")}
        after = await services.reembedding.status()
        assert (after.model, after.phase) == (f"{NEXT_MODEL}-int8", None)
        await check_vectors(services)
        with pytest.raises(Conflict, match="vectors of one model"):
            await move(placed, HOME_GRAPH, "other")


@pytest.mark.long
async def test_re_embedding_that_is_killed_twice_ends_in_all_graphs_and_searches_go_on(
    home_database: Settings, second_database: GraphAddress
) -> None:
    settings = home_database.model_copy(update={"placements": {"second": second_database}})
    async with Services.open(settings, worker=False) as services:
        placed = services.components.placed
        assert placed
        for owner in (MARA, FAR_MARA):
            with use_tenant(owner.tenant):
                await fill(services, owner)
        await move(placed, HOME_GRAPH, "second")
        job = await services.reembedding.start("default", NEXT_MODEL)
        async with searching(services) as answers, searching(services, FAR_MARA) as far_answers:
            with worker(settings, "vectors.store_next", "2") as first:
                assert await asyncio.to_thread(first.wait, WAIT_SECONDS) == -9
            status = await services.reembedding.status()
            assert (status.phase, status.job_id) == (ReembeddingPhase.FILLING, job.id)
            assert status.done
            assert status.total
            assert 0 < status.done < status.total
            with pytest.raises(Conflict, match=f"wait for job {job.id}"):
                await services.reembedding.start("default", "all-MiniLM-L6-v2")
            with pytest.raises(Conflict, match="no re-embedding under way"):
                await move(placed, "second", HOME_GRAPH)
            with worker(settings, "vectors.move_vectors", "1") as second:
                assert await asyncio.to_thread(second.wait, WAIT_SECONDS) == -9
            assert (await services.reembedding.status()).phase is ReembeddingPhase.SERVING
            with use_tenant(MARA.tenant):
                await services.memories.save(MARA, [MemoryIn(content="Mara adopted a cat")])
            with worker(settings):
                ended = await services.jobs.wait(job.id, WAIT_SECONDS)
        assert ended.status is JobStatus.SUCCEEDED, ended.error
        assert {*answers} == {*far_answers} == {(ANSWER, "m1")}
        after = await services.reembedding.status()
        assert (after.model, after.phase) == (f"{NEXT_MODEL}-int8", None)
        for name, added in ((HOME_GRAPH, "Mara adopted a cat"), ("second", ANSWER)):
            with use_graph(name):
                await check_vectors(services, added)
        await move(placed, "second", HOME_GRAPH)
        with use_tenant(FAR_MARA.tenant):
            assert await best_answers(services, FAR_MARA) == (ANSWER, "m1")


async def test_start_with_another_model_says_what_to_do_and_goes_on_until_it_is_done(
    own_database: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve_embeddings(EmbeddingsServer(dimension=8)) as server:
        other = {"embedder": "openai", "embedding_model": "tiny", "openai_base_url": server.url, "nightly": False}
        async with Services.open(own_database.model_copy(update=other)) as services:
            assert "although the settings name tiny: run `graphmem reembed`" in caplog.text
            before = services.components.embedder.dimension
            await services.memories.save(MARA, [MemoryIn(content=ANSWER)])
            query = SearchQuery(query=ANSWER, keyword=False, graph=False, limit=1)
            [found] = (await services.retrieval.search(MARA, query)).results
            job = await services.reembedding.start("default", None)
            ended = await services.jobs.wait(job.id, WAIT_SECONDS)
            assert ended.status is JobStatus.SUCCEEDED, ended.error
            [found_after] = (await services.retrieval.search(MARA, query)).results
            dimensions = {len(vector) for vector in (await vectors_in(services)).values()}
    assert found.memory.content == found_after.memory.content == ANSWER
    assert (before, dimensions) == (384, {8}), "the indexes have the dimension of the new model"
    assert any(ANSWER in request["input"] for request in server.requests)
