"""The explorer's page as a whole: accessibility at two widths in two schemes, the keyboard, large graphs, safety."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import httpx
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import MARKUP_CONTENT, NARROW, WIDE, ExplorerUser, Page, Service
from tests.browser.gallery import fill_gallery
from tests.browser.team import fill_space

pytestmark = pytest.mark.timeout(240)

AXE = gzip.decompress((Path(__file__).parent / "axe" / "axe.min.js.gz").read_bytes()).decode()
TENANT_VIEWS = ("users", "spaces", "space", "runs", "run", "keys")
PHONE_PICTURES = ("overview", "entity", "search")
"""Views that the documentation also shows as they look on a phone."""

OUTLINE = 5
"""Pixels around the letters of a label that its box includes."""

FIND_VIOLATIONS = """
const done = arguments[0];
const runOnly = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];
axe.run(document, {runOnly, resultTypes: ["violations"]}).then(({violations, passes}) => done([
  violations.filter(({impact}) => impact === "serious" || impact === "critical")
    .map(({id, nodes}) => `${id}: ${nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`),
  passes.length]));
"""


LOOKS = ((WIDE, False, ""), (NARROW, True, "-phone"))
"""A desktop in light colours and a phone in dark ones: size, whether it is dark, and the suffix of its pictures."""


@pytest.mark.parametrize(
    "looks_of_each",
    [
        pytest.param(1, marks=pytest.mark.timeout(300)),
        pytest.param(2, marks=[pytest.mark.long, pytest.mark.timeout(1200)]),
    ],
)
def test_every_view_fits_and_has_no_serious_accessibility_violation(
    page: Page, explorer_user: ExplorerUser, service: Service, looks_of_each: int
) -> None:
    """With one look of each view they take turns."""
    found: dict[str, Any] = {}
    fill_space(explorer_user, service)
    for number, (name, view) in enumerate(fill_gallery(explorer_user).items()):
        page.emulate(WIDE)
        explorer_user.open(page, view, tenant_view=name in TENANT_VIEWS)
        page.driver.execute_script(AXE)
        for size, dark, suffix in LOOKS if looks_of_each == 2 else (LOOKS[number % 2],):
            page.emulate(size, dark=dark)
            violations, passes = page.driver.execute_async_script(FIND_VIOLATIONS)
            assert passes > 15
            if violations or page.scrolls_sideways:
                found[f"{name}{suffix}"] = violations or "scrolls sideways"
            if not suffix or name in PHONE_PICTURES:
                page.screenshot(f"explorer-{name}{suffix}")
    assert found == {}
    assert page.console_errors == []


def test_graph_of_500_entities_is_laid_out_and_labels_some(page: Page, service: Service) -> None:
    page.driver.get(f"{service.address}/ui")
    measured = page.driver.execute_async_script(
        """
        const done = arguments[0];
        import("/ui/graph_view.js").then(async ({GraphView}) => {
          const types = ["Person", "Place", "Thing", "Event"];
          const entity = (n) => ({id: `e${n}`, name: `Entity number ${n}`, type: types[n % 4]});
          const nodes = Array.from({length: 500}, (_, n) => entity(n));
          const memories = Array.from({length: 700}, (_, n) => ({
            id: `m${n}`, content: "", predicate: "KNOWS",
            subject: nodes[n % 500], object: nodes[(n * n + 7 * n + 1) % 500]}));
          const view = new GraphView({onEntity() {}, onMemory() {}, signal: new AbortController().signal});
          document.body.replaceChildren(view.node);
          view.show({nodes, memories});
          const cy = view.canvas._cyreg.cy;
          cy.panBy({x: 5, y: 3});
          await new Promise(requestAnimationFrame);
          const labels = cy.nodes().filter((node) => node.data("label")).length;
          done({width: cy.elements().boundingBox().w, labels});
        });
        """
    )
    assert measured["width"] > 500
    assert 5 < measured["labels"] <= 90


def test_labels_in_the_drawing_do_not_cover_one_another(page: Page, unchanged_user: ExplorerUser) -> None:
    unchanged_user.open(page)
    boxes = page.drawing(
        "cy.nodes().filter((node) => node.data('label'))"
        ".map((node) => node.renderedBoundingBox({includeNodes: false, includeEdges: false, includeLabels: true}))"
    )
    assert len(boxes) > 3
    for index, one in enumerate(boxes):
        for other in boxes[index + 1 :]:
            across = min(one["x2"], other["x2"]) - max(one["x1"], other["x1"])
            down = min(one["y2"], other["y2"]) - max(one["y1"], other["y1"])
            assert min(across, down) <= OUTLINE, (one, other)


def test_graph_is_moved_zoomed_and_opened_by_mouse(page: Page, unchanged_user: ExplorerUser) -> None:
    unchanged_user.open(page)
    canvas = page.wait_for("#drawing")
    before = page.drawing("({zoom: cy.zoom(), ...cy.pan()})")
    corner = ActionChains(page.driver).move_to_element_with_offset(canvas, 40 - canvas.size["width"] // 2, 0)
    corner.click_and_hold().move_by_offset(10, 0).move_by_offset(60, 20).release().perform()
    moved = page.drawing("({zoom: cy.zoom(), ...cy.pan()})")
    assert moved["x"] - before["x"] >= 60
    assert moved["y"] - before["y"] == pytest.approx(20, abs=1)
    canvas.send_keys("")
    wheel = ActionChains(page.driver).scroll_from_origin(ScrollOrigin.from_element(canvas), 0, -200)

    def has_zoomed() -> bool:
        wheel.perform()
        return bool(page.drawing("cy.zoom()") > moved["zoom"])

    page.wait_until(has_zoomed, "waited for the zoom")
    page.click("[aria-label=Fit]")
    ilse = page.drawing("cy.nodes().filter((node) => node.data('name') === 'Ilse')[0].renderedPosition()")
    box = page.driver.execute_script("return arguments[0].getBoundingClientRect()", canvas)
    at_ilse = round(ilse["x"] - box["width"] / 2), round(ilse["y"] - box["height"] / 2)
    ActionChains(page.driver).move_to_element_with_offset(canvas, *at_ilse).click().perform()
    page.wait_for(".details", "Ilse (Person)")
    ActionChains(page.driver).double_click().perform()
    page.wait_for("#entity-title", "Ilse")


def test_page_is_usable_by_keyboard_alone(page: Page, unchanged_user: ExplorerUser) -> None:
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

    unchanged_user.open(page, "entities")
    tab_to("find")
    press("Ilse")
    page.wait_for("#status", "1 entity.")
    tab_to("IlsePerson" if "IlsePerson" in page.wait_for("#found").text else "Ilse")
    assert page.driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    press(Keys.ENTER)
    page.wait_until(lambda: focused() == "entity-title", "waited for the focus on the entity")
    tab_to("drawing")
    press(Keys.ARROW_RIGHT)
    page.wait_for("#status", "Ilse (Person)")
    assert set(page.drawing("cy.edges('.named').map((edge) => edge.data('name'))")) == {"has sister", "plays in"}
    centre, target = (
        page.drawing(f"cy.nodes().filter((node) => node.data('name') === '{name}')[0].renderedPosition()")
        for name in ("Ilse", "Mara")
    )
    across, down = target["x"] - centre["x"], target["y"] - centre["y"]
    if abs(across) > abs(down):
        press(Keys.ARROW_RIGHT if across > 0 else Keys.ARROW_LEFT)
    else:
        press(Keys.ARROW_DOWN if down > 0 else Keys.ARROW_UP)
    page.wait_for("#status", "Mara (Person)")
    press("+", "0", Keys.ENTER)
    page.wait_for("#entity-title", "Mara")
    tab_to("Ilse is Mara's sister")
    press(Keys.ENTER)
    page.wait_for("h1", "Ilse is Mara's sister")


def test_hostile_text_stays_text(page: Page, unchanged_user: ExplorerUser) -> None:
    for view in ("overview", f"entities/{unchanged_user.entity_id('<b>Bold</b> & co')}", "search?q=what+Mara+typed"):
        unchanged_user.open(page, view)
        page.wait_for("#view", MARKUP_CONTENT)
    unchanged_user.open(page, f"memories/{unchanged_user.memory_id('img src')}")
    page.wait_for("h1", MARKUP_CONTENT)
    page.wait_for("#versions", MARKUP_CONTENT)
    assert page.find_all("main img, main b") == []
    assert page.driver.title != "owned"


def test_page_is_public_holds_no_secret_and_restricts_scripts(service: Service) -> None:
    with httpx.Client(base_url=service.address) as http:
        page = http.get("/ui")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        for name in ("app.js", "views/overview.js", "style.css", "icon.svg", "vendor/cytoscape-3.34.4.esm.min.mjs"):
            part = http.get(f"/ui/{name}")
            assert part.status_code == 200
            assert part.headers["x-content-type-options"] == "nosniff"
        assert "https://" not in page.text
        assert http.get("/ui/").headers["location"] == "../ui"
        for outside in ("/ui/none.js", "/ui/..%2fapp.py", "/ui/%2e%2e%2fapp.py", "/ui/vendor/LICENSE.txt", "/ui/views"):
            assert http.get(outside).status_code == 404
