"""Forgetting a user over HTTP."""

from __future__ import annotations

import uuid

import httpx
import pytest

MEMORIES = "/v1/users/mara/memories"


@pytest.mark.req("GO-02")
async def test_forget_leaves_no_residue_and_is_replayed(agent: httpx.AsyncClient, admin: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": uuid.uuid4().hex}
    await agent.post(MEMORIES, json={"memories": [{"content": "Mara lives in Lisbon"}]}, headers=key)
    first = await admin.delete("/v1/users/mara", headers=key)
    assert first.status_code == 200
    assert first.json()["residue"] == 0
    again = await admin.delete("/v1/users/mara", headers=key)
    assert again.content == first.content
    assert again.headers["idempotent-replay"] == "true"
    assert (await agent.get(MEMORIES)).json()["items"] == []
