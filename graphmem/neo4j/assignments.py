"""In which graph each tenant, and each user who lives apart from it, lives: the table of assignments in the home graph.

A process uses what it has read of the table for `LEASE_SECONDS`. Who is about to be switched is looked up for every
operation, and the move waits until no process relies on what it read before.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from graphmem.runtime.settings import HOME_GRAPH

if TYPE_CHECKING:
    from graphmem.neo4j.driver import Graph

LEASE_SECONDS = 1.0
"""Seconds for which a process relies on what it has read of the table."""


def name_of_group(group_id: str) -> str:
    """Return the name under which the place of a group is stored: a hash for a user, else the tenant's name.

    No name holds the id of a user, which would have to be erased with the user.
    """
    tenant, _, user_id = group_id.partition(":")
    if not user_id or user_id.startswith(" "):  # the tenant itself, or a space
        return tenant
    return f"{tenant}:{hashlib.sha256(group_id.encode()).hexdigest()[:24]}"


def tenant_of_name(name: str) -> str:
    """Return the tenant that a name is of, or the tenant of the user that it is of."""
    return name.partition(":")[0]


class MoveState(StrEnum):
    """How far a move is; what is settled does not move."""

    SETTLED = "settled"
    COPYING = "copying"
    SWITCHING = "switching"


@dataclass(frozen=True, slots=True)
class Assignment:
    """The graph in which a tenant or a user is read and written, and where a move takes it.

    `graph` is None in the stored assignment of a user who lives with the tenant.
    """

    name: str
    graph: str | None = HOME_GRAPH
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

    @property
    def is_of_user(self) -> bool:
        """Whether it is that of a user, not of a tenant."""
        return ":" in self.name

    @property
    def lives_apart(self) -> bool:
        """Whether it is that of a user who lives in another graph than the tenant, or moves."""
        return self.is_of_user and (self.graph is not None or self.state is not MoveState.SETTLED)


class Place(NamedTuple):
    """The graph in which a group lives, and the names of the gates that its writes pass there."""

    graph: str
    gates: tuple[str, ...]


class AssignmentTable:
    """The assignments of all tenants and users, as this process has read them last."""

    def __init__(self, home: Graph) -> None:
        self._home = home
        self._version = -1
        self._assignments: dict[str, Assignment] = {}
        self._users: dict[str, list[str]] = {}
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()

    async def find(self, name: str) -> Assignment:
        """Return the assignment of a tenant or a user; by default a tenant lives in the home graph, a user with it."""
        found = await self._look_up(name)
        if found is None or found.graph is None:
            graph = (await self.find(tenant_of_name(name))).graph if ":" in name else HOME_GRAPH
            found = replace(found, graph=graph) if found else Assignment(name, graph)
        return found

    async def find_graph(self, name: str) -> str:
        """Return the graph in which a tenant or a user lives."""
        return (await self.find(name)).graph or HOME_GRAPH

    async def find_place(self, group_id: str) -> Place:
        """Return where a group lives: a user who lives with the tenant passes the tenant's gate as well."""
        name = name_of_group(group_id)
        tenant = tenant_of_name(name)
        if name == tenant:
            return Place(await self.find_graph(tenant), (tenant,))
        found = await self._look_up(name)
        if found is not None and found.graph is not None:
            return Place(found.graph, (name,))
        return Place(await self.find_graph(tenant), (tenant, name))

    async def is_divided(self, tenant: str) -> bool:
        """Return whether a user of a tenant lives apart from it, moves, or has done so."""
        await self._refresh(time.monotonic() - LEASE_SECONDS)
        return tenant in self._users

    async def list_graphs(self, tenant: str) -> list[str]:
        """Return the graphs that hold something of a tenant: its own first, then those of its users."""
        graphs = [await self.find_graph(tenant)]
        for assignment in self._of_users(tenant):
            graphs += [graph for graph in (assignment.graph, assignment.target) if graph]
        return list(dict.fromkeys(graphs))

    async def list_users_apart(self, tenant: str) -> list[Assignment]:
        """Return the assignments, as they are now, of the users who live apart from a tenant or move."""
        await self._refresh(time.monotonic())
        return [assignment for assignment in self._of_users(tenant) if assignment.lives_apart]

    async def list_all(self) -> list[Assignment]:
        """Return the assignments as they are now, by name; tenants and users that have none are left out."""
        await self._refresh(time.monotonic())
        return sorted(self._assignments.values(), key=lambda assignment: assignment.name)

    def expire(self) -> None:
        """Have the next operation read the table."""
        self._read_at = float("-inf")

    async def begin_move(
        self, name: str, source: str, target: str, job_id: str, now: datetime, *, stored: str | None
    ) -> Assignment | None:
        """Assign a move to a tenant or a user who lives in `source`, and whose new assignment names `stored`.

        Return None for one that is elsewhere or moved by another job.
        """
        rows = await self._home.execute(
            "placements.begin", tenant=name, graph=source, stored=stored, target=target, job_id=job_id, now=now
        )
        self.expire()
        return Assignment.from_row(rows[0]["assignment"]) if rows else None

    async def change(self, name: str, now: datetime, **properties: str | None) -> Assignment:
        """Change the assignment of a tenant or a user."""
        rows = await self._home.execute("placements.assign", tenant=name, properties=properties, now=now)
        self.expire()
        return Assignment.from_row(rows[0]["assignment"])

    def _of_users(self, tenant: str) -> list[Assignment]:
        return [self._assignments[name] for name in self._users.get(tenant, ())]

    async def _look_up(self, name: str) -> Assignment | None:
        """Return the stored assignment; that of a move about to end is read anew."""
        asked_at = time.monotonic()
        await self._refresh(asked_at - LEASE_SECONDS)
        found = self._assignments.get(name)
        if found is not None and found.state is MoveState.SWITCHING:
            await self._refresh(asked_at)
            found = self._assignments.get(name)
        return found

    async def _refresh(self, since: float) -> None:
        """Read the table unless that began at `since` or later."""
        async with self._reading:
            if self._read_at >= since:
                return
            started = time.monotonic()
            [row] = await self._home.fetch("placements.list_since", version=self._version)
            if row["assignments"] is not None:
                found = map(Assignment.from_row, row["assignments"])
                self._assignments = {assignment.name: assignment for assignment in found}
                self._users = {}
                for assignment in self._assignments.values():
                    if assignment.is_of_user:
                        self._users.setdefault(tenant_of_name(assignment.name), []).append(assignment.name)
            self._version, self._read_at = row["version"], started
