"""Addresses with routing: who answers reads, and what callers notice when the leader of a cluster changes."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from graphmem_api.app import create_app
from pydantic import SecretStr

from graphmem.app.bootstrap import Services
from graphmem.client import AsyncClient
from graphmem.models.embedder import Embedder
from graphmem.neo4j import driver
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import DatabaseUnavailable, OutcomeUnknown
from graphmem.runtime.settings import Settings
from tests.api.conftest import serve_app
from tests.neo4j.bolt_cluster import NOT_A_LEADER, READ_ONLY, BoltCluster, Member, Moment, cluster_before

pytestmark = pytest.mark.timeout(180)

KEY = "key-" + uuid.uuid4().hex


@pytest.fixture
def user() -> str:
    """A user of this test alone."""
    return "mara-" + uuid.uuid4().hex


@pytest.fixture
async def cluster(database: Settings, graph: Graph) -> AsyncIterator[BoltCluster]:
    """Two members before the database of the run."""
    assert database.neo4j_uri
    async with cluster_before(database.neo4j_uri) as cluster:
        yield cluster


@pytest.fixture
def settings(database: Settings, cluster: BoltCluster) -> Settings:
    """Settings by which a process uses the cluster, and reads what it searches from it."""
    return database.model_copy(update={"neo4j_uri": cluster.uri, "admin_key": SecretStr(KEY), "resident_mb": 0})


@asynccontextmanager
async def connected(settings: Settings, uri: str | None = None) -> AsyncIterator[Graph]:
    """The database as a process of its own has it."""
    assert settings.neo4j_password
    graph = Graph(uri or str(settings.neo4j_uri), settings.neo4j_user, settings.neo4j_password.get_secret_value())
    try:
        yield graph
    finally:
        await graph.close()


@asynccontextmanager
async def serving(settings: Settings, embedder: Embedder) -> AsyncIterator[str]:
    """The address of an API process."""
    async with (
        Services.open(settings, worker=False, embedder=embedder) as services,
        serve_app(create_app(services, settings)) as address,
    ):
        yield address


@asynccontextmanager
async def calling(settings: Settings, embedder: Embedder) -> AsyncIterator[AsyncClient]:
    """A client of an API process of its own."""
    async with serving(settings, embedder) as address, AsyncClient(KEY, address) as client:
        yield client


async def contents_of(client: AsyncClient, user: str) -> list[str]:
    return [memory.content for memory in await client.get_all(user)]


async def find(client: AsyncClient, user: str, question: str) -> list[str]:
    return [hit.memory.content for hit in (await client.search(user, question)).results]


async def lead_soon(cluster: BoltCluster, member: Member | None, seconds: float = 0.3) -> None:
    await asyncio.sleep(seconds)
    cluster.leader = member


async def count_items(graph: Graph, word: str) -> int:
    async def work(transaction: Transaction) -> int:
        rows = await transaction.run_text(
            "MATCH (n:ClusterItem {word: $word}) RETURN count(n) AS total", {"word": word}
        )
        return int(rows[0]["total"])

    return await graph.read(work)


async def add_item(graph: Graph, word: str) -> None:
    await graph.write(lambda transaction: transaction.run_text("CREATE (:ClusterItem {word: $word})", {"word": word}))


@pytest.fixture
async def word(graph: Graph) -> AsyncIterator[str]:
    """What the nodes of this test say, which are removed after it."""
    word = uuid.uuid4().hex
    yield word
    await graph.write(
        lambda transaction: transaction.run_text("MATCH (n:ClusterItem {word: $word}) DELETE n", {"word": word})
    )


# Who answers


async def test_a_single_server_is_used_by_an_address_with_routing(
    database: Settings, graph: Graph, embedder: Embedder, user: str
) -> None:
    uri = str(database.neo4j_uri).replace("bolt://", "neo4j://")
    settings = database.model_copy(update={"neo4j_uri": uri, "admin_key": SecretStr(KEY), "resident_mb": 0})
    async with calling(settings, embedder) as client:
        await client.add(user, "Mara sails on the Vltava")
        assert await find(client, user, "sailing") == ["Mara sails on the Vltava"]
        assert await contents_of(client, user) == ["Mara sails on the Vltava"]


async def test_searches_are_answered_by_other_members_once_they_have_what_was_written_before(
    settings: Settings, cluster: BoltCluster, embedder: Embedder, user: str
) -> None:
    leader, follower = cluster.members
    async with calling(settings, embedder) as writer, calling(settings, embedder) as reader:
        await reader.search(user, "tea")
        for content in ("Mara likes green tea", "Mara drinks black tea"):
            await writer.add(user, content)
            written = cluster.latest_commit
            follower.work.clear()
            assert content in await find(reader, user, "tea"), "what another process wrote is found at once"
            answered = [work for work in follower.work if work.is_read]
            assert answered, "the search went to the member that does not lead"
            assert all(work.seen >= written for work in answered), "which answers after it has the write"
            follower.work.clear()
            assert content in await find(writer, user, "tea")
            assert all(work.seen >= written for work in follower.work), "a process reads what it has written"
    assert not any(work.is_read for work in leader.work), "the leader is left what only it can do"


async def test_what_another_member_cannot_answer_is_read_from_the_leader(
    settings: Settings, cluster: BoltCluster, embedder: Embedder, user: str
) -> None:
    async with calling(settings, embedder) as client:
        await client.add(user, "Mara collects stamps")
        cluster.members[1].stop()
        assert await find(client, user, "stamps") == ["Mara collects stamps"]


async def test_a_member_that_lags_holds_nobody_up(
    settings: Settings, cluster: BoltCluster, embedder: Embedder, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "FOLLOWER_SECONDS", 0.5)
    follower = cluster.members[1]
    async with calling(settings, embedder) as client:
        await client.add(user, "Mara collects stamps")
        follower.lags = True
        assert await find(client, user, "stamps") == ["Mara collects stamps"]
        follower.work.clear()
        assert await find(client, user, "stamps") == ["Mara collects stamps"]
        assert not follower.work, "nobody waits for it again"


# The leader changes


@pytest.mark.parametrize("refusal", [NOT_A_LEADER, READ_ONLY])
async def test_a_write_goes_to_the_new_leader_once_and_nobody_notices(
    settings: Settings, cluster: BoltCluster, embedder: Embedder, user: str, refusal: str
) -> None:
    former, next_leader = cluster.members
    async with serving(settings, embedder) as address, AsyncClient(KEY, address, attempts=1) as client:
        await client.add(user, "Mara likes green tea")
        former.refusal = refusal
        cluster.leader = next_leader
        (saved,) = await client.add(user, "Mara plays the cello")
        assert saved.action == "insert"
        assert next_leader.work, "the new leader has written it"
        assert sorted(await contents_of(client, user)) == ["Mara likes green tea", "Mara plays the cello"]
        assert "Mara plays the cello" in await find(client, user, "cello")


async def test_calls_wait_while_a_cluster_chooses_its_leader(
    settings: Settings, cluster: BoltCluster, embedder: Embedder, user: str
) -> None:
    former, next_leader = cluster.members
    async with serving(settings, embedder) as address, AsyncClient(KEY, address, attempts=1) as client:
        await client.add(user, "Mara likes green tea")
        former.refusal, cluster.leader = NOT_A_LEADER, None
        former.drop_connections()
        election = asyncio.create_task(lead_soon(cluster, next_leader, seconds=2.0))
        read, (saved,) = await asyncio.gather(contents_of(client, user), client.add(user, "Mara plays the cello"))
        await election
        assert "Mara likes green tea" in read
        assert saved.action == "insert"
        assert len(await contents_of(client, user)) == 2


async def test_without_a_leader_calls_fail_with_what_to_do(
    settings: Settings,
    cluster: BoltCluster,
    embedder: Embedder,
    user: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(driver, "RETRY_TIMEOUT", 1)
    async with (
        serving(settings, embedder) as address,
        httpx.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {KEY}"}, timeout=60) as client,
    ):
        memories = f"/v1/users/{user}/memories"
        assert (await client.get(memories)).status_code == 200
        cluster.members[0].refusal, cluster.leader = NOT_A_LEADER, None
        response = await client.post(memories, json={"memories": [{"content": "Mara likes tea"}]})
        assert response.status_code == 503
        assert "no leader that takes writes at the moment: try again" in response.json()["detail"]
        assert int(response.headers["Retry-After"]) > 0
        cluster.members[0].refusal, cluster.leader = None, cluster.members[0]
        assert (await client.post(memories, json={"memories": [{"content": "Mara likes tea"}]})).status_code == 200
        assert [memory["content"] for memory in (await client.get(memories)).json()["items"]] == ["Mara likes tea"]


async def test_a_member_that_does_not_lead_is_no_address_for_writes(
    settings: Settings, cluster: BoltCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "RETRY_TIMEOUT", 1)
    cluster.members[1].refusal = NOT_A_LEADER
    async with connected(settings, f"bolt://{cluster.members[1].address}") as graph:
        assert await graph.fetch("schema.get_embedding_model"), "without routing it answers reads"
        with pytest.raises(DatabaseUnavailable, match="give the address of a cluster as neo4j://"):
            await add_item(graph, "never")


# Connections that break


async def test_a_transaction_whose_connection_breaks_runs_again(
    settings: Settings, cluster: BoltCluster, word: str
) -> None:
    former, next_leader = cluster.members
    attempts = 0

    async def work(transaction: Transaction) -> None:
        nonlocal attempts
        attempts += 1
        await transaction.run_text("CREATE (:ClusterItem {word: $word})", {"word": word})
        if attempts == 1:
            cluster.leader = next_leader
            former.drop_connections()
            await transaction.run_text("RETURN 1")

    async with connected(settings) as graph:
        await graph.write(work)
        assert attempts == 2
        assert await count_items(graph, word) == 1


@pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
@pytest.mark.parametrize(("moment", "stored"), [("before", 0), ("after", 1)])
async def test_a_commit_without_an_answer_is_not_repeated_blindly(
    settings: Settings, cluster: BoltCluster, word: str, scheme: str, moment: Moment, stored: int
) -> None:
    async with connected(settings, cluster.uri.replace("neo4j", scheme)) as graph:
        await add_item(graph, "warm" + word)
        cluster.members[0].lose_commit(1, moment)
        with pytest.raises(OutcomeUnknown, match="Idempotency-Key"):
            await add_item(graph, word)
        assert await count_items(graph, word) == stored


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_call_whose_commits_get_no_answer_writes_once_and_its_caller_sees_no_error(
    settings: Settings, cluster: BoltCluster, embedder: Embedder, user: str, moment: Moment
) -> None:
    member = cluster.members[0]
    async with serving(settings, embedder) as address, AsyncClient(KEY, address) as client:
        await client.add(user, "Mara likes green tea")
        for commits in range(1, 4):  # of the claim of the key, of the memory, of the answer
            content = f"Mara has owned {commits} cellos"
            member.lose_commit(commits, moment)
            (saved,) = await client.add(user, content)
            assert saved.action == "insert"
            assert member.lost_commits == commits
            assert (await contents_of(client, user)).count(content) == 1
            assert saved.memory
            history = await client.history(user, saved.memory.id)
            assert len(history) == 1, "the repeated call has not written it again"
            assert content in await find(client, user, "cellos")


@pytest.mark.parametrize("moment", [pytest.param("before", marks=pytest.mark.long), "after"])
async def test_messages_whose_commits_get_no_answer_are_stored_once(
    settings: Settings, cluster: BoltCluster, embedder: Embedder, user: str, moment: Moment
) -> None:
    member = cluster.members[0]
    async with serving(settings, embedder) as address, AsyncClient(KEY, address) as client:
        for commits in range(1, 4):
            member.lose_commit(commits, moment)
            text = f"I have owned {commits} cellos"
            await client.add_messages(user, [{"role": "user", "content": text}], session_id="s", extract=False)
            assert member.lost_commits == commits
        stored = await client.session_messages(user, "s")
        assert [message.content for message in stored.items] == [f"I have owned {n} cellos" for n in (1, 2, 3)]


async def test_a_call_without_a_key_says_that_its_write_may_be_stored(
    settings: Settings, cluster: BoltCluster, embedder: Embedder, user: str
) -> None:
    async with (
        serving(settings, embedder) as address,
        httpx.AsyncClient(base_url=address, headers={"Authorization": f"Bearer {KEY}"}, timeout=60) as client,
    ):
        memories = f"/v1/users/{user}/memories"
        await client.get(memories)
        cluster.members[0].lose_commit(1, "after")
        save = {"memories": [{"content": "Mara likes tea"}]}
        response = await client.post(memories, json=save)
        assert response.status_code == 503
        assert "may be stored" in response.json()["detail"]
        (result,) = (await client.post(memories, json=save)).json()["results"]
        assert result["action"] == "reinforce", "it was, and the repetition says so"
        assert len((await client.get(memories)).json()["items"]) == 1
