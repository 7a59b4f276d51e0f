"""Pages of lists: no cursor leads to an empty page."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from graphmem.app.bootstrap import Services
from graphmem.consolidation.models import RunTrigger
from graphmem.consolidation.run_store import RunStore
from graphmem.runtime.times import utc_now
from graphmem.tenants.owners import Owner

USER = "/v1/users/mara"
RUNS = "/v1/admin/consolidations"


async def read_pages(client: httpx.AsyncClient, path: str, **query: Any) -> list[list[Any]]:
    """Return the pages of a list as far as cursors lead."""
    pages: list[list[Any]] = []
    cursor = None
    while cursor or not pages:
        answer = await client.get(path, params={**query, **({"cursor": cursor} if cursor else {})})
        assert answer.status_code == 200, answer.text
        pages.append(answer.json()["items"])
        cursor = answer.json()["next_cursor"]
    return pages


@pytest.fixture
async def filled(agent: httpx.AsyncClient, services: Services, tenant: str) -> None:
    """Four memories, entities, sessions, messages of one session, changes, runs and users."""
    about = [
        {"content": f"{name} likes tea", "subject": {"name": name}, "object": {"name": name}}
        for name in ("Ada", "Bo", "Cy")
    ]
    await agent.post(f"{USER}/memories", json={"memories": about})
    await agent.post(f"{USER}/memories", json={"memories": [{"content": "Mara likes tea"}]})
    runs = RunStore(services.components.graph)
    for number in range(4):
        await agent.post(f"{USER}/sessions", json={"session_id": f"s{number}"})
        mara = Owner(tenant, "mara")
        await runs.create(f"{tenant}-{number}", tenant, mara, RunTrigger.ON_DEMAND, utc_now())
    turns = [{"role": "user", "content": f"message {number}"} for number in range(4)]
    await agent.post(f"{USER}/messages", json={"session_id": "s0", "messages": turns, "extract": False})
    for name in ("bo", "cy", "di"):
        await agent.post(f"/v1/users/{name}/memories", json={"memories": [{"content": "likes tea"}]})


LISTS = [
    f"{USER}/memories",
    f"{USER}/memories?sort=importance",
    f"{USER}/entities",
    f"{USER}/sessions",
    f"{USER}/sessions/s0/messages",
    f"{USER}/changes",
    f"{RUNS}?user_id=mara",
    RUNS,
    "/v1/users",
]


@pytest.mark.usefixtures("filled")
async def test_a_list_whose_length_is_a_multiple_of_the_limit_ends_with_its_last_item(admin: httpx.AsyncClient) -> None:
    for listed in LISTS:
        path, _, query = listed.partition("?")
        given = dict([query.split("=")]) if query else {}
        [everything] = await read_pages(admin, path, **given, limit=200)
        assert len(everything) >= 4, listed
        for limit in (2, len(everything)):
            pages = await read_pages(admin, path, **given, limit=limit)
            assert [item for page in pages for item in page] == everything, (listed, limit)
            assert [] not in pages, (listed, limit)
            assert len(pages) == -(-len(everything) // limit), (listed, limit)


@pytest.mark.req("QUINN-48")
async def test_a_keyword_is_looked_for_in_content_and_metadata(agent: httpx.AsyncClient) -> None:
    noted = {"content": "Mara likes tea", "metadata": {"origin": "Kyoto workshop"}}
    await agent.post(f"{USER}/memories", json={"memories": [noted, {"content": "Mara likes coffee"}]})
    found = {}
    for keyword in ("kyoto", "coffee", "Lund"):
        items = (await agent.get(f"{USER}/memories", params={"keyword": keyword})).json()["items"]
        found[keyword] = [item["content"] for item in items]
    assert found == {"kyoto": ["Mara likes tea"], "coffee": ["Mara likes coffee"], "Lund": []}


async def test_a_keyword_is_found_however_it_is_spelled(agent: httpx.AsyncClient) -> None:
    texts = ["Trip to Łódź", "The Straße is closed", "Cafe\u0301 opens", "Oslo opens"]
    await agent.post(f"{USER}/memories", json={"memories": [{"content": text} for text in texts]})
    for keyword, expected in (
        ("lodz", texts[:1]),
        ("STRASSE is", texts[1:2]),
        ("café", texts[2:3]),
        ("Ósló", texts[3:]),
        ("opens Oslo", []),
    ):
        items = (await agent.get(f"{USER}/memories", params={"keyword": keyword})).json()["items"]
        assert [item["content"] for item in items] == expected, keyword


@pytest.mark.req("QUINN-46")
async def test_a_memory_is_locked_by_its_metadata(agent: httpx.AsyncClient) -> None:
    locked = {"content": "Mara was born in Lund", "metadata": {"immutable": True}}
    saved = (await agent.post(f"{USER}/memories", json={"memories": [locked]})).json()["results"][0]["memory"]
    assert saved["immutable"]
    refused = await agent.patch(f"{USER}/memories/{saved['id']}", json={"content": "Mara was born in Turin"})
    assert refused.status_code == 409


@pytest.mark.req("GO-16")
async def test_a_deleted_core_memory_is_in_the_core_no_more(agent: httpx.AsyncClient) -> None:
    core = {"content": "Mara is allergic to nuts", "importance": 0.95}
    saved = (await agent.post(f"{USER}/memories", json={"memories": [core]})).json()["results"][0]["memory"]

    async def contents() -> list[str]:
        return [memory["content"] for memory in (await agent.get(f"{USER}/profile")).json()["core"]]

    assert await contents() == ["Mara is allergic to nuts"]
    await agent.delete(f"{USER}/memories/{saved['id']}")
    assert await contents() == []


async def test_an_entity_is_found_however_its_name_is_spelled(agent: httpx.AsyncClient) -> None:
    hall = {"content": "Dvořák Hall has an organ", "subject": {"name": "Dvořák Hall", "type": "Place"}}
    oslo = {"content": "Oslo has trams", "subject": {"name": "Oslo", "type": "City"}}
    await agent.post(f"{USER}/memories", json={"memories": [hall, oslo]})
    for spelled, name, content in (("dvorak hall", "Dvořák Hall", hall), ("Ósló", "Oslo", oslo)):
        listed = (await agent.get(f"{USER}/entities", params={"query": spelled[:4]})).json()["items"]
        assert [entity["name"] for entity in listed] == [name], spelled
        about = (await agent.get(f"{USER}/memories", params={"entity": spelled})).json()["items"]
        assert [memory["content"] for memory in about] == [content["content"]], spelled
