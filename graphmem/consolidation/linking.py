"""Two entities become one: facts, mentions and names move to the one that is kept, and nothing dangles."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from graphmem.consolidation.merging import EntityDetails, combine_details, reattach_fact, update_details
from graphmem.domain.consolidation_models import UpdateEntity
from graphmem.domain.entity import Entity
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.memory import MemoryStatus
from graphmem.domain.snapshot import ElementKind
from graphmem.domain.text import name_key
from graphmem.domain.times import MICROSECOND
from graphmem.domain.versioning import Ledger
from graphmem.store.driver import Transaction
from graphmem.store.fact_mapping import fact_from_row
from graphmem.store.fact_write import FactWrite
from graphmem.store.snapshots import ChangeRecorder

DUPLICATE_REASON = "said of the same entity under another name"


@dataclass(frozen=True, slots=True)
class EntityLinker:
    """Changes of entities within one run's transaction."""

    transaction: Transaction
    recorder: ChangeRecorder
    owner: Owner
    run_id: str
    actor: str | None

    async def link(self, keep: Entity, merge: Entity, now: datetime) -> tuple[list[Fact], datetime]:
        """Move everything at `merge` to `keep`; return the duplicates that ended and the time reached."""
        ended, now = await self._retire_duplicates(keep, merge, now)
        versions = await self._load_facts_of_entity(merge.id)
        episodes = await self.transaction.run(
            "consolidation.find_mentioning_messages", group_id=self.owner.group_id, entity_id=merge.id
        )
        pairs = [f"{row['id']}>{key}" for row in episodes for key in (merge.id, keep.id)]
        await self.recorder.record_before(ElementKind.FACT, [fact.uuid for fact in versions])
        await self.recorder.record_before(ElementKind.ENTITY, [keep.id, merge.id])
        await self.recorder.record_before(ElementKind.MENTION, pairs)
        await self._reattach_facts(versions, keep, merge)
        await self._absorb_entity(keep, merge, [fact for fact in versions if fact.expired_at is None], now)
        return ended, now + MICROSECOND

    async def update(self, proposal: UpdateEntity, entity: Entity, now: datetime) -> None:
        """Set what is known of an entity and add its further names."""
        await self.recorder.record_before(ElementKind.ENTITY, [entity.id])
        await self._write_entity(entity, update_details(entity, proposal.set, proposal.add_aliases), now)

    async def _retire_duplicates(self, keep: Entity, merge: Entity, now: datetime) -> tuple[list[Fact], datetime]:
        """End the statements that are said of both, so that each is current once; the kept one takes their sources."""
        current_facts = {
            fact.memory_id: fact
            for key in (keep.id, merge.id)
            for fact in await self._load_facts_of_entity(key)
            if fact.expired_at is None and fact.subject_id in (keep.id, merge.id) and fact.active_hash
        }
        ours = {fact.content_hash: fact for fact in current_facts.values() if fact.subject_id == keep.id}
        duplicates = [
            fact for fact in current_facts.values() if fact.subject_id == merge.id and fact.content_hash in ours
        ]
        if not duplicates:
            return [], now
        ledger = Ledger(current_facts.values(), now, self.actor)
        for duplicate in duplicates:
            kept = ours[duplicate.content_hash]
            ledger.retire(duplicate.memory_id, DUPLICATE_REASON, kept.memory_id, MemoryStatus.SUPERSEDED)
            if not kept.immutable:
                ledger.annotate(
                    kept.memory_id,
                    message_ids=tuple(dict.fromkeys([*kept.message_ids, *duplicate.message_ids])),
                    episodes=tuple(dict.fromkeys([*kept.episodes, *duplicate.episodes])),
                )
        await self.recorder.record_before(ElementKind.FACT, [*ledger.changed, *ledger.created])
        await FactWrite(self.owner, self.transaction, now, ledger).commit()
        return duplicates, ledger.now + MICROSECOND

    async def _reattach_facts(self, versions: list[Fact], keep: Entity, merge: Entity) -> None:
        rows = []
        for fact in versions:
            moved_fact = reattach_fact(fact, merge.id, keep.id)
            rows.append(
                {
                    "id": fact.uuid,
                    "source": moved_fact.subject_id,
                    "target": moved_fact.object_id or moved_fact.subject_id,
                    "properties": {"entity_ids": list(moved_fact.entity_ids), "active_hash": moved_fact.active_hash},
                }
            )
        group_id = self.owner.group_id
        if rows:
            await self.transaction.run("consolidation.reattach_facts", group_id=group_id, rows=rows)
        await self.transaction.run(
            "consolidation.reattach_mentions", group_id=group_id, keep_id=keep.id, merge_id=merge.id
        )

    async def _absorb_entity(self, keep: Entity, merge: Entity, current_facts: list[Fact], now: datetime) -> None:
        await self.transaction.run("snapshots.remove_entities", group_id=self.owner.group_id, ids=[merge.id])
        await self._write_entity(keep, combine_details(keep, merge), now)
        mentioning = [
            fact.memory_id
            for fact in (reattach_fact(each, merge.id, keep.id) for each in current_facts)
            if keep.id in fact.entity_ids and keep.id not in (fact.subject_id, fact.object_id)
        ]
        if mentioning:
            rows = [{"entity_id": keep.id, "memory_ids": list(dict.fromkeys(mentioning))}]
            await self.transaction.run("entities.add_mentions", group_id=self.owner.group_id, mentioned=rows)

    async def _write_entity(self, entity: Entity, details: EntityDetails, now: datetime) -> None:
        properties = {
            "aliases": details.aliases,
            "alias_keys": [name_key(name) for name in details.aliases],
            "alias_text": " ".join(details.aliases),
            "summary": details.summary,
            "attributes": json.dumps(details.attributes, ensure_ascii=False),
            "type": details.type,
            "labels": ["Entity", details.type],
            "updated_at": now,
        }
        gone = [entity.type] if details.type != entity.type else []
        row = {"id": entity.id, "properties": properties, "labels": [details.type], "labels_gone": gone}
        await self.transaction.run("snapshots.set_entities", group_id=self.owner.group_id, rows=[row])

    async def _load_facts_of_entity(self, entity_id: str) -> list[Fact]:
        rows = await self.transaction.run(
            "consolidation.fetch_entity_facts", group_id=self.owner.group_id, entity_id=entity_id
        )
        return [fact_from_row(row) for row in rows]
