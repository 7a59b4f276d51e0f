"""The explorer as a reader uses it, in a real browser on the real service."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import HOSTILE, NARROW, WIDE, Page, Service, Story

# The first test waits for the database, the embedder, the service and the browser to start.
pytestmark = pytest.mark.timeout(240)


def sign_in(page: Page, story: Story, key: str | None = None) -> None:
    page.driver.get("about:blank")
    page.driver.get(story.ui)
    page.driver.execute_script("sessionStorage.clear()")
    page.driver.get(story.ui)
    page.see("#key").send_keys(key or story.key)
    page.see("#user").send_keys(story.user, Keys.ENTER)
    page.see("#find")


def find(page: Page, text: str, name: str) -> None:
    page.see("#find").clear()
    page.see("#find").send_keys(text, Keys.ENTER)
    page.click("#found[aria-busy=false] button", name)
    page.see("#entity-title", name)
    page.see("#drawing svg")


def merged(story: Story) -> dict[str, Any]:
    items = story.http.get("/v1/users/u-7/memories", params={"keyword": "green tea"}).json()["items"]
    return story.consolidate(
        {
            "action": "MERGE",
            "memory_ids": [each["id"] for each in items],
            "content": "Mara drinks green tea every morning",
            "reason": "both say what she drinks",
        }
    )


def contents(story: Story) -> set[str]:
    items = story.http.get("/v1/users/u-7/memories", params={"limit": 200}).json()["items"]
    return {each["content"] for each in items}


@pytest.mark.req("QUINN-38")
def test_an_analyst_signs_in_finds_an_entity_and_sees_what_lies_around_it(
    page: Page, story: Story, service: Service
) -> None:
    sign_in(page, story, service.key(story.tenant, "analyst"))
    find(page, "mar", "Mara")
    page.see("#memories button", "Mara lives in Porto")
    assert not [each for each in page.all("#memories button") if "Lisbon" in each.text]
    drawn = {each.get_attribute("textContent") for each in page.all("#drawing .node > text:not(.count)")}
    assert {"Mara", "Porto", "Arbor", "Ilse"} <= drawn
    listed = {each.text for each in page.all("#neighbours button")}
    assert {"Porto (Place)", "Arbor (Organization)", "Ilse (Person)"} <= listed
    assert "Graz orchestra" not in page.words()
    page.set("#depth", "2")
    page.see("#memories button", "Ilse plays the cello")
    assert "Consolidation runs" not in page.words()
    page.shot("wide")
    assert page.complaints == []


def test_a_wrong_key_and_a_user_out_of_reach_are_refused_with_the_reason(page: Page, story: Story) -> None:
    page.driver.get(story.ui)
    page.driver.execute_script("sessionStorage.clear()")
    page.driver.get(story.ui)
    page.see("#key").send_keys("no-such-key")
    page.see("#user").send_keys("u-7", Keys.ENTER)
    page.see("#problem", "key")
    assert page.driver.execute_script("return sessionStorage.length") == 0
    assert page.see("#sign-in").is_displayed()


def test_the_key_lasts_for_the_tab_and_is_gone_after_signing_out(page: Page, story: Story) -> None:
    sign_in(page, story)
    page.until(lambda: page.driver.execute_script("return sessionStorage.length"), "waited for the session")
    page.driver.refresh()
    page.see("#found button", "Mara")
    assert page.driver.execute_script("return localStorage.length + document.cookie.length") == 0
    page.click("#sign-out")
    page.see("#sign-in")
    assert page.driver.execute_script("return sessionStorage.length") == 0
    assert "Mara" not in page.driver.execute_script("return document.body.textContent")


def test_the_entity_chosen_last_is_shown_though_an_earlier_one_comes_later(page: Page, story: Story) -> None:
    sign_in(page, story)
    slow = page.see("#found[aria-busy=false] button", "Mara").get_attribute("data-id")
    page.driver.execute_script(
        "const fetched = window.fetch; window.held = new Promise((done) => { window.release = done; });"
        "window.fetch = (address, ...rest) => String(address).includes(arguments[0])"
        " ? window.held.then(() => fetched(address, ...rest)) : fetched(address, ...rest);",
        slow,
    )
    page.click("#found button", "Mara")
    page.click("#found button", "Ilse")
    page.see("#entity-title", "Ilse")
    page.driver.execute_script("window.release()")
    page.driver.execute_async_script("setTimeout(arguments[0], 500)")
    assert page.see("#entity-title").text == "Ilse"


@pytest.mark.req("QUINN-38")
def test_sliding_valid_time_back_shows_the_older_fact(page: Page, story: Story) -> None:
    sign_in(page, story)
    find(page, "Mara", "Mara")
    page.set("#valid-date", "2022-06-01T00:00:00")
    page.see("#memories button", "Mara lives in Lisbon")
    page.gone("#memories button", "Mara lives in Porto")
    page.see("#status", "2022-06-01")
    page.shot("past")
    page.see("#valid-slider").send_keys(Keys.HOME)
    page.gone("#memories button", "Lisbon")
    page.click("#valid-now")
    page.see("#memories button", "Mara lives in Porto")


@pytest.mark.req("QUINN-38")
def test_sliding_known_time_back_shows_what_was_believed(page: Page, story: Story) -> None:
    before = datetime.now(UTC)
    memory = next(
        each for each in story.http.get("/v1/users/u-7/memories").json()["items"] if "peanuts" in each["content"]
    )
    corrected = {"content": "Mara is allergic to hazelnuts"}
    assert story.http.patch(f"/v1/users/u-7/memories/{memory['id']}", json=corrected).status_code == 200
    sign_in(page, story)
    find(page, "Mara", "Mara")
    page.see("#memories button", "hazelnuts")
    page.driver.execute_script("document.querySelector('#known-date').step = 'any'")
    page.set("#known-date", before.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3])
    page.see("#memories button", "peanuts")
    page.gone("#memories button", "hazelnuts")
    page.click("#memories button", "peanuts")
    page.see("#versions", "allergic to hazelnuts")
    page.click(".version:nth-child(1) button", "Look back")
    page.gone("#history")
    page.see("#memories button", "peanuts")


@pytest.mark.req("QUINN-38")
def test_history_tells_who_said_it_and_why_it_ended(page: Page, story: Story) -> None:
    sign_in(page, story)
    find(page, "Mara", "Mara")
    page.click("#memories button", "Mara lives in Porto")
    page.see("#versions blockquote", "I have moved to Porto, at last!")
    page.see("#versions figcaption", "Mara")
    page.see("#versions dl", "admin of the page")
    page.shot("history")
    page.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    page.gone("#history")
    page.set("#valid-date", "2022-06-01T00:00:00")
    page.click("#memories button", "Mara lives in Lisbon")
    page.see("#versions dd", "2021-03-01 to 2025-05-01")
    page.click("#versions button", "the memory that replaced it")
    page.see("#versions .name", "Mara lives in Porto")


@pytest.mark.req("QUINN-35")
def test_a_run_is_rolled_back_from_the_page_after_asking(page: Page, story: Story) -> None:
    was = contents(story)
    run = merged(story)
    assert contents(story) != was
    sign_in(page, story)
    page.click("#places a", "Consolidation runs")
    page.click("#run-list a", "curated")
    page.see("#run-body", "both say what she drinks")
    page.see("#run-body .changes", "Mara drinks green tea every morning")
    page.shot("run")
    page.click("#roll-back")
    page.see("#confirm-text", f"{run['change_count']} things")
    page.click("#confirm-no")
    page.gone("#confirm")
    assert contents(story) != was
    page.click("#roll-back")
    page.click("#confirm-yes")
    page.see("#run-body .badge", "rolled back")
    page.see("#status", "Rolled back")
    page.gone("#roll-back")
    assert contents(story) == was
    assert page.complaints == []


@pytest.mark.req("QUINN-35")
def test_later_writes_are_listed_before_a_run_is_rolled_back_over_them(page: Page, story: Story) -> None:
    was = contents(story)
    run = merged(story)
    later = {"content": "Mara drinks green tea every single morning"}
    new = run["proposals"][0]["result_id"]
    assert story.http.patch(f"/v1/users/u-7/memories/{new}", json=later).status_code == 200
    sign_in(page, story)
    page.driver.get(f"{story.ui}#/runs/{run['id']}")
    page.click("#roll-back")
    page.click("#confirm-yes")
    page.see("#confirm-title", "Later writes are in the way")
    page.see("#conflicts li", "since")
    page.shot("conflict")
    assert contents(story) != was
    page.click("#confirm-yes", "Overwrite")
    page.see("#run-body .badge", "rolled back")
    assert contents(story) == was


def test_hostile_text_stays_text(page: Page, story: Story) -> None:
    sign_in(page, story)
    find(page, "Mara", "Mara")
    page.see("#memories button", HOSTILE)
    page.see("#neighbours button", "<b>Bold</b> & co (Thing)").click()
    page.see("#entity-title", "<b>Bold</b> & co")
    page.click("#memories button", HOSTILE)
    page.see("#versions", HOSTILE)
    assert page.all("main img, dialog img, main b") == []
    assert page.driver.title != "owned"


def test_everything_is_reached_by_keyboard_alone(page: Page, story: Story) -> None:
    sign_in(page, story)

    def here() -> str:
        return str(page.driver.execute_script("return document.activeElement.id || document.activeElement.textContent"))

    def press(*keys: str) -> None:
        for key in keys:
            page.driver.switch_to.active_element.send_keys(key)

    def tab_to(text: str) -> None:
        for _ in range(60):
            if text in here():
                return
            press(Keys.TAB)
        pytest.fail(f"{text!r} is not reached; focus ended on {here()!r}")

    page.until(lambda: here() == "find", "waited for the focus on the search")
    press("Ilse")
    page.see("#status", "1 entity found")
    tab_to("IlsePerson" if "IlsePerson" in page.see("#found").text else "Ilse")
    ring = "return getComputedStyle(document.activeElement).outlineStyle"
    assert page.driver.execute_script(ring) == "solid"
    press(Keys.ENTER)
    page.until(lambda: here() == "entity-title", "waited for the focus on the entity")
    tab_to("Ilse is Mara's sister")
    assert page.see("#drawing .link.lit")
    press(Keys.ENTER)
    page.until(lambda: here() == "history-title", "waited for the focus in the history")
    press(Keys.ESCAPE)
    page.gone("#history")
    page.until(lambda: "Ilse is Mara's sister" in here(), "waited for the focus to come back")
    tab_to("Mara (Person)")
    press(Keys.ENTER)
    page.see("#entity-title", "Mara")


@pytest.mark.parametrize(("width", "height"), [WIDE, NARROW])
def test_it_fits_the_width_of_a_desk_and_of_a_telephone(page: Page, story: Story, width: int, height: int) -> None:
    run = merged(story)
    page.size(width, height)
    sign_in(page, story)
    assert not page.scrolls_sideways
    find(page, "Mara", "Mara")
    page.see("#memories button", "Porto")
    assert not page.scrolls_sideways
    page.shot(f"entity-{width}")
    page.driver.execute_script("document.querySelector('#around').scrollIntoView()")
    page.shot(f"drawing-{width}")
    picture = page.see("#drawing svg").rect
    for node in page.all("#drawing .node"):
        assert node.rect["x"] >= picture["x"] - 1
        assert node.rect["x"] + node.rect["width"] <= picture["x"] + picture["width"] + 1
        assert node.rect["y"] + node.rect["height"] <= picture["y"] + picture["height"] + 1
    page.click("#memories button", "Porto")
    page.see("#versions blockquote")
    page.shot(f"history-{width}")
    page.click("#history-close")
    page.driver.get(f"{story.ui}#/runs/{run['id']}")
    page.see("#roll-back")
    assert not page.scrolls_sideways
    page.driver.execute_script("document.querySelector('#run').scrollIntoView()")
    page.shot(f"run-{width}")


def test_the_page_needs_no_key_holds_no_secret_and_allows_only_its_own_scripts(service: Service) -> None:
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
