"""The types of entities that a predicate implies, for statements that name entities without a type. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from graphmem.memories.entity import PERSON_TYPE, EntityIn
from graphmem.memories.memory import MemoryIn
from graphmem.runtime.text import name_key

PLACE_TYPE = "Place"
ORGANIZATION_TYPE = "Organization"


class ImpliedTypes(NamedTuple):
    """The types of the subject and of the object of a predicate; None: it may be anything."""

    subject: str | None
    object: str | None


_PLACES = ("LIVES_IN", "LIVED_IN", "BORN_IN", "GREW_UP_IN", "RESIDES_IN", "LOCATED_IN")
_WORK = ("WORKS_AT", "WORKED_AT", "WORKS_FOR", "WORKED_FOR", "EMPLOYED_BY", "STUDIES_AT", "STUDIED_AT")
_PEOPLE = (
    "MARRIED_TO", "ENGAGED_TO", "DIVORCED_FROM", "SPOUSE_OF", "HUSBAND_OF", "WIFE_OF", "PARTNER_OF", "FRIEND_OF",
    "COLLEAGUE_OF", "NEIGHBOUR_OF", "NEIGHBOR_OF", "ROOMMATE_OF", "SIBLING_OF", "BROTHER_OF", "SISTER_OF", "PARENT_OF",
    "MOTHER_OF", "FATHER_OF", "CHILD_OF", "SON_OF", "DAUGHTER_OF", "COUSIN_OF", "AUNT_OF", "UNCLE_OF",
    "GRANDPARENT_OF", "GRANDMOTHER_OF", "GRANDFATHER_OF", "BOSS_OF", "REPORTS_TO",
)  # fmt: skip

IMPLIED_TYPES = {
    **dict.fromkeys(_PLACES, ImpliedTypes(None, PLACE_TYPE)),
    **dict.fromkeys(_WORK, ImpliedTypes(PERSON_TYPE, ORGANIZATION_TYPE)),
    **dict.fromkeys(_PEOPLE, ImpliedTypes(PERSON_TYPE, PERSON_TYPE)),
}
"""Types by predicate: only predicates whose subjects or objects are of one kind nearly always."""


def with_implied_types(memories: Sequence[MemoryIn]) -> list[MemoryIn]:
    """Return statements whose untyped subjects and objects have the types that their predicates imply.

    A name that a statement of the same save gives a type keeps that one everywhere.
    """
    typed = {name_key(entity.name) for memory in memories for entity in _entities_of(memory) if entity.type}
    return [_with_implied_types(memory, typed) for memory in memories]


def _with_implied_types(memory: MemoryIn, typed: set[str]) -> MemoryIn:
    implied = IMPLIED_TYPES.get(memory.predicate or "")
    if implied is None:
        return memory
    changes = {
        role: entity.model_copy(update={"type": type})
        for role, entity, type in (
            ("subject", memory.subject, implied.subject),
            ("object", memory.object, implied.object),
        )
        if entity and type and entity.type is None and name_key(entity.name) not in typed
    }
    return memory.model_copy(update=changes) if changes else memory


def _entities_of(memory: MemoryIn) -> Iterable[EntityIn]:
    return (entity for entity in (memory.subject, memory.object, *memory.entities) if entity)
