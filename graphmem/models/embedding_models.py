"""The embedding model of a database's vectors, and the text embedded for a message."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from graphmem.runtime.field_types import NonBlankText


class EmbeddingModel(BaseModel):
    """A model as recorded in a database: its name, vector length, and embedder."""

    model_config = ConfigDict(frozen=True)

    name: str
    dimension: int
    embedder: str


class ReembeddingPhase(StrEnum):
    """The phases of a re-embedding; searches use the vectors of the new model from `serving` on."""

    FILLING = "filling"
    SERVING = "serving"
    CLEANING = "cleaning"


class VectorState(BaseModel):
    """The model of a database's vectors, and the current re-embedding, if any."""

    model_config = ConfigDict(frozen=True)

    model: EmbeddingModel
    next: EmbeddingModel | None = None
    phase: ReembeddingPhase | None = None
    job_id: str | None = None
    done: int = 0

    @classmethod
    def from_properties(cls, stored: Mapping[str, Any]) -> Self:
        """Return the state stored in the schema node's properties."""
        name, next_name = stored["model"], stored.get("next_model")
        embedder = stored.get("embedder") or _embedder_of(name)
        following = next_name and EmbeddingModel(
            name=next_name, dimension=stored["next_dimension"], embedder=stored["next_embedder"]
        )
        return cls(
            model=EmbeddingModel(name=name, dimension=stored["dimension"], embedder=embedder),
            next=following or None,
            phase=stored.get("phase"),
            job_id=stored.get("reembedding_job"),
            done=stored.get("vectors_done", 0),
        )

    @property
    def models(self) -> frozenset[EmbeddingModel]:
        """The model of the vectors and, during a re-embedding, the next one."""
        return frozenset({self.model} if self.next is None else {self.model, self.next})

    @property
    def reads_next(self) -> bool:
        """Whether searches read the next model's vectors in addition to the old ones."""
        return self.phase is ReembeddingPhase.SERVING

    @property
    def searched_model(self) -> EmbeddingModel:
        """The model used to embed questions."""
        return self.next if self.next and self.reads_next else self.model


class ReembeddingIn(BaseModel):
    """The new model of all vectors; defaults to the configured model."""

    model_config = ConfigDict(extra="forbid")

    model: NonBlankText | None = Field(
        None, max_length=300, description="A model of the configured embedder; defaults to the configured one."
    )


class EmbeddingStatus(BaseModel):
    """The model of all vectors; during a re-embedding also the next one, the phase, and how far it has come.

    `done` counts the vectors computed, and `total` estimates how many there are.
    """

    model: str
    dimension: int
    next_model: str | None = None
    phase: ReembeddingPhase | None = None
    job_id: str | None = None
    done: int | None = None
    total: int | None = None


def _embedder_of(model: str) -> str:
    """Return the embedder of a model, for databases that record only the model's name."""
    if model.endswith("-int8"):
        return "local"
    return "openai" if model.startswith("text-embedding-") else "sentence-transformers"


def embedding_text(name: str | None, content: str) -> str:
    """Return the text to embed for a message, with the speaker's name if known."""
    return f"{name}: {content}" if name else content
