"""Whether caches may hold what is read of groups for their revisions, whose transactions may not be applied yet."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from contextvars import Context

import structlog

from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.tenant_context import set_tenant
from graphmem.runtime.errors import Unavailable
from graphmem.tenants.owners import Owner
from graphmem.tenants.scopes import GroupState

WAIT_SECONDS = 0.05
"""Seconds for which a read waits until a transaction of another process is applied, which takes milliseconds.

The lock that shows it may meanwhile be that of the next one, which takes as long as its writer.
"""

log = structlog.get_logger(__name__)


class StateSettling:
    """Finds out whether the latest transactions of groups are applied in full (`neo4j.applied`)."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._waits: dict[str, asyncio.Task[None]] = {}

    async def settle(self, states: Sequence[GroupState]) -> tuple[GroupState, ...]:
        """Return states that say which of them are not settled; after a write of another process, wait a moment."""
        unknown = [state for state in states if not self._is_applied(state)]
        if unknown:
            await asyncio.wait([self._wait_for_writer(state.group_id) for state in unknown], timeout=WAIT_SECONDS)
        return tuple(
            state if self._is_applied(state) else state._replace(unsettled=uuid.uuid4().hex) for state in states
        )

    async def close(self) -> None:
        """Stop waiting."""
        waits = [*self._waits.values()]
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)

    def _is_applied(self, state: GroupState) -> bool:
        return self._graph.applied.include(state.group_id, state.life, state.revision)

    def _wait_for_writer(self, group_id: str) -> asyncio.Task[None]:
        """Wait in the background, for as long as it takes; the next reads find what has come of it."""
        if group_id not in self._waits:
            # Not in the context of a request, whose limits end with it.
            wait = asyncio.create_task(self._find_out(Owner.from_group_id(group_id)), context=Context())
            self._waits[group_id] = wait
            wait.add_done_callback(lambda _: self._waits.pop(group_id))
        return self._waits[group_id]

    async def _find_out(self, owner: Owner) -> None:
        set_tenant(owner.tenant)
        try:
            await wait_for_writer(self._graph, owner)
        except Unavailable as error:
            log.info("whether a write is applied is not known yet", reason=error.detail)
        except Exception:  # nobody awaits the result, and without it caches are passed by
            log.exception("whether a write is applied could not be found out")


async def wait_for_writer(graph: Graph, owner: Owner) -> None:
    """Wait until the transaction that holds the lock of a user is applied in full."""

    async def work(transaction: Transaction) -> None:
        for row in await transaction.run("users.wait_for_writer", group_id=owner.group_id):
            transaction.revisions[owner.group_id] = (row["life"], row["revision"])

    await graph.write(work)
