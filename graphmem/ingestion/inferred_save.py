"""Saving of statements that a model compares with what is known, as it does with the statements of messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from types import MappingProxyType

from pydantic import TypeAdapter

from graphmem.conversations.session import MessageRole
from graphmem.ingestion.action_plan import ActionPlan, ActionPlanner
from graphmem.ingestion.candidates import STATED_END_KEY, ValidatedCandidate
from graphmem.ingestion.entity_linking import CandidateLinker
from graphmem.ingestion.llm_schemas import Reconciliation
from graphmem.ingestion.name_resolution import with_canonical_names
from graphmem.ingestion.reconciliation import build_reconciliation_prompt, needs_model_call
from graphmem.ingestion.transcript import TranscriptLine
from graphmem.ingestion.window_transaction import ExtractedWindow, find_order_of_window, load_current_facts
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact_store import FactStore
from graphmem.memories.ledger import Ledger
from graphmem.memories.memory import (
    MemoryIn,
    MemoryPatch,
    MemoryStatus,
    SaveAction,
    SaveResult,
)
from graphmem.memories.new_memory import NewMemory
from graphmem.memories.saving import FactLoader, FactWrite
from graphmem.memories.writer import MemoryWriter, about_speaker, find_space, kind_of_statement
from graphmem.models.embedder import Embedder
from graphmem.models.language_model import LanguageModel
from graphmem.models.prompts import load_prompts
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import InvalidInput, NotConfigured
from graphmem.runtime.field_types import Vector, name_key
from graphmem.runtime.times import Clock
from graphmem.secrets.values import SecretPolicy, make_redactor
from graphmem.tenants.idempotency import IdempotentRequest, write_once
from graphmem.tenants.owners import Owner
from graphmem.tenants.trust import SourceKind

MAX_INFERRED = 20
"""Statements of one save that a model compares with what is known."""

_SAVE_RESULTS = TypeAdapter(list[SaveResult])


class InferredSave:
    """Saves statements as the reconciliation of messages would: it inserts, reinforces, supersedes or skips them."""

    def __init__(
        self,
        graph: Graph,
        facts: FactStore,
        entities: EntityStore,
        memory_writer: MemoryWriter,
        policy: SecretPolicy,
        embedder: Embedder,
        model: LanguageModel | None,
        clock: Clock,
    ) -> None:
        self._graph = graph
        self._facts = facts
        self._entities = entities
        self._memory_writer = memory_writer
        self._policy = policy
        self._embedder = embedder
        self._model = model
        self._clock = clock
        self._linker = CandidateLinker(graph)
        self._prompt = load_prompts()["reconcile"]

    async def save(
        self,
        owner: Owner,
        memories: Sequence[MemoryIn],
        *,
        actor: str | None,
        kind: SourceKind,
        request: IdempotentRequest | None = None,
        spaces: Mapping[str, Owner] = MappingProxyType({}),
    ) -> list[SaveResult]:
        """Save statements in the order given, all or none: all of them in one place, the owner's or one of `spaces`.

        Raises NotConfigured without a model, InvalidInput for too many statements, ModelUnavailable for a model that
        fails.
        """
        if self._model is None:
            raise NotConfigured(
                "No language model is configured, which infer needs: set GRAPHMEM_LLM_MODEL and the key of its "
                "provider, or save without infer."
            )
        if len(memories) > MAX_INFERRED:
            raise InvalidInput(f"A save with infer takes up to {MAX_INFERRED} memories: send them in several saves.")
        places = {find_space(memory.space, spaces) for memory in memories}
        if len(places) > 1:
            raise InvalidInput("A save with infer has one space: send the memories of each in a save of their own.")
        reasons = [self._memory_writer.rejection_reason(owner, memory) for memory in memories]
        speaker = None
        if (place := places.pop()) is not None:
            memories, speaker, owner = [about_speaker(memory, owner) for memory in memories], owner.user_id, place
        allowed = [memory for memory, reason in zip(memories, reasons, strict=True) if reason is None]
        saved = iter(
            await self._reconcile_and_save(owner, allowed, self._model, actor, kind, request, speaker)
            if allowed
            else []
        )
        return [
            next(saved) if reason is None else SaveResult(action=SaveAction.SKIP, memory=None, reason=reason)
            for reason in reasons
        ]

    async def _reconcile_and_save(
        self,
        owner: Owner,
        memories: Sequence[MemoryIn],
        model: LanguageModel,
        actor: str | None,
        kind: SourceKind,
        request: IdempotentRequest | None,
        speaker: str | None,
    ) -> list[SaveResult]:
        now = self._clock()
        candidates = [_to_candidate(memory, now, kind_of_statement(memory, kind)) for memory in memories]
        vectors: dict[str, Vector] = {}
        names = [entity.name for candidate in candidates for entity in candidate.named_entities]
        await self._embed(vectors, [*(memory.content for memory in memories), *names, owner.user_id, owner.entity_name])
        linking, related = await self._linker.link(owner, candidates, (), vectors, ())
        window = ExtractedWindow(id="", session_id="", message_ids=(), candidates=candidates, linking=linking)
        if needs_model_call(candidates, linking, related):
            window = await self._ask(owner, window, model, vectors)

        async def write(transaction: Transaction) -> list[SaveResult]:
            apply = partial(self._apply, transaction, owner, window, vectors, actor, speaker)
            return await write_once(transaction, request, _SAVE_RESULTS, apply)

        return await self._graph.write(write)

    async def _ask(
        self, owner: Owner, window: ExtractedWindow, model: LanguageModel, vectors: dict[str, Vector]
    ) -> ExtractedWindow:
        """Return the window with the model's answer; embed what the answer may save beside the statements."""
        current = await self._graph.read(
            lambda transaction: load_current_facts(
                transaction, FactLoader(transaction, owner), self._entities, owner, window
            )
        )
        redact = make_redactor(self._policy.allowed_classes(owner.tenant))
        lines = [
            TranscriptLine(number, "", MessageRole.USER, None, candidate.sent_at, candidate.memory.content)
            for number, candidate in enumerate(window.candidates, 1)
        ]
        prompt = build_reconciliation_prompt(
            self._prompt,
            lines,
            window.candidates,
            window.linking,
            current.facts,
            current.entity_refs,
            "User",
            redact,
        )
        answer = (await model.complete_structured(prompt, Reconciliation, use="main")).value
        decisions = [
            decision.model_copy(update={"reason": redact(decision.reason), "remaining": None})
            for decision in answer.decisions
        ]
        known = [fact.content for fact in current.facts.values() if fact.status is MemoryStatus.ACTIVE]
        await self._embed(vectors, known)
        return replace(window, answer=answer.model_copy(update={"decisions": decisions}))

    async def _embed(self, vectors: dict[str, Vector], texts: Sequence[str]) -> None:
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        if missing:
            vectors.update(zip(missing, await self._embedder.embed(missing), strict=True))

    async def _apply(
        self,
        transaction: Transaction,
        owner: Owner,
        window: ExtractedWindow,
        vectors: Mapping[str, Vector],
        actor: str | None,
        speaker: str | None,
    ) -> list[SaveResult]:
        now = await self._facts.lock_or_create_user(transaction, owner)
        current = await load_current_facts(transaction, FactLoader(transaction, owner), self._entities, owner, window)
        order = await find_order_of_window(transaction, owner, window.candidates, current.facts)
        planner = ActionPlanner(window.candidates, window.linking, current.facts, current.entity_refs, order)
        plan = planner.plan(window.answer)
        results = _skipped(window.candidates, plan)
        if plan.ends:
            facts = await FactLoader(transaction, owner).fetch(memory_ids=[end.memory_id for end in plan.ends])
            ledger = Ledger(facts.values(), now, actor)
            for end in plan.ends:
                metadata = {**facts[end.memory_id].metadata, STATED_END_KEY: end.stated}
                ledger.amend(end.memory_id, MemoryPatch.model_construct(invalid_at=end.at, metadata=metadata))
            await FactWrite(owner, transaction, now, ledger).commit()
        canonical = {
            **{
                key: ref.name
                for key, id in window.linking.entities.by_name_key.items()
                if (ref := current.entity_refs.get(id))
            },
            **{key: ref.name for key, id in plan.resolved_names.items() if (ref := current.entity_refs.get(id))},
        }
        saves = [save for save in plan.saves if save.memory.content in vectors]
        saved = await self._facts.save_in_transaction(
            transaction,
            owner,
            [
                NewMemory(
                    with_canonical_names(save.memory, canonical),
                    vectors[save.memory.content],
                    save.source_kind or window.candidates[save.candidate_index].source_kind(order),
                    save.reason,
                    ends=save.ends,
                    links_names=True,
                    speaker=speaker,
                    given=save.memory.model_fields_set,
                )
                for save in saves
            ],
            {name_key(text): vector for text, vector in vectors.items()},
            actor,
        )
        for save, result in zip(saves, saved, strict=True):
            if results[save.candidate_index].memory is None:
                results[save.candidate_index] = result
        return results


def _to_candidate(memory: MemoryIn, now: datetime, kind: SourceKind) -> ValidatedCandidate:
    """Return a statement as one that somebody makes now, whose word is of a kind."""
    return ValidatedCandidate(
        memory=memory,
        sent_at=now,
        user_message_ids=("",),
        retracts=False,
        is_dated=memory.valid_at is not None,
        stated_by=((kind,),),
    )


def _skipped(candidates: Sequence[ValidatedCandidate], plan: ActionPlan) -> list[SaveResult]:
    """Return a result for each statement as if none were saved, with the reason and the memory that it concerns."""
    results = [SaveResult(action=SaveAction.SKIP, memory=None, reason="known already") for _ in candidates]
    for veto in plan.vetoes:
        results[veto.candidate_index] = SaveResult(action=SaveAction.SKIP, memory=None, reason=veto.reason)
    for end in plan.ends:
        results[end.candidate_index] = SaveResult(
            action=SaveAction.SKIP, memory=None, related=[end.memory_id], reason="it only ends a known memory"
        )
    return results
