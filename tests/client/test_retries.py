from __future__ import annotations

import asyncio
import socket

import httpx
import pytest
from graphmem_api.problems import problem

from graphmem.client import AsyncClient, Client
from graphmem.client.refusals import error_of
from graphmem.domain.memory import Action
from graphmem.errors import (
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
from tests.client.conftest import Line, Making, refusal


async def test_a_write_whose_answer_is_lost_happens_once(making: Making, line: tuple[Line, str]) -> None:
    wire, address = line
    wire.faults = ["lost", "lost"]
    agent = await making(base_url=address)
    [saved] = await agent.add("mara", "Mara likes oolong tea")
    assert (saved.action, len(wire.seen), len(wire.keys())) == (Action.INSERT, 3, 1)
    assert len((await agent.memories("mara")).items) == 1


async def test_each_write_has_a_key_of_its_own_and_a_read_has_none(making: Making, line: tuple[Line, str]) -> None:
    wire, address = line
    agent = await making(base_url=address)
    await agent.add("mara", "Mara likes oolong tea")
    await agent.add("mara", "Mara likes oolong tea")
    assert len(wire.keys()) == 2
    await agent.search("mara", "tea")
    assert len(wire.keys()) == 2


@pytest.mark.parametrize(
    "fault",
    [
        "cut",
        refusal("429 Too Many Requests", Retry_After="0"),
        refusal("503 Service Unavailable"),
        refusal("502 Bad Gateway"),
    ],
)
async def test_what_passes_is_tried_again(making: Making, line: tuple[Line, str], fault: str | bytes) -> None:
    wire, address = line
    wire.faults = [fault]
    agent = await making(base_url=address)
    assert (await agent.search("mara", "tea")).results == []
    assert len(wire.seen) == 2


async def test_the_blocking_client_tries_again_too(making: Making, line: tuple[Line, str]) -> None:
    wire, address = line
    wire.faults = ["cut", refusal("503 Service Unavailable", Retry_After="0")]
    key = (await making())._http.headers["authorization"].removeprefix("Bearer ")

    def save() -> Action:
        with Client(key, address) as client:
            return client.add("mara", "Mara likes oolong tea")[0].action

    assert await asyncio.to_thread(save) is Action.INSERT
    assert len(wire.keys()) == 1


async def test_a_server_that_asks_for_too_long_a_pause_is_not_waited_for(
    making: Making, line: tuple[Line, str]
) -> None:
    wire, address = line
    wire.faults = [refusal("429 Too Many Requests", Retry_After="3600")]
    with pytest.raises(RateLimited) as refused:
        await (await making(base_url=address)).search("mara", "tea")
    assert (refused.value.retry_after, len(wire.seen)) == (3600, 1)


async def test_attempts_come_to_an_end(making: Making, line: tuple[Line, str]) -> None:
    wire, address = line
    wire.faults = [refusal("503 Service Unavailable", Retry_After="0")] * 5
    with pytest.raises(Unavailable):
        await (await making(base_url=address, attempts=3)).search("mara", "tea")
    assert len(wire.seen) == 3


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with AsyncClient("key", address, attempts=1) as client:
            with pytest.raises(Unavailable, match=address):
                await client.keys()


async def test_an_address_that_cannot_be_asked_is_said_to_be_wrong() -> None:
    async with AsyncClient("key", "ftp://localhost") as client:
        with pytest.raises(GraphmemError, match="check the address"):
            await client.keys()


async def test_an_answer_that_is_not_graphmems_is_said_to_be_wrong(making: Making, line: tuple[Line, str]) -> None:
    wire, address = line
    wire.faults = [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"]
    with pytest.raises(GraphmemError, match="check the address"):
        await (await making(base_url=address)).memory("mara", "m")


async def test_refusals_are_the_errors_of_graphmem(making: Making, address: str) -> None:
    agent = await making("agent", users=["mara"])
    [saved] = await agent.add("mara", {"content": "Mara likes oolong tea", "immutable": True})
    assert saved.memory
    [tea] = await agent.add("mara", "Mara likes green tea")
    assert tea.memory
    with pytest.raises(ImmutableMemory):
        await agent.update_memory("mara", saved.memory.id, content="x y")
    with pytest.raises(VersionConflict):
        await agent.update_memory("mara", tea.memory.id, if_version=7, content="x y")
    with pytest.raises(NotFound):
        await agent.memory("mara", "nothing")
    with pytest.raises(Forbidden):
        await agent.memories("anna")
    with pytest.raises(InvalidInput):
        await agent.search("mara", "")
    async with AsyncClient("gm_nothing", address) as stranger:
        with pytest.raises(Unauthenticated):
            await stranger.memories("mara")


async def test_input_that_cannot_be_used_is_refused_before_it_is_sent(making: Making, line: tuple[Line, str]) -> None:
    wire, address = line
    agent = await making(base_url=address)
    with pytest.raises(InvalidInput, match="limit") as refused:
        await agent.search("mara", "tea", limit=1000)
    assert refused.value.errors[0]["loc"] == ["limit"]
    with pytest.raises(InvalidInput, match="confidence"):
        await agent.add("mara", {"content": "x", "confidence": 2})
    with pytest.raises(InvalidInput):
        await agent.memories("")
    assert wire.seen == []


def _kinds(kind: type[GraphmemError]) -> list[type[GraphmemError]]:
    return [kind, *(each for below in kind.__subclasses__() for each in _kinds(below))]


@pytest.mark.parametrize("kind", _kinds(GraphmemError))
def test_every_error_comes_back_as_itself_or_as_what_it_is_a_kind_of(kind: type[GraphmemError]) -> None:
    document = problem("/v1", kind.status, kind.title, "Why.", errors=[{"loc": ["a"], "msg": "b"}])
    error = error_of(httpx.Response(document.status_code, content=document.body, headers={"Retry-After": "3"}))
    assert issubclass(kind, type(error))
    assert (error.status, error.title) == (kind.status, kind.title)
    assert (error.detail, error.retry_after, error.errors) == ("Why.", 3, [{"loc": ["a"], "msg": "b"}])
