"""Consolidation on the command line: what would change as a table, the runs, and one undone."""

from __future__ import annotations

import json

import pytest

from graphmem.bootstrap import GraphMemory
from graphmem.domain.identity import DEFAULT_TENANT, Owner
from graphmem.domain.listing import ListFilters
from tests.cli.conftest import Cli

TWO = ("Mara is vegetarian", "Mara eats no dairy")
BOTH = "Mara is vegetarian and eats no dairy"


@pytest.mark.req("UMB-13", "UMB-14")
async def test_a_merge_is_shown_before_it_is_done_then_done_looked_at_and_undone(
    quick: Cli, memory: GraphMemory, user: str
) -> None:
    saved = await memory.add(user, list(TWO))
    ids = [each.memory.id for each in saved if each.memory]
    merge = {"action": "MERGE", "memory_ids": ids, "content": BOTH, "reason": "one diet"}
    consolidate = ("consolidate", "--user", user, "--proposals", "-")

    shown = await quick(*consolidate, "--dry-run", stdin=json.dumps([merge]))
    assert shown.code == 0
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.out.splitlines()]
    assert ["memory", BOTH, "new", "", ""] in rows
    for text in TWO:
        assert ["memory", text, "status", "active", "superseded"] in rows
        assert ["memory", text, "replaced by", "", BOTH] in rows
    assert "batches" in shown.err
    assert await contents(memory, user) == set(TWO)

    done = (await quick(*consolidate, "--json", stdin=json.dumps([merge]))).answer
    assert (done["status"], done["executed"]) == ("succeeded", 1)
    assert await contents(memory, user) == {BOTH}
    looked_at = await quick("runs", done["id"])
    assert "replaced by" in looked_at.out
    undone = await quick("rollback", done["id"])
    assert "things are as they were" in undone.out
    assert await contents(memory, user) == set(TWO)


async def contents(memory: GraphMemory, user: str) -> set[str]:
    page = await memory.memories.page(Owner(DEFAULT_TENANT, user), ListFilters())
    return {each.content for each in page.items}


async def test_proposals_that_cannot_be_read_are_wrong_use(quick: Cli, user: str) -> None:
    for given in ("{", '{"proposals": 3}', '[{"action": "DELETE", "memory_ids": ["a", "b"]}]'):
        done = await quick("consolidate", "--user", user, "--proposals", "-", stdin=given)
        assert (done.code, done.out) == (2, "")


async def test_upkeep_tells_what_each_task_did_and_knows_its_tasks(quick: Cli, user: str) -> None:
    tenant = ("--tenant", user)
    assert (await quick("maintain", "decay", "expire", *tenant, "--json")).answer == {
        "tasks": {"decay": {"faded": 0}, "expire": {}}
    }
    refused = await quick("maintain", "polish", *tenant)
    assert (refused.code, "decay, compress, prune, expire" in refused.err) == (2, True)
