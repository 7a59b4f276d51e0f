"""Neo4j Browser of the embedded Neo4j with the queries and the style of graphmem."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from graphmem.bootstrap import Services
from graphmem.domain.identity import Owner
from graphmem.domain.memory import MemoryIn
from graphmem.embedded.home import ServerInfo
from graphmem.embedded.server import EmbeddedNeo4j, find_server
from graphmem.resources import cypher_root
from graphmem.settings import Settings
from tests.browser.conftest import MEMORIES, Page, Service

PERSON_COLOUR = "rgb(43, 108, 176)"
DROP_STYLE_SCRIPT = """
const transfer = new DataTransfer();
transfer.items.add(new File([arguments[1]], "style.grass"));
for (const kind of ["dragenter", "dragover", "drop"]) {
  arguments[0].dispatchEvent(new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: transfer}));
}
"""


STORED_MEMORIES = [MemoryIn.model_validate(memory) for memory in MEMORIES]


@pytest.fixture
async def server(neo4j_folder: Path, service: Service, owner: Owner, tmp_path: Path) -> AsyncIterator[ServerInfo]:
    """An embedded Neo4j with the stored memories: that of the run, or where the run has none, one of this test."""
    if info := await find_server(neo4j_folder):
        await asyncio.to_thread(service.run_coroutine, service.memory.memories.save(owner, STORED_MEMORIES))
        yield info
        return
    settings = Settings()
    async with await EmbeddedNeo4j.start_or_join(tmp_path, settings.cache_dir, mirror=settings.jar_mirror) as own:
        connected = Settings(
            neo4j_uri=own.info.uri,
            neo4j_user=own.info.user,
            neo4j_password=own.info.password,
            data_dir=tmp_path / "data",
        )
        async with Services.open(connected, worker=False) as memory:
            await memory.memories.save(owner, STORED_MEMORIES)
        yield own.info


@pytest.mark.timeout(240)
@pytest.mark.req("QUINN-38")
async def test_neo4j_browser_signs_in_and_draws_the_people_query(page: Page, server: ServerInfo, owner: Owner) -> None:
    await asyncio.to_thread(check_browser, page, server, owner)


def check_browser(page: Page, server: ServerInfo, owner: Owner) -> None:
    page.driver.get(server.browser_url)
    Select(page.wait_for(by_test_id("bolt-scheme-select"))).select_by_value("bolt://")
    page.wait_for(by_test_id("username")).send_keys(server.user)
    page.wait_for(by_test_id("password")).send_keys(server.password)
    page.click(by_test_id("connect"))
    page.wait_for(by_test_id("frameContents"), f"You are connected as user {server.user}")
    page.driver.execute_script(
        DROP_STYLE_SCRIPT, page.wait_for(by_test_id("main")), (cypher_root() / "explore" / "style.grass").read_text()
    )
    page.wait_for(by_test_id("frameContents"), "node.Person")
    run_query(page, f':params {{group_id: "{owner.group_id}"}}')
    page.wait_for(by_test_id("frameContents"), owner.group_id)
    run_query(page, one_line_query("people"))
    page.wait_for("svg .node", "Porto")
    page.wait_for("svg .relationship", "LIVES_IN")
    assert not [node for node in page.find_all("svg .node") if "Lisbon" in node.text]
    assert colour_of(page, "Ilse") == PERSON_COLOUR
    page.screenshot("neo4j-browser")


def by_test_id(name: str) -> str:
    return f'[data-testid="{name}"]'


def one_line_query(name: str) -> str:
    """Return a query on one line, because the editor runs it at a line break."""
    lines = (cypher_root() / "explore" / f"{name}.cypher").read_text("utf-8").splitlines()
    return " ".join(line.strip() for line in lines if not line.startswith("//"))


def run_query(page: Page, text: str) -> None:
    page.click(".monaco-editor")
    ActionChains(page.driver).send_keys(text).perform()
    page.click(by_test_id("editor-Run"))


def colour_of(page: Page, name: str) -> str:
    node = page.wait_for("svg .node", name)
    return node.find_element(By.CSS_SELECTOR, "circle.b-outline").value_of_css_property("fill")
