"""An installation of several machines on this one: HAProxy, APIs, workers, Neo4j, Postgres and Redis, all killable."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from graphmem.neo4j.driver import Graph
from graphmem.neo4j.embedded.server import EmbeddedNeo4j, stop_server
from graphmem.runtime.settings import Settings
from tests.jobs.conftest import PostgresServer, find_postgres, free_port
from torture.deployment import make_postgres
from torture.processes import Processes, base_environment, wait_until_ready

APIS, WORKERS = 3, 3
"""Processes of each kind."""

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
    default-server inter 500ms fastinter 200ms fall 2 rise 1
frontend graphmem
    bind 127.0.0.1:{port}
    default_backend apis
backend apis
    balance roundrobin
    option httpchk GET /readyz
{servers}
"""
"""Requests go to the APIs in turn; one whose connection is refused goes to the next."""


class Cluster:
    """The processes of one installation, each with a data folder of its own, as on machines of their own."""

    def __init__(self, folder: Path, model_address: str, postgres: PostgresServer, proxy: str, redis: str) -> None:
        self.key = secrets.token_hex(16)
        self._folder = folder
        self._postgres, self._proxy, self._redis = postgres, proxy, redis
        self._proxy_port, self._redis_port, self._neo4j_port = free_port(), free_port(), free_port()
        self._ports = {name: free_port() for name in (*_names("api", APIS), *_names("worker", WORKERS))}
        self._processes = Processes(folder)
        self._model_address = model_address
        self._neo4j: EmbeddedNeo4j | None = None

    @property
    def targets(self) -> list[str]:
        """What can be killed."""
        return [*self._ports, "haproxy", "redis", "postgres", "neo4j"]

    @property
    def address(self) -> str:
        """The address of the proxy."""
        return f"http://127.0.0.1:{self._proxy_port}"

    async def start(self) -> None:
        """Start everything and wait until it is ready."""
        await asyncio.to_thread(self._postgres.start)
        self._start_redis()
        await self._start_neo4j()
        servers = [
            f"    server {name} 127.0.0.1:{port} check" for name, port in self._ports.items() if name.startswith("api")
        ]
        configuration = PROXY.format(port=self._proxy_port, servers="\n".join(servers))
        (self._folder / "haproxy.cfg").write_text(configuration, "utf-8")
        self._start_proxy()
        await self.scale(APIS, WORKERS)

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
        """Return the seconds until every API, every worker and the proxy are ready; raise TimeoutError."""
        running = [f"http://127.0.0.1:{port}" for name, port in self._ports.items() if self._processes.is_running(name)]
        return await wait_until_ready(*running, self.address)

    async def kill(self, target: str) -> None:
        """Kill a process by SIGKILL, and start it again as whoever runs it would."""
        if target == "neo4j":
            assert self._neo4j is not None
            os.kill(self._neo4j.info.pid, signal.SIGKILL)
            await self._start_neo4j()
        elif target == "postgres":
            await asyncio.to_thread(self._postgres.kill)
            await asyncio.to_thread(self._postgres.start)
        else:
            await self._processes.kill(target)
            {"haproxy": self._start_proxy, "redis": self._start_redis}.get(
                target, lambda: self._start_graphmem(target)
            )()

    @asynccontextmanager
    async def open_graph(self) -> AsyncIterator[Graph]:
        """Open a connection to the database."""
        assert self._neo4j is not None
        info = self._neo4j.info
        graph = Graph(info.uri, info.user, info.password)
        try:
            yield graph
        finally:
            await graph.close()

    async def stop(self) -> None:
        """End every process."""
        await self._processes.stop_all()
        await asyncio.to_thread(self._postgres.stop)
        await stop_server(self._neo4j_folder)

    @property
    def _neo4j_folder(self) -> Path:
        return self._folder / "neo4j"

    async def _start_neo4j(self) -> None:
        base = Settings()
        self._neo4j = await EmbeddedNeo4j.start_or_join(
            self._neo4j_folder, base.cache_dir, bolt_port=self._neo4j_port, mirror=base.jar_mirror, detached=True
        )

    def _start_redis(self) -> None:
        options = ["--port", str(self._redis_port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self._folder)]
        self._processes.start("redis", [self._redis, *options])

    def _start_proxy(self) -> None:
        self._processes.start("haproxy", [self._proxy, "-db", "-f", str(self._folder / "haproxy.cfg")])

    def _start_graphmem(self, name: str) -> None:
        assert self._neo4j is not None
        command = ["serve", "--no-worker"] if name.startswith("api") else ["worker"]
        environment = base_environment(
            GRAPHMEM_DATA_DIR=str(self._folder / name),
            GRAPHMEM_NEO4J_URI=self._neo4j.info.uri,
            GRAPHMEM_NEO4J_PASSWORD=self._neo4j.info.password,
            GRAPHMEM_JOBS_URL=self._postgres.url,
            GRAPHMEM_CACHE_URL=f"redis://127.0.0.1:{self._redis_port}",
            GRAPHMEM_API_KEY=self.key,
            GRAPHMEM_RECEIPT_KEY=self.key,
            GRAPHMEM_NIGHTLY="false",
            OPENAI_API_KEY="key",
            OPENAI_BASE_URL=self._model_address,
            GRAPHMEM_LLM_OUTPUT="native",
        )
        self._processes.start_graphmem(name, [*command, "--port", str(self._ports[name])], environment)


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
