"""The job that moves a tenant, or one of its users, to another graph while it is read and written.

    begin    the source notes what is written from now on; writes that began before come to their end
    copy     everything, then what was noted, until a pass takes a moment
    switch   the gate closes: writes wait, reads go on; what was noted last is copied, both sides are compared;
             the source is left for good, and the assignment names the target
    erase    the source, once no read of it is under way

A step may be cut short anywhere and done again. Until the source is left, it stays in force. With a user its share of
what is of the tenant as a whole moves, such as its consolidation runs; memberships in spaces stay with these.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from pydantic import BaseModel, Field

from graphmem.jobs.job import JobAction, JobOutcome
from graphmem.jobs.kinds import JobInterrupted, JobKind, JobPayload, Steps
from graphmem.neo4j.assignments import LEASE_SECONDS, Assignment, MoveState
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.placed_graph import PlacedGraph
from graphmem.placement.copying import DataCopy, MovedData, Side, erase_data
from graphmem.runtime.errors import Conflict, DatabaseUnavailable, GraphmemError, JobStoreUnavailable, Unavailable
from graphmem.runtime.times import Clock
from graphmem.tenants.owners import Owner

GATE_MILLISECONDS = 20_000
"""How long a gate stays closed when the process that has closed it ends."""

LEAVING_MILLISECONDS = 10_000
"""How long a gate must still be closed when its graph is left, so that it is left before the gate can open."""

SWITCH_BUDGETS = (0.7, 0.7, 0.7, 0.9, 1.5, 3.0, 6.0)
"""Seconds that writes wait in each try to switch; a try that takes longer is given up, and they go on."""

GROUPS_AT_ONCE = 8
"""Groups that are copied side by side."""

QUICK_SECONDS = 0.25
"""Seconds of a pass that is short enough for a switch."""

MARGIN_SECONDS = 0.25
"""Seconds to wait beyond the lease of other processes."""

CHANGES_AT_ONCE = 50_000
"""Notes of changes that are read at once."""

USERS_LIVE_APART = (
    "Users of the tenant live in other graphs than it does: move them to its graph first, which "
    "`graphmem placement move` does with --user."
)
"""Detail of the error for the move of a tenant that is divided."""

log = logging.getLogger(__name__)


class MovePayload(JobPayload):
    """A tenant and the graphs between which it, or a user of it, moves; `user` is the name of the user's place."""

    tenant: str
    source: str
    target: str
    user: str | None = None

    @property
    def partition(self) -> str:
        """The partition of the tenant's jobs that belong to no user, so that its moves are made one after the other."""
        return Owner(self.tenant, "").group_id

    @property
    def name(self) -> str:
        """The name of the place of what moves."""
        return self.user or self.tenant


MOVE_JOB = JobKind("move", MovePayload)
"""Moves a tenant or a user to another graph."""


class SwitchReport(BaseModel):
    """What both graphs had of what moved at the switch, counted by kind and as a digest, and how long writes waited."""

    counts: dict[str, int] = Field(default_factory=dict)
    digest: str = ""
    waited_ms: int = 0
    tries: int = 0


class MoveAction(JobAction):
    """A tenant or a user that was moved; `digest` is that of both sides, `waited_ms` how long its writes waited."""

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
        """Handle a job of kind `move`; where it fails, what moves stays in the source."""
        move = Move(self._placed, self._clock, payload, steps.job_id)
        try:
            await steps.run_idempotent("begin", move.begin)
            await steps.run_idempotent("copy", move.copy)
            report = await steps.run_idempotent("switch", move.switch, SwitchReport)
        except (DatabaseUnavailable, JobStoreUnavailable):
            raise  # it goes on later
        except GraphmemError:
            await move.abandon()
            raise
        erased = await steps.run_idempotent("erase", move.erase)
        done = MoveAction(
            tenant=payload.tenant, source=payload.source, target=payload.target, erased=erased, **report.model_dump()
        )
        return JobOutcome(actions=[done])


@dataclass(slots=True)
class Move:
    """One attempt at a move."""

    placed: PlacedGraph
    clock: Clock
    payload: MovePayload
    job_id: str
    _moved: MovedData = field(init=False)
    _attempt: str = field(default_factory=lambda: uuid.uuid4().hex)
    _sides: dict[str, Side] = field(default_factory=dict)
    _differing: set[str] = field(default_factory=set)
    _has_left: bool = False
    _report: SwitchReport | None = None

    def __post_init__(self) -> None:
        self._moved = MovedData(self.payload.name)

    async def begin(self) -> None:
        """Have the source note changes; find out how far an earlier attempt has come."""
        known = await self._find_assignment()
        if known.graph == self.payload.target and known.job_id == self.job_id:
            self._report = SwitchReport.model_validate_json(known.report or "{}")
            return
        await self._check_place(known)
        source = await self._source()
        target = await self._target()
        await self._check_models(source, target)
        with_tenant = self._moved.is_user and self.payload.source == await self._graph_of_tenant()
        assigned = await self.placed.assignments.begin_move(
            self.payload.name,
            self.payload.source,
            self.payload.target,
            self.job_id,
            self.clock(),
            stored=None if with_tenant else self.payload.source,
        )
        if assigned is None:
            raise Conflict(self._is_elsewhere)
        if self._moved.is_user:
            await self._divide_tenant()
        if not await source.execute("placements.take_gate", state="noting", attempt=self._attempt, **self._of_job):
            self._has_left = True
            return
        await target.execute("placements.take_gate", state="copying", attempt=self._attempt, **self._of_job)
        # Again: a re-embedding that has begun meanwhile waits for the moves that it sees, and has not seen this one.
        await self._check_models(source, target)
        await asyncio.gather(self._await_writers(source), self._await_writers(target))
        for group_id in await self._moved.list_groups(source) if self._moved.is_user else ():
            await source.execute("moves.detach_parts", group_id=group_id)

    async def copy(self) -> None:
        """Copy everything, compare all of it once, and copy what was written meanwhile."""
        if self._is_switched:
            return
        copy = await self._open_copy()
        await copy.copy_beside_groups()
        # What was copied is compared in full by the second pass; from then on revisions tell what has changed.
        for _ in range(2):
            groups = await copy.list_groups()
            await _for_each(groups, partial(copy.copy_group, changed_only=False))
        await _for_each(groups, partial(self._compare, copy))
        await self._catch_up_repeatedly(copy)

    async def switch(self) -> SwitchReport:
        """Close the gate for a moment, copy what is left, compare, and name the target in the assignment."""
        if self._report is not None:
            return self._report
        if not self._has_left:
            copy = await self._open_copy()
            await self.placed.assignments.change(self.payload.name, self.clock(), state=MoveState.SWITCHING.value)
            await asyncio.sleep(LEASE_SECONDS + MARGIN_SECONDS)
            try:
                report = await self._try_to_leave(copy)
            except BaseException:
                # Reads of the tenant need not be looked up until the switch is tried again.
                if not self._has_left:
                    await self._reopen()
                raise
            return await self._arrive(report)
        return await self._arrive(SwitchReport())

    async def erase(self) -> int:
        """Erase the source; return how many nodes there were."""
        await asyncio.sleep(2 * LEASE_SECONDS)
        return await erase_data(await self._source(), self._moved)

    async def abandon(self) -> None:
        """Leave what moves where it is, and erase what was copied."""
        known = await self._find_assignment()
        if known.job_id != self.job_id:
            return
        if known.graph != self.payload.source:
            # It has moved with its tenant since: whoever asks again gets a job that knows where it is.
            await self.placed.assignments.change(self.payload.name, self.clock(), target=None)
            return
        try:
            source, target = await self._source(), await self._target()
            await source.execute("placements.remove_gate", **self._of_job)
            await source.execute("placements.delete_all_changes", **self._gate)
            await self.placed.assignments.change(
                self.payload.name, self.clock(), state=MoveState.SETTLED.value, target=None
            )
            if await self._has_users_apart():
                return  # nothing was copied, and they may live there
            await target.execute("placements.take_gate", state="left", attempt=self._attempt, **self._of_job)
            await erase_data(target, self._moved)
        except Unavailable as error:
            log.warning("A move was given up, and its copy is not erased yet: %s", error.detail)

    # Parts of the steps

    @property
    def _is_switched(self) -> bool:
        return self._has_left or self._report is not None

    @property
    def _gate(self) -> dict[str, str]:
        return {"tenant": self.payload.name}

    @property
    def _of_job(self) -> dict[str, str]:
        return {**self._gate, "job_id": self.job_id}

    async def _graph_of_tenant(self) -> str:
        return await self.placed.assignments.find_graph(self.payload.tenant)

    @property
    def _is_elsewhere(self) -> str:
        return (
            f"What is to move does not live in {self.payload.source!r} or moves already: list the placements, then ask "
            "again."
        )

    async def _check_place(self, known: Assignment) -> None:
        """Raise Conflict for what lives elsewhere, and for a tenant whose users live apart."""
        if known.graph != self.payload.source:
            raise Conflict(self._is_elsewhere)
        if await self._has_users_apart():
            raise Conflict(USERS_LIVE_APART)

    async def _has_users_apart(self) -> bool:
        if self._moved.is_user:
            return False
        return bool(await self.placed.assignments.list_users_apart(self.payload.tenant))

    async def _divide_tenant(self) -> None:
        """Have every write of the tenant tell its users apart."""
        graph = await self.placed.open_named(await self._graph_of_tenant())
        await graph.execute("placements.divide", tenant=self.payload.tenant)
        await self._await_writers(graph)

    async def _find_assignment(self) -> Assignment:
        self.placed.assignments.expire()
        return await self.placed.assignments.find(self.payload.name)

    async def _source(self) -> Graph:
        return await self.placed.open_named(self.payload.source)

    async def _target(self) -> Graph:
        return await self.placed.open_named(self.payload.target)

    async def _open_copy(self) -> DataCopy:
        return DataCopy(await self._source(), await self._target(), self._moved, self._attempt)

    async def _check_models(self, source: Graph, target: Graph) -> None:
        states = [await graph.vector_state(refresh=True) for graph in (source, target)]
        if any(state is None or state.next is not None for state in states) or states[0] != states[1]:
            raise Conflict("Both graphs must have vectors of one model, and no re-embedding under way.")

    async def _await_writers(self, graph: Graph) -> None:
        """Wait until the writes of the tenant, of all its users, that are under way have ended."""
        writers = await self._list_writers(graph)
        while writers:
            await asyncio.sleep(0.01)
            writers &= await self._list_writers(graph)

    async def _list_writers(self, graph: Graph) -> set[str]:
        return {row["id"] for row in await graph.execute("placements.list_writers", tenant=self.payload.tenant)}

    async def _catch_up_repeatedly(self, copy: DataCopy) -> None:
        """Copy what was written until a pass is short, or not much shorter than the one before."""
        last = math.inf
        while True:
            started = time.monotonic()
            await self._catch_up(copy)
            seconds = time.monotonic() - started
            if seconds < QUICK_SECONDS or seconds > last / 2:
                return
            last = seconds

    async def _catch_up(self, copy: DataCopy) -> int:
        """Copy the groups that were written to, and what is beside groups; return how many notes there were."""
        source = await self._source()
        noted = await source.fetch("placements.list_changes", limit=CHANGES_AT_ONCE, **self._gate)
        self._moved.note(row["group_id"] for row in noted)
        groups = sorted({row["group_id"] for row in noted if row["group_id"]} | self._differing)
        await copy.copy_beside_groups()
        await _for_each(groups, partial(copy.copy_group, changed_only=True))
        await _for_each(groups, partial(self._compare, copy))
        if noted:
            await source.execute("placements.delete_changes", ids=[row["id"] for row in noted])
        return len(noted)

    async def _compare(self, copy: DataCopy, group_id: str) -> None:
        source, target = await copy.describe(group_id)
        self._sides[group_id] = source
        if source == target:
            self._differing.discard(group_id)
        else:
            self._differing.add(group_id)

    async def _try_to_leave(self, copy: DataCopy) -> SwitchReport:
        """Close the gate until all is copied, and leave the source; raise Conflict when that always takes too long."""
        source = await self._source()
        for number, budget in enumerate(SWITCH_BUDGETS, 1):
            await self._catch_up_repeatedly(copy)
            await self._await_erasures(source)
            started = time.monotonic()
            closed = await source.execute(
                "placements.close_gate", milliseconds=GATE_MILLISECONDS, attempt=self._attempt, **self._gate
            )
            if not closed:
                raise JobInterrupted("another worker goes on with the move")
            try:
                async with asyncio.timeout(budget):
                    await self._await_writers(source)
                    # Nothing more is noted: whoever wrote has ended, and others wait.
                    while await self._catch_up(copy) == CHANGES_AT_ONCE or self._differing:
                        pass
                    report = await self._report_if_equal(copy)
            except TimeoutError:
                report = None
            if report is not None:
                left = await source.execute(
                    "placements.leave", milliseconds=LEAVING_MILLISECONDS, attempt=self._attempt, **self._gate
                )
                if left:
                    self._has_left = True
                    waited = round(1000 * (time.monotonic() - started))
                    return report.model_copy(update={"waited_ms": waited, "tries": number})
            await source.execute("placements.reopen_gate", attempt=self._attempt, **self._gate)
            log.info("a switch took too long and is tried again", extra={"seconds": budget})
        different = ", ".join(sorted(self._differing)) or "none"
        raise Conflict(
            f"So much is written that the switch cannot be made within {SWITCH_BUDGETS[-1]:.0f} seconds "
            f"(groups that differ: {different}): ask for the move when less is written."
        )

    async def _await_erasures(self, source: Graph) -> None:
        """Wait until nobody who moves is being forgotten: the mark of an erasure stays where it is."""
        while await self._is_any_erased(source):  # noqa: ASYNC110 - others end them
            await asyncio.sleep(LEASE_SECONDS)

    async def _is_any_erased(self, source: Graph) -> bool:
        prefix = self._moved.group_id or Owner(self.payload.tenant, "").group_id
        [row] = await source.fetch("moves.is_any_erased", prefix=prefix)
        return bool(row["is_any"])

    async def _report_if_equal(self, copy: DataCopy) -> SwitchReport | None:
        """Return what both sides have, or None where they differ or an erasure has begun."""
        own, there = await copy.describe_beside_groups()
        if self._differing or own != there or await self._is_any_erased(await self._source()):
            return None
        for side in self._sides.values():
            own.add_all(side)
        return SwitchReport(counts=dict(sorted(own.counts.items())), digest=f"{own.digest:032x}")

    async def _arrive(self, report: SwitchReport) -> SwitchReport:
        """Let the target take writes, and name it in the assignment."""
        target = await self._target()
        if not self._moved.is_user:
            await target.execute("placements.remove_gates_of_users", prefix=f"{self.payload.tenant}:")
        await target.execute("placements.remove_gate", **self._of_job)
        with_tenant = self._moved.is_user and self.payload.target == await self._graph_of_tenant()
        await self.placed.assignments.change(
            self.payload.name,
            self.clock(),
            graph=None if with_tenant else self.payload.target,
            state=MoveState.SETTLED.value,
            target=None,
            report=json.dumps(report.model_dump()),
        )
        self._report = report
        return report

    async def _reopen(self) -> None:
        try:
            source = await self._source()
            await source.execute("placements.reopen_gate", attempt=self._attempt, **self._gate)
            await self.placed.assignments.change(self.payload.name, self.clock(), state=MoveState.COPYING.value)
        except Unavailable as error:
            log.warning("A gate stays closed until its time is over: %s", error.detail)


async def _for_each(groups: Iterable[str], work: Callable[[str], Awaitable[None]]) -> None:
    """Do work for groups, several side by side; when it fails for one, the others end too."""
    free = asyncio.Semaphore(GROUPS_AT_ONCE)

    async def work_in_turn(group_id: str) -> None:
        async with free:
            await work(group_id)

    tasks = [asyncio.create_task(work_in_turn(group_id)) for group_id in groups]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
