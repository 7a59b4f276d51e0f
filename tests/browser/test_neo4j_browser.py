"""Neo4j Browser of the embedded Neo4j with the queries and the style of graphmem."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By

from graphmem.app.bootstrap import Services
from graphmem.memories.memory import MemoryIn, MemoryPatch
from graphmem.neo4j.embedded.home import ServerInfo, browser_link, read_query
from graphmem.neo4j.embedded.server import EmbeddedNeo4j, find_server
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner
from tests.browser.conftest import MEMORIES, Page, Service

PERSON_COLOUR = "rgb(43, 108, 176)"
STORED_MEMORIES = [MemoryIn.model_validate(memory) for memory in MEMORIES]


async def store_memories(memory: Services, owner: Owner) -> None:
    """Save the memories; one is corrected, so that a superseded edge joins the same two people as a current one."""
    results = await memory.memories.save(owner, STORED_MEMORIES)
    sister = next(result.memory for result in results if result.memory and result.memory.predicate == "HAS_SISTER")
    await memory.memories.patch(owner, sister.id, MemoryPatch(content="Ilse is Mara's elder sister"))


@pytest.fixture
async def server(neo4j_folder: Path, service: Service, owner: Owner, tmp_path: Path) -> AsyncIterator[ServerInfo]:
    """An embedded Neo4j with the stored memories: that of the run, or where the run has none, one of this test."""
    if info := await find_server(neo4j_folder):
        await asyncio.to_thread(service.run_coroutine, store_memories(service.memory, owner))
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
            await store_memories(memory, owner)
        yield own.info


@pytest.mark.timeout(240)
async def test_neo4j_browser_opens_the_query_and_draws_only_current_facts(
    page: Page, server: ServerInfo, owner: Owner
) -> None:
    await asyncio.to_thread(check_browser, page, server, owner)


def check_browser(page: Page, server: ServerInfo, owner: Owner) -> None:
    page.driver.get(browser_link(server.browser_url, server.uri, server.user, read_query("people", owner.group_id)))
    page.wait_for(by_test_id("password")).send_keys(server.password)
    page.click(by_test_id("connect"))
    page.wait_for(by_test_id("frameContents"), f"You are connected as user {server.user}")
    page.wait_for(by_test_id("frameContents"), "node.Person")
    page.click(by_test_id("editor-Run"))
    page.wait_for("svg .node", "Porto")
    page.wait_for("svg .relationship", "LIVES_IN")
    edges = sorted(edge.text for edge in page.find_all("svg .relationship"))
    assert edges == ["HAS_SISTER", "LIVES_IN", "PLAYS_IN", "TYPED", "WORKS_AT"]
    assert not [node for node in page.find_all("svg .node") if "Lisbon" in node.text]
    assert colour_of(page, "Ilse") == PERSON_COLOUR
    page.screenshot("neo4j-browser")


def by_test_id(name: str) -> str:
    return f'[data-testid="{name}"]'


def colour_of(page: Page, name: str) -> str:
    node = page.wait_for("svg .node", name)
    return node.find_element(By.CSS_SELECTOR, "circle.b-outline").value_of_css_property("fill")
