"""Saving of statements that a model compares with known facts: a batch of statements given by the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from pydantic import TypeAdapter

from graphmem.conversations.session import MessageRole
from graphmem.ingestion.apply import BatchTransaction
from graphmem.ingestion.candidates import Statement
from graphmem.ingestion.plan import ActionPlan
from graphmem.ingestion.reconcile import Batch, Reconciler, TextVectors
from graphmem.ingestion.transcript import TranscriptLine
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact_store import FactStore
from graphmem.memories.memory import MemoryIn, SaveAction, SaveResult
from graphmem.memories.new_memory import NewMemory, find_doubt
from graphmem.memories.writer import MemoryWriter, about_speaker, find_space, kind_of_statement
from graphmem.models.embedder import Embedder
from graphmem.models.language_model import LanguageModel
from graphmem.neo4j.driver import Graph, Transaction
from graphmem.runtime.errors import InvalidInput, NotConfigured
from graphmem.runtime.times import Clock
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.idempotency import IdempotentRequest, write_once
from graphmem.tenants.owners import Owner
from graphmem.tenants.trust import SourceKind

MAX_INFERRED = 20
"""Maximum statements per save that a model compares with known facts."""

_SAVE_RESULTS = TypeAdapter(list[SaveResult])


class InferredSave:
    """Saves statements as reconciliation saves those in messages: inserting, reinforcing, superseding or skipping."""

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
        self._embedder = embedder
        self._model = model
        self._clock = clock
        self._reconciler = Reconciler(graph, entities, memory_writer, policy)

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
        """Save statements in the order given, all or none, in one place: the owner's memory or one of `spaces`.

        Raises NotConfigured without a model, InvalidInput for too many statements, and ModelUnavailable if the model
        fails.
        """
        if self._model is None:
            raise NotConfigured(
                "infer requires a language model: set GRAPHMEM_LLM_MODEL and its provider's key, or save without infer."
            )
        if len(memories) > MAX_INFERRED:
            raise InvalidInput(f"A save with infer takes up to {MAX_INFERRED} memories: send them in several saves.")
        places = {find_space(memory.space, spaces) for memory in memories}
        if len(places) > 1:
            raise InvalidInput("A save with infer takes one space: send one save per space.")
        reasons = [
            self._memory_writer.rejection_reason(owner, memory) or find_doubt(memory, kind, owner.entity_name)
            for memory in memories
        ]
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
        statements = [_to_statement(memory, now, kind_of_statement(memory, kind)) for memory in memories]
        lines = [
            TranscriptLine(number, "", MessageRole.USER, None, now, memory.content)
            for number, memory in enumerate(memories, 1)
        ]
        batch = Batch(statements=statements, lines=lines, is_given=True, speaker=speaker)
        vectors = TextVectors(self._embedder)
        found = await self._reconciler.reconcile(owner, batch, vectors, model)
        await vectors.add(found.texts)
        batch = replace(batch, linking=found.linking, answer=found.answer)

        async def work(transaction: Transaction) -> list[SaveResult]:
            locked_at = await self._facts.lock_or_create_user(transaction, owner)
            opened = BatchTransaction(
                transaction, self._facts, self._entities, owner, batch, vectors.by_text, actor, locked_at
            )
            return _results_of(statements, *await opened.carry_out())

        return await self._graph.write(
            lambda transaction: write_once(transaction, request, _SAVE_RESULTS, lambda: work(transaction))
        )


def _to_statement(memory: MemoryIn, now: datetime, kind: SourceKind) -> Statement:
    """Return a memory as a statement made now by a source of `kind`."""
    return Statement(
        memory=memory,
        sent_at=now,
        user_message_ids=("",),
        retracts=False,
        is_dated=memory.valid_at is not None,
        stated_by=((kind,),),
    )


def _results_of(
    statements: Sequence[Statement], plan: ActionPlan, saved: Sequence[tuple[NewMemory, SaveResult]]
) -> list[SaveResult]:
    """Return the result of each statement: its first save, or why it was not saved and the memory concerned."""
    results = [SaveResult(action=SaveAction.SKIP, memory=None, reason="known already") for _ in statements]
    for veto in plan.vetoes:
        results[veto.index] = SaveResult(action=SaveAction.SKIP, memory=None, reason=veto.reason)
    for end in plan.ends:
        if end.index is None:
            continue
        results[end.index] = SaveResult(
            action=SaveAction.SKIP, memory=None, related=[end.memory_id], reason="it only ends a known memory"
        )
    for save, result in saved:
        if results[save.index].memory is None:
            results[save.index] = result
    return results
