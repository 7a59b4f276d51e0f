"""Calls of models while the database does not answer: they go through without memory, and say so."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import httpx
import pytest
from graphmem_api.app import create_app
from pydantic import SecretStr

from graphmem.app.bootstrap import Services
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph
from graphmem.runtime.settings import Settings
from graphmem.tenants import keys
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.api.conftest import serve_app
from tests.faults.proxy import proxy_before
from tests.provider_server import serving_provider

CHAT = "/openai/v1/chat/completions"
ASK = {"model": "m", "messages": [{"role": "user", "content": "I like tea."}]}


async def test_a_call_goes_through_without_memory_and_its_turns_are_stored_later(
    database: Settings, graph: Graph, embedder: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "KEY_TTL_SECONDS", 0.0)
    monkeypatch.setattr("graphmem.chats.service.STORE_PAUSES", (0.5,) * 60)
    assert database.neo4j_uri
    tenant, user = f"t{uuid.uuid4().hex[:12]}", {"X-Graphmem-User": "mara"}
    async with serving_provider() as provider, proxy_before(database.neo4j_uri) as (proxy, uri):
        changed = {"neo4j_uri": uri, "data_dir": tmp_path, "upstream_openai_url": f"{provider.url}/v1"}
        settings = database.model_copy(update={**changed, "upstream_openai_key": SecretStr("sk-ours")})
        async with (
            Services.open(settings, worker=False, embedder=embedder) as services,
            serve_app(create_app(services, settings)) as address,
            httpx.AsyncClient(base_url=address, timeout=60) as client,
        ):
            await services.warm_up.run()
            created = [
                await services.keys.create(tenant, ApiKeyIn(name=name, role=KeyRole.AGENT)) for name in ("used", "new")
            ]
            used, new = ({"Authorization": f"Bearer {key.key}"} for key in created)
            provider.prepare("Hello.", "Noted.", "Noted.")
            answer = await client.post(CHAT, json=ASK, headers={**used, **user, "X-Graphmem-Session": "before"})
            assert answer.headers["x-graphmem-context-id"]
            await services.chats.flush()
            proxy.freeze()
            for _ in range(2):
                answer = await client.post(CHAT, json=ASK, headers={**used, **user, "X-Graphmem-Session": "during"})
                assert answer.json()["choices"][0]["message"]["content"] == "Noted."
                assert answer.headers["x-graphmem-memory"] == "unavailable"
                assert "x-graphmem-context-id" not in answer.headers
            assert provider.received[-1].body == ASK
            assert (await client.post(CHAT, json=ASK, headers={**new, **user})).status_code == 503
            assert (await client.get("/v1/users/mara/memories", headers=used)).status_code == 503
            proxy.thaw()
            async with asyncio.timeout(60):
                await services.chats.flush()
                messages = await client.get("/v1/users/mara/sessions/during/messages", headers=used)
            assert [message["content"] for message in messages.json()["items"]] == ["I like tea.", "Noted."]
