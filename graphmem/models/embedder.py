"""Embedders: their interface, and opening the configured embedder or the one recorded in a database."""

from __future__ import annotations

import asyncio
import logging
from array import array
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from cachetools import LRUCache

from graphmem.models.embedding_models import EmbeddingModel, VectorState
from graphmem.runtime.artifacts import DownloadProgress
from graphmem.runtime.metrics import HitRate
from graphmem.runtime.settings import Settings

__all__ = ["Embedder", "create_embedder", "create_recorded_embedder", "describe_model"]


class Embedder(Protocol):
    """Turns texts into vectors of unit length; `model` and `dimension` are valid after `open`.

    `open` raises ConfigurationError if the model is unavailable; `embed` raises ModelUnavailable if the model fails.
    """

    @property
    def model(self) -> str:
        """The name recorded in the database for this model's vectors."""
        ...

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        ...

    async def open(self) -> None:
        """Load the model or connect to its server; repeated calls do nothing."""
        ...

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """Return one vector per text, in the same order; call `open` first if necessary.

        With `query`, the texts are questions, which some models expect to be marked.
        """
        ...

    async def aclose(self) -> None:
        """Stop the threads and close the connections."""
        ...


def create_embedder(settings: Settings, progress: DownloadProgress | None = None) -> Embedder:
    """Return the configured embedder, not yet opened; `progress` is called while its model is downloaded."""
    if settings.embedder == "openai":
        from graphmem.models.openai_api import OpenAIEmbedder

        return OpenAIEmbedder.from_settings(settings)
    if settings.embedder == "sentence-transformers":
        from graphmem.models.sentence_transformers import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(settings.embedding_model, threads=settings.embedding_threads)
    from graphmem.models.onnx_embedder import OnnxEmbedder

    return OnnxEmbedder.from_settings(settings, progress)


def create_recorded_embedder(
    model: EmbeddingModel, settings: Settings, progress: DownloadProgress | None = None
) -> Embedder:
    """Return the embedder of a model recorded in a database; the settings say how to reach its server."""
    return create_embedder(
        settings.model_copy(update={"embedder": model.embedder, "embedding_model": model.name}), progress
    )


def describe_model(embedder: Embedder, settings: Settings) -> EmbeddingModel:
    """Return the database record of the configured embedder, whose dimension must be known."""
    return EmbeddingModel(name=embedder.model, dimension=embedder.dimension, embedder=settings.embedder)


_MAX_CACHED_CHARS = 1000
"""Maximum characters of a cached text; longer ones are documents, which are not embedded twice."""

EmbedFunction = Callable[[list[str]], Awaitable[list[list[float]]]]


class VectorCache:
    """The vectors of recent texts, in single precision (1.5 kB each at 384 dimensions)."""

    def __init__(self, size: int = 2048) -> None:
        self._vectors: LRUCache[str, array[float]] = LRUCache(size)
        self._hit_rate = HitRate("embedded_texts")

    async def get_or_embed(self, texts: Sequence[str], embed: EmbedFunction) -> list[list[float]]:
        """Return one vector per text, calling `embed` once for each text that is not cached."""
        known = {text: self._vectors[text].tolist() for text in set(texts) if text in self._vectors}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        self._hit_rate.count_many(hits=len(known), misses=len(missing))
        if missing:
            for text, vector in zip(missing, await embed(missing), strict=True):
                single = array("f", vector)
                known[text] = single.tolist()
                if len(text) <= _MAX_CACHED_CHARS:
                    self._vectors[text] = single
        return [known[text] for text in texts]


log = logging.getLogger(__name__)

GetState = Callable[[], Awaitable[VectorState | None]]
"""Returns the state of the vectors, at most a second old."""

CreateEmbedder = Callable[[EmbeddingModel], Embedder]
"""Returns the embedder of a recorded model, not yet opened; raises ConfigurationError if it cannot be used."""


class RecordedEmbedder:
    """Embeds with the model whose vectors searches read, and follows a re-embedding to the next model."""

    def __init__(self, embedder: Embedder, get_state: GetState, create: CreateEmbedder) -> None:
        """Use `embedder` until the state names another model."""
        self._get_state = get_state
        self._create = create
        self._current = embedder
        self._embedders = {embedder.model: embedder}
        self._lock = asyncio.Lock()

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._current.model

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return self._current.dimension

    async def open(self) -> None:
        """Load the model or connect to its server."""
        await self._current.open()

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """Return one vector per text."""
        state = await self._get_state()
        if state is not None:
            if state.next is not None:
                # Loaded before the change, so that no request waits for it.
                await self.get(state.next)
            if state.searched_model.name != self._current.model:
                self._current = await self.get(state.searched_model)
                log.info("embedding with another model", extra={"model": self._current.model})
        return await self._current.embed(texts, query=query)

    async def get(self, model: EmbeddingModel) -> Embedder:
        """Return the loaded embedder of a model; raise ConfigurationError if it cannot be used."""
        async with self._lock:
            if model.name not in self._embedders:
                embedder = self._create(model)
                await embedder.open()
                self._embedders[model.name] = embedder
            return self._embedders[model.name]

    async def aclose(self) -> None:
        """Stop the threads and close the connections."""
        for embedder in self._embedders.values():
            await embedder.aclose()
