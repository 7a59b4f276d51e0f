"""The queries for Neo4j Browser on consolidation runs."""

from __future__ import annotations

import json

from tests.cli.test_explore import run_query
from tests.consolidation.conftest import ConsolidationHarness
from tests.consolidation.test_execution import DIET, verified_merge


async def test_explore_queries_show_runs_their_changes_and_contradictions(harness: ConsolidationHarness) -> None:
    memories = await harness.save("User is vegetarian", "User eats no dairy")
    run = await harness.execute(verified_merge(memories, DIET))
    [listed] = await run_query(harness.graph, harness.owner, "consolidation_runs")
    assert (listed["run_id"], listed["status"], listed["changes"]) == (run.id, "succeeded", run.change_count)
    changes = await run_query(harness.graph, harness.owner, "consolidation_run")
    assert len(changes) == run.change_count
    assert any(DIET in str(change["after"]) for change in changes)
    [kept] = await harness.save("User lives in Malmö")
    async with harness.graph._driver.session() as session:
        report = json.dumps([{"memory_ids": [kept.id], "reason": "two cities"}])
        written = await session.run(
            "MATCH (run:ConsolidationRun {id: $id}) SET run.contradictions = $report", id=run.id, report=report
        )
        await written.consume()
    [contradiction] = await run_query(harness.graph, harness.owner, "contradictions")
    assert contradiction["statement"] == "User lives in Malmö"
    assert "two cities" in contradiction["report"]
