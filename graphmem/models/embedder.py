"""Embeddings of texts: on this machine, or by a server with the OpenAI embeddings API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from graphmem.models.embedding_models import EmbeddingModel
from graphmem.runtime.artifacts import DownloadProgress
from graphmem.runtime.settings import Settings

__all__ = ["Embedder", "create_embedder", "create_recorded_embedder", "describe_model"]


class Embedder(Protocol):
    """Turns texts into vectors of unit length; `model` and `dimension` are valid after `open`.

    `open` raises ConfigurationError if the model is unavailable; `embed` raises ModelUnavailable if the model fails.
    """

    @property
    def model(self) -> str:
        """The name that the database records for the vectors of this model."""
        ...

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        ...

    async def open(self) -> None:
        """Load the model or connect to its server; further calls do nothing."""
        ...

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """Return one vector per text, in the same order; call `open` first if necessary.

        `query`: the texts are questions, which some models expect to be marked.
        """
        ...

    async def aclose(self) -> None:
        """End the threads and close the connections."""
        ...


def create_embedder(settings: Settings, progress: DownloadProgress | None = None) -> Embedder:
    """Return the embedder of the settings, not opened yet; `progress` is called while its model is downloaded."""
    if settings.embedder == "openai":
        from graphmem.models.openai_embedder import OpenAIEmbedder

        return OpenAIEmbedder.from_settings(settings)
    if settings.embedder == "sentence-transformers":
        from graphmem.models.sentence_transformers import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(settings.embedding_model, threads=settings.embedding_threads)
    from graphmem.models.onnx_embedder import OnnxEmbedder

    return OnnxEmbedder.from_settings(settings, progress)


def create_recorded_embedder(
    model: EmbeddingModel, settings: Settings, progress: DownloadProgress | None = None
) -> Embedder:
    """Return the embedder of a model that a database records; the settings say how its server is reached."""
    return create_embedder(
        settings.model_copy(update={"embedder": model.embedder, "embedding_model": model.name}), progress
    )


def describe_model(embedder: Embedder, settings: Settings) -> EmbeddingModel:
    """Return what a database records of the embedder of the settings, whose dimension is known."""
    return EmbeddingModel(name=embedder.model, dimension=embedder.dimension, embedder=settings.embedder)
