"""A migration while other processes start, die or work: one migrates, the others wait or go on, none is refused."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import Any

import httpx
import pytest

from graphmem.cli.doctor_checks import Check, CheckStatus, check_database
from graphmem.jobs.store import SQLITE_FILE
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.migrations import (
    LeaseLost,
    MigrationLease,
    load_migrations,
    migrate,
    newest_version,
)
from graphmem.runtime.settings import Settings
from tests.conftest import QUIET_WORKERS
from tests.faults.migrating_process import MODEL
from tests.forks import Fork, start_command, start_python, start_script
from tests.ingestion.conftest import candidate, extraction
from tests.jobs.conftest import free_port
from tests.model_server import ModelServer

MIGRATING_PROCESS = Path(__file__).with_name("migrating_process.py")
ROOT = Path(__file__).parents[2]
KEY = "key-of-both-versions"
TOO_SLOW = "takes longer than"
NEWER_VERSION = Path(__file__).with_name("newer_version.py")
START_SECONDS = 240
NEWEST = newest_version(load_migrations())

pytestmark = pytest.mark.timeout(600)


class Version(Enum):
    """This version, and a later one with one more migration."""

    OLD = "old"
    NEW = "new"


@asynccontextmanager
async def connection(settings: Settings) -> AsyncIterator[Graph]:
    assert settings.neo4j_password
    graph = Graph(str(settings.neo4j_uri), "neo4j", settings.neo4j_password.get_secret_value())
    try:
        yield graph
    finally:
        await graph.close()


@pytest.fixture
async def empty_graph(own_database: Settings) -> AsyncIterator[Graph]:
    """The database without any node, and so without a migration."""
    async with connection(own_database) as graph:
        await graph.write(lambda transaction: transaction.run_text("MATCH (n) DETACH DELETE n"))
        yield graph


async def count_runs(graph: Graph) -> int:
    """How often the statements of `migrations` have run."""
    [row] = await graph.read(lambda transaction: transaction.run_text("MATCH (r:Run) RETURN count(r) AS runs"))
    return int(row["runs"])


@pytest.fixture
def migrations(tmp_path: Path) -> Path:
    """A folder with a migration that leaves a node each time it runs, and takes a moment."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "V0001__run.cypher").write_text(
        "CREATE INDEX run_number IF NOT EXISTS FOR (r:Run) ON (r.number);\n"
        "UNWIND range(1, 500000) AS number WITH count(number) AS numbers CREATE (:Run {number: numbers});\n"
    )
    return folder


def variables(settings: Settings, **further: str) -> dict[str, str]:
    """The environment of a process on the database, with no other settings than these."""
    assert settings.neo4j_password
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHMEM_", "OPENAI_"))}
    return {
        **inherited,
        **QUIET_WORKERS,
        "PYTHONPATH": f"{ROOT}:{ROOT / 'api'}",
        "GRAPHMEM_NEO4J_URI": str(settings.neo4j_uri),
        "GRAPHMEM_NEO4J_PASSWORD": settings.neo4j_password.get_secret_value(),
        **further,
    }


async def test_of_processes_that_start_at_once_one_migrates(
    empty_graph: Graph, own_database: Settings, migrations: Path
) -> None:
    async with AsyncExitStack() as stack:
        graphs = [await stack.enter_async_context(connection(own_database)) for _ in range(3)]
        done = await asyncio.gather(*(migrate(graph, MODEL, migrations) for graph in graphs))
    assert sorted(done) == [[], [], [1]]
    assert await count_runs(empty_graph) == 1
    assert (state := await empty_graph.vector_state(refresh=True))
    assert state.model == MODEL
    assert await migrate(empty_graph, MODEL, migrations) == []


async def test_a_process_that_is_killed_while_it_migrates_is_waited_for_as_long_as_its_lease(
    empty_graph: Graph, own_database: Settings, migrations: Path, tmp_path: Path
) -> None:
    environment = variables(own_database, GRAPHMEM_DATA_DIR=str(tmp_path))
    process = start_script(MIGRATING_PROCESS, str(migrations), "600", environment=environment)
    assert await asyncio.to_thread(process.wait, START_SECONDS) == -signal.SIGKILL
    start = asyncio.create_task(migrate(empty_graph, MODEL, migrations))
    done, _ = await asyncio.wait({start}, timeout=1.5)
    assert not done
    assert await count_runs(empty_graph) == 0
    time_passes = "MATCH (l:MigrationLease) SET l.expires_at = datetime.realtime()"
    await empty_graph.write(lambda transaction: transaction.run_text(time_passes))
    assert await start == [1]
    assert await count_runs(empty_graph) == 1


async def test_a_process_that_lost_its_lease_stops_before_its_next_step(empty_graph: Graph) -> None:
    stalled, other = MigrationLease(empty_graph, seconds=0.3), MigrationLease(empty_graph)
    assert await stalled.take(NEWEST, NEWEST)
    await asyncio.sleep(0.4)
    assert await other.take(NEWEST, NEWEST)
    with pytest.raises(LeaseLost):
        async with stalled.kept():
            await stalled.confirm()
    assert not await stalled.take(NEWEST, NEWEST), "the lease of the other one is not given back"
    async with other.kept():
        await other.confirm()
    assert await stalled.take(NEWEST, NEWEST)


async def test_a_lease_is_extended_as_long_as_the_migration_lasts(empty_graph: Graph) -> None:
    async def read_end() -> object:
        query = "MATCH (l:MigrationLease) RETURN l.expires_at AS end"
        [row] = await empty_graph.read(lambda transaction: transaction.run_text(query))
        return row["end"]

    lease = MigrationLease(empty_graph, seconds=9)
    assert await lease.take(NEWEST, NEWEST)
    async with lease.kept(), asyncio.timeout(60):
        first = await read_end()
        while await read_end() == first:  # noqa: ASYNC110 - the graph does not call
            await asyncio.sleep(0.2)
    assert await MigrationLease(empty_graph).take(NEWEST, NEWEST)


async def test_who_has_the_schema_waits_only_for_a_migration_that_is_not_compatible(
    empty_graph: Graph, migrations: Path
) -> None:
    assert await migrate(empty_graph, MODEL, migrations) == [1]
    newer = MigrationLease(empty_graph)
    assert await newer.take(2, compatible_with=1)
    assert await migrate(empty_graph, MODEL, migrations) == []
    assert await newer.take(2, compatible_with=2)
    start = asyncio.create_task(migrate(empty_graph, MODEL, migrations))
    done, _ = await asyncio.wait({start}, timeout=1.5)
    assert not done
    async with newer.kept():
        pass
    assert await start == []


async def schema_check(settings: Settings) -> Check:
    """What `graphmem doctor` says of the schema."""
    return [check async for check in check_database(settings, None)][-1]


async def test_the_doctor_says_what_a_version_means_for_the_processes_that_run(
    empty_graph: Graph, own_database: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def record(version: int, compatible_with: int | None) -> None:
        await empty_graph.execute(
            "schema.record_migration", version=version, title="t", checksum="c", compatible_with=compatible_with
        )

    assert (await schema_check(own_database)).fix == "graphmem db migrate", "nobody uses an empty database"
    await migrate(empty_graph, MODEL)
    with monkeypatch.context() as later_version:
        shutil.copytree(ROOT / "cypher" / "migrations", tmp_path / "migrations")
        (tmp_path / "migrations" / f"V{NEWEST + 1:04}__a_node.cypher").write_text("MERGE (:Thing);\n")
        later_version.setattr("graphmem.neo4j.migrations.cypher_root", lambda: tmp_path)
        assert (await schema_check(own_database)).fix == (
            "Stop all processes of the earlier version, then: graphmem db migrate"
        )
    assert (await schema_check(own_database)).detail.startswith("up to date")
    await record(NEWEST + 1, NEWEST)
    check = await schema_check(own_database)
    assert check.verdict is CheckStatus.OK
    assert f"of a later version ({NEWEST + 1}) with which this one ({NEWEST}) works" in check.detail
    await record(NEWEST + 2, NEWEST + 1)
    check = await schema_check(own_database)
    assert check.verdict is CheckStatus.BROKEN
    assert "upgrade graphmem" in check.detail + check.fix


async def test_a_later_migration_changes_data_in_batches_of_its_own(empty_graph: Graph, tmp_path: Path) -> None:
    async def run(query: str) -> Any:
        return await empty_graph.write(lambda transaction: transaction.run_text(query))

    await run("UNWIND ['yes', 'no'] AS word CREATE (:Item {word: word})")
    assert await migrate(empty_graph, MODEL) == [migration.version for migration in load_migrations()]
    folder = tmp_path / "migrations"
    shutil.copytree(ROOT / "cypher" / "migrations", folder)
    (folder / f"V{NEWEST + 1:04}__longer_words.cypher").write_text(
        "MATCH (n:Item) WHERE n.long IS NULL\nCALL (n) {\n  SET n.long = n.word + '!'\n} IN TRANSACTIONS OF 1 ROWS;\n"
    )
    assert await migrate(empty_graph, MODEL, folder) == [NEWEST + 1]
    assert {row["long"] for row in await run("MATCH (n:Item) RETURN n.long AS long")} == {"yes!", "no!"}


# Two versions side by side


@pytest.fixture
def newer_cypher(tmp_path: Path) -> Path:
    """The folder `cypher` of a later version, with one more migration that is declared compatible with this one."""
    folder = tmp_path / "newer"
    shutil.copytree(ROOT / "cypher", folder)
    (folder / "migrations" / f"V{NEWEST + 1:04}__said_when.cypher").write_text(
        f"// Messages by the time at which they were said.\n// Compatible with: V{NEWEST:04}\n"
        "CREATE INDEX graphmem_message_time IF NOT EXISTS FOR (m:Episodic) ON (m.group_id, m.valid_at);\n"
    )
    return folder


class Installation:
    """Processes of two versions on one database and one job store."""

    def __init__(self, settings: Settings, models: ModelServer, folder: Path, newer_cypher: Path) -> None:
        self.running: list[Fork] = []
        self._started = 0
        self._folder = folder
        self._newer_cypher = newer_cypher
        self._variables = variables(
            settings,
            **models.environment,
            OPENAI_API_KEY="key",
            GRAPHMEM_LLM_OUTPUT="native",
            GRAPHMEM_ADMIN_KEY=KEY,
        )

    def start(self, version: Version, *command: str) -> Fork:
        """Start a process of a version."""
        self._started += 1
        data = self._folder / f"data-{self._started}"
        data.mkdir()
        (data / "in").touch()
        # Each process has a data folder of its own, as on a machine of its own; the job store is one.
        (data / SQLITE_FILE).symlink_to(self._folder / SQLITE_FILE)
        environment = self._variables | {"GRAPHMEM_DATA_DIR": str(data)}
        if version is Version.OLD:
            process = start_command(command, environment, self._folder, data)
        else:
            newer = [str(NEWER_VERSION), str(self._newer_cypher), *command]
            process = start_python(newer, environment, self._folder, data)
        self.running.append(process)
        return process

    async def serve(self, version: Version, *options: str) -> tuple[Fork, httpx.AsyncClient]:
        """Start a server and return it with a client, once it is ready."""
        port = free_port()
        process = self.start(version, "serve", "--port", str(port), *options)
        client = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}",
            headers={"Authorization": f"Bearer {KEY}"},
            trust_env=False,
            timeout=60,
        )
        async with asyncio.timeout(START_SECONDS):
            while True:
                assert process.returncode is None, self.log()
                with suppress(httpx.HTTPError):
                    if (await client.get("/readyz")).status_code == 200:
                        return process, client
                await asyncio.sleep(0.1)

    def log(self) -> str:
        """What all processes have printed."""
        return "\n".join(path.read_text() for path in sorted(self._folder.glob("data-*/err")))

    async def end(self, process: Fork, number: signal.Signals) -> None:
        """End a process."""
        process.send_signal(number)
        await asyncio.to_thread(process.wait, START_SECONDS)
        self.running.remove(process)


@pytest.fixture
async def installation(
    own_database: Settings, empty_graph: Graph, models: ModelServer, newer_cypher: Path, tmp_path: Path
) -> AsyncIterator[Installation]:
    """An installation without a process yet, on an empty database; what still runs is killed at the end."""
    models.completion = json.dumps(extraction(candidate("User is fond of coffee")))
    installation = Installation(own_database, models, tmp_path, newer_cypher)
    yield installation
    for process in list(installation.running):
        await installation.end(process, signal.SIGKILL)


async def save(client: httpx.AsyncClient, user: str, content: str) -> None:
    (await client.post(f"/v1/users/{user}/memories", json={"memories": [{"content": content}]})).raise_for_status()


async def read(client: httpx.AsyncClient, user: str) -> set[str]:
    """What the user's memories say."""
    listed = (await client.get(f"/v1/users/{user}/memories", params={"limit": 100})).raise_for_status()
    return {memory["content"] for memory in listed.json()["items"]}


async def warm_up(client: httpx.AsyncClient) -> None:
    """Save and read once: a new Neo4j plans each query at its first use, on a busy machine for longer than requests."""
    async with asyncio.timeout(START_SECONDS):
        while True:
            with suppress(httpx.HTTPStatusError):
                await save(client, "jo", "Jo walks")
                await read(client, "jo")
                return


async def say(client: httpx.AsyncClient, user: str) -> str:
    """Post a message and return the id of its job."""
    turns = {"session_id": "s1", "messages": [{"role": "user", "content": "I could not do without my coffee."}]}
    accepted = (await client.post(f"/v1/users/{user}/messages", json=turns)).raise_for_status()
    return str(accepted.json()["job_id"])


async def wait_for_job(client: httpx.AsyncClient, job_id: str) -> str:
    """The status of a job, once it is final."""
    async with asyncio.timeout(START_SECONDS):
        while True:
            job = (await client.get(f"/v1/jobs/{job_id}")).raise_for_status().json()
            if job["finished_at"]:
                return str(job["status"])
            await asyncio.sleep(0.1)


async def use(client: httpx.AsyncClient, stop: asyncio.Event) -> int:
    """Save and read until `stop` is set; return how often."""
    rounds = 0
    while not stop.is_set():
        rounds += 1
        try:
            await save(client, "jo", f"Jo walked {rounds} miles")
            assert f"Jo walked {rounds} miles" in await read(client, "jo")
        except httpx.HTTPStatusError as error:
            # On a busy machine the database may take longer than a request waits; anything else is a refusal.
            if TOO_SLOW not in error.response.text:
                raise
        await asyncio.sleep(0.3)
    return rounds


async def upgrade(installation: Installation, graph: Graph) -> None:
    """Let a worker of the new version migrate the database while a server of the old one is used; end both."""
    old_api, old = await installation.serve(Version.OLD, "--no-worker")
    await warm_up(old)
    await save(old, "mara", "Mara keeps bees")
    job_of_old = await say(old, "mara")
    stop = asyncio.Event()
    traffic = asyncio.create_task(use(old, stop))

    new_worker = installation.start(Version.NEW, "worker")
    work = asyncio.create_task(wait_for_job(old, job_of_old))
    while not work.done():
        assert new_worker.returncode is None, installation.log()
        await asyncio.sleep(0.2)
    assert await work == "succeeded", "the new version does what the old one has queued"
    applied = await graph.fetch("schema.list_applied_migrations")
    assert [applied[-1][name] for name in ("version", "compatible_with")] == [NEWEST + 1, NEWEST]
    stop.set()
    assert await traffic > 3, "the old version served meanwhile"
    await installation.end(new_worker, signal.SIGTERM)
    await installation.end(old_api, signal.SIGKILL)


async def test_the_old_version_serves_while_the_new_one_migrates_the_database(
    installation: Installation, empty_graph: Graph
) -> None:
    await upgrade(installation, empty_graph)


@pytest.mark.long
async def test_the_old_version_starts_on_the_migrated_database_next_to_a_server_of_the_new_one(
    installation: Installation, empty_graph: Graph
) -> None:
    await upgrade(installation, empty_graph)
    (_, old), (_, new) = await asyncio.gather(
        installation.serve(Version.OLD), installation.serve(Version.NEW, "--no-worker")
    )
    assert {"Mara keeps bees", "User is fond of coffee"} <= await read(old, "mara")
    await save(old, "mara", "Mara sails")
    assert "Mara sails" in await read(new, "mara")
    await save(new, "mara", "Mara plays the violin")
    assert "Mara plays the violin" in await read(old, "mara")
    assert await wait_for_job(new, await say(new, "ada")) == "succeeded", "and the other way round"
    assert await read(old, "ada") == {"User is fond of coffee"}
