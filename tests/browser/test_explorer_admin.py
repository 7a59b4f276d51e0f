"""What an admin does in the explorer: runs and their rollback, corrections, erasure, keys."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from graphmem.runtime.times import utc_now
from tests.browser.conftest import ExplorerUser, Page, Service

pytestmark = pytest.mark.timeout(240)


def merge_proposal(explorer_user: ExplorerUser) -> dict[str, Any]:
    items = explorer_user.http.get("/v1/users/u-7/memories", params={"keyword": "green tea"}).json()["items"]
    return {
        "action": "MERGE",
        "memory_ids": [memory["id"] for memory in items],
        "content": "Mara drinks green tea in the morning",
        "verified": True,
        "reason": "both say what she drinks",
    }


def run_merge(explorer_user: ExplorerUser) -> dict[str, Any]:
    return explorer_user.consolidate(merge_proposal(explorer_user))


def current_contents(explorer_user: ExplorerUser) -> set[str]:
    items = explorer_user.http.get("/v1/users/u-7/memories", params={"limit": 200}).json()["items"]
    return {memory["content"] for memory in items}


def test_run_is_rolled_back_after_a_preview_in_sentences_and_a_confirmation(
    page: Page, explorer_user: ExplorerUser
) -> None:
    before = current_contents(explorer_user)
    run = run_merge(explorer_user)
    assert current_contents(explorer_user) != before
    explorer_user.open(page, "runs", tenant_view=True)
    page.wait_for("#run-list a", "by admin of the page")
    page.click("#run-list a", "curated")
    page.wait_for("#proposals li", "Merge “Mara drinks green tea")
    page.wait_for("#proposals li", "Reason: both say what she drinks")
    page.wait_for("#proposals .badge", "executed")
    page.wait_for("#goes-back li", "The memory “Mara drinks green tea in the morning” was written by the run")
    page.wait_for("#comes-back li", "The memory “Mara drinks green tea” gets its earlier state back.")
    page.click("#roll-back")
    page.wait_for("#confirm", f"{run['change_count']} changes will be undone")
    page.click("#confirm-no")
    page.wait_until_gone("#confirm")
    assert current_contents(explorer_user) != before
    page.click("#roll-back")
    page.click("#confirm-yes")
    page.wait_for("#status", "Rolled back")
    page.wait_for("#view .badge", "rolled back")
    page.wait_until_gone("#roll-back")
    assert current_contents(explorer_user) == before
    assert page.console_errors == []


def test_all_conflicts_are_in_the_preview_before_a_forced_rollback(page: Page, explorer_user: ExplorerUser) -> None:
    before = current_contents(explorer_user)
    run = run_merge(explorer_user)
    later = {"content": "Mara drinks green tea every single morning"}
    new = run["proposals"][0]["result_id"]
    assert explorer_user.http.patch(f"/v1/users/u-7/memories/{new}", json=later).status_code == 200
    explorer_user.open(page, f"runs/{run['id']}", tenant_view=True)
    page.wait_for("#conflicts h3", "Conflicts (2)")
    page.wait_for("#conflicts li", "Mara drinks green tea in the morning")
    page.click("#roll-back")
    page.wait_for("#confirm", "2 later writes will be overwritten")
    page.click("#confirm-yes", "Overwrite")
    page.wait_for("#view .badge", "rolled back")
    assert current_contents(explorer_user) == before


@pytest.mark.req("UMB-13")
def test_nothing_is_offered_past_the_retention(page: Page, explorer_user: ExplorerUser, service: Service) -> None:
    run = run_merge(explorer_user)
    ended = utc_now() - timedelta(days=31)
    times = {"finished_at": ended, "created_at": ended}
    graph = service.memory.components.graph
    service.run_coroutine(graph.execute("runs.update", run_id=run["id"], properties=times))
    explorer_user.open(page, f"runs/{run['id']}", tenant_view=True)
    page.wait_for("#view", "This run can no longer be undone.")
    assert not page.find_all("#roll-back")


def test_dry_run_is_started_from_the_page_and_shows_how_it_ended(page: Page, explorer_user: ExplorerUser) -> None:
    explorer_user.open(page, "runs?user=u-7", tenant_view=True)
    page.click("#start-dry-run")
    page.wait_for("#view h1", "Run of")
    page.wait_for("#view .badge", "dry run")
    page.wait_until_gone("#view .badge", "queued")
    page.wait_until_gone("#view .badge", "running")
    runs = explorer_user.http.get("/v1/admin/consolidations", params={"user_id": "u-7"}).json()["items"]
    assert [run["dry_run"] for run in runs] == [True]
    body = {"user_id": "u-7", "wait": True, "dry_run": True, "proposals": [merge_proposal(explorer_user)]}
    run = explorer_user.http.post("/v1/admin/consolidations", json=body).json()
    explorer_user.open(page, f"runs/{run['id']}", tenant_view=True)
    page.wait_for("#proposals-title", "What it would do (1)")
    page.wait_for("#proposals .badge", "would be executed")
    assert not page.find_all("#roll-back")


@pytest.mark.req("QUINN-23")
def test_memory_is_corrected_reverted_deleted_and_erased(page: Page, explorer_user: ExplorerUser) -> None:
    lisbon = explorer_user.memory_id("Lisbon")
    explorer_user.open(page, f"memories/{explorer_user.memory_id('peanuts')}")
    page.set("#edit-form textarea", "Mara is allergic to hazelnuts")
    page.click("#edit-form button", "Save as a new version")
    page.wait_for("#versions h3", "Version 2 · current")
    page.wait_for("#versions h3", "Version 1 · replaced")
    assert "Mara is allergic to hazelnuts" in current_contents(explorer_user)
    page.click("#delete")
    page.click("#confirm-yes")
    page.wait_for("#view .badge", "deleted")
    assert "Mara is allergic to hazelnuts" not in current_contents(explorer_user)
    page.click("#erase")
    page.wait_for("#confirm-typed").send_keys("erase", Keys.ENTER)
    page.wait_for("#list-title")
    explorer_user.open(page, f"memories/{lisbon}")
    page.click("#revert")
    page.click("#confirm-yes")
    page.wait_for("#status", "The replacement is undone.")
    assert "Mara lives in Lisbon" in current_contents(explorer_user)


def test_user_is_forgotten_only_after_their_id_is_typed(page: Page, explorer_user: ExplorerUser) -> None:
    explorer_user.open(page)
    page.click("#forget")
    assert not page.wait_for("#confirm-yes").is_enabled()
    page.wait_for("#confirm-typed").send_keys("u-7", Keys.ENTER)
    page.wait_for("#view h1", "Users")
    page.wait_for("#status", "is forgotten; nothing is left")
    assert explorer_user.http.get("/v1/users", params={"query": "u-7"}).json()["items"] == []


def test_keys_are_created_and_revoked(page: Page, explorer_user: ExplorerUser, service: Service) -> None:
    explorer_user.open(page, "keys", tenant_view=True)
    page.wait_for("#key-name").send_keys("reader")
    page.set("#key-role", "analyst")
    page.wait_for("#key-users").send_keys("u-7")
    page.click("#key-form button", "Create")
    secret = page.wait_for("#new-key").get_attribute("value")
    reader = {"Authorization": f"Bearer {secret}"}
    assert explorer_user.http.get("/v1/users", headers=reader).status_code == 200
    page.wait_for("#key-list li", "only u-7")
    page.click('[aria-label="Revoke reader"]')
    page.click("#confirm-yes")
    page.wait_until_gone("#key-list li", "reader")
    assert explorer_user.http.get("/v1/users", headers=reader).status_code == 401
