"""Lists the graphs in which tenants live, and queues moves of tenants between graphs."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable

from graphmem.jobs.job import Job, JobStatus
from graphmem.jobs.runner import JobRunner
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.placed_graph import GraphLocation, PlacedGraph, graph_names, use_graph
from graphmem.placement.models import GraphStatus, PlacementList, TenantPlacement
from graphmem.placement.move import MOVE_JOB, MovePayload
from graphmem.runtime.errors import Conflict, Forbidden, InvalidInput, Unavailable
from graphmem.runtime.settings import HOME_GRAPH
from graphmem.runtime.times import Clock
from graphmem.tenants.access import ApiKey

ANSWER_SECONDS = 2.0
"""Seconds within which a graph must answer to be listed as available."""


class PlacementService:
    """Operations on the graphs in which tenants live; if only one is configured, all live there."""

    def __init__(self, graph: Graph, placed: PlacedGraph | None, jobs: JobRunner, clock: Clock) -> None:
        self._graph = graph
        self._placed = placed
        self._jobs = jobs
        self._clock = clock

    @property
    def names(self) -> list[str]:
        """The names of all graphs, home first."""
        return graph_names(self._placed)

    async def run_everywhere(self, task: Callable[[], Awaitable[int]]) -> int:
        """Run a task for all tenants in every graph, and return the sum of its results.

        Raises Unavailable if a graph is unavailable, after running in the others.
        """
        total, unavailable = 0, None
        for name in self.names:
            try:
                with use_graph(name):
                    total += await task()
            except Unavailable as error:
                unavailable = error
        if unavailable is not None:
            raise unavailable
        return total

    async def describe(self, caller: ApiKey) -> PlacementList:
        """Return the graphs and the caller's tenant's graph; for local callers, also those of all moved tenants."""
        graphs = [await self._check(name) for name in self.names]
        listed = await self._placed.locations.list_all() if self._placed else []
        found = {location.tenant: location for location in listed}
        own = found.get(caller.tenant, GraphLocation(caller.tenant))
        shown = {**found, own.tenant: own} if caller.is_local else {own.tenant: own}
        return PlacementList(graphs=graphs, tenants=[_to_view(shown[tenant]) for tenant in sorted(shown)])

    async def move(self, tenant: str, target: str) -> Job:
        """Queue the move of a tenant, and return its job.

        A move to `target` that is under way or failed is continued. Raises InvalidInput for an unknown graph, Conflict
        if the tenant already lives there or is moving elsewhere, and DatabaseUnavailable if the graph does not answer.
        """
        placed = self._require_placed(target)
        placed.locations.expire()
        known = await placed.locations.find(tenant)
        job = await self._jobs.find(known.job_id) if known.job_id else None
        if known.target == target and job is not None and job.status is not JobStatus.SUCCEEDED:
            return await self._jobs.retry(job.id) if job.status is JobStatus.FAILED else job
        if job is not None and not job.status.is_final:
            raise Conflict(f"The tenant is being moved: wait for the job {job.id} to end.")
        if known.graph == target:
            raise Conflict(f"The tenant lives in {target!r} already.")
        await placed.open_named(target)
        job_id = str(uuid.uuid4())
        # Recorded before it is queued, so that a repeated request finds it.
        recorded = await placed.home.execute(
            "placements.record_job",
            tenant=tenant,
            graph=known.graph,
            target=target,
            job_id=job_id,
            former_job_id=known.job_id or "",
            now=self._clock(),
        )
        placed.locations.expire()
        if not recorded:
            raise Conflict("The tenant is being moved by another request: list the placements, then ask again.")
        payload = MovePayload(tenant=tenant, source=known.graph, target=target)
        return await self._jobs.get(await self._jobs.enqueue(MOVE_JOB, payload, job_id))

    async def drain(self, caller: ApiKey, source: str, target: str) -> list[Job]:
        """Queue the moves of all tenants of a graph, and return their jobs.

        Raises Forbidden for a caller that is not local, and the errors of `move`.
        """
        if not caller.is_local:
            raise Forbidden("Only commands on the machine drain a graph: run `graphmem placement drain` there.")
        placed = self._require_placed(source, target)
        if source == target:
            raise InvalidInput("The tenants must move to another graph.")
        graph_of = {location.tenant: location.graph for location in await placed.locations.list_all()}
        graph = await placed.open_named(source)
        stored = {row["tenant"] for row in await graph.fetch("placements.list_tenants")}
        tenants = sorted(stored | graph_of.keys())
        return [await self.move(tenant, target) for tenant in tenants if graph_of.get(tenant, HOME_GRAPH) == source]

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


def _to_view(location: GraphLocation) -> TenantPlacement:
    return TenantPlacement(
        tenant=location.tenant,
        graph=location.graph,
        state=location.state.value,
        target=location.target,
        job_id=location.job_id,
    )
