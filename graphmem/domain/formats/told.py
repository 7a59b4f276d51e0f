"""Statements that another memory has told: what they say, when it knew them, and what cannot be taken of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ValidationError

from graphmem.domain.memory import MemoryIn


@dataclass(frozen=True, slots=True)
class Told:
    """Where a statement comes from and the known time it had there; None is unknown, or open."""

    key: str
    """What names it there, so that bringing it again is recognised."""

    created_at: datetime | None = None
    updated_at: datetime | None = None
    expired_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Brought:
    """A statement with its place in the document and its id there."""

    place: tuple[str | int, ...]
    id: str
    memory: MemoryIn
    told: Told


class Refused(BaseModel):
    """Something of an import that was not taken: where it stands, its id there, and why."""

    loc: list[str | int]
    id: str | None
    reason: str


@dataclass(slots=True)
class Statements:
    """What a document of another memory holds."""

    taken: list[Brought] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)

    def add(self, place: tuple[str | int, ...], id: str, told: Told, statement: dict[str, Any]) -> None:
        """Take a statement, or refuse it where it is none that could be saved."""
        if id in self._ids:
            self.refuse(place, id, "its id stands in the document before")
            return
        self._ids.add(id)
        try:
            memory = MemoryIn.model_validate(statement)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            named = ".".join(map(str, first["loc"]))
            self.refuse(place, id, f"{named}: {first['msg']}".removeprefix(": ").replace("Value error, ", ""))
        else:
            self.taken.append(Brought(place, id, memory, told))

    def refuse(self, place: tuple[str | int, ...], id: str | None, reason: str) -> None:
        """Note what is not taken."""
        self.refused.append(Refused(loc=list(place), id=id, reason=reason))
