"""Memories over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from graphmem.app.bootstrap import Services
from graphmem.memories.memory import Scope
from graphmem.tenants.owners import Owner

MEMORIES = "/v1/users/mara/memories"
TYPES = [
    "preference", "fact", "plan", "feeling", "inferred_interest", "conversation_topic", "recommendation",
    "behavioral_pattern", "conversation_summary", "open_loop",
]  # fmt: skip
ALIASES = {
    "USER_PREFERENCE": "preference",
    "FACTUAL_INFO": "fact",
    "BEHAVIORAL_PATTERN": "behavioral_pattern",
    "CONVERSATION_SUMMARY": "conversation_summary",
    "OPEN_LOOP": "open_loop",
    "summary": "conversation_summary",
    "persona": "fact",
    "personal_info": "fact",
}


async def save(client: httpx.AsyncClient, *memories: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await client.post(MEMORIES, json={"memories": list(memories)})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


async def current_contents(client: httpx.AsyncClient, **filters: Any) -> set[str]:
    answer = await client.get(MEMORIES, params=filters)
    assert answer.status_code == 200, answer.text
    return {item["content"] for item in answer.json()["items"]}


@pytest.mark.req("UMB-04", "QUINN-13", "CASH-09")
async def test_every_type_is_stored_and_every_alias_resolved(agent: httpx.AsyncClient) -> None:
    words = {**{name: name for name in TYPES}, **ALIASES}
    statements = {
        word: {"content": f"a statement of the {'alias' if word in ALIASES else 'type'} {word}", "type": word}
        for word in words
    }
    await save(agent, statements["inferred_interest"])  # becomes a memory when it is mentioned again
    results = await save(agent, *statements.values())
    assert {result["action"] for result in results} == {"insert"}
    assert {word: result["memory"]["type"] for word, result in zip(words, results, strict=True)} == words
    refused = await agent.post(MEMORIES, json={"memories": [{"content": "x", "type": "gossip"}]})
    assert refused.status_code == 422


@pytest.mark.req("QUINN-12", "QUINN-14", "QUINN-16", "UMB-03", "QUINN-01")
async def test_saved_memory_is_returned_with_every_field(agent: httpx.AsyncClient) -> None:
    statement = {
        "content": "Mara rows on Sundays",
        "type": "behavioral_pattern",
        "predicate": "ROWS_ON",
        "object": {"name": "Sunday", "type": "Day"},
        "entities": [{"name": "Elin", "type": "Person"}],
        "confidence": 0.8,
        "importance": 0.7,
        "tags": ["Sport", "cashflow and spending"],
        "domain": "Sport",
        "valid_at": "2026-01-04T00:00:00+01:00",
        "invalid_at": "2027-01-01T00:00:00Z",
        "expires_at": "2028-01-01T00:00:00Z",
        "metadata": {"notes": ["a", {"b": 1}], "ö": None},
        "source": {"session_id": "s1", "message_ids": ["m1", "m2"]},
    }
    (result,) = await save(agent, statement)
    read = (await agent.get(f"{MEMORIES}/{result['memory']['id']}")).json()
    assert read == result["memory"]
    for name in ("content", "type", "predicate", "confidence", "importance", "metadata"):
        assert read[name] == statement[name]
    assert read["tags"] == ["sport", "CASHFLOW_AND_SPENDING"]
    assert (read["domain"], read["scope"], read["version"], read["status"]) == ("sport", "domain", 1, "active")
    assert read["valid_at"] == "2026-01-03T23:00:00Z"
    assert [entity["name"] for entity in read["entities"]] == ["mara", "Sunday", "Elin"]
    assert read["source"] == {"kind": "user", "session_id": "s1", "message_ids": ["m1", "m2"], "quote": None}
    assert (read["schema_version"], read["user_id"], read["decay_rate"]) == ("1.0", "mara", 0.02)
    assert len(read["content_hash"]) == 64


@pytest.mark.req("CASH-11", "CASH-12", "CASH-13")
async def test_forbidden_content_is_skipped_with_its_class_and_never_echoed(agent: httpx.AsyncClient) -> None:
    results = await save(
        agent,
        {"content": "Her card is 4111 1111 1111 1111"},
        {"content": "harmless", "metadata": {"iban": "DE89 3704 0044 0532 0130 00"}},
        {"content": "The current balance is $1,200"},
        {"content": "maybe likes jazz", "confidence": 0.49},
        {"content": "likes jazz", "confidence": 0.5},
    )
    assert [result["action"] for result in results] == ["skip"] * 4 + ["insert"]
    assert "card" in results[0]["reason"]
    assert "4111" not in str(results)
    assert await current_contents(agent) == {"likes jazz"}


@pytest.mark.req("QUINN-17", "QUINN-22", "QUINN-29")
async def test_lists_are_filtered_by_every_attribute_without_an_embedding(
    agent: httpx.AsyncClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    await save(
        agent,
        {"content": "likes basil", "type": "preference", "tags": ["food", "Herbs"], "importance": 0.9, "domain": "c"},
        {"content": "likes thyme", "type": "preference", "tags": ["food"], "importance": 0.2, "confidence": 0.6},
        {
            "content": "plans a garden", "type": "plan", "object": {"name": "Garden", "type": "Place"},
            "metadata": {"file": "a.md", "page": 7},
        },
        {"content": "works at Acme", "source": {"session_id": "s9"}},
    )  # fmt: skip
    monkeypatch.setattr(services.components.embedder, "embed", None)
    assert await current_contents(agent, tag=["food", "HERBS"]) == {"likes basil"}
    assert await current_contents(agent, tag="food", not_tag="herbs") == {"likes thyme"}
    assert await current_contents(agent, domain="C") == {"likes basil"}
    assert await current_contents(agent, scope="domain") == {"likes basil"}
    assert await current_contents(agent, type=["plan", "fact"]) == {"plans a garden", "works at Acme"}
    assert await current_contents(agent, entity="garden") == {"plans a garden"}
    assert await current_contents(agent, keyword="LIKES t") == {"likes thyme"}
    assert await current_contents(agent, session_id="s9") == {"works at Acme"}
    assert await current_contents(agent, min_importance=0.8) == {"likes basil"}
    assert await current_contents(agent, type="preference", min_confidence=0.7) == {"likes basil"}
    assert await current_contents(agent, **{"metadata.file": "a.md", "metadata.page": "7"}) == {"plans a garden"}
    assert await current_contents(agent, **{"metadata.page": "70"}) == set()
    assert await current_contents(agent, **{"metadata.page": "7.0"}) == {"plans a garden"}
    assert await current_contents(agent, created_before="2020-01-01T00:00:00Z") == set()
    assert len(await current_contents(agent, created_after="2020-01-01T00:00:00Z")) == 4


SORTS = ("created_at", "-created_at", "importance", "-importance", "valid_at", "-valid_at")


async def test_pagination_has_no_gap_or_repeat(agent: httpx.AsyncClient) -> None:
    statements = [
        {"content": f"fact {i}", "importance": (i % 3) / 10, "valid_at": f"20{10 + i % 4}-01-01T00:00:00Z"}
        for i in range(11)
    ]
    await save(agent, *statements)
    for sort in SORTS:
        seen: list[dict[str, Any]] = []
        cursor = None
        while True:
            params: dict[str, str | int] = {"sort": sort, "limit": 4, **({"cursor": cursor} if cursor else {})}
            page = (await agent.get(MEMORIES, params=params)).json()
            seen += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert len({memory["id"] for memory in seen}) == len(seen) == 11, sort
        keys = [memory[sort.removeprefix("-")] for memory in seen]
        assert keys == sorted(keys, reverse=sort.startswith("-")), sort
        other = {"sort": "importance" if sort != "importance" else "valid_at", "cursor": "AAAA"}
        assert (await agent.get(MEMORIES, params=other)).status_code == 422


@pytest.mark.req("QUINN-27", "QUINN-23")
async def test_moved_deadline_returns_new_date_and_keeps_old_in_history(agent: httpx.AsyncClient) -> None:
    deadline = {
        "type": "plan",
        "subject": {"name": "Report", "type": "Project"},
        "predicate": "DUE_ON",
        "single_valued": True,
    }
    (june,) = await save(agent, {**deadline, "content": "The report is due on 30 June 2025"})
    (july,) = await save(agent, {**deadline, "content": "The report is due on 15 July 2025"})
    assert july["action"] == "supersede"
    assert july["superseded"] == [june["memory"]["id"]]
    assert await current_contents(agent) == {"The report is due on 15 July 2025"}
    history = (await agent.get(f"{MEMORIES}/{june['memory']['id']}/history")).json()["items"]
    assert [row["status"] for row in history] == ["active", "superseded"]
    assert history[-1]["superseded_by"] == july["memory"]["id"]
    assert history[0]["ended_by"] == july["memory"]["id"]
    assert await current_contents(agent, known_as_of=june["memory"]["created_at"]) == {
        "The report is due on 30 June 2025"
    }


async def test_stale_version_conflicts_and_correction_keeps_earlier_version(
    agent: httpx.AsyncClient,
) -> None:
    (saved,) = await save(agent, {"content": "likes tea"})
    one = f"{MEMORIES}/{saved['memory']['id']}"
    changed = await agent.patch(one, json={"content": "loves tea", "tags": ["drinks"]}, headers={"If-Match": '"1"'})
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    stale = await agent.patch(one, json={"importance": 1}, headers={"If-Match": '"1"'})
    assert stale.status_code == 409
    secret = await agent.patch(one, json={"content": "her PIN is 4821"})
    assert secret.status_code == 422
    assert "4821" not in secret.text
    before = await current_contents(agent, known_as_of=saved["memory"]["created_at"])
    assert before == {"likes tea"}
    assert await current_contents(agent) == {"loves tea"}


@pytest.mark.req("QUINN-25", "QUINN-24")
async def test_deleted_memory_is_readable_by_id_and_erased_memory_is_not(
    agent: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    (saved,) = await save(agent, {"content": "likes tea"})
    one = f"{MEMORIES}/{saved['memory']['id']}"
    assert (await agent.delete(one)).status_code == 200
    assert (await agent.get(one)).json()["status"] == "deleted"
    assert await current_contents(agent) == set()
    assert await current_contents(agent, known_as_of=saved["memory"]["created_at"]) == {"likes tea"}
    assert (await agent.delete(one, params={"hard": "true"})).status_code == 403
    assert (await admin.delete(one, params={"hard": "true"})).status_code == 200
    unknown = await agent.get(f"{MEMORIES}/no-such-id")
    erased = await agent.get(one)
    assert (erased.status_code, erased.content) == (404, unknown.content)


@pytest.mark.req("QUINN-21")
async def test_immutable_memory_can_only_be_hard_deleted(agent: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
    born = {"predicate": "BORN_IN", "single_valued": True}
    (saved,) = await save(agent, {"content": "born in Lund", "immutable": True, **born})
    one = f"{MEMORIES}/{saved['memory']['id']}"
    for refused in (
        await agent.patch(one, json={"importance": 1}),
        await agent.delete(one),
        await agent.post(MEMORIES, json={"memories": [{"content": "born in Malmö", **born}]}),
        await agent.post(MEMORIES, json={"memories": [{"content": "x", "supersedes": [saved["memory"]["id"]]}]}),
    ):
        assert refused.status_code == 409
        detail = refused.json()["detail"]
        assert (saved["memory"]["id"] in detail, "“born in Lund”" in detail) == (True, True)
        assert "Save the new statement as a separate memory, without `supersedes`" in detail
    assert await current_contents(agent) == {"born in Lund"}
    assert (await admin.delete(one, params={"hard": "true"})).status_code == 200


async def test_a_revert_to_what_another_memory_states_is_refused(agent: httpx.AsyncClient) -> None:
    home = {"predicate": "LIVES_IN", "single_valued": True}
    (rome,) = await save(agent, {"content": "lives in Rome", **home})
    await save(agent, {"content": "lives in Oslo", **home})
    (tea,) = await save(agent, {"content": "likes tea", "predicate": "LIVES_IN"})
    one = f"{MEMORIES}/{rome['memory']['id']}"
    await agent.patch(one, json={"content": "likes tea"})
    refused = await agent.post(f"{one}/revert")
    assert (refused.status_code, tea["memory"]["id"] in refused.json()["detail"]) == (409, True)
    assert await current_contents(agent) == {"lives in Oslo", "likes tea"}


async def test_a_revert_undoes_one_supersession(agent: httpx.AsyncClient) -> None:
    job = {"predicate": "WORKS_AT", "single_valued": True}
    (old,) = await save(agent, {"content": "works at Acme", **job})
    await save(agent, {"content": "works at NewCo", **job})
    reverted = await agent.post(f"{MEMORIES}/{old['memory']['id']}/revert")
    assert (reverted.status_code, reverted.json()["status"]) == (200, "active")
    assert await current_contents(agent) == {"works at Acme"}
    again = await agent.post(f"{MEMORIES}/{old['memory']['id']}/revert")
    assert again.status_code == 409


@pytest.mark.parametrize("valid_at", [None, "2024-01-01T00:00:00Z"])
@pytest.mark.parametrize("is_corrected", [pytest.param(False, marks=pytest.mark.long), True])
async def test_a_replacement_that_was_reverted_is_shown_as_ended(
    agent: httpx.AsyncClient, valid_at: str | None, is_corrected: bool
) -> None:
    home = {"predicate": "LIVES_IN", "single_valued": True}
    (vienna,) = await save(agent, {"content": "lives in Vienna", "valid_at": "2020-01-01T00:00:00Z", **home})
    (oslo,) = await save(agent, {"content": "lives in Oslo", "valid_at": valid_at, **home})
    one = f"{MEMORIES}/{oslo['memory']['id']}"
    if is_corrected:
        await agent.patch(one, json={"importance": 0.9})
    reverted = (await agent.post(f"{MEMORIES}/{vienna['memory']['id']}/revert")).json()
    assert (reverted["invalid_at"], reverted["expired_at"]) == (None, None)

    shown = (await agent.get(one)).json()
    *earlier, last = (await agent.get(f"{one}/history")).json()["items"]
    (listed,) = (
        memory
        for memory in (await agent.get(MEMORIES, params={"include_superseded": True})).json()["items"]
        if memory["id"] == shown["id"]
    )
    for memory in (shown, last, listed):
        assert (memory["status"], memory["superseded_by"]) == ("superseded", reverted["id"])
        assert memory["invalid_at"] == memory["valid_at"] is not None
        assert memory["expired_at"] == earlier[-1]["expired_at"] is not None
    assert last["ended_reason"] == "reverted"
    assert await current_contents(agent) == {"lives in Vienna"}


async def test_a_correction_never_makes_two_values_current(agent: httpx.AsyncClient) -> None:
    home = {"predicate": "LIVES_IN", "single_valued": True}
    (lund,) = await save(agent, {"content": "lives in Lund", **home})
    (oslo,) = await save(agent, {"content": "lives in Oslo", **home})
    one = f"{MEMORIES}/{lund['memory']['id']}"
    refused = await agent.patch(one, json={"invalid_at": None})
    assert refused.status_code == 409
    assert f"change the times of {oslo['memory']['id']} or delete it first" in refused.json()["detail"]
    assert await current_contents(agent) == {"lives in Oslo"}
    assert (await agent.delete(f"{MEMORIES}/{oslo['memory']['id']}")).status_code == 200
    assert (await agent.patch(one, json={"invalid_at": None})).json()["status"] == "active"
    assert await current_contents(agent) == {"lives in Lund"}


@pytest.mark.req("QUINN-05")
async def test_global_memories_are_written_by_admins_and_readable_by_all(
    agent: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    shared = {"memories": [{"content": "The office closes at six", "scope": "global"}]}
    assert (await agent.post(MEMORIES, json=shared)).status_code == 403
    saved = await admin.post(MEMORIES, json=shared)
    assert saved.json()["results"][0]["memory"]["user_id"] is None
    elsewhere = await agent.get("/v1/users/otto/memories")
    assert [item["content"] for item in elsewhere.json()["items"]] == ["The office closes at six"]
    one = f"/v1/users/otto/memories/{saved.json()['results'][0]['memory']['id']}"
    assert (await agent.delete(one)).status_code == 403


@pytest.mark.req("QUINN-05")
async def test_a_correction_cannot_take_a_global_memory_from_the_tenant(
    agent: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    (rule,) = await save(admin, {"content": "The office closes at six", "scope": "global"})
    one = f"/v1/users/otto/memories/{rule['memory']['id']}"
    for change in ({"scope": "profile"}, {"scope": "episodic"}, {"domain": "food"}, {"domain": None}):
        assert (await agent.patch(one, json=change)).status_code == 403, change
        refused = await admin.patch(one, json=change)
        assert (refused.status_code, "save the statement again" in refused.json()["detail"]) == (422, True), change
    read = (await agent.get(one)).json()
    assert (read["scope"], read["domain"], read["version"], read["user_id"]) == ("global", None, 1, None)
    for attempt in (agent.patch(one, json={"content": "x y"}), agent.delete(one), agent.post(f"{one}/revert")):
        assert (await attempt).status_code == 403
    kept = await admin.patch(one, json={"scope": "global", "content": "The office closes at seven"})
    assert (kept.status_code, kept.json()["scope"]) == (200, "global")


async def test_what_the_tenant_owns_is_protected_whatever_its_scope(
    agent: httpx.AsyncClient, admin: httpx.AsyncClient, services: Services, tenant: str
) -> None:
    (rule,) = await save(admin, {"content": "The office closes at six", "scope": "global"})
    memory_id = rule["memory"]["id"]
    facts = services.components.facts
    await facts.update_memory(
        Owner(tenant, "mara"), memory_id, lambda ledger: ledger.annotate(memory_id, scope=Scope.PROFILE)
    )
    one = f"{MEMORIES}/{memory_id}"
    assert (await agent.get(one)).json()["scope"] == "profile"
    for attempt in (agent.patch(one, json={"content": "x y"}), agent.delete(one), agent.post(f"{one}/revert")):
        assert (await attempt).status_code == 403
    assert (await admin.patch(one, json={"scope": "global"})).json()["scope"] == "global"


@pytest.mark.req("QUINN-05", "QUINN-41")
async def test_a_correction_cannot_make_a_users_memory_global(
    agent: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    (tea,) = await save(agent, {"content": "likes tea"})
    one = f"{MEMORIES}/{tea['memory']['id']}"
    for caller in (agent, admin):
        refused = await caller.patch(one, json={"scope": "global"})
        assert refused.status_code == 422
        assert "let an admin save the statement again with scope global" in refused.json()["detail"]
    assert (await agent.get(one)).json()["scope"] == "profile"
    exported = await agent.get("/v1/users/mara/export", params={"view": "records"})
    again = await agent.post("/v1/users/otto/import", json=exported.json(), params={"format": "records"})
    assert (again.status_code, again.json()["refused"]) == (200, [])


async def test_a_tag_sets_the_domain_in_a_save_and_in_a_correction(agent: httpx.AsyncClient) -> None:
    (saved,) = await save(agent, {"content": "uses tabs", "tags": ["domain:coding"]})
    assert (saved["memory"]["scope"], saved["memory"]["domain"]) == ("domain", "coding")
    one = f"{MEMORIES}/{saved['memory']['id']}"
    for change, stored in (
        ({"tags": ["domain:work"]}, ("domain", "work")),
        ({"tags": ["domain:work"], "scope": "profile"}, ("profile", None)),
        ({"tags": ["domain:work"], "domain": "music"}, ("domain", "music")),
        ({"tags": ["calm"]}, ("domain", "music")),
    ):
        changed = (await agent.patch(one, json=change)).json()
        assert (changed["scope"], changed["domain"]) == stored, change


@pytest.mark.req("QUINN-22")
async def test_equal_numbers_of_metadata_match_however_they_are_written(agent: httpx.AsyncClient) -> None:
    numbers = [(3, 3.0, 3.5), (3.0, 3, 4), (-0.0, 0, 0.5), (0.0, 0, False), (10**16, 1e16, 1e15), (1, 1.0, True)]
    bees = [
        {"content": f"keeps bees in hive {key}", "metadata": {f"n{key}": stored}}
        for key, (stored, _, _) in enumerate(numbers)
    ]
    await save(agent, *bees)
    for key, (stored, equal, other) in enumerate(numbers):
        for number, found in ((equal, 1), (other, 0)):
            query = {"query": "bees", "metadata": {f"n{key}": number}}
            answer = await agent.post("/v1/users/mara/search", json=query)
            assert (answer.status_code, len(answer.json()["results"])) == (200, found), (stored, number)
            listed = await current_contents(agent, **{f"metadata.n{key}": str(number).lower()})
            assert len(listed) == found, (stored, number)


INVALID = [
    {"content": ""},
    {"content": "x" * 8001},
    {"content": "x", "valid_at": "2026-01-01T00:00:00"},
    {"content": "x", "valid_at": "2026-01-02T00:00:00Z", "invalid_at": "2026-01-01T00:00:00Z"},
    {"content": "x", "confidence": 1.1},
    {"content": "x", "predicate": "likes"},
    {"content": "x", "single_valued": True},
    {"content": "x", "tags": ["<script>"]},
    {"content": "x", "surprise": 1},
]


async def test_invalid_input_is_422_with_location_and_saves_nothing(agent: httpx.AsyncClient) -> None:
    for memory in INVALID:
        answer = await agent.post(MEMORIES, json={"memories": [{"content": "good"}, memory]})
        assert answer.status_code == 422, memory
        assert answer.headers["content-type"] == "application/problem+json"
        assert all(error["loc"][:3] == ["body", "memories", 1] for error in answer.json()["errors"]), memory
    assert await current_contents(agent) == set()


@pytest.mark.req("QUINN-14", "UMB-03")
async def test_associations_and_a_quote_of_the_source_are_saved_and_changed(agent: httpx.AsyncClient) -> None:
    [first] = (await agent.post(MEMORIES, json={"memories": [{"content": "Mara has a boat"}]})).json()["results"]
    boat = first["memory"]["id"]
    sailing: dict[str, Any] = {
        "content": "Mara sails in summer",
        "associations": [boat],
        "source": {"quote": "I go sailing whenever it is warm."},
    }
    [saved] = (await agent.post(MEMORIES, json={"memories": [sailing]})).json()["results"]
    memory = (await agent.get(f"{MEMORIES}/{saved['memory']['id']}")).json()
    assert (memory["associations"], memory["source"]["quote"]) == ([boat], sailing["source"]["quote"])
    patched = await agent.patch(f"{MEMORIES}/{memory['id']}", json={"associations": []})
    assert (patched.json()["associations"], patched.json()["version"]) == ([], 2)
    unknown = {"content": "Mara likes wind", "associations": ["unknown"]}
    assert (await agent.post(MEMORIES, json={"memories": [unknown]})).status_code == 404
    assert (await agent.patch(f"{MEMORIES}/{memory['id']}", json={"associations": ["unknown"]})).status_code == 404
    turn = {"id": "m1", "role": "user", "content": "My boat is called Alma"}
    await agent.post("/v1/users/mara/messages", json={"session_id": "s", "messages": [turn], "extract": False})
    told = {"content": "The boat of Mara is called Alma", "source": {"session_id": "s", "message_ids": ["m1"]}}
    [quoted] = (await agent.post(MEMORIES, json={"memories": [told]})).json()["results"]
    assert quoted["memory"]["source"]["quote"] == turn["content"]


@pytest.mark.req("UMB-19")
async def test_a_statement_is_linked_to_the_known_entities_that_its_text_names(agent: httpx.AsyncClient) -> None:
    await save(agent, {"content": "Bob works at Acme", "subject": {"name": "Bob", "type": "Person"}})
    (result,) = await save(agent, {"content": "Bob likes green tea"})
    await save(agent, {"content": "Bob Smith likes coffee"}, {"content": "The bobsleigh run is steep"})
    assert result["memory"]["subject"]["name"] == "mara"
    assert [entity["name"] for entity in result["memory"]["entities"]] == ["mara", "Bob"]
    found = (await agent.get("/v1/users/mara/entities/lookup", params={"q": "Bob"})).json()["entities"]
    assert [{memory["content"] for memory in match["memories"]} for match in found] == [
        {"Bob works at Acme", "Bob likes green tea"}
    ]


@pytest.mark.req("UMB-19")
async def test_a_name_that_two_entities_share_links_to_neither(agent: httpx.AsyncClient) -> None:
    await save(
        agent,
        {"content": "Robert rows", "subject": {"name": "Robert", "type": "Person", "aliases": ["Bob"]}},
        {"content": "Bobby sings", "subject": {"name": "Bobby", "type": "Person", "aliases": ["Bob"]}},
    )
    (result,) = await save(agent, {"content": "Bob likes green tea"})
    assert [entity["name"] for entity in result["memory"]["entities"]] == ["mara"]


@pytest.mark.req("UMB-19")
async def test_statements_of_one_save_are_linked_to_the_entities_of_each_other(agent: httpx.AsyncClient) -> None:
    results = await save(
        agent, {"content": "小明喜欢绿茶"}, {"content": "小明在北京工作", "subject": {"name": "小明", "type": "Person"}}
    )
    assert [[entity["name"] for entity in result["memory"]["entities"]] for result in results] == [
        ["mara", "小明"],
        ["小明"],
    ]


@pytest.mark.req("UMB-19")
async def test_earlier_memories_are_linked_in_the_write_that_creates_the_entity(agent: httpx.AsyncClient) -> None:
    await save(
        agent,
        {"content": "Dana lives in Malmö", "immutable": True},
        {"content": "Mara met Dana in 2019"},
        {"content": "The danas of old were sailors"},
        {"content": "Dana Berg sings", "subject": {"name": "Dana Berg", "type": "Person"}},
    )
    await save(agent, {"content": "Dana works at Acme", "subject": {"name": "Dana", "type": "Person"}})
    found = (await agent.get("/v1/users/mara/entities/lookup", params={"q": "Dana"})).json()["entities"]
    memories = {match["entity"]["name"]: {memory["content"] for memory in match["memories"]} for match in found}
    assert memories["Dana"] == {"Dana lives in Malmö", "Mara met Dana in 2019", "Dana works at Acme"}
    (history,) = [
        (await agent.get(f"{MEMORIES}/{memory['id']}/history")).json()["items"]
        for match in found
        for memory in match["memories"]
        if memory["content"] == "Dana lives in Malmö"
    ]
    assert len(history) == 1
    listed = (await agent.get("/v1/users/mara/entities", params={"query": "dana"})).json()["items"]
    assert {entity["name"]: entity["memory_count"] for entity in listed} == {"Dana": 3, "Dana Berg": 1}


@pytest.mark.req("UMB-05")
async def test_an_inferred_interest_is_a_memory_from_its_second_mention_on(agent: httpx.AsyncClient) -> None:
    interest = {"content": "Interested in sailing", "type": "inferred_interest"}
    (first,) = await save(agent, interest)
    assert (first["action"], first["memory"], first["reason"]) == ("skip", None, "an interest mentioned once")
    assert await current_contents(agent) == set()
    (second,) = await save(agent, interest)
    assert second["action"] == "insert"
    (third,) = await save(agent, interest)
    assert third["action"] == "reinforce"
    assert await current_contents(agent) == {"Interested in sailing"}


@pytest.mark.req("UMB-05")
async def test_a_statement_repeated_in_one_save_is_one_mention_and_two_messages_are_two(
    agent: httpx.AsyncClient,
) -> None:
    sailing = {"content": "Interested in sailing", "type": "inferred_interest"}
    assert {result["action"] for result in await save(agent, sailing, sailing)} == {"skip"}
    (result,) = await save(
        agent,
        {
            "content": "Interested in rowing",
            "type": "inferred_interest",
            "source": {"session_id": "s", "message_ids": ["a", "b"]},
        },
    )
    assert (result["action"], result["memory"]["source"]["message_ids"]) == ("insert", ["a", "b"])


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ({"content": "I live in Vienna"}, {"content": "I live in Oslo"}),
        ({"content": "Mara is allergic to penicillin"}, {"content": "Mara is not allergic to penicillin"}),
        (
            {"content": "Drinks tea", "predicate": "DRINKS", "object": {"name": "tea"}},
            {"content": "Drinks coffee", "predicate": "DRINKS", "object": {"name": "coffee"}},
        ),
    ],
)
async def test_a_save_names_the_current_memories_that_it_may_contradict(
    agent: httpx.AsyncClient, earlier: dict[str, Any], later: dict[str, Any]
) -> None:
    (known, other) = await save(agent, earlier, {"content": "Plays the cello"})
    assert (known["related"], other["related"]) == ([], [])
    (result,) = await save(agent, later)
    assert (result["action"], result["related"]) == ("insert", [known["memory"]["id"]])
    about_another = {**later, "subject": {"name": "Elin", "type": "Person"}}
    assert [found["related"] for found in await save(agent, about_another)] == [[]]


async def test_what_a_save_ends_is_superseded_and_not_related(agent: httpx.AsyncClient) -> None:
    vienna = {"content": "Lives in Vienna", "predicate": "LIVES_IN", "object": {"name": "Vienna"}}
    (known,) = await save(agent, {**vienna, "single_valued": True})
    (moved,) = await save(
        agent,
        {
            "content": "Lives in Oslo",
            "predicate": "LIVES_IN",
            "object": {"name": "Oslo"},
            "single_valued": True,
        },
    )
    assert (moved["superseded"], moved["related"]) == ([known["memory"]["id"]], [])


async def test_a_text_without_a_visible_character_is_refused(agent: httpx.AsyncClient) -> None:
    for blank in ("\u200b\u200d\u2060", "\ufeff \u00ad", "\u3164\u2800"):
        refused = await agent.post(MEMORIES, json={"memories": [{"content": blank}]})
        assert (refused.status_code, refused.json()["errors"][0]["loc"]) == (422, ["body", "memories", 0, "content"])


@pytest.mark.req("CASH-11")
async def test_a_secret_in_thin_disguise_is_skipped(agent: httpx.AsyncClient) -> None:
    secrets = [
        ("The card is 4111 and 1111 and 1111 and 1111", "card"),
        ("4lll llll llll llll", "card"),
        ("4111&nbsp;1111&nbsp;1111&nbsp;1111", "card"),
        ("my login is ada / S3cure-Horse-99", "password"),
        ("the login code is 889123", "password"),
        ("D\u0415 89 3704 0044 0532 0130 00", "iban"),
    ]
    results = await save(agent, *({"content": content} for content, _ in secrets))
    for (content, cls), result in zip(secrets, results, strict=True):
        assert (result["action"], result["reason"]) == ("skip", f"holds a secret: {cls}"), content


@pytest.mark.req("CASH-12")
async def test_a_single_purchase_is_skipped_and_a_possession_is_kept(agent: httpx.AsyncClient) -> None:
    results = await save(
        agent,
        {"content": "I bought coffee for $4."},
        {"content": "I bought coffee for $4 yesterday"},
        {"content": "I bought a car for $900 yesterday"},
    )
    assert [result["action"] for result in results] == ["skip", "skip", "insert"]
    assert results[0]["reason"] == "a temporary state"


async def test_infer_without_a_model_says_what_to_configure(agent: httpx.AsyncClient) -> None:
    refused = await agent.post(MEMORIES, json={"memories": [{"content": "I live in Oslo"}], "infer": True})
    problem = refused.json()
    assert (refused.status_code, problem["title"]) == (501, "Not configured")
    assert "GRAPHMEM_LLM_MODEL" in problem["detail"]
    assert await current_contents(agent) == set()


@pytest.mark.req("CASH-11", "CASH-13")
async def test_a_change_is_checked_like_a_save(agent: httpx.AsyncClient) -> None:
    (result,) = await save(agent, {"content": "Mara rows"})
    path = f"{MEMORIES}/{result['memory']['id']}"
    low = await agent.patch(path, json={"confidence": 0.3})
    assert low.status_code == 422
    assert "at least 0.5" in low.text
    (pin,) = await save(agent, {"content": "Mara has a phone", "predicate": "PIN_4321"})
    assert (pin["action"], pin["reason"]) == ("skip", "holds a secret: password")
