"""A state machine that writes by every verb, also several at once, and compares the service with the naive model.

Writes that run at the same time must have the results, and leave the state, of some order of them.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine, Sequence
from itertools import permutations
from typing import Any, ClassVar, TypeVar

import hypothesis
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from graphmem.app.bootstrap import Services
from graphmem.app.components import ConsolidationComponents
from graphmem.consolidation.models import (
    ProposalVerdict,
    RunPhase,
    RunTrigger,
    parse_proposals,
)
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import MemoryIn, MemoryPatch
from graphmem.runtime.errors import (
    Conflict,
    GraphmemError,
    InvalidInput,
    NotFound,
)
from graphmem.runtime.times import utc_now
from graphmem.tenants.owners import Owner
from torture import naive_model
from torture.naive_model import Change, NaiveUser

T = TypeVar("T")

STEPS = 12
"""Most steps of a run."""

NAMES = st.sampled_from("abcde")
SLOTS = st.sampled_from(["LIVES_IN", "WORKS_AT"])
IMPORTANCES = st.sampled_from([0.25, 0.5, 0.75])
NUMBERS = st.integers(0, 2**16)
"""What a rule picks with: drawn values must not depend on the state, which concurrent writes leave to chance."""

REFUSALS = (Conflict, NotFound, InvalidInput)

Write = Coroutine[Any, Any, Change]
"""A write; its result is the change that it made, unless it is refused."""


def pick(items: Sequence[T], number: int) -> T | None:
    """Return the item that a number stands for, None when there are none."""
    return items[number % len(items)] if items else None


class EveryVerb(RuleBasedStateMachine):
    """One user, the naive model of it, and a copy of the user by import."""

    services: ClassVar[Services]
    loop: ClassVar[asyncio.AbstractEventLoop]
    runs: ClassVar[int] = 0
    differences: ClassVar[list[str]] = []
    """What no order of the writes explains. It is not raised: the same steps rarely end the same way twice, so that
    Hypothesis could neither repeat nor shorten them."""

    def __init__(self) -> None:
        super().__init__()
        self.owner = Owner("model", uuid.uuid4().hex)
        self.possible = [NaiveUser()]
        self.steps: list[str] = []
        EveryVerb.runs += 1

    @property
    def user(self) -> NaiveUser:
        """One of the users that the writes so far may have made; an empty one after a difference."""
        return self.possible[0] if self.possible else NaiveUser()

    # One write

    @rule(name=NAMES)
    def save(self, name: str) -> None:
        """Save a statement."""
        self.run(self._save(f"likes {name}", None))

    @rule(name=NAMES, slot=SLOTS)
    def save_value(self, name: str, slot: str) -> None:
        """Save a value of a single-valued predicate."""
        self.run(self._save(f"{slot} {name}", slot))

    @rule(number=NUMBERS, name=NAMES | st.none(), importance=IMPORTANCES)
    def patch(self, number: int, name: str | None, importance: float) -> None:
        """Correct the content or the importance of a memory."""
        if key := pick(list(self.user.memories), number):
            self.run(self._patch(key, name, importance))

    @rule(number=NUMBERS)
    def delete(self, number: int) -> None:
        """Delete a memory."""
        if key := pick(list(self.user.memories), number):
            self.run(self._delete(key))

    @rule(number=NUMBERS)
    def erase(self, number: int) -> None:
        """Hard-delete a memory."""
        if key := pick(list(self.user.memories), number):
            self.run(self._erase(key))

    @rule(number=NUMBERS)
    def revert(self, number: int) -> None:
        """Undo a supersession."""
        if key := pick([key for key, one in self.user.memories.items() if one.replaced_by], number):
            self.run(self._revert(key))

    @rule(number=NUMBERS)
    def merge(self, number: int) -> None:
        """Merge two statements."""
        if pair := pick(list(permutations(self._mergeable(), 2)), number):
            self.run(self._merge(pair))

    @rule(number=NUMBERS)
    def roll_back(self, number: int) -> None:
        """Roll a merge back."""
        if run_id := pick(list(self.user.runs), number):
            self.run(self._roll_back(run_id))

    @rule()
    def forget(self) -> None:
        """Forget the user, who may be written to again afterwards."""
        self.run(self._forget())

    @rule()
    def copy(self) -> None:
        """Export the user and import the export as another one, and again as the same one."""
        if not self.user.memories:
            return
        twin = Owner(self.owner.tenant, f"{self.owner.user_id}-{uuid.uuid4().hex[:6]}")

        async def work() -> None:
            document = await self.services.exports.export(self.owner)
            for owner in (twin, self.owner):
                await self.services.imports.import_(owner, document)

        self.wait(work())
        copied = sorted(self.wait(self.read(twin)).values())
        if self.possible and copied != sorted(self.user.current.values()):
            self.differences.append(f"the copy {copied} differs from {self.user.current}; steps: {self.steps}")
        self.compare([], "copy")

    # Several at once

    @rule(numbers=st.lists(st.tuples(NUMBERS, NAMES), min_size=2, max_size=3), number=NUMBERS, slot=SLOTS)
    def write_at_once(self, numbers: list[tuple[int, str]], number: int, slot: str) -> None:
        """Run several writes at the same time."""
        kinds: list[Callable[[str], Write]] = [
            lambda name: self._save(f"likes {name}", None),
            lambda name: self._save(f"{slot} {name}", slot),
        ]
        if key := pick(list(self.user.memories), number):
            kinds += [
                lambda name: self._patch(key, name, 0.75),
                lambda name: self._delete(key),
                lambda name: self._erase(key),
                lambda name: self._revert(key),
            ]
        if pair := pick(list(permutations(self._mergeable(), 2)), number):
            kinds.append(lambda name: self._merge(pair))
        if run_id := pick(list(self.user.runs), number):
            kinds.append(lambda name: self._roll_back(run_id))
        kinds.append(lambda name: self._forget())
        self.run(*[kinds[kind % len(kinds)](name) for kind, name in numbers])

    # The writes

    async def _save(self, content: str, slot: str | None) -> Change:
        memory = MemoryIn(content=content, predicate=slot or "LIKES", single_valued=slot is not None)
        (result,) = await self.services.memories.save(self.owner, [memory])
        assert result.memory
        return naive_model.saved(content, slot, result.action.value, result.memory.id, result.superseded)

    async def _patch(self, key: str, name: str | None, importance: float) -> Change:
        content = None if name is None else f"likes {name}"
        fields: dict[str, Any] = {"importance": importance, **({"content": content} if content else {})}
        await self.services.memories.patch(self.owner, key, MemoryPatch(**fields))
        return naive_model.patched(key, content, importance)

    async def _delete(self, key: str) -> Change:
        await self.services.memories.delete(self.owner, key)
        return naive_model.deleted(key)

    async def _erase(self, key: str) -> Change:
        await self.services.forgetting.erase_memory(self.owner, key)
        return naive_model.erased(key)

    async def _revert(self, key: str) -> Change:
        await self.services.memories.revert(self.owner, key)
        return naive_model.reverted(key)

    async def _merge(self, keys: Sequence[str]) -> Change:
        parts = ConsolidationComponents.build(self.services.components)
        texts = [self.user.memories[key].content for key in keys]
        proposals = parse_proposals([{"action": "MERGE", "memory_ids": list(keys), "content": "; ".join(texts)}])
        run_id = str(uuid.uuid4())
        reviewed = await parts.executor.attach_versions(self.owner, proposals)
        await parts.runs.create(
            run_id, self.owner.tenant, self.owner, RunTrigger.CURATED, utc_now(), phase=RunPhase.ANALYSED
        )
        await parts.executor.execute(self.owner, run_id, reviewed, curated=True)
        run = await parts.runs.get(self.owner.tenant, run_id)
        (judged,) = run.proposals
        if judged.verdict is not ProposalVerdict.EXECUTED or judged.result_id is None:
            raise Conflict(f"The merge is refused: {judged.reason}")
        return naive_model.merged(run_id, keys, judged.result_id, "; ".join(texts))

    async def _roll_back(self, run_id: str) -> Change:
        await self.services.consolidations.rollback(self.owner.tenant, run_id)
        return naive_model.rolled_back(run_id)

    async def _forget(self) -> Change:
        result = await self.services.forgetting.forget(self.owner)
        assert result.residue == 0, result
        return naive_model.forgotten()

    # What all rules use

    def run(self, *writes: Write) -> None:
        """Run writes at the same time, and find an order of them that explains what is current afterwards."""
        outcomes = self.wait(self._gather(writes))
        results = [
            outcome.text if isinstance(outcome, Change) else f"refused: {outcome.detail}" for outcome in outcomes
        ]
        changes = [outcome for outcome in outcomes if isinstance(outcome, Change)]
        self.compare(changes, " & ".join(results))

    def compare(self, changes: list[Change], step: str) -> None:
        """Apply the changes of a step to the model; note a difference when no order of them leads to what is shown."""
        if not self.possible:
            return
        self.steps.append(step)
        current = self.wait(self.read(self.owner))
        contents = [content for content, _ in current.values()]
        explained = naive_model.explain(self.possible, changes, current)
        if len(contents) > len(set(contents)) or not explained:
            self.differences.append(f"{current} cannot follow {self.possible}; steps: {self.steps}")
        self.possible = explained

    async def read(self, owner: Owner) -> dict[str, tuple[str, float]]:
        """Return content and importance of each current memory."""
        page = await self.services.memories.page(owner, ListFilters(limit=200))
        return {memory.id: (memory.content, memory.importance) for memory in page.items}

    async def _gather(self, writes: tuple[Write, ...]) -> list[Change | GraphmemError]:
        return await asyncio.gather(*map(self._unless_refused, writes))

    async def _unless_refused(self, write: Write) -> Change | GraphmemError:
        try:
            return await write
        except REFUSALS as error:
            return error

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of some work on the loop of the services."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(120)

    def _mergeable(self) -> list[str]:
        return [key for key, one in self.user.memories.items() if one.is_current and one.slot is None]


def run_model(services: Services, loop: asyncio.AbstractEventLoop, runs: int, **options: Any) -> list[str]:
    """Run the state machine against services of another thread's loop; return how service and model differ."""
    EveryVerb.services, EveryVerb.loop, EveryVerb.runs, EveryVerb.differences = services, loop, 0, []
    run_state_machine_as_test(
        EveryVerb,
        settings=hypothesis.settings(
            max_examples=runs,
            stateful_step_count=STEPS,
            deadline=None,
            print_blob=False,
            suppress_health_check=list(HealthCheck),
            **options,
        ),
    )
    return EveryVerb.differences
