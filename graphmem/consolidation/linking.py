"""Two entities become one: facts, mentions and names move to the one that is kept, and nothing dangles."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from graphmem.consolidation.merging import Known, linked, moved, updated
from graphmem.domain.belief import ONE_TICK, Ledger
from graphmem.domain.entity import Entity
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.memory import Status
from graphmem.domain.proposals import UpdateEntity
from graphmem.domain.snapshot import Kind
from graphmem.domain.text import name_key
from graphmem.store.driver import Transaction
from graphmem.store.rows import read_fact
from graphmem.store.snapshots import Recorder
from graphmem.store.writes import Write

TWIN = "said of the same entity under another name"


@dataclass(frozen=True, slots=True)
class Linking:
    """Changes of entities within one run's transaction."""

    transaction: Transaction
    recorder: Recorder
    owner: Owner
    run_id: str
    actor: str | None

    async def link(self, keep: Entity, merge: Entity, now: datetime) -> tuple[list[Fact], datetime]:
        """Move everything at `merge` to `keep`; return the twins that ended and the time reached."""
        ended, now = await self._retire_twins(keep, merge, now)
        versions = await self._touching(merge.id)
        episodes = await self.transaction.run(
            "consolidation.mentioning", group_id=self.owner.group_id, entity_id=merge.id
        )
        pairs = [f"{row['id']}>{key}" for row in episodes for key in (merge.id, keep.id)]
        await self.recorder.see(Kind.FACT, [fact.uuid for fact in versions])
        await self.recorder.see(Kind.ENTITY, [keep.id, merge.id])
        await self.recorder.see(Kind.MENTION, pairs)
        await self._move(versions, keep, merge)
        await self._join(keep, merge, [fact for fact in versions if fact.expired_at is None], now)
        return ended, now + ONE_TICK

    async def update(self, proposal: UpdateEntity, entity: Entity, now: datetime) -> None:
        """Set what is known of an entity and add its further names."""
        await self.recorder.see(Kind.ENTITY, [entity.id])
        await self._write(entity, updated(entity, proposal.set, proposal.add_aliases), now)

    async def _retire_twins(self, keep: Entity, merge: Entity, now: datetime) -> tuple[list[Fact], datetime]:
        """End the statements that are said of both, so that each is current once; the kept one takes their sources."""
        believed = {
            fact.memory_id: fact
            for key in (keep.id, merge.id)
            for fact in await self._touching(key)
            if fact.expired_at is None and fact.subject_id in (keep.id, merge.id) and fact.active_hash
        }
        ours = {fact.content_hash: fact for fact in believed.values() if fact.subject_id == keep.id}
        twins = [fact for fact in believed.values() if fact.subject_id == merge.id and fact.content_hash in ours]
        if not twins:
            return [], now
        ledger = Ledger(believed.values(), now, self.actor)
        for twin in twins:
            kept = ours[twin.content_hash]
            ledger.retire(twin.memory_id, TWIN, kept.memory_id, Status.SUPERSEDED)
            if not kept.immutable:
                ledger.annotate(
                    kept.memory_id,
                    message_ids=tuple(dict.fromkeys([*kept.message_ids, *twin.message_ids])),
                    episodes=tuple(dict.fromkeys([*kept.episodes, *twin.episodes])),
                )
        await self.recorder.see(Kind.FACT, [*ledger.changed, *ledger.created])
        await Write(self.owner, self.transaction, now, ledger).commit()
        return twins, ledger.now + ONE_TICK

    async def _move(self, versions: list[Fact], keep: Entity, merge: Entity) -> None:
        rows = []
        for fact in versions:
            there = moved(fact, merge.id, keep.id)
            rows.append(
                {
                    "id": fact.uuid,
                    "source": there.subject_id,
                    "target": there.object_id or there.subject_id,
                    "properties": {"entity_ids": list(there.entity_ids), "active_hash": there.active_hash},
                }
            )
        group_id = self.owner.group_id
        if rows:
            await self.transaction.run("consolidation.move_facts", group_id=group_id, rows=rows)
        await self.transaction.run("consolidation.move_mentions", group_id=group_id, keep_id=keep.id, merge_id=merge.id)

    async def _join(self, keep: Entity, merge: Entity, believed: list[Fact], now: datetime) -> None:
        await self.transaction.run("snapshots.remove_entities", group_id=self.owner.group_id, ids=[merge.id])
        await self._write(keep, linked(keep, merge), now)
        mentioning = [
            fact.memory_id
            for fact in (moved(each, merge.id, keep.id) for each in believed)
            if keep.id in fact.entity_ids and keep.id not in (fact.subject_id, fact.object_id)
        ]
        if mentioning:
            rows = [{"entity_id": keep.id, "memory_ids": list(dict.fromkeys(mentioning))}]
            await self.transaction.run("entities.note_mentions", group_id=self.owner.group_id, mentioned=rows)

    async def _write(self, entity: Entity, known: Known, now: datetime) -> None:
        properties = {
            "aliases": known.aliases,
            "alias_keys": [name_key(name) for name in known.aliases],
            "alias_text": " ".join(known.aliases),
            "summary": known.summary,
            "attributes": json.dumps(known.attributes, ensure_ascii=False),
            "type": known.type,
            "labels": ["Entity", known.type],
            "updated_at": now,
        }
        gone = [entity.type] if known.type != entity.type else []
        row = {"id": entity.id, "properties": properties, "labels": [known.type], "labels_gone": gone}
        await self.transaction.run("snapshots.set_entities", group_id=self.owner.group_id, rows=[row])

    async def _touching(self, entity_id: str) -> list[Fact]:
        rows = await self.transaction.run("consolidation.touching", group_id=self.owner.group_id, entity_id=entity_id)
        return [read_fact(row) for row in rows]
