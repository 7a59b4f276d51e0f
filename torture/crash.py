"""Kills processes in storms of writes, and compares what is stored with what was acknowledged."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, defaultdict
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from graphmem.neo4j.driver import Graph
from graphmem.neo4j.migrations import check_invariants
from torture.figures import Figure
from torture.findings import Findings
from torture.persistent_client import REQUEST_SECONDS, NotAcknowledged, PersistentClient, RequestCosts
from torture.stories import JOB_SECONDS, STORIES, Check, Story, Teller

TELLERS = 6
"""Stories that are told at the same time."""

SHARED_USERS = ("ada", "bob", "cleo")
"""Users of each tenant that several stories write to at once."""

LEAD_SECONDS = (0.5, 4.0)
"""Bounds of the time between the start of a storm and the kill."""

MAX_RECOVERY_SECONDS = 60.0
"""Seconds after which everything must be ready again."""

CHECKS_AT_ONCE = 6
"""Stories that are checked at the same time."""

CHECK_SECONDS = 600
"""Seconds in which everything that was acknowledged must be found."""

SETTLING_SECONDS = 1.0
"""Seconds after everything is ready for which a storm goes on."""

KILLS_OF_EACH, KILLS_A_ROUND = 2, 2
"""How often `plan_twice` kills each target, and how many kills, one after the other, a round of it has."""


class Installation(Protocol):
    """Processes that can be killed."""

    @property
    def keys(self) -> list[str]:
        """The keys of admins, one of each tenant that is written to."""

    @property
    def address(self) -> str:
        """The address of the API."""

    @property
    def targets(self) -> list[str]:
        """What can be killed."""

    @property
    def notes(self) -> dict[str, str]:
        """What else is reported, by the names of figures."""

    async def kill(self, target: str) -> None:
        """Kill a process by SIGKILL, and start it again as whoever runs it would."""

    async def wait_until_ready(self) -> float:
        """Return the seconds until everything is ready; raise TimeoutError."""

    async def begin_move(self, findings: Findings) -> Check | None:
        """Begin to move a tenant between graphs; return what must hold afterwards, None where nothing moves."""

    def open_graphs(self) -> AbstractAsyncContextManager[list[Graph]]:
        """Open a connection to each database."""


@dataclass(frozen=True)
class KillCost:
    """What a kill cost: seconds until everything was ready, tries of requests that failed, the longest wait for one."""

    seconds: float
    failed: int
    longest_wait: float


@dataclass
class StormResult:
    """What all rounds have in common."""

    acknowledged: Counter[str] = field(default_factory=Counter)
    costs: dict[str, list[KillCost]] = field(default_factory=lambda: defaultdict(list))
    longest_try: float = 0.0


def plan_in_turn(targets: list[str], rounds: int, chance: random.Random) -> list[list[str]]:
    """Return what each round kills: each target in turn, and later on often a second one."""
    plan = []
    for number in range(rounds):
        killed = [targets[number % len(targets)]]
        if number >= len(targets) and chance.random() < 0.5:
            killed.append(chance.choice([other for other in targets if other not in killed]))
        plan.append(killed)
    return plan


def plan_twice(targets: list[str], rounds: int, chance: random.Random) -> list[list[str]]:
    """Return what each round kills: every target once in some order, then every one again; at most so many rounds."""
    kills = [target for _ in range(KILLS_OF_EACH) for target in chance.sample(targets, len(targets))]
    return [kills[first : first + KILLS_A_ROUND] for first in range(0, len(kills), KILLS_A_ROUND)][:rounds]


async def run_crashes(
    installation: Installation, plan: list[list[str]], chance: random.Random, findings: Findings, part: str = "crash"
) -> list[Figure]:
    """Kill what the plan says for each round; return the figures."""
    result = StormResult()
    for number, targets in enumerate(plan, 1):
        known = findings.total
        await run_round(installation, targets, chance, result, findings)
        killed = f"{time.strftime('%H:%M:%S')} round {number} of {len(plan)}: killed {' and '.join(targets)}"
        print(f"{killed}, {findings.total} findings in all", flush=True)
        if findings.total > known:
            print(findings.report(), flush=True)
    broken = await _count_violations(installation, findings)
    writes = ", ".join(f"{kind} {count}" for kind, count in sorted(result.acknowledged.items()))
    kills = sum(len(costs) for costs in result.costs.values())
    return [
        Figure.count(part, "rounds", len(plan)),
        Figure.count(part, "kills", kills, least=sum(map(len, plan))),
        Figure(part, "acknowledged writes", f"{result.acknowledged.total():,} ({writes})"),
        *(Figure(part, name, note) for name, note in installation.notes.items()),
        *_cost_figures(part, result.costs),
        Figure(
            part,
            "longest answer to one try, forgets not counted, s",
            f"{result.longest_try:.1f}",
            f"≤ {REQUEST_SECONDS:.0f}",
            result.longest_try <= REQUEST_SECONDS + 1,
        ),
        Figure.count(
            part, "writes lost, doubled, half done, unordered or unread; refusals", findings.total - broken, most=0
        ),
        Figure.count(part, "violations of invariants", broken, most=0),
    ]


async def _count_violations(installation: Installation, findings: Findings) -> int:
    broken = 0
    async with installation.open_graphs() as graphs:
        for graph in graphs:
            async for check in check_invariants(graph):
                broken += check.count
                if check.count:
                    findings.add(f"invariant {check.name}", f"{check.violation} {check.ids}")
    return broken


def _cost_figures(part: str, costs: dict[str, list[KillCost]]) -> list[Figure]:
    """Return what the kills of each target cost."""
    return [
        Figure(
            part,
            f"kill of {target}: ready again; tries that failed; longest wait for an answer",
            " · ".join(f"{kill.seconds:.1f} s; {kill.failed}; {kill.longest_wait:.1f} s" for kill in kills),
            f"≤ {MAX_RECOVERY_SECONDS:.0f} s",
            max(kill.seconds for kill in kills) <= MAX_RECOVERY_SECONDS,
        )
        for target, kills in sorted(costs.items())
    ]


async def run_round(
    installation: Installation, targets: list[str], chance: random.Random, result: StormResult, findings: Findings
) -> None:
    """Tell stories, kill the targets meanwhile, then check every story."""
    costs = RequestCosts()
    clients = [PersistentClient(installation.address, key, findings, costs) for key in installation.keys]
    tellers, is_over, checks = [Teller(client) for client in clients], asyncio.Event(), list[Check]()
    try:
        if moved := await installation.begin_move(findings):
            checks.append(moved)
        async with asyncio.TaskGroup() as group:
            for index in range(TELLERS):
                first = (index + chance.randrange(len(STORIES))) % len(STORIES)
                stories, teller = STORIES[first:] + STORIES[:first], tellers[index % len(tellers)]
                group.create_task(_tell(teller, index // len(tellers), stories, is_over, checks, findings))
            for target in targets:
                await asyncio.sleep(chance.uniform(*LEAD_SECONDS))
                result.costs[target].append(await _kill(installation, target, costs))
                result.longest_try = max(result.longest_try, costs.longest_try)
            is_over.set()
        await _check_all(checks, " and ".join(targets), findings)
    finally:
        for teller in tellers:
            result.acknowledged += teller.acknowledged
        result.longest_try = max(result.longest_try, costs.longest_try)
        for client in clients:
            await client.close()


async def _kill(installation: Installation, target: str, costs: RequestCosts) -> KillCost:
    """Kill a target, wait until everything is ready and requests that waited are answered, and return the cost."""
    costs.failed, costs.longest_wait = 0, 0.0
    started = time.monotonic()
    await installation.kill(target)
    await installation.wait_until_ready()
    seconds = time.monotonic() - started
    await asyncio.sleep(SETTLING_SECONDS)
    return KillCost(seconds, costs.failed, costs.longest_wait)


async def _check_all(checks: list[Check], killed: str, findings: Findings) -> None:
    free = asyncio.Semaphore(CHECKS_AT_ONCE)

    async def run(check: Check) -> None:
        async with free:
            try:
                for difference in await check():
                    findings.add(f"after killing {killed}: {difference.split()[0]}", difference)
            except Exception as error:
                findings.add(f"check: {type(error).__name__}", repr(error))

    try:
        async with asyncio.timeout(CHECK_SECONDS):
            await asyncio.gather(*map(run, checks))
    except TimeoutError:
        findings.add(f"after killing {killed}: not checked", f"not everything is found within {CHECK_SECONDS} s")


async def _tell(
    teller: Teller,
    index: int,
    stories: tuple[Story, ...],
    is_over: asyncio.Event,
    checks: list[Check],
    findings: Findings,
) -> None:
    """Tell one story after the other until the storm is over; the last one is told to its end."""
    number = 0
    while not is_over.is_set():
        story = stories[number % len(stories)]
        user = SHARED_USERS[(index + number) % len(SHARED_USERS)]
        number += 1
        try:
            checks.append(await story(teller, user))
        except NotAcknowledged:
            continue
        except TimeoutError:
            findings.add(f"{story.__name__}: a job does not end", f"of {user}, within {JOB_SECONDS} s")
