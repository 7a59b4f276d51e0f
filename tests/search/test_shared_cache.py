"""The cache that processes share, on a real Redis."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from graphmem.runtime.cache import Cache, LocalCache, open_cache
from graphmem.runtime.times import utc_now
from tests.conftest import require_program


@pytest.fixture
async def redis(tmp_path: Path) -> AsyncIterator[str]:
    """The address of a Redis of this test alone."""
    program = require_program("redis-server")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    process = await asyncio.create_subprocess_exec(program, *options, stdout=asyncio.subprocess.DEVNULL)
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.02)
        else:
            writer.close()
            break
    yield f"redis://127.0.0.1:{port}"
    process.terminate()
    await process.wait()


def make_cache(url: str | None, seconds: float = 60) -> Cache[list[str]]:
    return open_cache(url, "test", TypeAdapter(list[str]), utc_now, seconds)


@pytest.mark.req("UMB-06", "GO-12")
async def test_a_cached_value_is_shared_between_processes_until_it_expires(redis: str) -> None:
    one, brief, other = make_cache(redis), make_cache(redis, 0.3), make_cache(redis)
    await one.set("mara@7", ["tea"])
    assert await other.get("mara@7") == ["tea"]
    assert await other.get("mara@8") is None
    await brief.set("mara@7", ["coffee"])
    async with asyncio.timeout(60):
        while await other.get("mara@7") is not None:  # noqa: ASYNC110 - Redis forgets it
            await asyncio.sleep(0.1)
    for cache in (one, brief, other):
        await cache.close()


async def test_versions_with_other_values_do_not_read_each_others_and_erase_them_all(redis: str) -> None:
    old = make_cache(redis)
    new: Cache[dict[str, str]] = open_cache(redis, "test", TypeAdapter(dict[str, str]), utc_now, 60)
    await old.set("mara@7", ["tea"])
    assert await new.get("mara@7") is None
    await new.set("mara@7", {"drink": "tea"})
    assert await old.get("mara@7") == ["tea"]
    await old.discard("mara@")
    assert await new.get("mara@7") is None
    assert await old.get("mara@7") is None
    for cache in (old, new):
        await cache.close()


async def test_discard_removes_the_keys_of_a_prefix() -> None:
    await check_discard(make_cache(None))


async def test_discard_removes_the_shared_keys_of_a_prefix(redis: str) -> None:
    await check_discard(make_cache(redis))


async def check_discard(cache: Cache[list[str]]) -> None:
    keys = ["t:a[b]*@1", "t:a[b]*@2", "t:ab@1"]
    for key in keys:
        await cache.set(key, ["tea"])
    assert await cache.count("t:a[b]*@") == 2
    await cache.discard("t:a[b]*@")
    assert await cache.count("t:a[b]*@") == 0
    assert [await cache.get(key) for key in keys] == [None, None, ["tea"]]
    await cache.close()


async def test_an_unavailable_redis_is_a_cache_miss() -> None:
    cache = make_cache("redis://127.0.0.1:9")
    await cache.set("key", ["tea"])
    assert await cache.get("key") is None
    await cache.close()


def test_without_an_address_the_cache_is_in_memory() -> None:
    assert isinstance(make_cache(None), LocalCache)
