"""Retries, idempotency keys and errors of the clients, over a connection that fails."""

from __future__ import annotations

import asyncio
import socket

import httpx
import pytest
from graphmem_api.problems import make_problem_response

from graphmem.app.bootstrap import Services
from graphmem.client import AsyncClient, Client
from graphmem.client.transport import error_from_response
from graphmem.memories.memory import SaveAction
from graphmem.runtime.errors import (
    Forbidden,
    GraphmemError,
    ImmutableMemory,
    InvalidInput,
    NotFound,
    RateLimited,
    Unauthenticated,
    Unavailable,
    VersionConflict,
)
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.client.conftest import ClientFactory, FaultyProxy, error_response


async def test_a_write_whose_answer_is_lost_happens_once(
    make_client: ClientFactory, faulty_proxy: tuple[FaultyProxy, str]
) -> None:
    proxy, address = faulty_proxy
    proxy.faults = ["lost", "lost"]
    agent = await make_client(base_url=address)
    [saved] = await agent.add("mara", "Mara likes oolong tea")
    assert (saved.action, len(proxy.received_requests), len(proxy.idempotency_keys())) == (SaveAction.INSERT, 3, 1)
    assert len((await agent.memories("mara")).items) == 1


async def test_each_write_has_a_key_of_its_own_and_a_read_has_none(
    make_client: ClientFactory, faulty_proxy: tuple[FaultyProxy, str]
) -> None:
    proxy, address = faulty_proxy
    agent = await make_client(base_url=address)
    await agent.add("mara", "Mara likes oolong tea")
    await agent.add("mara", "Mara likes oolong tea")
    assert len(proxy.idempotency_keys()) == 2
    await agent.search("mara", "tea")
    assert len(proxy.idempotency_keys()) == 2


@pytest.mark.parametrize(
    "fault",
    [
        "cut",
        error_response("429 Too Many Requests", Retry_After="0"),
        error_response("503 Service Unavailable"),
        error_response("502 Bad Gateway"),
    ],
)
async def test_transient_failures_are_retried(
    make_client: ClientFactory, faulty_proxy: tuple[FaultyProxy, str], fault: str | bytes
) -> None:
    proxy, address = faulty_proxy
    proxy.faults = [fault]
    agent = await make_client(base_url=address)
    assert (await agent.search("mara", "tea")).results == []
    assert len(proxy.received_requests) == 2


async def test_the_blocking_client_retries_too(
    services: Services, tenant: str, faulty_proxy: tuple[FaultyProxy, str]
) -> None:
    proxy, address = faulty_proxy
    proxy.faults = ["cut", error_response("503 Service Unavailable", Retry_After="0")]
    key = await services.keys.create(tenant, ApiKeyIn(name="agent", role=KeyRole.AGENT))

    def save() -> SaveAction:
        with Client(key.key, address) as client:
            return client.add("mara", "Mara likes oolong tea")[0].action

    assert await asyncio.to_thread(save) is SaveAction.INSERT
    assert len(proxy.idempotency_keys()) == 1


async def test_a_long_retry_after_is_not_waited_for(
    make_client: ClientFactory, faulty_proxy: tuple[FaultyProxy, str]
) -> None:
    proxy, address = faulty_proxy
    proxy.faults = [error_response("429 Too Many Requests", Retry_After="3600")]
    with pytest.raises(RateLimited) as refused:
        await (await make_client(base_url=address)).search("mara", "tea")
    assert (refused.value.retry_after, len(proxy.received_requests)) == (3600, 1)


async def test_retries_stop_after_the_last_attempt(
    make_client: ClientFactory, faulty_proxy: tuple[FaultyProxy, str]
) -> None:
    proxy, address = faulty_proxy
    proxy.faults = [error_response("503 Service Unavailable", Retry_After="0")] * 5
    with pytest.raises(Unavailable):
        await (await make_client(base_url=address, attempts=3)).search("mara", "tea")
    assert len(proxy.received_requests) == 3


async def test_an_unreachable_server_raises_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with AsyncClient("key", address, attempts=1) as client:
            with pytest.raises(Unavailable, match=address):
                await client.keys()


async def test_a_response_of_another_server_is_reported(
    make_client: ClientFactory, faulty_proxy: tuple[FaultyProxy, str]
) -> None:
    proxy, address = faulty_proxy
    proxy.faults = [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"]
    with pytest.raises(GraphmemError, match="check the address"):
        await (await make_client(base_url=address)).memory("mara", "m")


async def test_error_responses_raise_graphmem_errors(make_client: ClientFactory, address: str) -> None:
    agent = await make_client("agent", users=["mara"])
    [saved] = await agent.add("mara", {"content": "Mara likes oolong tea", "immutable": True})
    assert saved.memory
    [tea] = await agent.add("mara", "Mara likes green tea")
    assert tea.memory
    with pytest.raises(ImmutableMemory):
        await agent.update("mara", saved.memory.id, content="x y")
    with pytest.raises(VersionConflict):
        await agent.update("mara", tea.memory.id, if_version=7, content="x y")
    with pytest.raises(NotFound):
        await agent.memory("mara", "nothing")
    with pytest.raises(Forbidden):
        await agent.memories("anna")
    with pytest.raises(InvalidInput):
        await agent.search("mara", "")
    async with AsyncClient("gm_nothing", address) as stranger:
        with pytest.raises(Unauthenticated):
            await stranger.memories("mara")


async def test_invalid_input_is_rejected_before_it_is_sent(
    make_client: ClientFactory, faulty_proxy: tuple[FaultyProxy, str]
) -> None:
    proxy, address = faulty_proxy
    agent = await make_client(base_url=address)
    with pytest.raises(InvalidInput, match="limit") as refused:
        await agent.search("mara", "tea", limit=1000)
    assert refused.value.errors[0]["loc"] == ["limit"]
    with pytest.raises(InvalidInput, match="confidence"):
        await agent.add("mara", {"content": "x", "confidence": 2})
    with pytest.raises(InvalidInput):
        await agent.memories("")
    assert proxy.received_requests == []


def _error_classes(kind: type[GraphmemError]) -> list[type[GraphmemError]]:
    return [kind, *(error for subclass in kind.__subclasses__() for error in _error_classes(subclass))]


@pytest.mark.parametrize("kind", _error_classes(GraphmemError))
def test_every_error_is_restored_from_its_response(kind: type[GraphmemError]) -> None:
    document = make_problem_response("/v1", kind.status, kind.title, "Why.", errors=[{"loc": ["a"], "msg": "b"}])
    error = error_from_response(
        httpx.Response(document.status_code, content=bytes(document.body), headers={"Retry-After": "3"})
    )
    assert issubclass(kind, type(error))
    assert (error.status, error.title) == (kind.status, kind.title)
    assert (error.detail, error.retry_after, error.errors) == ("Why.", 3, [{"loc": ["a"], "msg": "b"}])


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_a_key_and_an_address_in_each_others_place_are_named(client: type[Client] | type[AsyncClient]) -> None:
    for arguments in [("http://127.0.0.1:8321", "gm_key"), ("HTTPS://memory.example",)]:
        with pytest.raises(InvalidInput, match="pass the key first, then the address") as raised:
            client(*arguments)
        assert "gm_key" not in str(raised.value)
    for address in ("127.0.0.1:8321", "ftp://localhost", ""):
        with pytest.raises(InvalidInput, match="begins with http://"):
            client("gm_key", address)
