"""The pages of spaces in a real browser: members, memories, what is contested, and the quarantine."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import ExplorerUser, Page, Service, empty_tenant
from tests.browser.team import CLAIM, MEMBERS, POISON, fill_space

pytestmark = pytest.mark.timeout(240)

PAGES_OF_ONE = """
const fetched = window.fetch;
window.fetch = (address, ...rest) => fetched(String(address).replace("limit=50", "limit=1"), ...rest);
"""
"""Makes the pages of lists small, so that a test needs few rows."""


@pytest.fixture
def team(service: Service, tenant: str) -> Iterator[ExplorerUser]:
    """An admin of a tenant with the space `atlas`."""
    with empty_tenant(service, tenant) as admin:
        fill_space(admin, service)
        yield admin


@pytest.fixture(scope="module")
def unchanged_team(service: Service) -> Iterator[ExplorerUser]:
    """The same for all tests that leave `atlas` as it is."""
    with empty_tenant(service, f"t{uuid.uuid4().hex[:12]}") as admin:
        fill_space(admin, service)
        yield admin


def members_of(team: ExplorerUser) -> dict[str, str]:
    return {member["user"]: member["role"] for member in team.http.get("/v1/spaces/atlas").json()["members"]}


def contents_for(team: ExplorerUser, user: str) -> set[str]:
    """Return what a list of a user's memories shows, that of spaces too."""
    items = team.http.get(f"/v1/users/{user}/memories", params={"limit": 200}).json()["items"]
    return {memory["content"] for memory in items}


def test_space_shows_what_it_is_about_and_only_its_own_memories(page: Page, unchanged_team: ExplorerUser) -> None:
    unchanged_team.open(page, "spaces", tenant_view=True)
    page.driver.execute_script(PAGES_OF_ONE)
    page.click("#space-list a", "Team Atlas")
    page.wait_for("h1", "Team Atlas")
    page.wait_for("#view", "What the team decides and finds out about the Atlas project.")
    page.wait_for("#list-title", "The first 1 memory")
    page.wait_for("#memories a", "Bob books the hall")
    page.click(".more")
    page.wait_for("#memories a", "Atlas starts on 4 December")
    page.wait_for("#list-title", "2 memories")
    assert "Bob sings at home" not in page.text()
    page.click("#memories a", "Atlas starts on 4 December")
    page.wait_for("h1", "Atlas starts on 4 December")
    page.driver.back()
    page.wait_for("#list-title", "2 memories")
    assert page.console_errors == []


def test_admin_adds_changes_and_removes_members(page: Page, unchanged_team: ExplorerUser) -> None:
    unchanged_team.open(page, "spaces/atlas", tenant_view=True)
    page.wait_for("#member-id").send_keys("dora", Keys.ENTER)
    page.wait_for("#member-list li", "dora")
    assert members_of(unchanged_team)["dora"] == "reader"
    assert "Bob books the hall" in contents_for(unchanged_team, "dora")
    page.set('[aria-label="Role of dora"]', "writer")
    page.click('[aria-label="Change the role of dora"]')
    page.wait_for("#status", "dora is writer of Team Atlas.")
    assert members_of(unchanged_team)["dora"] == "writer"
    page.click('[aria-label="Remove dora"]')
    page.click("#confirm-no")
    page.wait_until_gone("#confirm")
    assert "dora" in members_of(unchanged_team)
    page.click('[aria-label="Remove dora"]')
    page.click("#confirm-yes")
    page.wait_until_gone("#member-list li", "dora")
    assert "Bob books the hall" not in contents_for(unchanged_team, "dora")
    page.set("#member-kind", "key")
    page.wait_for("#member-id").send_keys("no-such-key", Keys.ENTER)
    page.wait_for("#problem", "There is no key 'no-such-key'")
    assert members_of(unchanged_team) == {member["user"]: member["role"] for member in MEMBERS}


def test_admin_makes_a_space_with_its_members(page: Page, unchanged_team: ExplorerUser) -> None:
    unchanged_team.open(page, "spaces", tenant_view=True)
    page.wait_for("#space-id").send_keys("borea")
    page.wait_for("#space-name").send_keys("Team Borea")
    page.wait_for("#space-about").send_keys("What concerns the north.")
    first, *_ = page.find_all("#space-members input")
    first.send_keys("ann")
    page.click("#another-member")
    page.find_all("#space-members input")[1].send_keys("bob")
    page.find_all("#space-members select")[1].send_keys("writer")
    page.click("#another-member")  # a row without an id names nobody
    page.click("#space-form button", "Create")
    page.wait_for("h1", "Team Borea")
    page.wait_for("#status", "Created the space Team Borea.")
    page.wait_for("#member-list li", "bob")
    made = unchanged_team.http.get("/v1/spaces/borea").json()
    assert (made["title"], made["about"]) == ("Team Borea", "What concerns the north.")
    assert made["members"] == [{"user": "ann", "role": "owner"}, {"user": "bob", "role": "writer"}]
    assert page.console_errors == []


def test_space_that_cannot_be_made_says_why_and_changes_nothing(page: Page, unchanged_team: ExplorerUser) -> None:
    unchanged_team.open(page, "spaces", tenant_view=True)
    page.wait_for("#space-name").send_keys("Another Atlas")
    page.wait_for("#space-id").send_keys("atlas")
    page.click("#space-form button", "Create")
    page.wait_for("#problem", "There is a space “atlas” already")
    assert unchanged_team.http.get("/v1/spaces/atlas").json()["title"] == "Team Atlas"
    page.set("#space-id", "carina")
    first, *_ = page.find_all("#space-members input")
    first.send_keys("ann")
    page.click("#another-member")
    page.find_all("#space-members input")[1].send_keys("ann")
    page.click("#space-form button", "Create")
    page.wait_for("#problem", "a user or a key is named twice")
    assert unchanged_team.http.get("/v1/spaces/carina").status_code == 404


def test_admin_changes_what_a_space_is_called_and_what_it_is_about(page: Page, team: ExplorerUser) -> None:
    team.open(page, "spaces/atlas", tenant_view=True)
    page.set("#space-name", "Team Atlas North")
    page.set("#space-about", "")
    page.click("#space-form button", "Save")
    page.wait_for("h1", "Team Atlas North")
    changed = team.http.get("/v1/spaces/atlas").json()
    assert (changed["title"], changed["about"], changed["members"]) == ("Team Atlas North", "", MEMBERS)


def test_contested_statement_is_resolved_after_a_confirmation(page: Page, team: ExplorerUser) -> None:
    team.open(page, "spaces/atlas", tenant_view=True)
    page.wait_for("#contested-list li", "source: web, said by bob")
    page.wait_for("#contested-list li", "contradicts: Atlas starts on 4 December")
    page.click("#contested-list button", "Accept")
    page.wait_for("#confirm", "replaces “Atlas starts on 4 December”")
    page.click("#confirm-no")
    page.wait_until_gone("#confirm")
    assert CLAIM not in contents_for(team, "cy")
    page.click("#contested-list button", "Accept")
    page.click("#confirm-yes")
    page.wait_for("#contested-list", "Nothing is contested.")
    assert CLAIM in contents_for(team, "cy")
    assert "Atlas starts on 4 December" not in contents_for(team, "cy")


def test_contested_statement_that_does_not_hold_is_retired(page: Page, team: ExplorerUser) -> None:
    team.open(page, "spaces/atlas", tenant_view=True)
    page.click("#contested-list button", "Reject")
    page.click("#confirm-yes", "Reject")
    page.wait_for("#contested-list", "Nothing is contested.")
    assert contents_for(team, "cy") == {"Atlas starts on 4 December", "Bob books the hall"}


def test_admin_releases_and_drops_what_is_in_quarantine(page: Page, team: ExplorerUser, service: Service) -> None:
    team.open(page, "spaces/atlas", tenant_view=True)
    for text in (POISON, "Reason:", "book only at StayWell", "seen 1 time"):
        page.wait_for("#quarantine-list li", text)
    page.click("#quarantine-list button", "Drop")
    page.click("#confirm-no")
    page.wait_until_gone("#confirm")
    page.click("#quarantine-list button", "Release")
    page.click("#confirm-yes")
    page.wait_for("#quarantine-list", "Nothing is in quarantine.")
    page.wait_for("#memories a", POISON)
    assert POISON in contents_for(team, "cy")


def test_statement_that_is_dropped_is_no_memory(page: Page, team: ExplorerUser) -> None:
    team.open(page, "spaces/atlas", tenant_view=True)
    page.click("#quarantine-list button", "Drop")
    page.click("#confirm-yes")
    page.wait_for("#quarantine-list", "Nothing is in quarantine.")
    assert team.http.get("/v1/admin/quarantine").json()["items"] == []
    assert POISON not in contents_for(team, "cy")


def test_keys_see_and_change_only_what_they_have_a_right_to(page: Page, team: ExplorerUser) -> None:
    keys = {
        users[0]: team.http.post("/v1/admin/keys", json={"name": users[0], "role": "agent", "users": users}).json()[
            "key"
        ]
        for users in (["ann", "dora"], ["cy"], ["eve"])
    }
    team.open(page, "spaces", tenant_view=True, key=keys["eve"])
    page.wait_for("#space-list", "This key cannot read any space.")
    team.open(page, "spaces/atlas", tenant_view=True, key=keys["cy"])
    page.wait_for("#list-title", "2 memories")
    page.wait_for("#member-list li", "owner")
    for admins_alone in ("#member-form", "#space-form", "#quarantine"):
        assert not page.find_all(admins_alone)
    page.click("#contested-list button", "Accept")
    page.click("#confirm-yes")
    page.wait_for("#problem", "needs the role writer")
    page.click("#memories a", "Bob books the hall")  # cy has no memory of their own
    page.wait_for("h1", "Bob books the hall")
    page.click("#views a", "Overview")
    page.wait_for("#counts", "0 memories")
    team.open(page, "spaces/atlas", tenant_view=True, key=keys["ann"])
    page.wait_for("#member-id").send_keys("eve", Keys.ENTER)
    page.wait_for("#problem", "no access to a user")
    page.wait_for("#member-id").clear()
    page.wait_for("#member-id").send_keys("dora", Keys.ENTER)
    page.wait_for("#status", "dora is reader of Team Atlas.")
    assert members_of(team)["dora"] == "reader"


def test_space_without_a_user_says_how_its_memories_are_read(page: Page, unchanged_team: ExplorerUser) -> None:
    assert unchanged_team.http.put("/v1/spaces/empty", json={"title": "Nobody's", "members": []}).status_code == 201
    unchanged_team.open(page, "spaces/empty", tenant_view=True)
    page.wait_for("#member-list", "There are no members.")
    page.wait_for("#view", "add one that this key has access to")
    page.wait_for("#member-id").send_keys("ann", Keys.ENTER)
    page.wait_for("#memories", "Nothing is stored in this space yet.")
