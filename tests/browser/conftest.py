"""The application in a thread of its own, and a headless Chromium."""

from __future__ import annotations

import asyncio
import io
import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from graphmem_api.app import create_app
from PIL import Image
from pydantic import SecretStr
from selenium import webdriver
from selenium.common.exceptions import TimeoutException, WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from graphmem.app.bootstrap import Services
from graphmem.neo4j.driver import Graph
from graphmem.runtime.settings import Settings
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.api.conftest import serve_app
from tests.conftest import require_program

T = TypeVar("T")

WAIT_SECONDS = 60
SCREENSHOTS_VARIABLE = "EXPLORER_SCREENSHOTS"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-prefers-reduced-motion",
    "--lang=en-US",
)
WIDE, NARROW = (1280, 900), (390, 844)

FIND_SHOWN = """
const [css, text] = arguments;
const isShown = (found) => found.getClientRects().length && found.checkVisibility({visibilityProperty: true});
const find = () => [...document.querySelectorAll(css)]
  .find((found) => isShown(found) && (found.innerText ?? found.textContent).includes(text)) ?? null;
"""
WAIT_FOR_SHOWN = (
    FIND_SHOWN
    + """
const [, , isWanted, seconds, done] = arguments;
const end = performance.now() + seconds * 1000;
const look = () => {
  const found = find();
  if ((found !== null) === isWanted || performance.now() > end) {
    observer.disconnect();
    clearInterval(timer);
    done([(found !== null) === isWanted, found]);
  }
};
const observer = new MutationObserver(look), timer = setInterval(look, 200);
observer.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
look();
"""
)
"""Waits in the browser: asking it from outside again and again takes more time than the page itself.

The timer sees what changes without a change of the document, like the value of an input or a style.
"""


@dataclass
class Service:
    """The served application; `run_coroutine` runs a coroutine on its event loop."""

    address: str
    memory: Services
    loop: asyncio.AbstractEventLoop

    def run_coroutine(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(WAIT_SECONDS)

    def key(self, tenant: str, role: str = "admin") -> str:
        return self.run_coroutine(
            self.memory.keys.create(tenant, ApiKeyIn(name=f"{role} of the page", role=KeyRole(role)))
        ).key


@pytest.fixture(scope="package")
def service(database: Settings, graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The application, served by uvicorn in a thread, because the browser's driver blocks."""
    own = {"data_dir": tmp_path_factory.mktemp("browser"), "admin_key": SecretStr("first-" + uuid.uuid4().hex)}
    settings = database.model_copy(update=own)
    ready: Future[Service] = Future()
    stop: list[Callable[[], object]] = []

    async def run() -> None:
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        stop.append(lambda: loop.call_soon_threadsafe(done.set))
        async with Services.open(settings) as memory, serve_app(create_app(memory, settings)) as address:
            ready.set_result(Service(address, memory, loop))
            await done.wait()

    def serve() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    thread = threading.Thread(target=serve)
    thread.start()
    yield ready.result(60)
    stop[0]()
    thread.join(60)


@dataclass
class Page:
    """What a user of the page sees and does."""

    driver: webdriver.Chrome

    def resize(self, width: int, height: int) -> None:
        """Set the size of the page; a window cannot be as narrow as a telephone."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )

    def wait_until(self, holds: Callable[[], T], what: str) -> T:
        """Wait until `holds` returns a true value and return it."""

        def safe(_: object) -> T | None:
            try:
                return holds()
            except Exception:
                return None

        try:
            found = WebDriverWait(self.driver, WAIT_SECONDS, 0.05).until(safe)
        except TimeoutException:
            pytest.fail(f"{what}; the page: {self.text()[:1500]}")
        assert found is not None
        return found

    def text(self) -> str:
        return self.driver.find_element(By.TAG_NAME, "body").text

    def find_all(self, css: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def find_shown(self, css: str, text: str = "") -> WebElement | None:
        """Return the first element with the text that is shown: found by one call, whatever the page holds."""
        found: WebElement | None = self.driver.execute_script(f"{FIND_SHOWN} return find();", css, text)
        return found

    def wait_for_shown(self, css: str, text: str, *, is_wanted: bool) -> WebElement | None:
        """Wait until an element with the text is shown, or until none is; begin again when another page is loaded."""
        end = time.monotonic() + WAIT_SECONDS
        while (left := end - time.monotonic()) > 0:
            try:
                is_so, found = self.driver.execute_async_script(WAIT_FOR_SHOWN, css, text, is_wanted, left)
            except WebDriverException:
                time.sleep(0.05)
                continue
            if is_so:
                element: WebElement | None = found
                return element
        pytest.fail(
            f"waited for {'' if is_wanted else 'the end of '}{css} with {text!r}; the page: {self.text()[:1500]}"
        )

    def wait_for(self, css: str, text: str = "") -> WebElement:
        """Wait until an element with the text is shown."""
        found = self.wait_for_shown(css, text, is_wanted=True)
        assert found is not None
        return found

    def wait_until_gone(self, css: str, text: str = "") -> None:
        """Wait until no element with the text is shown."""
        self.wait_for_shown(css, text, is_wanted=False)

    def click(self, css: str, text: str = "") -> None:
        """Click an element with the text; try again when the page replaces it meanwhile."""

        def clicked() -> bool:
            self.wait_for(css, text).click()
            return True

        self.wait_until(clicked, f"waited to click {css} with {text!r}")

    def set(self, css: str, value: str) -> None:
        """Set an input's value and fire its events: sliders and dates cannot be typed."""
        self.driver.execute_script(
            "arguments[0].value = arguments[1];"
            "for (const kind of ['input', 'change']) arguments[0].dispatchEvent(new Event(kind, {bubbles: true}));",
            self.wait_for(css),
            value,
        )

    def drawing(self, expression: str) -> Any:
        """Return a JavaScript expression about the drawing `cy`, the whole content of which is on one canvas."""
        script = f"const cy = document.querySelector('#drawing')._cyreg.cy; return {expression};"
        return self.driver.execute_script(script)

    def screenshot(self, name: str) -> None:
        """Write a picture for the documentation into the folder that EXPLORER_SCREENSHOTS names, if it is set."""
        if folder := os.environ.get(SCREENSHOTS_VARIABLE):
            picture = Image.open(io.BytesIO(self.driver.get_screenshot_as_png())).convert("RGB")
            picture.quantize(256, dither=Image.Dither.NONE).save(Path(folder) / f"{name}.png", optimize=True)

    def emulate(self, size: tuple[int, int], *, dark: bool = False) -> None:
        """Set the size of the page and the colour scheme."""
        self.resize(*size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    @property
    def scrolls_sideways(self) -> bool:
        script = "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
        return bool(self.driver.execute_script(script))

    @property
    def console_errors(self) -> list[str]:
        """The errors in the browser's console, without those of refused requests, which tests provoke."""
        logged = self.driver.get_log("browser")
        return [entry["message"] for entry in logged if entry["level"] == "SEVERE" and entry["source"] != "network"]


@pytest.fixture(scope="package")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """A headless Chromium with an empty profile."""
    chromium, chromedriver = require_program("chromium"), require_program("chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    driver.set_script_timeout(4 * WAIT_SECONDS)  # as long as a drawing takes on a busy machine
    yield driver
    driver.quit()


@pytest.fixture
def page(driver: webdriver.Chrome) -> Iterator[Page]:
    """A light page at the wide size with an empty console; other windows are closed after the test."""
    page = Page(driver)
    page.emulate(WIDE)
    driver.get_log("browser")
    yield page
    first, *others = driver.window_handles
    for handle in others:
        driver.switch_to.window(handle)
        driver.close()
    driver.switch_to.window(first)


@dataclass
class ExplorerUser:
    """A user with memories and history that the page shows."""

    address: str
    key: str
    tenant: str
    http: httpx.Client
    user: str = "u-7"

    @property
    def ui(self) -> str:
        return f"{self.address}/ui"

    def open(self, page: Page, view: str = "overview", *, key: str | None = None, tenant_view: bool = False) -> None:
        """Show a view of the user, or of the tenant, in a tab that is signed in."""
        page.driver.get(f"{self.address}/health/live")  # of the same origin, and no script of it is interrupted
        stored = json.dumps({"key": key or self.key})
        page.driver.execute_script("sessionStorage.setItem('graphmem.session', arguments[0])", stored)
        page.driver.get(f"{self.ui}#/{view}" if tenant_view else f"{self.ui}#/u/{self.user}/{view}")
        page.wait_for("#view h1")
        page.wait_until_gone("#view > [aria-busy]")

    def memory_id(self, text: str) -> str:
        """Return the id of the memory, true or no longer true, that contains a text."""
        query = {"include_superseded": "true", "limit": "200"}
        items = self.http.get(f"/v1/users/{self.user}/memories", params=query).json()["items"]
        return next(str(memory["id"]) for memory in items if text in memory["content"])

    def entity_id(self, name: str) -> str:
        items = self.http.get(f"/v1/users/{self.user}/entities", params={"query": name}).json()["items"]
        return next(str(entity["id"]) for entity in items if entity["name"] == name)

    def save(self, *memories: dict[str, Any]) -> list[dict[str, Any]]:
        answer = self.http.post(f"/v1/users/{self.user}/memories", json={"memories": memories})
        assert answer.status_code == 200, answer.text
        return [result["memory"] for result in answer.json()["results"]]

    def consolidate(self, *proposals: dict[str, Any]) -> dict[str, Any]:
        body = {"user_id": self.user, "wait": True, "proposals": proposals}
        answer = self.http.post("/v1/admin/consolidations", json=body)
        assert answer.status_code == 200, answer.text
        run: dict[str, Any] = answer.json()
        assert run["status"] == "succeeded", run
        return run


@contextmanager
def empty_tenant(service: Service, tenant: str) -> Iterator[ExplorerUser]:
    """A user of whom nothing is known."""
    key = service.key(tenant)
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=service.address, headers=headers, timeout=60) as http:
        yield ExplorerUser(service.address, key, tenant, http)


@contextmanager
def filled_tenant(service: Service, tenant: str) -> Iterator[ExplorerUser]:
    """Mara moved from Lisbon to Porto in 2025, said so in a message, and once typed markup."""
    with empty_tenant(service, tenant) as explorer_user:
        http = explorer_user.http
        opened = {"session_id": "s1", "title": "Moving house"}
        assert http.post("/v1/users/u-7/sessions", json=opened).status_code == 201
        sent = {"session_id": "s1", "messages": MESSAGES, "extract": False}
        assert http.post("/v1/users/u-7/messages", json=sent).status_code in (200, 202)
        explorer_user.save(*MEMORIES)
        yield explorer_user


@pytest.fixture
def explorer_user(service: Service, tenant: str) -> Iterator[ExplorerUser]:
    """A user with memories, whom the test may change."""
    with filled_tenant(service, tenant) as user:
        yield user


@pytest.fixture(scope="package")
def unchanged_user(service: Service) -> Iterator[ExplorerUser]:
    """A user with the same memories for all tests that change nothing."""
    with filled_tenant(service, f"t{uuid.uuid4().hex[:12]}") as user:
        yield user


MESSAGES: list[dict[str, Any]] = [
    {"id": "m1", "role": "user", "name": "Mara", "content": "I have moved to Porto, at last!"},
    {"id": "m2", "role": "assistant", "content": "How lovely! Is the flat close to the river?"},
]
MARA = {"name": "Mara", "type": "Person"}
MARKUP_CONTENT = "<img src=x onerror=\"document.title='owned'\"> is what Mara once typed"
MEMORIES: list[dict[str, Any]] = [
    {
        "content": "Mara lives in Lisbon",
        "subject": MARA,
        "predicate": "LIVES_IN",
        "object": {"name": "Lisbon", "type": "Place"},
        "valid_at": "2021-03-01T00:00:00Z",
        "single_valued": True,
    },
    {
        "content": "Mara lives in Porto",
        "subject": MARA,
        "predicate": "LIVES_IN",
        "object": {"name": "Porto", "type": "Place"},
        "valid_at": "2025-05-01T00:00:00Z",
        "single_valued": True,
        "source": {"session_id": "s1", "message_ids": ["m1"]},
    },
    {
        "content": "Mara works at Arbor as a botanist",
        "subject": MARA,
        "predicate": "WORKS_AT",
        "object": {"name": "Arbor", "type": "Organization"},
        "valid_at": "2023-09-01T00:00:00Z",
    },
    {
        "content": "Ilse is Mara's sister",
        "subject": MARA,
        "predicate": "HAS_SISTER",
        "object": {"name": "Ilse", "type": "Person"},
    },
    {
        "content": "Ilse plays the cello in the Graz orchestra",
        "subject": {"name": "Ilse", "type": "Person"},
        "predicate": "PLAYS_IN",
        "object": {"name": "Graz orchestra", "type": "Organization"},
    },
    {"content": "Mara is allergic to peanuts", "subject": MARA, "importance": 0.9},
    {
        "content": MARKUP_CONTENT,
        "subject": MARA,
        "predicate": "TYPED",
        "object": {"name": "<b>Bold</b> & co", "type": "Thing"},
    },
    {"content": "Mara drinks green tea", "subject": MARA, "predicate": "DRINKS"},
    {"content": "Mara drinks green tea in the morning", "subject": MARA, "predicate": "DRINKS"},
]
