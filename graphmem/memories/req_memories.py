"""Split of domain/requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from pydantic import BaseModel, Field, model_validator

from graphmem.memories.memory import MemoryIn, MemoryPatch, SaveResult
from graphmem.runtime.stored_values import check_request_size
from graphmem.runtime.validation import RequestBody


class SaveIn(RequestBody):
    """Statements to save together."""

    memories: list[MemoryIn] = Field(min_length=1)
    infer: bool = Field(
        False, description="Let a model compare them with what is known: insert, reinforce, supersede or skip."
    )

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        return check_request_size(self)


@dataclass(frozen=True, slots=True)
class MemoryUpdate:
    """The changes of one memory, and the version that they apply to (None: the latest)."""

    patch: MemoryPatch
    if_version: int | None = None


class SaveOut(BaseModel):
    """The result of each statement, in the order of the request."""

    results: list[SaveResult]


class ErasedMemory(BaseModel):
    """An erased memory and the number of versions it had."""

    id: str
    erased: int
