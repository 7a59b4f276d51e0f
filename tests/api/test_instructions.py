"""Custom instructions of a tenant: read, set and removed by admins."""

from __future__ import annotations

import uuid

import httpx

from tests.api.conftest import Caller

PATH = "/v1/admin/instructions"
WISH = "Remember allergies and birthdays. Leave out what is said about colleagues."


async def test_an_admin_sets_reads_and_removes_the_instructions(admin: httpx.AsyncClient) -> None:
    assert (await admin.get(PATH)).json() == {"text": "", "updated_at": None, "updated_by": None}
    made = await admin.post(PATH, json={"text": f"  {WISH}\n"})
    assert made.status_code == 200
    assert made.json()["text"] == WISH
    assert made.json()["updated_by"]
    assert (await admin.get(PATH)).json() == made.json()
    assert (await admin.post(PATH, json={"text": " "})).json()["text"] == ""
    assert (await admin.get(PATH)).json()["text"] == ""


async def test_instructions_are_short_and_hold_no_secret(admin: httpx.AsyncClient) -> None:
    assert (await admin.post(PATH, json={"text": "x" * 2001})).status_code == 422
    refused = await admin.post(PATH, json={"text": "Always save the card 4242 4242 4242 4242."})
    assert refused.status_code == 422
    assert "4242" not in refused.text
    assert (await admin.get(PATH)).json()["text"] == ""


async def test_only_admins_of_the_tenant_see_and_change_them(
    admin: httpx.AsyncClient, agent: httpx.AsyncClient, caller: Caller
) -> None:
    await admin.post(PATH, json={"text": WISH})
    assert (await agent.get(PATH)).status_code == 403
    assert (await agent.post(PATH, json={"text": "Everything."})).status_code == 403
    other = await caller("admin", of=f"t{uuid.uuid4().hex[:12]}")
    assert (await other.get(PATH)).json()["text"] == ""
    assert (await admin.get(PATH)).json()["text"] == WISH
