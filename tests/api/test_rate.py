"""Rate limits apply to each key on its own; requests beyond what a process can work on are refused at once."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from graphmem_api.app import create_app
from graphmem_api.forwarding import StreamedResponse
from graphmem_api.middleware import Admission, RequestPlace
from pydantic import ValidationError
from starlette.types import Message

from graphmem.app.bootstrap import Services
from graphmem.models.embedder import Embedder
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


def test_a_key_that_sends_too_much_leaves_room_for_others() -> None:
    admission = Admission(8)
    with ExitStack() as sent:
        for _ in range(6):
            sent.enter_context(_in_progress(admission, "loud"))
        with pytest.raises(Unavailable, match="This key"):
            sent.enter_context(_in_progress(admission, "loud"))
        sent.enter_context(_in_progress(admission, "calm"))
        sent.enter_context(_in_progress(admission, "other"))
        with pytest.raises(Unavailable, match="The server"):
            sent.enter_context(_in_progress(admission, "third"))
    with _in_progress(admission, "loud"):
        pass


def test_a_request_that_waits_gives_up_its_own_place_and_no_other() -> None:
    admission = Admission(2)  # one place is not kept back: a key may have both
    with _in_progress(admission, "calm") as calm, _in_progress(admission, "loud"):
        with calm.paused(), calm.paused(), ExitStack() as further:
            further.enter_context(_in_progress(admission, "loud"))
            with pytest.raises(Unavailable, match="This key"):
                further.enter_context(admission.accepted("loud"))
        with pytest.raises(Unavailable, match="The server"), _in_progress(admission, "third"):
            pass


async def test_a_streamed_response_keeps_its_place_until_it_ends() -> None:
    admission = Admission(1)

    async def chunks() -> AsyncGenerator[bytes]:
        yield b"one"
        with pytest.raises(Unavailable), _in_progress(admission, "other"):
            pass

    async def send(_: Message) -> None:
        pass

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    with ExitStack() as counted:
        counted.enter_context(_in_progress(admission, "agent"))
        response = StreamedResponse(chunks(), _release)
        response.hold(counted.pop_all())
    await response({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, send)
    with _in_progress(admission, "other"):
        pass


async def _release() -> None:
    pass


@contextmanager
def _in_progress(admission: Admission, key_id: str) -> Iterator[RequestPlace]:
    with admission.accepted(key_id) as place, place.worked_on():
        yield place


async def test_requests_beyond_those_in_progress_get_503_and_probes_are_answered(
    services: Services, settings: Settings, tenant: str
) -> None:
    key, other = [
        (await services.keys.create(tenant, ApiKeyIn(name=name, role=KeyRole.AGENT))).key for name in ("agent", "other")
    ]
    arrived, finish = asyncio.Event(), asyncio.Event()

    async def held_body() -> AsyncIterator[bytes]:
        yield b'{"memories": [{"content": '
        await finish.wait()
        yield f'"likes {uuid.uuid4().hex}"}}]}}'.encode()

    class ObservedAdmission(Admission):
        @contextmanager
        def accepted(self, key_id: str) -> Iterator[RequestPlace]:
            with super().accepted(key_id) as place:
                arrived.set()
                yield place

    app = create_app(services, settings)
    app.state.admission = ObservedAdmission(1)
    async with serve_app(app) as address, httpx.AsyncClient(base_url=address, headers=_bearer(key)) as client:
        memories, body_type = "/v1/users/mara/memories", {"content-type": "application/json"}
        held = asyncio.create_task(client.post(memories, content=held_body(), headers=body_type))
        await arrived.wait()
        refused = await client.get(memories)
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
    settings: Settings, embedder: Embedder, tenant: str, tmp_path: Path
) -> None:
    settings = settings.model_copy(update={"data_dir": tmp_path})  # no worker of other tests does the job
    async with Services.open(settings, worker=False, embedder=embedder) as idle:
        key = (await idle.keys.create(tenant, ApiKeyIn(name="agent", role=KeyRole.AGENT))).key
        app = create_app(idle, settings.model_copy(update={"max_requests": 1}))
        async with serve_app(app) as address, httpx.AsyncClient(base_url=address, headers=_bearer(key)) as client:
            body = {"messages": [{"role": "user", "content": "I live in Lund."}], "wait": True}
            waiting = asyncio.create_task(client.post("/v1/users/mara/messages", json=body, timeout=60))
            async with asyncio.timeout(60):
                while not await idle.jobs.list(f"{tenant}:mara", limit=1):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                while (meanwhile := await client.get("/v1/users/mara/memories")).status_code == 503:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert not waiting.done()
            await idle.jobs.forget(f"{tenant}:mara")  # so that nothing is waited for
            await waiting
    assert meanwhile.status_code == 200


def test_invalid_rate_limit_setting_is_rejected() -> None:
    with pytest.raises(ValidationError, match="rate limit"):
        Settings(rate_limit="often")


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}
