"""All that searches and lookups read of one group, in memory: facts, entities and messages as of a revision. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from graphmem.memories.entity import Entity, EntityRef, NamedEntity, entity_from_columns, named_entity_from_node
from graphmem.models.embedding_models import EmbeddingModel
from graphmem.search.resident.fact_table import FACT_BYTES, FactTable
from graphmem.search.resident.message_table import MESSAGE_BYTES, MessageTable
from graphmem.tenants.spaces import GroupState

ENTITY_BYTES = 1_500
"""Memory of an entity, measured over conversations."""


class GroupCopy:
    """A group as of a revision of one of its lives, with vectors of one model."""

    def __init__(self, state: GroupState, model: EmbeddingModel) -> None:
        self.group_id = state.group_id
        self.life = state.life
        self.revision = state.settled_revision
        self.model = model
        self.facts = FactTable(model.dimension)
        self.messages = MessageTable(model.dimension)
        self._entities: dict[str, Sequence[Any]] = {}
        self._refs: dict[str, EntityRef] = {}
        self._user_ids: set[str] = set()

    @property
    def nbytes(self) -> int:
        """An estimate of the memory that the copy takes."""
        return self.facts.nbytes + self.messages.nbytes + len(self._entities) * ENTITY_BYTES

    def reserve(self, facts: int, entities: int, messages: int) -> int:
        """Make room for so many elements, and return an estimate of the memory that the copy takes with them.

        The texts are not in the estimate.
        """
        self.facts.reserve(facts)
        self.messages.reserve(messages)
        return self.nbytes + facts * FACT_BYTES + messages * MESSAGE_BYTES + entities * ENTITY_BYTES

    @property
    def refs(self) -> Mapping[str, EntityRef]:
        """The entities as memories refer to them, by id."""
        return self._refs

    def put_entity(self, columns: Sequence[Any]) -> None:
        """Add or replace an entity, from the columns of `resident.load_entities`."""
        stored, _ = columns
        self._entities[stored["uuid"]] = columns
        self._user_ids.discard(stored["uuid"])
        if stored.get("is_user"):
            self._user_ids.add(stored["uuid"])
        self._refs[stored["uuid"]] = EntityRef(id=stored["uuid"], name=stored["name"], type=stored["type"])

    def named_entities(self) -> list[NamedEntity]:
        """Return the entities with their names."""
        return [named_entity_from_node(stored) for stored, _ in self._entities.values()]

    @property
    def user_ids(self) -> Set[str]:
        """The ids of the entities that stand for a user."""
        return self._user_ids

    def entity(self, entity_id: str, now: int) -> Entity | None:
        """Return an entity with the number of its facts that are current `now`, in microseconds since 1970."""
        if (columns := self._entities.get(entity_id)) is None:
            return None
        stored, times = columns
        return entity_from_columns(stored, times, self.facts.count_current(entity_id, now))
