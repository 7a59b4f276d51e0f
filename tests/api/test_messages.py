"""Messages, sessions and jobs over HTTP."""

from __future__ import annotations

import uuid
from urllib.parse import quote

import httpx
import pytest

from graphmem.app.bootstrap import Services
from graphmem.jobs.kinds import SYSTEM_PARTITION
from graphmem.tenants.owners import Owner
from tests.api.conftest import Caller

MESSAGES = "/v1/users/mara/messages"
MEMORIES = "/v1/users/mara/memories"
SESSIONS = "/v1/users/mara/sessions"
TURNS = [
    {"role": "user", "content": "I moved to Lisbon last week."},
    {"role": "model", "content": "How do you like Lisbon?"},
]


@pytest.mark.req("GO-01", "UMB-01")
async def test_messages_are_stored_immediately_and_extracted_in_background(agent: httpx.AsyncClient) -> None:
    taken = await agent.post(MESSAGES, json={"session_id": "s/1", "messages": TURNS})
    assert taken.status_code == 202
    accepted = taken.json()
    assert accepted.keys() == {"job_id", "session_id", "message_ids"}
    assert len(accepted["message_ids"]) == 2

    listed = (await agent.get(f"{SESSIONS}/s%2F1/messages")).json()["items"]
    assert [(message["id"], message["role"]) for message in listed] == list(
        zip(accepted["message_ids"], ["user", "assistant"], strict=True)
    )
    job = await agent.get(f"/v1/jobs/{accepted['job_id']}")
    assert job.status_code == 200
    assert job.json()["kind"] == "extraction"
    assert job.json()["receipt"].keys() == {
        "llm_calls",
        "prompt_tokens",
        "completion_tokens",
        "embedded_texts",
        "seconds",
    }


@pytest.mark.req("GO-01")
async def test_user_may_be_given_in_the_body(agent: httpx.AsyncClient) -> None:
    taken = await agent.post("/v1/memories", json={"userId": "mara", "messages": TURNS})
    assert taken.status_code == 202
    session = (await agent.get(f"{SESSIONS}/{taken.json()['session_id']}")).json()
    assert session["message_count"] == 2
    for bad in ({"messages": TURNS}, {"userId": "", "messages": TURNS}, {"userId": "mara", "messages": []}):
        assert (await agent.post("/v1/memories", json=bad)).status_code == 422
    odd = {"userId": "mara", "messages": [{"role": "wizard", "content": "x"}]}
    assert (await agent.post("/v1/memories", json=odd)).status_code == 422


async def test_waiting_answers_the_finished_job(agent: httpx.AsyncClient) -> None:
    answer = await agent.post(MESSAGES, json={"messages": TURNS, "wait": True})
    assert answer.status_code == 200
    assert answer.json()["status"] == "skipped"
    assert answer.json()["reason"]


async def test_without_extraction_there_is_no_job(agent: httpx.AsyncClient) -> None:
    answer = await agent.post(MESSAGES, json={"messages": TURNS, "extract": False, "wait": True})
    assert answer.status_code == 202
    assert answer.json()["job_id"] is None


@pytest.mark.req("GO-02")
async def test_messages_with_a_known_id_are_not_stored_twice(agent: httpx.AsyncClient) -> None:
    turns = [{**turn, "id": f"m{number}"} for number, turn in enumerate(TURNS)]
    for _ in range(2):
        await agent.post(MESSAGES, json={"session_id": "s", "messages": turns, "extract": False})
    listed = (await agent.get(f"{SESSIONS}/s/messages")).json()["items"]
    assert [message["id"] for message in listed] == ["m0", "m1"]


@pytest.mark.req("QUINN-41")
@pytest.mark.parametrize("session", [{"session_id": "mixed"}, {}])
async def test_a_repeated_batch_in_which_some_messages_have_an_id_is_not_stored_twice(
    agent: httpx.AsyncClient, session: dict[str, str]
) -> None:
    turns = [{"id": "first", "role": "user", "content": "alpha"}, {"role": "user", "content": "beta"}]
    body = {**session, "extract": False, "messages": turns}
    first, again = [(await agent.post(MESSAGES, json=body)).json() for _ in range(2)]
    assert (again["session_id"], again["message_ids"]) == (first["session_id"], first["message_ids"])
    listed = (await agent.get(f"{SESSIONS}/{first['session_id']}/messages")).json()["items"]
    assert [message["content"] for message in listed] == ["alpha", "beta"]


async def test_of_two_messages_with_one_id_in_a_batch_the_first_is_stored(agent: httpx.AsyncClient) -> None:
    turns = [{"id": "twice", "role": "user", "content": text} for text in ("the first text", "another text")]
    await agent.post(MESSAGES, json={"session_id": "twice", "extract": False, "messages": turns})
    listed = (await agent.get(f"{SESSIONS}/twice/messages")).json()["items"]
    assert [message["content"] for message in listed] == ["the first text"]


async def test_inaccessible_job_gets_the_same_404_as_an_unknown_job(agent: httpx.AsyncClient, caller: Caller) -> None:
    job_id = (await agent.post(MESSAGES, json={"messages": TURNS})).json()["job_id"]
    mine = await caller("analyst", users=["mara"])
    assert (await mine.get(f"/v1/jobs/{job_id}")).status_code == 200
    strangers = [await caller("agent", users=["omar"]), await caller("admin", of="t" + uuid.uuid4().hex[:12])]
    for stranger in strangers:
        for method, tail in (("GET", ""), ("POST", "/retry")):
            theirs = await stranger.request(method, f"/v1/jobs/{job_id}{tail}")
            unknown = await stranger.request(method, f"/v1/jobs/{uuid.uuid4()}{tail}")
            assert theirs.status_code == 404
            assert theirs.content == unknown.content


async def test_jobs_are_listed_of_a_user_or_for_admins_of_the_tenant(agent: httpx.AsyncClient, caller: Caller) -> None:
    jobs = [(await agent.post(MESSAGES, json={"messages": TURNS, "session_id": f"s{n}"})).json() for n in range(3)]
    ids = [job["job_id"] for job in reversed(jobs)]
    mine = await caller("analyst", users=["mara"])
    first = (await mine.get("/v1/jobs", params={"user_id": "mara", "limit": 2})).json()
    rest = (await mine.get("/v1/jobs", params={"user_id": "mara", "cursor": first["next_cursor"]})).json()
    listed = [job["id"] for job in first["items"] + rest["items"]]
    assert [job_id for job_id in listed if job_id in ids] == ids
    assert len(set(listed)) == len(listed)
    assert (await mine.get("/v1/jobs", params={"user_id": "omar"})).status_code == 403
    assert (await mine.get("/v1/jobs")).status_code == 403
    assert (await mine.get("/v1/jobs", params={"space": "of-others"})).status_code == 404
    admin = await caller("admin")
    assert set(ids) <= {job["id"] for job in (await admin.get("/v1/jobs", params={"limit": 200})).json()["items"]}
    assert (await admin.get("/v1/jobs", params={"status": "failed", "user_id": "mara"})).json()["items"] == []
    stranger = await caller("admin", of="t" + uuid.uuid4().hex[:12])
    assert (await stranger.get("/v1/jobs")).json()["items"] == []


async def test_only_a_failed_job_is_retried(agent: httpx.AsyncClient) -> None:
    job = (await agent.post(MESSAGES, json={"messages": TURNS, "wait": True})).json()
    assert (await agent.post(f"/v1/jobs/{job['id']}/retry")).status_code == 409


async def test_sessions_are_opened_listed_paged_and_closed(agent: httpx.AsyncClient) -> None:
    for name in ("a", "b", "c"):
        assert (await agent.post(SESSIONS, json={"session_id": name, "title": name})).status_code == 201
    assert (await agent.post(SESSIONS, json={"session_id": "a"})).status_code == 409
    first = (await agent.get(SESSIONS, params={"limit": 2})).json()
    rest = (await agent.get(SESSIONS, params={"limit": 2, "cursor": first["next_cursor"]})).json()
    assert {session["session_id"] for session in first["items"] + rest["items"]} == {"a", "b", "c"}
    assert rest["next_cursor"] is None
    closed = await agent.post(f"{SESSIONS}/a/close")
    assert (closed.status_code, closed.json()["is_active"]) == (200, False)
    assert (await agent.get(f"{SESSIONS}/nothing")).status_code == 404


async def test_readyz_reports_ready(anonymous: httpx.AsyncClient) -> None:
    answer = await anonymous.get("/readyz")
    assert answer.json() == {"status": "ready", "parts": {"neo4j": "ok", "jobs": "ok", "disk": "ok"}}


@pytest.mark.req("CASH-01", "CASH-02", "CASH-07")
async def test_triggered_extraction_runs_in_its_own_session(agent: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
    trigger, body = "/_admin/trigger-memory-extraction-v2", {"session_id": "chat"}
    assert (await admin.post(trigger, json=body)).status_code == 404
    await agent.post(MESSAGES, json={"session_id": "chat", "messages": TURNS, "extract": False})
    before = (await agent.get(f"{SESSIONS}/chat/messages")).json()

    answer = (await admin.post(trigger, json=body)).json()
    assert answer["triggered"] is True
    started = answer["message"].removeprefix("Memory extraction triggered, session ID: ")
    assert started not in ("chat", answer["message"])
    assert (await agent.get(f"{SESSIONS}/{started}")).json()["source_session_id"] == "chat"
    again = (await admin.post(trigger, json=body)).json()
    assert again["message"] != answer["message"]
    assert (await agent.get(f"{SESSIONS}/chat/messages")).json() == before

    await agent.post("/v1/users/omar/messages", json={"session_id": "chat", "messages": TURNS, "extract": False})
    assert (await admin.post(trigger, json=body)).status_code == 409
    assert (await admin.post(trigger, json={**body, "user_id": "omar"})).status_code == 200


async def test_maintenance_jobs_are_not_readable_by_a_tenant_named_maintenance(
    services: Services, admin: httpx.AsyncClient, caller: Caller, tenant: str
) -> None:
    assert (await admin.post("/v1/admin/maintenance", json={"tasks": ["decay"]})).status_code == 200
    assert await services.jobs.list(Owner("maintenance", tenant).group_id) == []
    [job] = await services.jobs.list(f"{SYSTEM_PARTITION}maintenance:{tenant}")
    stranger = await caller("admin", of="maintenance")
    assert (await stranger.get(f"/v1/jobs/{job.id}")).status_code == 404


@pytest.mark.parametrize(
    "given",
    [
        "می\u200cخواهم",
        "👩\u200d🚀",
        pytest.param("Mara\u00a0Lind", marks=pytest.mark.long),
        pytest.param("naïve ü", marks=pytest.mark.long),
    ],
)
async def test_ids_of_every_script_are_kept_as_they_are(admin: httpx.AsyncClient, given: str) -> None:
    said = {"session_id": given, "messages": [TURNS[0] | {"id": given}], "extract": False}
    path = f"/v1/users/{quote(given)}"
    assert (await admin.post(f"{path}/messages", json=said)).status_code in (200, 202)
    [message] = (await admin.get(f"{path}/sessions/{quote(given)}/messages")).json()["items"]
    assert (message["id"], message["session_id"], message["user_id"]) == (given, given, given)


@pytest.mark.parametrize(
    "bad",
    [
        "a\r\nb",
        pytest.param("tab\there", marks=pytest.mark.long),
        pytest.param("esc\x1b[2J", marks=pytest.mark.long),
        pytest.param("hidden\u200bmark", marks=pytest.mark.long),
        "turned\u202etext",
    ],
)
async def test_no_id_that_a_caller_chooses_has_control_characters(
    admin: httpx.AsyncClient, agent: httpx.AsyncClient, bad: str
) -> None:
    path, turn = quote(bad), TURNS[0]
    said = {"session_id": "s", "messages": [turn]}
    saved = {"content": "Likes tea"}
    refused = [
        await agent.post(MESSAGES, json={"session_id": "s", "messages": [turn | {"id": bad}]}),
        await agent.post(MESSAGES, json={"session_id": bad, "messages": [turn]}),
        await admin.post(f"/v1/users/{path}/messages", json=said),
        await agent.post(MEMORIES, json={"memories": [saved | {"source": {"session_id": bad}}]}),
        await agent.post(MEMORIES, json={"memories": [saved | {"source": {"message_ids": [bad]}}]}),
        await agent.get(MEMORIES, params={"session_id": bad}),
        await admin.post("/v1/admin/keys", json={"name": bad, "role": "analyst"}),
        await admin.post("/v1/admin/keys", json={"name": "n", "role": "agent", "users": [bad]}),
        await admin.post("/v1/admin/webhooks", json={"url": "https://example.com/hook", "users": [bad]}),
        await admin.put(f"/v1/spaces/{path}", json={"title": "t", "members": [{"user": "mara", "role": "owner"}]}),
        await admin.put("/v1/spaces/atlas", json={"title": "t", "members": [{"user": bad, "role": "owner"}]}),
    ]
    assert [answer.status_code for answer in refused] == [422] * len(refused), [answer.text for answer in refused]
    assert [answer.text for answer in refused if "control characters" not in answer.text] == []
