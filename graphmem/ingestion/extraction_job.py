"""Extraction as a durable job: extract → reconcile → apply, for each window of a batch."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from typing import Any

from graphmem.domain.entity import EntityRef
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.job import JobOutcome, JobStatus, Receipt
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.profile import TenantProfiles
from graphmem.embedding import Embedder
from graphmem.ingestion.apply import Applier, ExtractedWindow, collect_reinforced_texts, collect_texts
from graphmem.ingestion.candidates import (
    AliasGroup,
    PolicyCheck,
    ValidatedCandidate,
    collect_alias_groups,
    validate_candidates,
)
from graphmem.ingestion.entity_linking import CandidateLinker, LinkingResult
from graphmem.ingestion.extraction import ExtractionStep, Extractor, load_extraction_step
from graphmem.ingestion.job_actions import ExtractionAction
from graphmem.ingestion.job_kinds import ExtractionPayload
from graphmem.ingestion.llm_schemas import Reconciliation
from graphmem.ingestion.memory_writer import MemoryWriter
from graphmem.ingestion.reconciliation import needs_model_call, request_reconciliation
from graphmem.ingestion.secret_redaction import make_redactor
from graphmem.ingestion.transcript import MessagePart
from graphmem.jobs import Steps
from graphmem.llm.client import LanguageModel
from graphmem.llm.completion import LlmReceipt
from graphmem.llm.prompts import load_prompts
from graphmem.store.driver import Graph
from graphmem.store.entities import EntityStore
from graphmem.store.episodes import EpisodeStore
from graphmem.store.fact_write import FactLoader
from graphmem.store.facts import FactStore

NO_MODEL_REASON = "no language model is configured: set OPENAI_API_KEY or OPENAI_BASE_URL"

Json = dict[str, Any]


class WindowVectors:
    """The vectors of one window's texts, each computed once; `count` says how many were."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.known: dict[str, list[float]] = {}
        self.count = 0

    async def add(self, texts: Sequence[str]) -> None:
        """Compute what is missing."""
        missing = [text for text in dict.fromkeys(texts) if text not in self.known]
        if missing:
            self.known.update(zip(missing, await self._embedder.embed(missing), strict=True))
            self.count += len(missing)


class ExtractionJob:
    """Handles extraction jobs: two model calls a window at most, one when there is nothing to keep."""

    def __init__(
        self,
        *,
        graph: Graph,
        episodes: EpisodeStore,
        facts: FactStore,
        entities: EntityStore,
        memory_writer: MemoryWriter,
        policy: SecretPolicy,
        profiles: TenantProfiles,
        embedder: Embedder,
        model: LanguageModel | None,
        zone: str = "UTC",
    ) -> None:
        self._graph = graph
        self._episodes = episodes
        self._linker = CandidateLinker(graph)
        self._applier = Applier(graph, facts, entities, profiles)
        self._memory_writer = memory_writer
        self._policy = policy
        self._embedder = embedder
        self._model = model
        self._prompts = load_prompts()
        self._extractor = Extractor(graph, episodes, policy, self._prompts, zone)

    async def run(self, payload: ExtractionPayload, steps: Steps) -> JobOutcome:
        """Read the messages of the payload; its windows were cut when it was queued."""
        return await self._run(payload, steps, self._extractor.extract)

    async def run_tools(self, payload: ExtractionPayload, steps: Steps) -> JobOutcome:
        """The same, the model saving by the tool `upsert_memories`."""
        return await self._run(payload, steps, self._extractor.extract_with_tools)

    async def _run(self, payload: ExtractionPayload, steps: Steps, read: Callable[..., Awaitable[Json]]) -> JobOutcome:
        owner = payload.owner
        if self._model is None:
            await steps.run("release", lambda: self._episodes.release_from_job(owner, steps.job_id))
            return JobOutcome(status=JobStatus.SKIPPED, reason=NO_MODEL_REASON)
        windows = [_WindowRun(self, owner, steps, number, parts) for number, parts in enumerate(payload.windows, 1)]
        for window in windows:
            await window.run(read, self._model)
        done = {message_id for window in windows for message_id in window.message_ids}
        unextracted_ids = [each for each in payload.message_ids if each not in done]
        if unextracted_ids:
            await steps.run("mark read", lambda: self._episodes.mark_extracted(owner, unextracted_ids))
        return _job_outcome(windows)

    # What the steps after the first do

    async def reconcile(
        self,
        owner: Owner,
        extraction_step: ExtractionStep,
        candidates: Sequence[ValidatedCandidate],
        aliases: Sequence[AliasGroup],
        keywords: Sequence[str],
        vectors: WindowVectors,
        model: LanguageModel,
    ) -> Json:
        """Link names, fetch what is related, and make the second call where a model must decide about it."""
        await vectors.add(collect_texts(candidates, aliases, owner.user_id))
        linking, related = await self._linker.link(owner, candidates, aliases, vectors.known, keywords)
        found = {"linking": linking.model_dump(mode="json")}
        if not needs_model_call(candidates, linking, related):
            return {**found, "answer": None}
        facts, names = await self._load_current_facts(owner, linking, candidates)
        answer = await request_reconciliation(
            model, self._prompts["reconcile"], extraction_step.lines, candidates, linking, facts, names
        )
        redact = make_redactor(self._policy.allowed_classes(owner.tenant))
        told = [each.model_copy(update={"reason": redact(each.reason)}) for each in answer.value.decisions]
        value = answer.value.model_copy(update={"decisions": told})
        return {**found, "answer": value.model_dump(mode="json"), "receipt": asdict(answer.receipt)}

    async def apply(
        self, owner: Owner, window: ExtractedWindow, vectors: WindowVectors, actor: str
    ) -> list[ExtractionAction]:
        """Write what was decided; the vectors come first."""
        if window.candidates:
            await vectors.add(collect_texts(window.candidates, window.aliases, owner.user_id))
        if window.answer and any(decision.known for decision in window.answer.decisions):
            facts, _ = await self._load_current_facts(owner, window.linking, window.candidates)
            await vectors.add(collect_reinforced_texts(window.answer, window.linking, facts))
        return await self._applier.apply(owner, window, vectors.known, actor)

    def vectors(self) -> WindowVectors:
        """Return a place for the vectors of one window."""
        return WindowVectors(self._embedder)

    def policy_check_for(self, owner: Owner) -> PolicyCheck:
        """Return the policy of a user as a function of a statement."""
        return lambda memory: self._memory_writer.rejection_reason(owner, memory)

    async def _load_current_facts(
        self, owner: Owner, linking: LinkingResult, candidates: Sequence[ValidatedCandidate]
    ) -> tuple[dict[str, Fact], dict[str, EntityRef]]:
        return await self._graph.read(
            lambda transaction: self._applier.load_current_facts(
                transaction, FactLoader(transaction, owner), owner, linking, candidates
            )
        )


class _WindowRun:
    """One window of a batch on its way through three steps: the job records the calls, the writing records itself."""

    def __init__(self, job: ExtractionJob, owner: Owner, steps: Steps, number: int, parts: list[MessagePart]) -> None:
        self._job = job
        self._owner = owner
        self._steps = steps
        self._number = number
        self._pieces = parts
        self._vectors = job.vectors()
        self.message_ids = list(dict.fromkeys(part.message_id for part in parts))
        self.skipped: str | None = None
        self.entries: list[ExtractionAction] = []
        self.cost = LlmReceipt()

    @property
    def embedded(self) -> int:
        """How many texts were embedded."""
        return self._vectors.count

    async def run(self, read: Callable[..., Awaitable[Json]], model: LanguageModel) -> None:
        """Do the steps; a window with nothing to keep ends with the first one."""
        extraction_step = load_extraction_step(
            await self._step("extract", lambda: read(self._owner, self._pieces, model))
        )
        self.cost += extraction_step.cost
        extraction = extraction_step.extraction
        if extraction is None:
            self.skipped = "the messages are gone"
            return
        if extraction.skip or not extraction.candidates:
            self.skipped = None if extraction_step.rejections else extraction.reason or "nothing worth keeping"
            await self._apply(self._extracted_window(extraction_step))
            return
        own = self._owner.user_id
        refuse = self._job.policy_check_for(self._owner)
        candidates, refused = validate_candidates(
            extraction, extraction_step.lines, extraction_step.session_id, own, extraction_step.user_names, refuse
        )
        aliases = [
            AliasGroup("", extraction_step.user_names),
            *collect_alias_groups(extraction, extraction_step.user_names),
        ]
        window = self._extracted_window(
            extraction_step, candidates=candidates, rejections=[*extraction_step.rejections, *refused], aliases=aliases
        )
        await self._apply(
            await self._reconcile(window, extraction_step, extraction.keywords, model) if candidates else window
        )

    async def _reconcile(
        self, window: ExtractedWindow, extraction_step: ExtractionStep, keywords: Sequence[str], model: LanguageModel
    ) -> ExtractedWindow:
        if not extraction_step.has_known_entities:
            return window.with_reconciliation(LinkingResult(related_by_candidate=[[] for _ in window.candidates]), None)
        found = await self._step(
            "reconcile",
            lambda: self._job.reconcile(
                self._owner, extraction_step, window.candidates, window.aliases, keywords, self._vectors, model
            ),
        )
        linking = LinkingResult.model_validate(found["linking"])
        if found["answer"] is None:
            return window.with_reconciliation(linking, None)
        self.cost += LlmReceipt(**found["receipt"])
        return window.with_reconciliation(linking, Reconciliation.model_validate(found["answer"]))

    def _extracted_window(self, extraction_step: ExtractionStep, **found: Any) -> ExtractedWindow:
        extraction_id = f"{self._steps.job_id}:{self._number}"
        return ExtractedWindow(
            **{"rejections": extraction_step.rejections, **found},
            id=extraction_id,
            session_id=extraction_step.session_id,
            message_ids=self.message_ids,
        )

    async def _apply(self, window: ExtractedWindow) -> None:
        actor = f"job:{self._steps.job_id}"
        self.entries = await self._steps.run_idempotent(
            f"apply {self._number}",
            lambda: self._job.apply(self._owner, window, self._vectors, actor),
            list[ExtractionAction],
        )

    async def _step(self, name: str, do: Callable[[], Awaitable[Any]]) -> Any:
        return await self._steps.run(f"{name} {self._number}", do)


def _job_outcome(windows: Sequence[_WindowRun]) -> JobOutcome:
    cost = sum((window.cost for window in windows), LlmReceipt())
    receipt = Receipt(
        llm_calls=cost.calls,
        prompt_tokens=cost.prompt_tokens,
        completion_tokens=cost.completion_tokens,
        embedded_texts=sum(window.embedded for window in windows),
    )
    skipped = [window.skipped for window in windows if window.skipped]
    if len(skipped) == len(windows):
        reason = skipped[0] if skipped else "no message of the user or the assistant"
        return JobOutcome(status=JobStatus.SKIPPED, reason=reason, receipt=receipt)
    return JobOutcome(actions=[entry for window in windows for entry in window.entries], receipt=receipt)
