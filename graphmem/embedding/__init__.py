"""Text to vectors: on this machine, or by any server that speaks the OpenAI embeddings API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from graphmem.settings import Settings

__all__ = ["Embedder", "create_embedder"]


class Embedder(Protocol):
    """Turns texts into vectors of unit length; `model` and `dimension` hold once `open` has returned.

    `open` raises ConfigurationError when the model cannot be had; `embed` raises ModelUnavailable when its server fails.
    """

    @property
    def model(self) -> str:
        """The model's name, as recorded beside the vectors it makes."""
        ...

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        ...

    async def open(self) -> None:
        """Load or reach the model; further calls do nothing."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in their order; opens first when nobody did."""
        ...

    async def aclose(self) -> None:
        """Let go of threads and connections."""
        ...


def create_embedder(settings: Settings) -> Embedder:
    """Return the embedder the settings name, not opened yet."""
    if settings.embedder == "openai":
        from graphmem.embedding.openai import OpenAIEmbedder

        return OpenAIEmbedder.from_settings(settings)
    from graphmem.embedding.local import LocalEmbedder

    return LocalEmbedder(settings.embedding_model)
