"""The last step: one transaction that does what the plan says, exactly once for each window of a job."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from graphmem.domain.entity import EntityRef
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.memory import MemoryStatus, MemoryType, SaveAction, SaveResult
from graphmem.domain.new_memory import NewMemory
from graphmem.domain.profile import TenantProfiles
from graphmem.domain.text import content_hash, name_key
from graphmem.domain.types import Vector
from graphmem.domain.versioning import Ledger
from graphmem.ingestion.action_plan import (
    ActionPlan,
    ActionPlanner,
    PlannedDeletion,
    PlannedSave,
    save_with_canonical_names,
)
from graphmem.ingestion.candidates import EXTRACTION_SOURCE, AliasGroup, Rejection, ValidatedCandidate
from graphmem.ingestion.entity_linking import LinkingResult, collect_named_entities, subject_key
from graphmem.ingestion.job_actions import ExtractionAction, LinkAction, MemoryAction, parse_extraction_actions
from graphmem.ingestion.llm_schemas import Reconciliation
from graphmem.ingestion.name_resolution import NameResolution, resolve_names
from graphmem.store.driver import Graph, Transaction
from graphmem.store.entities import EntityStore
from graphmem.store.fact_write import FactLoader, FactWrite
from graphmem.store.facts import FactStore

MIN_INTEREST_MENTIONS = 2
"""So many messages must show an interest before it is a memory (UMB-05)."""


@dataclass(frozen=True, slots=True)
class ExtractedWindow:
    """What one window of a job came to: everything `apply` needs but the vectors."""

    id: str
    session_id: str
    message_ids: Sequence[str]
    candidates: Sequence[ValidatedCandidate] = ()
    rejections: Sequence[Rejection] = ()
    aliases: Sequence[AliasGroup] = ()
    linking: LinkingResult = field(default_factory=LinkingResult)
    answer: Reconciliation | None = None

    def with_reconciliation(self, linking: LinkingResult, answer: Reconciliation | None) -> ExtractedWindow:
        """Return the window with what the later steps found."""
        return replace(self, linking=linking, answer=answer)


class Applier:
    """Writes parts of jobs."""

    def __init__(self, graph: Graph, facts: FactStore, entities: EntityStore, profiles: TenantProfiles) -> None:
        self._graph = graph
        self._facts = facts
        self._entities = entities
        self._profiles = profiles

    async def apply(
        self, owner: Owner, window: ExtractedWindow, vectors: Mapping[str, Vector], actor: str
    ) -> list[ExtractionAction]:
        """Do it and return what was done; a window that has been applied answers what it did then."""

        async def work(transaction: Transaction) -> list[ExtractionAction]:
            now = await self._facts.lock_user(transaction, owner)
            done = await transaction.run("extraction.get_extraction", group_id=owner.group_id, extraction_id=window.id)
            if done:
                return parse_extraction_actions(done[0]["actions"])
            return await _WindowApplication(self, transaction, owner, window, vectors, actor, now).run()

        return await self._graph.write(work)

    async def load_current_facts(
        self,
        transaction: Transaction,
        loader: FactLoader,
        owner: Owner,
        linking: LinkingResult,
        candidates: Sequence[ValidatedCandidate],
    ) -> tuple[dict[str, Fact], dict[str, EntityRef]]:
        """Return the believed versions of related facts and of single-valued rivals, and the entities they touch."""
        pairs = {
            (linking.entities.get(subject_key(candidate)), candidate.memory.predicate)
            for candidate in candidates
            if candidate.memory.single_valued
        }
        facts = await loader.fetch(
            hashes=[content_hash(candidate.memory.content) for candidate in candidates],
            memory_ids=linking.related,
            pairs=[(subject, predicate) for subject, predicate in sorted(pairs, key=str) if subject and predicate],
        )
        ids = {key for fact in facts.values() for key in (fact.subject_id, *fact.entity_ids)}
        refs = await self._entities.get_refs(transaction, owner, sorted(ids | set(linking.entities.values())))
        return facts, refs

    def session_tags(self, owner: Owner, candidates: Sequence[ValidatedCandidate]) -> list[str]:
        """Return the tags of the candidates that label their session, in alphabetical order."""
        tags = {tag for candidate in candidates for tag in candidate.memory.tags}
        return self._profiles.for_tenant(owner.tenant).session_tags(sorted(tags))

    @property
    def stores(self) -> tuple[FactStore, EntityStore]:
        """The stores it writes to."""
        return self._facts, self._entities


class _WindowApplication:
    """One window being applied in one open transaction."""

    def __init__(
        self,
        applier: Applier,
        transaction: Transaction,
        owner: Owner,
        window: ExtractedWindow,
        vectors: Mapping[str, Vector],
        actor: str,
        now: datetime,
    ) -> None:
        self._applier = applier
        self._facts, self._entities = applier.stores
        self._transaction = transaction
        self._owner = owner
        self._extracted_window = window
        self._vectors = vectors
        self._actor = actor
        self._now = now
        self._fact_loader = FactLoader(transaction, owner)
        self._entries: list[ExtractionAction] = [
            MemoryAction(action="refuse", type=rejection.type, reason=rejection.reason)
            for rejection in window.rejections
        ]
        self._links: list[LinkAction] = []

    async def run(self) -> list[ExtractionAction]:
        window = self._extracted_window
        if window.candidates:
            facts, names = await self._applier.load_current_facts(
                self._transaction, self._fact_loader, self._owner, window.linking, window.candidates
            )
            plan = ActionPlanner(window.candidates, window.linking, facts, names).plan(window.answer)
            resolution = self._resolve_names(plan, names)
            await self._rename_entities(resolution)
            await self._save(
                [save_with_canonical_names(save, resolution.canonical_names) for save in plan.saves], facts
            )
            await self._delete(plan.deletions)
            await self._add_aliases(resolution)
            self._record_vetoes(plan)
        await self._mark_applied()
        return self._entries

    def _resolve_names(self, plan: ActionPlan, names: Mapping[str, EntityRef]) -> NameResolution:
        linking = self._extracted_window.linking
        written_names = {
            key: entity.name
            for key, entity in collect_named_entities(
                self._extracted_window.candidates, self._extracted_window.aliases
            ).items()
        }
        own = linking.entities.get("") or name_key(self._owner.user_id)
        resolution = resolve_names(
            linking.entities, plan.resolved_names, written_names, names, self._extracted_window.aliases, own
        )
        self._entries += [
            MemoryAction(action="refuse", type="names", reason=reason) for reason in resolution.rejected_pairs
        ]
        return resolution

    async def _rename_entities(self, resolution: NameResolution) -> None:
        for entity_id, name in resolution.renames.items():
            taken = await self._transaction.run(
                "entities.find_by_keys", group_ids=[self._owner.group_id], keys=[name_key(name)]
            )
            if taken:
                continue
            await self._transaction.run(
                "extraction.rename_entity",
                group_id=self._owner.group_id,
                entity_id=entity_id,
                canonical_name=name,
                name_key=name_key(name),
                vector=self._vectors.get(name),
                now=self._now,
            )
            self._links.append(LinkAction(entity_id=entity_id, name=name))

    async def _save(self, saves: Sequence[PlannedSave], facts: Mapping[str, Fact]) -> None:
        ready = [
            kept
            for save in saves
            if self._has_vector(save) and (kept := await self._check_interest_mentions(save, facts))
        ]
        statements = [
            NewMemory(save.memory, self._vectors[save.memory.content], EXTRACTION_SOURCE, save.reason) for save in ready
        ]
        if not statements:
            return
        by_key = {name_key(text): vector for text, vector in self._vectors.items()}
        results = await self._facts.save_in_transaction(
            self._transaction,
            self._owner,
            statements,
            by_key,
            self._actor,
            locked_at=self._now,
            loader=self._fact_loader,
        )
        self._entries += [_action_entry(save, result) for save, result in zip(ready, results, strict=True)]

    def _has_vector(self, save: PlannedSave) -> bool:
        """Whether the text to save is one that was embedded: a memory may have been rewritten since it was read."""
        if save.memory.content in self._vectors:
            return True
        reason = "what it repeats has been rewritten meanwhile"
        self._entries.append(MemoryAction(action="refuse", type=save.memory.type.value, reason=reason))
        return False

    async def _check_interest_mentions(self, save: PlannedSave, facts: Mapping[str, Fact]) -> PlannedSave | None:
        """Return a save, but an inferred interest only once enough messages show it."""
        memory = save.memory
        known = any(fact.content_hash == content_hash(memory.content) for fact in facts.values())
        if memory.type is not MemoryType.INFERRED_INTEREST or save.is_reinforcement or known or memory.supersedes:
            return save
        name = memory.object.name if memory.object else memory.content
        key = name_key(memory.object.name) if memory.object else content_hash(memory.content)
        rows = await self._transaction.run(
            "extraction.record_interest",
            group_id=self._owner.group_id,
            key=key,
            topic=name,
            message_ids=list(self._extracted_window.candidates[save.candidate_index].user_message_ids),
            now=self._now,
        )
        message_ids = rows[0]["message_ids"]
        if len(message_ids) < MIN_INTEREST_MENTIONS:
            self._entries.append(
                MemoryAction(action="note", type=memory.type.value, reason="an interest mentioned once")
            )
            return None
        await self._transaction.run("extraction.delete_interest", group_id=self._owner.group_id, key=key)
        assert memory.source
        source = memory.source.model_copy(update={"message_ids": message_ids[-200:]})
        return PlannedSave(save.candidate_index, memory.model_copy(update={"source": source}), save.reason)

    async def _delete(self, deletions: Sequence[PlannedDeletion]) -> None:
        if not deletions:
            return
        loader = FactLoader(self._transaction, self._owner)
        facts = await loader.fetch(memory_ids=[deletion.memory_id for deletion in deletions])
        now = await self._facts.lock_user(self._transaction, self._owner, 0)
        ledger = Ledger(facts.values(), now, self._actor)
        for deletion in deletions:
            fact = ledger.delete(deletion.memory_id, deletion.reason)
            self._entries.append(
                MemoryAction(action="delete", memory_id=fact.memory_id, type=fact.type.value, reason=deletion.reason)
            )
        await FactWrite(self._owner, self._transaction, now, ledger).commit()

    async def _add_aliases(self, resolution: NameResolution) -> None:
        for entity, others in resolution.aliases.items():
            if others:
                rows = await self._entities.add_aliases(self._transaction, self._owner, entity, others, self._now)
                self._links += [LinkAction.model_validate(row) for row in rows]

    def _record_vetoes(self, plan: ActionPlan) -> None:
        for veto in plan.vetoes:
            candidate = self._extracted_window.candidates[veto.candidate_index]
            what = f"not to {veto.action}" if veto.memory_id else f"no {veto.action}"
            self._entries.append(
                MemoryAction(
                    action="refuse",
                    memory_id=veto.memory_id,
                    type=candidate.memory.type.value,
                    reason=f"{what}: {veto.reason}",
                )
            )
        self._entries += self._links

    async def _mark_applied(self) -> None:
        window = self._extracted_window
        await self._transaction.run(
            "extraction.record_extraction",
            group_id=self._owner.group_id,
            extraction_id=window.id,
            actions=json.dumps([action.to_json() for action in self._entries], ensure_ascii=False),
            links=json.dumps([link.to_json() for link in self._links], ensure_ascii=False),
            message_ids=list(window.message_ids),
            session_id=window.session_id,
            tags=self._applier.session_tags(self._owner, window.candidates),
            at=self._now,
        )


def _action_entry(save: PlannedSave, result: SaveResult) -> MemoryAction:
    memory = result.memory
    assert memory
    is_decided = result.action is SaveAction.SUPERSEDE and save.memory.supersedes
    return MemoryAction(
        action=result.action.value,
        memory_id=memory.id,
        type=memory.type.value,
        superseded=result.superseded or None,
        reason=(save.reason if is_decided else result.reason) or None,
    )


def collect_texts(
    candidates: Sequence[ValidatedCandidate], aliases: Sequence[AliasGroup], user_entity_name: str
) -> list[str]:
    """Return every text whose vector applying may need, but the known contents a model may reinforce."""
    names = [entity.name for entity in collect_named_entities(candidates, aliases).values()]
    return list(dict.fromkeys([*(candidate.memory.content for candidate in candidates), *names, user_entity_name]))


def collect_reinforced_texts(answer: Reconciliation, linking: LinkingResult, facts: Mapping[str, Fact]) -> list[str]:
    """Return the contents of known facts an answer refers to."""
    numbers = {number for decision in answer.decisions for number in decision.known}
    ids = [linking.related[number - 1] for number in sorted(numbers) if 1 <= number <= len(linking.related)]
    return [facts[each].content for each in ids if each in facts and facts[each].status is MemoryStatus.ACTIVE]
