"""Extraction as a durable job: batches of messages in sequence, each in three steps.

The job records the first two steps, the model calls; the graph records the third, the transaction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from graphmem.conversations.episode_store import EpisodeStore
from graphmem.ingestion.answers import Extraction, Wish
from graphmem.ingestion.apply import BatchWriter
from graphmem.ingestion.candidates import (
    USER_ALIASES,
    AliasGroup,
    collect_alias_groups,
    keep_own_names,
    validate_candidates,
    with_sources,
)
from graphmem.ingestion.extract import ExtractionStep, Extractor
from graphmem.ingestion.jobs import NO_MODEL_REASON, ExtractionAction, ExtractionPayload, MemoryAction
from graphmem.ingestion.link import LinkingResult
from graphmem.ingestion.reconcile import Batch, Reconciler, ReconciliationStep, TextVectors, call_user
from graphmem.ingestion.transcript import DerivedTurn, MessagePart, TranscriptLine, derive_turns, message_ids_of
from graphmem.jobs.job import JobOutcome, JobStatus
from graphmem.jobs.kinds import Steps
from graphmem.memories.declarations import DeclaredTypeStore
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact_store import FactStore
from graphmem.memories.writer import MemoryWriter
from graphmem.models.embedder import Embedder
from graphmem.models.language_model import LanguageModel, Receipt, load_prompts
from graphmem.neo4j.driver import Graph
from graphmem.runtime.field_types import JSON
from graphmem.runtime.metrics import STATEMENTS_CAUGHT
from graphmem.secrets.scanner import SecretPolicy
from graphmem.tenants.owners import Owner
from graphmem.tenants.profiles import TenantProfiles
from graphmem.tenants.tenant_settings import InstructionStore

MakeFirstCall = Callable[[Owner, Sequence[MessagePart], LanguageModel], Awaitable[ExtractionStep]]
"""Make the first call of a batch, in one of its two forms."""

QueueSummary = Callable[[Owner, str], Awaitable[object]]
"""Queue the summary of a session, by its id."""

QueueLearning = Callable[[Owner, Sequence[str], Mapping[str, Sequence[Wish]]], Awaitable[None]]
"""Queue the job that learns from the topics of messages, by message id, and from the wishes in them."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The outcome of a batch; `skip_reason` is None if the model found something worth remembering.

    `summarize` means that the user asked for a session summary; `turns` are the topics of the messages.
    """

    message_ids: Sequence[str]
    receipt: Receipt
    actions: Sequence[ExtractionAction] = ()
    skip_reason: str | None = None
    summarize: bool = False
    turns: Sequence[DerivedTurn] = ()


class ExtractionJob:
    """Handles extraction jobs, with up to two model calls per batch; one if nothing known is related."""

    def __init__(
        self,
        *,
        graph: Graph,
        instructions: InstructionStore,
        declared_types: DeclaredTypeStore,
        episodes: EpisodeStore,
        facts: FactStore,
        entities: EntityStore,
        memory_writer: MemoryWriter,
        policy: SecretPolicy,
        profiles: TenantProfiles,
        embedder: Embedder,
        model: LanguageModel | None,
        queue_summary: QueueSummary | None = None,
        queue_learning: QueueLearning | None = None,
        zone: str = "UTC",
        quarantine: Literal["keep", "refuse"] = "keep",
    ) -> None:
        """`zone` is the IANA zone of users without one of their own.

        `quarantine` decides whether statements from text that addresses the assistant are kept for review or refused.
        """
        self._keeps_caught = quarantine == "keep"
        self._episodes = episodes
        self._reconciler = Reconciler(graph, entities, memory_writer, policy)
        self._writer = BatchWriter(graph, facts, entities, profiles)
        self._memory_writer = memory_writer
        self._policy = policy
        self._embedder = embedder
        self._model = model
        self._queue_summary = queue_summary
        self._queue_learning = queue_learning
        self._extractor = Extractor(
            graph,
            episodes,
            policy,
            instructions,
            declared_types,
            profiles,
            load_prompts(),
            zone,
            memory_writer.rejection_reason,
        )

    async def run(self, payload: ExtractionPayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `extraction`."""
        return await self._run(payload, steps, self._extractor.extract)

    async def run_tools(self, payload: ExtractionPayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `tool_extraction`."""
        return await self._run(payload, steps, self._extractor.extract_with_tools)

    async def _run(self, payload: ExtractionPayload, steps: Steps, first_call: MakeFirstCall) -> JobOutcome:
        owner, embedded = payload.owner, Receipt(embedded_texts=payload.embedded_texts)
        if self._model is None:
            await steps.run("release", lambda: self._episodes.release_from_job(owner, steps.job_id))
            return JobOutcome(status=JobStatus.SKIPPED, reason=NO_MODEL_REASON, receipt=embedded)
        batches = [
            await self._extract_batch(payload, steps, number, parts, first_call, self._model)
            for number, parts in enumerate(payload.batches, 1)
        ]
        extracted = {message_id for batch in batches for message_id in batch.message_ids}
        # Batches leave out system messages, and tool results without a dialogue.
        others = [message_id for message_id in payload.message_ids if message_id not in extracted]
        if others:
            await steps.run("mark read", lambda: self._episodes.mark_extracted(owner, others))
        await self._queue_followers(payload, batches, steps)
        return _job_outcome(batches, embedded)

    async def _extract_batch(
        self,
        payload: ExtractionPayload,
        steps: Steps,
        number: int,
        parts: Sequence[MessagePart],
        first_call: MakeFirstCall,
        model: LanguageModel,
    ) -> BatchResult:
        """Extract from one batch; without statements there is no second call."""
        owner, message_ids = payload.owner, message_ids_of(parts)
        first = await steps.run(f"extract {number}", partial(first_call, owner, parts, model), ExtractionStep)
        if first.extraction is None:
            return BatchResult(message_ids, first.receipt, skip_reason="the messages are gone")
        batch = self._read_answer(owner, first, first.extraction)
        batch = replace(
            batch, id=f"{steps.job_id}:{number}", message_ids=message_ids, run_session_id=payload.session_id
        )
        vectors = TextVectors(self._embedder)
        second = ReconciliationStep(linking=LinkingResult(related_by_statement=[[] for _ in batch.statements]))
        if batch.statements and first.has_known_entities:
            reconcile = partial(self._reconciler.reconcile, owner, batch, vectors, model)
            second = await steps.run(f"reconcile {number}", reconcile, ReconciliationStep)
        batch = replace(batch, linking=second.linking, answer=second.answer)

        async def embed_and_write() -> list[ExtractionAction]:
            if batch.statements:  # before the transaction, which does not wait for the embedder
                await vectors.add([*batch.texts(owner), *second.texts])
            return await self._writer.apply(owner, batch, vectors.by_text, f"job:{steps.job_id}")

        actions = await steps.run_idempotent(f"apply {number}", embed_and_write, list[ExtractionAction])
        kept = sum(statement.catch is not None and statement.catch.is_kept for statement in batch.caught)
        STATEMENTS_CAUGHT.labels("quarantine").inc(kept)
        STATEMENTS_CAUGHT.labels("refuse").inc(len(batch.caught) - kept)
        is_skipped = not batch.refusals and _is_skipped(first, first.extraction)
        return BatchResult(
            message_ids,
            first.receipt + second.receipt + Receipt(embedded_texts=len(vectors.by_text)),
            actions,
            skip_reason=(first.extraction.reason or "nothing worth keeping") if is_skipped else None,
            summarize=first.extraction.summarize and any(line.origin == "user" for line in first.lines),
            turns=batch.turns,
        )

    def _read_answer(self, owner: Owner, first: ExtractionStep, extraction: Extraction) -> Batch:
        """Return the batch of the first call, with the candidates that can be used as statements."""
        batch = Batch(
            session_id=first.session_id,
            lines=first.lines,
            keywords=extraction.keywords,
            user_name=first.user_name,
            user_label=call_user(first.lines, first.user_name, first.user_names),
            refusals=first.refusals,
            turns=derive_turns(extraction.turns, first.lines, partial(self._holds_secret, owner)),
            transcript=first.transcript,
        )
        if _is_skipped(first, extraction):
            return batch
        statements, refusals = validate_candidates(
            extraction,
            first.lines,
            first.session_id,
            owner.user_id,
            first.user_names,
            partial(self._memory_writer.rejection_reason, owner, is_source_known=True),
            first.labels,
            first.screenings,
        )
        if extraction.skip:  # caught statements are kept all the same
            statements, refusals = [statement for statement in statements if statement.catch], []
        caught = [
            (statement, replace(statement.catch, is_kept=statement.catch.is_kept and self._keeps_caught))
            for statement in statements
            if statement.catch
        ]
        return replace(
            batch,
            statements=[statement for statement in statements if statement.catch is None],
            caught=[replace(statement, catch=catch) for statement, catch in caught],
            refusals=[
                *first.refusals,
                *refusals,
                *(
                    MemoryAction.refused(statement.memory.type.value, catch.reason)
                    for statement, catch in caught
                    if not catch.is_kept
                ),
            ],
            aliases=[
                AliasGroup(USER_ALIASES, tuple(first.user_names)),
                *_collect_alias_groups(owner, extraction, first.user_names, first.lines),
            ],
        )

    def _holds_secret(self, owner: Owner, value: JSON) -> bool:
        return bool(self._policy.refused_classes(value, owner.tenant))

    async def _queue_followers(self, payload: ExtractionPayload, batches: Sequence[BatchResult], steps: Steps) -> None:
        """Queue the follow-up jobs: learning from the turns, and a summary if the user asked for one."""
        message_ids = [message_id for batch in batches if batch.turns for message_id in batch.message_ids]
        wishes = {turn.message_id: turn.wishes for batch in batches for turn in batch.turns if turn.wishes}
        if message_ids and self._queue_learning and not payload.owner.is_space:
            await steps.run("queue learning", partial(self._queue_learning, payload.owner, message_ids, wishes))
        if self._queue_summary and any(batch.summarize for batch in batches):
            await steps.run("queue summary", partial(self._queue_summary, payload.owner, payload.session_id))


def _job_outcome(batches: Sequence[BatchResult], embedded: Receipt) -> JobOutcome:
    receipt = sum((batch.receipt for batch in batches), embedded)
    skip_reasons = [batch.skip_reason for batch in batches if batch.skip_reason]
    if len(skip_reasons) == len(batches):
        reason = skip_reasons[0] if skip_reasons else "no message of the user or the assistant"
        return JobOutcome(status=JobStatus.SKIPPED, reason=reason, receipt=receipt)
    return JobOutcome(actions=[action for batch in batches for action in batch.actions], receipt=receipt)


def _is_skipped(first: ExtractionStep, extraction: Extraction) -> bool:
    """Return whether the model found nothing to keep and nothing that may have to be quarantined."""
    return not extraction.candidates or (extraction.skip and not first.screenings)


def _collect_alias_groups(
    owner: Owner, extraction: Extraction, user_names: Sequence[str], lines: Sequence[TranscriptLine]
) -> list[AliasGroup]:
    """Return the alias groups of an answer; without the user's in a space, where several people are "the user".

    Names that only third-party text gives the user are left out.
    """
    collected = collect_alias_groups(extraction, user_names)
    groups = [group if group.is_of_user else with_sources(group, lines) for group in collected]
    if owner.is_space:
        return [group for group in groups if not group.is_of_user]
    return [keep_own_names(group, lines) if group.is_of_user else group for group in groups]
