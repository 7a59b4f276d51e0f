"""A state machine that writes by every verb, also several at once, and compares the service with the naive model.

Writes that run at the same time must have the results, and leave the state, of some order of them.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, TypeVar

import hypothesis
from hypothesis import HealthCheck, note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from graphmem.bootstrap import ConsolidationComponents, Services
from graphmem.domain.consolidation_models import ProposalVerdict, RunPhase, RunTrigger, parse_proposals
from graphmem.domain.identity import Owner
from graphmem.domain.listing import ListFilters
from graphmem.domain.memory import MemoryIn, MemoryPatch
from graphmem.domain.times import utc_now
from graphmem.errors import Conflict, GraphmemError, InvalidInput, NotFound
from torture import naive_model
from torture.naive_model import Change, NaiveUser

T = TypeVar("T")

STEPS = 12
"""Most steps of a run."""

NAMES = st.sampled_from("abcde")
SLOTS = st.sampled_from(["LIVES_IN", "WORKS_AT"])
IMPORTANCES = st.sampled_from([0.25, 0.5, 0.75])
REFUSALS = (Conflict, NotFound, InvalidInput)

Write = Coroutine[Any, Any, Change]
"""A write; its result is the change that it made, unless it is refused."""


class EveryVerb(RuleBasedStateMachine):
    """One user, the naive model of it, and a copy of the user by import."""

    services: ClassVar[Services]
    loop: ClassVar[asyncio.AbstractEventLoop]
    runs: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.owner = Owner("model", uuid.uuid4().hex)
        self.user = NaiveUser()
        self.every_id: list[str] = []
        EveryVerb.runs += 1

    # One write

    @rule(name=NAMES)
    def save(self, name: str) -> None:
        """Save a statement."""
        self.run(self._save(f"likes {name}", None))

    @rule(name=NAMES, slot=SLOTS)
    def save_value(self, name: str, slot: str) -> None:
        """Save a value of a single-valued predicate."""
        self.run(self._save(f"{slot} {name}", slot))

    @precondition(lambda self: self.user.memories)
    @rule(data=st.data(), name=NAMES | st.none(), importance=IMPORTANCES)
    def patch(self, data: st.DataObject, name: str | None, importance: float) -> None:
        """Correct the content or the importance of a memory."""
        key = self._draw(data)
        self.run(self._patch(key, name, importance))

    @precondition(lambda self: self.user.memories)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        """Delete a memory."""
        self.run(self._delete(self._draw(data)))

    @precondition(lambda self: self.user.memories)
    @rule(data=st.data())
    def erase(self, data: st.DataObject) -> None:
        """Hard-delete a memory."""
        self.run(self._erase(self._draw(data)))

    @precondition(lambda self: any(one.replaced_by for one in self.user.memories.values()))
    @rule(data=st.data())
    def revert(self, data: st.DataObject) -> None:
        """Undo a supersession."""
        keys = [key for key, one in self.user.memories.items() if one.replaced_by]
        self.run(self._revert(data.draw(st.sampled_from(keys))))

    @precondition(lambda self: len(self._mergeable()) > 1)
    @rule(data=st.data())
    def merge(self, data: st.DataObject) -> None:
        """Merge two statements."""
        pair = data.draw(st.permutations(self._mergeable()))[:2]
        self.run(self._merge(pair))

    @precondition(lambda self: self.user.runs)
    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        """Roll a merge back."""
        self.run(self._roll_back(data.draw(st.sampled_from(list(self.user.runs)))))

    @rule()
    def forget(self) -> None:
        """Forget the user, who may be written to again afterwards."""
        self.run(self._forget())

    @precondition(lambda self: self.user.memories)
    @rule()
    def copy(self) -> None:
        """Export the user and import the export as another one, and again as the same one."""
        twin = Owner(self.owner.tenant, f"{self.owner.user_id}-{uuid.uuid4().hex[:6]}")

        async def work() -> None:
            document = await self.services.exports.export(self.owner)
            for owner in (twin, self.owner):
                await self.services.imports.import_(owner, document)

        self.wait(work())
        copied = sorted(self.wait(self.read(twin)).values())
        assert copied == sorted(self.user.current.values()), "the copy differs"
        self.compare([])

    # Several at once

    @rule(data=st.data(), names=st.lists(NAMES, min_size=2, max_size=3), slot=SLOTS)
    def write_at_once(self, data: st.DataObject, names: list[str], slot: str) -> None:
        """Run several writes at the same time."""
        kinds: list[Callable[[str], Write]] = [
            lambda name: self._save(f"likes {name}", None),
            lambda name: self._save(f"{slot} {name}", slot),
        ]
        if self.user.memories:
            key = self._draw(data)
            kinds += [
                lambda name: self._patch(key, name, 0.75),
                lambda name: self._delete(key),
                lambda name: self._erase(key),
                lambda name: self._revert(key),
            ]
        if len(pair := self._mergeable()[:2]) > 1:
            kinds.append(lambda name: self._merge(pair))
        if self.user.runs:
            run_id = next(iter(self.user.runs))
            kinds.append(lambda name: self._roll_back(run_id))
        kinds.append(lambda name: self._forget())
        chosen = [data.draw(st.sampled_from(kinds))(name) for name in names]
        self.run(*chosen)

    # The writes

    async def _save(self, content: str, slot: str | None) -> Change:
        memory = MemoryIn(content=content, predicate=slot or "LIKES", single_valued=slot is not None)
        (result,) = await self.services.memories.save(self.owner, [memory])
        assert result.memory
        self.every_id.append(result.memory.id)
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

    async def _merge(self, keys: list[str]) -> Change:
        parts = ConsolidationComponents.build(self.services.components)
        texts = [self.user.memories[key].content for key in keys]
        proposals = parse_proposals([{"action": "MERGE", "memory_ids": keys, "content": "; ".join(texts)}])
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
        refusals = [outcome.detail for outcome in outcomes if isinstance(outcome, GraphmemError)]
        if refusals:
            note(f"refused: {refusals}")
        self.compare([outcome for outcome in outcomes if not isinstance(outcome, GraphmemError)])

    def compare(self, changes: list[Change]) -> None:
        """Apply the changes to the model; fail when no order of them leads to what the service shows."""
        current = self.wait(self.read(self.owner))
        contents = [content for content, _ in current.values()]
        assert len(contents) == len(set(contents)), f"stated twice: {contents}"
        explained = naive_model.explain(self.user, changes, current)
        assert explained is not None, f"no order of the writes explains {current} after {self.user.current}"
        self.user = explained

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

    def _draw(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(list(self.user.memories)))

    def _mergeable(self) -> list[str]:
        return [key for key, one in self.user.memories.items() if one.is_current and one.slot is None]


def run_model(services: Services, loop: asyncio.AbstractEventLoop, runs: int, **options: Any) -> int:
    """Run the state machine against services of another thread's loop; return how often.

    Raises AssertionError, after a shorter example has been found, when the service and the model differ.
    """
    EveryVerb.services, EveryVerb.loop, EveryVerb.runs = services, loop, 0
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
    return EveryVerb.runs


def describe_failure(error: BaseException) -> str:
    """Return the steps of the shortest example that fails, and why."""
    detail = error.detail if isinstance(error, GraphmemError) else str(error)
    return " | ".join([*getattr(error, "__notes__", []), f"{type(error).__name__}: {detail}"])
