"""Lists the graphs in which tenants live, and has a worker move a tenant to another one."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from itertools import chain

from graphmem.jobs.job import Job, JobStatus
from graphmem.jobs.runner import JobRunner
from graphmem.neo4j.assignments import Assignment, MoveState
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.placed_graph import PlacedGraph, graph_names
from graphmem.neo4j.work import working_in
from graphmem.placement.models import GraphStatus, PlacementList, TenantPlacement
from graphmem.placement.move import MOVE_JOB, MovePayload
from graphmem.runtime.errors import Conflict, Forbidden, InvalidInput, Unavailable
from graphmem.runtime.settings import HOME_GRAPH
from graphmem.runtime.times import Clock
from graphmem.tenants.access import ApiKey

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
        found = {assignment.tenant: assignment for assignment in await self._placed.assignments.list_all()}
        own = found.get(caller.tenant, Assignment(caller.tenant))
        shown = {**found, own.tenant: own} if caller.is_local else {own.tenant: own}
        return PlacementList(graphs=graphs, tenants=[_to_view(shown[tenant]) for tenant in sorted(shown)])

    async def move(self, tenant: str, target: str) -> Job:
        """Queue the move of a tenant and return its job; a move there that is under way or failed goes on.

        Raises InvalidInput for an unknown graph, Conflict for a tenant that lives there or moves elsewhere, and
        DatabaseUnavailable where the graph does not answer.
        """
        placed = self._require_placed(target)
        placed.assignments.expire()
        known = await placed.assignments.find(tenant)
        job = await self._jobs.find(known.job_id) if known.job_id and known.target else None
        if known.target == target and job is not None and job.status is not JobStatus.SUCCEEDED:
            return await self._jobs.retry(job.id) if job.status is JobStatus.FAILED else job
        if job is not None and not job.status.is_final:
            raise Conflict(f"The tenant moves to {known.target!r} already: wait for the job {job.id} to end.")
        if known.graph == target:
            raise Conflict(f"The tenant lives in {target!r} already.")
        await placed.open_named(target)
        job_id = str(uuid.uuid4())
        # Known before it is queued, so that asking again finds it.
        await placed.assignments.change(
            tenant,
            self._clock(),
            graph=known.graph,
            state=MoveState.SETTLED.value,
            target=target,
            job_id=job_id,
        )
        payload = MovePayload(tenant=tenant, source=known.graph, target=target)
        return await self._jobs.get(await self._jobs.enqueue(MOVE_JOB, payload, job_id))

    async def drain(self, caller: ApiKey, source: str, target: str) -> list[Job]:
        """Queue the moves of all tenants of a graph to another one and return their jobs.

        Raises Forbidden for a caller who is not on the machine, and what `move` raises.
        """
        if not caller.is_local:
            raise Forbidden("Only commands on the machine drain a graph: run `graphmem placement drain` there.")
        placed = self._require_placed(source, target)
        if source == target:
            raise InvalidInput("The tenants must move to another graph.")
        assignments = await placed.assignments.list_all()
        placed_in = {assignment.tenant: assignment.graph for assignment in assignments}
        graph = await placed.open_named(source)
        stored = [row["tenant"] for row in await graph.fetch("placements.list_tenants")]
        there = {tenant for tenant in chain(stored, placed_in) if placed_in.get(tenant, HOME_GRAPH) == source}
        return [await self.move(tenant, target) for tenant in sorted(there)]

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
        tenant=assignment.tenant,
        graph=assignment.graph,
        state=assignment.state.value,
        target=assignment.target,
        job_id=assignment.job_id,
    )
