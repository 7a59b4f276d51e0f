"""A client that sends a write again, with the same Idempotency-Key, until it is acknowledged."""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass
from typing import Any

import httpx

from torture.findings import Findings

PATIENCE_SECONDS = 240.0
"""Seconds after which a request that is not answered is given up: longer than any recovery."""

REQUEST_SECONDS = 60.0
"""Seconds that one try may take."""


class NotAcknowledged(Exception):
    """A request was not answered in time, or was refused."""


@dataclass
class RequestCosts:
    """What requests had to bear: tries that failed, and seconds of the longest wait for an answer, all tries together.

    `longest_try` are the seconds of the longest single try of a request that may take `REQUEST_SECONDS`.
    """

    failed: int = 0
    longest_wait: float = 0.0
    longest_try: float = 0.0

    def record_try(self, started: float) -> None:
        """Record a try that has ended."""
        self.longest_try = max(self.longest_try, time.monotonic() - started)

    def record_answer(self, started: float) -> None:
        """Record a request that has been answered."""
        self.longest_wait = max(self.longest_wait, time.monotonic() - started)


class PersistentClient:
    """Sends requests through crashes of the server; `costs` may be shared with other clients."""

    def __init__(self, address: str, key: str, findings: Findings, costs: RequestCosts | None = None) -> None:
        self._client = httpx.AsyncClient(
            base_url=address,
            headers={"Authorization": f"Bearer {key}"},
            timeout=REQUEST_SECONDS,
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        self._findings = findings
        self.costs = costs or RequestCosts()

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def send(
        self,
        method: str,
        path: str,
        json: Any = None,
        *,
        accept: tuple[int, ...] = (),
        seconds: float = REQUEST_SECONDS,
    ) -> httpx.Response:
        """Return the response to a request; raise NotAcknowledged when it is refused or not answered in time.

        `accept` names client errors that are an answer too, such as 404 for what an earlier try has erased; one try may
        take `seconds` seconds.
        """
        headers = {"Idempotency-Key": uuid.uuid4().hex} if method != "GET" else {}
        started = time.monotonic()
        while time.monotonic() < started + PATIENCE_SECONDS:
            tried = time.monotonic()
            try:
                response = await self._client.request(method, path, json=json, headers=headers, timeout=seconds)
            except httpx.TransportError as error:
                if isinstance(error, httpx.ReadTimeout):
                    what = f"{method} {path.split('/')[-1]}: no answer within {seconds:.0f} s"
                    self._findings.add(what, path)
                await self._pause()
                continue
            finally:
                if seconds == REQUEST_SECONDS:
                    self.costs.record_try(tried)
            if response.is_success or response.status_code in accept:
                self.costs.record_answer(started)
                return response
            if response.status_code == 500:
                self._findings.add(f"{method} {path.split('/')[-1]}: 500", response.text[:300])
            elif response.status_code not in (429, 502, 503) and "Retry-After" not in response.headers:
                self._findings.add(f"{method} {path.split('/')[-1]}: {response.status_code}", response.text[:300])
                raise NotAcknowledged(response.text)
            await self._pause()
        self._findings.add(f"{method} {path.split('/')[-1]}: not answered", f"{path} in {PATIENCE_SECONDS:.0f} s")
        raise NotAcknowledged(path)

    async def _pause(self) -> None:
        self.costs.failed += 1
        await asyncio.sleep(0.3)
