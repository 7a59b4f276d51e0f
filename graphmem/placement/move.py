"""The job that moves a tenant to another graph while it is read and written.

    begin    a number for this attempt; from now on every write is counted in the revision of its group
    copy     everything, then what has changed since, until a pass takes a moment
    switch   the write barrier closes: writes wait, reads go on; what has changed last is copied, both graphs are
             compared, and the location names the target
    erase    the source, once no read of it is under way

An attempt may end anywhere. Until the location names the target, the source is in force and a new attempt copies what
differs; from then on only the source is left to erase. An ended attempt cannot switch: another one has a larger
number, and so has the location after a write has passed a barrier that has ended.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from pydantic import BaseModel, Field

from graphmem.jobs.job import JobAction, JobOutcome
from graphmem.jobs.kinds import JobKind, JobPayload, Steps
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.placed_graph import COUNTING, ENDED, LEASE_SECONDS, OPEN, GraphLocation, MoveState, PlacedGraph
from graphmem.placement.copying import TenantCopy, attempt_ended
from graphmem.runtime.errors import Conflict, DatabaseUnavailable, GraphmemError, JobStoreUnavailable, Unavailable
from graphmem.runtime.times import Clock, to_micros
from graphmem.tenants.owners import Owner

BARRIER_TIME = timedelta(seconds=20)
"""How long a barrier stays closed when the process that has closed it ends."""

SWITCH_BUDGETS = (1.0, 3.0, 9.0)
"""Seconds that writes wait in each try to switch; a try that takes longer is given up, and they go on."""

QUICK_SECONDS = 0.25
"""Seconds of a pass that is short enough for a switch."""

MARGIN_SECONDS = 0.1
"""Seconds to wait beyond the time for which other processes rely on what they have read."""

log = logging.getLogger(__name__)


class MovePayload(JobPayload):
    """A tenant and the graphs between which it moves."""

    tenant: str
    source: str
    target: str

    @property
    def partition(self) -> str:
        """The partition of the tenant's jobs that belong to no user, so that its moves are made one after the other."""
        return Owner(self.tenant, "").group_id


MOVE_JOB = JobKind("move", MovePayload)
"""Moves a tenant to another graph."""


class SwitchReport(BaseModel):
    """What both graphs had of the tenant at the switch, counted by kind and as a digest, and how long writes waited."""

    counts: dict[str, int] = Field(default_factory=dict)
    digest: str = ""
    waited_ms: int = 0
    tries: int = 0


class MoveAction(JobAction):
    """A tenant that was moved; `digest` is that of both graphs, `waited_ms` how long its writes waited."""

    action: Literal["move"] = "move"
    tenant: str
    source: str
    target: str
    counts: dict[str, int]
    digest: str
    waited_ms: int
    tries: int
    erased: int


class MoveJob:
    """Handles the jobs of moves."""

    def __init__(self, placed: PlacedGraph, clock: Clock) -> None:
        self._placed = placed
        self._clock = clock

    async def handle(self, payload: MovePayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `move`; where it fails, the tenant stays in the source."""
        move = Move(self._placed, self._clock, payload, steps.job_id)
        try:
            report = await steps.run_idempotent("move", move.run, SwitchReport)
        except (DatabaseUnavailable, JobStoreUnavailable):
            raise  # it goes on later
        except GraphmemError:
            await move.give_up()
            raise
        erased = await steps.run_idempotent("erase", move.erase)
        done = MoveAction(
            tenant=payload.tenant, source=payload.source, target=payload.target, erased=erased, **report.model_dump()
        )
        return JobOutcome(actions=[done])


@dataclass(slots=True)
class Move:
    """The move of a tenant by a job; each call of `run` is an attempt."""

    placed: PlacedGraph
    clock: Clock
    payload: MovePayload
    job_id: str

    async def run(self) -> SwitchReport:
        """Copy the tenant and switch it, unless an earlier attempt has; return what it has reported."""
        location = await self._find_location()
        if location.graph == self.payload.target and location.job_id == self.job_id:
            return SwitchReport.model_validate_json(location.report or "{}")
        source, target = await self._open_graphs()
        await self._check_models(source, target)
        attempt = await self._begin()
        await self._set_barrier(source, attempt, COUNTING)
        # Whoever still believes that the tenant lives there asks the home graph.
        await self._set_barrier(target, attempt, ENDED)
        # Again: a re-embedding that has begun meanwhile waits for the moves that it sees, and has not seen this one.
        await self._check_models(source, target)
        for graph in (source, target):
            await self._await_writers(graph)
        copy = TenantCopy(source, target, self.payload.tenant, attempt)
        await self._catch_up(copy)
        return await self._switch(copy, attempt, source, target)

    async def erase(self) -> int:
        """Erase the source; return how many nodes there were."""
        await asyncio.sleep(2 * LEASE_SECONDS)
        location = await self._find_location()
        if self.payload.source in (location.graph, location.target):
            return 0  # a later move has taken or takes it back
        source, target = await self._open_graphs()
        await self._set_barrier(source, location.attempt, ENDED)
        return await TenantCopy(source, target, self.payload.tenant, location.attempt).erase(source)

    async def give_up(self) -> None:
        """Leave the tenant where it is, and erase what was copied."""
        rows = await self.placed.home.execute(
            "placements.give_up", tenant=self.payload.tenant, graph=self.payload.source, job_id=self.job_id
        )
        self.placed.locations.expire()
        if not rows:
            return
        attempt = rows[0]["attempt"]
        try:
            source, target = await self._open_graphs()
            await self._set_barrier(source, attempt, OPEN)
            await self._set_barrier(target, attempt, ENDED)
            await self._await_writers(target)
            await TenantCopy(source, target, self.payload.tenant, attempt).erase(target)
        except Unavailable as error:
            log.warning("A move was given up, and its copy is not erased yet: %s", error.detail)

    # Parts of an attempt

    async def _begin(self) -> int:
        """Return the number of this attempt; raise Conflict for a tenant that lives elsewhere or moves already."""
        rows = await self.placed.home.execute(
            "placements.begin",
            tenant=self.payload.tenant,
            graph=self.payload.source,
            target=self.payload.target,
            job_id=self.job_id,
            now=self.clock(),
        )
        self.placed.locations.expire()
        if not rows:
            raise Conflict(
                f"The tenant does not live in {self.payload.source!r} or moves already: list the placements, then ask "
                "again."
            )
        return int(rows[0]["attempt"])

    async def _switch(self, copy: TenantCopy, attempt: int, source: Graph, target: Graph) -> SwitchReport:
        """Hold the writes of the tenant until all is copied, and name the target in its location.

        Raises Conflict when that always takes too long.
        """
        # Reads look the location up from now on, so that none misses a write that follows the switch.
        await self._set_state(attempt, MoveState.SWITCHING)
        await asyncio.sleep(LEASE_SECONDS + MARGIN_SECONDS)
        for number, budget in enumerate(SWITCH_BUDGETS, 1):
            await copy.catch_up()
            started = time.monotonic()
            await self._set_barrier(source, attempt, to_micros(self.clock() + BARRIER_TIME))
            try:
                is_equal = await self._finish(copy, source, budget)
            except BaseException:
                await self._reopen(attempt, source)
                raise
            if is_equal:
                waited = round(1000 * (time.monotonic() - started))
                summary = copy.summarize()
                report = SwitchReport(
                    counts=dict(sorted(summary.counts.items())),
                    digest=f"{summary.digest:032x}",
                    waited_ms=waited,
                    tries=number,
                )
                await self._name_target(attempt, report)
                await self._set_barrier(target, attempt, OPEN)
                return report
            await self._set_barrier(source, attempt, COUNTING)
            log.info("a switch took too long and is tried again", extra={"seconds": budget})
        await self._set_state(attempt, MoveState.COPYING)
        raise Conflict(
            f"There are too many writes to switch within {SWITCH_BUDGETS[-1]:.0f} seconds: ask for the "
            "move when less is written."
        )

    async def _finish(self, copy: TenantCopy, source: Graph, seconds: float) -> bool:
        """Copy what is left while writes wait; return whether both graphs are equal within some seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._await_writers(source)
                while not await copy.catch_up():
                    pass
                return True
        except TimeoutError:
            return False

    async def _name_target(self, attempt: int, report: SwitchReport) -> None:
        """Switch the tenant. Where the outcome is unknown, the barrier stays closed until its end and decides then."""
        rows = await self.placed.home.execute(
            "placements.switch",
            tenant=self.payload.tenant,
            attempt=attempt,
            report=report.model_dump_json(),
            now=self.clock(),
        )
        self.placed.locations.expire()
        if not rows:
            raise attempt_ended()

    async def _catch_up(self, copy: TenantCopy) -> None:
        """Copy what was written until a pass is short, or not much shorter than the one before."""
        last = math.inf
        while True:
            started = time.monotonic()
            await copy.catch_up()
            seconds = time.monotonic() - started
            if seconds < QUICK_SECONDS or seconds > last / 2:
                return
            last = seconds

    async def _reopen(self, attempt: int, source: Graph) -> None:
        try:
            await self._set_barrier(source, attempt, COUNTING)
            await self._set_state(attempt, MoveState.COPYING)
        except Unavailable as error:
            log.warning("A write barrier stays closed until its time is over: %s", error.detail)

    async def _find_location(self) -> GraphLocation:
        self.placed.locations.expire()
        return await self.placed.locations.find(self.payload.tenant)

    async def _open_graphs(self) -> tuple[Graph, Graph]:
        return await self.placed.open_named(self.payload.source), await self.placed.open_named(self.payload.target)

    async def _check_models(self, source: Graph, target: Graph) -> None:
        states = [await graph.vector_state(refresh=True) for graph in (source, target)]
        if any(state is None or state.next is not None for state in states) or states[0] != states[1]:
            raise Conflict("Both graphs must have vectors of one model, and no re-embedding under way.")

    async def _set_state(self, attempt: int, state: MoveState) -> None:
        rows = await self.placed.home.execute(
            "placements.set_state", tenant=self.payload.tenant, attempt=attempt, state=state.value
        )
        self.placed.locations.expire()
        if not rows:
            raise attempt_ended()

    async def _set_barrier(self, graph: Graph, attempt: int, until: int | None) -> None:
        """Set the time in microseconds since 1970 until which the barrier of a graph is closed."""
        if not await graph.execute("placements.set_barrier", tenant=self.payload.tenant, attempt=attempt, until=until):
            raise attempt_ended()

    async def _await_writers(self, graph: Graph) -> None:
        """Wait until the writes of the tenant that are under way have ended."""
        writers = await self._list_writers(graph)
        while writers:
            await asyncio.sleep(0.01)
            writers &= await self._list_writers(graph)

    async def _list_writers(self, graph: Graph) -> set[str]:
        return {row["id"] for row in await graph.execute("placements.list_writers", tenant=self.payload.tenant)}
