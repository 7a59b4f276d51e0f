"""Consolidation on the command line: dry run, execution, inspection, rollback."""

from __future__ import annotations

import json
import re

import pytest

from graphmem.app.bootstrap import Services
from graphmem.graph_memory import GraphMemory
from graphmem.memories.filters import ListFilters
from graphmem.models.language_model import Receipt
from graphmem.tenants.owners import DEFAULT_TENANT, Owner
from tests.cli.conftest import Cli

SOURCE_STATEMENTS = ("Mara is vegetarian", "Mara eats no dairy")
MERGED_STATEMENT = "Mara is vegetarian and eats no dairy"


@pytest.mark.req("UMB-13", "UMB-14")
@pytest.mark.usefixtures("served")
async def test_merge_dry_run_execution_inspection_and_rollback(
    cli_with_models: Cli, memory: Services, user: str
) -> None:
    saved = await GraphMemory(memory).add(user, list(SOURCE_STATEMENTS))
    ids = [result.memory.id for result in saved if result.memory]
    merge = {"action": "MERGE", "memory_ids": ids, "content": MERGED_STATEMENT, "verified": True}
    consolidate = ("consolidate", "--user", user, "--proposals", "-")

    shown = await cli_with_models(*consolidate, "--dry-run", stdin=json.dumps([merge]))
    assert shown.code == 0
    rows = [re.split(r"\s{2,}", line.strip()) for line in shown.out.splitlines()]
    assert ["memory", MERGED_STATEMENT, "new"] in rows
    for text in SOURCE_STATEMENTS:
        assert ["memory", text, "status", "active", "superseded"] in rows
        assert ["memory", text, "replaced by", MERGED_STATEMENT] in rows
    assert "batches" in shown.err
    assert await current_contents(memory, user) == set(SOURCE_STATEMENTS)

    done = (await cli_with_models(*consolidate, "--json", stdin=json.dumps([merge]))).json
    assert (done["status"], done["executed"]) == ("succeeded", 1)
    assert await current_contents(memory, user) == {MERGED_STATEMENT}
    looked_at = await cli_with_models("runs", done["id"][:8])
    assert "replaced by" in looked_at.out
    preview = (await cli_with_models("rollback", done["id"][:8], "--dry-run")).out.splitlines()
    assert f"Goes back: the memory {MERGED_STATEMENT!r} is removed." in preview
    for text in SOURCE_STATEMENTS:
        assert f"Comes back: the memory {text!r} as it was before the run." in preview
    assert preview[-1] == "Nothing conflicts."
    undone = await cli_with_models("rollback", done["id"][:8])
    assert " undone." in undone.out
    assert await current_contents(memory, user) == set(SOURCE_STATEMENTS)


async def current_contents(memory: Services, user: str) -> set[str]:
    page = await memory.memories.page(Owner(DEFAULT_TENANT, user), ListFilters())
    return {memory.content for memory in page.items}


async def test_unreadable_proposals_exit_with_2(cli_with_models: Cli, user: str) -> None:
    for text in ("{", '{"proposals": 3}', '[{"action": "DELETE", "memory_ids": ["a", "b"]}]'):
        done = await cli_with_models.here("consolidate", "--user", user, "--proposals", "-", stdin=text)
        assert (done.code, done.out) == (2, "")


async def test_maintain_reports_each_task_and_rejects_unknown_tasks(cli_with_models: Cli, user: str) -> None:
    tenant = ("--tenant", user)
    assert (await cli_with_models("maintain", "decay", "expire", *tenant, "--json")).json == {
        "tasks": {"decay": {"faded": 0}, "expire": {}},
        "receipt": Receipt().model_dump(mode="json"),
    }
    refused = await cli_with_models.here("maintain", "polish", *tenant)
    assert (refused.code, "decay, compress, prune, expire" in refused.err) == (2, True)
