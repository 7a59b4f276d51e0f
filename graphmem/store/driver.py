"""The only module that uses the Neo4j driver: named queries in managed transactions, with errors of graphmem."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import neo4j
from neo4j import READ_ACCESS, AsyncGraphDatabase, AsyncManagedTransaction, AsyncResult, AsyncSession, AsyncTransaction
from neo4j.exceptions import (
    AuthError,
    ClientError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
    TransientError,
)
from neo4j.exceptions import (
    ConfigurationError as DriverConfigurationError,
)
from neo4j.time import DateTime
from opentelemetry.trace import Span, SpanKind

from graphmem.errors import ConfigurationError, DatabaseUnavailable
from graphmem.store.queries import load_queries
from graphmem.tracing import span

_ALREADY_EXISTS_CODES = {
    f"Neo.ClientError.Schema.{rule}AlreadyExists" for rule in ("EquivalentSchemaRule", "Index", "Constraint")
}
"""Error codes of a schema statement whose index or constraint exists."""

_COMMITS_BATCHES = "IN TRANSACTIONS"
"""What a statement contains that commits the batches of a subquery one by one."""

MAX_CONNECTIONS = 64
"""Connections of one process to Neo4j."""

ACQUISITION_TIMEOUT = 20
"""Seconds to wait for a free connection."""

CONNECTION_TIMEOUT = 5
"""Seconds to wait until a connection is established."""

RETRY_TIMEOUT = 15
"""Seconds for which a transaction is retried after transient errors."""

Row = dict[str, Any]
"""One row of a query result, or of a list that a query receives."""
T = TypeVar("T")


def _from_neo4j(value: Any) -> Any:
    """Return a value from the driver with Neo4j's times as Python's."""
    if isinstance(value, DateTime):
        return value.to_native().astimezone(UTC)
    if isinstance(value, dict):
        return {key: _from_neo4j(item) for key, item in value.items()}
    if isinstance(value, list):
        if value and isinstance(value[0], float):
            return value
        return [_from_neo4j(item) for item in value]
    return value


def _to_neo4j(value: Any) -> Any:
    """Return a parameter with its times in UTC; neo4j-rust-ext cannot send times of a named zone."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, dict):
        return {key: _to_neo4j(item) for key, item in value.items()}
    if isinstance(value, list):
        return value if value and isinstance(value[0], float | str) else [_to_neo4j(item) for item in value]
    return value


def _query_span(name: str) -> AbstractContextManager[Span]:
    return span(f"neo4j {name}", kind=SpanKind.CLIENT, db__system__name="neo4j", db__operation__name=name)


class Transaction:
    """An open transaction that runs queries of the catalogue by name."""

    def __init__(self, inner: AsyncManagedTransaction | AsyncTransaction | AsyncSession) -> None:
        self._inner = inner

    async def run(self, name: str, **parameters: Any) -> list[Row]:
        """Run the query `name` and return its rows; raise TypeError when the parameters are not those it declares."""
        with _query_span(name):
            return [_from_neo4j(record.data()) async for record in await self._run_query(name, parameters)]

    async def stream(self, name: str, **parameters: Any) -> AsyncIterator[Row]:
        """Run the query `name` and yield its rows as they arrive."""
        async for record in await self._run_query(name, parameters):
            yield _from_neo4j(record.data())

    async def fetch_value(self, name: str, **parameters: Any) -> Any:
        """Run a query with one row and one column and return the value as the driver decodes it.

        Reading many rows collected into one value is several times faster than reading rows. Times in it are not
        converted, so such a query returns times as numbers.
        """
        with _query_span(name):
            record = await (await self._run_query(name, parameters)).single(strict=True)
        return record[0]

    async def _run_query(self, name: str, parameters: dict[str, Any]) -> AsyncResult:
        query = load_queries()[name]
        if parameters.keys() != query.parameters:
            raise TypeError(f"{name} takes {sorted(query.parameters)}, got {sorted(parameters)}")
        return await self._inner.run(query.text, _to_neo4j(parameters))

    async def run_text(self, text: str, parameters: dict[str, Any] | None = None) -> list[Row]:
        """Run Cypher that is not in the catalogue, such as a check."""
        result = await self._inner.run(text, parameters or {})
        return [_from_neo4j(record.data()) async for record in result]


@asynccontextmanager
async def _map_errors() -> AsyncIterator[None]:
    try:
        yield
    except AuthError as error:
        raise ConfigurationError(
            "Neo4j refused the user name or password: check GRAPHMEM_NEO4J_USER and GRAPHMEM_NEO4J_PASSWORD."
        ) from error
    except (ServiceUnavailable, TransientError, OSError) as error:
        raise DatabaseUnavailable("Neo4j cannot be reached: check that it runs, then try again.") from error
    except DriverConfigurationError as error:
        raise ConfigurationError(f"The address of Neo4j cannot be used: {error}. Check GRAPHMEM_NEO4J_URI.") from error
    except Neo4jError as error:
        if (error.code or "").startswith(("Neo.TransientError", "Neo.ClientError.Database.DatabaseNotFound")):
            raise DatabaseUnavailable(f"Neo4j is not ready: {error.code}.") from error
        raise
    except DriverError as error:
        raise DatabaseUnavailable("The connection to Neo4j was lost: try again.") from error


class Graph:
    """A Neo4j database, with its connections.

    Every method raises DatabaseUnavailable when the server is unavailable, and ConfigurationError when it refuses the
    user name or the password.
    """

    def __init__(self, uri: str, user: str, password: str, database: str = "neo4j") -> None:
        try:
            self._driver = AsyncGraphDatabase.driver(
                uri,
                auth=(user, password),
                max_connection_pool_size=MAX_CONNECTIONS,
                connection_acquisition_timeout=ACQUISITION_TIMEOUT,
                connection_timeout=CONNECTION_TIMEOUT,
                max_transaction_retry_time=RETRY_TIMEOUT,
                notifications_min_severity=neo4j.NotificationMinimumSeverity.OFF,
            )
        except (DriverConfigurationError, ValueError) as error:
            raise ConfigurationError(
                f"The address of Neo4j cannot be used: {error}. Check GRAPHMEM_NEO4J_URI."
            ) from error
        self._database = database

    async def verify_connectivity(self) -> None:
        """Connect to the server."""
        async with _map_errors():
            await self._driver.verify_connectivity()

    async def read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in one read transaction; after a transient error it runs again."""
        async with _map_errors(), self._driver.session(database=self._database) as session:
            return await session.execute_read(lambda inner: work(Transaction(inner)))

    async def write(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in one write transaction; after a transient error it is rolled back and runs again."""
        async with _map_errors(), self._driver.session(database=self._database) as session:
            return await session.execute_write(lambda inner: work(Transaction(inner)))

    @asynccontextmanager
    async def read_transaction(self) -> AsyncIterator[Transaction]:
        """Open a read transaction for results that are streamed; it is not retried."""
        async with (
            _map_errors(),
            self._driver.session(database=self._database, default_access_mode=READ_ACCESS) as session,
            await session.begin_transaction() as inner,
        ):
            yield Transaction(inner)

    async def fetch(self, name: str, **parameters: Any) -> list[Row]:
        """Run one read query and return its rows."""
        return await self._run_auto_commit(lambda transaction: transaction.run(name, **parameters))

    async def fetch_value(self, name: str, **parameters: Any) -> Any:
        """Run one read query with one row and one column and return the value as the driver decodes it."""
        return await self._run_auto_commit(lambda transaction: transaction.fetch_value(name, **parameters))

    async def _run_auto_commit(self, run: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run one read query without an explicit transaction, which saves two messages.

        After a transient error it runs again in a transaction.
        """
        async with _map_errors():
            try:
                async with self._driver.session(database=self._database, default_access_mode=READ_ACCESS) as session:
                    return await run(Transaction(session))
            except (ServiceUnavailable, SessionExpired, TransientError):
                return await self.read(run)

    async def execute(self, name: str, **parameters: Any) -> list[Row]:
        """Run one write query in its own transaction and return its rows."""
        return await self.write(lambda transaction: transaction.run(name, **parameters))

    async def apply_schema(self, statement: str) -> None:
        """Run one statement of a migration: a schema statement, or a change of data that commits its own batches.

        Neo4j requires a transaction without other writes for the former, and no open transaction for the latter. When
        two processes run the same statement at once, one fails despite `IF NOT EXISTS`; that error is ignored.
        """

        async def work(inner: AsyncManagedTransaction | AsyncSession) -> None:
            await (await inner.run(statement)).consume()

        async with _map_errors(), self._driver.session(database=self._database) as session:
            try:
                await (work(session) if _COMMITS_BATCHES in statement else session.execute_write(work))
            except ClientError as error:
                if error.code not in _ALREADY_EXISTS_CODES:
                    raise

    async def close(self) -> None:
        """Close every connection."""
        await self._driver.close()
