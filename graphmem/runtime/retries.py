"""The retry policy of requests to the servers of language models and embedding models."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential

MAX_REQUESTS = 6
"""Requests of one call at most: those repeated after a failure, and those sent again in another form."""

MAX_RETRY_AFTER_SECONDS = 30.0
"""Longest pause between two tries; a server that asks for a longer one is not asked again."""

DEFAULT_RETRY_AFTER_SECONDS = 30
"""Seconds after which a call that failed for a transient reason may succeed, where the server names none."""

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
    # The client library takes half a second to import, which a command that meets no failure need not wait for.
    from openai import APIConnectionError

    return isinstance(error, (TimeoutError, ConnectionError, APIConnectionError))


def status_of(error: BaseException | None) -> int | None:
    """Return the HTTP status that a client library reports by an error, or None."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def retry_after_seconds(error: BaseException | None) -> float | None:
    """Return the seconds of `Retry-After` (a number or an HTTP date), at most one day; None without that header."""
    from openai import APIStatusError

    headers = error.response.headers if isinstance(error, APIStatusError) else getattr(error, "headers", None)
    if not headers or not (value := headers.get("retry-after")):
        # Where a provider says it in the body of its answer, the client library has read it.
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
    """Return the server's error code, where it is an identifier."""
    code = getattr(error, "code", None) or getattr(error, "provider_error_code", None)
    return code if isinstance(code, str) and _CODE_PATTERN.fullmatch(code) else None


class RetryPolicy:
    """Tries a request up to `attempts` times, each for `timeout` seconds, with random pauses that grow.

    `backoff` is the longest first pause in seconds; it doubles up to `MAX_RETRY_AFTER_SECONDS`. A longer pause that the
    server asks for by `Retry-After` is respected. No call sends more than `MAX_REQUESTS` requests.
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
        self.attempts = min(attempts, MAX_REQUESTS)
        self._sleep = sleep
        self._backoff = wait_random_exponential(multiplier=backoff, max=MAX_RETRY_AFTER_SECONDS)

    async def run(
        self,
        model: str,
        request: Callable[[], Awaitable[T]],
        *,
        may_succeed_later: Callable[[BaseException], bool] = is_transient,
        adapt: Callable[[BaseException], bool] = lambda error: False,
        max_requests: int = MAX_REQUESTS,
    ) -> T:
        """Return the result of `request`, or raise its last error; `model` names what is asked in the log.

        `adapt` may change the next request after an error; where it returns True, that is sent at once.
        """
        call = _Attempts(self, model, may_succeed_later, adapt, max_requests)
        retrying = AsyncRetrying(
            stop=call.must_stop,
            wait=call.pause,
            sleep=self._sleep,
            retry=retry_if_exception(call.should_retry),
            before_sleep=call.log_retry,
            reraise=True,
        )
        async for attempt in retrying:
            with attempt:
                # The client's own limit is for each read; a server that sends byte by byte would outlast it.
                async with asyncio.timeout(self.timeout):
                    result = await request()
        return result

    def pause(self, state: RetryCallState) -> float:
        """Return the seconds before the next try of a request that failed."""
        asked = retry_after_seconds(state.outcome.exception()) if state.outcome else None
        return max(self._backoff(state), asked or 0.0)


class _Attempts:
    """The tries of one call."""

    def __init__(
        self,
        policy: RetryPolicy,
        model: str,
        may_succeed_later: Callable[[BaseException], bool],
        adapt: Callable[[BaseException], bool],
        max_requests: int,
    ) -> None:
        self._policy = policy
        self._model = model
        self._may_succeed_later = may_succeed_later
        self._adapt = adapt
        self._max_requests = max_requests
        self._failures = 0
        self._adapted = False

    def should_retry(self, error: BaseException) -> bool:
        self._adapted = self._adapt(error)
        if self._adapted:
            return True
        self._failures += 1
        return self._may_succeed_later(error) and (retry_after_seconds(error) or 0) <= MAX_RETRY_AFTER_SECONDS

    def must_stop(self, state: RetryCallState) -> bool:
        return state.attempt_number >= self._max_requests or self._failures >= self._policy.attempts

    def pause(self, state: RetryCallState) -> float:
        return 0.0 if self._adapted else self._policy.pause(state)

    def log_retry(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        why = str(status) if (status := status_of(error)) else type(error).__name__
        tried, pause = state.attempt_number, state.upcoming_sleep
        log.info("model %s: request %d failed (%s), next in %.1f s", self._model, tried, why, pause)
