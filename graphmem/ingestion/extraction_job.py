"""Extraction as a durable job: the windows of a batch, one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Literal

from graphmem.conversations.episode_store import EpisodeStore
from graphmem.ingestion.entity_linking import CandidateLinker
from graphmem.ingestion.extraction import Extractor
from graphmem.ingestion.jobs import NO_MODEL_REASON, ExtractionPayload
from graphmem.ingestion.window_extraction import MakeFirstCall, WindowExtraction, WindowResult, WindowTools
from graphmem.ingestion.window_transaction import WindowWriter
from graphmem.jobs.job import JobOutcome, JobStatus
from graphmem.jobs.kinds import Steps
from graphmem.memories.declarations import DeclaredTypeStore
from graphmem.memories.entity_store import EntityStore
from graphmem.memories.fact_store import FactStore
from graphmem.memories.writer import MemoryWriter
from graphmem.models.embedder import Embedder
from graphmem.models.language_model import LanguageModel
from graphmem.models.prompts import load_prompts
from graphmem.models.receipt import Receipt
from graphmem.neo4j.driver import Graph
from graphmem.secrets.values import SecretPolicy
from graphmem.tenants.instruction_store import InstructionStore
from graphmem.tenants.owners import Owner
from graphmem.tenants.profiles import TenantProfiles

QueueSummary = Callable[[Owner, str], Awaitable[object]]
"""Queue the summary of a session, by its id."""

QueueLearning = Callable[[Owner, Sequence[str]], Awaitable[None]]
"""Queue the job that learns from what messages were found to be about, by their ids."""


class ExtractionJob:
    """Handles extraction jobs: up to two model calls a window, one where nothing is related to what is known."""

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

        `quarantine` says what becomes of statements from text that addresses the assistant.
        """
        self._keeps_caught = quarantine == "keep"
        self._episodes = episodes
        self._linker = CandidateLinker(graph)
        self._writer = WindowWriter(graph, facts, entities, profiles)
        self._memory_writer = memory_writer
        self._policy = policy
        self._embedder = embedder
        self._model = model
        self._prompts = load_prompts()
        self._queue_summary = queue_summary
        self._queue_learning = queue_learning
        self._extractor = Extractor(
            graph,
            episodes,
            policy,
            instructions,
            declared_types,
            profiles,
            self._prompts,
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
        tools = WindowTools(
            first_call=first_call,
            reconcile_prompt=self._prompts["reconcile"],
            linker=self._linker,
            writer=self._writer,
            memory_writer=self._memory_writer,
            policy=self._policy,
            embedder=self._embedder,
            model=self._model,
            keeps_caught=self._keeps_caught,
        )
        windows = [
            await WindowExtraction(tools, payload, steps, number, parts).run()
            for number, parts in enumerate(payload.windows, 1)
        ]
        extracted = {message_id for window in windows for message_id in window.message_ids}
        # What a system says is in no window, nor is the result of a tool without a dialogue.
        others = [message_id for message_id in payload.message_ids if message_id not in extracted]
        if others:
            await steps.run("mark read", lambda: self._episodes.mark_extracted(owner, others))
        await self._queue_followers(payload, windows, steps)
        return _job_outcome(windows, embedded)

    async def _queue_followers(self, payload: ExtractionPayload, windows: Sequence[WindowResult], steps: Steps) -> None:
        """Queue what follows from the windows: learning from their turns, and a summary that the user asked for."""
        turns = [message_id for window in windows if window.has_turns for message_id in window.message_ids]
        if turns and self._queue_learning and not payload.owner.is_space:
            await steps.run("queue learning", partial(self._queue_learning, payload.owner, turns))
        if self._queue_summary and any(window.summarize for window in windows):
            await steps.run("queue summary", partial(self._queue_summary, payload.owner, payload.session_id))


def _job_outcome(windows: Sequence[WindowResult], embedded: Receipt) -> JobOutcome:
    receipt = sum((window.receipt for window in windows), embedded)
    skip_reasons = [window.skip_reason for window in windows if window.skip_reason]
    if len(skip_reasons) == len(windows):
        reason = skip_reasons[0] if skip_reasons else "no message of the user or the assistant"
        return JobOutcome(status=JobStatus.SKIPPED, reason=reason, receipt=receipt)
    return JobOutcome(actions=[action for window in windows for action in window.actions], receipt=receipt)
