"""The retry policy: what is tried again, and when."""

from __future__ import annotations

import httpx
import pytest

from graphmem.runtime.retries import RetryPolicy

ADDRESS = httpx.Request("GET", "https://example.org")


def status_error(status: int, **headers: str) -> httpx.HTTPStatusError:
    return httpx.HTTPStatusError("", request=ADDRESS, response=httpx.Response(status, headers=headers))


async def waits_of(*errors: Exception) -> list[float]:
    """The seconds that are waited between tries that end with these errors, until one succeeds."""
    waits: list[float] = []
    left = list(errors)

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def work() -> None:
        if left:
            raise left.pop(0)

    await RetryPolicy(attempts=6, backoff=1.0, sleep=sleep).run("a test", work)
    return waits


async def test_pauses_are_random_and_up_to_twice_as_long_each_time() -> None:
    waits = await waits_of(httpx.ReadError(""), status_error(503), TimeoutError(), ConnectionError())
    assert all(0 <= wait <= limit for wait, limit in zip(waits, (1, 2, 4, 8), strict=True))


async def test_a_server_may_ask_for_a_longer_pause_but_not_for_any() -> None:
    asked, own = await waits_of(status_error(429, **{"Retry-After": "7"}), status_error(503))
    assert asked == 7
    assert own <= 2
    with pytest.raises(httpx.HTTPStatusError):
        await waits_of(status_error(503, **{"Retry-After": "3600"}))


async def test_what_cannot_succeed_later_is_not_tried_again() -> None:
    for error in (status_error(404), ValueError()):
        with pytest.raises(type(error)):
            await waits_of(error)
