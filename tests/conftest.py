"""One real Neo4j for all processes of a test run; each test has a tenant of its own."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import shutil
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Generator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import httpx
import httpx2
import hypothesis
import pytest
import uvloop
from neo4j import AsyncGraphDatabase
from pydantic import SecretStr
from xdist.remote import Producer
from xdist.scheduler.loadfile import LoadFileScheduling

from graphmem.app.bootstrap import Services
from graphmem.models.embedder import Embedder, create_embedder, describe_model
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.embedded import home
from graphmem.neo4j.embedded.home import Neo4jHome
from graphmem.neo4j.migrations import migrate
from graphmem.runtime.settings import GraphAddress, Settings
from graphmem.tenants.owners import Owner
from tests.model_server import ModelServer, serving_models
from tests.provider_server import ProviderServer, serving_provider
from tests.system_packages import find_program, missing_packages

QUIET_WORKERS = {"GRAPHMEM_WEBHOOK_DELIVERY": "false", "GRAPHMEM_NIGHTLY": "false"}
"""The environment of every process of a run, which share a database.

Only the tests of webhooks deliver, each change once, and no worker consolidates the users of other tests when the
time of a schedule comes.
"""

# How long an example takes says nothing about what is tested: the machine may be busy.
SHORT_EXAMPLES = 40
"""Examples of the profile `ci`."""
hypothesis.settings.register_profile(
    "ci", max_examples=SHORT_EXAMPLES, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile("nightly", hypothesis.settings.get_profile("ci"), max_examples=4_000)
hypothesis.settings.load_profile("ci")


def examples(share: float) -> int:
    """Return a share of the examples of the profile, half of it in a short run, for a test whose examples take long."""
    most = hypothesis.settings().max_examples
    return max(1, round(most * share / (2 if most == SHORT_EXAMPLES else 1)))


class FakeClock:
    """A clock that changes only when it is advanced."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, step: timedelta) -> None:
        self.now += step


def is_docker_running() -> bool:
    """Return whether a Docker engine answers."""
    if not shutil.which("docker"):
        return False
    try:
        import docker

        docker.from_env(timeout=2).ping()
    except Exception:
        return False
    return True


def pytest_configure(config: pytest.Config) -> None:
    """Start a Neo4j container where Docker is running and no database is configured."""
    for name, value in QUIET_WORKERS.items():
        os.environ.setdefault(name, value)
    _set_java_options()
    # Every client of a run trusts the same authorities: reading them takes longer than most requests.
    for library in (httpx, httpx2):
        library._transports.default.create_ssl_context = cache(library.create_ssl_context)
    # The data of a run grows all the time, for which Neo4j would plan every query again every ten seconds.
    home._CONFIG_TEMPLATE += "dbms.cypher.min_replan_interval=1h\n"
    # A run sends every query there is, with parameters of more types than any installation: none is planned twice.
    home._CONFIG_TEMPLATE += "server.memory.query_cache.per_db_cache_num_entries=10000\n"
    if hasattr(config, "workerinput") or "GRAPHMEM_TEST_NEO4J_URI" in os.environ or not is_docker_running():
        return
    from testcontainers.neo4j import Neo4jContainer

    container = Neo4jContainer("neo4j:2026.08.1").start()
    config.add_cleanup(container.stop)
    os.environ["GRAPHMEM_TEST_NEO4J_URI"] = container.get_connection_url()
    os.environ["GRAPHMEM_TEST_NEO4J_PASSWORD"] = container.password


def _set_java_options() -> None:
    """Have the servers of a run do without the optimizing compiler.

    A run is over before that compiler pays off; on few cores it takes a sixth of the time.
    """
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option by which a run fails when it has skipped tests."""
    parser.addoption(
        "--allow-skips",
        metavar="PATH",
        action="append",
        help="fail when a test outside PATH was skipped; may be repeated",
    )


def _skipped_tests(config: pytest.Config) -> Counter[tuple[str, str]]:
    """Return how many tests were skipped by their file and the reason."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter else []
    reasons = (report.longrepr[2].removeprefix("Skipped: ") for report in reports)
    return Counter(zip((report.nodeid.partition("::")[0] for report in reports), reasons, strict=True))


def _forbidden_skips(config: pytest.Config) -> list[str]:
    """Return the files with skipped tests that the run may not skip."""
    allowed = config.getoption("--allow-skips")
    return [] if allowed is None else sorted({file for file, _ in _skipped_tests(config)}.difference(allowed))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run that has skipped what it may not skip."""
    is_worker = hasattr(session.config, "workerinput")
    if not is_worker and exitstatus == pytest.ExitCode.OK and _forbidden_skips(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which tests were skipped, and the one command that changes it."""
    skipped = _skipped_tests(config)
    if not skipped:
        return
    terminalreporter.section(f"{skipped.total()} skipped", yellow=True)
    for (file, reason), count in sorted(skipped.items()):
        terminalreporter.write_line(f"{count} in {file}: {reason}")
    if packages := missing_packages():
        terminalreporter.write_line(f"To run them: sudo apt-get install --no-install-recommends {' '.join(packages)}")
    elif any(file == EXTRA_TESTS for file, _ in skipped):
        terminalreporter.write_line("To run them, with several GB of torch: make test-extras")
    if forbidden := _forbidden_skips(config):
        terminalreporter.write_line(f"The run fails, because it may not skip {', '.join(forbidden)}.", red=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say with a test that failed for want of its database what became of that database."""
    report = yield
    home = item.funcargs.get("neo4j_folder") if isinstance(item, pytest.Function) else None
    if report.failed and isinstance(home, Path) and re.search("(?i)unavailable|timeout", report.longreprtext):
        report.sections.append(("Neo4j", _last_words(Neo4jHome.in_data_dir(home))))
    return report


def _last_words(server: Neo4jHome) -> str:
    """Return the states of the process of a server and of its supervisor, and the ends of its logs."""
    files = server.run_files
    processes = {"server": files.server_process(), "supervisor": files.supervisor_process()}
    lines = [f"{name}: {process.status() if process else 'gone'}" for name, process in processes.items()]
    for log in (server.console_log, server.server_log):
        lines += [f"{log.name}:", *log.read_text("utf-8").splitlines()[-20:]] if log.exists() else []
    return "\n".join(lines)


def require_program(package: str) -> str:
    """Return the path of the program of a package of the system; skip the test where it is not installed."""
    if program := find_program(package):
        return program
    pytest.skip(f"the package {package} is not installed")


EXTRA_TESTS = "tests/models/test_sentence_transformers.py"
"""The tests that need an extra which `make test` does not install."""

INTEGRATION_FIXTURES = frozenset({"chartcheck", "database", "neo4j_folder"})
INTEGRATION_FOLDERS = frozenset({"browser", "cli", "embedded", "embedding", "faults", "jobs", "packaging"})


FIRST = (
    *("neo4j/test_query_plans", "neo4j/test_migrations", "neo4j/test_server", "packaging", "search/test_graphiti"),
    *("faults", "placement", "browser", "documentation", "cli", "jobs", "webhooks", "stories"),
)
"""What is begun first, in this order.

When an index is created or dropped, Neo4j forgets every plan that it has made: later in a run, it would make hundreds
again. `test_migrations` does so, and Graphiti, whose indexes come after the plans are tested. The others wait for
servers and installations of their own, while the rest of the suite keeps the processors busy.
"""


TOGETHER = {
    **{folder: folder for folder in ("browser", "cli", "jobs", "packaging")},
    **dict.fromkeys(("faults", "placement"), "second database"),
}
"""The folders whose tests one process runs, one after the other: what they share is made once."""


class Scheduling(LoadFileScheduling):
    """Gives a process one file at a time, or folders of `TOGETHER`."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return TOGETHER.get(file.split("/")[1], file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Have `--dist` distribute tests by `Scheduling`."""
    return Scheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by `FIRST`, and mark the tests that `make test-unit` leaves out and those that `make torture` runs."""
    paths = {item: item.path.relative_to(Path(__file__).parent) for item in items}
    ranks = {item: [paths[item].as_posix().startswith(prefix) for prefix in (*FIRST, "")].index(True) for item in items}
    items.sort(key=ranks.__getitem__)
    for item in items:
        folder = paths[item].parts[0]
        if folder in INTEGRATION_FOLDERS or INTEGRATION_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.integration)
        if folder == "properties" or item.get_closest_marker("hypothesis"):
            item.add_marker(pytest.mark.property)


def pytest_collection_finish() -> None:
    """Have the garbage collector pass over what lives as long as the run: all modules and tests."""
    gc.freeze()


@pytest.fixture(scope="session")
def event_loop_policy() -> asyncio.AbstractEventLoopPolicy:
    """The event loop that servers have, which takes less time than that of Python."""
    policy: asyncio.AbstractEventLoopPolicy = uvloop.EventLoopPolicy()
    return policy


@pytest.fixture(scope="session")
def neo4j_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Where the embedded Neo4j of the run lives, if the run has one."""
    base = tmp_path_factory.getbasetemp()
    return (base if worker_id == "master" else base.parent) / "neo4j"


@pytest.fixture(scope="session")
async def database(tmp_path_factory: pytest.TempPathFactory, neo4j_folder: Path) -> AsyncIterator[Settings]:
    """Settings of a running Neo4j: a given one or the container, else the embedded one, started or joined."""
    data_dir: Path = tmp_path_factory.mktemp("data")
    if uri := os.environ.get("GRAPHMEM_TEST_NEO4J_URI"):
        yield Settings(
            neo4j_uri=uri,
            neo4j_user=os.environ.get("GRAPHMEM_TEST_NEO4J_USER", "neo4j"),
            neo4j_password=os.environ.get("GRAPHMEM_TEST_NEO4J_PASSWORD", ""),
            data_dir=data_dir,
        )
        return
    from graphmem.neo4j.embedded.server import EmbeddedNeo4j

    settings = Settings()
    server = await EmbeddedNeo4j.start_or_join(neo4j_folder, settings.cache_dir, mirror=settings.jar_mirror)
    yield Settings(
        neo4j_uri=server.info.uri,
        neo4j_user=server.info.user,
        neo4j_password=server.info.password,
        data_dir=data_dir,
    )
    await server.stop()


@pytest.fixture(scope="session")
async def second_neo4j(neo4j_folder: Path) -> AsyncIterator[GraphAddress]:
    """Another Neo4j, with another folder and password, for tests that need two graphs or a schema of their own."""
    from graphmem.neo4j.embedded.server import EmbeddedNeo4j

    folder = Path(os.environ.get("GRAPHMEM_TEST_SECOND_NEO4J") or neo4j_folder.with_name("second-neo4j"))
    settings = Settings()
    async with await EmbeddedNeo4j.start_or_join(folder, settings.cache_dir, mirror=settings.jar_mirror) as server:
        yield GraphAddress(uri=server.info.uri, user=server.info.user, password=SecretStr(server.info.password))


async def empty(address: GraphAddress, vector_length: int | None = None) -> None:
    """Delete all data of a database, and the schema unless its vectors have this length.

    Neo4j forgets all its plans when an index is dropped or created; a further server would make them all, too.
    """
    assert address.password
    auth = (address.user, address.password.get_secret_value())
    async with AsyncGraphDatabase.driver(address.uri, auth=auth) as driver:
        await driver.execute_query("MATCH (n) DETACH DELETE n")
        indexes = "SHOW VECTOR INDEXES YIELD options RETURN DISTINCT options.indexConfig['vector.dimensions'] AS length"
        if [record["length"] for record in (await driver.execute_query(indexes)).records] == [vector_length]:
            return
        for record in (await driver.execute_query("SHOW CONSTRAINTS YIELD name")).records:
            await driver.execute_query("DROP CONSTRAINT $name", record.data())
        indexes = "SHOW INDEXES YIELD name, type WHERE type <> 'LOOKUP' RETURN name"
        for record in (await driver.execute_query(indexes)).records:
            await driver.execute_query("DROP INDEX $name", record.data())


@pytest.fixture(scope="session")
async def embedder(database: Settings) -> AsyncIterator[Embedder]:
    """The real local embedder, loaded once."""
    embedder = create_embedder(database)
    await embedder.open()
    yield embedder
    await embedder.aclose()


@pytest.fixture(scope="session")
async def _models(embedder: Embedder) -> AsyncIterator[ModelServer]:
    async with serving_models(embedder) as models:
        yield models


@pytest.fixture
def models(_models: ModelServer) -> ModelServer:
    """The server of models, with nothing to say."""
    _models.completion = None
    return _models


@pytest.fixture(scope="session")
async def provider() -> AsyncIterator[ProviderServer]:
    """A provider of models, to which the API of the tests passes calls on."""
    async with serving_provider() as provider:
        yield provider


@pytest.fixture(scope="session")
async def graph(database: Settings, embedder: Embedder) -> AsyncIterator[Graph]:
    """The migrated database."""
    assert database.neo4j_uri
    assert database.neo4j_password
    graph = Graph(database.neo4j_uri, database.neo4j_user, database.neo4j_password.get_secret_value())
    await migrate(graph, describe_model(embedder, database))
    yield graph
    await graph.close()


@pytest.fixture
def tenant() -> str:
    """A tenant of this test alone."""
    return "t" + uuid.uuid4().hex[:12]


@pytest.fixture
def owner(tenant: str) -> Owner:
    """A user of this test alone."""
    return Owner(tenant, "mara")


@pytest.fixture
def clock() -> FakeClock:
    """A clock that starts at noon on 1 June 2026."""
    return FakeClock(datetime(2026, 6, 1, 12, tzinfo=UTC))


@pytest.fixture(scope="session")
async def memory(database: Settings, embedder: Embedder, graph: Graph) -> AsyncIterator[Services]:
    """The wired service on the database of the run, by the real clock; it runs no jobs."""
    async with Services.open(database, worker=False, embedder=embedder) as memory:
        yield memory
