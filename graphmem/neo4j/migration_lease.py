"""The lease of migrations: which process migrates a database, one at a time.

Neo4j runs each schema statement in a transaction of its own, so no lock lasts for a whole migration. Instead, a node of
the database names the process that migrates and the time until which the others wait for it. The process extends that
time while it works; when it is killed, another one takes over once the time has passed. All times are the server's.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import DatabaseUnavailable, GraphmemError
from graphmem.runtime.files import cypher_root

LEASE_SECONDS = 30.0
"""Seconds after its last extension for which a lease holds: as long the others wait for a process that was killed."""

EXTENSIONS_PER_LEASE = 3
"""How often a lease is extended in the time for which it holds."""

POLL_SECONDS = 1.0
"""Seconds between two looks at whether the lease of another process has ended."""

log = logging.getLogger(__name__)


class LeaseLost(Exception):
    """Another process has taken over, because this one could not extend its lease in time; `migrate` begins again."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A lease that was not given back.

    Its process brings the database to schema version `version`, with which processes of version `compatible_with` and
    later work. `is_held` says whether its time has yet to pass.
    """

    version: int
    compatible_with: int
    is_held: bool


async def read_lease(transaction: Transaction) -> LeaseRecord | None:
    """Return the lease of whoever migrates the database, or was killed while it did, or None."""
    rows = await transaction.run("schema.get_migration_lease")
    return LeaseRecord(**rows[0]) if rows else None


class MigrationLease:
    """The lease of one process on one database, for `seconds` at a time."""

    def __init__(self, graph: Graph, seconds: float = LEASE_SECONDS) -> None:
        self._graph = graph
        self._seconds = seconds
        self._holder = uuid.uuid4().hex
        self._extended_at = 0.0

    async def take(self, version: int, compatible_with: int) -> bool:
        """Take the lease to migrate to a schema version; return whether this process has it now."""
        statement = (cypher_root() / "admin" / "lease_migrations.cypher").read_text(encoding="utf-8")
        await self._graph.apply_schema(statement)
        asked_at = time.monotonic()
        rows = await self._graph.execute(
            "schema.take_migration_lease",
            holder=self._holder,
            version=version,
            compatible_with=compatible_with,
            seconds=self._seconds,
        )
        self._extended_at = asked_at
        return bool(rows)

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Extend the lease while the block lasts, and give it back at its end."""
        extensions = asyncio.create_task(self._extend_repeatedly())
        try:
            yield
        finally:
            extensions.cancel()
            with suppress(DatabaseUnavailable):  # it ends by itself then
                await self._graph.execute("schema.release_migration_lease", holder=self._holder)

    async def confirm(self) -> None:
        """Raise LeaseLost unless the lease is this process's for some time to come; call it before each step."""
        if time.monotonic() - self._extended_at > self._seconds / EXTENSIONS_PER_LEASE:
            await self._extend()

    async def wait_for_others(self) -> None:
        """Wait until no other process has the lease."""
        while (lease := await self._graph.read(read_lease)) and lease.is_held:  # noqa: ASYNC110 - the graph does not call
            await asyncio.sleep(POLL_SECONDS)

    async def _extend(self) -> None:
        asked_at = time.monotonic()
        if not await self._graph.execute("schema.extend_migration_lease", holder=self._holder, seconds=self._seconds):
            raise LeaseLost
        self._extended_at = asked_at

    async def _extend_repeatedly(self) -> None:
        while True:
            await asyncio.sleep(self._seconds / EXTENSIONS_PER_LEASE)
            try:
                await self._extend()
            except LeaseLost:
                return  # the next step of the migration finds out
            except GraphmemError as error:
                log.warning("The lease of the migration could not be extended: %s", error.detail)
