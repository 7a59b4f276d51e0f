"""Embeddings on this machine by any model of sentence-transformers (an extra), in one worker thread."""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from graphmem.embedding.cache import VectorCache
from graphmem.embedding.queue import EmbeddingQueue
from graphmem.errors import SetupError
from graphmem.tracing import span

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"

_MISSING_EXTRA = (
    "sentence-transformers is not installed: run pip install 'graphmem[sentence-transformers]', or set "
    "GRAPHMEM_EMBEDDER=local."
)
_BATCH = 32


class SentenceTransformersEmbedder:
    """A sentence-transformers model; callers within a few milliseconds share one batch of it.

    Belongs to the event loop of its first call.
    """

    def __init__(self, model: str | None = None, *, threads: int | None = None, window: float = 0.002) -> None:
        """`threads`: of one batch; `window`: seconds a batch waits for further texts."""
        self.model = model or DEFAULT_MODEL
        self._threads = threads or max(1, min(4, (os.cpu_count() or 1) // 2))
        self._encoder: Any = None
        self._dimension = 0
        self._opening = asyncio.Lock()
        self._queue = EmbeddingQueue(self._in_thread, window=window, batch=_BATCH, share=8)
        self._cache = VectorCache()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="graphmem-embedding")

    @property
    def dimension(self) -> int:
        """How many numbers a vector has; 0 until opened."""
        return self._dimension

    async def open(self) -> None:
        """Load the model, which takes seconds; raise SetupError when it is not installed or cannot be loaded."""
        async with self._opening:
            if self._encoder is None:
                encoder = await asyncio.get_running_loop().run_in_executor(self._thread, self._load)
                self._dimension = encoder.get_embedding_dimension()
                self._encoder = encoder

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """Return one vector of unit length per text; a model with a prompt named `query` sees it before a question."""
        await self.open()
        prefix = self._encoder.prompts.get("query", "") if query else ""
        with span("embed", graphmem__texts=len(texts)):
            return await self._cache.through([prefix + text for text in texts], self._queue.embed)

    async def aclose(self) -> None:
        """End the worker thread; callers still waiting get ModelUnavailable."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._queue.close()

    async def _in_thread(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._encode, texts)

    def _encode(self, texts: list[str]) -> list[list[float]]:
        vectors = self._encoder.encode(
            texts,
            batch_size=_BATCH,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        rows: list[list[float]] = vectors.tolist()
        return rows

    def _load(self) -> Any:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
        try:
            import torch
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise SetupError(_MISSING_EXTRA, retry_after=None) from error
        torch.set_num_threads(self._threads)
        try:
            encoder = SentenceTransformer(self.model, device="cpu")
        except Exception as error:
            raise SetupError(
                f"The embedding model {self.model!r} cannot be loaded ({type(error).__name__}): let "
                "GRAPHMEM_EMBEDDING_MODEL name a folder or a model of the Hugging Face hub.",
                retry_after=None,
            ) from error
        # What the libraries made stays as long as the process; walking it at each full collection would stop everybody
        # for a third of a second.
        gc.collect()
        gc.freeze()
        atexit.register(gc.unfreeze)
        return encoder
