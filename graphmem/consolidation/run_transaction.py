"""One try at one run: proposals reviewed and executed within an open transaction."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from graphmem.consolidation.guard_context import (
    SecretFinder,
    entity_ids_of,
    fetch_entities,
    fetch_facts,
    load_entity_context,
    load_fact_context,
    observed_versions,
)
from graphmem.consolidation.guards import GuardContext, LossEstimate, check_loss, refusal_reason
from graphmem.consolidation.linking import EntityLinker
from graphmem.consolidation.merging import merge_facts
from graphmem.domain.consolidation_models import (
    Associate,
    CreateEntity,
    LinkEntities,
    Merge,
    Proposal,
    ProposalVerdict,
    ReviewedProposal,
    RunStatus,
    UpdateEntity,
)
from graphmem.domain.entity import EntityIn
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.snapshot import ElementChange, ElementImage, ElementKind, diff_properties
from graphmem.domain.times import MICROSECOND
from graphmem.domain.types import Vector
from graphmem.domain.versioning import Ledger
from graphmem.store.driver import Transaction
from graphmem.store.entities import EntityStore
from graphmem.store.fact_mapping import fact_to_properties
from graphmem.store.fact_write import FactWrite
from graphmem.store.snapshots import ChangeRecorder, SnapshotStore


@dataclass(frozen=True, slots=True)
class LossLimits:
    """When the loss guard gives a run up: `max_ended_share` and `min_text_share` are shares, `free_ended_count` a number of memories."""

    max_ended_share: float = 0.3
    min_text_share: float = 0.25
    free_ended_count: int = 4


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """What became of the proposals of one user; `deltas` of a dry run are those that would have been."""

    status: RunStatus
    reviewed: list[ReviewedProposal]
    reason: str | None = None
    change_count: int = 0
    deltas: list[ElementChange] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RunDependencies:
    """What an attempt works with."""

    entities: EntityStore
    snapshots: SnapshotStore
    policy: SecretPolicy
    limits: LossLimits


class RunTransaction:
    """One try at one run within a transaction; a retried transaction starts a new one."""

    def __init__(
        self,
        dependencies: RunDependencies,
        transaction: Transaction,
        owner: Owner,
        run_id: str,
        now: datetime,
        vectors: dict[str, Vector],
        curated: bool,
        actor: str | None,
    ) -> None:
        self._dependencies = dependencies
        self._transaction = transaction
        self._owner = owner
        self._run_id = run_id
        self._now = now
        self._vectors = vectors
        self._curated = curated
        self._find_secrets: SecretFinder = lambda value: dependencies.policy.refused_classes(value, owner.tenant)
        self._actor = actor or f"consolidation:{run_id}"
        self._recorder: ChangeRecorder = dependencies.snapshots.create_recorder(
            transaction, run_id, owner.group_id, now
        )
        self._linker = EntityLinker(transaction, self._recorder, owner, run_id, self._actor)
        self._ended_facts: list[Fact] = []
        self._written_texts: list[str] = []
        self._merged_into: dict[str, str] = {}
        self._after_images: dict[str, ElementImage] = {}

    async def execute(self, reviewed: list[ReviewedProposal]) -> ExecutionResult:
        """Judge and execute the proposals that wait; the verdicts are written into them."""
        group_id = self._owner.group_id
        counted = await self._transaction.run("consolidation.count_current_facts", group_id=group_id, now=self._now)
        facts: dict[str, Fact] | None = await self._mark_stale(reviewed)
        waiting = [each for each in reviewed if each.verdict is ProposalVerdict.WAITING]
        for each in waiting:
            if isinstance(each.proposal, UpdateEntity | LinkEntities):
                await self._change_entity(each, each.proposal)
                facts = None
        about_facts = [each for each in waiting if type(each.proposal) in _FACT_ACTIONS_IN_ORDER]
        if about_facts:
            await self._change_facts(about_facts, facts)
        count = await self._recorder.record_after(self._after_images)
        await self._transaction.run("facts.set_last_write_time", group_id=group_id, at=self._now + MICROSECOND)
        too_much = self._loss_reason(counted[0]["current"])
        status = RunStatus.ABORTED if too_much else RunStatus.SUCCEEDED
        return ExecutionResult(status, reviewed, too_much, count)

    async def _mark_stale(self, reviewed: list[ReviewedProposal]) -> dict[str, Fact]:
        """Set aside what rests on things that have changed since; return the facts that the rest is about."""
        proposals = [each.proposal for each in reviewed]
        facts = await fetch_facts(self._transaction, self._owner, proposals)
        entities = await fetch_entities(self._transaction, self._owner, entity_ids_of(proposals))
        for each in reviewed:
            now = observed_versions(each.proposal, facts, entities)
            changed = [key for key, version in each.seen.items() if now.get(key) != version]
            if each.verdict is ProposalVerdict.WAITING and changed:
                each.verdict, each.reason = ProposalVerdict.STALE, f"{changed[0]} has changed since this was proposed"
        return facts

    async def _change_entity(self, reviewed: ReviewedProposal, proposal: UpdateEntity | LinkEntities) -> None:
        context = await load_entity_context(
            self._transaction, self._owner, proposal, self._now, curated=self._curated, find_secrets=self._find_secrets
        )
        if _is_refused(reviewed, proposal, context):
            return
        if isinstance(proposal, UpdateEntity):
            await self._linker.update(proposal, context.entities[proposal.entity_id], self._now)
            reviewed.result_id = proposal.entity_id
        else:
            keep, merge = context.entities[proposal.keep_id], context.entities[proposal.merge_id]
            ended, self._now = await self._linker.link(keep, merge, self._now)
            self._ended_facts += ended
            self._written_texts += [fact.content for fact in ended]
            reviewed.result_id = keep.id

    async def _change_facts(self, reviewed: list[ReviewedProposal], facts: dict[str, Fact] | None) -> None:
        proposals = [each.proposal for each in reviewed]
        if facts is None:
            facts = await fetch_facts(self._transaction, self._owner, proposals)
        context = await load_fact_context(
            self._transaction,
            self._owner,
            proposals,
            facts,
            self._now,
            curated=self._curated,
            find_secrets=self._find_secrets,
        )
        current = dict(context.current)
        context = replace(context, current=current)
        ledger, stored_facts = Ledger(facts.values(), self._now, self._actor), dict(facts)
        vectors: dict[str, Vector] = {}
        new_facts: list[Fact] = []
        for each in sorted(reviewed, key=lambda each: _FACT_ACTIONS_IN_ORDER.index(type(each.proposal))):
            proposal = self._follow_merges(each.proposal)
            if _is_refused(each, proposal, context):
                continue
            match proposal:
                case Merge():
                    fact = self._merge_facts(each, proposal, ledger, facts)
                    vectors[fact.uuid] = self._vectors[fact.content]
                    current[fact.dedup_key] = fact.memory_id
                    new_facts.append(fact)
                case Associate():
                    self._associate_facts(proposal, ledger, facts)
                case CreateEntity():
                    new_facts += await self._create_entity(each, proposal, ledger, facts)
        await self._record_before_images(ledger, new_facts)
        await self._write_annotated_facts(ledger, stored_facts)
        await FactWrite(self._owner, self._transaction, self._now, ledger, vectors).commit(new_facts)
        self._now = ledger.now + MICROSECOND

    def _follow_merges(self, proposal: Proposal) -> Proposal:
        """Let an association mean what its memories were merged into within this run."""
        if not isinstance(proposal, Associate):
            return proposal
        ids = dict.fromkeys(self._merged_into.get(key, key) for key in proposal.memory_ids)
        return proposal.model_copy(update={"memory_ids": list(ids)})

    def _merge_facts(self, reviewed: ReviewedProposal, proposal: Merge, ledger: Ledger, facts: dict[str, Fact]) -> Fact:
        sources = [facts.pop(key) for key in proposal.memory_ids]
        fact = ledger.merge(merge_facts(sources, proposal.content), proposal.memory_ids, self._run_id)
        facts[fact.memory_id] = fact
        self._ended_facts += sources
        self._written_texts.append(fact.content)
        self._merged_into |= dict.fromkeys(proposal.memory_ids, fact.memory_id)
        reviewed.result_id = fact.memory_id
        return fact

    @staticmethod
    def _associate_facts(proposal: Associate, ledger: Ledger, facts: dict[str, Fact]) -> None:
        for key in proposal.memory_ids:
            others = [other for other in proposal.memory_ids if other != key]
            together = tuple(dict.fromkeys([*facts[key].associations, *others]))
            facts[key] = ledger.annotate(key, associations=together)

    async def _create_entity(
        self, reviewed: ReviewedProposal, proposal: CreateEntity, ledger: Ledger, facts: dict[str, Fact]
    ) -> list[Fact]:
        entity_id = str(uuid.uuid4())
        await self._recorder.record_before(ElementKind.ENTITY, [entity_id])
        named = EntityIn(name=proposal.name, type=proposal.type)
        vector = self._vectors[proposal.name]
        await self._dependencies.entities.create(self._transaction, self._owner, entity_id, named, vector, self._now)
        reviewed.result_id = entity_id
        for key in proposal.memory_ids:
            fact = facts[key]
            facts[key] = ledger.annotate(
                key, entity_ids=(*fact.entity_ids, entity_id), search_text=f"{proposal.name}\n{fact.search_text}"
            )
        return [facts[key] for key in proposal.memory_ids]

    async def _write_annotated_facts(self, ledger: Ledger, stored_facts: dict[str, Fact]) -> None:
        """Write what changed in place, and only that: whole rows would be indexed anew."""
        rows = []
        for fact in [each for each in ledger.changed.values() if each.expired_at is None]:
            changes = diff_properties(fact_to_properties(stored_facts[fact.memory_id]), fact_to_properties(fact))
            rows.append({"id": fact.uuid, "properties": changes})
            del ledger.changed[fact.uuid]
        if rows:
            await self._transaction.run("snapshots.set_facts", group_id=self._owner.group_id, rows=rows)

    async def _record_before_images(self, ledger: Ledger, new_facts: Sequence[Fact]) -> None:
        """Note everything that the ledger and the links of new facts are about to touch."""
        episodes = {key: fact.entity_ids for fact in new_facts for key in fact.episodes}
        mentioned = {key for fact in new_facts for key in set(fact.entity_ids) - {fact.subject_id, fact.object_id}}
        await self._recorder.record_before(ElementKind.FACT, [*ledger.changed, *ledger.created])
        self._after_images = {key: _image_of(fact) for key, fact in (ledger.changed | ledger.created).items()}
        await self._recorder.record_before(ElementKind.ENTITY, sorted(mentioned))
        await self._recorder.record_before(ElementKind.EPISODE, sorted(episodes))
        pairs = {f"{episode}>{key}" for fact in new_facts for episode in fact.episodes for key in fact.entity_ids}
        await self._recorder.record_before(ElementKind.MENTION, sorted(pairs))

    def _loss_reason(self, current: int) -> str | None:
        limits = self._dependencies.limits
        estimate = LossEstimate(
            current,
            len(self._ended_facts),
            sum(len(fact.content) for fact in self._ended_facts),
            sum(map(len, self._written_texts)),
        )
        return check_loss(
            estimate,
            max_ended_share=limits.max_ended_share,
            min_text_share=limits.min_text_share,
            free_ended_count=limits.free_ended_count,
        )


def _image_of(fact: Fact) -> ElementImage:
    return ElementImage(fact_to_properties(fact), fact.subject_id, fact.object_id or fact.subject_id)


_FACT_ACTIONS_IN_ORDER: list[type] = [CreateEntity, Merge, Associate]
"""What a memory mentions is known before it is merged, and what is merged is associated as what it has become."""


def _is_refused(reviewed: ReviewedProposal, proposal: Proposal, context: GuardContext) -> bool:
    reviewed.reason = refusal_reason(proposal, context)
    reviewed.verdict = ProposalVerdict.REFUSED if reviewed.reason else ProposalVerdict.EXECUTED
    return reviewed.verdict is ProposalVerdict.REFUSED
