"""sentence-transformers models (an extra): embeddings, and a cross-encoder for reranking."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from graphmem.models.embedder import VectorCache
from graphmem.models.onnx_embedder import EmbeddingQueue
from graphmem.runtime import process
from graphmem.runtime.errors import ConfigurationError
from graphmem.runtime.tracing import span

_HUB_ORGANIZATION = "sentence-transformers/"
"""Organization of the models on the Hugging Face hub; omitted from the recorded name, as users may omit it."""

DEFAULT_MODEL = _HUB_ORGANIZATION + "all-MiniLM-L6-v2"

_MISSING_EXTRA_MESSAGE = (
    "sentence-transformers is not installed: run pip install 'graphmem[sentence-transformers]', or set "
    "GRAPHMEM_EMBEDDER=local."
)

_BATCH_SIZE = 32
"""Number of texts that the model reads at the same time."""

_BATCH_DELAY = 0.002
"""Seconds to wait for other callers' texts before a batch."""

_MAX_TEXTS_PER_CALLER = 8
"""Maximum texts per caller in a batch."""

_MAX_DEFAULT_THREADS = 4
"""Maximum torch threads without GRAPHMEM_EMBEDDING_THREADS; other cores are left to Neo4j and the event loop.

In a caller's process, which shares torch, only the setting changes the number of threads.
"""


class SentenceTransformersEmbedder:
    """A sentence-transformers model; callers within a few milliseconds share a batch.

    Belongs to the event loop of its first call.
    """

    def __init__(self, model: str | None = None, *, threads: int | None = None) -> None:
        """Create an embedder without loading its model.

        `model`: a folder or a Hugging Face hub model; `threads`: torch threads, by default half of the cores in
        graphmem's own processes.
        """
        self._source = model or DEFAULT_MODEL
        self.model = self._source.removeprefix(_HUB_ORGANIZATION)
        self._threads = threads
        self._encoder: Any = None
        self._dimension = 0
        self._open_lock = asyncio.Lock()
        self._queue = EmbeddingQueue(
            self._encode_in_thread,
            batch_delay=_BATCH_DELAY,
            batch_size=_BATCH_SIZE,
            max_texts_per_caller=_MAX_TEXTS_PER_CALLER,
        )
        self._cache = VectorCache()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="graphmem-embedding")

    @property
    def dimension(self) -> int:
        """The length of a vector; 0 until opened."""
        return self._dimension

    async def open(self) -> None:
        """Load the model, which takes seconds; raise ConfigurationError if it is not installed or cannot be loaded."""
        async with self._open_lock:
            if self._encoder is None:
                encoder = await asyncio.get_running_loop().run_in_executor(self._executor, self._load)
                self._dimension = encoder.get_embedding_dimension()
                self._encoder = encoder

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """Return one vector of unit length per text; questions are prefixed with the model's `query` prompt."""
        await self.open()
        prefix = self._encoder.prompts.get("query", "") if query else ""
        with span("embed", graphmem__texts=len(texts)):
            return await self._cache.get_or_embed([prefix + text for text in texts], self._queue.embed)

    async def aclose(self) -> None:
        """Stop the worker thread; pending calls raise ModelUnavailable."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._queue.close()

    async def _encode_in_thread(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._encode, texts)

    def _encode(self, texts: list[str]) -> list[list[float]]:
        vectors = self._encoder.encode(
            texts,
            batch_size=_BATCH_SIZE,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        rows: list[list[float]] = vectors.tolist()
        return rows

    def _load(self) -> Any:
        try:
            with process.environment_defaults(HF_HUB_DISABLE_TELEMETRY="1"):
                import torch
                from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise ConfigurationError(_MISSING_EXTRA_MESSAGE, retry_after=None) from error
        threads = self._threads
        if process.is_own():
            os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
            threads = threads or max(1, min(_MAX_DEFAULT_THREADS, (os.cpu_count() or 1) // 2))
        if threads:
            torch.set_num_threads(threads)
        try:
            encoder = SentenceTransformer(self._source, device="cpu")
        except Exception as error:
            raise ConfigurationError(
                f"The embedding model {self._source!r} cannot be loaded ({type(error).__name__}): set "
                "GRAPHMEM_EMBEDDING_MODEL to a folder or to a model of the Hugging Face hub.",
                retry_after=None,
            ) from error
        return encoder


class CrossEncoderReranker:
    """A sentence-transformers cross-encoder that runs in this process and is loaded on first use."""

    def __init__(self, model: str) -> None:
        self._name = model
        self._model: Any = None
        self._loading = asyncio.Lock()

    async def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return how well each text answers, from 0 to 1; raise ConfigurationError if the model cannot be loaded."""
        async with self._loading:
            if self._model is None:
                self._model = await asyncio.to_thread(self._load)
        scores = await asyncio.to_thread(self._predict, [(question, text) for text in texts])
        return [float(score) for score in scores]

    def _load(self) -> Any:
        try:
            from sentence_transformers import CrossEncoder

            return CrossEncoder(self._name, num_labels=1)
        except (ImportError, OSError, ValueError) as error:
            raise ConfigurationError(
                f"The cross-encoder {self._name} cannot be loaded ({error}): run pip install "
                "'graphmem[sentence-transformers]' and set GRAPHMEM_RERANK_MODEL to the folder or name of one."
            ) from error

    def _predict(self, pairs: list[tuple[str, str]]) -> Any:
        import torch

        return self._model.predict(pairs, activation_fn=torch.nn.Sigmoid(), show_progress_bar=False)
