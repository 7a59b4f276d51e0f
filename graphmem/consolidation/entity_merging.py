"""Changes of entities by a run: two become one, or one gets other attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from graphmem.consolidation.models import UpdateEntity
from graphmem.consolidation.run_store import fetch_entity_nodes, fetch_facts_of_entity
from graphmem.memories.entity import Entity
from graphmem.memories.entity_details import SourcedDetails
from graphmem.memories.fact import Fact, fact_from_row, fact_to_properties, join_sources, profile_of
from graphmem.memories.ledger import Ledger
from graphmem.memories.memory import MemoryStatus
from graphmem.memories.saving import FactWrite
from graphmem.memories.snapshot import ElementKind
from graphmem.memories.snapshot_store import ChangeRecorder
from graphmem.neo4j.driver import Transaction
from graphmem.runtime.field_types import deduplicate, name_key
from graphmem.runtime.times import MICROSECOND
from graphmem.tenants.owners import Owner
from graphmem.tenants.tenant_settings import find_trust_order
from graphmem.tenants.trust import DEFAULT_ORDER, Effect, SourceKind, TrustOrder


async def retire_duplicates(
    transaction: Transaction,
    owner: Owner,
    recorder: ChangeRecorder,
    ledger: Ledger,
    kept_ids: Mapping[str, str],
    reason: str,
    now: datetime,
) -> datetime:
    """Retire duplicates, write all that the ledger has collected, record it, and return the time reached.

    `kept_ids` maps the id of each duplicate to that of the memory that supersedes it.
    """
    for duplicate_id, kept_id in kept_ids.items():
        ledger.retire(duplicate_id, reason, kept_id, MemoryStatus.SUPERSEDED)
    await recorder.record_before(ElementKind.FACT, [*ledger.changed, *ledger.created])
    await FactWrite(owner, transaction, now, ledger).commit()
    return ledger.now


LINKED_REASON = "its entity was linked with another one"
"""Reason in the history of a profile that a link ended."""

SAME_ENTITY_REASON = "said of the same entity under another name"
"""Reason in the history of a memory that a link made a duplicate."""


@dataclass(frozen=True, slots=True)
class EntityMerger:
    """Changes the entities of one user within a run's transaction, and records what it changes."""

    transaction: Transaction
    recorder: ChangeRecorder
    owner: Owner
    actor: str | None

    async def update(
        self, proposal: UpdateEntity, entity: Entity, kind: SourceKind, order: TrustOrder, now: datetime
    ) -> None:
        """Set attributes of an entity and add its new aliases as a source does; write nothing if it has all of them."""
        nodes = await fetch_entity_nodes(self.transaction, self.owner, [entity.id])
        details = SourcedDetails(nodes[entity.id], order)
        details.overwrite(proposal.set, kind)
        details.add_aliases({name_key(name): name for name in proposal.add_aliases}, kind)
        if row := details.to_row(now):
            await self.recorder.record_before(ElementKind.ENTITY, [entity.id])
            await self.transaction.run("snapshots.set_entities", group_id=self.owner.group_id, rows=[row])

    async def merge(self, keep: Entity, merge: Entity, now: datetime) -> tuple[list[Fact], datetime]:
        """Move the facts, mentions and names of `merge` to `keep`, and delete `merge`.

        Returns the facts that ended as duplicates, and the time reached.
        """
        now = await self._archive_profiles(keep, merge, now)
        ended, now = await self._retire_duplicates(keep, merge, now)
        versions = await fetch_facts_of_entity(self.transaction, self.owner, merge.id, with_profiles=True)
        messages = await self.transaction.run(
            "consolidation.find_mentioning_messages", group_id=self.owner.group_id, entity_id=merge.id
        )
        mention_ids = [f"{row['id']}>{entity_id}" for row in messages for entity_id in (merge.id, keep.id)]
        await self.recorder.record_before(ElementKind.FACT, [fact.uuid for fact in versions])
        await self.recorder.record_before(ElementKind.ENTITY, [keep.id, merge.id])
        await self.recorder.record_before(ElementKind.MENTION, mention_ids)
        reattached = [reattach_fact(fact, merge.id, keep.id) for fact in versions]
        nodes = await fetch_entity_nodes(self.transaction, self.owner, [keep.id, merge.id])
        await self._write_reattached(reattached, keep, merge)
        await self.transaction.run("snapshots.remove_entities", group_id=self.owner.group_id, ids=[merge.id])
        details = SourcedDetails(nodes[keep.id], DEFAULT_ORDER)
        details.absorb(nodes[merge.id])
        await self.transaction.run("snapshots.set_entities", group_id=self.owner.group_id, rows=[details.to_row(now)])
        await self.transaction.run(
            "facts.rebuild_references",
            group_id=self.owner.group_id,
            referring=deduplicate(fact.memory_id for fact in reattached),
        )
        return ended, now + MICROSECOND

    async def _archive_profiles(self, keep: Entity, merge: Entity, now: datetime) -> datetime:
        """End the profiles of two entities, neither of which tells of both; return the time reached."""
        rows = await self.transaction.run(
            "profiles.fetch_latest", group_id=self.owner.group_id, entity_ids=[keep.id, merge.id]
        )
        profiles = [fact for fact in map(fact_from_row, rows) if fact.expired_at is None]
        if not profiles:
            return now
        ledger = Ledger(profiles, now, self.actor)
        for profile in profiles:
            ledger.archive(profile.memory_id, LINKED_REASON)
        await self.recorder.record_before(ElementKind.FACT, ledger.changed)
        await FactWrite(self.owner, self.transaction, now, ledger).commit()
        return ledger.now + MICROSECOND

    async def _retire_duplicates(self, keep: Entity, merge: Entity, now: datetime) -> tuple[list[Fact], datetime]:
        """End the statements of `merge` that `keep` has as well, which takes over their sources."""
        current = {
            fact.memory_id: fact
            for entity_id in (keep.id, merge.id)
            for fact in await fetch_facts_of_entity(self.transaction, self.owner, entity_id)
            if fact.expired_at is None and fact.active_hash
        }
        moved = {fact.memory_id: reattach_fact(fact, merge.id, keep.id).dedup_key for fact in current.values()}
        names_kept = [fact for fact in current.values() if merge.id not in fact.end_ids]
        kept_by_key = {moved[fact.memory_id]: fact for fact in [*current.values(), *names_kept]}
        duplicates = [fact for fact in current.values() if kept_by_key[moved[fact.memory_id]] is not fact]
        if not duplicates:
            return [], now
        kinds = {fact.trust_kind for fact in current.values()}
        order = await find_trust_order(self.transaction, self.owner.tenant, kinds)
        ledger = Ledger(current.values(), now, self.actor, order)
        for duplicate in duplicates:
            kept = kept_by_key[moved[duplicate.memory_id]]
            if not kept.immutable:
                speaks_alike = order.permits(Effect.QUOTE_AS, kept.trust_kind, duplicate.trust_kind)
                trusted = kept if speaks_alike else duplicate
                ledger.annotate(
                    kept.memory_id,
                    message_ids=join_sources(kept.message_ids, duplicate.message_ids),
                    episodes=join_sources(kept.episodes, duplicate.episodes),
                    source_kind=trusted.source_kind,
                    trusted_as=trusted.trusted_as,
                )
        kept_ids = {fact.memory_id: kept_by_key[moved[fact.memory_id]].memory_id for fact in duplicates}
        reached = await retire_duplicates(
            self.transaction, self.owner, self.recorder, ledger, kept_ids, SAME_ENTITY_REASON, now
        )
        return duplicates, reached + MICROSECOND

    async def _write_reattached(self, facts: Sequence[Fact], keep: Entity, merge: Entity) -> None:
        group_id = self.owner.group_id
        rows = [
            {
                "id": fact.uuid,
                "source": fact.subject_id,
                "target": fact.object_id or fact.subject_id,
                "properties": {
                    "entity_ids": fact_to_properties(fact)["entity_ids"],
                    "active_hash": fact.active_hash,
                    "profile_of": profile_of(fact),
                },
            }
            for fact in facts
        ]
        if rows:
            await self.transaction.run("consolidation.reattach_facts", group_id=group_id, rows=rows)
        await self.transaction.run(
            "consolidation.reattach_mentions", group_id=group_id, keep_id=keep.id, merge_id=merge.id
        )


def reattach_fact(fact: Fact, merge_id: str, keep_id: str) -> Fact:
    """Return a version after the facts of entity `merge_id` moved to entity `keep_id`."""
    subject = keep_id if fact.subject_id == merge_id else fact.subject_id
    target = keep_id if fact.object_id == merge_id else fact.object_id
    entity_ids = tuple(dict.fromkeys(keep_id if key == merge_id else key for key in fact.entity_ids))
    moved = replace(fact, subject_id=subject, object_id=target, entity_ids=entity_ids)
    return replace(moved, active_hash=moved.dedup_key if fact.active_hash else None)
