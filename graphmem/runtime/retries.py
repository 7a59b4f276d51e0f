"""The retry policy: how often to try, how long to pause, and which server errors to retry."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

MAX_RETRY_AFTER_SECONDS = 30.0
"""Maximum seconds between attempts; if a server asks for more, the call is not retried."""

DEFAULT_RETRY_AFTER_SECONDS = 30
"""Seconds after which a transiently failed call may succeed, if the server names no time."""

_DAY_SECONDS = 86_400.0
_TRANSIENT_STATUSES = {408, 409, 425, 429}
_PERMANENT_CODES = {"insufficient_quota", "no_recording"}
_CODE_PATTERN = re.compile(r"[A-Za-z0-9_.-]{1,64}")

T = TypeVar("T")

log = logging.getLogger(__name__)


def is_transient(error: BaseException | None) -> bool:
    """Return whether the same request may succeed later: time-outs, lost connections, 408, 409, 425, 429 and 5xx."""
    if (status := status_of(error)) is not None:
        if error_code(error) in _PERMANENT_CODES:
            return False
        return status in _TRANSIENT_STATUSES or status >= 500
    # The client libraries take half a second to import; commands without a failure should not wait for that.
    from httpx import TransportError
    from openai import APIConnectionError

    return isinstance(error, (TimeoutError, ConnectionError, TransportError, APIConnectionError))


def status_of(error: BaseException | None) -> int | None:
    """Return the HTTP status in a client library's error, or None."""
    status = getattr(error, "status_code", getattr(getattr(error, "response", None), "status_code", None))
    return status if isinstance(status, int) else None


def retry_after_seconds(error: BaseException | None) -> float | None:
    """Return the seconds of `Retry-After` (a number or an HTTP date), at most one day; None without that header."""
    headers = getattr(getattr(error, "response", None) or error, "headers", None)
    if not headers or not (value := headers.get("retry-after")):
        # If a provider states it in the response body, the client library has parsed it.
        stated = getattr(error, "retry_after", None)
        return min(float(stated), _DAY_SECONDS) if isinstance(stated, int | float) else None
    try:
        pause = float(value)
    except ValueError:
        try:
            pause = (parsedate_to_datetime(value).astimezone(UTC) - datetime.now(UTC)).total_seconds()
        except ValueError:
            return None
    return min(max(0.0, pause), _DAY_SECONDS)


def error_code(error: BaseException | None) -> str | None:
    """Return the server's error code if it is an identifier, else None."""
    code = getattr(error, "code", None) or getattr(error, "provider_error_code", None)
    return code if isinstance(code, str) and _CODE_PATTERN.fullmatch(code) else None


class RetryPolicy:
    """How often to try, for `timeout` seconds each, and how long to pause between attempts, in seconds.

    Pauses are random, at first up to `backoff`, then up to twice as long each time. A longer `Retry-After` is respected
    up to `MAX_RETRY_AFTER_SECONDS`.
    """

    def __init__(
        self,
        *,
        timeout: float = 15.0,
        attempts: int = 4,
        backoff: float = 0.5,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.timeout = timeout
        self.attempts = attempts
        self._sleep = sleep
        self._wait = wait_random_exponential(multiplier=backoff, max=MAX_RETRY_AFTER_SECONDS)

    async def run(
        self,
        name: str,
        work: Callable[[], Awaitable[T]],
        may_succeed_later: Callable[[BaseException], bool] = is_transient,
    ) -> T:
        """Return the result of `work`, or raise its last error; `name` identifies it in the log."""

        def should_retry(error: BaseException) -> bool:
            return may_succeed_later(error) and (retry_after_seconds(error) or 0) <= MAX_RETRY_AFTER_SECONDS

        retrying = AsyncRetrying(
            stop=stop_after_attempt(self.attempts),
            wait=self._wait_as_asked,
            sleep=self._sleep,
            retry=retry_if_exception(should_retry),
            before_sleep=partial(_log_retry, name),
            reraise=True,
        )
        async for attempt in retrying:
            with attempt:
                result = await work()
        return result  # pyrefly: ignore[unbound-name] - where an attempt swallows an error, another follows

    def _wait_as_asked(self, state: RetryCallState) -> float:
        return max(self._wait(state), retry_after_seconds(_error_of(state)) or 0.0)


def _error_of(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _log_retry(name: str, state: RetryCallState) -> None:
    error = _error_of(state)
    why = str(status) if (status := status_of(error)) else type(error).__name__
    log.info("%s: try %d failed (%s), next in %.1f s", name, state.attempt_number, why, state.upcoming_sleep)
