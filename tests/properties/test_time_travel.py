"""Random saves, corrections, late arrivals, deletes and reverts, against a plain model, on a real Neo4j.

The model knows nothing of versions: it keeps the whole world as it was believed after every write, and answers
"what held at V, as known at K" by looking into the world of K.
"""

from __future__ import annotations

import asyncio
import copy
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.memory import MemoryIn
from graphmem.domain.times import LATEST
from graphmem.errors import Conflict, EndedMemory
from graphmem.settings import Settings
from graphmem.store.driver import Graph
from graphmem.store.entities import EntityStore
from graphmem.store.facts import FactStore
from graphmem.store.statements import Statement

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
YEARS = [datetime(year, 1, 1, tzinfo=UTC) for year in range(2018, 2031)]
PAST_AND_FUTURE = st.none() | st.sampled_from(YEARS)
VECTOR = [1.0] + [0.0] * 383
NO_END = datetime(9999, 12, 31, tzinfo=UTC)
NO_START = datetime(1, 1, 1, tzinfo=UTC)


@dataclass
class Held:
    """What the model believes of one memory."""

    content: str
    single: bool
    start: datetime | None
    end: datetime | None
    claimed_end: datetime | None
    told: datetime
    replaced_by: str | None = None
    hidden: bool = False

    def holds(self, moment: datetime) -> bool:
        return not self.hidden and (self.start or NO_START) <= moment < (self.end or NO_END)

    def empty(self) -> bool:
        return self.hidden or (self.start or NO_START) >= (self.end or NO_END)

    def order(self) -> datetime:
        return self.start or self.told


class World:
    """The plain model: memories by id, and a copy of them for every write."""

    def __init__(self) -> None:
        self.now: dict[str, Held] = {}
        self.past: list[tuple[datetime, dict[str, Held]]] = []

    def remember(self, at: datetime) -> None:
        self.past.append((at, copy.deepcopy(self.now)))

    def answer(self, valid: datetime, known: datetime) -> set[str]:
        world: dict[str, Held] = {}
        for at, snapshot in self.past:
            if at <= known:
                world = snapshot
        return {held.content for held in world.values() if held.holds(valid)}

    def save(self, key: str, content: str, single: bool, start: datetime | None, told: datetime) -> None:
        rivals = self.rivals(single, content)
        if start is None and rivals:
            start = told
        end = None
        later = [held for held in rivals if held.order() > (start or NO_START)]
        replaced_by = None
        if later:
            follower = min(later, key=Held.order)
            follower.start = end = follower.order()
            replaced_by = next(name for name, held in self.now.items() if held is follower)
        for held in rivals:
            at = start or NO_START
            if held.order() <= at < (held.end or NO_END) or held.order() == at:
                held.end, held.replaced_by = max(at, held.start or NO_START), key
        self.now[key] = Held(content, single, start, end, None, told, replaced_by)

    def rivals(self, single: bool, content: str) -> list[Held]:
        return [
            held
            for held in self.now.values()
            if not held.empty() and (held.content == content or (single and held.single))
        ]

    def known_duplicate(self, content: str, start: datetime | None, at: datetime) -> bool:
        same = [held for held in self.now.values() if held.content == content and not held.empty()]
        return any(held.holds(at) or (start is not None and held.start == start) for held in same)


class TimeTravel(RuleBasedStateMachine):
    """The service beside the model; at the end every as-of answer on a grid of both axes is compared."""

    runner: asyncio.Runner
    store: FactStore

    def __init__(self) -> None:
        super().__init__()
        self.owner = Owner("property", uuid.uuid4().hex)
        self.world = World()
        self.clock_now = EPOCH
        self.ids: list[str] = []

    def tick(self) -> datetime:
        self.clock_now += timedelta(days=37)
        type(self).store._clock = lambda: self.clock_now
        return self.clock_now

    def wait(self, work):
        return type(self).runner.run(work)

    @rule(name=st.sampled_from("abcde"), single=st.booleans(), start=PAST_AND_FUTURE)
    def save(self, name: str, single: bool, start: datetime | None) -> None:
        at = self.tick() + timedelta(microseconds=1)
        content = f"{'lives in' if single else 'likes'} {name}"
        memory = MemoryIn(
            content=content, predicate="LIVES_IN" if single else "LIKES", single_valued=single, valid_at=start
        )
        result = self.wait(self.store.save(self.owner, [Statement(memory, VECTOR)], {}, None))[0]
        if self.world.known_duplicate(content, start, at):
            assert result.action == "reinforce"
        else:
            assert result.action in {"insert", "supersede"}
            self.world.save(result.memory.id, content, single, start, at)
            self.ids.append(result.memory.id)
        self.remember()

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), importance=st.floats(0, 1))
    def correct(self, data: st.DataObject, importance: float) -> None:
        key = data.draw(st.sampled_from(self.ids))
        self.change(key, lambda ledger: ledger.amend(key, {"importance": importance}))
        self.remember()

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.ids))
        if self.change(key, lambda ledger: ledger.delete(key)):
            self.world.now.pop(key)
        self.remember()

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def revert(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.ids))
        held = self.world.now.get(key)
        if not self.change(key, lambda ledger: ledger.revert(key)):
            self.remember()
            return
        assert held
        assert held.replaced_by
        replacer = self.world.now.get(held.replaced_by)
        if replacer and not replacer.hidden:
            assert replacer.replaced_by is None
            replacer.hidden, replacer.replaced_by = True, key
        held.end, held.replaced_by, held.hidden = held.claimed_end, None, False
        later = [
            each
            for each in self.world.rivals(held.single, held.content)
            if each is not held and each.order() > (held.start or NO_START)
        ]
        if later:
            follower = min(later, key=Held.order)
            follower.start = held.end = follower.order()
            held.replaced_by = next(name for name, each in self.world.now.items() if each is follower)
        self.remember()

    def change(self, key: str, act) -> Fact | None:
        """Apply a change; return None where the rules refuse it, which must leave everything as it was."""
        self.tick()
        try:
            return self.wait(self.store.change(self.owner, key, act, related=True))
        except (Conflict, EndedMemory):
            return None

    def remember(self) -> None:
        self.world.remember(self.clock_now + timedelta(seconds=1))

    def teardown(self) -> None:
        grid = [
            (valid, known)
            for valid in [*YEARS[::4], self.clock_now + timedelta(days=1)]
            for known in [*(at for at, _ in self.world.past), LATEST]
        ]
        for moment, contents in zip(grid, self.wait(self.answers(grid)), strict=True):
            assert len(contents) == len(set(contents)), "one current fact a statement"
            assert set(contents) == self.world.answer(*moment), moment

    async def answers(self, grid: list[tuple[datetime, datetime]]) -> list[list[str]]:
        async def one(valid: datetime, known: datetime) -> list[str]:
            items, _, _ = await self.store.page(
                self.owner, valid_at=valid, known_at=known, any_validity=False, types=None, tags=[], not_tags=[],
                domain=None, scope=None, entity_ids=None, keyword=None, session_id=None, min_importance=None,
                min_confidence=None, created_after=None, created_before=None, sort="created_at", direction=1,
                after_key=None, after_id=None, limit=200,
            )  # fmt: skip
            return [item.content for item in items]

        return await asyncio.gather(*(one(*moment) for moment in grid))


@pytest.mark.timeout(400)
@pytest.mark.req("QUINN-23", "QUINN-24", "QUINN-27", "UMB-18", "QUINN-25")
def test_every_as_of_answer_equals_that_of_a_plain_model(database: Settings, graph: Graph) -> None:
    with asyncio.Runner() as runner:

        async def connect() -> Graph:
            assert database.neo4j_uri
            assert database.neo4j_password
            return Graph(database.neo4j_uri, database.neo4j_user, database.neo4j_password.get_secret_value())

        own = runner.run(connect())
        TimeTravel.runner = runner
        TimeTravel.store = FactStore(own, EntityStore(own), lambda: EPOCH)
        try:
            run_state_machine_as_test(
                TimeTravel,
                settings=settings(
                    max_examples=200,
                    stateful_step_count=8,
                    deadline=None,
                    print_blob=True,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(own.close())
