"""Lists the graphs in which tenants and users live, and has a worker move one of them to another graph."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import chain

from graphmem.jobs.job import Job, JobStatus
from graphmem.jobs.runner import JobRunner
from graphmem.neo4j.assignments import Assignment, MoveState, name_of_group, tenant_of_name
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.placed_graph import PlacedGraph, graph_names
from graphmem.neo4j.work import working_in
from graphmem.placement.models import GraphStatus, PlacementList, TenantPlacement, UserPlacement
from graphmem.placement.move import MOVE_JOB, USERS_LIVE_APART, MovePayload
from graphmem.runtime.errors import Conflict, Forbidden, InvalidInput, Unavailable
from graphmem.runtime.settings import HOME_GRAPH
from graphmem.runtime.times import Clock
from graphmem.tenants.access import ApiKey
from graphmem.tenants.owners import Owner, make_owner

ANSWER_SECONDS = 2.0
"""Seconds in which a graph must answer to be listed as available."""


class PlacementService:
    """Operations on the graphs in which tenants live; where only one is configured, all live there."""

    def __init__(self, graph: Graph, placed: PlacedGraph | None, jobs: JobRunner, clock: Clock) -> None:
        self._graph = graph
        self._placed = placed
        self._jobs = jobs
        self._clock = clock

    @property
    def names(self) -> list[str]:
        """The names of all graphs, the home first."""
        return graph_names(self._placed)

    async def run_everywhere(self, task: Callable[[], Awaitable[int]]) -> int:
        """Run a task that is about all tenants in every graph, and return the sum of its results.

        Raises Unavailable, after it has run in the others, where a graph is unavailable.
        """
        total, unavailable = 0, None
        for name in self.names:
            try:
                with working_in(name):
                    total += await task()
            except Unavailable as error:
                unavailable = error
        if unavailable is not None:
            raise unavailable
        return total

    async def describe(self, caller: ApiKey) -> PlacementList:
        """Return the graphs and where the caller's tenant lives; for callers on the machine, all tenants that moved."""
        graphs = [await self._check(name) for name in self.names]
        if self._placed is None:
            return PlacementList(graphs=graphs, tenants=[_to_view(Assignment(caller.tenant))])
        listed = await self._placed.assignments.list_all()
        found = {assignment.name: assignment for assignment in listed if not assignment.is_of_user}
        own = found.get(caller.tenant, Assignment(caller.tenant))
        shown = {**found, own.name: own} if caller.is_local else {own.name: own}
        return PlacementList(
            graphs=graphs,
            tenants=[_to_view(shown[tenant]) for tenant in sorted(shown)],
            users=await self._list_users_apart(self._placed, caller.tenant),
        )

    async def move(self, tenant: str, target: str, user_id: str | None = None) -> Job:
        """Queue the move of a tenant, or of one of its users, and return its job.

        A move there that is under way or failed goes on. Raises InvalidInput for an unknown graph, Conflict for who
        lives there or moves elsewhere and for a tenant whose users live apart, and DatabaseUnavailable where the graph
        does not answer.
        """
        name = tenant if user_id is None else name_of_group(make_owner(tenant, user_id).group_id)
        return await self._move(name, target)

    async def _move(self, name: str, target: str) -> Job:
        placed = self._require_placed(target)
        placed.assignments.expire()
        known = await placed.assignments.find(name)
        who = "user" if known.is_of_user else "tenant"
        job = await self._jobs.find(known.job_id) if known.job_id and known.target else None
        if known.target == target and job is not None and job.status is not JobStatus.SUCCEEDED:
            return await self._jobs.retry(job.id) if job.status is JobStatus.FAILED else job
        if job is not None and not job.status.is_final:
            raise Conflict(f"The {who} moves to {known.target!r} already: wait for the job {job.id} to end.")
        source = await placed.assignments.find_graph(name)
        if source == target:
            raise Conflict(f"The {who} lives in {target!r} already.")
        if not known.is_of_user and await placed.assignments.list_users_apart(name):
            raise Conflict(USERS_LIVE_APART)
        await placed.open_named(target)
        job_id = str(uuid.uuid4())
        # Known before it is queued, so that asking again finds it.
        tenant = tenant_of_name(name)
        with_tenant = known.is_of_user and source == await placed.assignments.find_graph(tenant)
        await placed.assignments.change(
            name,
            self._clock(),
            graph=None if with_tenant else source,
            state=MoveState.SETTLED.value,
            target=target,
            job_id=job_id,
        )
        payload = MovePayload(tenant=tenant, source=source, target=target, user=name if known.is_of_user else None)
        return await self._jobs.get(await self._jobs.enqueue(MOVE_JOB, payload, job_id))

    async def drain(self, caller: ApiKey, source: str, target: str) -> list[Job]:
        """Queue the moves of all tenants of a graph, and of the users who live apart there, and return their jobs.

        Raises Forbidden for a caller who is not on the machine, and what `move` raises.
        """
        if not caller.is_local:
            raise Forbidden("Only commands on the machine drain a graph: run `graphmem placement drain` there.")
        placed = self._require_placed(source, target)
        if source == target:
            raise InvalidInput("The tenants must move to another graph.")
        assignments = await placed.assignments.list_all()
        placed_in = {assignment.name: assignment.graph for assignment in assignments}
        graph = await placed.open_named(source)
        stored = [row["tenant"] for row in await graph.fetch("placements.list_tenants")]
        there = {name for name in chain(stored, placed_in) if placed_in.get(name, HOME_GRAPH) == source}
        if divided := [tenant for tenant in sorted(there) if await placed.assignments.list_users_apart(tenant)]:
            raise Conflict(f"{USERS_LIVE_APART} They are: {', '.join(divided)}.")
        return [await self._move(name, target) for name in sorted(there)]

    async def _list_users_apart(self, placed: PlacedGraph, tenant: str) -> list[UserPlacement]:
        """Return the users who live apart from a tenant, by id; those of whom no graph has anything are left out."""
        apart = {assignment.name: assignment for assignment in await placed.assignments.list_users_apart(tenant)}
        own_graph = await placed.assignments.find_graph(tenant)
        names = {assignment.graph or own_graph for assignment in apart.values()}
        found: dict[str, UserPlacement] = {}
        for name in sorted(names):
            with suppress(Unavailable):
                graph = await placed.open_named(name)
                for row in await graph.fetch("moves.list_groups", tenant=tenant):
                    known = apart.get(name_of_group(row["group_id"]))
                    if known is not None and (known.graph or own_graph) == name:
                        user_id = Owner.from_group_id(row["group_id"]).user_id
                        found[user_id] = UserPlacement(
                            user_id=user_id,
                            graph=name,
                            state=known.state.value,
                            target=known.target,
                            job_id=known.job_id,
                        )
        return [found[user_id] for user_id in sorted(found)]

    def _require_placed(self, *names: str) -> PlacedGraph:
        for name in names:
            if name not in self.names:
                raise InvalidInput(
                    f"There is no graph {name!r}: add it to GRAPHMEM_PLACEMENTS and start graphmem again."
                )
        if self._placed is None:
            raise Conflict("All tenants live in the only graph: add another one to GRAPHMEM_PLACEMENTS.")
        return self._placed

    async def _check(self, name: str) -> GraphStatus:
        try:
            graph = await self._placed.open_named(name) if self._placed else self._graph
            await graph.check_answering(ANSWER_SECONDS)
        except Unavailable as error:
            return GraphStatus(name=name, status="unavailable", reason=error.detail)
        return GraphStatus(name=name, status="ok")


def _to_view(assignment: Assignment) -> TenantPlacement:
    return TenantPlacement(
        tenant=assignment.name,
        graph=assignment.graph or HOME_GRAPH,
        state=assignment.state.value,
        target=assignment.target,
        job_id=assignment.job_id,
    )
