"""Plans that a run closes because another memory says that they were carried out, given up or replaced."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from graphmem.consolidation.guards import refusal_reason
from graphmem.consolidation.models import ProposalVerdict, StatementQuote, Verification, parse_proposals
from graphmem.memories.memory import Memory, MemoryIn, MemoryStatus, MemoryType
from tests.consolidation.conftest import ConsolidationHarness
from tests.consolidation.test_execution import current, verified
from tests.consolidation.test_guards import fact, make_context
from tests.consolidation.test_verification import answers, run_verified
from tests.consolidation.verifications import checked

PLAN, OUTCOME = "Mara plans to sell her boat", "Mara sold her boat to Ivo"
RAN_ON = datetime(2026, 5, 20, tzinfo=UTC)
ADA = {"name": "Ada", "type": "Person"}


def close(memories: list[Memory]) -> dict[str, Any]:
    plan, *telling = memories
    return {"action": "CLOSE", "memory_id": plan.id, "evidence": [memory.id for memory in telling]}


async def save_race(harness: ConsolidationHarness) -> list[Memory]:
    return await harness.save_all(
        [
            MemoryIn.model_validate({"content": "User plans to run a half marathon", "type": "plan"}),
            MemoryIn.model_validate({"content": "User ran a half marathon in May", "valid_at": RAN_ON}),
        ]
    )


@pytest.mark.req("UMB-14", "UMB-13")
async def test_a_plan_ends_when_it_was_carried_out_and_a_rollback_opens_it_again(harness: ConsolidationHarness) -> None:
    memories = await save_race(harness)
    quote = {"statement": 2, "words": "ran a half marathon"}
    before = await harness.graph_state()
    run, server = await run_verified(harness, close(memories), answers(checked(closing=[quote])))
    [reviewed] = run.proposals
    assert reviewed.verdict is ProposalVerdict.EXECUTED, reviewed.reason
    assert "close the plan [M1]; statements: [M2]" in str(server.requests)
    assert list(await current(harness)) == [memories[1].content]
    plan = await harness.facts.get(harness.owner, memories[0].id)
    assert (plan.status, plan.invalid_at, plan.superseded_by) == (MemoryStatus.SUPERSEDED, RAN_ON, memories[1].id)
    await harness.roll_back(run.id)
    assert await harness.graph_state() == before


async def test_a_closed_plan_is_reverted_without_a_change_of_what_closed_it(harness: ConsolidationHarness) -> None:
    memories = await save_race(harness)
    await harness.execute(verified(close(memories)))
    await harness.facts.update_memory(harness.owner, memories[0].id, lambda ledger: ledger.revert(memories[0].id))
    assert set(await current(harness)) == {memory.content for memory in memories}


@pytest.mark.req("UMB-16")
@pytest.mark.parametrize(
    ("change", "quoted", "why"),
    [
        ({}, "", "no memory is quoted that says that plan is over"),
        ({}, "sold her boat to Petra", "no memory is quoted that says that plan is over"),
        ({"plan": {"type": MemoryType.FACT, "predicate": "OWNS"}}, OUTCOME, "plan is no plan"),
        ({"plan": {"immutable": True}}, OUTCOME, "plan is immutable"),
        (
            {"plan": {"source_kind": "user"}, "told": {"source_kind": "web"}},
            OUTCOME,
            "the memories are not equally trusted",
        ),
        ({"told": {"domain": "work"}}, OUTCOME, "the memories are of different scopes"),
        (
            {
                "plan": {"valid_at": datetime(2026, 4, 1, tzinfo=UTC)},
                "told": {"valid_at": datetime(2025, 4, 1, tzinfo=UTC)},
            },
            OUTCOME,
            "told held before the plan was made",
        ),
    ],
)
def test_a_plan_stays_open_unless_a_memory_of_the_same_trust_says_that_it_is_over(
    change: dict[str, dict[str, Any]], quoted: str, why: str
) -> None:
    plan = fact("plan", PLAN, **{"type": MemoryType.PLAN, "predicate": "PLANS", **change.get("plan", {})})
    told = fact("told", OUTCOME, **change.get("told", {}))
    [proposal] = parse_proposals([{"action": "CLOSE", "memory_id": "plan", "evidence": ["told"]}])
    quotes = [StatementQuote(memory_id="told", words=quoted)] if quoted else []
    reason = refusal_reason(proposal, make_context(plan, told), Verification(closing=quotes))
    assert reason is not None
    assert reason.startswith(why)


async def test_what_somebody_else_did_closes_nothing(harness: ConsolidationHarness) -> None:
    [plan] = await harness.save("User plans to run a half marathon", type=MemoryType.PLAN)
    harness.clock.advance(timedelta(minutes=1))
    [told] = await harness.save("Ada ran a half marathon", subject=ADA)
    run = await harness.execute(verified(close([plan, told])))
    assert [reviewed.verdict for reviewed in run.proposals] == [ProposalVerdict.REFUSED]
    assert run.proposals[0].reason == "the memories are about different people"
