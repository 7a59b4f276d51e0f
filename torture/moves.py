"""A tenant that is moved between graphs while it is written to."""

from __future__ import annotations

from collections import Counter
from typing import Any

from torture.findings import Findings
from torture.persistent_client import PersistentClient
from torture.stories import Check, Teller

PLACEMENTS = "/v1/admin/placements"

TOO_BUSY = "written to so much"
"""What the reason of a move says that was given up because too much was written meanwhile."""


class MovingTenant:
    """A tenant, by the key of one of its admins, that moves to the next of the graphs at each `begin`."""

    def __init__(self, address: str, key: str, graphs: list[str]) -> None:
        self._address = address
        self._key = key
        self._graphs = graphs
        self._ended: Counter[str] = Counter()

    def __str__(self) -> str:
        return ", ".join(f"{count} {how}" for how, count in sorted(self._ended.items())) or "none"

    async def begin(self, findings: Findings) -> Check:
        """Queue a move and return its check: it has ended, and the tenant lives where that says."""
        client = PersistentClient(self._address, self._key, findings)
        source = (await self._read_placement(client))["graph"]
        target = self._graphs[(self._graphs.index(source) + 1) % len(self._graphs)]
        # 409: a try whose answer was lost has queued the move, and it has ended already.
        await client.send("POST", PLACEMENTS, {"graph": target}, accept=(409,))

        async def check() -> list[str]:
            try:
                job_id = (await self._read_placement(client))["job_id"]
                job = await Teller(client).wait_until_final(f"/v1/jobs/{job_id}")
                is_given_up = job["status"] == "failed" and TOO_BUSY in (job["error"] or "")
                self._ended["given up because too much was written" if is_given_up else job["status"]] += 1
                if not is_given_up and job["status"] != "succeeded":
                    return [f"move to {target} {job['status']}: {job['error']}"]
                expected, found = source if is_given_up else target, (await self._read_placement(client))["graph"]
                return [] if found == expected else [f"placed in {found} instead of {expected}"]
            finally:
                await client.close()

        return check

    async def _read_placement(self, client: PersistentClient) -> dict[str, Any]:
        tenants: list[dict[str, Any]] = (await client.send("GET", PLACEMENTS)).json()["tenants"]
        return tenants[0]
