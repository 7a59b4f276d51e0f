"""Responses whose body comes in chunks while it is made."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import ExitStack

import anyio
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class StreamedResponse(StreamingResponse):
    """A response that closes the generator of its chunks when it ends, and calls `release` after that.

    Both happen whether the response was sent whole, its caller went away before or in the middle of it, or the
    generator raised. Starlette leaves a generator to the garbage collector, and with it what the generator holds open.
    """

    def __init__(
        self,
        chunks: AsyncGenerator[bytes],
        release: Callable[[], Awaitable[None]],
        status_code: int = 200,
        media_type: str | None = None,
    ) -> None:
        super().__init__(chunks, status_code, media_type=media_type)
        self._chunks = chunks
        self._release = release
        self._held = ExitStack()

    def hold(self, held: ExitStack) -> None:
        """Close something when the response has ended, such as the place of its request."""
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response, and close what it has open."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True), self._held:
                try:
                    await self._chunks.aclose()
                finally:
                    await self._release()
