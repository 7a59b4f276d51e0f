"""The whole context of a user with a month of history, compared with a stored snapshot.

Set GRAPHMEM_WRITE_SNAPSHOT=1 to write the snapshot again, and review the difference before you commit it.
"""

from __future__ import annotations

import json
import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from graphmem.conversations.session import MessageIn
from graphmem.memories.memory import MemoryIn
from tests.context.conftest import ContextHarness

SNAPSHOT_FILE = Path(__file__).with_name("rich_user.json")
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


async def create_month_of_history(harness: ContextHarness) -> None:
    """Create a month of Mara: profile, domains, sessions, feedback."""
    harness.clock.advance(timedelta(days=-30))
    await harness.save_memories(
        MemoryIn(content="Mara is vegetarian", importance=0.9),
        MemoryIn(content="Mara is badly allergic to hazelnuts", importance=0.95),
        MemoryIn(
            content="Mara has a cat called Herr Pixel",
            predicate="HAS_PET",
            object={"name": "Herr Pixel", "type": "Cat"},
        ),
        MemoryIn(content="Mara wants to buy a flat in Ottensen", type="plan", importance=0.7),
        MemoryIn(content="Mara still has to ask the bank for a mortgage offer", type="open_loop", importance=0.6),
        MemoryIn(content="Mara likes spicy Thai curries", type="preference", domain="cooking"),
        MemoryIn(content="Mara writes measurement scripts in Python", domain="coding"),
        MemoryIn(content="The assistant speaks of prices with tax", scope="global", importance=0.9),
    )
    for day in range(8):
        harness.clock.advance(timedelta(days=2))
        entities: Any = {"category": "groceries", "amount": 80 + day, "goal": "a flat"}
        messages = await harness.add_messages(
            f"session-{day}",
            MessageIn(
                role="user", name="Mara", content=f"Could you please show what I spent on groceries in week {day}?",
                intent="spending_analysis", entities=entities,
            ),
            MessageIn(role="assistant", content=f"It was {80 + day} euros.", confidence=0.8),
            MessageIn(role="user", name="Mara", content="And what is left to save?", intent="budget_planning"),
            MessageIn(role="assistant", content="About 400 euros.", confidence=0.6),
            learn=True,
        )  # fmt: skip
        if day % 3 == 0:
            await harness.learner.learn_from_feedback(harness.owner, messages[1].id, 5)
    await harness.add_messages(
        "dinner",
        "What can I cook for guests who eat no meat?",
        "A green Thai curry is easy to cook for guests.",
        "Then I will cook the green curry for my guests, without nuts.",
    )
    harness.clock.advance(timedelta(days=2))
    await harness.add_messages("today", "Please answer in German from now on, and keep it short.", "Gerne.", learn=True)
    await harness.add_messages(
        "today",
        MessageIn(
            role="user", content="My budget for tonight is 25 €, guests come at 7pm", entities={"occasion": "dinner"}
        ),
        learn=True,
    )


def normalise_snapshot(value: Any) -> Any:
    """Return a context with ids numbered in order of appearance and without scores."""
    seen: dict[str, str] = {}
    text = json.dumps(value, ensure_ascii=False, indent=1)
    snapshot = json.loads(_ID.sub(lambda found: seen.setdefault(found[0], f"id-{len(seen) + 1}"), text))
    for session in snapshot["related_sessions"]:
        del session["relevance_score"]
    snapshot["memories"] = [memory["content"] for memory in snapshot["memories"]]
    snapshot["preamble"] = snapshot["preamble"].splitlines()
    return snapshot


@pytest.mark.req("TRUE-09", "TRUE-10", "TRUE-11", "TRUE-12", "CASH-17", "QUINN-34")
async def test_the_context_of_a_rich_user_matches_the_snapshot(finance_harness: ContextHarness) -> None:
    harness = finance_harness
    await create_month_of_history(harness)
    context = await harness.build_context(
        "As we discussed, what can I cook for my guests tonight?", session_id="today", intent="spending_analysis"
    )
    snapshot = normalise_snapshot(context.model_dump(mode="json"))
    if os.environ.get("GRAPHMEM_WRITE_SNAPSHOT"):
        SNAPSHOT_FILE.write_text(json.dumps(snapshot, ensure_ascii=False, indent=1) + "\n", "utf-8")
    assert snapshot == json.loads(SNAPSHOT_FILE.read_text("utf-8"))
    assert context.token_count <= 2000
