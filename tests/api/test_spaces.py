"""Spaces over HTTP: what members write and read, and what strangers are told."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

from tests.api.conftest import Caller

MEMBERS = [
    {"user": "ann", "role": "owner"},
    {"user": "bob", "role": "writer"},
    {"user": "cy", "role": "reader"},
]


async def make_space(client: httpx.AsyncClient, space: str = "atlas", **fields: Any) -> dict[str, Any]:
    body = {"title": "Team Atlas", "about": "What concerns the Atlas project.", "members": MEMBERS, **fields}
    answer = await client.put(f"/v1/spaces/{space}", json=body)
    assert answer.status_code in (200, 201), answer.text
    made: dict[str, Any] = answer.json()
    return made


async def save(client: httpx.AsyncClient, user: str, content: str, space: str | None = None, **fields: Any) -> Any:
    memory = {"content": content, "space": space, **fields}
    return await client.post(f"/v1/users/{user}/memories", json={"memories": [memory]})


async def found(client: httpx.AsyncClient, user: str, query: str, **fields: Any) -> dict[str, str | None]:
    """Return the space of each memory that a search finds, by its content."""
    answer = await client.post(f"/v1/users/{user}/search", json={"query": query, **fields})
    assert answer.status_code == 200, answer.text
    return {hit["memory"]["content"]: hit["memory"]["space"] for hit in answer.json()["results"]}


async def test_a_space_is_created_changed_listed_and_read(admin: httpx.AsyncClient) -> None:
    answer = await admin.put("/v1/spaces/atlas", json={"title": "Atlas", "about": "Work.", "members": MEMBERS})
    assert answer.status_code == 201
    assert answer.json()["members"] == MEMBERS
    again = await admin.put("/v1/spaces/atlas", json={"title": "Team Atlas"})
    assert (again.status_code, again.json()["title"], again.json()["members"]) == (200, "Team Atlas", MEMBERS)
    assert [space["id"] for space in (await admin.get("/v1/spaces")).json()["items"]] == ["atlas"]
    assert (await admin.get("/v1/spaces/atlas")).json() == again.json()
    assert (await admin.get("/v1/spaces/unknown")).status_code == 404


async def test_members_read_what_a_member_saved_and_each_hit_says_where_it_is_from(admin: httpx.AsyncClient) -> None:
    await make_space(admin)
    saved = await save(admin, "bob", "The launch of Atlas is on Friday", "atlas")
    assert saved.status_code == 200, saved.text
    memory = saved.json()["results"][0]["memory"]
    assert (memory["space"], memory["user_id"], memory["source"]["speaker"]) == ("atlas", None, "bob")
    assert memory["subject"]["name"] == "bob"
    await save(admin, "cy", "Cy likes the launch of rockets")
    assert await found(admin, "cy", "launch") == {
        "The launch of Atlas is on Friday": "atlas",
        "Cy likes the launch of rockets": None,
    }
    assert await found(admin, "cy", "launch", spaces="none") == {"Cy likes the launch of rockets": None}
    assert "The launch of Atlas is on Friday" in await found(admin, "cy", "launch", spaces=["atlas"])
    for user in ("ann", "bob"):
        assert await found(admin, user, "launch") == {"The launch of Atlas is on Friday": "atlas"}
    assert await found(admin, "dora", "launch") == {}


async def test_lists_lookups_and_entities_cover_spaces(admin: httpx.AsyncClient) -> None:
    await make_space(admin)
    saved = await save(admin, "bob", "Mara leads Atlas", "atlas", subject={"name": "Mara", "type": "Person"})
    memory = saved.json()["results"][0]["memory"]
    for user, expected in (("cy", [memory["id"]]), ("dora", [])):
        path = f"/v1/users/{user}"
        listed = (await admin.get(f"{path}/memories")).json()["items"]
        assert [item["id"] for item in listed] == expected
        looked_up = (await admin.get(f"{path}/entities/lookup", params={"q": "Mara"})).json()["entities"]
        assert [item["id"] for known in looked_up for item in known["memories"]] == expected
        assert (await admin.get(f"{path}/memories/{memory['id']}")).status_code == (200 if expected else 404)
        assert (await admin.get(f"{path}/memories/{memory['id']}/history")).status_code == (200 if expected else 404)
        entity = await admin.get(f"{path}/entities/{memory['subject']['id']}/memories")
        assert entity.status_code == (200 if expected else 404)
    nothing = await admin.get("/v1/users/cy/memories", params={"spaces": "none"})
    assert nothing.json()["items"] == []
    alone = await admin.get("/v1/users/cy/memories", params={"space": "atlas", "spaces": "none"})
    assert {memory["space"] for memory in alone.json()["items"]} == {"atlas"}
    assert (await admin.get("/v1/users/dora/memories", params={"space": "atlas"})).status_code == 404
    chosen = await admin.get("/v1/users/cy/memories", params={"spaces": ["atlas"]})
    assert [item["id"] for item in chosen.json()["items"]] == [memory["id"]]


async def test_a_reader_who_writes_gets_403_and_a_stranger_404_as_for_no_space(admin: httpx.AsyncClient) -> None:
    await make_space(admin)
    memory = (await save(admin, "bob", "The launch is on Friday", "atlas")).json()["results"][0]["memory"]
    assert (await save(admin, "cy", "No, on Monday", "atlas")).status_code == 403
    assert (await admin.patch(f"/v1/users/cy/memories/{memory['id']}", json={"content": "No"})).status_code == 403
    assert (await admin.delete(f"/v1/users/cy/memories/{memory['id']}")).status_code == 403
    strange = await save(admin, "dora", "On Tuesday", "atlas")
    unknown = await save(admin, "dora", "On Tuesday", "unknown")
    assert strange.status_code == unknown.status_code == 404
    assert strange.json() == unknown.json()
    for spaces in (["atlas"], ["unknown"]):
        answer = await admin.post("/v1/users/dora/search", json={"query": "launch", "spaces": spaces})
        assert answer.status_code == 404
    changed = await admin.patch(f"/v1/users/ann/memories/{memory['id']}", json={"content": "The launch is on Monday"})
    assert (changed.status_code, changed.json()["space"]) == (200, "atlas")


async def test_one_save_writes_to_several_places_or_to_none(admin: httpx.AsyncClient) -> None:
    await make_space(admin)
    both = [{"content": "Bob likes tea"}, {"content": "The team likes coffee", "space": "atlas"}]
    saved = await admin.post("/v1/users/bob/memories", json={"memories": both})
    assert [result["memory"]["space"] for result in saved.json()["results"]] == [None, "atlas"]
    assert await found(admin, "ann", "likes") == {"The team likes coffee": "atlas"}
    one_forbidden = [{"content": "Bob likes cake"}, {"content": "No cake", "space": "unknown"}]
    assert (await admin.post("/v1/users/bob/memories", json={"memories": one_forbidden})).status_code == 404
    assert "Bob likes cake" not in await found(admin, "bob", "cake")


async def test_the_end_of_a_membership_takes_effect_with_the_next_request(admin: httpx.AsyncClient) -> None:
    await make_space(admin)
    await save(admin, "bob", "The launch is on Friday", "atlas")
    assert await found(admin, "cy", "launch")
    assert (await admin.delete("/v1/spaces/atlas/members/cy")).status_code == 204
    assert await found(admin, "cy", "launch") == {}
    assert (await admin.delete("/v1/spaces/atlas/members/cy")).status_code == 404
    given = await admin.put("/v1/spaces/atlas/members/cy", json={"role": "writer"})
    assert {"user": "cy", "role": "writer"} in given.json()["members"]
    assert await found(admin, "cy", "launch")
    assert (await save(admin, "cy", "Cy writes now", "atlas")).status_code == 200


async def test_an_agent_creates_spaces_for_the_users_of_its_key_alone(caller: Caller) -> None:
    ann, bob = await caller("agent", users=["ann"]), await caller("agent", users=["bob"])
    assert (await ann.put("/v1/spaces/atlas", json={"title": "Atlas", "members": MEMBERS})).status_code == 403
    assert (await ann.put("/v1/spaces/atlas", json={"title": "Atlas"})).status_code == 422
    await make_space(ann, members=[{"user": "ann", "role": "owner"}])
    assert (await bob.get("/v1/spaces/atlas")).status_code == 404
    assert (await bob.put("/v1/spaces/atlas", json={"title": "Mine"})).status_code == 404
    assert (await bob.get("/v1/spaces")).json()["items"] == []
    assert (await bob.delete("/v1/spaces/atlas")).status_code == 404
    assert (await ann.put("/v1/spaces/atlas/members/bob", json={"role": "reader"})).status_code == 403


async def test_a_key_is_a_member_and_a_bound_key_reaches_its_spaces_alone(
    admin: httpx.AsyncClient, caller: Caller
) -> None:
    created = (await admin.post("/v1/admin/keys", json={"name": "bot", "role": "agent", "users": ["bot"]})).json()
    await make_space(admin, members=[{"user": "ann", "role": "owner"}, {"key": created["id"], "role": "writer"}])
    bot = httpx.AsyncClient(base_url=admin.base_url, headers={"Authorization": f"Bearer {created['key']}"}, timeout=60)
    async with bot:
        assert (await save(bot, "bot", "The launch is on Friday", "atlas")).status_code == 200
        assert await found(bot, "bot", "launch") == {"The launch is on Friday": "atlas"}
        assert await found(admin, "bot", "launch") == {}
        assert [space["id"] for space in (await bot.get("/v1/spaces")).json()["items"]] == ["atlas"]
    bound = {"name": "other", "role": "agent", "users": ["ann"], "spaces": ["other"]}
    key = (await admin.post("/v1/admin/keys", json=bound)).json()
    assert key["spaces"] == ["other"]
    other = httpx.AsyncClient(base_url=admin.base_url, headers={"Authorization": f"Bearer {key['key']}"}, timeout=60)
    async with other:
        assert await found(other, "ann", "launch") == {}
        assert (await save(other, "ann", "No", "atlas")).status_code == 404
        assert (await other.get("/v1/spaces/atlas")).status_code == 404


async def test_an_id_that_cannot_be_one_of_a_space_is_refused(admin: httpx.AsyncClient) -> None:
    for space in ("all", "none", " atlas", "%20"):
        assert (await admin.put(f"/v1/spaces/{space}", json={"title": "Atlas"})).status_code == 422, space


async def test_a_space_is_no_user(admin: httpx.AsyncClient) -> None:
    await make_space(admin)
    await save(admin, "bob", "The launch is on Friday", "atlas")
    listed = (await admin.get("/v1/users")).json()["items"]
    assert all(not user["user_id"].startswith(" ") for user in listed)
    assert (await admin.get("/v1/users/%20atlas/memories")).status_code == 422
    assert await found(admin, "atlas", "launch") == {}


async def test_a_deleted_space_leaves_nothing_and_refuses_writes(admin: httpx.AsyncClient) -> None:
    await make_space(admin)
    saved = await save(admin, "bob", "The launch is on Friday", "atlas")
    memory_id = saved.json()["results"][0]["memory"]["id"]
    erased = await admin.delete("/v1/spaces/atlas")
    assert (erased.status_code, erased.json()["residue"]) == (200, 0)
    assert erased.json()["erased"]["Fact"] == 1
    assert (await admin.get("/v1/spaces/atlas")).status_code == 404
    assert (await save(admin, "bob", "Again", "atlas")).status_code == 404
    assert (await admin.get(f"/v1/users/bob/memories/{memory_id}")).status_code == 404
    assert await found(admin, "bob", "launch") == {}
    await make_space(admin)
    assert await found(admin, "bob", "launch") == {}


async def test_members_share_a_session_and_each_message_says_who_sent_it(admin: httpx.AsyncClient) -> None:
    await make_space(admin)
    opened = await admin.post("/v1/users/ann/sessions", json={"session_id": "standup", "space": "atlas"})
    assert (opened.status_code, opened.json()["space"], opened.json()["user_id"]) == (201, "atlas", "ann")
    for user, content in (("ann", "The launch moves to Monday"), ("bob", "Then I book the hall for Monday")):
        batch = {
            "session_id": "standup",
            "space": "atlas",
            "messages": [{"id": user, "role": "user", "content": content}],
        }
        assert (await admin.post(f"/v1/users/{user}/messages", json=batch)).status_code == 202
    own = {"session_id": "standup", "messages": [{"id": "ann", "role": "user", "content": "Cy alone: the launch"}]}
    assert (await admin.post("/v1/users/cy/messages", json=own)).status_code == 202
    shared = await admin.get("/v1/users/cy/sessions/standup/messages", params={"space": "atlas"})
    assert [(item["user_id"], item["name"], item["space"]) for item in shared.json()["items"]] == [
        ("ann", "ann", "atlas"),
        ("bob", "bob", "atlas"),
    ]
    assert [item["session_id"] for item in (await admin.get("/v1/users/cy/sessions")).json()["items"]] == ["standup"]
    found = await admin.post("/v1/users/cy/messages/search", json={"query": "launch"})
    hits = {hit["message"]["content"]: hit["message"]["space"] for hit in found.json()["results"]}
    assert hits["The launch moves to Monday"] == "atlas"
    assert hits["Cy alone: the launch"] is None
    searched = await admin.post("/v1/users/cy/search", json={"query": "launch", "include_messages": True})
    evidence = {(item["message_id"], item["space"]) for item in searched.json()["evidence"]}
    assert {("ann", "atlas"), ("ann", None)} <= evidence
    asked = {"question": "What did we say?", "session_id": "standup", "space": "atlas", "recent_messages": True}
    built = (await admin.post("/v1/users/cy/context", json=asked)).json()
    assert "[USER]: Then I book the hall for Monday" in built["preamble"]
    assert built["conversation_summary"]["message_count"] == 2
    assert (await admin.post("/v1/users/dora/context", json=asked)).status_code == 404
    for path in ("", "/messages", "/archives"):
        strange = await admin.get(f"/v1/users/dora/sessions/standup{path}", params={"space": "atlas"})
        assert strange.status_code == 404
    batch = {"space": "atlas", "messages": [{"role": "user", "content": "No"}]}
    assert (await admin.post("/v1/users/cy/messages", json=batch)).status_code == 403
    assert (await admin.post("/v1/users/dora/messages", json=batch)).status_code == 404
    assert (await admin.post("/v1/users/cy/sessions", json={"space": "atlas"})).status_code == 403
    assert (await admin.post("/v1/users/cy/sessions/standup/close", params={"space": "atlas"})).status_code == 403


async def test_a_job_of_a_space_is_its_members_alone(admin: httpx.AsyncClient, caller: Caller) -> None:
    await make_space(admin)
    batch = {"space": "atlas", "messages": [{"role": "user", "content": "The launch moves to Monday"}], "wait": True}
    finished = await admin.post("/v1/users/bob/messages", json=batch)
    job = finished.json()
    assert (finished.status_code, job["space"], job["user_id"]) == (200, "atlas", None)
    cy, dora = await caller("analyst", users=["cy"]), await caller("analyst", users=["dora"])
    assert (await cy.get(f"/v1/jobs/{job['id']}")).status_code == 200
    assert (await dora.get(f"/v1/jobs/{job['id']}")).status_code == 404


async def test_a_memory_of_a_space_was_said_when_its_message_there_was(admin: httpx.AsyncClient) -> None:
    await make_space(admin)
    for space, day in (("atlas", "2024-03-05"), (None, "2020-01-02")):
        turn = {"id": "m1", "role": "user", "content": "The launch is on Friday.", "timestamp": f"{day}T09:00:00Z"}
        body = {"session_id": "s1", "messages": [turn], "space": space}
        assert (await admin.post("/v1/users/ann/messages", json=body)).is_success
    source = {"session_id": "s1", "message_ids": ["m1"]}
    assert (await save(admin, "ann", "The launch of Atlas is on Friday", "atlas", source=source)).is_success
    for _ in range(3):  # by the database, then by the copies in memory
        asked = {"question": "When is the launch of Atlas?", "sources": True}
        built = (await admin.post("/v1/users/ann/context", json=asked)).json()
        [line] = [
            text for text in built["preamble"].splitlines() if text.startswith("- The launch of Atlas is on Friday")
        ]
        assert "said on 2024-03-05" in line


async def test_a_context_shows_memories_of_a_space_under_its_title(admin: httpx.AsyncClient) -> None:
    await make_space(admin)
    await save(admin, "bob", "The launch of Atlas is on Friday", "atlas")
    await save(admin, "bob", "The hall for the launch of Atlas is booked", "atlas", scope="episodic")
    await save(admin, "cy", "Cy likes tea")
    await admin.post(
        "/v1/users/bob/messages",
        json={
            "space": "atlas",
            "messages": [{"role": "user", "content": "Who brings the cake for the launch of Atlas?"}],
        },
    )
    for body in ({"question": "When is the launch of Atlas?"}, {}):
        answer = await admin.post("/v1/users/cy/context", json=body)
        assert answer.status_code == 200, answer.text
        built = answer.json()
        lines = built["preamble"].splitlines()
        assert (
            lines.index("- Cy likes tea")
            < lines.index("Team Atlas:")
            < lines.index("- The launch of Atlas is on Friday")
        )
        assert {memory["space"] for memory in built["memories"]} == {None, "atlas"}
    asked = (await admin.post("/v1/users/cy/context", json={"question": "Who brings the cake for the launch?"})).json()
    assert "Who brings the cake" not in asked["preamble"].partition("## Said before:")[0]
    for user, body in (
        ("cy", {"question": "When is the launch?", "spaces": "none"}),
        ("dora", {"question": "launch?"}),
    ):
        built = (await admin.post(f"/v1/users/{user}/context", json=body)).json()
        assert "Atlas" not in built["preamble"]
    assert (await admin.post("/v1/users/dora/context", json={"spaces": ["atlas"]})).status_code == 404


async def test_a_space_is_exported_consolidated_and_its_changes_are_listed(admin: httpx.AsyncClient) -> None:
    await make_space(admin)
    await save(admin, "bob", "The launch is on Friday", "atlas")
    in_space = {"space": "atlas"}
    exported = await admin.get("/v1/users/cy/export", params=in_space)
    assert "The launch is on Friday" in exported.text
    assert "The launch is on Friday" not in (await admin.get("/v1/users/cy/export")).text
    assert (await admin.get("/v1/users/dora/export", params=in_space)).status_code == 404
    changes = (await admin.get("/v1/users/cy/changes", params=in_space)).json()["items"]
    assert [(change["kind"], change["memory"]["space"]) for change in changes] == [("inserted", "atlas")]
    assert (await admin.get("/v1/users/dora/changes", params=in_space)).status_code == 404
    assert (await admin.get("/v1/users/cy/changes")).json()["items"] == []
    await make_space(admin, "other")
    path, headers = "/v1/users/{}/import", {"Content-Type": "application/json"}
    other = {"space": "other"}
    refused = await admin.post(path.format("cy"), params=other, content=exported.content, headers=headers)
    assert refused.status_code == 403
    imported = await admin.post(path.format("bob"), params=other, content=exported.content, headers=headers)
    assert imported.status_code == 200, imported.text
    assert "other" in (await found(admin, "cy", "launch", spaces=["other"])).values()
    ids = [
        (await save(admin, "bob", f"The hall {words}", "atlas")).json()["results"][0]["memory"]["id"]
        for words in ("is booked for Friday", "was booked by Bob")
    ]
    merge = {
        "action": "MERGE",
        "memory_ids": ids,
        "content": "The hall is booked for Friday by Bob",
        "reason": "one",
        "verified": True,
    }
    run = await admin.post("/v1/admin/consolidations", json={"space": "atlas", "wait": True, "proposals": [merge]})
    assert (run.status_code, run.json()["status"], run.json()["space"]) == (200, "succeeded", "atlas"), run.text
    undone = await admin.post(f"/v1/admin/consolidations/{run.json()['id']}/rollback")
    assert undone.status_code == 200, undone.text
    assert (await admin.post("/v1/admin/consolidations", json={"space": "unknown"})).status_code == 404


async def test_a_forgotten_user_is_no_member_any_more_and_the_space_keeps_what_it_knows(
    admin: httpx.AsyncClient,
) -> None:
    await make_space(admin)
    await save(admin, "bob", "The launch is on Friday", "atlas")
    assert (await admin.delete("/v1/users/bob")).json()["residue"] == 0
    members = (await admin.get("/v1/spaces/atlas")).json()["members"]
    assert [member["user"] for member in members] == ["ann", "cy"]
    assert await found(admin, "bob", "launch") == {}
    assert await found(admin, "cy", "launch") == {"The launch is on Friday": "atlas"}


async def test_a_revoked_key_is_no_member_any_more(admin: httpx.AsyncClient) -> None:
    key = (await admin.post("/v1/admin/keys", json={"name": "bot", "role": "agent"})).json()
    await make_space(admin, members=[{"key": key["id"], "role": "writer"}])
    assert (await admin.delete(f"/v1/admin/keys/{key['id']}")).status_code == 204
    assert (await admin.get("/v1/spaces/atlas")).json()["members"] == []


async def test_what_is_saved_in_several_spaces_is_found_at_once_by_members_who_are_in_memory(
    admin: httpx.AsyncClient,
) -> None:
    for space in ("atlas", "borea"):
        await make_space(admin, space)
    question = {"query": "When is the launch?", "explain": True, "limit": 50}

    async def search(user: str) -> tuple[set[str], set[str]]:
        """Return what a search finds, and where it was searched."""
        answer = await admin.post(f"/v1/users/{user}/search", json=question)
        assert answer.status_code == 200, answer.text
        hits = answer.json()["results"]
        return {hit["memory"]["content"] for hit in hits}, {hit["explain"]["source"] for hit in hits}

    async def save_everywhere(number: int) -> set[str]:
        contents = {space: f"Launch {number} of {space} is on day {number}" for space in ("atlas", "borea")}
        for space, content in contents.items():
            assert (await save(admin, "bob", content, space)).status_code == 200
        return {*contents.values()}

    saved = await save_everywhere(0)
    for user in ("ann", "bob", "cy") * 200:
        if (await search(user))[1] == {"memory"}:
            break
        await asyncio.sleep(0.1)
    for number in range(1, 4):
        saved |= await save_everywhere(number)
        for found, sources in await asyncio.gather(*(search(user) for user in ("ann", "bob", "cy") * 2)):
            assert (found, sources) == (saved, {"memory"})
