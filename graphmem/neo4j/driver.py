"""Named queries in managed transactions, with graphmem's errors; no other module calls the Neo4j driver."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from functools import partial
from typing import Any, LiteralString, TypeVar, cast
from urllib.parse import urlsplit

import neo4j
from cachetools import LRUCache
from neo4j import (
    READ_ACCESS,
    WRITE_ACCESS,
    AsyncDriver,
    AsyncGraphDatabase,
    AsyncManagedTransaction,
    AsyncResult,
    AsyncSession,
    AsyncTransaction,
)
from neo4j.exceptions import (
    AuthError,
    ClientError,
    DatabaseError,
    DriverError,
    ForbiddenOnReadOnlyDatabase,
    IncompleteCommit,
    Neo4jError,
    NotALeader,
    ServiceUnavailable,
    TransientError,
    WriteServiceUnavailable,
)
from neo4j.exceptions import ConfigurationError as DriverConfigurationError
from opentelemetry.trace import Span, SpanKind

from graphmem.models.embedding_models import VectorState
from graphmem.neo4j.availability import Availability, remaining_database_time
from graphmem.neo4j.driver_values import Row, to_neo4j, to_row
from graphmem.neo4j.queries import load_queries
from graphmem.runtime.errors import ConfigurationError, DatabaseUnavailable, GraphmemError, OutcomeUnknown
from graphmem.runtime.tracing import span

MAX_GROUPS = 20_000
"""Number of groups remembered; others are looked up again."""


class AppliedRevisions:
    """The latest revision of each group, by life, whose transaction is known to be fully applied.

    Neo4j applies a transaction index by index before it answers the commit, so another transaction may read the new
    revision before its changes. A cache must therefore read its data for a revision after that revision's transaction
    was applied: once its commit was answered or its lock was released. Earlier transactions are applied too, because
    each one waited for the previous one's lock.
    """

    def __init__(self) -> None:
        self._known: LRUCache[str, tuple[str, int]] = LRUCache(MAX_GROUPS)

    def note(self, group_id: str, life: str, revision: int) -> None:
        """Remember that a revision and all earlier ones are applied."""
        known_life, known = self._known.get(group_id, (life, 0))
        self._known[group_id] = (life, max(revision, known) if known_life == life else revision)

    def include(self, group_id: str, life: str, revision: int) -> bool:
        """Return whether a revision is known to be applied."""
        known_life, known = self._known.get(group_id, ("", 0))
        return known_life == life and revision <= known


_NOT_READY_CODES = ("Neo.TransientError", "Neo.ClientError.Database.DatabaseNotFound")
_READ_ONLY_CODE = "Neo.ClientError.General.WriteOnReadOnlyAccessDatabase"
_FAILED_STORAGE_CODES = ("Neo.DatabaseError.Transaction", "Neo.DatabaseError.Database")

log = logging.getLogger(__name__)


@asynccontextmanager
async def translate_driver_errors() -> AsyncIterator[None]:
    """Raise DatabaseUnavailable if the server cannot be reached or written to, ConfigurationError if it refuses access.

    Raises OutcomeUnknown if the connection was lost between a commit and its answer. Server messages, which may contain
    paths, are logged and never part of an error.
    """
    try:
        yield
    except AuthError as error:
        raise ConfigurationError(
            "Neo4j refused the user name or password: check GRAPHMEM_NEO4J_USER and GRAPHMEM_NEO4J_PASSWORD."
        ) from error
    except DriverConfigurationError as error:
        raise ConfigurationError(f"The address of Neo4j cannot be used: {error}. Check GRAPHMEM_NEO4J_URI.") from error
    except Neo4jError as error:
        if translated := _translate_server_error(error):
            raise translated from error
        raise
    except IncompleteCommit as error:
        raise OutcomeUnknown(
            "The connection to Neo4j was lost during a commit, so the change may be stored: send the request again "
            "with its Idempotency-Key, or check.",
            retry_after=1,
        ) from error
    except WriteServiceUnavailable as error:
        raise DatabaseUnavailable(_NO_WRITES) from error
    except (ServiceUnavailable, OSError) as error:
        raise DatabaseUnavailable("Neo4j cannot be reached: check that it runs, then try again.") from error
    except DriverError as error:
        if isinstance(error.__cause__, WriteServiceUnavailable):
            raise DatabaseUnavailable(_NO_LEADER) from error
        raise DatabaseUnavailable("The connection to Neo4j was lost: try again.") from error


def is_not_ready(error: Neo4jError) -> bool:
    """Return whether a server reports that it is not ready yet."""
    return (error.code or "").startswith(_NOT_READY_CODES)


def _translate_server_error(error: Neo4jError) -> GraphmemError | None:
    """Return the error to raise for a server error; None if the query is at fault."""
    code, message = error.code or "", error.message or ""
    if "No space left on device" in message:
        log.error("Neo4j cannot write: %s", message)
        return DatabaseUnavailable("Neo4j cannot write because its disk is full: free disk space, then try again.")
    if isinstance(error, NotALeader):
        return DatabaseUnavailable(_NO_LEADER)
    if isinstance(error, ForbiddenOnReadOnlyDatabase) or code == _READ_ONLY_CODE:
        return DatabaseUnavailable(_NO_WRITES)
    if code.startswith(_FAILED_STORAGE_CODES):
        log.error("Neo4j failed: %s: %s", code, message)
        return DatabaseUnavailable(
            f"Neo4j failed ({code}), as it does on a full disk: free disk space, restart Neo4j, then try again."
        )
    if isinstance(error, TransientError):
        return DatabaseUnavailable("Neo4j is overloaded or not ready: try again.")
    if is_not_ready(error):
        return DatabaseUnavailable(f"Neo4j is not ready: {code}.")
    return None


_NO_LEADER = "The cluster of Neo4j has no leader that takes writes at the moment: try again."
_NO_WRITES = (
    "This Neo4j takes no writes, because it is read-only or another member of its cluster leads: check its "
    "configuration, and give the address of a cluster as neo4j:// in GRAPHMEM_NEO4J_URI."
)

_ALREADY_EXISTS_CODES = {
    f"Neo.ClientError.Schema.{rule}AlreadyExists" for rule in ("EquivalentSchemaRule", "Index", "Constraint")
}
"""Error codes of a schema statement whose index or constraint already exists."""

_COMMITS_BATCHES = "IN TRANSACTIONS"
"""Part of a statement that commits a subquery's batches one by one."""

MAX_CONNECTIONS = 64
"""Maximum number of connections from one process to Neo4j."""

ACQUISITION_TIMEOUT = 20
"""Seconds to wait for a free connection while the database answers."""

CONNECTION_TIMEOUT = 5
"""Seconds to wait until a connection is established."""

CLOSE_TIMEOUT = 1
"""Seconds to wait until the connections are closed; then they are dropped."""

RETRY_TIMEOUT = 15
"""Seconds for which a transaction is retried after transient errors."""

FOLLOWER_SECONDS = 5.0
"""Seconds that a cluster follower may take for a read; a lagging one waits until it has caught up."""

LEADER_ONLY_SECONDS = 30.0
"""Seconds for which the leader answers all reads after a follower has failed to."""

NONE_HIDDEN_SECONDS = 1.0
"""Seconds for which a process caches that no user is being forgotten, and the state of the vectors."""

SOME_HIDDEN_SECONDS = 0.1
"""Seconds for which a process caches the list of users who are being forgotten."""

STREAM_ROWS = 500
"""Number of rows of a streamed result read at once."""

GROUP_PARAMETERS = frozenset({"group_id", "session_group_id", "group_ids", "of_groups", "owner_groups", "revisions"})
"""Query parameters that name groups: one group, a list, or a list of groups with their revisions."""

T = TypeVar("T")


def _without_hidden(parameters: dict[str, Any], hidden: frozenset[str]) -> dict[str, Any]:
    """Return the parameters without the groups of users who are being erased."""

    def replace(named: Any) -> Any:
        if isinstance(named, str):
            return "" if named in hidden else named
        # Keep the number of groups: some queries take an empty list to mean all groups.
        return [replace(item) for item in named] if isinstance(named, list) else named

    return parameters | {name: replace(parameters[name]) for name in GROUP_PARAMETERS & parameters.keys()}


def _groups_in(parameters: dict[str, Any]) -> set[str]:
    """Return the group ids named by a query's parameters."""
    named = {parameters.get("group_id"), *parameters.get("group_ids", ())}
    return {group_id for group_id in named if group_id}


def _reads_next(vectors: VectorState | None, parameters: dict[str, Any]) -> bool:
    """Return whether a query must read the vectors of the next model.

    A vector computed just before a model switch is matched to its index by its length.
    """
    if vectors is None or vectors.next is None:
        return False
    if "vector" in parameters and vectors.next.dimension != vectors.model.dimension:
        given = parameters["vector"]
        return given is not None and len(given) == vectors.next.dimension
    return vectors.reads_next


def _query_span(name: str) -> AbstractContextManager[Span]:
    return span(f"neo4j {name}", kind=SpanKind.CLIENT, db__system__name="neo4j", db__operation__name=name)


class Transaction:
    """An open transaction that runs catalogue queries by name; data of users in `hidden` is not found."""

    def __init__(
        self,
        inner: AsyncManagedTransaction | AsyncTransaction | AsyncSession,
        hidden: frozenset[str] = frozenset(),
        vectors: VectorState | None = None,
    ) -> None:
        self._inner = inner
        self._hidden = hidden
        self._vectors = vectors
        self._groups: set[str] | None = None
        self.revisions: dict[str, tuple[str, int]] = {}
        """Life and revision of each group that the transaction has locked."""

    @contextmanager
    def collecting_groups(self) -> Iterator[set[str]]:
        """Collect the group ids that the queries of the block write to."""
        self._groups = set()
        try:
            yield self._groups
        finally:
            self._groups = None

    async def run(self, name: str, **parameters: Any) -> list[Row]:
        """Run the query `name` and return its rows; raise TypeError unless the parameters are the declared ones."""
        with _query_span(name):
            return [to_row(record) async for record in await self.start(name, parameters)]

    async def fetch_value(self, name: str, **parameters: Any) -> Any:
        """Run a query with one row and one column and return the value as the driver decodes it.

        Reading many rows collected into one value is several times faster than reading rows. Times are not converted,
        so such a query returns times as numbers.
        """
        with _query_span(name):
            record = await (await self.start(name, parameters)).single(strict=True)
        return record[0]

    async def start(self, name: str, parameters: dict[str, Any]) -> AsyncResult:
        """Run the query `name` and return its result with its rows unread."""
        query = load_queries()[name]
        if parameters.keys() != query.parameters:
            raise TypeError(f"{name} takes {sorted(query.parameters)}, got {sorted(parameters)}")
        if self._groups is not None and query.writes:
            self._groups |= _groups_in(parameters)
        if self._hidden:
            parameters = _without_hidden(parameters, self._hidden)
        text = query.text_on_next if _reads_next(self._vectors, parameters) else query.text
        if isinstance(self._inner, AsyncSession):
            limited = neo4j.Query(text, timeout=remaining_database_time())
            return await self._inner.run(limited, to_neo4j(parameters))
        return await self._inner.run(text, to_neo4j(parameters))

    async def run_text(self, text: str, parameters: dict[str, Any] | None = None) -> list[Row]:
        """Run Cypher that is not in the catalogue, such as a check."""
        result = await self._inner.run(cast("LiteralString", text), parameters or {})
        return [to_row(record) async for record in result]


class StreamTransaction:
    """An open read transaction whose rows are read in chunks, each watched as a separate operation."""

    def __init__(self, inner: AsyncTransaction, availability: Availability, hidden: frozenset[str]) -> None:
        self._inner = Transaction(inner, hidden)
        self._availability = availability

    async def run(self, name: str, **parameters: Any) -> list[Row]:
        """Run the query `name` and return its rows."""
        async with self._availability.watch():
            return await self._inner.run(name, **parameters)

    async def fetch_value(self, name: str, **parameters: Any) -> Any:
        """Run a query with one row and one column and return the value as the driver decodes it."""
        async with self._availability.watch():
            return await self._inner.fetch_value(name, **parameters)

    async def stream(self, name: str, **parameters: Any) -> AsyncIterator[Row]:
        """Run the query `name` and yield its rows as they arrive."""
        async with self._availability.watch():
            result = await self._inner.start(name, parameters)
        while True:
            async with self._availability.watch():
                records = await result.fetch(STREAM_ROWS)
            for record in records:
                yield to_row(record)
            if len(records) < STREAM_ROWS:
                return


class Graph:
    """A Neo4j database, with its connections.

    With a routed address (`neo4j://`), everything goes to the cluster's leader, except the reads of
    `fetch_value_from_any_member`. The driver stores the bookmark of each read and write, so that no member answers
    before it has everything that this process has read and written so far.

    Reads find no data of users whose erasure has begun, because an interrupted erasure leaves some of it behind. Every
    method raises DatabaseUnavailable if the server is unavailable or does not answer, and ConfigurationError if it
    rejects the user name or password. `applied` holds the revisions that this process wrote or waited for.
    """

    def __init__(
        self,
        uri: str,
        user: str,
        password: str,
        database: str = "neo4j",
        *,
        is_running: Callable[[], bool] | None = None,
    ) -> None:
        """Connect on first use; `is_running` returns whether the process of a server on this machine runs."""
        self._open_driver = partial(_open_driver, uri, user, password)
        self._driver = self._open_driver()
        self._availability = Availability(self._probe, partial(find_server, uri, is_running))
        self._database = database
        self._is_routed = urlsplit(uri).scheme.partition("+")[0] == "neo4j"
        self._bookmarks = AsyncGraphDatabase.bookmark_manager() if self._is_routed else None
        self._leader_only_until = 0.0
        self._hidden: frozenset[str] = frozenset()
        self._hidden_until = 0.0
        self._refreshes = 0
        self._vectors: VectorState | None = None
        self.applied = AppliedRevisions()

    async def verify_connectivity(self) -> None:
        """Connect to the server."""
        async with self._operation():
            await self._connect()

    async def check_server(self) -> None:
        """Raise DatabaseUnavailable unless the server is present, even if it answers slowly."""
        await self._availability.check_server()

    async def check_answering(self, seconds: float) -> None:
        """Raise DatabaseUnavailable unless the server answers a query within `seconds` seconds."""
        await self._availability.check_answering(seconds)

    def watch_others(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager for waiting on others' work; it raises as soon as the server stops answering."""
        return self._availability.watch_others()

    async def read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in one read transaction; retry after a transient error."""
        hidden = await self._find_hidden()
        async with self._operation(), self._session() as session:
            return await self._read_in(session, _as_unit_of_work(work, hidden, self._vectors))

    async def write(
        self, work: Callable[[Transaction], Awaitable[T]], *, metadata: Mapping[str, Any] | None = None
    ) -> T:
        """Run `work` in one write transaction; after a transient error, roll back and retry.

        `metadata` is shown by the server while the transaction is open.
        """

        async def run(transaction: Transaction) -> tuple[T, Mapping[str, tuple[str, int]]]:
            return await work(transaction), transaction.revisions

        async with self._operation(), self._session() as session:
            unit = _as_unit_of_work(run, vectors=self._vectors, metadata=metadata)
            result, revisions = await session.execute_write(unit)
        for group_id, (life, revision) in revisions.items():
            self.applied.note(group_id, life, revision)
        return result

    @asynccontextmanager
    async def discarded_transaction(self, timeout: float) -> AsyncIterator[StreamTransaction]:  # noqa: ASYNC109 - the server's
        """Open a write transaction for reading under a lock; it is rolled back at its end and not retried.

        The server ends it after `timeout` seconds, so that its locks do not outlive a process that hangs.
        """
        hidden = await self._find_hidden()
        async with translate_driver_errors(), self._session() as session:
            async with self._availability.watch():
                inner = await session.begin_transaction(timeout=timeout)
            async with inner:
                yield StreamTransaction(inner, self._availability, hidden)
                await inner.rollback()

    async def fetch(self, name: str, **parameters: Any) -> list[Row]:
        """Run one read query and return its rows."""
        return await self._run_auto_commit(lambda transaction: transaction.run(name, **parameters))

    async def fetch_value(self, name: str, **parameters: Any) -> Any:
        """Run one read query with one row and one column and return the value as the driver decodes it."""
        return await self._run_auto_commit(lambda transaction: transaction.fetch_value(name, **parameters))

    async def fetch_value_from_any_member(self, name: str, **parameters: Any) -> Any:
        """Run one read query as `fetch_value` does, on any member of a cluster.

        It sees everything that this process has read or written before, whoever wrote it. Data that must not be older
        than the request therefore needs a read from the leader first, such as that of the group states.
        """
        return await self._run_auto_commit(
            lambda transaction: transaction.fetch_value(name, **parameters), from_any_member=True
        )

    async def _run_auto_commit(self, run: Callable[[Transaction], Awaitable[T]], *, from_any_member: bool = False) -> T:
        """Run one read query without an explicit transaction, which saves two messages.

        After a transient error, it is retried in a transaction. A query that a follower cannot answer, because it lags
        or has not built an index yet, is retried on the leader.
        """
        hidden = await self._find_hidden()
        asks_follower = self._is_routed and from_any_member and time.monotonic() >= self._leader_only_until
        async with translate_driver_errors():
            try:
                async with (
                    asyncio.timeout(FOLLOWER_SECONDS if asks_follower else None),
                    self._availability.watch(),
                    self._session(READ_ACCESS if asks_follower or not self._is_routed else WRITE_ACCESS) as session,
                ):
                    return await run(Transaction(session, hidden, self._vectors))
            except (Neo4jError, DriverError, TimeoutError) as error:
                if asks_follower:
                    log.warning("a member of the cluster does not answer a read, so the leader does: %s", error)
                    self._leader_only_until = time.monotonic() + LEADER_ONLY_SECONDS
                elif isinstance(error, TimeoutError) or not error.is_retryable():
                    raise
                return await self.read(run)

    async def _read_in(self, session: AsyncSession, unit: Callable[[AsyncManagedTransaction], Awaitable[T]]) -> T:
        return await (session.execute_write(unit) if self._is_routed else session.execute_read(unit))

    def _session(self, access: str = WRITE_ACCESS) -> AsyncSession:
        return self._driver.session(
            database=self._database, default_access_mode=access, bookmark_manager=self._bookmarks
        )

    async def _find_hidden(self) -> frozenset[str]:
        """Return the group ids of users who are being forgotten; an empty result is cached for a second."""
        while time.monotonic() >= self._hidden_until:
            refreshes = self._refreshes
            async with self._operation(), self._session() as session:
                rows, states = await self._read_in(session, _as_unit_of_work(_read_database_state))
            if refreshes != self._refreshes:
                continue  # the result may predate the change
            self._vectors = VectorState.from_properties(states[0]["state"]) if states else None
            self._hidden = frozenset(row["group_id"] for row in rows)
            self._hidden_until = time.monotonic() + (SOME_HIDDEN_SECONDS if rows else NONE_HIDDEN_SECONDS)
        return self._hidden

    async def vector_state(self, *, refresh: bool = False) -> VectorState | None:
        """Return which model the vectors belong to, at most a second old, or None for a database without a schema."""
        if refresh:
            self._hidden_until = 0.0
        await self._find_hidden()
        return self._vectors

    def refresh_hidden(self) -> None:
        """Make the next read look up who is being forgotten, after a user was added or removed."""
        self._hidden_until = 0.0
        self._refreshes += 1

    async def execute(self, name: str, **parameters: Any) -> list[Row]:
        """Run one write query in its own transaction and return its rows."""
        return await self.write(lambda transaction: transaction.run(name, **parameters))

    async def execute_repeatable(self, name: str, **parameters: Any) -> list[Row]:
        """Run one idempotent write query; retry if its outcome is unknown."""
        try:
            return await self.execute(name, **parameters)
        except OutcomeUnknown:
            return await self.execute(name, **parameters)

    async def apply_schema(self, statement: str) -> None:
        """Run one migration statement: a schema statement, or a data change that commits its own batches.

        Neo4j requires a transaction without other writes for the former, and no open transaction for the latter. When
        two processes run the same statement at once, one fails despite `IF NOT EXISTS`; that error is ignored.
        """

        async def work(inner: AsyncManagedTransaction | AsyncSession) -> None:
            await (await inner.run(cast("LiteralString", statement))).consume()

        async with self._operation(), self._session() as session:
            try:
                await (work(session) if _COMMITS_BATCHES in statement else session.execute_write(work))
            except ClientError as error:
                if error.code not in _ALREADY_EXISTS_CODES:
                    raise

    async def close(self) -> None:
        """Close every connection."""
        self._availability.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self._driver.close()

    @asynccontextmanager
    async def _operation(self) -> AsyncIterator[None]:
        async with self._availability.watch(), translate_driver_errors():
            yield

    async def _probe(self) -> None:
        async with translate_driver_errors():
            try:
                await self._connect()
            except (ClientError, DatabaseError) as error:  # it is present, unless it has yet to open the database
                if is_not_ready(error):
                    raise

    async def _connect(self) -> None:
        # On a separate connection: none needs to be free in the pool, and the pool never gets back a connection whose
        # check was cancelled. A starting server accepts connections before it opens its database. In a cluster, any
        # member may answer: the cluster is present while it elects a leader, and operations wait for that.
        async with self._open_driver() as driver:
            modes = (READ_ACCESS, WRITE_ACCESS) if self._is_routed else (READ_ACCESS,)
            await _wait_for_one([self._ping(driver, access) for access in modes])

    async def _ping(self, driver: AsyncDriver, access: str) -> None:
        async with driver.session(database=self._database, default_access_mode=access) as session:
            await (await session.run(load_queries()["schema.ping"].text)).consume()


_BOLT_GREETING = bytes.fromhex("6060b017 00080805 00040404 00000000 00000000")
"""First bytes of a Bolt connection: a constant, then versions 5.0 to 5.8 and 4.0 to 4.4; the server picks one."""


async def find_server(uri: str, is_running: Callable[[], bool] | None = None) -> None:
    """Return if a server accepts connections, even if it is too busy to run a query.

    A server is present if its process runs or, if that is unknown, if it answers the Bolt handshake, which needs none
    of its query threads. Raises DatabaseUnavailable if the process does not run, and OSError for a refused connection.
    """
    if is_running is not None and not is_running():
        raise DatabaseUnavailable("The Neo4j process is not running.")
    address = urlsplit(uri)
    encryption = _unverified_context() if "+s" in address.scheme else None
    reader, writer = await asyncio.open_connection(
        address.hostname or "localhost", address.port or 7687, ssl=encryption
    )
    try:
        if is_running is None:
            writer.write(_BOLT_GREETING)
            await reader.readexactly(4)
    except EOFError as error:
        raise ConnectionError("the server closed the connection") from error
    finally:
        writer.transport.abort()


def _unverified_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nothing is sent; the driver verifies its own connections
    return context


async def _wait_for_one(works: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Wait until one of several coroutines succeeds; raise the last error if all fail."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        for number, done in enumerate(asyncio.as_completed(tasks), start=1):
            try:
                return await done
            except (Neo4jError, DriverError, OSError):
                if number == len(tasks):
                    raise
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read_database_state(transaction: Transaction) -> tuple[list[Row], list[Row]]:
    """Return the users who are being forgotten, and the state of the vectors."""
    return await transaction.run("forget.list_begun"), await transaction.run("vectors.get_state")


def _open_driver(uri: str, user: str, password: str) -> AsyncDriver:
    try:
        return AsyncGraphDatabase.driver(
            uri,
            auth=(user, password),
            max_connection_pool_size=MAX_CONNECTIONS,
            connection_acquisition_timeout=ACQUISITION_TIMEOUT,
            connection_timeout=CONNECTION_TIMEOUT,
            max_transaction_retry_time=RETRY_TIMEOUT,
            notifications_min_severity=neo4j.NotificationMinimumSeverity.OFF,
        )
    except (DriverConfigurationError, ValueError) as error:
        raise ConfigurationError(f"The address of Neo4j cannot be used: {error}. Check GRAPHMEM_NEO4J_URI.") from error


def _as_unit_of_work(
    work: Callable[[Transaction], Awaitable[T]],
    hidden: frozenset[str] = frozenset(),
    vectors: VectorState | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Callable[[AsyncManagedTransaction], Awaitable[T]]:
    """Return a transaction function that the server ends when the request's time is up."""

    @neo4j.unit_of_work(metadata=dict(metadata) if metadata else None, timeout=remaining_database_time())
    async def run(inner: AsyncManagedTransaction) -> T:
        return await work(Transaction(inner, hidden, vectors))

    return run
