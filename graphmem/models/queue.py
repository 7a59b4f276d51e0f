"""A queue that batches the texts of all callers of a local model and serves the callers in turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from graphmem.models.cache import EmbedFunction
from graphmem.runtime.errors import ModelUnavailable
from graphmem.text.storable import replace_surrogates


@dataclass(slots=True)
class _EmbeddingRequest:
    """Texts of one caller, embedded in their order; `result` is set when no text is left."""

    pending_texts: deque[str]
    result: asyncio.Future[list[list[float]]]
    vectors: list[list[float]] = field(default_factory=list)


class EmbeddingQueue:
    """Passes batches of the texts of concurrent callers to `encode`, a few texts of each caller at a time.

    Belongs to the event loop of its first call.
    """

    def __init__(
        self, encode: EmbedFunction, *, batch_window: float, batch_size: int, max_texts_per_caller: int
    ) -> None:
        """Create a queue; its task starts with the first texts.

        `batch_window`: seconds to wait for more texts before the first batch; `batch_size`: texts of a batch;
        `max_texts_per_caller`: texts of one caller in a batch.
        """
        self._encode = encode
        self._batch_window = batch_window
        self._batch_size = batch_size
        self._max_texts_per_caller = max_texts_per_caller
        self._requests: deque[_EmbeddingRequest] = deque()
        self._batch_task: asyncio.Task[None] | None = None

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text; raise ModelUnavailable if the model fails or the queue is closed."""
        request = _EmbeddingRequest(deque(map(replace_surrogates, texts)), asyncio.get_running_loop().create_future())
        self._requests.append(request)
        if self._batch_task is None or self._batch_task.done():
            self._batch_task = asyncio.create_task(self._run_batches())
        return await request.result

    def close(self) -> None:
        """Fail the requests that are still in the queue."""
        while self._requests:
            _reject(self._requests.popleft(), ModelUnavailable("The embedder is closed.", retry_after=None))

    async def _run_batches(self) -> None:
        if self._batch_window:
            await asyncio.sleep(self._batch_window)
        while self._requests:
            batch = self._next_batch()
            try:
                vectors = await self._encode([text for _, text in batch])
            except Exception as error:
                for request, _ in batch:
                    _reject(request, ModelUnavailable(f"The embedding model failed ({type(error).__name__})."))
                continue
            for (request, _), vector in zip(batch, vectors, strict=True):
                request.vectors.append(vector)
            for request in {id(request): request for request, _ in batch}.values():
                if not request.pending_texts and not request.result.done():
                    request.result.set_result(request.vectors)

    def _next_batch(self) -> list[tuple[_EmbeddingRequest, str]]:
        """Take the texts of the next batch, a few of each caller, so that a long list delays no other caller."""
        batch: list[tuple[_EmbeddingRequest, str]] = []
        while self._requests and len(batch) < self._batch_size:
            request = self._requests.popleft()
            if request.result.done():
                continue
            for _ in range(min(self._max_texts_per_caller, len(request.pending_texts), self._batch_size - len(batch))):
                batch.append((request, request.pending_texts.popleft()))
            if request.pending_texts:
                self._requests.append(request)
        return batch


def _reject(request: _EmbeddingRequest, error: Exception) -> None:
    request.pending_texts.clear()
    if not request.result.done():
        request.result.set_exception(error)
