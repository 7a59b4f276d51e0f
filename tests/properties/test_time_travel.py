"""Random saves, corrections, late arrivals, deletes and reverts on a real Neo4j, compared with a plain model.

The model has no versions: it copies its whole state after every write and answers "what was valid at V, as known at K"
from the state of K.
"""

from __future__ import annotations

import asyncio
import copy
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Literal, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact import Fact
from graphmem.memories.fact_store import FactStore
from graphmem.memories.filters import FactFilters
from graphmem.memories.ledger import Ledger
from graphmem.memories.memory import Memory, MemoryIn, MemoryPatch
from graphmem.memories.new_memory import NewMemory
from graphmem.neo4j.driver import Graph
from graphmem.runtime.errors import Conflict, InvalidInput
from graphmem.runtime.settings import Settings
from graphmem.runtime.times import AS_OF_NOW, MICROSECOND
from graphmem.tenants.owners import Owner
from tests.conftest import FakeClock, examples

T = TypeVar("T")

START = datetime(2026, 1, 1, tzinfo=UTC)
YEARS = [datetime(year, 1, 1, tzinfo=UTC) for year in range(2018, 2031)]
OPTIONAL_YEAR = st.none() | st.sampled_from(YEARS)
VECTOR = [1.0] + [0.0] * 383
NO_END = datetime(9999, 12, 31, tzinfo=UTC)
NO_START = datetime(1, 1, 1, tzinfo=UTC)


@dataclass
class ExpectedMemory:
    """What the model knows about one memory."""

    content: str
    single: bool
    start: datetime | None
    end: datetime | None
    claimed_end: datetime | None
    first_known: datetime
    replaced_by: str | None = None
    retired: bool = False

    def is_valid_at(self, instant: datetime) -> bool:
        return not self.retired and (self.start or NO_START) <= instant < (self.end or NO_END)

    def is_never_valid(self) -> bool:
        return self.retired or (self.start or NO_START) >= (self.end or NO_END)

    def effective_start(self) -> datetime:
        return self.start or (self.first_known if (self.end or NO_END) > self.first_known else NO_START)

    def overlaps(self, other: ExpectedMemory) -> bool:
        start = max(self.start or NO_START, other.start or NO_START)
        return not (self.retired or other.retired) and start < min(self.end or NO_END, other.end or NO_END)


class ReferenceModel:
    """The model: memories by id, and a copy of them after every write."""

    def __init__(self) -> None:
        self.memories: dict[str, ExpectedMemory] = {}
        self.states: list[tuple[datetime, dict[str, ExpectedMemory]]] = []

    def record_state(self, at: datetime) -> None:
        self.states.append((at, copy.deepcopy(self.memories)))

    def contents_at(self, valid: datetime, known: datetime) -> set[str]:
        state: dict[str, ExpectedMemory] = {}
        for at, snapshot in self.states:
            if at <= known:
                state = snapshot
        return {expected.content for expected in state.values() if expected.is_valid_at(valid)}

    def save(self, key: str, content: str, single: bool, start: datetime | None, first_known: datetime) -> None:
        competing = self.competing(single, content)
        if start is None and competing:
            start = first_known
        end = None
        later = [expected for expected in competing if expected.effective_start() > (start or NO_START)]
        replaced_by = None
        if later:
            follower = min(later, key=ExpectedMemory.effective_start)
            follower.start = end = follower.effective_start()
            replaced_by = self.key_of(follower)
        for expected in competing:
            at = start or NO_START
            if expected.effective_start() <= at < (expected.end or NO_END) or expected.effective_start() == at:
                expected.end, expected.replaced_by = max(at, expected.start or NO_START), key
        self.memories[key] = ExpectedMemory(content, single, start, end, None, first_known, replaced_by)

    def key_of(self, memory: ExpectedMemory) -> str:
        return next(key for key, expected in self.memories.items() if expected is memory)

    def competing(self, single: bool, content: str) -> list[ExpectedMemory]:
        return [
            expected
            for expected in self.memories.values()
            if not expected.is_never_valid() and (expected.content == content or (single and expected.single))
        ]

    def rivals(self, memory: ExpectedMemory) -> list[ExpectedMemory]:
        """Return the other values that are valid at a time at which a single-valued memory is valid."""
        return [
            expected
            for expected in self.memories.values()
            if memory.single and expected.single and expected.content != memory.content and expected.overlaps(memory)
        ]

    def has_duplicate(self, content: str, start: datetime | None, at: datetime) -> bool:
        same = [
            expected
            for expected in self.memories.values()
            if expected.content == content and not expected.is_never_valid()
        ]
        return any(expected.is_valid_at(at) or (start is not None and expected.start == start) for expected in same)


class AsOfStateMachine(RuleBasedStateMachine):
    """Applies the same steps to the store and the model; the end compares as-of answers on a grid of both axes."""

    runner: ClassVar[asyncio.Runner]
    store: ClassVar[FactStore]
    clock: ClassVar[FakeClock]

    def __init__(self) -> None:
        super().__init__()
        self.owner = Owner("property", uuid.uuid4().hex)
        self.model = ReferenceModel()
        self.clock.now = START
        self.ids: list[str] = []

    def advance_clock(self) -> datetime:
        self.clock.advance(timedelta(days=37))
        return self.clock()

    def run_async(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    @rule(name=st.sampled_from("abcde"), single=st.booleans(), start=OPTIONAL_YEAR)
    def save(self, name: str, single: bool, start: datetime | None) -> None:
        at = self.advance_clock() + MICROSECOND
        content = f"{'lives in' if single else 'likes'} {name}"
        memory = MemoryIn(
            content=content, predicate="LIVES_IN" if single else "LIKES", single_valued=single, valid_at=start
        )
        result = self.run_async(self.store.save(self.owner, [NewMemory(memory, VECTOR)], {}, None))[0]
        assert result.memory
        if self.model.has_duplicate(content, start, at):
            assert result.action == "reinforce"
        else:
            assert result.action in {"insert", "supersede"}
            self.model.save(result.memory.id, content, single, start, at)
            self.ids.append(result.memory.id)
        self.record_state()

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), importance=st.floats(0, 1))
    def correct(self, data: st.DataObject, importance: float) -> None:
        key = data.draw(st.sampled_from(self.ids))
        self.apply_change(key, lambda ledger: ledger.amend(key, MemoryPatch(importance=importance)))
        self.record_state()

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), name=st.sampled_from(["valid_at", "invalid_at"]), time=OPTIONAL_YEAR)
    def correct_time(self, data: st.DataObject, name: Literal["valid_at", "invalid_at"], time: datetime | None) -> None:
        key = data.draw(st.sampled_from(self.ids))
        patch = MemoryPatch(valid_at=time) if name == "valid_at" else MemoryPatch(invalid_at=time)
        if self.apply_change(key, lambda ledger: ledger.amend(key, patch)):
            expected = self.model.memories[key]
            if name == "valid_at":
                expected.start = time
            else:
                expected.end = expected.claimed_end = time
                if not expected.retired and (expected.end or NO_END) > self.clock():
                    expected.replaced_by = None
            assert not self.model.rivals(expected), "two values are valid at once"
        self.record_state()

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.ids))
        if self.apply_change(key, lambda ledger: ledger.delete(key)):
            self.model.memories.pop(key)
        self.record_state()

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def revert(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.ids))
        expected = self.model.memories.get(key)
        if not self.apply_change(key, lambda ledger: ledger.revert(key)):
            self.record_state()
            return
        assert expected
        assert expected.replaced_by
        replacer = self.model.memories.get(expected.replaced_by)
        if replacer and not replacer.retired:
            assert replacer.replaced_by is None
            replacer.retired, replacer.replaced_by = True, key
        expected.end, expected.replaced_by, expected.retired = expected.claimed_end, None, False
        later = [
            other
            for other in self.model.competing(expected.single, expected.content)
            if other is not expected and other.effective_start() > (expected.start or NO_START)
        ]
        if later:
            follower = min(later, key=ExpectedMemory.effective_start)
            follower.start = expected.end = follower.effective_start()
            expected.replaced_by = self.model.key_of(follower)
        self.record_state()

    def apply_change(self, key: str, change: Callable[[Ledger], Fact]) -> Memory | None:
        """Apply a change; return None when the rules reject it, which must leave everything unchanged."""
        self.advance_clock()
        try:
            return self.run_async(self.store.update_memory(self.owner, key, change))
        except (Conflict, InvalidInput):
            return None

    def record_state(self) -> None:
        self.model.record_state(self.clock() + timedelta(seconds=1))

    def teardown(self) -> None:
        grid = [
            (valid, known)
            for valid in [*YEARS[::4], self.clock() + timedelta(days=1)]
            for known in [*(at for at, _ in self.model.states), AS_OF_NOW]
        ]
        for instant, contents in zip(grid, self.run_async(self.contents_on_grid(grid)), strict=True):
            assert len(contents) == len(set(contents)), "two current facts state the same"
            assert sum(content.startswith("lives in") for content in contents) <= 1, "two values are valid at once"
            assert set(contents) == self.model.contents_at(*instant), instant

    async def contents_on_grid(self, grid: list[tuple[datetime, datetime]]) -> list[list[str]]:
        async def contents_at(valid: datetime, known: datetime) -> list[str]:
            filters = FactFilters(valid_at=valid, known_at=known)
            memories, _ = await self.store.list_page(self.owner, filters, limit=200)
            return [memory.content for memory in memories]

        return await asyncio.gather(*(contents_at(*instant) for instant in grid))


@pytest.mark.req("QUINN-23", "QUINN-24", "QUINN-27", "UMB-18", "QUINN-25")
def test_every_as_of_answer_equals_the_reference_model(database: Settings, graph: Graph) -> None:
    with asyncio.Runner() as runner:

        async def connect() -> Graph:
            assert database.neo4j_uri
            assert database.neo4j_password
            return Graph(database.neo4j_uri, database.neo4j_user, database.neo4j_password.get_secret_value())

        neo4j = runner.run(connect())
        AsOfStateMachine.runner = runner
        AsOfStateMachine.clock = FakeClock(START)
        AsOfStateMachine.store = FactStore(neo4j, EntityStore(neo4j), AsOfStateMachine.clock)
        try:
            run_state_machine_as_test(
                AsOfStateMachine,
                settings=settings(
                    max_examples=examples(0.2),
                    stateful_step_count=8,
                    print_blob=True,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        finally:
            runner.run(neo4j.close())
