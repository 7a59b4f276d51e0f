"""Summaries of sessions: on request, when a session grows long, and when it is closed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pydantic import BaseModel, Field

from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.job import JobOutcome, JobStatus, Receipt
from graphmem.domain.memory import MemoryIn, MemorySourceIn, MemoryStatus, MemoryType, Scope
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.profile import TenantProfiles
from graphmem.domain.session import Message, Session
from graphmem.domain.token_counts import count_tokens
from graphmem.domain.versioning import Ledger
from graphmem.ingestion.candidates import validate_tags
from graphmem.ingestion.extraction_job import NO_MODEL_REASON
from graphmem.ingestion.job_actions import MemoryAction
from graphmem.ingestion.job_kinds import ClosingPayload, SummaryPayload
from graphmem.ingestion.llm_schemas import Summary
from graphmem.ingestion.memory_writer import SUMMARY_KIND, MemoryWriter
from graphmem.ingestion.secret_redaction import make_redactor
from graphmem.ingestion.transcript import (
    MessagePart,
    build_transcript,
    is_dialogue,
    message_ids_of,
    part_length,
    render_transcript,
    split_into_windows,
)
from graphmem.jobs import Steps
from graphmem.llm.model import LanguageModel
from graphmem.llm.prompts import load_prompts
from graphmem.metrics import COMPRESSION_RATIO
from graphmem.store.driver import Graph
from graphmem.store.episodes import EpisodeStore
from graphmem.store.fact_mapping import fact_from_row
from graphmem.store.facts import FactStore
from graphmem.text_thread import read_text

MAX_UNSUMMARIZED_MESSAGES = 50
"""Messages that are not summarized from which on a session is."""

MAX_UNSUMMARIZED_TOKENS = 4_000
"""Tokens of messages that are not summarized from which on a session is, unless all of them are recent."""

RECENT_MESSAGES_NOT_SUMMARIZED = 10
"""Latest messages that stay out of the summary of a session that continues."""

MIN_MESSAGES_FOR_CLOSING_SUMMARY = 10
"""Messages that are not summarized from which on a session is when it is closed."""

MIN_PROMOTED_IMPORTANCE = 0.6
"""Importance from which on a memory of a session outlives it."""

SUMMARY_IMPORTANCE = 0.6
"""Importance of the memory of a summary."""


class SummaryWindows(BaseModel):
    """The messages to summarize, in windows, and the summary of those before them."""

    windows: list[list[MessagePart]]
    earlier_summary: str


class WindowSummary(BaseModel):
    """The summary of a session up to the end of a window, and the cost of its model call."""

    summary: Summary
    receipt: Receipt = Field(default_factory=Receipt)


class SummaryJob:
    """Handles the jobs that summarize and close sessions."""

    def __init__(
        self,
        *,
        graph: Graph,
        episodes: EpisodeStore,
        facts: FactStore,
        memory_writer: MemoryWriter,
        policy: SecretPolicy,
        profiles: TenantProfiles,
        model: LanguageModel | None,
        zone: str = "UTC",
    ) -> None:
        """`zone` is the IANA zone of users without one of their own."""
        self._graph = graph
        self._episodes = episodes
        self._facts = facts
        self._memory_writer = memory_writer
        self._policy = policy
        self._profiles = profiles
        self._model = model
        self._zone = zone
        self._prompt = load_prompts()["summarize"]

    async def run(self, payload: SummaryPayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `summary`: summarize a session after its earlier summary, up to `through`."""
        if self._model is None:
            return JobOutcome(status=JobStatus.SKIPPED, reason=NO_MODEL_REASON)
        return await self._summarize(payload, self._model, steps)

    async def close(self, payload: ClosingPayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `session_closing`: promote the important memories, and summarize a long session."""
        promoted = await steps.run("promote", partial(self._promote_memories, payload.owner, payload.session_id))
        actions = [MemoryAction(action="promote", memory_id=memory_id) for memory_id in promoted]
        if self._model is None or not payload.summarize:
            return JobOutcome(actions=actions)
        outcome = await self._summarize(payload, self._model, steps)
        return JobOutcome(actions=[*actions, *outcome.actions], receipt=outcome.receipt)

    async def _summarize(self, payload: SummaryPayload, model: LanguageModel, steps: Steps) -> JobOutcome:
        plan = await steps.run("split_into_windows", partial(self._split_unsummarized, payload), SummaryWindows)
        summary: Summary | None = None
        receipt = Receipt()
        for number, parts in enumerate(plan.windows, 1):
            earlier = summary.summary if summary else plan.earlier_summary
            summarize = partial(self._summarize_window, payload.owner, parts, earlier, model)
            window = await steps.run(f"summarize {number}", summarize, WindowSummary)
            summary = window.summary
            receipt += window.receipt
            COMPRESSION_RATIO.set(len(summary.summary) / max(1, sum(part.end - part.start for part in parts)))
        if summary is None:
            return JobOutcome(status=JobStatus.SKIPPED, reason="nothing new to sum up")
        action = await steps.run("store", partial(self._store_summary, payload, summary), MemoryAction)
        return JobOutcome(actions=[action], receipt=receipt + Receipt(embedded_texts=1))

    async def _split_unsummarized(self, payload: SummaryPayload) -> SummaryWindows:
        owner, session_id = payload.owner, payload.session_id
        session = await self._episodes.get_session(owner, session_id)
        messages = await self._episodes.list_session_messages(owner, session_id, after=session.summarized_through)
        chosen = [message for message in messages if message.position <= payload.through and is_dialogue(message)]
        return SummaryWindows(windows=split_into_windows(chosen), earlier_summary=session.summary or "")

    async def _summarize_window(
        self, owner: Owner, parts: Sequence[MessagePart], earlier: str, model: LanguageModel
    ) -> WindowSummary:
        messages = await self._episodes.load_messages(owner, message_ids_of(parts))
        redact = make_redactor(self._policy.allowed_classes(owner.tenant))
        zone = await self._episodes.get_timezone(owner)
        lines = await read_text(part_length(parts), lambda: build_transcript(parts, messages, zone, self._zone, redact))
        prompt = self._prompt.render(earlier_summary=earlier, conversation=render_transcript(lines))
        answer = await model.complete_structured(prompt, Summary, use="main")
        redacted = {"title": redact(answer.value.title), "summary": redact(answer.value.summary)}
        return WindowSummary(summary=answer.value.model_copy(update=redacted), receipt=answer.receipt)

    async def _store_summary(self, payload: SummaryPayload, summary: Summary) -> MemoryAction:
        """Store the summary with its session, and as a memory that supersedes the one of an earlier summary."""
        owner, session_id = payload.owner, payload.session_id
        session = await self._episodes.get_session(owner, session_id)
        tags = validate_tags(summary.topics)
        memory = MemoryIn(
            content=summary.summary,
            type=MemoryType.CONVERSATION_SUMMARY,
            scope=Scope.EPISODIC,
            tags=list(dict.fromkeys(["summary", *tags])),
            importance=SUMMARY_IMPORTANCE,
            source=MemorySourceIn(session_id=session_id),
            supersedes=await self._find_earlier_summaries(owner, session_id, summary),
            metadata={"summary_of": session_id, "takeaways": summary.takeaways, **_ticket_metadata(session)},
        )
        (result,) = await self._memory_writer.save(
            owner, [memory], actor=f"session:{session_id}", kind=SUMMARY_KIND, creates_user=False
        )
        await self._episodes.save_summary(
            owner,
            session_id,
            summary=summary.summary,
            title=session.title or summary.title,
            tags=self._profiles.for_tenant(owner.tenant).session_tags(tags),
            sentiment=summary.sentiment,
            through=payload.through,
        )
        return MemoryAction.from_save(result, memory.type)

    async def _find_earlier_summaries(self, owner: Owner, session_id: str, summary: Summary) -> list[str]:
        """Return the ids of the memories of earlier summaries that may be superseded."""
        rows = await self._graph.fetch("episodes.list_summary_facts", group_id=owner.group_id, session_id=session_id)
        return [
            fact.memory_id
            for fact in map(fact_from_row, rows)
            if fact.status is MemoryStatus.ACTIVE and not fact.immutable and fact.content != summary.summary
        ]

    async def _promote_memories(self, owner: Owner, session_id: str) -> list[str]:
        """Move the important memories of a session to the scope of their domain or of the profile; return their ids."""
        promoted = []
        rows = await self._graph.fetch("episodes.list_episodic_facts", group_id=owner.group_id, session_id=session_id)
        for fact in map(fact_from_row, rows):
            if fact.importance >= MIN_PROMOTED_IMPORTANCE and not fact.immutable:
                scope = Scope.DOMAIN if fact.domain else Scope.PROFILE
                await self._facts.update_memory(
                    owner, fact.memory_id, _set_scope(fact, scope), actor=f"session:{session_id}"
                )
                promoted.append(fact.memory_id)
        return promoted


def _set_scope(fact: Fact, scope: Scope) -> Callable[[Ledger], Fact]:
    return lambda ledger: ledger.amend(fact.memory_id, {"scope": scope})


def needs_summary(messages: Sequence[Message]) -> bool:
    """Return whether messages that are not summarized are too many, or too long, to stay so."""
    if len(messages) > MAX_UNSUMMARIZED_MESSAGES:
        return True
    return (
        sum(count_tokens(message.content) for message in messages) > MAX_UNSUMMARIZED_TOKENS
        and len(messages) > RECENT_MESSAGES_NOT_SUMMARIZED
    )


def _ticket_metadata(session: Session) -> dict[str, Any]:
    """Return the ticket that a session is about, by its metadata."""
    return {"ticket_id": session.metadata["ticket_id"]} if "ticket_id" in session.metadata else {}
