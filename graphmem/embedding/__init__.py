"""Text to vectors: on this machine, or by any server that speaks the OpenAI embeddings API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from graphmem.artifacts import Progress
from graphmem.settings import Settings

__all__ = ["Embedder", "from_settings"]


class Embedder(Protocol):
    """Turns texts into vectors of unit length; `model` and `dimension` hold once `open` has returned.

    `open` raises SetupError when the model cannot be had; `embed` raises ModelUnavailable when its server fails.
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

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """Return one vector per text, in their order; opens first when nobody did.

        `query`: the texts are questions, which some models want marked.
        """
        ...

    async def aclose(self) -> None:
        """Let go of threads and connections."""
        ...


def from_settings(settings: Settings, progress: Progress | None = None) -> Embedder:
    """Return the embedder the settings name, not opened yet; `progress` is called while its model is fetched."""
    if settings.embedder == "openai":
        from graphmem.embedding.openai import OpenAIEmbedder

        return OpenAIEmbedder.from_settings(settings)
    if settings.embedder == "sentence-transformers":
        from graphmem.embedding.sentence_transformers import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(settings.embedding_model, threads=settings.embedding_threads)
    from graphmem.embedding.onnx import OnnxEmbedder

    return OnnxEmbedder.from_settings(settings, progress)
