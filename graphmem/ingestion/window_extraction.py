"""The extraction of one window of messages: first call, second call, transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pydantic import ValidationError

from graphmem.ingestion.candidates import (
    USER_ALIASES,
    AliasGroup,
    Rejection,
    collect_alias_groups,
    keep_own_names,
    validate_candidates,
)
from graphmem.ingestion.entity_linking import CandidateLinker
from graphmem.ingestion.extraction import ExtractionStep
from graphmem.ingestion.jobs import ExtractionAction, ExtractionPayload
from graphmem.ingestion.llm_schemas import Extraction, Reconciliation
from graphmem.ingestion.name_resolution import LinkingResult, choose_user_name
from graphmem.ingestion.quarantine import CaughtCandidate
from graphmem.ingestion.reconciliation import (
    ReconciliationStep,
    build_reconciliation_prompt,
    call_user,
    needs_model_call,
)
from graphmem.ingestion.supersession import collect_named_entities
from graphmem.ingestion.transcript import MessagePart, TranscriptLine, derive_turns, message_ids_of
from graphmem.ingestion.window_transaction import ExtractedWindow, WindowWriter
from graphmem.jobs.kinds import Steps
from graphmem.memories.memory import MemoryIn, MemoryStatus
from graphmem.memories.writer import MemoryWriter
from graphmem.models.embedder import Embedder
from graphmem.models.language_model import LanguageModel
from graphmem.models.prompts import PromptTemplate
from graphmem.models.receipt import Receipt
from graphmem.runtime.field_types import JSON
from graphmem.runtime.metrics import STATEMENTS_CAUGHT
from graphmem.secrets.values import SecretPolicy, make_redactor
from graphmem.tenants.owners import Owner

MakeFirstCall = Callable[[Owner, Sequence[MessagePart], LanguageModel], Awaitable[ExtractionStep]]
"""Make the first call of a window, in one of its two forms."""


class WindowVectors:
    """The vectors of one window's texts; each text is embedded once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.by_text: dict[str, list[float]] = {}

    @property
    def count(self) -> int:
        """How many texts were embedded."""
        return len(self.by_text)

    async def add(self, texts: Sequence[str]) -> None:
        """Compute the vectors that are missing."""
        missing = [text for text in dict.fromkeys(texts) if text not in self.by_text]
        if missing:
            self.by_text.update(zip(missing, await self._embedder.embed(missing), strict=True))


@dataclass(frozen=True, slots=True)
class WindowTools:
    """What every window of a job is extracted with; `keeps_caught` says that what is caught goes into quarantine."""

    first_call: MakeFirstCall
    reconcile_prompt: PromptTemplate
    linker: CandidateLinker
    writer: WindowWriter
    memory_writer: MemoryWriter
    policy: SecretPolicy
    embedder: Embedder
    model: LanguageModel
    keeps_caught: bool = True


@dataclass(frozen=True, slots=True)
class WindowResult:
    """What a window came to; `skip_reason` is None when the model found something worth remembering.

    `summarize` says that the user asks for a summary of the session, `has_turns` that intents or entities were derived.
    """

    message_ids: Sequence[str]
    receipt: Receipt
    actions: Sequence[ExtractionAction] = ()
    skip_reason: str | None = None
    summarize: bool = False
    has_turns: bool = False


class WindowExtraction:
    """One window on its way through three steps, of which the job records the first two and the graph the last."""

    def __init__(
        self,
        tools: WindowTools,
        payload: ExtractionPayload,
        steps: Steps,
        number: int,
        parts: Sequence[MessagePart],
    ) -> None:
        self._tools = tools
        self._owner = payload.owner
        self._run_session_id = payload.session_id
        self._steps = steps
        self._number = number
        self._parts = parts
        self._vectors = WindowVectors(tools.embedder)

    async def run(self) -> WindowResult:
        """Do the steps; a window without a candidate has no second call."""
        first = await self._steps.run(f"extract {self._number}", self._make_first_call, ExtractionStep)
        message_ids = message_ids_of(self._parts)
        if first.extraction is None:
            return WindowResult(message_ids, first.receipt, skip_reason="the messages are gone")
        turns = derive_turns(first.extraction.turns, first.lines, self._holds_secret)
        summarize = first.extraction.summarize and any(line.origin == "user" for line in first.lines)
        result = WindowResult(message_ids, first.receipt, summarize=summarize, has_turns=bool(turns))
        window = ExtractedWindow(
            id=f"{self._steps.job_id}:{self._number}",
            session_id=first.session_id,
            message_ids=message_ids,
            run_session_id=self._run_session_id,
            transcript=first.transcript,
            user_name=first.user_name,
            rejections=first.rejections,
            turns=turns,
        )
        if not first.extraction.candidates or (first.extraction.skip and not first.screenings):
            actions = await self._apply(window)
            skip_reason = None if first.rejections else first.extraction.reason or "nothing worth keeping"
            return replace(result, actions=actions, skip_reason=skip_reason)
        candidates, rejections = validate_candidates(
            first.extraction,
            first.lines,
            first.session_id,
            self._owner.user_id,
            first.user_names,
            partial(self._tools.memory_writer.rejection_reason, self._owner, is_source_known=True),
            first.labels,
            first.screenings,
        )
        caught = [CaughtCandidate(one.memory, one.catch, one.stated_by) for one in candidates if one.catch]
        quarantined = [one for one in caught if self._tools.keeps_caught and one.catch.is_kept]
        refused = [one for one in caught if not (self._tools.keeps_caught and one.catch.is_kept)]
        if first.extraction.skip:
            candidates, rejections = [], []
        rejections += [Rejection(one.memory.type.value, one.catch.reason) for one in refused]
        aliases = [
            AliasGroup(USER_ALIASES, tuple(first.user_names)),
            *self._collect_alias_groups(first.extraction, first.user_names, first.lines),
        ]
        window = replace(
            window,
            candidates=[one for one in candidates if one.catch is None],
            quarantined=quarantined,
            caught_message_ids=[message_id for one in caught for message_id in one.catch.message_ids],
            rejections=[*first.rejections, *rejections],
            aliases=aliases,
        )
        second = await self._reconcile(first, window)
        actions = await self._apply(replace(window, linking=second.linking, answer=second.answer))
        STATEMENTS_CAUGHT.labels("quarantine").inc(len(quarantined))
        STATEMENTS_CAUGHT.labels("refuse").inc(len(refused))
        receipt = first.receipt + second.receipt + Receipt(embedded_texts=self._vectors.count)
        return replace(result, actions=actions, receipt=receipt)

    def _collect_alias_groups(
        self, extraction: Extraction, user_names: Sequence[str], lines: Sequence[TranscriptLine]
    ) -> list[AliasGroup]:
        """Return the alias groups of an answer; in a space, where several people are "the user", none of the user.

        Names that only a text of others gives the user are none.
        """
        groups = collect_alias_groups(extraction, user_names)
        if self._owner.is_space:
            return [group for group in groups if not group.is_of_user]
        return [keep_own_names(group, lines) if group.is_of_user else group for group in groups]

    async def _make_first_call(self) -> ExtractionStep:
        return await self._tools.first_call(self._owner, self._parts, self._tools.model)

    # The second step

    async def _reconcile(self, first: ExtractionStep, window: ExtractedWindow) -> ReconciliationStep:
        if not window.candidates or not first.has_known_entities:
            return ReconciliationStep(linking=LinkingResult(related_by_candidate=[[] for _ in window.candidates]))
        return await self._steps.run(
            f"reconcile {self._number}", partial(self._link_and_reconcile, first, window), ReconciliationStep
        )

    async def _link_and_reconcile(self, first: ExtractionStep, window: ExtractedWindow) -> ReconciliationStep:
        """Link the candidates, and make the second call where a model must decide about a related fact or a name."""
        assert first.extraction is not None
        tools = self._tools
        await self._vectors.add(self._texts_of(window))
        linking, related = await tools.linker.link(
            self._owner, window.candidates, window.aliases, self._vectors.by_text, first.extraction.keywords
        )
        if not needs_model_call(window.candidates, linking, related):
            return ReconciliationStep(linking=linking)
        current = await tools.writer.load_current_facts(self._owner, replace(window, linking=linking))
        redact = make_redactor(tools.policy.allowed_classes(self._owner.tenant))
        prompt = build_reconciliation_prompt(
            tools.reconcile_prompt,
            first.lines,
            window.candidates,
            linking,
            current.facts,
            current.entity_refs,
            call_user(first.lines, first.user_name, first.user_names),
            redact,
        )
        answer = await tools.model.complete_structured(prompt, Reconciliation, use="main")
        decisions = [
            decision.model_copy(
                update={"reason": redact(decision.reason), "remaining": self._check_remaining(decision.remaining)}
            )
            for decision in answer.value.decisions
        ]
        return ReconciliationStep(
            linking=linking,
            answer=answer.value.model_copy(update={"decisions": decisions}),
            receipt=answer.receipt,
        )

    def _holds_secret(self, value: JSON) -> bool:
        return bool(self._tools.policy.refused_classes(value, self._owner.tenant))

    def _check_remaining(self, content: str | None) -> str | None:
        """Return the text of a statement that the second call words, or None when the policy rejects it."""
        try:
            memory = MemoryIn(content=content or "")
        except ValidationError:
            return None
        return None if self._tools.memory_writer.rejection_reason(self._owner, memory) else memory.content

    # The third step

    async def _apply(self, window: ExtractedWindow) -> list[ExtractionAction]:
        return await self._steps.run_idempotent(
            f"apply {self._number}", partial(self._embed_and_write, window), list[ExtractionAction]
        )

    async def _embed_and_write(self, window: ExtractedWindow) -> list[ExtractionAction]:
        """Compute the missing vectors, then write: a transaction does not wait for the embedder."""
        if window.candidates:
            await self._vectors.add(self._texts_of(window))
            await self._vectors.add(await self._load_decided_texts(window))
        actor = f"job:{self._steps.job_id}"
        return await self._tools.writer.apply(self._owner, window, self._vectors.by_text, actor)

    def _texts_of(self, window: ExtractedWindow) -> list[str]:
        """Return the texts whose vectors the transaction may need, except the known contents it may reinforce."""
        names = [entity.name for entity in collect_named_entities(window.candidates, window.aliases).values()]
        user_id = self._owner.user_id
        if new_name := choose_user_name(window.user_name or user_id, user_id, window.aliases):
            names.append(new_name)
        return [*(candidate.memory.content for candidate in window.candidates), *names, self._owner.entity_name]

    async def _load_decided_texts(self, window: ExtractedWindow) -> list[str]:
        """Return what the second answer may save beside the candidates: known facts that it names, and what remains."""
        if window.answer is None or not any(decision.known for decision in window.answer.decisions):
            return []
        current = await self._tools.writer.load_current_facts(self._owner, window)
        related = window.linking.related
        numbers = sorted({number for decision in window.answer.decisions for number in decision.known})
        named = [current.facts.get(related[number - 1]) for number in numbers if 1 <= number <= len(related)]
        remaining = [decision.remaining for decision in window.answer.decisions if decision.remaining]
        return [*(fact.content for fact in named if fact and fact.status is MemoryStatus.ACTIVE), *remaining]
