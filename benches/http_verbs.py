"""What the agents of `bench_http` send: one kind of request a run, and the plan by which a run is described.

This module is imported by Locust: it imports nothing of graphmem.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel

SAVED_AT_ONCE = 100
"""Memories of one save of many."""

LONG_MESSAGES = 20
"""Long messages of one request."""

LONG_MESSAGE_LENGTH = 2_000
"""Characters of a long message."""

READ_FROM_SESSION = "talk0"
"""The session whose context is asked for."""


class PlannedUser(BaseModel):
    """A user whose memories are read, with questions and names of entities that fit them."""

    user_id: str
    questions: list[str]
    names: list[str]


class LoadPlan(BaseModel):
    """What one run of Locust needs to know; users and exports are by the name of a size."""

    address: str
    key: str
    pids: dict[str, int]
    run: str = ""
    verb: str = ""
    warm_up_seconds: float = 0.0
    users: dict[str, list[PlannedUser]]
    words: list[str]
    exports: dict[str, Path]


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """One request of an agent; a body of bytes is sent as it is."""

    method: str
    path: str
    body: object = None


RequestMaker = Callable[[LoadPlan, int], Iterator[PlannedRequest]]
"""Yields the requests of one agent, whose number is given, without end."""


@dataclass(frozen=True, slots=True)
class Verb:
    """One kind of request; `peer` names Graphiti's counterpart, and `size` the users without which it is left out.

    A request writes `units` of `unit`. `most` and `least` are goals, by figure. One that may take longer than a warm-up
    has none: an agent's first request would end after it, and its second one after the measurement.
    """

    key: str
    title: str
    make_requests: RequestMaker
    size: str | None = None
    units: int = 1
    unit: str = ""
    peer: bool = False
    warms_up: bool = True
    most_agents: int | None = None
    most: Mapping[str, float] = field(default_factory=dict)
    least: Mapping[str, float] = field(default_factory=dict)


def _path(user_id: str, rest: str) -> str:
    return f"/v1/users/{user_id}/{rest}"


def _ask(size: str, rest: str, body: Callable[[str], dict[str, object]]) -> RequestMaker:
    """Return what asks the questions of the users of a size, in another order for each agent."""

    def make_requests(plan: LoadPlan, agent: int) -> Iterator[PlannedRequest]:
        asked = [(user.user_id, question) for user in plan.users[size] for question in user.questions]
        random.Random(agent).shuffle(asked)
        for user_id, question in itertools.cycle(asked):
            yield PlannedRequest("POST", _path(user_id, rest), body(question))

    return make_requests


def _look_up(size: str) -> RequestMaker:
    def make_requests(plan: LoadPlan, agent: int) -> Iterator[PlannedRequest]:
        asked = [(user.user_id, name) for user in plan.users[size] for name in user.names]
        random.Random(agent).shuffle(asked)
        for user_id, name in itertools.cycle(asked):
            yield PlannedRequest("GET", _path(user_id, f"entities/lookup?q={name.replace(' ', '%20')}"))

    return make_requests


def _save(count: int) -> RequestMaker:
    """Return what saves new memories of a user who belongs to the agent."""

    def make_requests(plan: LoadPlan, agent: int) -> Iterator[PlannedRequest]:
        chance = random.Random(f"{plan.run} {agent}")
        objects = [" ".join(chance.sample(plan.words, 2)).title() for _ in range(50)]
        while True:
            memories = []
            for _ in range(count):
                name = chance.choice(objects)
                memories.append(
                    {"content": " ".join([*chance.choices(plan.words, k=10), name]), "object": {"name": name}}
                )
            yield PlannedRequest("POST", _path(f"{plan.run}-{agent}", "memories"), {"memories": memories})

    return make_requests


def _send_long_messages(plan: LoadPlan, agent: int) -> Iterator[PlannedRequest]:
    chance = random.Random(f"{plan.run} {agent}")
    for number in itertools.count():
        messages = [
            {"role": ("user", "assistant")[turn % 2], "content": long_text(chance, plan.words)}
            for turn in range(LONG_MESSAGES)
        ]
        body = {"session_id": f"long{number}", "messages": messages, "extract": False}
        yield PlannedRequest("POST", _path(f"{plan.run}-{agent}", "messages"), body)


def long_text(chance: random.Random, words: list[str]) -> str:
    """Return a text of `LONG_MESSAGE_LENGTH` characters."""
    text = " ".join(chance.choices(words, k=LONG_MESSAGE_LENGTH // 4))
    return text[:LONG_MESSAGE_LENGTH].strip().ljust(LONG_MESSAGE_LENGTH, ".")


def _import(size: str) -> RequestMaker:
    """Return what imports an export as a new user each time."""

    def make_requests(plan: LoadPlan, agent: int) -> Iterator[PlannedRequest]:
        document = plan.exports[size].read_bytes()
        for number in itertools.count():
            yield PlannedRequest("POST", _path(f"{plan.run}-{agent}-{number}", "import"), document)

    return make_requests


def _search(question: str) -> dict[str, object]:
    return {"query": question}


def _search_with_messages(question: str) -> dict[str, object]:
    return {"query": question, "include_messages": True}


def _context(question: str) -> dict[str, object]:
    return {"question": question, "session_id": READ_FROM_SESSION}


def make_verbs(facts_of: Mapping[str, int]) -> list[Verb]:
    """Return what is measured, given the number of facts of the users of each size."""
    reads = [
        verb
        for size, facts in facts_of.items()
        for verb in (
            Verb(
                f"search_{size}",
                f"search, user of {facts:,} facts",
                _ask(size, "search", _search),
                size,
                peer=True,
                most={"p50_ms": 20, "p95_ms": 40} if size == "big" else {},
            ),
            Verb(
                f"search_messages_{size}",
                f"search with `include_messages`, {facts:,}",
                _ask(size, "search", _search_with_messages),
                size,
                peer=True,
                most={"p50_ms": 25},
            ),
            Verb(f"lookup_{size}", f"lookup, warm, {facts:,}", _look_up(size), size, most={"p50_ms": 2}),
            Verb(f"context_{size}", f"context, {facts:,}", _ask(size, "context", _context), size),
        )
    ]
    writes = [
        Verb("save_one", "save of one", _save(1), unit="facts"),
        Verb(
            "save_many",
            f"save of {SAVED_AT_ONCE}",
            _save(SAVED_AT_ONCE),
            units=SAVED_AT_ONCE,
            unit="facts",
            least={"units_per_s": 300},
        ),
    ]
    imports = [
        Verb(
            f"import_{size}",
            f"import with vectors, {facts:,} facts",
            _import(size),
            size,
            units=facts,
            unit="facts",
            warms_up=False,
            most_agents=1 if size == "big" else None,
            least={"units_per_s": 5000},
        )
        for size, facts in facts_of.items()
    ]
    # Messages leave jobs to the worker, so they come last.
    messages = Verb(
        "long_messages",
        f"{LONG_MESSAGES} messages of {LONG_MESSAGE_LENGTH:,} characters",
        _send_long_messages,
        units=LONG_MESSAGES,
        unit="messages",
        least={"units_per_s": 60},
    )
    return [*reads, *writes, *imports, messages]
