"""What a response that is sent in chunks holds open is closed, however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from graphmem_api.forwarding import StreamedResponse
from starlette.requests import ClientDisconnect

SCOPE: dict[str, Any] = {"type": "http", "asgi": {"spec_version": "2.3"}}


class Body:
    """Chunks of a body that is being made, and whether it was closed and released."""

    def __init__(self, *, fails: bool = False) -> None:
        self._fails = fails
        self.events: list[str] = []

    async def chunks(self) -> AsyncGenerator[bytes]:
        try:
            yield b"one"
            if self._fails:
                raise ValueError("the source broke off")
            yield b"two"
        finally:
            await asyncio.sleep(0)
            self.events.append("closed")

    async def release(self) -> None:
        await asyncio.sleep(0)
        self.events.append("released")


async def stay() -> dict[str, Any]:
    await asyncio.Event().wait()
    raise AssertionError


async def leave() -> dict[str, Any]:
    return {"type": "http.disconnect"}


async def take(message: Any) -> None:
    await asyncio.sleep(0)


async def refuse_the_body(message: Any) -> None:
    if message["type"] == "http.response.body":
        raise OSError("the connection is closed")


async def test_a_response_that_is_sent_whole_is_closed() -> None:
    body = Body()
    await StreamedResponse(body.chunks(), body.release)(SCOPE, stay, take)
    assert body.events == ["closed", "released"]


async def test_a_response_whose_caller_leaves_in_the_middle_is_closed() -> None:
    body = Body()
    scope = SCOPE | {"asgi": {"spec_version": "2.4"}}
    response = StreamedResponse(body.chunks(), body.release)
    with pytest.raises(ClientDisconnect):
        await response(scope, stay, refuse_the_body)
    assert body.events == ["closed", "released"]


async def test_a_response_whose_caller_has_left_before_it_begins_is_released() -> None:
    body = Body()
    await StreamedResponse(body.chunks(), body.release)(SCOPE, leave, take)
    assert body.events[-1] == "released"


async def test_a_response_whose_source_fails_is_closed() -> None:
    body = Body(fails=True)
    with pytest.raises(ValueError, match="broke off"):
        await StreamedResponse(body.chunks(), body.release)(SCOPE, stay, take)
    assert body.events == ["closed", "released"]
