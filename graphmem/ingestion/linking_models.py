"""What linking finds: the known entities that statements name, and the known facts near them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from graphmem.ingestion.candidates import ValidatedCandidate
from graphmem.memories.entity import EntityIn
from graphmem.memories.memory import MemoryType
from graphmem.runtime.text import name_key


class EntityIds(BaseModel):
    """The ids of known entities that statements name; `user` is the user's own entity, None before its first fact."""

    model_config = ConfigDict(frozen=True)

    user: str | None = None
    by_name_key: dict[str, str] = Field(default_factory=dict)

    @property
    def all_ids(self) -> set[str]:
        """All ids."""
        return {*self.by_name_key.values(), *([self.user] if self.user else ())}

    def with_names(self, ids: Mapping[str, str]) -> EntityIds:
        """Return these ids and those of further name keys."""
        return EntityIds(user=self.user, by_name_key={**self.by_name_key, **ids})

    def of_entity(self, entity: EntityIn | None) -> str | None:
        """Return the id of a named entity, or None for an unknown one."""
        return self.by_name_key.get(name_key(entity.name)) if entity else None

    def of_subject(self, candidate: ValidatedCandidate) -> str | None:
        """Return the id of the entity a statement is about; one without a subject is about the user."""
        return self.of_entity(candidate.memory.subject) if candidate.memory.subject else self.user

    def named_in(self, candidate: ValidatedCandidate) -> set[str]:
        """Return the ids of the known entities that a statement names."""
        return {entity_id for entity in candidate.named_entities if (entity_id := self.of_entity(entity))}


class PossibleEntity(BaseModel):
    """A known entity that an ambiguous name may mean; `relation` is a fact that says who a person is."""

    id: str
    name: str
    type: str
    aliases: list[str] = Field(default_factory=list)
    relation: str | None = None


class AmbiguousName(BaseModel):
    """A name that may mean one of several known entities, by id, or none."""

    name: str
    type: str | None
    options: list[str]


class LinkingResult(BaseModel):
    """What linking found for the statements of a window.

    `related` are the memory ids of known facts in the order in which they were learned; `related_by_candidate` are
    positions in that list, for each statement.
    """

    entities: EntityIds = Field(default_factory=EntityIds)
    known: list[PossibleEntity] = Field(default_factory=list)
    ambiguous_names: list[AmbiguousName] = Field(default_factory=list)
    related: list[str] = Field(default_factory=list)
    related_by_candidate: list[list[int]] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RelatedFact:
    """A known fact as far as it is compared with statements; `similarities` are its cosines with each of them."""

    memory_id: str
    content: str
    content_hash: str
    type: MemoryType
    predicate: str
    subject_id: str
    object_id: str | None
    entity_ids: Sequence[str]
    immutable: bool
    first_created_at: datetime
    valid_at: datetime | None
    similarities: Sequence[float]

    @property
    def learning_order(self) -> tuple[datetime, str]:
        """The sort key for the order in which facts were learned, the same on every machine."""
        return self.first_created_at, self.content

    @property
    def effective_start(self) -> datetime:
        """The start by which single-valued facts are ordered, as in `Fact`."""
        return self.valid_at or self.first_created_at
