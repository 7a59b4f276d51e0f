"""Executes a run of one user in one transaction: reviews its proposals, and commits all of its changes or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from graphmem.consolidation.changes import FACT_ACTIONS, EntityMerger, FactChanges
from graphmem.consolidation.guards import (
    CONTRADICTION,
    GuardContext,
    LossLimits,
    SecretFinder,
    check_loss,
    entity_ids_of,
    observed_versions,
    review,
)
from graphmem.consolidation.models import (
    Close,
    CreateEntity,
    LinkEntities,
    Merge,
    Proposal,
    ProposalVerdict,
    ReportedContradiction,
    ReviewedProposal,
    RunPhase,
    RunStatus,
    UpdateEntity,
)
from graphmem.consolidation.run_store import RunStore, RunUpdate, fetch_entities, fetch_facts, fetch_facts_of_entity
from graphmem.memories import snapshot_store
from graphmem.memories.entity import Entity, entity_from_node
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact import Fact
from graphmem.memories.fact_store import FactStore
from graphmem.memories.names import name_tokens
from graphmem.memories.saving import FactLoader
from graphmem.memories.snapshot import ElementChange, ElementImage
from graphmem.memories.snapshot_store import ChangeRecorder
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.field_types import Vector, name_key
from graphmem.runtime.times import MICROSECOND
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.owners import Owner
from graphmem.tenants.tenant_settings import find_trust_order
from graphmem.tenants.trust import SourceKind

MAX_PREVIEWED_CHANGES = 5000
"""Maximum changes in the preview of a dry run."""


@dataclass(frozen=True, slots=True)
class GuardContextLoader:
    """Loads the data that the guards need about proposals of one user."""

    transaction: Transaction
    owner: Owner
    curated: bool
    find_secrets: SecretFinder
    contradicted: frozenset[str] = frozenset()

    async def load_for_facts(
        self, proposals: Sequence[Proposal], facts: Mapping[str, Fact], now: datetime
    ) -> GuardContext:
        """Return the context of proposals about memories, which contains `facts` and reflects later changes to it."""
        kinds = {fact.trust_kind for fact in facts.values()}
        entity_ids = [key for fact in facts.values() for key in (fact.subject_id, *fact.entity_ids)]
        new_names = [proposal.name for proposal in proposals if isinstance(proposal, CreateEntity)]
        return GuardContext(
            now=now,
            facts=facts,
            entities=await fetch_entities(self.transaction, self.owner, entity_ids),
            entity_ids_by_name=await self._load_entity_ids_by_name(new_names),
            contradicted=self.contradicted,
            curated=self.curated,
            find_secrets=self.find_secrets,
            order=await find_trust_order(self.transaction, self.owner.tenant, kinds),
        )

    async def load_for_entities(self, proposal: UpdateEntity | LinkEntities, now: datetime) -> GuardContext:
        """Return the context of one entity update, or of one link between two entities."""
        entities = await fetch_entities(self.transaction, self.owner, entity_ids_of([proposal]))
        facts_by_entity, other_relationships, similarly_named = {}, {}, {}
        for entity in entities.values():
            versions = await fetch_facts_of_entity(self.transaction, self.owner, entity.id)
            facts_by_entity[entity.id] = [fact for fact in versions if fact.expired_at is None]
            if isinstance(proposal, LinkEntities):
                other_relationships[entity.id] = await self._list_other_relationships(entity.id)
                similarly_named[entity.id] = await self._find_similarly_named(entity.name, entities)
        aliases = proposal.add_aliases if isinstance(proposal, UpdateEntity) else []
        return GuardContext(
            now=now,
            facts=await FactLoader(self.transaction, self.owner).fetch(memory_ids=proposal.evidence),
            entities=entities,
            entity_ids_by_name=await self._load_entity_ids_by_name(aliases),
            facts_by_entity=facts_by_entity,
            similarly_named=similarly_named,
            other_relationships=other_relationships,
            curated=self.curated,
            find_secrets=self.find_secrets,
            order=await find_trust_order(self.transaction, self.owner.tenant),
        )

    async def _find_similarly_named(self, name: str, linked: Mapping[str, Entity]) -> list[Entity]:
        words = [word for word in name_tokens(name) if len(word) > 1]
        if not words:
            return []
        rows = await self.transaction.run(
            "consolidation.find_entities_sharing_words", group_id=self.owner.group_id, words=words
        )
        return [entity_from_node(row["entity"]) for row in rows if row["entity"]["uuid"] not in linked]

    async def _list_other_relationships(self, entity_id: str) -> list[str]:
        rows = await self.transaction.run("consolidation.list_other_relationships", entity_id=entity_id)
        return [row["type"] for row in rows]

    async def _load_entity_ids_by_name(self, names: Sequence[str]) -> dict[str, str]:
        """Return the ids of the entities with one of the names, by the keys of all their names."""
        if not names:
            return {}
        keys = [name_key(name) for name in names]
        rows = await self.transaction.run("entities.find_by_keys", group_ids=[self.owner.group_id], keys=keys)
        return {
            key: row["entity"]["uuid"]
            for row in rows
            for key in [*(row["entity"]["alias_keys"] or ()), row["entity"]["name_key"]]
        }


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """The outcome of a run: its proposals with their verdicts, and the contradictions it reports.

    `changes` are the changes that a dry run would have made.
    """

    status: RunStatus
    proposals: list[ReviewedProposal]
    reason: str | None = None
    change_count: int = 0
    changes: list[ElementChange] = field(default_factory=list)
    contradictions: list[ReportedContradiction] = field(default_factory=list)


class ProposalApplier:
    """Applies the proposals of one run; a retried transaction needs a new instance.

    `vectors` are the vectors of merge contents and of names of new entities. `curated` means that a person wrote the
    proposals; `contradicted` are the memories that the run reports as contradictory.
    """

    def __init__(
        self,
        entities: EntityStore,
        policy: SecretPolicy,
        limits: LossLimits,
        transaction: Transaction,
        owner: Owner,
        run_id: str,
        now: datetime,
        *,
        vectors: Mapping[str, Vector],
        curated: bool,
        actor: str | None,
        contradicted: frozenset[str] = frozenset(),
    ) -> None:
        self._entities = entities
        self._limits = limits
        self._transaction = transaction
        self._owner = owner
        self._run_id = run_id
        self._now = now
        self._vectors = vectors
        self._actor = actor or f"consolidation:{run_id}"
        self._recorder = ChangeRecorder(transaction, run_id, owner.group_id, now)
        self._entity_merger = EntityMerger(transaction, self._recorder, owner, self._actor)
        self._contexts = GuardContextLoader(
            transaction,
            owner,
            curated,
            lambda value: policy.refused_classes(value, owner.tenant),
            contradicted,
        )
        self._linked_into: dict[str, str] = {}
        self._ended: list[Fact] = []
        self._remaining_texts: list[str] = []

    async def apply(self, proposals: Sequence[ReviewedProposal]) -> ExecutionResult:
        """Review the waiting proposals and apply those that pass the guards; the result is aborted above a loss limit.

        Entities are changed before facts, and linked before other changes to them.
        """
        group_id = self._owner.group_id
        counted = await self._transaction.run("consolidation.count_current_facts", group_id=group_id, now=self._now)
        facts = await fetch_facts(self._transaction, self._owner, [reviewed.proposal for reviewed in proposals])
        reviewed = await self._mark_stale(proposals, facts)
        has_changed_entities = False
        for kind in (LinkEntities, UpdateEntity):
            for index in _waiting_indexes(reviewed):
                if isinstance(reviewed[index].proposal, kind):
                    reviewed[index] = await self._change_entity(reviewed[index])
                    has_changed_entities = True
        images: Mapping[str, ElementImage] = {}
        if about_facts := [
            index for index in _waiting_indexes(reviewed) if isinstance(reviewed[index].proposal, FACT_ACTIONS)
        ]:
            waiting = [reviewed[index] for index in about_facts]
            changed, images = await self._change_facts(waiting, None if has_changed_entities else facts)
            for index, proposal in zip(about_facts, changed, strict=True):
                reviewed[index] = proposal
        change_count = await self._recorder.record_after(images)
        await self._transaction.run("facts.set_last_write_time", group_id=group_id, at=self._now + MICROSECOND)
        abort_reason = self._check_loss(counted[0]["current"])
        status = RunStatus.ABORTED if abort_reason else RunStatus.SUCCEEDED
        return ExecutionResult(status, reviewed, abort_reason, change_count)

    async def _mark_stale(
        self, proposals: Sequence[ReviewedProposal], facts: Mapping[str, Fact]
    ) -> list[ReviewedProposal]:
        """Return the proposals, marking as stale those based on something that has since changed."""
        entity_ids = entity_ids_of(reviewed.proposal for reviewed in proposals)
        entities = await fetch_entities(self._transaction, self._owner, entity_ids)
        marked = []
        for reviewed in proposals:
            current = observed_versions(reviewed.proposal, facts, entities)
            changed = [key for key, version in reviewed.seen.items() if current.get(key) != version]
            if reviewed.verdict is ProposalVerdict.WAITING and changed:
                reason = f"{changed[0]} has changed since this was proposed"
                marked.append(reviewed.model_copy(update={"verdict": ProposalVerdict.STALE, "reason": reason}))
            else:
                marked.append(reviewed)
        return marked

    async def _change_entity(self, reviewed: ReviewedProposal) -> ReviewedProposal:
        match reviewed.proposal:
            case UpdateEntity() as proposal:
                proposal = proposal.model_copy(update={"entity_id": self._follow_links(proposal.entity_id)})
                context = await self._contexts.load_for_entities(proposal, self._now)
                reviewed = review(reviewed, proposal, context)
                if reviewed.verdict is ProposalVerdict.EXECUTED:
                    entity, kind = context.entities[proposal.entity_id], _source_of(proposal, context)
                    await self._entity_merger.update(proposal, entity, kind, context.order, self._now)
                    return reviewed.model_copy(update={"result_id": proposal.entity_id})
            case LinkEntities() as proposal:
                ids = self._follow_links(proposal.keep_id), self._follow_links(proposal.merge_id)
                if ids[0] == ids[1]:
                    return reviewed.model_copy(update={"verdict": ProposalVerdict.EXECUTED, "result_id": ids[0]})
                proposal = proposal.model_copy(update={"keep_id": ids[0], "merge_id": ids[1]})
                context = await self._contexts.load_for_entities(proposal, self._now)
                reviewed = review(reviewed, proposal, context)
                if reviewed.verdict is ProposalVerdict.EXECUTED:
                    keep, merge = context.entities[proposal.keep_id], context.entities[proposal.merge_id]
                    ended, self._now = await self._entity_merger.merge(keep, merge, self._now)
                    self._linked_into[merge.id] = keep.id
                    self._ended += ended
                    self._remaining_texts += [fact.content for fact in ended]
                    return reviewed.model_copy(update={"result_id": keep.id})
        return reviewed

    def _follow_links(self, entity_id: str) -> str:
        """Return the id of the entity that this run merged another one into."""
        while entity_id in self._linked_into:
            entity_id = self._linked_into[entity_id]
        return entity_id

    async def _change_facts(
        self, reviewed: Sequence[ReviewedProposal], facts: Mapping[str, Fact] | None
    ) -> tuple[list[ReviewedProposal], Mapping[str, ElementImage]]:
        """Apply proposals about facts, which are read again unless given; return them with the versions written."""
        proposals = [waiting.proposal for waiting in reviewed]
        if facts is None:
            facts = await fetch_facts(self._transaction, self._owner, proposals)
        context = await self._contexts.load_for_facts(proposals, facts, self._now)
        changes = FactChanges(
            self._transaction,
            self._recorder,
            self._entities,
            self._owner,
            context,
            run_id=self._run_id,
            actor=self._actor,
            vectors=self._vectors,
        )
        applied = await changes.apply(reviewed)
        self._ended += changes.ended
        self._remaining_texts += changes.remaining_texts
        self._now = changes.now
        return applied, changes.images

    def _check_loss(self, current: int) -> str | None:
        text_before = sum(len(fact.content) for fact in self._ended)
        text_after = sum(map(len, self._remaining_texts))
        return check_loss(self._limits, current, len(self._ended), text_before, text_after)


def _source_of(proposal: UpdateEntity, context: GuardContext) -> SourceKind:
    """Return the source of an entity update: that of its most trusted memory, or the user if there is none."""
    kinds = [fact.trust_kind for key in proposal.evidence if (fact := context.facts.get(key))]
    return context.order.most_trusted(kinds) if kinds else "user"


def _waiting_indexes(reviewed: Sequence[ReviewedProposal]) -> list[int]:
    return [index for index, proposal in enumerate(reviewed) if proposal.verdict is ProposalVerdict.WAITING]


class _DiscardTransaction(Exception):
    """Rolls back the transaction of a dry run or of an aborted run."""

    def __init__(self, result: ExecutionResult) -> None:
        super().__init__()
        self.result = result


class RunExecutor:
    """Executes the proposals of one user."""

    def __init__(
        self,
        graph: Graph,
        facts: FactStore,
        entities: EntityStore,
        runs: RunStore,
        embedder: Embedder,
        policy: SecretPolicy,
        limits: LossLimits,
    ) -> None:
        self._graph = graph
        self._facts = facts
        self._runs = runs
        self._embedder = embedder
        self._entities = entities
        self._policy = policy
        self._limits = limits

    async def attach_versions(
        self, owner: Owner, proposals: Sequence[Proposal], actor: str | None = None
    ) -> list[ReviewedProposal]:
        """Return proposals with the versions of everything they name, so that a later change makes them stale.

        `actor` is recorded as the verifier of those marked as verified.
        """

        async def work(transaction: Transaction) -> list[ReviewedProposal]:
            facts = await fetch_facts(transaction, owner, proposals)
            entities = await fetch_entities(transaction, owner, entity_ids_of(proposals))
            return [
                ReviewedProposal(
                    proposal=proposal,
                    seen=observed_versions(proposal, facts, entities),
                    verified_by=actor
                    if isinstance(proposal, Merge | Close | LinkEntities) and proposal.verified
                    else None,
                )
                for proposal in proposals
            ]

        return await self._graph.read(work)

    async def execute(
        self,
        owner: Owner,
        run_id: str,
        proposals: Sequence[ReviewedProposal],
        *,
        dry_run: bool = False,
        curated: bool = False,
        actor: str | None = None,
        considered: Sequence[str] = (),
        considered_for_compression: Sequence[str] = (),
        contradictions: Sequence[ReportedContradiction] = (),
        ends_run: bool = True,
    ) -> ExecutionResult:
        """Apply the proposals that pass the guards; a dry run or an aborted run changes nothing.

        `considered` are the memories that the run has analysed, `considered_for_compression` those analysed for
        compression, and `contradictions` those it found contradictory and therefore leaves alone. The transaction also
        marks the run as done, or as executed if it does not end it.
        """
        vectors = await self._embed_texts(proposals)
        contradicted = frozenset(key for reported in contradictions for key in reported.memory_ids)

        async def work(transaction: Transaction) -> ExecutionResult:
            now = await self._facts.lock_user(transaction, owner, removes=True)
            applier = ProposalApplier(
                self._entities,
                self._policy,
                self._limits,
                transaction,
                owner,
                run_id,
                now,
                vectors=vectors,
                curated=curated,
                actor=actor,
                contradicted=contradicted,
            )
            result = await applier.apply(proposals)
            result = replace(result, contradictions=_with_refused(contradictions, result.proposals))
            if dry_run:
                changes = await snapshot_store.list_changes(transaction, run_id, MAX_PREVIEWED_CHANGES)
                raise _DiscardTransaction(replace(result, changes=changes))
            if result.status is not RunStatus.SUCCEEDED:
                raise _DiscardTransaction(result)
            result_ids = [reviewed.result_id for reviewed in result.proposals if reviewed.result_id]
            marks = {"group_id": owner.group_id, "run_id": run_id, "now": now}
            await transaction.run(
                "consolidation.mark_consolidated", memory_ids=list(dict.fromkeys([*considered, *result_ids])), **marks
            )
            if considered_for_compression:
                await transaction.run(
                    "consolidation.mark_considered_for_compression",
                    memory_ids=list(considered_for_compression),
                    **marks,
                )
            done = RunUpdate(
                status=result.status if ends_run else RunStatus.RUNNING,
                phase=RunPhase.DONE if ends_run else RunPhase.EXECUTED,
                finished_at=now if ends_run else None,
                proposals=result.proposals,
                contradictions=result.contradictions,
                change_count=result.change_count,
            )
            await self._runs.update(run_id, done, transaction)
            return result

        try:
            return await self._graph.write(work)
        except _DiscardTransaction as discarded:
            return discarded.result

    async def _embed_texts(self, proposals: Sequence[ReviewedProposal]) -> dict[str, Vector]:
        """Return the vectors of merge contents and of names of new entities, by text."""
        texts: dict[str, None] = {}
        for reviewed in proposals:
            if isinstance(reviewed.proposal, Merge):
                texts[reviewed.proposal.content] = None
            elif isinstance(reviewed.proposal, CreateEntity):
                texts[reviewed.proposal.name] = None
        return dict(zip(texts, await self._embedder.embed(list(texts)), strict=True)) if texts else {}


def _with_refused(
    reported: Sequence[ReportedContradiction], proposals: Sequence[ReviewedProposal]
) -> list[ReportedContradiction]:
    """Return the reported contradictions and those from refused merges, each set of memories once."""
    found = {frozenset(contradiction.memory_ids): contradiction for contradiction in reported}
    for reviewed in proposals:
        if isinstance(reviewed.proposal, Merge) and (reviewed.reason or "").startswith(CONTRADICTION):
            ids = reviewed.proposal.memory_ids
            if not any(known & frozenset(ids) for known in found):
                found[frozenset(ids)] = ReportedContradiction(memory_ids=ids, reason=reviewed.reason or "")
    return list(found.values())
