"""An installation of several machines on this one: HAProxy, APIs, workers, two Neo4j, Postgres, Redis, all killable."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from docs.deployments import CHART, file_name, read_table
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.embedded.home import ServerInfo
from graphmem.neo4j.embedded.server import EmbeddedNeo4j, stop_server
from graphmem.runtime.settings import HOME_GRAPH, Settings
from tests.jobs.conftest import PostgresServer, find_postgres, free_port
from torture.deployment import make_postgres
from torture.findings import Findings
from torture.persistent_client import PersistentClient
from torture.processes import Processes, base_environment, wait_until_ready
from torture.stories import Check, Teller

APIS, WORKERS = 3, 3
"""Processes of each kind."""

SECOND_GRAPH = "second"
"""The name of the graph besides the home graph."""

PLACED_TENANT, MOVED_TENANT = "placed", "moved"
"""The tenant that lives in the second graph, and the one that moves between both."""

PROXY = """
global
    maxconn 2000
defaults
    mode http
    retries 3
    option redispatch 1
    timeout check 5s
    timeout connect 2s
    timeout client 120s
    timeout server 120s
    default-server inter 1s fastinter 200ms fall 2 rise 1
frontend graphmem
    bind 127.0.0.1:{port}
    default_backend apis
backend apis
    balance roundrobin
    option httpchk GET /readyz
{servers}
"""
"""Requests go to the APIs in turn; one whose connection is refused goes to the next."""


PLACEMENTS = "/v1/admin/placements"

TOO_BUSY = "There are too many writes"
"""What the reason of a move says that was given up because too much was written meanwhile."""

IMAGE_VARIABLES = frozenset({"GRAPHMEM_DATA_DIR"})
"""Variables of the table that no deployment passes on, because the image sets them."""


class Cluster:
    """The processes of one installation, each with a data folder of its own, as on machines of their own."""

    def __init__(self, folder: Path, model_address: str, postgres: PostgresServer, proxy: str, redis: str) -> None:
        self.key = secrets.token_hex(16)
        self.keys = [self.key]
        self._folder = folder
        self._postgres, self._proxy, self._redis = postgres, proxy, redis
        self._proxy_port, self._redis_port = free_port(), free_port()
        self._ports = {name: free_port() for name in (*_names("api", APIS), *_names("worker", WORKERS))}
        self._processes = Processes(folder)
        self._model_address = model_address
        self._neo4j_ports = {name: free_port() for name in ("neo4j-1", "neo4j-2")}
        self._neo4j: dict[str, ServerInfo] = {}
        self._mover: MovingTenant | None = None

    @property
    def targets(self) -> list[str]:
        """What can be killed."""
        return [*self._ports, "haproxy", "redis", "postgres", *self._neo4j_ports]

    @property
    def address(self) -> str:
        """The address of the proxy."""
        return f"http://127.0.0.1:{self._proxy_port}"

    async def start(self) -> None:
        """Start everything, wait until it is ready, and make the tenants."""
        await asyncio.to_thread(self._postgres.start)
        self._start_redis()
        for name in self._neo4j_ports:
            await self._start_neo4j(name)
        servers = [
            f"    server {name} 127.0.0.1:{port} check" for name, port in self._ports.items() if name.startswith("api")
        ]
        configuration = PROXY.format(port=self._proxy_port, servers="\n".join(servers))
        (self._folder / "haproxy.cfg").write_text(configuration, "utf-8")
        self._start_proxy()
        await self.scale(APIS, WORKERS)
        await self._make_tenants()

    async def scale(self, apis: int, workers: int) -> None:
        """Run so many APIs and workers, and wait until they are ready."""
        wanted = {*_names("api", apis), *_names("worker", workers)}
        for name in self._ports:
            is_running = self._processes.is_running(name)
            if name in wanted and not is_running:
                self._start_graphmem(name)
            elif name not in wanted and is_running:
                await self._processes.stop(name)
        await self.wait_until_ready()

    async def wait_until_ready(self) -> float:
        """Return the seconds until every API, every worker, the proxy and both graphs are ready; raise TimeoutError."""
        started = time.monotonic()
        running = [f"http://127.0.0.1:{port}" for name, port in self._ports.items() if self._processes.is_running(name)]
        await wait_until_ready(*running, self.address)
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {self.key}"}, timeout=10) as client:
            for address in running:
                while not await _reaches_graphs(client, address):  # noqa: ASYNC110 - another process is asked
                    await asyncio.sleep(0.2)
        return time.monotonic() - started

    async def kill(self, target: str) -> None:
        """Kill a process by SIGKILL, and start it again as whoever runs it would."""
        if target in self._neo4j:
            os.kill(self._neo4j[target].pid, signal.SIGKILL)
            await self._start_neo4j(target)
        elif target == "postgres":
            await asyncio.to_thread(self._postgres.kill)
            await asyncio.to_thread(self._postgres.start)
        else:
            await self._processes.kill(target)
            {"haproxy": self._start_proxy, "redis": self._start_redis}.get(
                target, lambda: self._start_graphmem(target)
            )()

    async def begin_move(self, findings: Findings) -> Check | None:
        """Begin to move a tenant to the graph in which it does not live; return what must hold afterwards."""
        assert self._mover is not None
        return await self._mover.begin(findings)

    @property
    def notes(self) -> dict[str, str]:
        """What else is reported."""
        return {"moves of a tenant between the graphs": str(self._mover)}

    @asynccontextmanager
    async def open_graphs(self) -> AsyncIterator[list[Graph]]:
        """Open a connection to each database."""
        graphs = [Graph(info.uri, info.user, info.password) for info in self._neo4j.values()]
        async with AsyncExitStack() as opened:
            for graph in graphs:
                opened.push_async_callback(graph.close)
            yield graphs

    async def stop(self) -> None:
        """End every process."""
        await self._processes.stop_all()
        await asyncio.to_thread(self._postgres.stop)
        for name in self._neo4j_ports:
            await stop_server(self._folder / name)

    async def _make_tenants(self) -> None:
        """Make a tenant in the second graph, and one that will move, each with a key of an admin."""
        placed, moved = [await self._create_key(tenant) for tenant in (PLACED_TENANT, MOVED_TENANT)]
        self.keys += [placed, moved]
        findings = Findings()
        check = await MovingTenant(self.address, placed, [HOME_GRAPH, SECOND_GRAPH]).begin(findings)
        if wrong := [*await check(), *findings.kinds]:
            raise RuntimeError(f"The tenant {PLACED_TENANT!r} cannot be placed in the second graph: {wrong}.")
        self._mover = MovingTenant(self.address, moved, [HOME_GRAPH, SECOND_GRAPH])

    async def _create_key(self, tenant: str) -> str:
        """Create a key by the command line, as on a machine of the installation: only it does so for other tenants."""
        command = ["keys", "create", "storm", "--role", "admin", "--tenant", tenant, "--only-key"]
        return (await self._processes.run_graphmem(command, self._environment("command"))).strip()

    async def _start_neo4j(self, name: str) -> None:
        """Start a Neo4j, or wait until its supervisor, which outlives the kill, has started it again."""
        base = Settings()
        server = await EmbeddedNeo4j.start_or_join(
            self._folder / name,
            base.cache_dir,
            bolt_port=self._neo4j_ports[name],
            mirror=base.jar_mirror,
            detached=True,
        )
        await server.stop()  # it runs on, as a server of its own machine would
        self._neo4j[name] = server.info

    def _start_redis(self) -> None:
        options = ["--port", str(self._redis_port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self._folder)]
        self._processes.start("redis", [self._redis, *options])

    def _start_proxy(self) -> None:
        self._processes.start("haproxy", [self._proxy, "-db", "-f", str(self._folder / "haproxy.cfg")])

    def _start_graphmem(self, name: str) -> None:
        command = ["serve", "--no-worker"] if name.startswith("api") else ["worker"]
        arguments = [*command, "--port", str(self._ports[name])]
        self._processes.start_graphmem(name, arguments, self._environment(name))

    def _environment(self, name: str) -> dict[str, str]:
        """Return the environment of a process, as a release of the chart with these values has it."""
        home, second = self._neo4j["neo4j-1"], self._neo4j["neo4j-2"]
        return chart_environment(
            self._folder / "secrets",
            settings={
                "GRAPHMEM_NEO4J_URI": home.uri,
                "OPENAI_BASE_URL": self._model_address,
                "GRAPHMEM_LLM_OUTPUT": "native",
            },
            secrets={
                "GRAPHMEM_NEO4J_PASSWORD": home.password,
                "GRAPHMEM_PLACEMENTS": json.dumps({SECOND_GRAPH: {"uri": second.uri, "password": second.password}}),
                "GRAPHMEM_JOBS_URL": self._postgres.url,
                "GRAPHMEM_CACHE_URL": f"redis://127.0.0.1:{self._redis_port}",
                "GRAPHMEM_ADMIN_KEY": self.key,
                "GRAPHMEM_RECEIPT_KEY": self.key,
                "OPENAI_API_KEY": "key",
            },
            image={"GRAPHMEM_DATA_DIR": str(self._folder / name)},
        )


class MovingTenant:
    """A tenant, by the key of one of its admins, that moves to the next of the graphs at each `begin`."""

    def __init__(self, address: str, key: str, graphs: list[str]) -> None:
        self._address = address
        self._key = key
        self._graphs = graphs
        self._ended: Counter[str] = Counter()

    def __str__(self) -> str:
        return ", ".join(f"{count} {how}" for how, count in sorted(self._ended.items())) or "none"

    async def begin(self, findings: Findings) -> Check:
        """Queue a move and return its check: it has ended, and the tenant lives where that says."""
        client = PersistentClient(self._address, self._key, findings)
        source = (await self._read_placement(client))["graph"]
        target = self._graphs[(self._graphs.index(source) + 1) % len(self._graphs)]
        # 409: a try whose answer was lost has queued the move, and it has ended already.
        await client.send("POST", PLACEMENTS, {"graph": target}, accept=(409,))

        async def check() -> list[str]:
            try:
                job_id = (await self._read_placement(client))["job_id"]
                job = await Teller(client).wait_until_final(f"/v1/jobs/{job_id}")
                is_given_up = job["status"] == "failed" and TOO_BUSY in (job["error"] or "")
                self._ended["given up because too much was written" if is_given_up else job["status"]] += 1
                if not is_given_up and job["status"] != "succeeded":
                    return [f"move to {target} {job['status']}: {job['error']}"]
                expected, found = source if is_given_up else target, (await self._read_placement(client))["graph"]
                return [] if found == expected else [f"placed in {found} instead of {expected}"]
            finally:
                await client.close()

        return check

    async def _read_placement(self, client: PersistentClient) -> dict[str, Any]:
        tenants: list[dict[str, Any]] = (await client.send("GET", PLACEMENTS)).json()["tenants"]
        return tenants[0]


def chart_environment(
    folder: Path, settings: Mapping[str, str], secrets: Mapping[str, str], image: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of a process: settings, the chart's own values among them, and the paths of secrets.

    The secrets are written to files of `folder`. Raises ValueError for a variable that the chart does not pass on, and
    where one is missing that it requires.
    """
    table = read_table()
    settings = {**_values_of_chart(), **settings}
    for given, known in ((settings, table.settings_of("chart")), (secrets, table.secrets_of("chart"))):
        if unknown := given.keys() - known.keys():
            raise ValueError(f"The chart does not pass on {', '.join(sorted(unknown))}: see deploy/settings.yaml.")
        required = {name for name, row in known.items() if row.required}
        if missing := required - given.keys():
            raise ValueError(f"The chart requires {', '.join(sorted(missing))}: see deploy/settings.yaml.")
    if unknown := image.keys() - (IMAGE_VARIABLES & {*table.not_passed}):
        raise ValueError(f"The image does not set {', '.join(sorted(unknown))}: see deploy/settings.yaml.")
    return base_environment(**settings, **image, **_write_secrets(folder, secrets))


def _values_of_chart() -> dict[str, str]:
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    return {name: str(value) for name, value in values["settings"].items()}


def _write_secrets(folder: Path, secrets: Mapping[str, str]) -> dict[str, str]:
    """Write each secret to its file, and return the variables that name the files."""
    folder.mkdir(exist_ok=True)
    for name, value in secrets.items():
        (folder / file_name(name)).write_text(value, "utf-8")
    return {f"{name}_FILE": str(folder / file_name(name)) for name in secrets}


async def _reaches_graphs(client: httpx.AsyncClient, address: str) -> bool:
    """Return whether a process reaches every graph; a worker, which says nothing about it, is taken to."""
    try:
        response = await client.get(f"{address}{PLACEMENTS}")
    except httpx.HTTPError:
        return False
    if response.status_code == 404:
        return True
    return response.is_success and all(graph["status"] == "ok" for graph in response.json()["graphs"])


def _names(kind: str, count: int) -> list[str]:
    return [f"{kind}-{number}" for number in range(1, count + 1)]


@asynccontextmanager
async def clustered(folder: Path, model_address: str) -> AsyncIterator[Cluster]:
    """Start an installation in an empty folder, and stop it at the end; raise RuntimeError without its programs."""
    binaries, proxy, redis = find_postgres(), shutil.which("haproxy"), shutil.which("redis-server")
    if binaries is None or proxy is None or redis is None:
        raise RuntimeError("A cluster needs Postgres, HAProxy and Redis: install postgresql, haproxy and redis-server.")
    cluster = Cluster(folder, model_address, make_postgres(binaries, folder), proxy, redis)
    try:
        await cluster.start()
        yield cluster
    finally:
        await cluster.stop()
