"""Secrets in requests: every field that is stored is read."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

CARD = "4111 1111 1111 1111"


@pytest.mark.req("CASH-11")
@pytest.mark.parametrize(
    "fields",
    [
        {"predicate": "PAYS_WITH_4111_1111_1111_1111"},
        {"subject": {"name": "Mara", "type": "Card 4111 1111 1111 1111"}},
        {"object": {"name": CARD}},
        {"entities": [{"name": "wallet"}, {"name": "wallet", "type": "Holds 4111111111111111"}]},
        {"source": {"session_id": CARD}},
        {"source": {"message_ids": ["m1", CARD]}},
        {"domain": CARD},
        {"tags": ["shopping", CARD]},
        {"metadata": {"numbers": [4111, 1111, 1111, 1111]}},
        {"metadata": {"deep": [{"er": {CARD: 1}}]}},
    ],
)
async def test_statement_with_a_secret_in_any_field_is_not_stored(agent: httpx.AsyncClient, fields: Any) -> None:
    saved = await agent.post("/v1/users/mara/memories", json={"memories": [{"content": "Mara pays", **fields}]})
    (result,) = saved.json()["results"]
    assert (result["action"], result["reason"]) == ("skip", "holds a secret: card"), saved.text
    assert (await agent.get("/v1/users/mara/memories")).json()["items"] == []


@pytest.mark.req("CASH-11")
@pytest.mark.parametrize(
    "fields",
    [{"session_id": CARD}, {"title": f"About {CARD}"}, {"topic_tags": [CARD]}, {"metadata": {"card": CARD}}],
)
async def test_session_with_a_secret_in_any_field_is_422(agent: httpx.AsyncClient, fields: Any) -> None:
    refused = await agent.post("/v1/users/mara/sessions", json=fields)
    assert refused.status_code == 422
    assert "(card)" in refused.text
    assert "1111" not in refused.text
    assert (await agent.get("/v1/users/mara/sessions")).json()["items"] == []
