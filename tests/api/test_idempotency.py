"""Idempotency keys over HTTP: a write that is sent again happens once and gets the first response again."""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from fastapi.responses import JSONResponse, Response
from graphmem_api import route_classes
from graphmem_api.app import create_app
from graphmem_api.dependencies import Caller as RequestingKey
from graphmem_api.dependencies import IdempotentRequestDep, OwnerInPath, ServicesDep
from graphmem_api.idempotency import IdempotentResponder
from pydantic import BaseModel

from graphmem.app.bootstrap import Services
from graphmem.consolidation.models import ConsolidationIn, RunAccepted
from graphmem.conversations.session import MessagesIn, SessionIn
from graphmem.memories.memory import MemoryPatch, SaveIn, SaveOut
from graphmem.neo4j.availability import limit_database_time
from graphmem.neo4j.driver import Graph
from graphmem.runtime.errors import DatabaseUnavailable
from graphmem.runtime.settings import Settings
from graphmem.runtime.times import utc_now
from graphmem.tenants.idempotency import IdempotentRequest
from graphmem.tenants.owners import Owner
from tests.api.conftest import Caller, serve_app

MEMORIES = "/v1/users/mara/memories"
SAVE_BODY = {"memories": [{"content": "Mara likes tea", "tags": ["drinks"], "confidence": 0.7}]}


def idempotency_headers(key: str | None = None) -> dict[str, str]:
    return {"Idempotency-Key": key or uuid.uuid4().hex}


@pytest.mark.req("GO-02")
async def test_same_key_and_body_replays_the_first_response(agent: httpx.AsyncClient) -> None:
    headers = idempotency_headers()
    first = await agent.post(MEMORIES, json=SAVE_BODY, headers=headers)
    again = await agent.post(MEMORIES, json=SAVE_BODY, headers=headers)
    assert first.status_code == again.status_code == 200
    assert again.content == first.content
    assert "idempotent-replay" not in first.headers
    assert again.headers["idempotent-replay"] == "true"
    assert again.headers["content-type"] == first.headers["content-type"]
    memory = first.json()["results"][0]["memory"]
    assert (await agent.get(f"{MEMORIES}/{memory['id']}")).json()["confidence"] == memory["confidence"]


@pytest.mark.req("GO-02")
async def test_headers_of_the_first_response_are_replayed_except_of_records_without_them(
    agent: httpx.AsyncClient, graph: Graph
) -> None:
    saved = (await agent.post(MEMORIES, json=SAVE_BODY)).json()["results"][0]["memory"]
    headers = idempotency_headers()
    address = f"{MEMORIES}/{saved['id']}"
    first = await agent.patch(address, json={"importance": 0.9}, headers=headers)
    again = await agent.patch(address, json={"importance": 0.9}, headers=headers)
    assert first.headers["etag"] == again.headers["etag"] == '"2"'
    assert again.headers["idempotent-replay"] == "true"
    changed = await agent.patch(address, json={"importance": 0.8}, headers={"If-Match": again.headers["etag"]})
    assert changed.status_code == 200

    of_before = "MATCH (i:IdempotentRequest {key: $key}) REMOVE i.headers"
    await graph.write(lambda transaction: transaction.run_text(of_before, {"key": headers["Idempotency-Key"]}))
    older = await agent.patch(address, json={"importance": 0.9}, headers=headers)
    assert (older.status_code, older.content) == (200, first.content)
    assert older.headers["idempotent-replay"] == "true"


@pytest.mark.req("GO-02")
async def test_json_bodies_are_compared_by_value(agent: httpx.AsyncClient) -> None:
    headers = {**idempotency_headers(), "content-type": "application/json"}
    first = await agent.post(MEMORIES, content='{"memories": [{"content": "a", "type": "fact"}]}', headers=headers)
    again = await agent.post(MEMORIES, content='{"memories":[{"type":"fact","content":"a"}]}', headers=headers)
    assert again.content == first.content
    assert again.headers["idempotent-replay"] == "true"


@pytest.mark.req("GO-02")
async def test_same_key_with_another_request_is_409(agent: httpx.AsyncClient) -> None:
    headers = idempotency_headers()
    saved = (await agent.post(MEMORIES, json=SAVE_BODY, headers=headers)).json()["results"][0]["memory"]
    other = {"memories": [{"content": "Mara likes coffee"}]}
    refused = await agent.post(MEMORIES, json=other, headers=headers)
    assert refused.status_code == 409
    assert refused.json()["type"] == "urn:graphmem:problem:idempotency-conflict"
    assert (await agent.get(MEMORIES)).json()["items"][0]["id"] == saved["id"]
    assert len((await agent.get(MEMORIES)).json()["items"]) == 1

    one = f"{MEMORIES}/{saved['id']}"
    headers = idempotency_headers()
    assert (await agent.patch(one, json={"importance": 0.9}, headers=headers)).status_code == 200
    elsewhere = await agent.patch(f"{MEMORIES}/{uuid.uuid4()}", json={"importance": 0.9}, headers=headers)
    assert elsewhere.status_code == 409
    stale = await agent.patch(one, json={"importance": 0.9}, headers={**headers, "If-Match": '"1"'})
    assert stale.status_code == 409


async def test_idempotency_key_is_scoped_to_route_user_and_tenant(agent: httpx.AsyncClient, caller: Caller) -> None:
    headers = idempotency_headers()
    elsewhere = await caller("agent", of="t" + uuid.uuid4().hex[:12])
    answers = [
        await agent.post(MEMORIES, json=SAVE_BODY, headers=headers),
        await agent.post("/v1/users/omar/memories", json=SAVE_BODY, headers=headers),
        await elsewhere.post(MEMORIES, json=SAVE_BODY, headers=headers),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert len({answer.json()["results"][0]["memory"]["id"] for answer in answers}) == 3


@pytest.mark.req("GO-02")
async def test_concurrent_requests_run_once_and_share_the_response(agent: httpx.AsyncClient) -> None:
    headers = idempotency_headers()
    answers = await asyncio.gather(*(agent.post(MEMORIES, json=SAVE_BODY, headers=headers) for _ in range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert sum("idempotent-replay" not in answer.headers for answer in answers) == 1
    assert [row["version"] for row in await history_of(agent, answers[0])] == [1]


async def history_of(agent: httpx.AsyncClient, saved: httpx.Response) -> list[dict[str, object]]:
    memory = saved.json()["results"][0]["memory"]
    answer = await agent.get(f"{MEMORIES}/{memory['id']}/history")
    rows: list[dict[str, object]] = answer.json()["items"]
    return rows


@pytest.mark.req("GO-02")
async def test_client_error_is_replayed(agent: httpx.AsyncClient) -> None:
    headers = idempotency_headers()
    bad = {"memories": [{"content": "x", "type": "rumour"}]}
    first = await agent.post(MEMORIES, json=bad, headers=headers)
    again = await agent.post(MEMORIES, json=bad, headers=headers)
    assert first.status_code == again.status_code == 422
    assert again.content == first.content
    assert again.headers["idempotent-replay"] == "true"
    assert again.headers["content-type"] == "application/problem+json"


async def test_response_without_body_is_replayed(agent: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
    key = (await admin.post("/v1/admin/keys", json={"name": "x", "role": "agent"})).json()
    headers = idempotency_headers()
    assert (await admin.delete(f"/v1/admin/keys/{key['id']}", headers=headers)).status_code == 204
    again = await admin.delete(f"/v1/admin/keys/{key['id']}", headers=headers)
    assert again.status_code == 204
    assert again.content == b""
    assert again.headers["idempotent-replay"] == "true"


async def test_created_key_is_replayed_only_to_its_creator_and_stored_encrypted(
    admin: httpx.AsyncClient, caller: Caller, tenant: str, graph: Graph
) -> None:
    headers, body = idempotency_headers(), {"name": "bot", "role": "agent"}
    first = await admin.post("/v1/admin/keys", json=body, headers=headers)
    again = await admin.post("/v1/admin/keys", json=body, headers=headers)
    assert again.content == first.content
    assert len((await admin.get("/v1/admin/keys")).json()["items"]) == 2
    second_admin = await caller("admin")
    assert (await second_admin.post("/v1/admin/keys", json=body, headers=headers)).status_code == 409
    assert first.json()["key"] not in str(await stored_requests(graph, tenant))


async def stored_requests(graph: Graph, tenant: str) -> list[dict[str, object]]:
    text = "MATCH (i:IdempotentRequest {tenant: $tenant}) RETURN i {.*} AS request"
    return await graph.read(lambda transaction: transaction.run_text(text, {"tenant": tenant}))


async def test_malformed_idempotency_key_is_422(agent: httpx.AsyncClient) -> None:
    for key in ("", "two words", "x" * 256, "schlüssel"):
        answer = await agent.post(MEMORIES, json=SAVE_BODY, headers={b"Idempotency-Key": key.encode()})
        assert answer.status_code == 422, key
        assert answer.json()["errors"][0]["loc"] == ["header", "Idempotency-Key"], key


async def test_reads_ignore_the_idempotency_key(agent: httpx.AsyncClient) -> None:
    headers = idempotency_headers()
    await agent.post("/v1/users/mara/search", json={"query": "tea"}, headers=headers)
    again = await agent.post("/v1/users/mara/search", json={"query": "coffee"}, headers=headers)
    assert again.status_code == 200
    assert "idempotent-replay" not in again.headers


class FlakyRoute:
    """A route that counts its runs and fails `failures` times."""

    def __init__(self) -> None:
        self.reset()
        self.router = APIRouter(route_class=route_classes.WriteRoute)
        self.router.post("/v1/users/{user_id:segment}/flaky")(self.act)

    def reset(self) -> None:
        """Begin anew, for the next test."""
        self.runs = 0
        self.failures = 0
        self.started = asyncio.Event()
        self.release = asyncio.Event()
        self.release.set()

    async def act(self, owner: OwnerInPath) -> JSONResponse:
        self.runs += 1
        self.started.set()
        await self.release.wait()
        if self.failures:
            self.failures -= 1
            raise DatabaseUnavailable("Neo4j cannot be reached.")
        return JSONResponse({"run": self.runs})


async def test_server_error_is_not_stored_for_replay(flaky: FlakyRoute, failing_agent: httpx.AsyncClient) -> None:
    flaky.failures = 1
    headers = idempotency_headers()
    failed = await failing_agent.post("/v1/users/mara/flaky", headers=headers)
    assert failed.status_code == 503
    assert int(failed.headers["retry-after"]) > 0
    done = await failing_agent.post("/v1/users/mara/flaky", headers=headers)
    assert done.json() == {"run": 2}
    assert (await failing_agent.post("/v1/users/mara/flaky", headers=headers)).json() == {"run": 2}
    assert flaky.runs == 2


async def test_a_request_that_has_taken_all_its_time_runs_again_at_once(
    services: Services, graph: Graph, tenant: str
) -> None:
    responder = IdempotentResponder(services.idempotency)
    request = IdempotentRequest(Owner(tenant, "mara"), "POST /slow", uuid.uuid4().hex, "the same")
    runs = list[int]()

    async def use_up_the_time() -> Response:
        runs.append(1)
        while len(runs) == 1:
            await graph.verify_connectivity()
        return Response(status_code=204)

    async def allow(_: str) -> None:
        """Refuse nobody."""

    with limit_database_time(1.0), pytest.raises(DatabaseUnavailable, match="longer than 1 seconds"):
        await responder.respond(request, use_up_the_time, allow)
    async with asyncio.timeout(60):
        assert (await responder.respond(request, use_up_the_time, allow)).status_code == 204


@pytest.mark.req("GO-02")
async def test_a_second_request_waits_for_the_first(flaky: FlakyRoute, failing_agent: httpx.AsyncClient) -> None:
    flaky.release.clear()
    headers = idempotency_headers()
    first = asyncio.create_task(failing_agent.post("/v1/users/mara/flaky", headers=headers))
    await flaky.started.wait()
    second = asyncio.create_task(failing_agent.post("/v1/users/mara/flaky", headers=headers))
    await asyncio.sleep(0.3)
    assert not second.done()
    flaky.release.set()
    assert (await first).json() == (await second).json() == {"run": 1}
    assert flaky.runs == 1


@pytest.mark.req("QUINN-25")
async def test_erasing_a_memory_blanks_the_responses_that_hold_it(
    agent: httpx.AsyncClient, admin: httpx.AsyncClient, tenant: str, graph: Graph
) -> None:
    headers = idempotency_headers()
    saved = (await agent.post(MEMORIES, json=SAVE_BODY, headers=headers)).json()["results"][0]["memory"]
    assert (await admin.delete(f"{MEMORIES}/{saved['id']}", params={"hard": "true"})).status_code == 200
    assert "tea" not in str(await stored_requests(graph, tenant))
    again = await agent.post(MEMORIES, json=SAVE_BODY, headers=headers)
    assert again.status_code == 410


@contextmanager
def refusing_jobs(settings: Settings) -> Iterator[None]:
    """Let the job store take no jobs, as one whose disk is full."""
    with closing(sqlite3.connect(settings.data_dir / "jobs.sqlite")) as jobs:
        jobs.execute(
            "CREATE TRIGGER full BEFORE INSERT ON workflow_status BEGIN SELECT RAISE(FAIL, 'disk is full'); END"
        )
        yield
        jobs.execute("DROP TRIGGER full")


class LateFailure:
    """Routes that write like those of the API and fail after the write, `failures` times."""

    def __init__(self) -> None:
        self.failures = 1
        self.router = APIRouter(route_class=route_classes.WriteRoute)
        self.router.post("/v1/users/{user_id:segment}/late/messages")(self.add_messages)
        self.router.post("/v1/users/{user_id:segment}/late/memories")(self.save)
        self.router.patch("/v1/users/{user_id:segment}/late/memories/{memory_id}")(self.patch)
        self.router.post("/v1/users/{user_id:segment}/late/sessions")(self.open_session)
        self.admin_router = APIRouter(route_class=route_classes.AdminWriteRoute)
        self.admin_router.post("/v1/admin/late/consolidations")(self.consolidate)

    async def add_messages(
        self, owner: OwnerInPath, services: ServicesDep, body: MessagesIn, request: IdempotentRequestDep
    ) -> Response:
        return self.answer(await services.messages.add(owner, body, request=request))

    async def save(
        self, owner: OwnerInPath, services: ServicesDep, body: SaveIn, request: IdempotentRequestDep
    ) -> Response:
        return self.answer(SaveOut(results=await services.memories.save(owner, body.memories, request=request)))

    async def patch(
        self,
        owner: OwnerInPath,
        memory_id: str,
        services: ServicesDep,
        body: MemoryPatch,
        request: IdempotentRequestDep,
    ) -> Response:
        return self.answer(await services.memories.patch(owner, memory_id, body, if_version=1, request=request))

    async def open_session(
        self, owner: OwnerInPath, services: ServicesDep, body: SessionIn, request: IdempotentRequestDep
    ) -> Response:
        return self.answer(await services.messages.open_session(owner, body, request=request))

    async def consolidate(
        self, caller: RequestingKey, services: ServicesDep, body: ConsolidationIn, request: IdempotentRequestDep
    ) -> Response:
        run_id = await services.consolidations.start(caller.tenant, user_id=body.user_id, request=request)
        assert isinstance(run_id, str)
        return self.answer(RunAccepted(run_id=run_id))

    def answer(self, result: BaseModel) -> Response:
        if self.failures:
            self.failures -= 1
            self.lost = result
            raise DatabaseUnavailable("Neo4j cannot be reached.")
        return JSONResponse(result.model_dump(mode="json"))


@dataclass
class FailingServer:
    """A server with the failing routes of this module: to make an app takes longer than most tests."""

    address: str
    flaky: FlakyRoute
    late: LateFailure


@pytest.fixture(scope="module")
async def failing_server(services: Services, settings: Settings) -> AsyncIterator[FailingServer]:
    app: FastAPI = create_app(services, settings)
    flaky, late = FlakyRoute(), LateFailure()
    for router in (flaky.router, late.router, late.admin_router):
        app.include_router(router)
    async with serve_app(app) as address:
        yield FailingServer(address, flaky, late)


@pytest.fixture
async def failing_agent(failing_server: FailingServer, agent: httpx.AsyncClient) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=failing_server.address, headers=agent.headers) as client:
        yield client


@pytest.fixture
async def flaky(failing_server: FailingServer) -> FlakyRoute:
    failing_server.flaky.reset()
    return failing_server.flaky


@pytest.fixture
async def late(failing_server: FailingServer) -> LateFailure:
    failing_server.late.failures = 1
    return failing_server.late


@pytest.mark.req("GO-02")
async def test_messages_stored_before_a_server_error_are_not_stored_again(
    late: LateFailure, failing_agent: httpx.AsyncClient
) -> None:
    late.failures = 2
    headers = idempotency_headers()
    body = {"messages": [{"role": "user", "content": "I moved to Lund"}, {"role": "user", "content": "I like it"}]}
    answers = [await failing_agent.post("/v1/users/mara/late/messages", json=body, headers=headers) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503, 503, 200]
    assert answers[-1].json() == late.lost.model_dump(mode="json")
    sessions = (await failing_agent.get("/v1/users/mara/sessions")).json()["items"]
    assert [session["message_count"] for session in sessions] == [2]
    listed = await failing_agent.get(f"/v1/users/mara/sessions/{sessions[0]['session_id']}/messages")
    assert [message["id"] for message in listed.json()["items"]] == answers[-1].json()["message_ids"]
    assert (await failing_agent.get(f"/v1/jobs/{answers[-1].json()['job_id']}")).status_code == 200


@pytest.mark.req("GO-02")
async def test_memories_saved_before_a_server_error_are_neither_saved_nor_reinforced_again(
    late: LateFailure, failing_agent: httpx.AsyncClient
) -> None:
    headers = idempotency_headers()
    first = await failing_agent.post("/v1/users/mara/late/memories", json=SAVE_BODY, headers=headers)
    again = await failing_agent.post("/v1/users/mara/late/memories", json=SAVE_BODY, headers=headers)
    assert (first.status_code, again.status_code) == (503, 200)
    assert again.json() == late.lost.model_dump(mode="json")
    memory = again.json()["results"][0]["memory"]
    assert again.json()["results"][0]["action"] == "insert"
    assert (await failing_agent.get(f"{MEMORIES}/{memory['id']}")).json()["confidence"] == memory["confidence"]
    other = {"memories": [{"content": "Mara likes coffee"}]}
    refused = await failing_agent.post("/v1/users/mara/late/memories", json=other, headers=headers)
    assert refused.status_code == 409


@pytest.mark.req("GO-02")
async def test_changes_before_a_server_error_are_made_once(late: LateFailure, failing_agent: httpx.AsyncClient) -> None:
    saved = (await failing_agent.post(MEMORIES, json=SAVE_BODY)).json()["results"][0]["memory"]
    headers = idempotency_headers()
    change = {"importance": 0.9}
    path = f"/v1/users/mara/late/memories/{saved['id']}"
    answers = [await failing_agent.patch(path, json=change, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [503, 200]
    assert answers[1].json()["version"] == 2
    late.failures = 1
    opened = [
        await failing_agent.post("/v1/users/mara/late/sessions", json={"title": "Boats"}, headers=headers)
        for _ in range(2)
    ]
    assert [answer.status_code for answer in opened] == [503, 200]
    assert len((await failing_agent.get("/v1/users/mara/sessions")).json()["items"]) == 1


@pytest.mark.req("QUINN-25")
async def test_erasing_a_memory_also_erases_it_from_a_write_that_had_no_response(
    late: LateFailure, failing_agent: httpx.AsyncClient, admin: httpx.AsyncClient, tenant: str, graph: Graph
) -> None:
    headers = idempotency_headers()
    assert (
        await failing_agent.post("/v1/users/mara/late/memories", json=SAVE_BODY, headers=headers)
    ).status_code == 503
    (memory,) = (await failing_agent.get(MEMORIES)).json()["items"]
    assert (await admin.delete(f"{MEMORIES}/{memory['id']}", params={"hard": "true"})).status_code == 200
    assert "tea" not in str(await stored_requests(graph, tenant))
    again = await failing_agent.post("/v1/users/mara/late/memories", json=SAVE_BODY, headers=headers)
    assert again.status_code == 410


@pytest.mark.req("GO-02")
async def test_a_job_store_that_refuses_jobs_makes_no_copies_of_messages(
    services: Services, settings: Settings, agent: httpx.AsyncClient
) -> None:
    body = {"messages": [{"role": "user", "content": "I moved to Lund"}]}
    headers = idempotency_headers()
    with refusing_jobs(settings):
        failed = [await agent.post("/v1/users/mara/messages", json=body, headers=headers) for _ in range(2)]
    assert {answer.status_code for answer in failed} <= {500, 503}
    taken = await agent.post("/v1/users/mara/messages", json=body, headers=headers)
    assert taken.status_code == 202
    (session,) = (await agent.get("/v1/users/mara/sessions")).json()["items"]
    assert session["message_count"] == 1
    assert (await agent.get(f"/v1/jobs/{taken.json()['job_id']}")).status_code == 200


RUNS = "/v1/admin/consolidations"


@pytest.mark.req("GO-02")
@pytest.mark.parametrize("target", [{"user_id": "mara"}, {}], ids=["a user", "all users"])
async def test_a_run_whose_start_was_not_answered_is_not_started_again(
    late: LateFailure, failing_agent: httpx.AsyncClient, admin: httpx.AsyncClient, target: dict[str, str]
) -> None:
    enough = [{"content": f"Mara likes tea number {number}"} for number in range(8)]
    await failing_agent.post(MEMORIES, json={"memories": enough})
    headers = {**admin.headers, **idempotency_headers()}
    answers = [
        await failing_agent.post("/v1/admin/late/consolidations", json=target, headers=headers) for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [503, 200]
    assert answers[1].json() == late.lost.model_dump(mode="json")
    listed = (await admin.get(RUNS)).json()["items"]
    assert [run["id"] for run in listed] == [answers[1].json()["run_id"]]
    assert len(listed[0]["parts"]) == (0 if target else 1)


@pytest.mark.req("GO-02")
async def test_a_run_that_could_not_be_queued_is_queued_by_the_repetition(
    settings: Settings, agent: httpx.AsyncClient, admin: httpx.AsyncClient
) -> None:
    await agent.post(MEMORIES, json=SAVE_BODY)
    headers, body = idempotency_headers(), {"user_id": "mara", "wait": True}
    with refusing_jobs(settings):
        assert (await admin.post(RUNS, json=body, headers=headers)).status_code in (500, 503)
    run = (await admin.post(RUNS, json=body, headers=headers)).json()
    assert run["status"] == "succeeded"
    assert [run["id"] for run in (await admin.get(RUNS)).json()["items"]] == [run["id"]]


MOVE: dict[str, Any] = {
    "userId": "user_12345",
    "messages": [
        {
            "role": "user",
            "content": "I am moving from New York to London next month for a new software engineering role.",
        },
        {"role": "model", "content": "That is a big move! Congratulations on the new role in London."},
    ],
}
"""A request for insertion as a caller sends it who gives neither ids nor a key."""


async def stored_turns(client: httpx.AsyncClient, user: str = "user_12345") -> list[str]:
    """The texts of all messages of a user."""
    sessions = (await client.get(f"/v1/users/{user}/sessions")).json()["items"]
    pages = [
        (await client.get(f"/v1/users/{user}/sessions/{session['session_id']}/messages")).json()["items"]
        for session in sessions
    ]
    return [message["content"] for page in pages for message in page]


@pytest.mark.req("GO-02")
async def test_a_payload_without_ids_and_key_is_stored_once_at_once_and_an_hour_later(
    agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, services: Services
) -> None:
    answers = await asyncio.gather(*(agent.post("/v1/memories", json=MOVE) for _ in range(4)))
    assert {answer.status_code for answer in answers} == {202}
    episodes = services.components.episodes
    monkeypatch.setattr(episodes, "_clock", lambda: utc_now() + timedelta(hours=1))
    spaced = {**MOVE, "messages": [{**turn, "content": f" {turn['content']}  "} for turn in MOVE["messages"]]}
    answers.append(await agent.post("/v1/memories", json=spaced))
    assert len({(answer.json()["session_id"], *answer.json()["message_ids"]) for answer in answers}) == 1
    assert await stored_turns(agent) == [turn["content"] for turn in MOVE["messages"]]
    monkeypatch.setattr(episodes, "_clock", lambda: utc_now() + timedelta(days=3))
    later = await agent.post("/v1/memories", json=MOVE)
    assert later.json()["session_id"] != answers[0].json()["session_id"]


@pytest.mark.req("GO-02")
async def test_turns_that_are_said_again_later_in_a_conversation_are_stored_again(agent: httpx.AsyncClient) -> None:
    async def say(role: str, content: str) -> None:
        body = {"session_id": "s", "messages": [{"role": role, "content": content}], "extract": False}
        assert (await agent.post("/v1/users/mara/messages", json=body)).status_code == 202

    for role, content in (("user", "Yes"), ("user", "Yes"), ("assistant", "More?"), ("user", "Yes"), ("user", "Yes")):
        await say(role, content)
    assert await stored_turns(agent, "mara") == ["Yes", "More?", "Yes"]


async def test_a_replay_is_refused_as_a_new_request_would_be_once_the_right_to_the_space_has_ended(
    admin: httpx.AsyncClient, caller: Caller
) -> None:
    members = [{"user": "ann", "role": "owner"}, {"user": "bob", "role": "writer"}]
    await admin.put("/v1/spaces/atlas", json={"title": "Atlas", "members": members})
    bob = await caller("agent", users=["bob"])
    statement = {"content": "The launch is in Zanzibar", "space": "atlas"}
    turns = [{"role": "user", "content": "The launch is in Zanzibar"}]
    saved = (await bob.post("/v1/users/bob/memories", json={"memories": [statement]})).json()["results"][0]["memory"]
    requests: list[tuple[str, str, Any]] = [
        ("POST", "/v1/users/bob/memories", {"memories": [statement]}),
        ("PATCH", f"/v1/users/bob/memories/{saved['id']}", {"importance": 0.9}),
        ("POST", "/v1/users/bob/messages", {"space": "atlas", "messages": turns, "extract": False}),
        ("POST", "/v1/users/bob/sessions", {"space": "atlas"}),
    ]
    keyed = [(method, path, body, idempotency_headers()) for method, path, body in requests]

    async def send_all() -> list[httpx.Response]:
        return [await bob.request(method, path, json=body, headers=headers) for method, path, body, headers in keyed]

    first = await send_all()
    assert all(answer.is_success for answer in first), [answer.text for answer in first]
    again = await send_all()
    assert [answer.content for answer in again] == [answer.content for answer in first]
    assert {answer.headers["idempotent-replay"] for answer in again} == {"true"}
    own = idempotency_headers()
    mine = await bob.post("/v1/users/bob/memories", json=SAVE_BODY, headers=own)

    await admin.put("/v1/spaces/atlas/members/bob", json={"role": "reader"})
    assert [answer.status_code for answer in await send_all()] == [403] * len(keyed)
    await admin.delete("/v1/spaces/atlas/members/bob")
    for answer in await send_all():
        assert answer.status_code == 404
        assert "Zanzibar" not in answer.text
    assert (await bob.post("/v1/users/bob/memories", json=SAVE_BODY, headers=own)).content == mine.content

    await admin.put("/v1/spaces/atlas/members/bob", json={"role": "writer"})
    assert [answer.content for answer in await send_all()] == [answer.content for answer in first]


async def test_a_replay_tells_a_former_owner_nothing_of_the_space_and_an_erasure_stays_answered(
    admin: httpx.AsyncClient, caller: Caller
) -> None:
    ann, zoe = await caller("agent", users=["ann"]), await caller("agent", users=["zoe"])
    body = {"title": "Zanzibar", "members": [{"user": "ann", "role": "owner"}]}
    headers = idempotency_headers()
    made = await ann.put("/v1/spaces/atlas", json=body, headers=headers)
    assert (await ann.put("/v1/spaces/atlas", json=body, headers=headers)).content == made.content
    await admin.put("/v1/spaces/atlas/members/zoe", json={"role": "owner"})
    await admin.delete("/v1/spaces/atlas/members/ann")
    refused = await ann.put("/v1/spaces/atlas", json=body, headers=headers)
    assert (refused.status_code, "Zanzibar" in refused.text) == (404, False)
    headers = idempotency_headers()
    erased = await zoe.delete("/v1/spaces/atlas", headers=headers)
    assert (await zoe.delete("/v1/spaces/atlas", headers=headers)).content == erased.content
