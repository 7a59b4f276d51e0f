"""The explorer page in a real browser, against the running service."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import MARKUP_CONTENT, NARROW, WIDE, ExplorerUser, Page, Service

# The first test waits for the database, the embedder, the service and the browser to start.
pytestmark = pytest.mark.timeout(240)


def sign_in(page: Page, explorer_user: ExplorerUser, key: str | None = None) -> None:
    page.driver.get("about:blank")
    page.driver.get(explorer_user.ui)
    page.driver.execute_script("sessionStorage.clear()")
    page.driver.get(explorer_user.ui)
    page.wait_for("#key").send_keys(key or explorer_user.key)
    page.wait_for("#user").send_keys(explorer_user.user, Keys.ENTER)
    page.wait_for("#find")


def find(page: Page, text: str, name: str) -> None:
    page.wait_for("#find").clear()
    page.wait_for("#find").send_keys(text, Keys.ENTER)
    page.click("#found[aria-busy=false] button", name)
    page.wait_for("#entity-title", name)
    page.wait_for("#drawing svg")


def run_merge(explorer_user: ExplorerUser) -> dict[str, Any]:
    items = explorer_user.http.get("/v1/users/u-7/memories", params={"keyword": "green tea"}).json()["items"]
    return explorer_user.consolidate(
        {
            "action": "MERGE",
            "memory_ids": [memory["id"] for memory in items],
            "content": "Mara drinks green tea every morning",
            "reason": "both say what she drinks",
        }
    )


def current_contents(explorer_user: ExplorerUser) -> set[str]:
    items = explorer_user.http.get("/v1/users/u-7/memories", params={"limit": 200}).json()["items"]
    return {memory["content"] for memory in items}


@pytest.mark.req("QUINN-38")
def test_analyst_signs_in_finds_an_entity_and_sees_its_neighbours(
    page: Page, explorer_user: ExplorerUser, service: Service
) -> None:
    sign_in(page, explorer_user, service.key(explorer_user.tenant, "analyst"))
    find(page, "mar", "Mara")
    page.wait_for("#memories button", "Mara lives in Porto")
    assert not [button for button in page.find_all("#memories button") if "Lisbon" in button.text]
    drawn = {label.get_attribute("textContent") for label in page.find_all("#drawing .node > text:not(.count)")}
    assert {"Mara", "Porto", "Arbor", "Ilse"} <= drawn
    listed = {button.text for button in page.find_all("#neighbours button")}
    assert {"Porto (Place)", "Arbor (Organization)", "Ilse (Person)"} <= listed
    assert "Graz orchestra" not in page.text()
    page.set("#depth", "2")
    page.wait_for("#memories button", "Ilse plays the cello")
    assert "Consolidation runs" not in page.text()
    page.screenshot("wide")
    assert page.console_errors == []


def test_wrong_key_is_rejected_with_the_reason(page: Page, explorer_user: ExplorerUser) -> None:
    page.driver.get(explorer_user.ui)
    page.driver.execute_script("sessionStorage.clear()")
    page.driver.get(explorer_user.ui)
    page.wait_for("#key").send_keys("no-such-key")
    page.wait_for("#user").send_keys("u-7", Keys.ENTER)
    page.wait_for("#problem", "key")
    assert page.driver.execute_script("return sessionStorage.length") == 0
    assert page.wait_for("#sign-in").is_displayed()


def test_key_lasts_for_the_tab_and_is_cleared_on_sign_out(page: Page, explorer_user: ExplorerUser) -> None:
    sign_in(page, explorer_user)
    page.wait_until(lambda: page.driver.execute_script("return sessionStorage.length"), "waited for the session")
    page.driver.refresh()
    page.wait_for("#found button", "Mara")
    assert page.driver.execute_script("return localStorage.length + document.cookie.length") == 0
    page.click("#sign-out")
    page.wait_for("#sign-in")
    assert page.driver.execute_script("return sessionStorage.length") == 0
    assert "Mara" not in page.driver.execute_script("return document.body.textContent")


def test_slow_earlier_response_does_not_replace_the_last_chosen_entity(page: Page, explorer_user: ExplorerUser) -> None:
    sign_in(page, explorer_user)
    slow = page.wait_for("#found[aria-busy=false] button", "Mara").get_attribute("data-id")
    page.driver.execute_script(
        "const fetched = window.fetch; window.held = new Promise((done) => { window.release = done; });"
        "window.fetch = (address, ...rest) => String(address).includes(arguments[0])"
        " ? window.held.then(() => fetched(address, ...rest)) : fetched(address, ...rest);",
        slow,
    )
    page.click("#found button", "Mara")
    page.click("#found button", "Ilse")
    page.wait_for("#entity-title", "Ilse")
    page.driver.execute_script("window.release()")
    page.driver.execute_async_script("setTimeout(arguments[0], 500)")
    assert page.wait_for("#entity-title").text == "Ilse"


@pytest.mark.req("QUINN-38")
def test_moving_valid_time_back_shows_the_older_fact(page: Page, explorer_user: ExplorerUser) -> None:
    sign_in(page, explorer_user)
    find(page, "Mara", "Mara")
    page.set("#valid-date", "2022-06-01T00:00:00")
    page.wait_for("#memories button", "Mara lives in Lisbon")
    page.wait_until_gone("#memories button", "Mara lives in Porto")
    page.wait_for("#status", "2022-06-01")
    page.screenshot("past")
    page.wait_for("#valid-slider").send_keys(Keys.HOME)
    page.wait_until_gone("#memories button", "Lisbon")
    page.click("#valid-now")
    page.wait_for("#memories button", "Mara lives in Porto")


@pytest.mark.req("QUINN-38")
def test_moving_known_time_back_shows_the_earlier_version(page: Page, explorer_user: ExplorerUser) -> None:
    before = datetime.now(UTC)
    memory = next(
        memory
        for memory in explorer_user.http.get("/v1/users/u-7/memories").json()["items"]
        if "peanuts" in memory["content"]
    )
    corrected = {"content": "Mara is allergic to hazelnuts"}
    assert explorer_user.http.patch(f"/v1/users/u-7/memories/{memory['id']}", json=corrected).status_code == 200
    sign_in(page, explorer_user)
    find(page, "Mara", "Mara")
    page.wait_for("#memories button", "hazelnuts")
    page.driver.execute_script("document.querySelector('#known-date').step = 'any'")
    page.set("#known-date", before.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3])
    page.wait_for("#memories button", "peanuts")
    page.wait_until_gone("#memories button", "hazelnuts")
    page.click("#memories button", "peanuts")
    page.wait_for("#versions", "allergic to hazelnuts")
    page.click(".version:nth-child(1) button", "when this was learned")
    page.wait_until_gone("#history")
    page.wait_for("#memories button", "peanuts")


@pytest.mark.req("QUINN-38")
def test_history_shows_source_and_end_reason(page: Page, explorer_user: ExplorerUser) -> None:
    sign_in(page, explorer_user)
    find(page, "Mara", "Mara")
    page.click("#memories button", "Mara lives in Porto")
    page.wait_for("#versions blockquote", "I have moved to Porto, at last!")
    page.wait_for("#versions figcaption", "Mara")
    page.wait_for("#versions dl", "admin of the page")
    page.screenshot("history")
    page.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    page.wait_until_gone("#history")
    page.set("#valid-date", "2022-06-01T00:00:00")
    page.click("#memories button", "Mara lives in Lisbon")
    page.wait_for("#versions dd", "2021-03-01 to 2025-05-01")
    page.click("#versions button", "the memory that replaced it")
    page.wait_for("#versions .name", "Mara lives in Porto")


@pytest.mark.req("QUINN-35")
def test_run_is_rolled_back_from_the_page_after_confirmation(page: Page, explorer_user: ExplorerUser) -> None:
    before = current_contents(explorer_user)
    run = run_merge(explorer_user)
    assert current_contents(explorer_user) != before
    sign_in(page, explorer_user)
    page.click("#views a", "Consolidation runs")
    page.click("#run-list a", "curated")
    page.wait_for("#run-body", "both say what she drinks")
    page.wait_for("#run-body .changes", "Mara drinks green tea every morning")
    page.screenshot("run")
    page.click("#roll-back")
    page.wait_for("#confirm-text", f"{run['change_count']} changes")
    page.click("#confirm-no")
    page.wait_until_gone("#confirm")
    assert current_contents(explorer_user) != before
    page.click("#roll-back")
    page.click("#confirm-yes")
    page.wait_for("#run-body .badge", "rolled back")
    page.wait_for("#status", "Rolled back")
    page.wait_until_gone("#roll-back")
    assert current_contents(explorer_user) == before
    assert page.console_errors == []


@pytest.mark.req("QUINN-35")
def test_conflicting_writes_are_listed_before_forced_rollback(page: Page, explorer_user: ExplorerUser) -> None:
    before = current_contents(explorer_user)
    run = run_merge(explorer_user)
    later = {"content": "Mara drinks green tea every single morning"}
    new = run["proposals"][0]["result_id"]
    assert explorer_user.http.patch(f"/v1/users/u-7/memories/{new}", json=later).status_code == 200
    sign_in(page, explorer_user)
    page.driver.get(f"{explorer_user.ui}#/runs/{run['id']}")
    page.click("#roll-back")
    page.click("#confirm-yes")
    page.wait_for("#confirm-title", "Later writes conflict")
    page.wait_for("#confirm-text", "2 later writes")
    page.wait_for("#conflicts li", "after the run")
    page.screenshot("conflict")
    assert current_contents(explorer_user) != before
    page.click("#confirm-yes", "Overwrite")
    page.wait_for("#run-body .badge", "rolled back")
    assert current_contents(explorer_user) == before


def test_memory_in_the_drawing_opens_its_history(page: Page, explorer_user: ExplorerUser) -> None:
    sign_in(page, explorer_user)
    find(page, "Mara", "Mara")
    link = next(
        link for link in page.find_all("#drawing .link") if "Porto" in (link.get_attribute("textContent") or "")
    )
    page.driver.execute_script("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", link)
    page.wait_for("#versions .name", "Mara lives in Porto")


def test_hostile_text_stays_text(page: Page, explorer_user: ExplorerUser) -> None:
    sign_in(page, explorer_user)
    find(page, "Mara", "Mara")
    page.wait_for("#memories button", MARKUP_CONTENT)
    page.wait_for("#neighbours button", "<b>Bold</b> & co (Thing)").click()
    page.wait_for("#entity-title", "<b>Bold</b> & co")
    page.click("#memories button", MARKUP_CONTENT)
    page.wait_for("#versions", MARKUP_CONTENT)
    assert page.find_all("main img, dialog img, main b") == []
    assert page.driver.title != "owned"


def test_page_is_usable_by_keyboard_alone(page: Page, explorer_user: ExplorerUser) -> None:
    sign_in(page, explorer_user)

    def focused() -> str:
        return str(page.driver.execute_script("return document.activeElement.id || document.activeElement.textContent"))

    def press(*keys: str) -> None:
        for key in keys:
            page.driver.switch_to.active_element.send_keys(key)

    def tab_to(text: str) -> None:
        for _ in range(60):
            if text in focused():
                return
            press(Keys.TAB)
        pytest.fail(f"{text!r} was not reached; the focus is on {focused()!r}")

    page.wait_until(lambda: focused() == "find", "waited for the focus on the search")
    press("Ilse")
    page.wait_for("#status", "1 entity found")
    tab_to("IlsePerson" if "IlsePerson" in page.wait_for("#found").text else "Ilse")
    ring = "return getComputedStyle(document.activeElement).outlineStyle"
    assert page.driver.execute_script(ring) == "solid"
    press(Keys.ENTER)
    page.wait_until(lambda: focused() == "entity-title", "waited for the focus on the entity")
    tab_to("Ilse is Mara's sister")
    assert page.wait_for("#drawing .link.lit")
    press(Keys.ENTER)
    page.wait_until(lambda: focused() == "history-title", "waited for the focus in the history")
    press(Keys.ESCAPE)
    page.wait_until_gone("#history")
    page.wait_until(lambda: "Ilse is Mara's sister" in focused(), "waited for the focus to come back")
    tab_to("Mara (Person)")
    press(Keys.ENTER)
    page.wait_for("#entity-title", "Mara")


@pytest.mark.parametrize(("width", "height"), [WIDE, NARROW])
def test_page_fits_desktop_and_phone_width(page: Page, explorer_user: ExplorerUser, width: int, height: int) -> None:
    run = run_merge(explorer_user)
    page.resize(width, height)
    sign_in(page, explorer_user)
    assert not page.scrolls_sideways
    find(page, "Mara", "Mara")
    page.wait_for("#memories button", "Porto")
    assert not page.scrolls_sideways
    page.screenshot(f"entity-{width}")
    page.driver.execute_script("document.querySelector('#around').scrollIntoView()")
    page.screenshot(f"drawing-{width}")
    picture = page.wait_for("#drawing svg").rect
    for node in page.find_all("#drawing .node"):
        assert node.rect["x"] >= picture["x"] - 1
        assert node.rect["x"] + node.rect["width"] <= picture["x"] + picture["width"] + 1
        assert node.rect["y"] + node.rect["height"] <= picture["y"] + picture["height"] + 1
    page.click("#memories button", "Porto")
    page.wait_for("#versions blockquote")
    page.screenshot(f"history-{width}")
    page.click("#history-close")
    page.driver.get(f"{explorer_user.ui}#/runs/{run['id']}")
    page.wait_for("#roll-back")
    assert not page.scrolls_sideways
    page.driver.execute_script("document.querySelector('#run').scrollIntoView()")
    page.screenshot(f"run-{width}")


def test_page_is_public_holds_no_secret_and_restricts_scripts(service: Service) -> None:
    with httpx.Client(base_url=service.address) as http:
        page = http.get("/ui")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        for name in ("app.js", "style.css", "icon.svg"):
            part = http.get(f"/ui/{name}")
            assert part.status_code == 200
            assert part.headers["x-content-type-options"] == "nosniff"
        assert "https://" not in page.text
        assert http.get("/ui/").headers["location"] == "../ui"
        for outside in ("/ui/none.js", "/ui/..%2fapp.py", "/ui/%2e%2e%2fapp.py"):
            assert http.get(outside).status_code == 404


def test_times_are_in_the_zone_of_the_viewer_and_a_replaced_version_says_so(
    page: Page, explorer_user: ExplorerUser
) -> None:
    """Midnight of 27 September in Berlin is 22:00 of the 26th in UTC."""
    page.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Europe/Berlin"})
    try:
        lives = {"subject": {"name": "Mara", "type": "Person"}, "predicate": "LIVES_IN", "single_valued": True}
        faro = {"content": "Mara lives in Faro", "object": {"name": "Faro", "type": "Place"}, **lives}
        explorer_user.save({**faro, "valid_at": "2025-09-26T22:00:00Z"})
        sign_in(page, explorer_user)
        find(page, "Mara", "Mara")
        page.wait_for("#memories li", "from 2025-09-27 on")
        page.wait_for("#time-zone", "Europe/Berlin")
        page.set("#valid-date", "2025-09-26T23:59:00")
        page.click("#memories button", "Mara lives in Porto")
        page.wait_for("#versions h3", "Version 1 · replaced")
        page.wait_for("#versions dd", "replaced by another memory")
        assert "active" not in page.wait_for("#versions").text
        page.wait_for("#versions dd", "to 2025-09-27")
    finally:
        page.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def test_unknown_user_is_said_to_be_unknown(page: Page, explorer_user: ExplorerUser) -> None:
    page.driver.get(explorer_user.ui)
    page.driver.execute_script("sessionStorage.clear()")
    page.driver.get(explorer_user.ui)
    page.wait_for("#key").send_keys(explorer_user.key)
    page.wait_for("#user").send_keys("u-")
    page.wait_until(lambda: page.find_all("#users option[value=u-7]"), "waited for the suggestion of the user")
    page.wait_for("#user").send_keys(Keys.ENTER)
    page.wait_for("#problem", "Nothing is stored for the user “u-”: did you mean u-7?")
    assert page.wait_for("#sign-in").is_displayed()
