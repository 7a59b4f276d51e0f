"""The queries for Neo4j Browser on what was learned about a user."""

from __future__ import annotations

from graphmem.conversations.session import MessageIn
from tests.cli.test_explore import run_query
from tests.context.conftest import ContextHarness


async def test_explore_queries_show_preferences_and_patterns(harness: ContextHarness) -> None:
    await harness.add_daily_messages(7)
    await harness.add_messages("s", MessageIn(role="user", content="Please keep it short"), learn=True)
    learned = await run_query(harness.graph, harness.owner, "preferences")
    assert {"detail_level", "query_frequency"} <= {row["kind"] for row in learned}
    assert all(row["what"] and row["confidence"] and row["times"] and row["last"] for row in learned)
