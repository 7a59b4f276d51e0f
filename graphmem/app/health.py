"""Service health: readiness, warm-up requests after a start, the sweep of unfinished work, and storage size."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from graphmem.context.models import ContextRequest
from graphmem.context.service import ContextService
from graphmem.conversations.session import MessagesIn
from graphmem.ingestion.service import MessageService
from graphmem.jobs.job import Job
from graphmem.jobs.runner import JobRunner
from graphmem.memories.entity import EntityIn
from graphmem.memories.memory import MemoryIn
from graphmem.memories.service import MemoryService
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.placed_graph import use_graph, use_tenant
from graphmem.runtime.errors import DatabaseUnavailable, JobStoreUnavailable, Unavailable
from graphmem.runtime.files import free_bytes, to_megabytes
from graphmem.runtime.metrics import MEMORY_SIZE_BYTES
from graphmem.runtime.settings import HOME_GRAPH, Settings
from graphmem.tenants.owners import Owner
from graphmem.tenants.users import UserStore
from graphmem.user_data.forget import ForgetService

TIMEOUT_SECONDS = 1.7
"""Seconds within which each dependency must answer."""

OTHER_SECONDS = 0.2
"""Seconds within which each graph besides the home graph must answer to be reported as available."""

WRITE_CHECK_SECONDS = 5.0
"""Seconds for which a successful write proves that Neo4j accepts writes."""

WARM_UP_SECONDS = 60.0
"""Seconds after which a service is ready even if it has not warmed up."""

log = logging.getLogger(__name__)


class ReadinessCheck:
    """Checks Neo4j, the job store, and the data folder's disk if anything is stored there.

    Graphs besides the home graph are reported, but do not affect readiness: tenants of the other graphs are served.
    """

    def __init__(self, graph: Graph, jobs: JobRunner, settings: Settings, others: Mapping[str, Graph]) -> None:
        self._graph = graph
        self._others = others
        self._jobs = jobs
        self._data_dir = settings.data_dir if settings.uses_data_dir else None
        self._min_free_mb = settings.min_free_disk_mb
        self._last_write: float | None = None
        self._job_list: asyncio.Task[list[Job]] | None = None
        self._warm_from = 0.0

    @contextmanager
    def warming_up(self) -> Iterator[None]:
        """Return a context manager during which the service is not ready, for `WARM_UP_SECONDS` at most.

        On a busy machine, first requests take too long until Neo4j has planned the queries.
        """
        self._warm_from = time.monotonic() + WARM_UP_SECONDS
        try:
            yield
        finally:
            self._warm_from = 0.0

    async def check(self) -> dict[str, str]:
        """Return `ok` for each dependency; raise Unavailable within two seconds if one is unavailable.

        Also raises Unavailable while the service warms up.
        """
        if time.monotonic() < self._warm_from:
            raise Unavailable("The service has started and warms up: its first requests would take long.")
        self._check_disk()
        results = await asyncio.gather(self._check_graph(), self._check_jobs(), return_exceptions=True)
        for error in filter(None, results):
            raise error
        others = await asyncio.gather(*map(self._check_other, self._others.values()))
        disk = {"disk": "ok"} if self._data_dir else {}
        named = {f"graph {name}": status for name, status in zip(self._others, others, strict=True)}
        return {"neo4j": "ok", "jobs": "ok", **disk, **named}

    async def _check_other(self, graph: Graph) -> str:
        try:
            await graph.check_answering(OTHER_SECONDS)
        except Unavailable:
            return "unavailable"
        return "ok"

    def _check_disk(self) -> None:
        if self._data_dir is None:
            return
        free = to_megabytes(free_bytes(self._data_dir))
        if free < self._min_free_mb:
            log.warning("%s has %d MB free, less than GRAPHMEM_MIN_FREE_DISK_MB", self._data_dir, free)
            raise Unavailable(
                f"The disk of the data folder has {free} MB free, but {self._min_free_mb} MB are required: free disk "
                "space, or lower GRAPHMEM_MIN_FREE_DISK_MB."
            )

    async def _check_graph(self) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await self._graph.check_answering(TIMEOUT_SECONDS)
                now = time.monotonic()
                if self._last_write is None or now - self._last_write > WRITE_CHECK_SECONDS:
                    await self._graph.execute("schema.record_write_check")
                    self._last_write = now
        except TimeoutError as error:
            raise DatabaseUnavailable("Neo4j does not answer in time: check its log.") from error

    async def _check_jobs(self) -> None:
        # One query at a time: otherwise each check of a job store that hangs would occupy another thread.
        if self._job_list is None or self._job_list.done():
            self._job_list = asyncio.create_task(self._jobs.list(limit=1))
        done, _ = await asyncio.wait({self._job_list}, timeout=TIMEOUT_SECONDS)
        if not done:
            raise JobStoreUnavailable("The job store does not answer in time: check that its database runs.")
        await self._job_list


SWEEP_SECONDS = 30.0
"""Seconds between two sweeps."""


async def attempt(task: Callable[[], Awaitable[int]]) -> None:
    """Run a task that may be repeated; log its failure."""
    try:
        await task()
    except Unavailable as error:
        log.warning("a task is not complete: %s", error.detail)
    except Exception:
        log.exception("a task is not complete")


class Sweep:
    """Runs tasks every `seconds` seconds, by default `SWEEP_SECONDS`.

    Each task returns how many things it has done, and may be repeated.
    """

    def __init__(self, *tasks: Callable[[], Awaitable[int]], seconds: float | None = None) -> None:
        self._tasks = tasks
        self._seconds = SWEEP_SECONDS if seconds is None else seconds
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Sweep now and at intervals until `stop`."""
        self._loop = asyncio.create_task(self._run_periodically())

    async def stop(self) -> None:
        """Stop sweeping."""
        if self._loop is not None:
            self._loop.cancel()
            with suppress(asyncio.CancelledError):
                await self._loop

    async def _run_periodically(self) -> None:
        while True:
            for task in self._tasks:
                await attempt(task)
            await asyncio.sleep(self._seconds)


SAMPLE_ROWS = 500
"""Number of messages and facts whose sizes are averaged."""


class StorageMeter:
    """Measures the size of the messages and memories of all users."""

    def __init__(self, graph: Graph, run_everywhere: Callable[[Callable[[], Awaitable[int]]], Awaitable[int]]) -> None:
        self._graph = graph
        self._run_everywhere = run_everywhere

    async def measure(self) -> int:
        """Return the estimated number of bytes in all graphs and set the metric to it."""
        size = await self._run_everywhere(self._estimate)
        MEMORY_SIZE_BYTES.set(size)
        return size

    async def _estimate(self) -> int:
        return int(await self._graph.fetch_value("maintenance.estimate_stored_bytes", sample=SAMPLE_ROWS))


USERS = 3
"""Number of users for whom a context is built."""

REQUEST = ContextRequest(question="Who is the user?")
"""A request that loads the embedding model, has queries planned and reads every index."""


SAMPLE_TENANT = "graphmem-warm-up"
"""Tenant of the sample user who exists while a server warms up."""

SAMPLE_MESSAGES = MessagesIn.model_validate(
    {
        "session_id": "warm-up",
        "messages": [{"role": "user", "content": "I am Ada, and I live in Turin."}],
        "extract": False,
    }
)
SAMPLE_MEMORY = MemoryIn(
    content="Ada lives in Turin", predicate="LIVES_IN", object=EntityIn(name="Turin", type="Place")
)
"""The sample user's message and memory."""


class WarmUp:
    """Makes the first requests after a start, so that no user waits for queries to be planned.

    A message and a memory of a sample user are stored, read and erased, so that writes are planned too. Building
    contexts for existing users changes nothing.
    """

    def __init__(
        self,
        users: UserStore,
        contexts: ContextService,
        messages: MessageService,
        memories: MemoryService,
        forgetting: ForgetService,
    ) -> None:
        self._users = users
        self._contexts = contexts
        self._messages = messages
        self._memories = memories
        self._forgetting = forgetting

    async def run(self) -> int:
        """Build contexts for some users, then write, read and erase a sample user's data; return the users' number."""
        with use_graph(HOME_GRAPH):
            found = await self._users.list_owners(limit=USERS)
        owners = [owner for owner in found if owner.tenant != SAMPLE_TENANT]
        for owner in owners:
            await self.read(owner)
        with use_tenant(SAMPLE_TENANT):
            for left in found if not owners else ():  # by an interrupted start
                await self._forgetting.forget(left)
            await self.use_sample(Owner(SAMPLE_TENANT, str(uuid.uuid4())))
        return len(owners)

    async def read(self, owner: Owner) -> None:
        """Build a context for a user without changing anything."""
        with use_tenant(owner.tenant):
            await self._contexts.build(owner, REQUEST, reinforce=False)

    async def use_sample(self, owner: Owner) -> None:
        """Store, read and erase a new user's data; raise ConfigurationError if users cannot be erased."""
        self._forgetting.check_receipts()
        try:
            await self._messages.add(owner, SAMPLE_MESSAGES)
            await self._memories.save(owner, [SAMPLE_MEMORY])
            for _ in range(2):  # the second one reads active users from memory
                await self._contexts.build(owner, REQUEST)
        finally:
            await self._forgetting.forget(owner)
