"""Trust by source over HTTP: what is contested, who sees it, and how it is resolved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from graphmem.app.bootstrap import Services
from graphmem.neo4j.migrations import check_invariants
from graphmem.tenants.access import ApiKeyIn, KeyRole
from graphmem.tenants.trust import StatedKind

USER = "/v1/users/mara"
MEMORIES = USER + "/memories"


def lives_in(place: str, kind: str | None = None, **fields: Any) -> dict[str, Any]:
    source = {"source": {"kind": kind}} if kind else {}
    return {
        "content": f"Mara lives in {place}",
        "predicate": "LIVES_IN",
        "object": {"name": place, "type": "Place"},
        "single_valued": True,
        **source,
        **fields,
    }


async def save(client: httpx.AsyncClient, *memories: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await client.post(MEMORIES, json={"memories": list(memories)})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


async def contest(client: httpx.AsyncClient) -> tuple[str, str]:
    """Save where the user lives, and another place from the web; return the ids of both."""
    (known,) = await save(client, lives_in("Lund", valid_at="2020-01-01T00:00:00Z"))
    (other,) = await save(client, lives_in("Malmö", "web", valid_at="2024-01-01T00:00:00Z"))
    return known["memory"]["id"], other["memory"]["id"]


async def listed(client: httpx.AsyncClient, **params: Any) -> set[str]:
    answer = await client.get(MEMORIES, params=params)
    assert answer.status_code == 200, answer.text
    return {item["content"] for item in answer.json()["items"]}


async def searched(client: httpx.AsyncClient, **fields: Any) -> set[str]:
    answer = await client.post(f"{USER}/search", json={"query": "where does Mara live", **fields})
    assert answer.status_code == 200, answer.text
    return {hit["memory"]["content"] for hit in answer.json()["results"]}


async def looked_up(client: httpx.AsyncClient, **params: Any) -> set[str]:
    answer = await client.get(f"{USER}/entities/lookup", params={"q": "mara", **params})
    assert answer.status_code == 200, answer.text
    return {memory["content"] for known in answer.json()["entities"] for memory in known["memories"]}


async def context(client: httpx.AsyncClient, **fields: Any) -> str:
    answer = await client.post(f"{USER}/context", json={"question": "Where does Mara live?", **fields})
    assert answer.status_code == 200, answer.text
    preamble: str = answer.json()["preamble"]
    return preamble


async def violated(services: Services, tenant: str) -> list[str]:
    """Return the names of the invariants that do not hold."""
    checks = [check async for check in check_invariants(services.components.graph, tenant)]
    return [check.name for check in checks if check.count]


@pytest.fixture
async def assistant(address: str, services: Services, tenant: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client whose key speaks as the assistant."""
    key = await services.keys.create(tenant, ApiKeyIn(name="bot", role=KeyRole.AGENT, source_kind="assistant"))
    headers = {"Authorization": f"Bearer {key.key}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60) as client:
        yield client


async def test_a_less_trusted_statement_is_stored_as_contested(agent: httpx.AsyncClient) -> None:
    (known,) = await save(agent, lives_in("Lund", valid_at="2020-01-01T00:00:00Z"))
    assert known["memory"]["source"]["kind"] == "user"
    (result,) = await save(agent, lives_in("Malmö", "web", valid_at="2024-01-01T00:00:00Z"))
    assert (result["action"], result["superseded"]) == ("contest", [])
    assert result["memory"]["status"] == "contested"
    assert result["memory"]["contests"] == [known["memory"]["id"]]
    assert result["memory"]["source"]["kind"] == "web"
    read = await agent.get(f"{MEMORIES}/{result['memory']['id']}")
    assert read.json()["status"] == "contested"
    assert (await agent.get(f"{MEMORIES}/{known['memory']['id']}")).json()["invalid_at"] is None


async def test_what_is_contested_is_read_only_where_asked_for(agent: httpx.AsyncClient) -> None:
    await contest(agent)
    for read in (listed, searched, looked_up):
        assert await read(agent) == {"Mara lives in Lund"}
        assert await read(agent, include_superseded=True) == {"Mara lives in Lund"}
        assert await read(agent, include_contested=True) == {"Mara lives in Lund", "Mara lives in Malmö"}
    assert "Malmö" not in await context(agent)
    profile = (await agent.get(f"{USER}/profile")).json()
    assert "Malmö" not in str(profile)
    refused = await agent.post(f"{USER}/context", json={"question": "Where?", "include_contested": True})
    assert refused.status_code == 422


async def test_min_trust_and_kinds_filter_every_read(agent: httpx.AsyncClient) -> None:
    await save(
        agent,
        {"content": "Mara likes tea", "source": {"kind": "user"}},
        {"content": "Mara likes maps", "source": {"kind": "document"}},
        {"content": "Mara likes jazz", "source": {"kind": "web", "speaker": "The Gazette"}},
    )
    for read in (listed, searched, looked_up):
        assert await read(agent, min_trust="document") == {"Mara likes tea", "Mara likes maps"}
        assert await read(agent, min_trust="user") == {"Mara likes tea"}
        assert await read(agent, source_kind="web") == {"Mara likes jazz"}
        assert await read(agent, speaker="The Gazette") == {"Mara likes jazz"}
    assert "jazz" in await context(agent)
    trusted = await context(agent, min_trust="document")
    assert ("maps" in trusted, "jazz" in trusted) == (True, False)
    assert (await agent.get(MEMORIES, params={"min_trust": "gossip"})).status_code == 422


async def test_a_contested_memory_that_holds_takes_its_place_and_a_revert_undoes_it(agent: httpx.AsyncClient) -> None:
    known, other = await contest(agent)
    answer = await agent.post(f"{MEMORIES}/{other}/resolve", json={"holds": True})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["status"], answer.json()["supersedes"]) == ("active", [known])
    assert answer.json()["source"] == {
        "kind": "web", "trusted_as": "user", "session_id": None, "message_ids": [], "quote": None,
    }  # fmt: skip
    ended = (await agent.get(f"{MEMORIES}/{known}")).json()
    assert (ended["status"], ended["invalid_at"], ended["superseded_by"]) == (
        "superseded",
        "2024-01-01T00:00:00Z",
        other,
    )
    assert await listed(agent) == {"Mara lives in Malmö"}
    reverted = await agent.post(f"{MEMORIES}/{other}/revert")
    assert (reverted.status_code, reverted.json()["status"]) == (200, "contested")
    assert await listed(agent) == {"Mara lives in Lund"}
    history = (await agent.get(f"{MEMORIES}/{other}/history")).json()["items"]
    assert [version["status"] for version in history] == ["contested", "active", "contested"]
    assert history[0]["ended_reason"] == "resolved: it holds"
    changes = (await agent.get(f"{USER}/changes")).json()["items"]
    assert {change["reason"] for change in changes if change["memory_id"] == other} == {
        None, "resolved: it holds", "reverted",
    }  # fmt: skip


async def test_a_contested_memory_that_does_not_hold_is_retired_and_a_revert_undoes_it(
    agent: httpx.AsyncClient,
) -> None:
    _, other = await contest(agent)
    answer = await agent.post(f"{MEMORIES}/{other}/resolve", json={"holds": False})
    assert (answer.status_code, answer.json()["status"]) == (200, "superseded")
    assert await listed(agent, include_contested=True) == {"Mara lives in Lund"}
    again = await agent.post(f"{MEMORIES}/{other}/resolve", json={"holds": True})
    assert again.status_code == 409
    assert "not contested" in again.json()["detail"]
    assert (await agent.post(f"{MEMORIES}/{other}/revert")).json()["status"] == "contested"


async def test_contested_memories_are_listed_as_contradictions(agent: httpx.AsyncClient) -> None:
    known, other = await contest(agent)
    (pair,) = (await agent.get(f"{USER}/contradictions")).json()["items"]
    assert (pair["memory_ids"], pair["contested"], pair["run_id"]) == ([other, known], other, None)
    await agent.post(f"{MEMORIES}/{other}/resolve", json={"holds": False})
    assert (await agent.get(f"{USER}/contradictions")).json()["items"] == []


async def test_a_key_of_the_assistant_corrects_and_ends_nothing_of_the_users(
    agent: httpx.AsyncClient, assistant: httpx.AsyncClient
) -> None:
    (known,) = await save(agent, lives_in("Lund", valid_at="2020-01-01T00:00:00Z"))
    memory = f"{MEMORIES}/{known['memory']['id']}"
    answer = await assistant.patch(memory, json={"content": "Mara lives in Malmö"})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["status"], answer.json()["contests"]) == ("contested", [known["memory"]["id"]])
    assert answer.json()["source"]["kind"] == "assistant"
    assert (await agent.get(memory)).json()["content"] == "Mara lives in Lund"
    for refused in (
        await assistant.patch(memory, json={"tags": ["home"]}),
        await assistant.delete(memory),
        await assistant.post(f"{MEMORIES}/{answer.json()['id']}/resolve", json={"holds": True}),
    ):
        assert refused.status_code == 403, refused.text
        assert "more trusted" in refused.json()["detail"]
    assert (await agent.post(f"{MEMORIES}/{answer.json()['id']}/resolve", json={"holds": True})).status_code == 200
    assert await listed(agent) == {"Mara lives in Malmö"}


async def test_a_key_of_the_assistant_saves_as_the_assistant_and_claims_no_more(assistant: httpx.AsyncClient) -> None:
    (result,) = await save(assistant, {"content": "Mara likes tea"})
    assert result["memory"]["source"]["kind"] == "assistant"
    (result,) = await save(assistant, {"content": "Mara likes maps", "source": {"kind": "tool"}})
    assert result["memory"]["source"]["kind"] == "tool"
    refused = await assistant.post(
        MEMORIES, json={"memories": [{"content": "Mara likes jazz", "source": {"kind": "user"}}]}
    )
    assert refused.status_code == 403
    assert "leave source.kind out" in refused.json()["detail"]


async def test_only_an_admin_speaks_as_the_operator(agent: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
    statement = {"content": "Mara is a customer since 2020", "source": {"kind": "operator"}}
    assert (await agent.post(MEMORIES, json={"memories": [statement]})).status_code == 403
    (result,) = await save(admin, statement)
    assert result["memory"]["source"]["kind"] == "operator"
    nonsense = {"content": "x", "source": {"kind": "consolidation"}}
    assert (await admin.post(MEMORIES, json={"memories": [nonsense]})).status_code == 422


async def test_an_order_of_trust_is_set_read_and_removed(admin: httpx.AsyncClient, agent: httpx.AsyncClient) -> None:
    default = [["user"], ["operator", "import"], ["document"], ["assistant"], ["tool"], ["web"]]
    assert (await admin.get("/v1/admin/trust")).json()["order"] == default
    answer = await admin.put("/v1/admin/trust", json={"order": ["operator", ["user", "web"]]})
    assert answer.status_code == 200, answer.text
    assert answer.json()["order"] == [
        ["operator"], ["user", "web"], ["import"], ["document"], ["assistant"], ["tool"],
    ]  # fmt: skip
    assert (await admin.get("/v1/admin/trust")).json() == answer.json()
    await save(agent, lives_in("Lund", valid_at="2020-01-01T00:00:00Z"))
    (result,) = await save(agent, lives_in("Malmö", "web", valid_at="2024-01-01T00:00:00Z"))
    assert result["action"] == "supersede"
    assert await listed(agent, min_trust="user") == {"Mara lives in Malmö"}
    assert (await admin.put("/v1/admin/trust", json={"order": ["user", "user"]})).status_code == 422
    assert (await admin.put("/v1/admin/trust", json={"order": ["gossip"]})).status_code == 422
    assert (await agent.put("/v1/admin/trust", json={"order": ["web"]})).status_code == 403
    assert (await admin.put("/v1/admin/trust", json={"order": []})).json()["order"] == default


async def test_what_a_key_of_the_assistant_imports_is_the_assistants(
    agent: httpx.AsyncClient, assistant: httpx.AsyncClient
) -> None:
    (known,) = await save(agent, {"content": "Mara likes tea"})
    export = (await agent.get(f"{USER}/export")).json()
    refused = await assistant.post(f"{USER}/import", json=export)
    assert refused.status_code == 403
    records = (await agent.get(f"{USER}/export", params={"view": "records"})).json()
    records["records"][0]["content"] = "Mara likes coffee"
    answer = await assistant.post(f"{USER}/import", json=records)
    assert answer.status_code == 200, answer.text
    assert answer.json()["imported"]["contested"] == 1
    assert await listed(agent) == {"Mara likes tea"}
    answer = await agent.post(f"{USER}/import", json=records)
    assert answer.json()["imported"]["versions"] == 1
    assert (await agent.get(f"{MEMORIES}/{known['memory']['id']}")).json()["content"] == "Mara likes coffee"


async def test_imported_statements_are_an_imports(agent: httpx.AsyncClient) -> None:
    document = {"results": [{"id": "1", "memory": "Mara likes tea", "user_id": "mara"}]}
    answer = await agent.post(f"{USER}/import", params={"format": "mem0"}, json=document)
    assert answer.status_code == 200, answer.text
    assert await listed(agent, source_kind="import") == {"Mara likes tea"}


async def test_an_export_and_its_import_keep_what_is_contested(agent: httpx.AsyncClient) -> None:
    _, other = await contest(agent)
    export = (await agent.get(f"{USER}/export")).json()
    answer = await agent.post("/v1/users/copy/import", json=export)
    assert answer.status_code == 200, answer.text
    copied = answer.json()["ids"].get(other, other)
    items = (await agent.get("/v1/users/copy/memories", params={"include_contested": True})).json()["items"]
    assert {item["content"]: item["status"] for item in items} == {
        "Mara lives in Lund": "active", "Mara lives in Malmö": "contested",
    }  # fmt: skip
    current = (await agent.get("/v1/users/copy/memories")).json()["items"]
    contested = (await agent.get(f"/v1/users/copy/memories/{copied}")).json()
    assert contested["contests"] == [item["id"] for item in current]
    resolved = await agent.post(f"/v1/users/copy/memories/{copied}/resolve", json={"holds": True})
    assert len(resolved.json()["supersedes"]) == 1


async def test_the_invariants_hold_for_what_is_contested_and_resolved(
    agent: httpx.AsyncClient, admin: httpx.AsyncClient, services: Services, tenant: str
) -> None:
    """Each state is that of another user, for one check: it reads the whole graph."""
    for number, (resolutions, is_deleted) in enumerate(
        [([True], False), ([False], False), ([True, None], False), ([True, None, False, None], True)]
    ):
        memories = f"/v1/users/user{number}/memories"
        known, other = [
            (await agent.post(memories, json={"memories": [stated]})).json()["results"][0]["memory"]["id"]
            for stated in (
                lives_in("Lund", valid_at="2020-01-01T00:00:00Z"),
                lives_in("Malmö", "web", valid_at="2024-01-01T00:00:00Z"),
            )
        ]
        for holds in resolutions:
            if holds is None:
                done = await agent.post(f"{memories}/{other}/revert")
            else:
                done = await agent.post(f"{memories}/{other}/resolve", json={"holds": holds})
            assert done.status_code == 200, (number, done.text)
        if is_deleted:
            await admin.delete(f"{memories}/{known}", params={"hard": True})
            assert (await agent.get(f"{memories}/{other}")).json()["contests"] == []
    assert await violated(services, tenant) == []


async def test_a_merge_of_sources_that_are_not_trusted_alike_is_refused(admin: httpx.AsyncClient) -> None:
    kinds: list[StatedKind] = ["user", "web", "user"]
    saved = await save(
        admin,
        *({"content": f"Mara likes {what}", "source": {"kind": kind}} for what, kind in zip(
            ("black tea", "green tea", "white tea"), kinds, strict=True
        )),
    )  # fmt: skip
    ids = [result["memory"]["id"] for result in saved]
    merge = {"action": "MERGE", "content": "Mara likes black tea and green tea", "verified": True, "reason": "tea"}
    body = {"user_id": "mara", "wait": True, "proposals": [{**merge, "memory_ids": ids[:2]}]}
    run = (await admin.post("/v1/admin/consolidations", json=body)).json()
    assert (run["executed"], "equally trusted" in run["proposals"][0]["reason"]) == (0, True)
    merge["content"] = "Mara likes black tea and white tea"
    body["proposals"] = [{**merge, "memory_ids": [ids[0], ids[2]]}]
    run = (await admin.post("/v1/admin/consolidations", json=body)).json()
    assert run["executed"] == 1, run
    merged = (await admin.get(f"{MEMORIES}/{run['proposals'][0]['result_id']}")).json()
    assert (merged["source"]["kind"], merged["source"]["trusted_as"]) == ("consolidation", "user")
    assert merged["content"] in await listed(admin, min_trust="user")


async def test_a_more_trusted_memory_ranks_before_one_that_fits_as_well(agent: httpx.AsyncClient) -> None:
    await save(
        agent,
        {"content": "Mara likes jasmine tea", "source": {"kind": "web"}},
        {"content": "Mara likes jasmine teas", "source": {"kind": "user"}},
    )
    body = {"query": "What does Mara like?", "explain": True}
    hits = (await agent.post(f"{USER}/search", json=body)).json()["results"]
    trust = {hit["memory"]["source"]["kind"]: hit["explain"]["trust"] for hit in hits}
    assert trust["user"] == 1.0 > trust["web"] > 0.9
