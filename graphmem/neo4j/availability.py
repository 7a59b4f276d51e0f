"""Whether the database answers, and how long its work for one request may take.

An operation that waits may be slow, or its database may be gone. Therefore the database is asked, on a connection of
its own, once an operation has waited for it. It is gone if it does not answer and nothing shows that it is there; then
every waiting operation fails, and so does every new one at once, until the database answers again. A database that is
there but slow, such as one that has just been started on a busy machine, gets `SLOW_SECONDS`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass

from graphmem.runtime.errors import DatabaseUnavailable, GraphmemError

PATIENCE_SECONDS = 1.5
"""Seconds that an operation waits before the database is asked whether it answers, and between two such questions."""

PROBE_SECONDS = 3.0
"""Seconds in which the database must answer the question."""

RECHECK_SECONDS = 0.5
"""Seconds between two questions to a database that has not answered."""

PROGRESS_SECONDS = 1.5
"""Seconds for which the success of an operation shows that the database answers."""

SLOW_SECONDS = 30.0
"""Seconds for which a database that is there may answer nothing before it is taken for one that is gone."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _TimeBudget:
    """How long the database may work for a request: the time in which at least one of its operations runs."""

    limit: float
    used: float = 0.0
    running: int = 0
    since: float = 0.0

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self.limit - self.used - (time.monotonic() - self.since if self.running else 0.0)

    @contextmanager
    def spend(self) -> Iterator[None]:
        """Count the time of the block, and time in which several blocks run once."""
        if not self.running:
            self.since = time.monotonic()
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            if not self.running:
                self.used += time.monotonic() - self.since


_budget: ContextVar[_TimeBudget | None] = ContextVar("database_time_budget", default=None)


@contextmanager
def limit_database_time(seconds: float) -> Iterator[None]:
    """Let the database work of the block, and of the tasks it starts, take up to `seconds` seconds in all.

    What the block does besides, such as calls of a model, does not count; operations that run at once count once.
    Beyond the limit operations raise DatabaseUnavailable.
    """
    token = _budget.set(_TimeBudget(seconds))
    try:
        yield
    finally:
        _budget.reset(token)


def remaining_database_time() -> float | None:
    """Return the seconds of database work that the current request has left; None without a limit."""
    budget = _budget.get()
    return max(budget.left, 0.001) if budget else None


class Availability:
    """Watches the operations on one database.

    `ask` returns when the database answers a query, and `find` when its server is there, however slow it may be; both
    raise otherwise. Operations fail within `PATIENCE_SECONDS + PROBE_SECONDS` when the server is gone.
    """

    def __init__(self, ask: Callable[[], Awaitable[None]], find: Callable[[], Awaitable[None]]) -> None:
        self._ask = ask
        self._find = find
        self._is_silent = False
        self._waiting: set[asyncio.Timeout] = set()
        self._checks: asyncio.Task[None] | None = None
        self._succeeded_at = -PROGRESS_SECONDS

    async def check_server(self) -> None:
        """Raise DatabaseUnavailable unless the server is there; its answers may be slow."""
        if self._is_silent or not await _succeeds(self._find):
            raise _silent_error()

    async def check_answering(self, seconds: float) -> None:
        """Raise DatabaseUnavailable unless the database answers a query within `seconds` seconds."""
        if self._is_silent or not await _succeeds(self._ask, seconds):
            raise _silent_error()

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Run one operation; raise DatabaseUnavailable when the database is silent or the time of the request is up."""
        if self._is_silent:
            raise _silent_error()
        budget = _budget.get()
        try:
            with budget.spend() if budget else nullcontext():
                async with asyncio.timeout(budget.left if budget else None) as timeout:
                    with self._checks_while_waiting(timeout):
                        yield
                        self._succeeded_at = asyncio.get_running_loop().time()
        except TimeoutError as error:
            if not timeout.expired():
                raise
            raise (_silent_error() if self._is_silent else _slow_error(budget)) from error

    @asynccontextmanager
    async def watch_others(self) -> AsyncIterator[None]:
        """Wait for work that others do on the database; raise DatabaseUnavailable when the database is silent.

        The wait may be long: it takes nothing of the time of the request.
        """
        if self._is_silent:
            raise _silent_error()
        try:
            async with asyncio.timeout(None) as timeout:
                with self._checks_while_waiting(timeout):
                    yield
        except TimeoutError as error:
            if not timeout.expired():
                raise
            raise _silent_error() from error

    def close(self) -> None:
        """Stop asking."""
        if self._checks is not None:
            self._checks.cancel()

    @contextmanager
    def _checks_while_waiting(self, operation: asyncio.Timeout) -> Iterator[None]:
        timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._start_checks, operation)
        try:
            yield
        finally:
            timer.cancel()
            self._waiting.discard(operation)

    def _start_checks(self, operation: asyncio.Timeout) -> None:
        self._waiting.add(operation)
        if self._is_silent:
            self._fail_operations()
        if self._checks is None or self._checks.done():
            self._checks = asyncio.create_task(self._check_repeatedly())

    async def _check_repeatedly(self) -> None:
        """Ask while operations wait, and while the database is silent."""
        loop = asyncio.get_running_loop()
        slow_since: float | None = None
        while self._waiting or self._is_silent:
            answers, is_there = await asyncio.gather(_succeeds(self._ask), _succeeds(self._find))
            now = loop.time()
            if answers or not is_there or now - self._succeeded_at < PROGRESS_SECONDS:
                slow_since = None
            elif slow_since is None:
                slow_since = now
            is_slow = slow_since is not None and now - slow_since < SLOW_SECONDS
            is_silent = not (answers or now - self._succeeded_at < PROGRESS_SECONDS or is_slow)
            if is_silent is not self._is_silent:
                self._is_silent = is_silent
                log.warning("Neo4j does not answer" if is_silent else "Neo4j answers again")
            if is_silent:
                self._fail_operations()
            await asyncio.sleep(PATIENCE_SECONDS if answers else RECHECK_SECONDS)

    def _fail_operations(self) -> None:
        now = asyncio.get_running_loop().time()
        for operation in self._waiting:
            operation.reschedule(now)
        self._waiting.clear()


async def _succeeds(check: Callable[[], Awaitable[None]], seconds: float | None = None) -> bool:
    """Return whether a check succeeds within `seconds` (`PROBE_SECONDS` by default)."""
    try:
        async with asyncio.timeout(PROBE_SECONDS if seconds is None else seconds):
            await check()
    except (GraphmemError, OSError, TimeoutError):
        return False
    return True


def _silent_error() -> DatabaseUnavailable:
    return DatabaseUnavailable("Neo4j does not answer: check that it runs, then try again.")


def _slow_error(budget: _TimeBudget | None) -> DatabaseUnavailable:
    limit = f"{budget.limit:.0f} seconds" if budget else "its time"
    return DatabaseUnavailable(f"The database work of this call takes longer than {limit}: ask for less, or try again.")
