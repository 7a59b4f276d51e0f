"""Rate limits apply to each key on its own; requests beyond what a process can work on are refused at once."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import ExitStack

import httpx
import pytest
from graphmem_api.admission import Admission
from graphmem_api.app import create_app
from pydantic import ValidationError

from graphmem.app.bootstrap import Services
from graphmem.runtime.errors import Unavailable
from graphmem.runtime.settings import Settings
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.api.conftest import serve_app


async def test_request_over_the_rate_limit_gets_429_with_retry_after(
    services: Services, settings: Settings, tenant: str
) -> None:
    keys = [
        (await services.keys.create(tenant, ApiKeyIn(name=name, role=KeyRole.AGENT))).key for name in ("busy", "calm")
    ]
    limited = create_app(services, settings.model_copy(update={"rate_limit": "3/minute"}))
    async with serve_app(limited) as address, httpx.AsyncClient(base_url=address) as client:
        busy = [await client.get("/v1/users/mara/memories", headers=_bearer(keys[0])) for _ in range(4)]
        calm = await client.get("/v1/users/mara/memories", headers=_bearer(keys[1]))
    assert [response.status_code for response in busy] == [200, 200, 200, 429]
    assert 1 <= int(busy[3].headers["Retry-After"]) <= 60
    assert busy[3].headers["content-type"] == "application/problem+json"
    assert busy[3].json()["title"] == "Too many requests"
    assert calm.status_code == 200


async def test_a_key_that_sends_too_much_leaves_room_for_others(services: Services) -> None:
    admission = Admission(8, lambda: services.waiting.count)
    with ExitStack() as sent:
        for _ in range(6):
            sent.enter_context(admission.accepted("loud"))
            sent.enter_context(admission.worked_on())
        with pytest.raises(Unavailable, match="This key"):
            sent.enter_context(admission.accepted("loud"))
        with admission.accepted("calm"), admission.worked_on():
            sent.enter_context(admission.worked_on())
            with pytest.raises(Unavailable, match="The server"):
                sent.enter_context(admission.worked_on())
    with admission.accepted("loud"), admission.worked_on():
        pass


async def test_requests_beyond_those_in_progress_get_503_and_probes_are_answered(
    services: Services, settings: Settings, tenant: str
) -> None:
    key, other = [
        (await services.keys.create(tenant, ApiKeyIn(name=name, role=KeyRole.AGENT))).key for name in ("agent", "other")
    ]
    arrived, finish = asyncio.Event(), asyncio.Event()

    async def held_body() -> AsyncIterator[bytes]:
        yield b'{"memories": [{"content": '
        arrived.set()
        await finish.wait()
        yield f'"likes {uuid.uuid4().hex}"}}]}}'.encode()

    app = create_app(services, settings)
    app.state.admission = Admission(1, lambda: 0)  # requests of other tests may still wait in these services
    async with serve_app(app) as address, httpx.AsyncClient(base_url=address, headers=_bearer(key)) as client:
        memories, body_type = "/v1/users/mara/memories", {"content-type": "application/json"}
        held = asyncio.create_task(client.post(memories, content=held_body(), headers=body_type))
        await arrived.wait()
        async with asyncio.timeout(60):
            while (refused := await client.get(memories)).status_code == 200:  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(0.01)
        healthy = await client.get("/healthz")
        others = await client.get(memories, headers=_bearer(other))
        finish.set()
        saved = await held
        after = await client.get(memories)
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert refused.json()["title"] == "Unavailable"
    assert others.status_code == 200, "a key whose body is on its way keeps nobody else out"
    assert (healthy.status_code, saved.status_code, after.status_code) == (200, 200, 200)


async def test_requests_that_wait_for_a_job_leave_room_for_others(
    settings: Settings, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmem.ingestion.service.WAIT_SECONDS", 3)
    async with Services.open(settings, worker=False) as idle:
        key = (await idle.keys.create(tenant, ApiKeyIn(name="agent", role=KeyRole.AGENT))).key
        app = create_app(idle, settings.model_copy(update={"max_requests": 1}))
        async with serve_app(app) as address, httpx.AsyncClient(base_url=address, headers=_bearer(key)) as client:
            body = {"messages": [{"role": "user", "content": "I live in Lund."}], "wait": True}
            waiting = asyncio.create_task(client.post("/v1/users/mara/messages", json=body, timeout=60))
            async with asyncio.timeout(60):
                while not idle.waiting.count:  # noqa: ASYNC110 - no event tells
                    await asyncio.sleep(0.01)
            meanwhile = await client.get("/v1/users/mara/memories")
            assert idle.waiting.count == 1
            waited = await waiting
    assert (meanwhile.status_code, waited.status_code) == (200, 200)


def test_invalid_rate_limit_setting_is_rejected() -> None:
    with pytest.raises(ValidationError, match="rate limit"):
        Settings(rate_limit="often")


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}
