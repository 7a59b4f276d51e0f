"""Watches whether the database answers, and limits its work for one request.

An operation that waits may be slow, or its database may be gone. So once an operation has waited for a while, the
database is probed on a separate connection. It is gone if it does not answer and its server cannot be found; then all
waiting operations fail, and new ones fail at once, until the database answers again. A database that is present but
slow, such as one just started on a busy machine, gets `SLOW_SECONDS`.
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
"""Seconds that an operation waits before the database is probed, and between two probes."""

PROBE_SECONDS = 3.0
"""Seconds within which the database must answer a probe, and its server must be found."""

STEP_SECONDS = 0.1
"""Maximum seconds that count of a time in which the process did not run, such as on a busy machine."""

RECHECK_SECONDS = 0.5
"""Seconds between probes of a database that has not answered."""

PROGRESS_SECONDS = 1.5
"""Seconds for which a successful operation proves that the database answers."""

SLOW_SECONDS = 30.0
"""Seconds after which a database that is present but does not answer counts as gone."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _TimeBudget:
    """How long the database may work for a request: the time during which at least one operation runs."""

    limit: float
    used: float = 0.0
    running: int = 0
    since: float = 0.0

    @property
    def left(self) -> float:
        """The remaining seconds."""
        return self.limit - self.used - (time.monotonic() - self.since if self.running else 0.0)

    @contextmanager
    def spend(self) -> Iterator[None]:
        """Count the block's time; time in which several blocks run counts once."""
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
    """Limit the database work of the block and the tasks it starts to `seconds` seconds in total.

    Other work of the block, such as model calls, does not count; concurrent operations count once. Beyond the limit,
    operations raise DatabaseUnavailable.
    """
    token = _budget.set(_TimeBudget(seconds))
    try:
        yield
    finally:
        _budget.reset(token)


def remaining_database_time() -> float | None:
    """Return the current request's remaining seconds of database work; None without a limit."""
    budget = _budget.get()
    return max(budget.left, 0.001) if budget else None


class Availability:
    """Watches the operations on one database.

    `ask` returns if the database answers a query, and `find` if its server is present, however slow; both raise
    otherwise. Operations fail within `PATIENCE_SECONDS + PROBE_SECONDS` if the server is gone.
    """

    def __init__(self, ask: Callable[[], Awaitable[None]], find: Callable[[], Awaitable[None]]) -> None:
        self._ask = ask
        self._find = find
        self._is_silent = False
        self._waiting: set[asyncio.Timeout] = set()
        self._checks: asyncio.Task[None] | None = None
        self._succeeded_at = -PROGRESS_SECONDS

    async def check_server(self) -> None:
        """Raise DatabaseUnavailable unless the server is present, even if it answers slowly."""
        if self._is_silent or not await _succeeds(self._find):
            raise _silent_error()

    async def check_answering(self, seconds: float) -> None:
        """Raise DatabaseUnavailable unless the database answers a query within `seconds` seconds."""
        if self._is_silent or not await _succeeds(self._ask, seconds):
            raise _silent_error()

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Run one operation; raise DatabaseUnavailable if the database stops answering or the request's time is up."""
        if self._is_silent:
            raise _silent_error()
        budget = _budget.get()
        timeout = asyncio.timeout(budget.left if budget else None)
        try:
            with budget.spend() if budget else nullcontext():
                async with timeout:
                    with self._checks_while_waiting(timeout):
                        yield
                        self._succeeded_at = asyncio.get_running_loop().time()
        except TimeoutError as error:
            if not timeout.expired():
                raise
            raise (_silent_error() if self._is_silent else _slow_error(budget)) from error

    @asynccontextmanager
    async def watch_others(self) -> AsyncIterator[None]:
        """Wait for others' work on the database; raise DatabaseUnavailable if the database stops answering.

        The wait may be long: it does not count towards the request's time.
        """
        if self._is_silent:
            raise _silent_error()
        timeout = asyncio.timeout(None)
        try:
            async with timeout:
                with self._checks_while_waiting(timeout):
                    yield
        except TimeoutError as error:
            if not timeout.expired():
                raise
            raise _silent_error() from error

    def close(self) -> None:
        """Stop probing."""
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
        """Probe while operations wait, and while the database does not answer."""
        loop = asyncio.get_running_loop()
        slow_seconds = 0.0
        while self._waiting or self._is_silent:
            answers, is_there = await asyncio.gather(_succeeds(self._ask), _succeeds(self._find))
            answers = answers or loop.time() - self._succeeded_at < PROGRESS_SECONDS
            slow_seconds = 0.0 if answers or not is_there else slow_seconds + PROBE_SECONDS
            is_silent = not answers and (not is_there or slow_seconds > SLOW_SECONDS)
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
    """Return whether a check succeeds within `seconds` (`PROBE_SECONDS` by default).

    Time in which this process did not run does not count: an answer may have arrived meanwhile.
    """
    left = PROBE_SECONDS if seconds is None else seconds
    task = asyncio.ensure_future(check())
    try:
        while left > 0 and not task.done():
            await asyncio.wait({task}, timeout=min(left, STEP_SECONDS))
            left -= STEP_SECONDS
        if not task.done():
            return False
        task.result()
    except (GraphmemError, OSError):
        return False
    finally:
        task.cancel()
    return True


def _silent_error() -> DatabaseUnavailable:
    return DatabaseUnavailable("Neo4j does not answer: check that it runs, then try again.")


def _slow_error(budget: _TimeBudget | None) -> DatabaseUnavailable:
    limit = f"{budget.limit:.0f} seconds" if budget else "its time"
    return DatabaseUnavailable(f"The database work of this call takes longer than {limit}: ask for less, or try again.")
