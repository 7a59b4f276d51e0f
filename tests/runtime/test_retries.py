"""The retry policy: what is tried again, and when."""

from __future__ import annotations

import httpx
import pytest

from graphmem.runtime.retries import RetryPolicy

ADDRESS = httpx.Request("GET", "https://example.org")


def status_error(status: int, **headers: str) -> httpx.HTTPStatusError:
    return httpx.HTTPStatusError("", request=ADDRESS, response=httpx.Response(status, headers=headers))


async def waits_of(policy_pauses: tuple[float, ...], *errors: Exception) -> list[float]:
    """The seconds that are waited between tries that end with these errors, until one succeeds."""
    waits: list[float] = []
    left = list(errors)

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def work() -> None:
        if left:
            raise left.pop(0)

    await RetryPolicy(attempts=6, pauses=policy_pauses, sleep=sleep).run("a test", work)
    return waits


async def test_fixed_pauses_follow_one_another_and_the_last_repeats() -> None:
    lost = [httpx.ReadError(""), status_error(503), TimeoutError(), ConnectionError()]
    assert await waits_of((2.0, 8.0, 20.0), *lost) == [2.0, 8.0, 20.0, 20.0]
    assert [RetryPolicy(pauses=(5.0, 30.0)).pause_after(failures) for failures in (1, 2, 9)] == [5.0, 30.0, 30.0]


async def test_a_server_may_ask_for_a_longer_pause_but_not_for_any() -> None:
    assert await waits_of((1.0,), status_error(429, **{"Retry-After": "7"}), status_error(503)) == [7.0, 1.0]
    with pytest.raises(httpx.HTTPStatusError):
        await waits_of((1.0,), status_error(503, **{"Retry-After": "3600"}))


async def test_what_cannot_succeed_later_is_not_tried_again() -> None:
    for error in (status_error(404), ValueError()):
        with pytest.raises(type(error)):
            await waits_of((1.0,), error)
