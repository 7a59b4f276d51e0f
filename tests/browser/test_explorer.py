"""The views of the explorer in a real browser, against the running service."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from selenium.webdriver.common.keys import Keys

from graphmem.consolidation.models import RunPhase
from graphmem.consolidation.profiles import ProfileDraft, ProfileWriter
from graphmem.consolidation.run_store import RunStore, RunUpdate
from graphmem.memories.entity import ProfileSentence
from graphmem.models.language_model import load_prompts
from graphmem.models.provider_model import ProviderModel
from graphmem.tenants.owners import Owner
from tests.browser.conftest import ExplorerUser, Page, Service
from tests.models.scripted_server import Exchange, ScriptedServer, replies

# The first test waits for the database, the embedder, the service and the browser to start.
pytestmark = pytest.mark.timeout(240)


PAGES_OF_TWO = """
const fetched = window.fetch;
window.fetch = (address, ...rest) => fetched(String(address).replace("limit=50", "limit=2"), ...rest);
"""
"""Makes the pages of lists small, so that a test needs few rows."""
HOLD_LISTS = """
const fetched = window.fetch, held = new Promise((done) => { window.release = done; });
window.fetch = (address, ...rest) =>
  String(address).includes("limit=50") ? held.then(() => fetched(address, ...rest)) : fetched(address, ...rest);
"""
"""Holds the pages of lists back until `release()` is called."""
LEAVE_FROM_400 = """
scrollTo(0, 400);
[...document.querySelectorAll("#memories a")].find((link) => link.textContent.includes(arguments[0])).click();
"""
"""Scrolls the list and follows the link with a text before the browser tells anybody about the scroll."""


def drawn_names(page: Page, kind: str = "nodes") -> set[str]:
    """Return the names of the entities or of the connections in the drawing."""
    return set(page.drawing(f"cy.{kind}().map((part) => part.data('name'))"))


def wait_for_place(page: Page, top: int) -> None:
    """Wait until the page is scrolled down by a number of pixels."""
    page.wait_until(lambda: page.driver.execute_script("return scrollY") == top, f"waited for the place {top}")


def test_users_are_listed_searched_and_unknown_ones_are_named(
    page: Page, explorer_user: ExplorerUser, service: Service
) -> None:
    explorer_user.http.post("/v1/users/ada/memories", json={"memories": [{"content": "Ada reads"}]})
    page.driver.get(explorer_user.ui)
    page.driver.execute_script("sessionStorage.clear()")
    page.driver.get(explorer_user.ui)
    page.wait_for("#key").send_keys("no-such-key", Keys.ENTER)
    page.wait_for("#problem", "key")
    assert page.driver.execute_script("return sessionStorage.length") == 0
    page.wait_for("#key").clear()
    page.wait_for("#key").send_keys(service.key(explorer_user.tenant, "analyst"), Keys.ENTER)
    page.wait_for("#user-list a", "ada")
    page.wait_for("#user-list a", "8 memories · 1 session")
    assert "Runs" not in page.wait_for("#views").text
    page.wait_for("#find-user").send_keys("u-")
    page.wait_until_gone("#user-list a", "ada")
    page.wait_for("#find-user").send_keys("nobody")
    page.wait_for("#user-list", "No user id contains “u-nobody”.")
    page.driver.get(f"{explorer_user.ui}#/u/u-77/overview")
    page.wait_for("#view", "Nothing is stored for the user “u-77”")
    page.click("#similar-users a", "u-7")
    page.wait_for("h1", "u-7")
    assert not page.find_all("#forget")
    page.click("#sign-out")
    page.wait_for("#sign-in")
    assert page.driver.execute_script("return sessionStorage.length") == 0
    assert "Mara" not in page.driver.execute_script("return document.body.textContent")


def test_overview_says_how_much_is_stored_what_changed_and_draws_current_facts(
    page: Page, explorer_user: ExplorerUser
) -> None:
    explorer_user.http.patch(
        f"/v1/users/u-7/memories/{explorer_user.memory_id('cello')}", json={"content": "Ilse plays the viola in Graz"}
    )
    explorer_user.open(page)
    counts = [tile.text for tile in page.find_all("#counts a")]
    assert counts == ["8 memories", "8 entities", "1 session"]
    latest = page.find_all("#recent-changes li")[0].text
    assert latest.startswith("changed Ilse plays the viola in Graz")
    assert "by admin of the page" in latest
    assert {"Mara", "Porto", "Arbor", "Ilse", "Graz orchestra"} <= drawn_names(page)
    assert "Lisbon" not in drawn_names(page)
    assert drawn_names(page, "edges") >= {"lives in", "works at", "has sister", "plays in"}
    assert page.console_errors == []


def test_search_says_why_each_memory_was_found(page: Page, unchanged_user: ExplorerUser) -> None:
    unchanged_user.open(page, "search")
    page.wait_for("#find").send_keys("Where does Mara live?", Keys.ENTER)
    page.wait_for("#results li", "Mara lives in Porto")
    found = page.find_all("#results > li")
    porto = next(hit for hit in found if "Porto" in hit.text)
    if "Similar in meaning" not in porto.text:  # only the first one is open
        porto.find_element("css selector", "summary").click()
    for text in ("Found by meaning (place", "Similar in meaning:", "The question names its entity"):
        assert text in porto.text
    page.click("#results a", "Mara lives in Porto")
    page.wait_for("h1", "Mara lives in Porto")
    page.driver.back()
    page.wait_for("#results li", "Mara lives in Porto")
    assert page.wait_for("#find").get_attribute("value") == "Where does Mara live?"


def test_a_model_answers_a_question_when_it_is_asked_to(
    page: Page, unchanged_user: ExplorerUser, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    unchanged_user.open(page, "search")
    page.wait_for("#find").send_keys("Where does Mara live?", Keys.ENTER)
    page.click("#ask")
    page.wait_for("#problem", "GRAPHMEM_LLM_MODEL")
    porto = re.compile(r"\[(\d+)\] [^\n]*Mara lives in Porto")

    def answer(exchange: Exchange) -> None:
        [number] = porto.findall(exchange.body["messages"][1]["content"])
        sources = [{"source": int(number), "quote": "lives in Porto"}]
        replies(json.dumps({"sources": sources, "answer": "Mara lives in Porto.", "search": None}))(exchange)

    with ScriptedServer(answer) as model:
        monkeypatch.setattr(service.memory.answers, "_model", ProviderModel(api_key="key", base_url=model.base_url))
        page.click("#ask")
        page.wait_for("#answer", "Mara lives in Porto.")
        assert len(model.requests) == 1
    page.click("#citations a", "lives in Porto")
    page.wait_for("h1", "Mara lives in Porto")
    assert page.console_errors == []


def test_filters_are_in_the_address_and_back_keeps_the_place(page: Page, unchanged_user: ExplorerUser) -> None:
    unchanged_user.open(page, "memories")
    page.wait_for("#list-title", "8 memories")
    page.wait_for("[name=keyword]").send_keys("green tea", Keys.ENTER)
    page.wait_for("#list-title", "2 memories")
    assert "keyword=green+tea" in page.driver.current_url
    page.driver.back()
    page.wait_for("#list-title", "8 memories")
    page.resize(1280, 300)
    page.driver.execute_script(LEAVE_FROM_400, "Ilse is Mara's sister")
    page.wait_for("h1", "Ilse is Mara's sister")
    page.driver.back()
    page.wait_for("#list-title", "8 memories")
    wait_for_place(page, 400)


def test_place_left_by_back_and_by_reload_is_kept(page: Page, unchanged_user: ExplorerUser) -> None:
    unchanged_user.open(page, "overview")
    page.resize(1280, 300)
    page.click("#views a", "Memories")
    page.wait_for("#list-title", "8 memories")
    page.driver.execute_script("scrollTo(0, 400); history.back()")
    page.wait_for("#counts")
    page.driver.forward()
    page.wait_for("#list-title", "8 memories")
    wait_for_place(page, 400)
    page.driver.execute_script("scrollTo(0, 350); location.reload()")
    wait_for_place(page, 350)
    page.driver.back()
    page.wait_for("#counts")
    page.driver.forward()
    wait_for_place(page, 350)


def test_place_waits_for_the_rows_and_is_kept_when_the_list_is_left_before_them(
    page: Page, unchanged_user: ExplorerUser
) -> None:
    unchanged_user.open(page, "memories")
    page.wait_for("#list-title", "8 memories")
    page.resize(1280, 300)
    page.driver.execute_script(LEAVE_FROM_400, "Ilse is Mara's sister")
    page.wait_for("h1", "Ilse is Mara's sister")
    page.driver.execute_script(HOLD_LISTS)
    page.driver.back()
    page.wait_for("h1", "Memories")
    assert page.driver.execute_script("return scrollY") < 400
    page.click("#views a", "Search")
    page.wait_for("#find")
    page.driver.back()
    page.wait_for("h1", "Memories")
    page.driver.execute_script("window.release()")
    page.wait_for("#list-title", "8 memories")
    wait_for_place(page, 400)


def test_back_shows_as_many_rows_as_there_were(page: Page, explorer_user: ExplorerUser) -> None:
    for number in range(5):
        sent = {"session_id": f"talk-{number}", "messages": [{"role": "user", "content": f"Hello {number}"}]}
        assert explorer_user.http.post("/v1/users/u-7/messages", json={**sent, "extract": False}).is_success
    explorer_user.open(page, "sessions")
    page.driver.execute_script(PAGES_OF_TWO)
    page.click("#views a", "Sessions")
    page.click("#views a", "Overview")
    page.click("#views a", "Sessions")
    page.wait_for("#status", "The first 2 sessions")
    page.click(".more")
    page.wait_for("#status", "The first 4 sessions")
    third = page.find_all("#sessions a")[2]
    page.wait_until(lambda: page.driver.switch_to.active_element == third, "waited for the focus on the first new row")
    page.click("#sessions li:nth-child(4) a")
    page.wait_for("#messages .message", "Hello")
    page.driver.back()
    page.wait_for("#status", "The first 4 sessions")


def test_session_shows_what_was_drawn_from_each_message(page: Page, unchanged_user: ExplorerUser) -> None:
    unchanged_user.open(page, "sessions")
    page.click("#sessions a", "Moving house")
    page.wait_for("#messages .message", "I have moved to Porto, at last!")
    texts = [message.text for message in page.find_all(".message")]
    assert [("Mara lives in Porto" in text) for text in texts] == [True, False]


def test_an_entity_shows_its_profile_with_links_to_the_memories_that_say_so(
    page: Page, service: Service, explorer_user: ExplorerUser
) -> None:
    porto, arbor = (explorer_user.memory_id(text) for text in ("Porto", "Arbor"))
    run = explorer_user.consolidate({"action": "ASSOCIATE", "memory_ids": [porto, arbor]})
    entity_id = explorer_user.entity_id("Mara")
    sentences = [("Mara lives in Porto.", porto), ("Mara works at Arbor as a botanist.", arbor)]
    draft = ProfileDraft(
        entity_id=entity_id,
        sentences=[ProfileSentence(content=content, memory_ids=[key]) for content, key in sentences],
        versions={porto: 1, arbor: 1},
    )
    written = service.run_coroutine(store_profile(service, Owner(explorer_user.tenant, "u-7"), run["id"], draft))
    assert written == 1
    explorer_user.open(page, f"entities/{entity_id}")
    page.wait_for("#profile", "Mara lives in Porto. [1] Mara works at Arbor as a botanist. [2]")
    page.click("#profile a", "[2]")
    page.wait_for("h1", "Mara works at Arbor as a botanist")
    explorer_user.open(page, f"entities/{entity_id}")
    page.click("#profile a", "Earlier versions")
    page.wait_for("h1", "Mara lives in Porto. Mara works at Arbor as a botanist.")
    page.wait_for("#versions", "Mara lives in Porto. Mara works at Arbor as a botanist.")


async def store_profile(service: Service, owner: Owner, run_id: str, draft: ProfileDraft) -> int:
    """Store a profile as one that a run wrote, before which the run is executed; no model is asked."""
    parts, prompt = service.memory.components, load_prompts()["profile"]
    async with ProviderModel(base_url="http://127.0.0.1:9") as model:
        runs = RunStore(parts.graph)
        await parts.graph.write(
            lambda transaction: runs.update(run_id, RunUpdate(phase=RunPhase.EXECUTED), transaction)
        )
        writer = ProfileWriter(parts.graph, parts.facts, runs, parts.embedder, parts.policy, model, prompt, parts.clock)
        return await writer.store(owner, run_id, [draft])


@pytest.mark.req("QUINN-24", "QUINN-27")
def test_time_axes_show_the_older_fact_and_the_earlier_version(page: Page, explorer_user: ExplorerUser) -> None:
    before = datetime.now(UTC)
    peanuts = explorer_user.memory_id("peanuts")
    corrected = {"content": "Mara is allergic to hazelnuts"}
    assert explorer_user.http.patch(f"/v1/users/u-7/memories/{peanuts}", json=corrected).status_code == 200
    explorer_user.open(page, f"entities/{explorer_user.entity_id('Mara')}")
    page.wait_for("#memories a", "Mara lives in Porto")
    page.wait_for("#memories a", "hazelnuts")
    page.set("#valid-date", "2022-06-01T00:00:00")
    page.wait_for("#memories a", "Mara lives in Lisbon")
    page.wait_until_gone("#memories a", "Mara lives in Porto")
    assert "Lisbon" in drawn_names(page)
    page.wait_for("#status", "2022-06-01")
    page.driver.refresh()
    page.wait_for("#memories a", "Mara lives in Lisbon")
    page.click("#valid-now")
    page.wait_for("#memories a", "Mara lives in Porto")
    page.driver.execute_script("document.querySelector('#known-date').step = 'any'")
    page.set("#known-date", before.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3])
    page.wait_for("#memories a", "peanuts")
    page.wait_until_gone("#memories a", "hazelnuts")
    page.set("#depth", "2")
    page.wait_for("#memories a", "Ilse plays the cello")


@pytest.mark.req("QUINN-23", "QUINN-27")
def test_fact_has_a_timeline_in_the_zone_of_the_viewer_and_a_replaced_version_says_so(
    page: Page, explorer_user: ExplorerUser
) -> None:
    """Midnight of 27 September in Berlin is 22:00 of the 26th in UTC."""
    page.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "Europe/Berlin"})
    try:
        lives = {"subject": {"name": "Mara", "type": "Person"}, "predicate": "LIVES_IN", "single_valued": True}
        faro = {"content": "Mara lives in Faro", "object": {"name": "Faro", "type": "Place"}, **lives}
        explorer_user.save({**faro, "valid_at": "2025-09-26T22:00:00Z"})
        explorer_user.open(page, f"memories/{explorer_user.memory_id('Porto')}")
        page.wait_for("#versions h3", "Version 1 · replaced")
        page.wait_for("#versions dd", "another memory replaced it")
        page.wait_for("#versions dd", "to 2025-09-27")
        page.wait_for("#versions blockquote", "I have moved to Porto, at last!")
        page.wait_for("#versions dd", "by admin of the page")
        page.wait_for("footer", "Europe/Berlin")
        assert "active" not in page.wait_for("#view").text
        areas = [area.get_attribute("textContent") or "" for area in page.find_all(".timeline .area")]
        assert {text for text in ("Lisbon", "Porto", "Faro") if any(text in area for area in areas)} == {
            "Lisbon", "Porto", "Faro"
        }  # fmt: skip
        marks = [mark.get_attribute("textContent") for mark in page.find_all(".timeline .mark")]
        assert "2025-09-27" in marks
        page.click("#versions a", "Mara lives in Faro")
        page.wait_for("h1", "Mara lives in Faro")
        page.wait_for("#view", "Never retrieved. 50 % now; without a retrieval 8 % on")
    finally:
        page.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def test_reverted_replacement_is_shown_as_true_at_no_time(page: Page, explorer_user: ExplorerUser) -> None:
    oslo, vienna = (
        explorer_user.save(
            {
                "content": f"Mara lives in {city}",
                "subject": {"name": "Mara", "type": "Person"},
                "predicate": "RESIDES_IN",
                "object": {"name": city, "type": "Place"},
                "valid_at": f"{year}-01-01T00:00:00Z",
                "single_valued": True,
            }
        )[0]
        for city, year in (("Oslo", 2022), ("Vienna", 2024))
    )
    assert explorer_user.http.post(f"/v1/users/u-7/memories/{oslo['id']}/revert").status_code == 200
    explorer_user.open(page, f"memories/{vienna['id']}")
    assert "current" not in page.wait_for("#view").text
    assert [title.text for title in page.find_all("#versions h3")] == ["Version 1 · replaced", "Version 2 · replaced"]
    page.wait_for("#versions dd", "a replacement was undone")
    page.wait_for("#versions dd", "at no time")
    assert not page.find_all("#strength")
    for memory in (vienna, oslo):
        explorer_user.open(page, f"memories/{memory['id']}")
        standing = page.find_all(".timeline .area:not(.past) title")
        assert [(title.get_attribute("textContent") or "").split("\n")[0] for title in standing] == [
            "Mara lives in Oslo"
        ]
    explorer_user.open(page, "memories?keyword=lives+in")
    page.wait_for("#memories a", "Mara lives in Oslo")
    assert "Vienna" not in page.wait_for("#memories").text
    page.click("[name=ended]")
    page.click("#filters button", "Filter")
    assert page.wait_for("#memories a", "Mara lives in Vienna").text.startswith("replaced")
    explorer_user.open(page, f"entities/{explorer_user.entity_id('Mara')}")
    page.wait_for("#memories a", "Mara lives in Oslo")
    page.set("#valid-date", "2024-06-01T00:00:00")
    page.wait_for("#status", "2024-06-01")
    page.wait_for("#memories a", "Mara lives in Oslo")
    assert "Vienna" not in page.wait_for("#memories").text
    assert "Vienna" not in drawn_names(page)


def test_two_times_are_compared_with_what_changed_highlighted(page: Page, unchanged_user: ExplorerUser) -> None:
    unchanged_user.open(page, "compare")
    page.set("[name=v1]", "2024-06-01T00:00:00")
    page.click("#compare-form button", "Compare")
    replaced = page.wait_for("#differences li", "replaced")
    assert [part.text for part in replaced.find_elements("css selector", "del, ins")] == ["Lisbon", "Porto"]
    assert "Arbor" not in page.wait_for("#differences").text
    marked = page.drawing("cy.edges('.added, .removed').map((edge) => edge.target().data('name'))")
    assert set(marked) == {"Lisbon", "Porto"}
    page.driver.back()
    page.wait_until_gone("#differences")


def test_slow_earlier_response_does_not_replace_the_last_chosen_entity(
    page: Page, unchanged_user: ExplorerUser
) -> None:
    unchanged_user.open(page, "entities")
    slow = unchanged_user.entity_id("Mara")
    page.driver.execute_script(
        "const fetched = window.fetch; window.held = new Promise((done) => { window.release = done; });"
        "window.fetch = (address, ...rest) => String(address).includes(arguments[0])"
        " ? window.held.then(() => fetched(address, ...rest)) : fetched(address, ...rest);",
        slow,
    )
    page.click("#found[aria-busy=false] a", "Mara")
    page.driver.back()
    page.click("#found[aria-busy=false] a", "Ilse")
    page.wait_for("#entity-title", "Ilse")
    page.driver.execute_script("window.release()")
    page.driver.execute_async_script("setTimeout(arguments[0], 300)")
    assert page.wait_for("#entity-title").text == "Ilse"
