"""The last step of a window: one transaction that carries out its plan, exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from graphmem.conversations.session import RunMessage
from graphmem.ingestion.action_plan import ActionPlan, ActionPlanner, PlannedDeletion, PlannedEnd, PlannedSave, Veto
from graphmem.ingestion.candidates import STATED_END_KEY, AliasGroup, Rejection, ValidatedCandidate
from graphmem.ingestion.dropped_candidates import TrialSucceeded, WriteScope, write_without_culprits
from graphmem.ingestion.jobs import ExtractionAction, LinkAction, MemoryAction, parse_extraction_actions
from graphmem.ingestion.llm_schemas import Reconciliation
from graphmem.ingestion.name_resolution import (
    LinkingResult,
    NameResolution,
    choose_user_name,
    resolve_names,
    with_canonical_names,
)
from graphmem.ingestion.quarantine import CaughtCandidate, put_into_quarantine
from graphmem.ingestion.supersession import collect_named_entities
from graphmem.ingestion.transcript import DerivedTurn
from graphmem.memories.entity import EntityRef
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact import Fact
from graphmem.memories.fact_store import FactStore
from graphmem.memories.ledger import Ledger
from graphmem.memories.memory import (
    MAINTENANCE_TAGS,
    MAX_SOURCE_MESSAGES,
    MemoryPatch,
    MemoryType,
    SaveAction,
    SaveResult,
)
from graphmem.memories.new_memory import NewMemory
from graphmem.memories.saving import MENTIONED_ONCE, FactLoader, FactWrite, record_interest
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.neo4j.driver_values import to_json
from graphmem.runtime.field_types import Vector, content_hash, name_key
from graphmem.tenants.owners import Owner
from graphmem.tenants.profiles import TenantProfiles
from graphmem.tenants.trust import DEFAULT_ORDER, TrustOrder
from graphmem.tenants.trust_store import find_trust_order


@dataclass(frozen=True, slots=True)
class ExtractedWindow:
    """The results of a window's model calls, to be applied under `id`; `user_name` is the user's name, if known.

    `run_session_id` is the session in which the job keeps its `transcript`. `caught_message_ids` are those of messages
    of which something was caught, whether it goes into quarantine or is refused.
    """

    id: str
    session_id: str
    message_ids: Sequence[str]
    run_session_id: str = ""
    transcript: Sequence[RunMessage] = ()
    user_name: str | None = None
    candidates: Sequence[ValidatedCandidate] = ()
    quarantined: Sequence[CaughtCandidate] = ()
    caught_message_ids: Sequence[str] = ()
    rejections: Sequence[Rejection] = ()
    turns: Sequence[DerivedTurn] = ()
    aliases: Sequence[AliasGroup] = ()
    linking: LinkingResult = field(default_factory=LinkingResult)
    answer: Reconciliation | None = None


@dataclass(frozen=True, slots=True)
class CurrentFacts:
    """The believed versions of facts by memory id, and the entities that they and new statements name by id."""

    facts: Mapping[str, Fact]
    entity_refs: Mapping[str, EntityRef]


async def load_current_facts(
    transaction: Transaction, loader: FactLoader, entities: EntityStore, owner: Owner, window: ExtractedWindow
) -> CurrentFacts:
    """Return the facts related to the candidates, and those that compete with the single-valued ones.

    The entities are those that the facts and the candidates name, and those that unclear names may mean.
    """
    ids = window.linking.entities
    slots = {
        (subject_id, candidate.memory.predicate)
        for candidate in window.candidates
        if candidate.memory.single_valued and (subject_id := ids.of_subject(candidate))
    }
    facts = await loader.fetch(
        hashes=[content_hash(candidate.memory.content) for candidate in window.candidates],
        memory_ids=window.linking.related,
        pairs=sorted((subject_id, predicate) for subject_id, predicate in slots if predicate),
    )
    named = {entity_id for fact in facts.values() for entity_id in (fact.subject_id, *fact.entity_ids)}
    possible = {entity.id for entity in window.linking.known}
    return CurrentFacts(facts, await entities.get_refs(transaction, owner, sorted(named | ids.all_ids | possible)))


async def find_order_of_window(
    transaction: Transaction, owner: Owner, candidates: Sequence[ValidatedCandidate], facts: Mapping[str, Fact]
) -> TrustOrder:
    """Return the order of trust by which candidates and facts are compared."""
    kinds = {kind for candidate in candidates for line in candidate.stated_by for kind in line}
    return await find_trust_order(transaction, owner.tenant, {*kinds, *(fact.trust_kind for fact in facts.values())})


class WindowWriter:
    """Applies windows to the graph."""

    def __init__(self, graph: Graph, facts: FactStore, entities: EntityStore, profiles: TenantProfiles) -> None:
        self._graph = graph
        self._facts = facts
        self._entities = entities
        self._profiles = profiles

    async def apply(
        self, owner: Owner, window: ExtractedWindow, vectors: Mapping[str, Vector], actor: str
    ) -> list[ExtractionAction]:
        """Carry out a window's plan and return what was done; a window that was applied before only returns it.

        `vectors` maps the texts to save and the names of new entities to their vectors. A candidate that cannot be
        written is saved as a mere statement instead, which ends nothing, or refused; the others are written all the
        same.
        """

        async def write(scope: WriteScope) -> list[ExtractionAction]:
            async def work(transaction: Transaction) -> list[ExtractionAction]:
                now = await self._facts.lock_user(transaction, owner)
                rows = await transaction.run(
                    "extraction.get_extraction", group_id=owner.group_id, extraction_id=window.id
                )
                if rows:
                    return parse_extraction_actions(rows[0]["actions"])
                opened = WindowTransaction(
                    transaction, self._facts, self._entities, owner, window, vectors, actor, now, scope
                )
                actions = await opened.apply(self._session_tags(owner, window))
                if scope.is_trial:
                    raise TrialSucceeded
                return actions

            return await self._graph.write(work)

        return await write_without_culprits(write, len(window.candidates))

    def _session_tags(self, owner: Owner, window: ExtractedWindow) -> list[str]:
        """Return the tags of the candidates that label their session, in alphabetical order."""
        tags = {tag for candidate in window.candidates for tag in candidate.memory.tags}
        return self._profiles.for_tenant(owner.tenant).session_tags(sorted(tags - MAINTENANCE_TAGS))

    async def load_current_facts(self, owner: Owner, window: ExtractedWindow) -> CurrentFacts:
        """Return the facts that a window's plan depends on, outside a write."""
        return await self._graph.read(
            lambda transaction: load_current_facts(
                transaction, FactLoader(transaction, owner), self._entities, owner, window
            )
        )


class WindowTransaction:
    """One window being applied in an open transaction that holds the user's lock since `now`.

    `scope` says what of it is written.
    """

    def __init__(
        self,
        transaction: Transaction,
        facts: FactStore,
        entities: EntityStore,
        owner: Owner,
        window: ExtractedWindow,
        vectors: Mapping[str, Vector],
        actor: str,
        now: datetime,
        scope: WriteScope,
    ) -> None:
        self._transaction = transaction
        self._facts = facts
        self._entities = entities
        self._owner = owner
        self._window = window
        self._vectors = vectors
        self._actor = actor
        self._now = now
        self._scope = scope
        self._fact_loader = FactLoader(transaction, owner)
        self._actions: list[ExtractionAction] = [
            MemoryAction(action="refuse", type=rejection.type, reason=rejection.reason)
            for rejection in window.rejections
        ]
        self._links: list[LinkAction] = []
        self._order = DEFAULT_ORDER

    async def apply(self, session_tags: Sequence[str]) -> list[ExtractionAction]:
        """Carry out the plan, record it, label the session, and return what was done."""
        window = self._window
        await self._mark_caught_messages()
        if window.candidates:
            current = await load_current_facts(
                self._transaction, self._fact_loader, self._entities, self._owner, window
            )
            self._order = await find_order_of_window(self._transaction, self._owner, window.candidates, current.facts)
            planner = ActionPlanner(window.candidates, window.linking, current.facts, current.entity_refs, self._order)
            plan = self._limit(planner.plan(window.answer))
            resolution = self._resolve_names(plan, current.entity_refs)
            await self._rename_entities(resolution)
            await self._end(plan.ends)
            saves = [
                replace(save, memory=with_canonical_names(save.memory, resolution.canonical_names))
                for save in plan.saves
            ]
            await self._save(saves, current.facts, has_ended=bool(plan.ends))
            await self._delete(plan.deletions)
            await self._add_aliases(resolution)
            if self._includes_names and not self._owner.is_space:
                await self._name_user(current.entity_refs)
            self._actions += [MemoryAction(action="refuse", type="answer", reason=reason) for reason in plan.unusable]
            self._actions += [self._veto_action(veto) for veto in plan.vetoes]
            self._actions += self._links
        await self._quarantine()
        await self._record(session_tags)
        return self._actions

    async def _mark_caught_messages(self) -> None:
        """Mark the messages of which something was caught, before memories are taken from them."""
        if self._window.caught_message_ids:
            await self._transaction.run(
                "quarantine.mark_messages",
                group_id=self._owner.group_id,
                message_ids=list(dict.fromkeys(self._window.caught_message_ids)),
            )

    async def _quarantine(self) -> None:
        job_id = self._actor.removeprefix("job:")
        self._actions += await put_into_quarantine(
            self._transaction, self._owner, self._window.quarantined, job_id, self._now
        )

    @property
    def _includes_names(self) -> bool:
        return self._scope.includes(len(self._window.candidates))

    def _limit(self, plan: ActionPlan) -> ActionPlan:
        """Return the plan as far as this write carries it out."""
        candidates, scope = self._window.candidates, self._scope
        left_out = {index for index in range(len(candidates)) if not scope.includes(index)}
        limited = plan.without({*left_out, *scope.bare})
        for index, reason in scope.bare.items():
            if index not in left_out:
                memory, is_saved = candidates[index].memory, not candidates[index].retracts
                limited.vetoes.append(Veto(index, "change of other memories", reason, is_saved=is_saved))
                if is_saved:
                    bare = memory.model_copy(update={"single_valued": False, "supersedes": []})
                    limited.saves.append(PlannedSave(index, bare))
        limited.vetoes += [
            Veto(index, "insert", reason) for index, reason in scope.refused.items() if index < len(candidates)
        ]
        return limited

    def _resolve_names(self, plan: ActionPlan, entity_refs: Mapping[str, EntityRef]) -> NameResolution:
        window = self._window
        if not self._includes_names:
            reason = self._scope.refused.get(len(window.candidates), "")
            self._actions.append(MemoryAction(action="refuse", type="names", reason=reason))
            return NameResolution()
        named = collect_named_entities(window.candidates, window.aliases)
        resolution = resolve_names(
            window.linking.entities.by_name_key,
            plan.resolved_names,
            {key: entity.name for key, entity in named.items()},
            entity_refs,
            window.aliases,
            window.linking.entities.user or name_key(self._owner.entity_name),
        )
        self._actions += [
            MemoryAction(action="refuse", type="names", reason=reason) for reason in resolution.rejected_pairs
        ]
        return resolution

    async def _rename_entities(self, resolution: NameResolution) -> None:
        """Give known entities their fuller names, unless another entity has the name."""
        for entity_id, name in resolution.renames.items():
            others = await self._transaction.run(
                "entities.find_by_keys", group_ids=[self._owner.group_id], keys=[name_key(name)]
            )
            if not others:
                await self._rename(entity_id, name)

    async def _rename(self, entity_id: str, name: str) -> None:
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

    async def _name_user(self, entity_refs: Mapping[str, EntityRef]) -> None:
        """Give the user's own entity the user's name; the user id stays an alias, by which every write finds it."""
        user_id = self._owner.user_id
        known = entity_refs.get(self._window.linking.entities.user or "")
        current = known.name if known else user_id
        name = choose_user_name(current, user_id, self._window.aliases)
        if name is None:
            return
        rows = await self._transaction.run(
            "entities.find_by_keys", group_ids=[self._owner.group_id], keys=[name_key(name), name_key(current)]
        )
        own = next((row["entity"] for row in rows if row["entity"]["is_user"]), None)
        if own is None or len(rows) > 1:
            return
        await self._rename(own["uuid"], name)
        await self._entities.add_aliases(self._transaction, self._owner, own["uuid"], [current], self._now)

    async def _end(self, ends: Sequence[PlannedEnd]) -> None:
        """Give memories the ends that were stated."""
        if not ends:
            return
        facts = await FactLoader(self._transaction, self._owner).fetch(memory_ids=[end.memory_id for end in ends])
        now = await self._facts.lock_user(self._transaction, self._owner, 0)
        ledger = Ledger(facts.values(), now, self._actor)
        for end in ends:
            metadata = {**facts[end.memory_id].metadata, STATED_END_KEY: end.stated}
            fact = ledger.amend(end.memory_id, MemoryPatch.model_construct(invalid_at=end.at, metadata=metadata))
            self._add_action("end", fact.type, end.reason, fact.memory_id)
        await FactWrite(self._owner, self._transaction, now, ledger).commit()

    async def _save(self, saves: Sequence[PlannedSave], facts: Mapping[str, Fact], *, has_ended: bool) -> None:
        ready = [
            checked
            for save in saves
            if self._has_vector(save) and (checked := await self._check_interest_mentions(save, facts))
        ]
        if not ready:
            return
        results = await self._facts.save_in_transaction(
            self._transaction,
            self._owner,
            [
                NewMemory(
                    save.memory,
                    self._vectors[save.memory.content],
                    save.source_kind or self._window.candidates[save.candidate_index].source_kind(self._order),
                    save.reason,
                    ends=save.ends,
                    # The tool has no field for what a statement names.
                    links_names=bool(self._window.transcript),
                    given=_stated_fields(self._window.candidates[save.candidate_index]),
                )
                for save in ready
            ],
            {name_key(text): vector for text, vector in self._vectors.items()},
            self._actor,
            # The loader does not see the ends that were just written.
            locked_at=None if has_ended else self._now,
            loader=None if has_ended else self._fact_loader,
        )
        self._actions += [_save_action(save, result) for save, result in zip(ready, results, strict=True)]

    def _has_vector(self, save: PlannedSave) -> bool:
        """Return whether the text to save was embedded; a known memory may have been rewritten since it was read."""
        if save.memory.content in self._vectors:
            return True
        self._add_action("refuse", save.memory.type, "what it repeats has been rewritten meanwhile")
        return False

    async def _check_interest_mentions(self, save: PlannedSave, facts: Mapping[str, Fact]) -> PlannedSave | None:
        """Return a save; for a new inferred interest only once enough messages show it, with all of them as sources."""
        memory = save.memory
        is_known = any(fact.content_hash == content_hash(memory.content) for fact in facts.values())
        if memory.type is not MemoryType.INFERRED_INTEREST or save.is_reinforcement or is_known or memory.supersedes:
            return save
        message_ids = await record_interest(
            self._transaction,
            self._owner,
            memory,
            list(self._window.candidates[save.candidate_index].user_message_ids),
            self._now,
        )
        if message_ids is None:
            self._add_action("note", memory.type, MENTIONED_ONCE)
            return None
        assert memory.source
        source = memory.source.model_copy(update={"message_ids": message_ids[-MAX_SOURCE_MESSAGES:]})
        return replace(save, memory=memory.model_copy(update={"source": source}))

    async def _delete(self, deletions: Sequence[PlannedDeletion]) -> None:
        if not deletions:
            return
        loader = FactLoader(self._transaction, self._owner)
        facts = await loader.fetch(memory_ids=[deletion.memory_id for deletion in deletions])
        now = await self._facts.lock_user(self._transaction, self._owner, 0)
        ledger = Ledger(facts.values(), now, self._actor)
        for deletion in deletions:
            fact = ledger.delete(deletion.memory_id, deletion.reason)
            self._add_action("delete", fact.type, deletion.reason, fact.memory_id)
        await FactWrite(self._owner, self._transaction, now, ledger).commit()

    async def _add_aliases(self, resolution: NameResolution) -> None:
        for entity, names in resolution.aliases.items():
            if names:
                rows = await self._entities.add_aliases(self._transaction, self._owner, entity, names, self._now)
                self._links += [LinkAction.model_validate(row) for row in rows]

    def _veto_action(self, veto: Veto) -> MemoryAction:
        what = f"not to {veto.action}" if veto.memory_id else f"no {veto.action}"
        outcome = "; what was said is saved beside it" if veto.is_saved else ""
        return MemoryAction(
            action="refuse",
            memory_id=veto.memory_id,
            type=self._window.candidates[veto.candidate_index].memory.type.value,
            reason=f"{what}: {veto.reason}{outcome}",
        )

    def _add_action(
        self,
        action: Literal["refuse", "note", "delete", "end"],
        type: MemoryType,
        reason: str,
        memory_id: str | None = None,
    ) -> None:
        self._actions.append(MemoryAction(action=action, memory_id=memory_id, type=type.value, reason=reason))

    async def _record(self, session_tags: Sequence[str]) -> None:
        """Record the actions under the window's id, what its messages are about, and that they are extracted."""
        window = self._window
        if window.transcript:
            await self._transaction.run(
                "extraction.append_transcript",
                group_id=self._owner.group_id,
                session_id=window.run_session_id,
                entries=[message.model_dump_json() for message in window.transcript],
                now=self._now,
            )
        if window.turns:
            await self._transaction.run(
                "extraction.set_turns",
                group_id=self._owner.group_id,
                session_id=window.session_id,
                turns=[{**turn.model_dump(), "entities": to_json(turn.entities)} for turn in window.turns],
            )
        await self._transaction.run(
            "extraction.record_extraction",
            group_id=self._owner.group_id,
            extraction_id=window.id,
            actions=to_json([action.to_json() for action in self._actions]),
            links=to_json([link.to_json() for link in self._links]),
            message_ids=list(window.message_ids),
            session_id=window.session_id,
            tags=session_tags,
            at=self._now,
        )


def _save_action(save: PlannedSave, result: SaveResult) -> MemoryAction:
    is_decided = result.action is SaveAction.SUPERSEDE and save.memory.supersedes
    return MemoryAction.from_save(result, save.memory.type).model_copy(
        update={
            "superseded": result.superseded or None,
            "reason": (save.reason if is_decided else result.reason) or None,
        }
    )


def _stated_fields(candidate: ValidatedCandidate) -> set[str]:
    """Return the fields of a candidate that its message states; type, tags and metadata are the extraction's."""
    return {"invalid_at", "expires_at", *(["valid_at"] if candidate.is_dated else [])}
