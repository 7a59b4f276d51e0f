"""A walk over every route of the API with members, former members and strangers of a space."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tests.api.conftest import Caller

SECRET = "Zanzibar"
"""The word that nobody but members may be told."""

BODIES: dict[str, Any] = {
    "/memories": {"memories": [{"content": "A stranger was here", "space": "atlas"}]},
    "/memories/{memory_id}": {"content": "A stranger was here"},
    "/messages": {"space": "atlas", "messages": [{"role": "user", "content": "A stranger was here"}]},
    "/messages/search": {"query": "Where is the launch?", "spaces": ["atlas"]},
    "/messages/{message_id}/feedback": {"score": 5},
    "/search": {"query": "Where is the launch?", "spaces": ["atlas"]},
    "/sessions": {"space": "atlas"},
    "/sessions/{session_id}/enhance": {"reply": "The launch is somewhere.", "question": "Where is the launch?"},
    "/context": {"question": "Where is the launch?", "spaces": ["atlas"]},
    "/context/{context_id}/feedback": {"score": 5},
    "/contexts": {"type": "goal", "key": "launch", "value": "somewhere"},
    "/persona": {"weights": {}},
    "/import": {},
}
"""Bodies of requests by the end of the path; those about spaces name one."""

SPACE_BODIES = {"": {"title": "Mine"}, "/members/{member_id}": {"role": "owner"}}


async def fill(admin: httpx.AsyncClient) -> dict[str, str]:
    """Make a space with a memory, messages and a job; return the values of the parameters of paths."""
    members = [{"user": user, "role": role} for user, role in (("ann", "owner"), ("cy", "reader"))]
    await admin.put("/v1/spaces/atlas", json={"title": f"Team {SECRET}", "about": SECRET, "members": members})
    statement = {
        "content": f"The launch is in {SECRET}",
        "space": "atlas",
        "subject": {"name": f"Launch of {SECRET}", "type": "Event"},
    }
    saved = await admin.post("/v1/users/ann/memories", json={"memories": [statement]})
    memory = saved.json()["results"][0]["memory"]
    said = {"id": "m1", "role": "user", "content": f"The launch is in {SECRET}"}
    batch = {"session_id": "standup", "space": "atlas", "messages": [said], "wait": True}
    job = (await admin.post("/v1/users/ann/messages", json=batch)).json()
    context = (await admin.post("/v1/users/ann/context", json={"question": "Where is the launch?"})).json()
    assert SECRET in context["preamble"]
    return {
        "memory_id": memory["id"],
        "entity_id": memory["subject"]["id"],
        "session_id": "standup",
        "message_id": "m1",
        "job_id": job["id"],
        "context_id": context["context_id"],
        "space_id": "atlas",
        "member_id": "ann",
        "item_id": "none",
    }


def requests_of(document: dict[str, Any], user: str, ids: dict[str, str]) -> list[dict[str, Any]]:
    """Return a request of each route about a user, a job or a space, with the space wherever it may be named."""
    requests = []
    for path, methods in document["paths"].items():
        if not path.startswith(("/v1/users/{user_id}", "/v1/jobs", "/v1/spaces")):
            continue
        for method, route in methods.items():
            given = {item["name"]: item for item in route.get("parameters", []) if item["in"] == "query"}
            params: dict[str, Any] = {name: "atlas" for name in ("space", "spaces") if name in given}
            if "q" in given:
                params["q"] = f"launch of {SECRET.lower()}"
            end = path.removeprefix("/v1/users/{user_id}").removeprefix("/v1/spaces/{space_id}")
            bodies = SPACE_BODIES if path.startswith("/v1/spaces") else BODIES
            request = {
                "method": method.upper(),
                "url": path.format(user_id=user, **ids),
                "params": params,
                "json": bodies.get(end, {}) if "requestBody" in route else None,
            }
            requests.append(request)
            if params.keys() & {"space", "spaces"}:
                plain = {name: value for name, value in params.items() if name not in ("space", "spaces")}
                requests.append({**request, "params": plain})
    return requests


@pytest.mark.timeout(300)
@pytest.mark.parametrize("role", ["agent", pytest.param("analyst", marks=pytest.mark.long)])
async def test_strangers_and_former_members_are_told_nothing_by_any_route(
    admin: httpx.AsyncClient, caller: Caller, app: FastAPI, role: str
) -> None:
    ids = await fill(admin)
    document = app.openapi()
    member = await caller(role, users=["cy"])
    asked = await member.post("/v1/users/cy/search", json={"query": "Where is the launch?"})
    assert SECRET in asked.text
    assert (await member.get(f"/v1/jobs/{ids['job_id']}")).status_code == 200
    assert (await admin.delete("/v1/spaces/atlas/members/cy")).status_code == 204
    for user in ("dora", "cy"):
        client = await caller(role, users=[user])
        requests = requests_of(document, user, ids)
        assert len(requests) > 60
        for request in requests:
            answer = await client.request(**request)
            assert SECRET not in answer.text, request
            assert answer.status_code != 500, request
            named = [*request["params"].values(), *(request["json"] or {}).values()]
            if "atlas" in named or ["atlas"] in named or request["url"].startswith(("/v1/jobs", "/v1/spaces/")):
                assert answer.status_code in (403, 404, 422), (request, answer.text)
    kept = await admin.get("/v1/users/ann/memories")
    assert [memory["content"] for memory in kept.json()["items"]] == [f"The launch is in {SECRET}"]
    assert len((await admin.get("/v1/spaces/atlas")).json()["members"]) == 1


async def test_a_reader_changes_nothing_by_any_route(admin: httpx.AsyncClient, caller: Caller, app: FastAPI) -> None:
    ids = await fill(admin)
    before = await admin.get("/v1/users/ann/export", params={"space": "atlas"})
    reader = await caller("agent", users=["cy"])
    for request in requests_of(app.openapi(), "cy", ids):
        if request["method"] != "GET" and not request["url"].endswith(("/search", "/context", "/enhance")):
            answer = await reader.request(**request)
            assert answer.status_code != 500, (request, answer.text)
    after = await admin.get("/v1/users/ann/export", params={"space": "atlas"})
    assert [fact["properties"]["fact"] for fact in after.json()["memories"]] == [
        fact["properties"]["fact"] for fact in before.json()["memories"]
    ]
    assert len((await admin.get("/v1/spaces/atlas")).json()["members"]) == 2
