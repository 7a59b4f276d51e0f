"""The changes of a run: merges and associations of memories, and entities that are created, joined or updated."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from graphmem.consolidation.guards import GuardContext, review
from graphmem.consolidation.models import (
    Associate,
    Close,
    CreateEntity,
    Merge,
    MergeRelation,
    Proposal,
    ProposalVerdict,
    ReviewedProposal,
    UpdateEntity,
    Verification,
)
from graphmem.consolidation.run_store import fetch_entity_nodes, fetch_facts_of_entity
from graphmem.consolidation.text_checks import find_changed_numbers, is_literally, quotes_cover
from graphmem.memories.entity import Entity, EntityIn, SourcedDetails
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact import (
    DECAY_RATES,
    MAX_SEARCH_TEXT,
    Fact,
    apply_reinforcement,
    fact_from_row,
    fact_to_properties,
    join_sources,
    profile_of,
)
from graphmem.memories.ledger import Ledger
from graphmem.memories.memory import MemoryStatus, MemoryType
from graphmem.memories.saving import FactWrite
from graphmem.memories.snapshot import ElementImage, ElementKind, diff_properties, image_of_fact
from graphmem.memories.snapshot_store import ChangeRecorder
from graphmem.neo4j.driver import Transaction
from graphmem.runtime.field_types import Vector, content_hash, deduplicate, name_key
from graphmem.runtime.times import MICROSECOND
from graphmem.tenants.owners import Owner
from graphmem.tenants.tenant_settings import find_trust_order
from graphmem.tenants.trust import CONSOLIDATION, DEFAULT_ORDER, Effect, SourceKind, TrustOrder

MAX_MERGED_TAGS = 50
"""Maximum tags of a merged memory, the same as for memories saved by callers."""

FACT_ACTIONS: tuple[type, ...] = (CreateEntity, Close, Merge, Associate)
"""The actions on facts in the order of their execution.

An entity is created before the memories that mention it are merged, and a plan is closed before the memory that closes
it is merged; an association follows a merge to its result.
"""


class FactChanges:
    """Applies the proposals of one run about one user's facts, and writes the result once.

    Afterwards, `ended` are the ended facts, `remaining_texts` what remains of their text, `images` the versions
    written, by uuid, and `now` is the time reached.
    """

    def __init__(
        self,
        transaction: Transaction,
        recorder: ChangeRecorder,
        entities: EntityStore,
        owner: Owner,
        context: GuardContext,
        *,
        run_id: str,
        actor: str,
        vectors: Mapping[str, Vector],
    ) -> None:
        self._transaction = transaction
        self._recorder = recorder
        self._entities = entities
        self._owner = owner
        self._run_id = run_id
        self._vectors = vectors
        self._stored = context.facts
        # The guards see changes by earlier proposals when they check the next one.
        self._facts = dict(context.facts)
        self._context = replace(context, facts=self._facts)
        self._ledger = Ledger(context.facts.values(), context.now, actor, context.order)
        self._merged_into: dict[str, str] = {}
        self._merged: list[Fact] = []
        self.ended: list[Fact] = []
        self.remaining_texts: list[str] = []
        self.images: dict[str, ElementImage] = {}
        self.now = context.now
        self._changed: list[Fact] = []

    async def apply(self, proposals: Sequence[ReviewedProposal]) -> list[ReviewedProposal]:
        """Review proposals, apply those that pass the guards, and write the result; return them in the given order."""
        reviewed = list(proposals)
        order = sorted(range(len(reviewed)), key=lambda index: FACT_ACTIONS.index(type(reviewed[index].proposal)))
        for index in order:
            proposal = self._follow_merges(reviewed[index].proposal)
            reviewed[index] = review(reviewed[index], proposal, self._context)
            if reviewed[index].verdict is ProposalVerdict.EXECUTED:
                result_id = await self._apply(proposal, reviewed[index].verification)
                reviewed[index] = reviewed[index].model_copy(update={"result_id": result_id})
        await self._write()
        self.now = self._ledger.now + MICROSECOND
        return reviewed

    def _follow_merges(self, proposal: Proposal) -> Proposal:
        """Return an association in which memories merged by this run are replaced by the results."""
        if not isinstance(proposal, Associate):
            return proposal
        ids = dict.fromkeys(self._merged_into.get(key, key) for key in proposal.memory_ids)
        return proposal.model_copy(update={"memory_ids": list(ids)})

    async def _apply(self, proposal: Proposal, verification: Verification | None) -> str | None:
        """Apply a proposal to the ledger; return the id of the memory or entity it creates."""
        match proposal:
            case Merge():
                return self._merge(proposal, verification)
            case Close():
                self._close(proposal)
            case CreateEntity():
                return await self._create_entity(proposal)
            case Associate():
                self._associate(proposal)
        return None

    def _merge(self, proposal: Merge, verification: Verification | None) -> str:
        sources = [self._facts.pop(key) for key in proposal.memory_ids]
        say_same = self._say_same(proposal, sources, verification)
        draft = merge_facts(sources, proposal.content, say_same=say_same)
        merged = self._ledger.merge(draft, proposal.memory_ids, self._run_id)
        self._facts[merged.memory_id] = merged
        self._merged_into |= dict.fromkeys(proposal.memory_ids, merged.memory_id)
        self.ended += sources
        self._merged.append(merged)
        self.remaining_texts.append(merged.content)
        self._changed.append(merged)
        return merged.memory_id

    def _close(self, proposal: Close) -> None:
        """End a plan when the first memory saying it is over starts, or now."""
        telling = [self._facts[key] for key in proposal.evidence]
        first = min(telling, key=lambda fact: (fact.valid_at is None, fact.valid_from))
        closed = self._ledger.close(proposal.memory_id, first, self._run_id)
        self.ended.append(self._facts[proposal.memory_id])
        self._facts[proposal.memory_id] = closed
        self._changed.append(closed)
        self.remaining_texts += [fact.content for fact in telling]

    def _say_same(self, proposal: Merge, sources: Sequence[Fact], verification: Verification | None) -> bool:
        """Return whether the earliest source says everything in the merged text, which then holds from its start."""
        if proposal.relation is not MergeRelation.SAME:
            return False
        dated = [fact for fact in sources if fact.valid_at] or list(sources)
        start = min(fact.valid_from for fact in dated)
        earliest = [fact for fact in dated if fact.valid_from == start]
        return len(earliest) == len(dated) or any(self._says_all(fact, proposal, verification) for fact in earliest)

    def _says_all(self, fact: Fact, proposal: Merge, verification: Verification | None) -> bool:
        if verification is not None:
            names = self._context.subject_phrases(fact)
            return quotes_cover(verification, fact.memory_id, proposal.content, names)
        if self._context.curated and proposal.verified:
            return find_changed_numbers({fact.memory_id: fact.content}, proposal.content) is None
        return is_literally(fact.content, proposal.content)

    def _associate(self, proposal: Associate) -> None:
        for key in proposal.memory_ids:
            others = [other for other in proposal.memory_ids if other != key]
            associations = tuple(dict.fromkeys([*self._facts[key].associations, *others]))
            self._facts[key] = self._ledger.annotate(key, associations=associations)

    async def _create_entity(self, proposal: CreateEntity) -> str:
        entity_id = str(uuid.uuid4())
        await self._recorder.record_before(ElementKind.ENTITY, [entity_id])
        await self._entities.create(
            self._transaction,
            self._owner,
            entity_id,
            EntityIn(name=proposal.name, type=proposal.type),
            self._vectors[proposal.name],
            self._context.now,
        )
        for key in proposal.memory_ids:
            fact = self._facts[key]
            self._facts[key] = self._ledger.annotate(
                key,
                entity_ids=(*fact.entity_ids, entity_id),
                search_text=f"{proposal.name}\n{fact.search_text}",
            )
            self._changed.append(self._facts[key])
        return entity_id

    # Writing

    async def _write(self) -> None:
        """Record and write the changes collected in the ledger."""
        await self._record_before()
        written = self._ledger.changed | self._ledger.created
        self.images = {key: image_of_fact(fact) for key, fact in written.items()}
        await self._write_annotated()
        vectors = {fact.uuid: self._vectors[fact.content] for fact in self._merged}
        await FactWrite(self._owner, self._transaction, self._context.now, self._ledger, vectors).commit(self._changed)

    async def _record_before(self) -> None:
        """Record all elements that the ledger, and the links of changed facts, are about to touch."""
        episodes = {key for fact in self._changed for key in fact.episodes}
        mentions = {
            f"{episode}>{key}" for fact in self._changed for episode in fact.episodes for key in fact.entity_ids
        }
        await self._recorder.record_before(ElementKind.FACT, [*self._ledger.changed, *self._ledger.created])
        await self._recorder.record_before(ElementKind.EPISODE, sorted(episodes))
        await self._recorder.record_before(ElementKind.MENTION, sorted(mentions))

    async def _write_annotated(self) -> None:
        """Write only the properties that changed in place, since writing whole rows would re-index them."""
        rows = []
        for fact in [fact for fact in self._ledger.changed.values() if fact.expired_at is None]:
            stored = fact_to_properties(self._stored[fact.memory_id])
            rows.append({"id": fact.uuid, "properties": diff_properties(stored, fact_to_properties(fact))})
            del self._ledger.changed[fact.uuid]
        if rows:
            await self._transaction.run("snapshots.set_facts", group_id=self._owner.group_id, rows=rows)


# The result of a merge


def merge_facts(sources: Sequence[Fact], content: str, *, say_same: bool) -> Fact:
    """Return the first version of the memory that replaces `sources`.

    It holds from the earliest known start if the sources `say_same`, else from the latest, up to the end that one of
    them has. For single-valued sources that say the same as others, only their own starts count, because their
    predecessors ended there. It has the greatest importance and the provenance of all sources, and is reinforced by
    each further one; its confidence is the lowest of the sources that it all needs. The sources are equally trusted,
    and so is the result. Subject, predicate and object are those of the single-valued source, else of the most
    important one; the objects of the others are mentioned.
    """
    primary = max(sources, key=lambda fact: (fact.single_valued, fact.object_id is not None, fact.importance))
    dated = [fact for fact in sources if fact.single_valued or not (say_same and primary.single_valued)]
    starts = [fact.valid_at for fact in dated if fact.valid_at]
    ends = [fact.invalid_at for fact in sources if fact.invalid_at]
    best_confidence = max(fact.confidence for fact in sources)
    strength, confidence = apply_reinforcement(
        max(fact.strength for fact in sources), best_confidence, times=len(sources) - 1
    )
    ids = {fact.memory_id for fact in sources}
    sessions = {fact.session_id for fact in sources}
    kind = primary.type if len({fact.type for fact in sources}) == 1 else _common_type(sources)
    now = primary.updated_at
    return Fact(
        uuid=str(uuid.uuid4()),
        memory_id=str(uuid.uuid4()),
        version=1,
        group_id=primary.group_id,
        subject_id=primary.subject_id,
        object_id=primary.object_id,
        predicate=primary.predicate,
        content=content,
        content_hash=content_hash(content),
        type=kind,
        scope=primary.scope,
        domain=primary.domain,
        entity_ids=_distinct([primary.entity_ids], (fact.entity_ids for fact in sources)),
        tags=_distinct(fact.tags for fact in sources)[:MAX_MERGED_TAGS],
        confidence=confidence if say_same else min(fact.confidence for fact in sources),
        importance=max(fact.importance for fact in sources),
        strength=strength,
        decay_rate=DECAY_RATES[kind],
        access_count=sum(fact.access_count for fact in sources),
        last_accessed_at=_latest(fact.last_accessed_at for fact in sources),
        valid_at=(min(starts) if say_same else max(starts)) if starts else None,
        invalid_at=min(ends, default=None),
        claimed_invalid_at=min(ends, default=None),
        expires_at=_latest(fact.expires_at for fact in sources),
        created_at=now,
        first_created_at=now,
        updated_at=now,
        associations=tuple(key for key in _distinct(fact.associations for fact in sources) if key not in ids),
        source_kind=CONSOLIDATION,
        trusted_as=primary.trust_kind,
        session_id=sessions.pop() if len(sessions) == 1 else None,
        message_ids=join_sources(*(fact.message_ids for fact in sources)),
        episodes=join_sources(*(fact.episodes for fact in sources)),
        single_valued=primary.single_valued,
        metadata={name: value for fact in reversed(sources) for name, value in fact.metadata.items()},
        search_text=_join_search_texts(sources),
    )


def _join_search_texts(sources: Sequence[Fact]) -> str:
    return "\n".join(deduplicate(line for fact in sources for line in fact.search_text.splitlines()))[:MAX_SEARCH_TEXT]


def _common_type(sources: Sequence[Fact]) -> MemoryType:
    return max(sources, key=lambda fact: (fact.importance, fact.type is MemoryType.FACT)).type


def _distinct(*many: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for groups in many for items in groups for item in items))


def _latest(times: Iterable[datetime | None]) -> datetime | None:
    return max((time for time in times if time), default=None)


async def retire_duplicates(
    transaction: Transaction,
    owner: Owner,
    recorder: ChangeRecorder,
    ledger: Ledger,
    kept_ids: Mapping[str, str],
    reason: str,
    now: datetime,
) -> datetime:
    """Retire duplicates, write and record everything collected in the ledger, and return the time reached.

    `kept_ids` maps the id of each duplicate to the id of the memory that supersedes it.
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
    """Changes the entities of one user within a run's transaction, and records its changes."""

    transaction: Transaction
    recorder: ChangeRecorder
    owner: Owner
    actor: str | None

    async def update(
        self, proposal: UpdateEntity, entity: Entity, kind: SourceKind, order: TrustOrder, now: datetime
    ) -> None:
        """Set attributes from a source and add its new aliases; write nothing if the entity has all of them."""
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
        """End the profiles of two entities, since neither covers both; return the time reached."""
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
        """End statements of `merge` that `keep` also has, moving their sources to `keep`'s."""
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
