"""Every error is a problem document that does not quote the input."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import uuid
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest
from fastapi import FastAPI
from graphmem_api.app import create_app
from graphmem_api.request_body import parse_json
from graphmem_api.route_classes import AuthenticatedRoute

from graphmem.app.bootstrap import Services
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import MAX_JSON_DEPTH
from graphmem.runtime.settings import Settings
from tests.api.conftest import BODY_LIMIT, serve_app

MEMORIES = "/v1/users/mara/memories"
JSON = {"content-type": "application/json"}
PROBLEM = "application/problem+json"


async def test_unknown_route_and_wrong_method_are_problem_documents(anonymous: httpx.AsyncClient) -> None:
    unknown = await anonymous.get("/v2/nothing")
    assert (unknown.status_code, unknown.headers["content-type"]) == (404, PROBLEM)
    assert unknown.json() == {
        "type": "urn:graphmem:problem:not-found",
        "title": "Not found",
        "status": 404,
        "detail": "There is no such route: see /docs.",
        "instance": "/v2/nothing",
    }
    wrong = await anonymous.put("/healthz")
    assert (wrong.status_code, wrong.headers["content-type"]) == (405, PROBLEM)
    assert wrong.headers["allow"] == "GET"


UNUSABLE_BODIES = [
    b"",
    b"{",
    b"[]",
    b"null",
    b'"text"',
    b"\xff\xfe",
    b'{"memories": [{"content": "\xc3\x28"}]}',
    b'{"memories": [{"content": "\\ud800"}]}',
    b'{"memories": [{"content": "a\\u0000b"}]}',
    b'{"memories": [{"content": "x", "metadata": {"\\udfff": 1}}]}',
    b'{"memories": [{"content": "x", "confidence": NaN}]}',
    b'{"memories": [{"content": "x", "confidence": Infinity}]}',
    b'{"memories": [{"content": "x", "confidence": 1e999}]}',
    b'{"memories": [{"content": "x", "metadata": {"n": 123456789012345678901234567890}}]}',
    b'{"memories": [{"content": "x", "metadata": {"n": ' + b"9" * 5000 + b"}}]}",
    b"[" * 100_000,
    b'{"memories":' * 10_000 + b"1" + b"}" * 10_000,
    b'{"memories": [{"content": "x", "metadata": {"a": ' + b"[" * 100 + b"]" * 100 + b"}}]}",
    b'{"memories": []}',
    b'{"memories": [{"content": ""}]}',
    b'{"memories": [{"content": "x"}, {"content": "y", "confidence": 2}]}',
    b'{"memories": [{"content": "x", "valid_at": "2026-05-01T12:00:00"}]}',
    b'{"memories": [{"content": "x"}], "extra": 1}',
]


async def test_unusable_bodies_are_422_and_write_nothing(agent: httpx.AsyncClient) -> None:
    for body in UNUSABLE_BODIES:
        answer = await agent.post(MEMORIES, content=body, headers=JSON)
        assert answer.status_code == 422, (body[:80], answer.text)
        assert answer.headers["content-type"] == PROBLEM
        assert all(error.keys() == {"loc", "msg"} for error in answer.json()["errors"]), body[:80]
    assert (await agent.get(MEMORIES)).json()["items"] == []


async def test_validation_errors_do_not_echo_input(agent: httpx.AsyncClient) -> None:
    secret = "kestrel 4111"
    body = {
        "memories": [
            {
                "content": 7,
                "type": secret,
                "tags": [f"!{secret}"],
                "valid_at": secret,
                "scope": secret,
                "predicate": secret,
            },
            {"content": "x", "confidence": secret, "subject": {"name": secret, "type": "!!!"}, "expires_at": secret},
        ]
    }
    answer = await agent.post(MEMORIES, json=body)
    assert answer.status_code == 422
    places = [error["loc"] for error in answer.json()["errors"]]
    assert ["body", "memories", 0, "predicate"] in places
    assert ["body", "memories", 1, "confidence"] in places
    assert "kestrel" not in answer.text


@pytest.mark.parametrize("type", ["User", "Migration", "ApiKey", "Entity"])
async def test_reserved_label_as_entity_type_is_replaced(agent: httpx.AsyncClient, type: str) -> None:
    body = {"memories": [{"content": "x", "subject": {"name": "Rex", "type": type}}]}
    answer = await agent.post(MEMORIES, json=body)
    assert answer.status_code == 200
    assert answer.json()["results"][0]["memory"]["subject"]["type"] in ("Person", "Thing")


async def test_query_parameters_are_checked_too(agent: httpx.AsyncClient) -> None:
    for query in (
        "limit=0",
        "limit=201",
        "limit=x",
        "sort=name",
        "unknown=1",
        "valid_as_of=yesterday",
        "cursor=zzz",
        "type=x",
    ):
        answer = await agent.get(f"{MEMORIES}?{query}")
        assert answer.status_code == 422, query
        assert answer.headers["content-type"] == PROBLEM


async def test_wrong_content_type_names_the_expected_one(agent: httpx.AsyncClient) -> None:
    answer = await agent.post(MEMORIES, content=b"{}", headers={"content-type": "text/plain"})
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"loc": ["header", "Content-Type"], "msg": "must be application/json"}]


async def test_body_over_the_limit_is_413_with_or_without_content_length(agent: httpx.AsyncClient) -> None:
    at_limit = b'{"memories": [{"content": "x"}]}'.ljust(BODY_LIMIT)
    assert (await agent.post(MEMORIES, content=at_limit, headers=JSON)).status_code == 200

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(30):
            yield b" " * (BODY_LIMIT // 10)

    announced = await agent.post(MEMORIES, content=at_limit + b" ", headers=JSON)
    chunked = await agent.post(MEMORIES, content=chunks(), headers=JSON)
    no_json = await agent.post(MEMORIES, content=b"[" * (BODY_LIMIT + 1), headers=JSON)
    for answer in (announced, chunked, no_json):
        assert answer.status_code == 413
        assert answer.json()["type"] == "urn:graphmem:problem:too-large"


async def test_endless_body_gets_413_while_it_is_sent(address: str, agent: httpx.AsyncClient) -> None:
    url = urlsplit(address)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    response = asyncio.create_task(reader.readuntil(b"\r\n\r\n"))
    head = (
        f"POST {MEMORIES} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Transfer-Encoding: chunked\r\nAuthorization: {agent.headers['authorization']}\r\n\r\n"
    )
    writer.write(head.encode())
    sent_bytes = 0
    while not response.done() and sent_bytes < 1000 * BODY_LIMIT:
        writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
        await writer.drain()
        await asyncio.sleep(0)
        sent_bytes += 0x10000
    assert sent_bytes < 1000 * BODY_LIMIT
    assert (await response).startswith(b"HTTP/1.1 413 ")
    writer.close()


async def test_a_user_id_may_hold_any_character(agent: httpx.AsyncClient) -> None:
    for user in ("a/b", "x:y", "über straße", "100%", "a%2Fb", "q?u#", "日本", "a\\b"):
        path = f"/v1/users/{quote(user, safe='')}/memories"
        saved = await agent.post(path, json={"memories": [{"content": "Likes tea"}]})
        assert saved.status_code == 200, (user, saved.text)
        assert saved.json()["results"][0]["memory"]["user_id"] == user
        assert [item["user_id"] for item in (await agent.get(path)).json()["items"]] == [user]


async def test_invalid_user_id_is_422(agent: httpx.AsyncClient) -> None:
    for user in ("%20", "%00", "%ff", "%20mara", "x" * 256):
        answer = await agent.get(f"/v1/users/{user}/memories")
        assert answer.status_code == 422, user
        assert answer.headers["content-type"] == PROBLEM


async def test_every_answer_carries_a_request_id(anonymous: httpx.AsyncClient) -> None:
    answer = await anonymous.get("/healthz", headers={"X-Request-ID": "trace-42"})
    assert answer.headers["x-request-id"] == "trace-42"
    for bad in ("", "a b", "x" * 129, '"><script>', "a\tb"):
        answer = await anonymous.get("/nothing", headers={"X-Request-ID": bad})
        assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-request-id"])


async def test_internal_error_is_500_without_stack_trace_and_is_logged(
    services: Services, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    app: FastAPI = create_app(services, settings)

    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("Mara likes tea")

    async with serve_app(app) as address, httpx.AsyncClient(base_url=address) as client:
        answer = await client.get("/broken", headers={"X-Request-ID": "r-1"})
    assert answer.status_code == 500
    assert answer.headers["content-type"] == PROBLEM
    assert answer.headers["x-request-id"] == "r-1"
    assert "Mara" not in answer.text
    assert "Traceback" not in answer.text
    assert any(record.message == "a request failed" for record in caplog.records)


async def test_log_lines_name_the_route_and_not_the_user(
    agent: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    user = "u" + uuid.uuid4().hex
    with caplog.at_level(logging.INFO):
        await agent.post(f"/v1/users/{user}/memories", json={"memories": [{"content": "kestrel"}]})
    lines = [record for record in caplog.records if record.name == "graphmem_api.middleware"]
    logged = [vars(line) for line in lines]
    assert [(line["route"], line["status"]) for line in logged] == [("/v1/users/{user_id}/memories", 200)]
    assert not any(word in str(record.__dict__) for record in lines for word in ("kestrel", user))


async def test_metrics_count_requests_by_route(admin: httpx.AsyncClient) -> None:
    await admin.get(MEMORIES)
    answer = await admin.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    line = r'graphmem_http_requests_total\{method="GET",route="/v1/users/\{user_id\}/memories",status="200"\} \d+'
    assert re.search(line, answer.text)


async def test_versions_are_etags(agent: httpx.AsyncClient) -> None:
    saved = (await agent.post(MEMORIES, json={"memories": [{"content": "x"}]})).json()["results"][0]["memory"]
    one = f"{MEMORIES}/{saved['id']}"
    assert (await agent.get(one)).headers["etag"] == '"1"'
    changed = await agent.patch(one, json={"content": "y"}, headers={"If-Match": '"1"'})
    assert changed.headers["etag"] == '"2"'
    stale = await agent.patch(one, json={"content": "z"}, headers={"If-Match": '"1"'})
    assert stale.status_code == 409
    assert stale.json()["title"] == "Version conflict"
    assert (await agent.patch(one, json={"content": "z"}, headers={"If-Match": "first"})).status_code == 422


@pytest.mark.parametrize("depth", [MAX_JSON_DEPTH + 1, 2_000, 200_000])
def test_deeply_nested_json_is_rejected(depth: int) -> None:
    with pytest.raises(InvalidInput):
        parse_json(b"[" * depth + b"]" * depth)
    assert parse_json(b"[" * MAX_JSON_DEPTH + b"]" * MAX_JSON_DEPTH)


def test_json_numbers_keep_their_value() -> None:
    assert parse_json(json.dumps([2**63 - 1, -(2**63) + 1, 0.1, 1e308]).encode()) == [
        2**63 - 1,
        -(2**63) + 1,
        0.1,
        1e308,
    ]
    for text in (b"9223372036854775808", b"1e309", b"-Infinity"):
        with pytest.raises(InvalidInput):
            parse_json(text)


@pytest.mark.parametrize(
    ("method", "path", "sent", "loc", "says"),
    [
        ("POST", "/search", {"query": "home", "limits": 3}, ["body", "limits"], "did you mean limit?"),
        ("POST", "/memories", {"memories": [{"contend": "x"}]}, ["body", "memories", 0, "contend"], "mean content?"),
        ("POST", "/memories", {"content": "x"}, ["body", "content"], "is not a field: the fields are memories"),
        ("POST", "/memories", {"memories": [{"content": "x", "validAt": 1}]}, None, "did you mean valid_at?"),
        ("GET", "/memories", {"min_importanc": "1"}, ["query", "min_importanc"], "did you mean min_importance?"),
    ],
)
async def test_unknown_field_names_the_one_that_was_meant(
    agent: httpx.AsyncClient, method: str, path: str, sent: dict[str, object], loc: list[str | int] | None, says: str
) -> None:
    given: dict[str, Any] = {"params": sent} if method == "GET" else {"json": sent}
    answer = await agent.request(method, f"/v1/users/mara{path}", **given)
    assert answer.status_code == 422
    [error] = [error for error in answer.json()["errors"] if says in error["msg"]]
    assert loc in (None, error["loc"])


async def test_many_errors_are_reported_in_part(agent: httpx.AsyncClient) -> None:
    answer = await agent.post("/v1/users/mara/memories", json={"memories": [{} for _ in range(500)]})
    assert answer.status_code == 422
    assert len(answer.json()["errors"]) == 20
    assert "The first 20 of 500 errors are listed." in answer.json()["detail"]


async def test_a_body_of_many_fields_is_refused_before_they_are_looked_at(
    agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AuthenticatedRoute, "max_fields", 1_000)
    memory: dict[str, object] = {"content": "x", **{f"field{number}": 1 for number in range(2_000)}}
    pairs = [{"content": "x: y", "metadata": {"a": number}} for number in range(400)]
    bodies: list[list[object]] = [[memory], [*pairs], [{} for _ in range(2_000)], ["x"] * 2_000]
    for memories in bodies:
        answer = await agent.post("/v1/users/mara/memories", json={"memories": memories})
        assert answer.status_code == 422
        assert answer.json()["errors"] == [{"loc": ["body"], "msg": "has too many fields"}]
