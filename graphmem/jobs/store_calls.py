"""Calls of the job store, which block, from an event loop: bounded in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from graphmem.runtime.errors import JobStoreUnavailable

CALL_SECONDS = 10.0
"""Seconds in which the job store must answer a call."""

ERASURE_SECONDS = 120.0
"""Seconds in which it must answer a call that erases many jobs."""

MAX_CALLS = 16
"""Calls that run side by side."""

P = ParamSpec("P")
T = TypeVar("T")


class StoreCalls:
    """Runs blocking calls on threads of its own, so that a job store that hangs takes no thread from other work.

    A call that takes too long raises JobStoreUnavailable. What it does may still take effect later, like any request
    whose answer is lost. While it hangs, further calls fail at once.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(MAX_CALLS, thread_name_prefix="job-store")
        self._hanging: set[asyncio.Future[Any]] = set()
        self._is_closed = False

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of `function`, within `CALL_SECONDS`."""
        return await self._run_within(CALL_SECONDS, lambda: function(*args, **kwargs))

    async def erase(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of a `function` that erases, within `ERASURE_SECONDS`."""
        return await self._run_within(ERASURE_SECONDS, lambda: function(*args, **kwargs))

    async def _run_within(self, seconds: float, function: Callable[[], T]) -> T:
        if self._is_closed:
            raise JobStoreUnavailable("The job runner is closed.")
        if self._hanging:
            raise _silent_error()
        call = asyncio.get_running_loop().run_in_executor(self._threads, function)
        done, _ = await asyncio.wait({call}, timeout=seconds)
        if done:
            return call.result()
        self._hanging.add(call)
        call.add_done_callback(self._forget_call)
        raise _silent_error()

    def _forget_call(self, call: asyncio.Future[Any]) -> None:
        self._hanging.discard(call)
        if not call.cancelled():
            call.exception()  # nobody waits for it any more

    def close(self) -> None:
        """Accept no more calls; those that hang are left to end."""
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)


def _silent_error() -> JobStoreUnavailable:
    return JobStoreUnavailable("The job store does not answer: check that its database runs, then try again.")
