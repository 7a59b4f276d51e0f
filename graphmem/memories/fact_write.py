"""One write to a user's facts: what it may change is loaded once, and its result is stored in one query."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from graphmem.memories.fact import Fact
from graphmem.memories.fact_mapping import fact_from_row, fact_to_properties
from graphmem.memories.versioning import Ledger
from graphmem.neo4j.driver import Row, Transaction
from graphmem.runtime.field_types import Vector, deduplicate
from graphmem.runtime.times import MICROSECOND
from graphmem.tenants.owners import Owner

Key = TypeVar("Key", bound=Hashable)

MAX_MESSAGE_FACTS = 100
"""Versions that a message lists as resting on it, the latest ones."""


class FactLoader:
    """Loads the believed versions that a write of one user may change, each at most once.

    It does not see changes of its own transaction, so use it until the first write of the transaction only.
    """

    def __init__(self, transaction: Transaction, owner: Owner) -> None:
        self._transaction = transaction
        self._owner = owner
        self._requested: set[Hashable] = set()
        self._facts: dict[str, Fact] = {}

    async def fetch(
        self,
        *,
        hashes: Sequence[str] = (),
        memory_ids: Sequence[str] = (),
        pairs: Sequence[tuple[str, str]] = (),
    ) -> dict[str, Fact]:
        """Load facts and return, by memory id, all that this loader has loaded so far.

        Facts are selected by the hash of their content, by memory id and by pairs of subject id and predicate.
        """
        new_hashes = self._not_requested(hashes)
        new_memory_ids = self._not_requested(memory_ids)
        new_pairs = [list(pair) for pair in self._not_requested(pairs)]
        if new_hashes or new_memory_ids or new_pairs:
            rows = await self._transaction.run(
                "facts.fetch_for_write",
                group_id=self._owner.group_id,
                hashes=new_hashes,
                memory_ids=new_memory_ids,
                pairs=new_pairs,
            )
            self._facts |= {fact.memory_id: fact for fact in map(fact_from_row, rows)}
        return dict(self._facts)

    def _not_requested(self, keys: Sequence[Key]) -> list[Key]:
        new_keys = [key for key in deduplicate(keys) if key not in self._requested]
        self._requested.update(new_keys)
        return new_keys


@dataclass(frozen=True, slots=True)
class FactWrite:
    """The changes that one transaction makes to a user's facts.

    `vectors` holds the vectors of new contents by the uuid of the version, `entities` the properties of entities to
    create, and `now` is the time at which the user was locked.
    """

    owner: Owner
    transaction: Transaction
    now: datetime
    ledger: Ledger
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    entities: Sequence[Row] = ()

    async def commit(self, saved_facts: Sequence[Fact] = ()) -> None:
        """Store the versions of the ledger; link `saved_facts` to their messages and to the entities they refer to."""
        await self.transaction.run(
            "facts.commit_write",
            group_id=self.owner.group_id,
            entities=list(self.entities),
            changed=[
                {"uuid": fact.uuid, "properties": fact_to_properties(fact)} for fact in self.ledger.changed.values()
            ],
            created=[self._created_row(fact) for fact in self.ledger.created.values()],
            episodes=_episode_rows(saved_facts),
            max_facts=MAX_MESSAGE_FACTS,
            referring=deduplicate(fact.memory_id for fact in saved_facts if fact.mentioned_ids),
            now=self.now,
            at=self.ledger.now + MICROSECOND,
        )

    def _created_row(self, fact: Fact) -> Row:
        source = self.ledger.vector_source_uuid.get(fact.uuid)
        vector = self.vectors.get(source or fact.uuid)
        return {
            "subject_id": fact.subject_id,
            "object_id": fact.object_id or fact.subject_id,
            "properties": fact_to_properties(fact),
            "vector": vector,
            "vector_source_uuid": source if vector is None else None,
        }


def _episode_rows(facts: Sequence[Fact]) -> list[Row]:
    """Return a row for each message, with the facts taken from it and the entities they refer to."""
    facts_by_episode: dict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        for episode in fact.episodes:
            facts_by_episode[episode].append(fact)
    return [
        {
            "episode": episode,
            "facts": [fact.uuid for fact in stated],
            "entity_ids": deduplicate(entity_id for fact in stated for entity_id in fact.entity_ids),
        }
        for episode, stated in facts_by_episode.items()
    ]
