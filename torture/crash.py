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
from torture.persistent_client import NotAcknowledged, PersistentClient
from torture.stories import STORIES, Check, Story, Teller

TELLERS = 12
"""Stories that are told at the same time."""

SHARED_USERS = ("ada", "bob", "cleo")
"""Users that several stories write to at once."""

LEAD_SECONDS = (0.5, 4.0)
"""Bounds of the time between the start of a storm and the kill."""

MAX_RECOVERY_SECONDS = 60.0
"""Seconds after which everything must be ready again."""

CHECK_SECONDS = 600
"""Seconds in which everything that was acknowledged must be found."""


class Installation(Protocol):
    """Processes that can be killed."""

    key: str

    @property
    def address(self) -> str:
        """The address of the API."""

    @property
    def targets(self) -> list[str]:
        """What can be killed."""

    async def kill(self, target: str) -> None:
        """Kill a process by SIGKILL, and start it again as whoever runs it would."""

    async def wait_until_ready(self) -> float:
        """Return the seconds until everything is ready; raise TimeoutError."""

    def open_graph(self) -> AbstractAsyncContextManager[Graph]:
        """Open a connection to the database."""


@dataclass
class StormResult:
    """What all rounds have in common."""

    acknowledged: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    recovery_seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    retries: int = 0


async def run_crashes(
    installation: Installation, rounds: int, seed: int, findings: Findings, part: str = "crash"
) -> list[Figure]:
    """Kill each target in turn, one or two a round; return the figures."""
    chance, result = random.Random(seed), StormResult()
    for number in range(rounds):
        targets = [installation.targets[number % len(installation.targets)]]
        if number >= len(installation.targets) and chance.random() < 0.5:
            targets.append(chance.choice([other for other in installation.targets if other not in targets]))
        await run_round(installation, targets, chance, result, findings)
        print(f"round {number + 1} of {rounds}: killed {' and '.join(targets)}, {findings.total} findings", flush=True)
    async with installation.open_graph() as graph:
        broken = 0
        async for check in check_invariants(graph):
            broken += check.count
            if check.count:
                findings.add(f"invariant {check.name}", f"{check.violation} {check.ids}")
    writes = ", ".join(f"{kind} {count}" for kind, count in sorted(result.acknowledged.items()))
    return [
        Figure.count(part, "rounds", rounds),
        Figure(part, "kills", ", ".join(f"{name} {count}" for name, count in sorted(result.kills.items()))),
        Figure(part, "acknowledged writes", f"{result.acknowledged.total():,} ({writes})"),
        Figure(part, "requests sent again", f"{result.retries:,}"),
        *_recovery_figures(part, result.recovery_seconds),
        Figure.count(part, "lost, doubled or half writes, refusals", findings.total - broken, most=0),
        Figure.count(part, "violations of invariants", broken, most=0),
    ]


def _recovery_figures(part: str, seconds: dict[str, list[float]]) -> list[Figure]:
    """Return how long it took until everything was ready after each kind of kill."""
    return [
        Figure(
            part,
            f"seconds until ready after the kill of {target}",
            ", ".join(f"{one:.1f}" for one in took),
            f"≤ {MAX_RECOVERY_SECONDS:.0f}",
            max(took) <= MAX_RECOVERY_SECONDS,
        )
        for target, took in sorted(seconds.items())
    ]


async def run_round(
    installation: Installation, targets: list[str], chance: random.Random, result: StormResult, findings: Findings
) -> None:
    """Tell stories, kill the targets meanwhile, then check every story."""
    client = PersistentClient(installation.address, installation.key, findings)
    teller, is_over, checks = Teller(client), asyncio.Event(), list[Check]()
    try:
        async with asyncio.TaskGroup() as group:
            for index in range(TELLERS):
                first = (index + chance.randrange(len(STORIES))) % len(STORIES)
                group.create_task(_tell(teller, index, STORIES[first:] + STORIES[:first], is_over, checks))
            for target in targets:
                await asyncio.sleep(chance.uniform(*LEAD_SECONDS))
                started = time.monotonic()
                await installation.kill(target)
                result.kills[target] += 1
                await installation.wait_until_ready()
                result.recovery_seconds[target].append(time.monotonic() - started)
            await asyncio.sleep(1)
            is_over.set()
        async with asyncio.timeout(CHECK_SECONDS):
            for wrong in await asyncio.gather(*(check() for check in checks), return_exceptions=True):
                if isinstance(wrong, BaseException):
                    findings.add(f"check: {type(wrong).__name__}", repr(wrong))
                else:
                    for difference in wrong:
                        findings.add(f"after killing {' and '.join(targets)}: {difference.split()[0]}", difference)
    finally:
        result.acknowledged += teller.acknowledged
        result.retries += client.retries
        await client.close()


async def _tell(
    teller: Teller, index: int, stories: tuple[Story, ...], is_over: asyncio.Event, checks: list[Check]
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
