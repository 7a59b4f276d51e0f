"""One queue for the texts of all callers of a model on this machine, in turns that are fair to each."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from graphmem.errors import ModelUnavailable

Encode = Callable[[list[str]], Awaitable[Sequence[list[float]]]]
"""Turns the texts of one turn into vectors, in their order."""


@dataclass(slots=True)
class _Request:
    """Texts of one caller, embedded from the front; `answer` is set when none is left."""

    waiting: deque[str]
    answer: asyncio.Future[list[list[float]]]
    vectors: list[list[float]] = field(default_factory=list)


class EmbeddingQueue:
    """Passes the texts of concurrent callers to `encode`, some texts a turn, a few of each caller.

    Belongs to the event loop of its first call.
    """

    def __init__(self, encode: Encode, *, window: float, batch: int, share: int) -> None:
        """`window`: seconds before the first turn; `batch`: texts of a turn; `share`: at most so many of a caller."""
        self._encode = encode
        self._window = window
        self._batch = batch
        self._share = share
        self._requests: deque[_Request] = deque()
        self._running: asyncio.Task[None] | None = None

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text; raise ModelUnavailable when the model fails or the queue is closed."""
        request = _Request(deque(map(_encodable, texts)), asyncio.get_running_loop().create_future())
        self._requests.append(request)
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        return await request.answer

    def close(self) -> None:
        """Fail the requests that still wait."""
        while self._requests:
            _fail(self._requests.popleft(), ModelUnavailable("The embedder is closed.", retry_after=None))

    async def _run(self) -> None:
        if self._window:
            await asyncio.sleep(self._window)
        while self._requests:
            turn = self._next_turn()
            try:
                vectors = await self._encode([text for _, text in turn])
            except Exception as error:
                for request, _ in turn:
                    _fail(request, ModelUnavailable(f"The embedding model failed ({type(error).__name__})."))
                continue
            for (request, _), vector in zip(turn, vectors, strict=True):
                request.vectors.append(vector)
            for request in {id(request): request for request, _ in turn}.values():
                if not request.waiting and not request.answer.done():
                    request.answer.set_result(request.vectors)

    def _next_turn(self) -> list[tuple[_Request, str]]:
        """Take the texts of the next turn, a few of each caller, so that a long list delays nobody."""
        turn: list[tuple[_Request, str]] = []
        while self._requests and len(turn) < self._batch:
            request = self._requests.popleft()
            if request.answer.done():
                continue
            for _ in range(min(self._share, len(request.waiting), self._batch - len(turn))):
                turn.append((request, request.waiting.popleft()))
            if request.waiting:
                self._requests.append(request)
        return turn


def _encodable(text: str) -> str:
    """Return the text without lone surrogates, which would fail the turn of everybody in it."""
    return text.encode("utf-8", "replace").decode()


def _fail(request: _Request, error: Exception) -> None:
    request.waiting.clear()
    if not request.answer.done():
        request.answer.set_exception(error)
