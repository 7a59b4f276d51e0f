"""The one place that speaks Bolt: named queries in managed transactions, with Neo4j's errors told as ours."""

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
    f"Neo.ClientError.Schema.{what}AlreadyExists" for what in ("EquivalentSchemaRule", "Index", "Constraint")
}

Row = dict[str, Any]
T = TypeVar("T")


def _from_neo4j(value: Any) -> Any:
    """Return a driver value with Neo4j's times as Python's."""
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
    """Return a parameter with its times in UTC: the driver's fast extension cannot send times of a named zone."""
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
        """Run the query `name` and return its rows as plain dictionaries."""
        with _query_span(name):
            return [_from_neo4j(record.data()) async for record in await self._run_query(name, parameters)]

    async def stream(self, name: str, **parameters: Any) -> AsyncIterator[Row]:
        """Run the query `name` and yield its rows as they come."""
        async for record in await self._run_query(name, parameters):
            yield _from_neo4j(record.data())

    async def fetch_value(self, name: str, **parameters: Any) -> Any:
        """Run a query of one row and one column and return its value as the driver decoded it: no time among it.

        Many rows collected into one value are read several times faster than as rows.
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
        """Run text of a Cypher file that is not in the catalogue: a migration or a check."""
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
        raise DatabaseUnavailable("Neo4j cannot be reached: see that it runs, then try again.") from error
    except DriverConfigurationError as error:
        raise ConfigurationError(f"The address of Neo4j cannot be used: {error}. Check GRAPHMEM_NEO4J_URI.") from error
    except Neo4jError as error:
        if (error.code or "").startswith(("Neo.TransientError", "Neo.ClientError.Database.DatabaseNotFound")):
            raise DatabaseUnavailable(f"Neo4j is not ready: {error.code}.") from error
        raise
    except DriverError as error:
        raise DatabaseUnavailable("The connection to Neo4j was lost: try again.") from error


class Graph:
    """A Neo4j database; opened and closed by whoever composes the process."""

    def __init__(self, uri: str, user: str, password: str, database: str = "neo4j") -> None:
        try:
            self._driver = AsyncGraphDatabase.driver(
                uri,
                auth=(user, password),
                max_connection_pool_size=64,
                connection_acquisition_timeout=20,
                connection_timeout=5,
                max_transaction_retry_time=15,
                notifications_min_severity=neo4j.NotificationMinimumSeverity.OFF,
            )
        except (DriverConfigurationError, ValueError) as error:
            raise ConfigurationError(
                f"The address of Neo4j cannot be used: {error}. Check GRAPHMEM_NEO4J_URI."
            ) from error
        self._database = database

    async def verify_connectivity(self) -> None:
        """Raise DatabaseUnavailable or ConfigurationError when the server cannot be used."""
        async with _map_errors():
            await self._driver.verify_connectivity()

    async def read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in one read transaction, retried when the server asks for it."""
        async with _map_errors(), self._driver.session(database=self._database) as session:
            return await session.execute_read(lambda inner: work(Transaction(inner)))

    async def write(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `work` in one write transaction: all of it happens or nothing; it may be run again."""
        async with _map_errors(), self._driver.session(database=self._database) as session:
            return await session.execute_write(lambda inner: work(Transaction(inner)))

    @asynccontextmanager
    async def read_transaction(self) -> AsyncIterator[Transaction]:
        """Open a read transaction for what is passed on while it is read; it is not run again."""
        async with (
            _map_errors(),
            self._driver.session(database=self._database, default_access_mode=READ_ACCESS) as session,
            await session.begin_transaction() as inner,
        ):
            yield Transaction(inner)

    async def fetch(self, name: str, **parameters: Any) -> list[Row]:
        """Run one reading query of the catalogue."""
        return await self._run_auto_commit(lambda transaction: transaction.run(name, **parameters))

    async def fetch_value(self, name: str, **parameters: Any) -> Any:
        """Run one reading query of one row and one column and return its value as the driver decoded it."""
        return await self._run_auto_commit(lambda transaction: transaction.fetch_value(name, **parameters))

    async def _run_auto_commit(self, run: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run one reading query without a transaction around it, which spares two messages.

        Where the connection is lost it is tried again with one.
        """
        async with _map_errors():
            try:
                async with self._driver.session(database=self._database, default_access_mode=READ_ACCESS) as session:
                    return await run(Transaction(session))
            except (ServiceUnavailable, SessionExpired, TransientError):
                return await self.read(run)

    async def execute(self, name: str, **parameters: Any) -> list[Row]:
        """Run one writing query of the catalogue in a transaction of its own."""
        return await self.write(lambda transaction: transaction.run(name, **parameters))

    async def apply_schema(self, statement: str) -> None:
        """Run one schema statement, which Neo4j wants in a transaction without writes.

        `IF NOT EXISTS` does not hold between two that run at once: the slower one finds it done all the same.
        """

        async def work(inner: AsyncManagedTransaction) -> None:
            await (await inner.run(statement)).consume()

        async with _map_errors(), self._driver.session(database=self._database) as session:
            try:
                await session.execute_write(work)
            except ClientError as error:
                if error.code not in _ALREADY_EXISTS_CODES:
                    raise

    async def close(self) -> None:
        """Close every connection."""
        await self._driver.close()
