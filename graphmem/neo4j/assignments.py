"""In which graph each tenant lives: the table of assignments in the home graph.

A process uses what it has read of the table for `LEASE_SECONDS`. A tenant whose move is about to end is looked up for
every operation, and the move waits until no process relies on what it read before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from graphmem.runtime.settings import HOME_GRAPH

if TYPE_CHECKING:
    from graphmem.neo4j.driver import Graph

LEASE_SECONDS = 1.0
"""Seconds for which a process relies on what it has read of the table."""


class MoveState(StrEnum):
    """How far the move of a tenant is; what is settled does not move."""

    SETTLED = "settled"
    COPYING = "copying"
    SWITCHING = "switching"


@dataclass(frozen=True, slots=True)
class Assignment:
    """The graph in which a tenant is read and written, and where a move takes it."""

    tenant: str
    graph: str = HOME_GRAPH
    state: MoveState = MoveState.SETTLED
    target: str | None = None
    job_id: str | None = None
    version: int = 0
    report: str | None = None
    """What the latest move reported, as JSON."""

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Assignment:
        """Return an assignment that was stored."""
        return cls(**{**row, "state": MoveState(row["state"])})


class AssignmentTable:
    """The assignments of all tenants, as this process has read them last."""

    def __init__(self, home: Graph) -> None:
        self._home = home
        self._version = -1
        self._assignments: dict[str, Assignment] = {}
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    async def find(self, tenant: str) -> Assignment:
        """Return the assignment of a tenant; one that has none lives in the home graph."""
        asked_at = time.monotonic()
        await self._refresh(asked_at - LEASE_SECONDS)
        found = self._assignments.get(tenant)
        if found is not None and found.state is MoveState.SWITCHING:
            await self._refresh(asked_at)
            found = self._assignments.get(tenant)
        return found or Assignment(tenant)

    async def list_all(self) -> list[Assignment]:
        """Return the assignments as they are now, by tenant; tenants that have none are left out."""
        await self._refresh(time.monotonic())
        return sorted(self._assignments.values(), key=lambda assignment: assignment.tenant)

    def expire(self) -> None:
        """Have the next operation read the table."""
        self._read_at = float("-inf")

    async def begin_move(self, tenant: str, source: str, target: str, job_id: str, now: datetime) -> Assignment | None:
        """Assign a move to a tenant in `source`; return None for one that is elsewhere or moved by another job."""
        rows = await self._home.execute(
            "placements.begin", tenant=tenant, graph=source, target=target, job_id=job_id, now=now
        )
        self.expire()
        return Assignment.from_row(rows[0]["assignment"]) if rows else None

    async def change(self, tenant: str, now: datetime, **properties: str | None) -> Assignment:
        """Change the assignment of a tenant."""
        rows = await self._home.execute("placements.assign", tenant=tenant, properties=properties, now=now)
        self.expire()
        return Assignment.from_row(rows[0]["assignment"])

    async def _refresh(self, since: float) -> None:
        """Read the table unless that began at `since` or later."""
        async with self._reading:
            if self._read_at >= since:
                return
            started = time.monotonic()
            [row] = await self._home.fetch("placements.list_since", version=self._version)
            if row["assignments"] is not None:
                found = map(Assignment.from_row, row["assignments"])
                self._assignments = {assignment.tenant: assignment for assignment in found}
            self._version, self._read_at = row["version"], started
