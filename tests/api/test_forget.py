"""Forgetting a user over HTTP."""

from __future__ import annotations

import uuid

import httpx
import pytest

from graphmem.app.bootstrap import Services
from graphmem.runtime.times import utc_now
from graphmem.tenants.owners import Owner
from graphmem.user_data.forget import ForgetStore

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


async def test_a_write_during_the_erasure_is_refused_and_can_be_sent_again_afterwards(
    services: Services, agent: httpx.AsyncClient, admin: httpx.AsyncClient, tenant: str
) -> None:
    key = {"Idempotency-Key": uuid.uuid4().hex}
    body = {"memories": [{"content": "Mara lives in Lisbon"}]}
    await ForgetStore(services.components.graph, utc_now).begin(Owner(tenant, "mara"))
    refused = await agent.post(MEMORIES, json=body, headers=key)
    assert (refused.status_code, refused.json()["title"]) == (409, "User being forgotten")
    assert "request it again" in refused.json()["detail"]
    assert int(refused.headers["retry-after"]) > 0
    assert (await agent.get(MEMORIES)).json()["items"] == []
    assert (await admin.delete("/v1/users/mara")).json()["residue"] == 0
    assert (await agent.post(MEMORIES, json=body, headers=key)).status_code == 200
    assert len((await agent.get(MEMORIES)).json()["items"]) == 1
