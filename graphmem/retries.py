"""The retry policy of requests to the servers of language models and embedding models."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from openai import APIConnectionError, APIStatusError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_random_exponential

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


class RetryPolicy:
    """Tries a request up to `attempts` times, each for `timeout` seconds, with random pauses that grow.

    `backoff` is the longest first pause in seconds; it doubles up to `MAX_RETRY_AFTER_SECONDS`. A longer pause that the
    server asks for by `Retry-After` is respected.
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
        self._backoff = wait_random_exponential(multiplier=backoff, max=MAX_RETRY_AFTER_SECONDS)

    async def run(self, model: str, request: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `request`, or raise its last error; `model` names what is asked in the log."""
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self.attempts),
            wait=self._pause,
            sleep=self._sleep,
            retry=retry_if_exception(_should_retry),
            before_sleep=lambda state: self._log_retry(state, model),
            reraise=True,
        )
        async for attempt in retrying:
            with attempt:
                # The client's own limit is for each read; a server that sends byte by byte would outlast it.
                async with asyncio.timeout(self.timeout):
                    result = await request()
        return result

    def _pause(self, state: RetryCallState) -> float:
        asked = retry_after_seconds(state.outcome.exception()) if state.outcome else None
        return max(self._backoff(state), asked or 0.0)

    def _log_retry(self, state: RetryCallState, model: str) -> None:
        error = state.outcome.exception() if state.outcome else None
        why = str(error.status_code) if isinstance(error, APIStatusError) else type(error).__name__
        tried, pause = state.attempt_number, state.upcoming_sleep
        log.info("model %s: try %d of %d failed (%s), next in %.1f s", model, tried, self.attempts, why, pause)


def is_transient(error: BaseException | None) -> bool:
    """Return whether the same request may succeed later: time-outs, lost connections, 408, 409, 425, 429 and 5xx."""
    if isinstance(error, APIStatusError):
        if error_code(error) in _PERMANENT_CODES:
            return False
        return error.status_code in _TRANSIENT_STATUSES or error.status_code >= 500
    return isinstance(error, (TimeoutError, APIConnectionError))


def retry_after_seconds(error: BaseException | None) -> float | None:
    """Return the seconds of `Retry-After` (a number or an HTTP date), at most one day; None without that header."""
    if not isinstance(error, APIStatusError) or not (value := error.response.headers.get("retry-after")):
        return None
    try:
        pause = float(value)
    except ValueError:
        try:
            pause = (parsedate_to_datetime(value).astimezone(UTC) - datetime.now(UTC)).total_seconds()
        except ValueError:
            return None
    return min(max(0.0, pause), _DAY_SECONDS)


def error_code(error: APIStatusError) -> str | None:
    """Return the server's error code, where it is an identifier."""
    code = error.code
    return code if isinstance(code, str) and _CODE_PATTERN.fullmatch(code) else None


def _should_retry(error: BaseException) -> bool:
    return is_transient(error) and (retry_after_seconds(error) or 0) <= MAX_RETRY_AFTER_SECONDS
