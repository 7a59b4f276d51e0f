"""An open write of one user: what it may touch is fetched once, what became of it is written in one query."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.versioning import MICROSECOND, Ledger
from graphmem.store.driver import Row, Transaction
from graphmem.store.fact_mapping import fact_from_row, fact_to_properties
from graphmem.store.new_memory import Vector

Key = TypeVar("Key", bound=Hashable)


class FactLoader:
    """The latest believed versions that a write of one user may touch, as they are before it writes.

    It lasts as long as the transaction, and no longer than its first write.
    """

    def __init__(self, transaction: Transaction, owner: Owner) -> None:
        self._transaction = transaction
        self._owner = owner
        self._requested: set[Hashable] = set()
        self._found: dict[str, Fact] = {}

    async def fetch(
        self,
        *,
        hashes: Sequence[str] = (),
        memory_ids: Sequence[str] = (),
        pairs: Sequence[tuple[str, str]] = (),
    ) -> dict[str, Fact]:
        """Return by memory id all that has been asked for so far, with this.

        Facts are asked for by the hashes of statements, by memory ids, by pairs of a subject's id and a predicate.
        """
        new = {
            "hashes": self._not_requested(hashes),
            "memory_ids": self._not_requested(memory_ids),
            "pairs": [list(pair) for pair in self._not_requested(pairs)],
        }
        if any(new.values()):
            rows = await self._transaction.run("facts.fetch_for_write", group_id=self._owner.group_id, **new)
            self._found.update((fact.memory_id, fact) for fact in map(fact_from_row, rows))
        return dict(self._found)

    def _not_requested(self, keys: Sequence[Key]) -> list[Key]:
        fresh = [key for key in dict.fromkeys(keys) if key not in self._requested]
        self._requested.update(fresh)
        return fresh


@dataclass(slots=True)
class FactWrite:
    """What one transaction does to a user's facts: a ledger over what it may touch, and the vectors of new texts.

    `vectors` are by the uuid of a version, `entities` the properties of those that facts lie between and that are
    new; `now` is the time at which the user was locked.
    """

    owner: Owner
    transaction: Transaction
    now: datetime
    ledger: Ledger
    vectors: dict[str, Vector] = field(default_factory=dict)
    entities: Sequence[Row] = ()

    async def commit(self, saved_facts: Sequence[Fact] = ()) -> None:
        """Write what the ledger collected, and tie `saved_facts` to their messages and to the entities they mention."""
        episodes, mentioned = _message_and_mention_rows(saved_facts)
        await self.transaction.run(
            "facts.commit_write",
            group_id=self.owner.group_id,
            entities=list(self.entities),
            changed=[
                {"uuid": each.uuid, "properties": fact_to_properties(each)} for each in self.ledger.changed.values()
            ],
            created=[self._created_row(fact) for fact in self.ledger.created.values()],
            episodes=episodes,
            mentioned=mentioned,
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


def _message_and_mention_rows(facts: Sequence[Fact]) -> tuple[list[Row], list[Row]]:
    """Return the rows that tie facts to messages, and to entities they mention beside subject and object."""
    episodes: dict[str, dict[str, Any]] = {}
    mentions: dict[str, list[str]] = defaultdict(list)
    for fact in facts:
        for episode in fact.episodes:
            row = episodes.setdefault(episode, {"episode": episode, "facts": [], "entity_ids": []})
            row["facts"].append(fact.uuid)
            row["entity_ids"] = list(dict.fromkeys([*row["entity_ids"], *fact.entity_ids]))
        for entity_id in set(fact.entity_ids) - {fact.subject_id, fact.object_id}:
            mentions[entity_id].append(fact.memory_id)
    return list(episodes.values()), [{"entity_id": key, "memory_ids": ids} for key, ids in sorted(mentions.items())]
