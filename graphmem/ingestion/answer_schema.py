"""The answer that the first call asks for, by the tenant's declared types and by whose text the window has. Pure."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from graphmem.ingestion.llm_schemas import Candidate, Extraction, Screening
from graphmem.memories.declared_types import DeclaredTypes


class NamedAttribute(BaseModel):
    """One attribute of a candidate."""

    name: str
    value: str


class DeclaredCandidate(Candidate):
    """A candidate that may be of a declared type."""

    declared_type: str | None = Field(None, description="name of the declared memory type that fits, else null")
    attributes: list[NamedAttribute] = Field(
        default_factory=list, description="with declared_type: those of its attributes that the messages tell"
    )


class DeclaredExtraction(Extraction):
    """The answer of the first call for a tenant with declared memory types."""

    candidates: list[DeclaredCandidate]  # type: ignore[assignment]  # an answer is only read


_SCREENING_FIELD: Any = Field(
    None, description="for a candidate that rests on a line of <foreign_lines>: what its words do; else null"
)


class ScreenedCandidate(Candidate):
    """A candidate that may be taken from text which is not the user's own."""

    screening: Screening | None = _SCREENING_FIELD


class ScreenedExtraction(Extraction):
    """The answer of the first call for a window with text that is not the user's own."""

    candidates: list[ScreenedCandidate]  # type: ignore[assignment]  # an answer is only read


class ScreenedDeclaredCandidate(DeclaredCandidate):
    """A candidate of both kinds."""

    screening: Screening | None = _SCREENING_FIELD


class ScreenedDeclaredExtraction(DeclaredExtraction):
    """The answer for such a window of a tenant with declared memory types."""

    candidates: list[ScreenedDeclaredCandidate]  # type: ignore[assignment]  # an answer is only read


def answer_schema(types: DeclaredTypes, *, is_screened: bool = False) -> type[Extraction]:
    """Return the answer that the first call asks for; without declared memory types it is the plain one.

    With `is_screened`, the window has text that is not the user's own.
    """
    if types.memory_types:
        return ScreenedDeclaredExtraction if is_screened else DeclaredExtraction
    return ScreenedExtraction if is_screened else Extraction


def read_screenings(answer: Extraction) -> dict[int, Screening]:
    """Return what an answer says of the words that its candidates are taken from, by the candidates' indexes."""
    found = ((index, getattr(candidate, "screening", None)) for index, candidate in enumerate(answer.candidates))
    return {index: screening for index, screening in found if screening is not None}
