"""Waits until processes are ready."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import httpx

READY_SECONDS = 300
"""Seconds in which an installation must be ready."""


async def wait_until_ready(*addresses: str) -> float:
    """Return the seconds until every address says that it is ready; raise TimeoutError."""
    started = time.monotonic()
    async with httpx.AsyncClient(timeout=5) as client, asyncio.timeout(READY_SECONDS):
        for address in addresses:
            while True:
                with suppress(httpx.HTTPError):
                    if (await client.get(f"{address}/readyz")).status_code == 200:
                        break
                await asyncio.sleep(0.2)
    return time.monotonic() - started
