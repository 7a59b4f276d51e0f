"""The embedder of the model that the database's vectors are of, whatever the settings name."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from graphmem.models.embedder import Embedder
from graphmem.models.embedding_models import EmbeddingModel, VectorState

log = logging.getLogger(__name__)

GetState = Callable[[], Awaitable[VectorState | None]]
"""Returns the state of the vectors, at most a second old."""

CreateEmbedder = Callable[[EmbeddingModel], Embedder]
"""Returns the embedder of a recorded model, not opened yet; raises ConfigurationError if it cannot be used."""


class RecordedEmbedder:
    """Embeds with the model of the vectors that searches read, and changes it when a re-embedding does."""

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
        """Load the model, or connect to its server."""
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
        """Return the embedder of a model, loaded; raise ConfigurationError if it cannot be used."""
        async with self._lock:
            if model.name not in self._embedders:
                embedder = self._create(model)
                await embedder.open()
                self._embedders[model.name] = embedder
            return self._embedders[model.name]

    async def aclose(self) -> None:
        """End the threads and close the connections."""
        for embedder in self._embedders.values():
            await embedder.aclose()
