"""Sessions summed up: on request, when they grow long, and when they are closed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.job import JobOutcome, JobStatus, Receipt
from graphmem.domain.memory import MemoryIn, MemorySourceIn, MemoryStatus, MemoryType, SaveAction, SaveResult, Scope
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.profile import TenantProfiles
from graphmem.domain.session import Message, Session
from graphmem.domain.tokens import count_tokens
from graphmem.domain.versioning import Ledger
from graphmem.ingestion.candidates import validate_tags
from graphmem.ingestion.extraction_job import NO_MODEL_REASON
from graphmem.ingestion.job_actions import MemoryAction
from graphmem.ingestion.job_kinds import ClosingPayload, SummaryPayload
from graphmem.ingestion.llm_schemas import Summary
from graphmem.ingestion.memory_writer import MemoryWriter
from graphmem.ingestion.secret_redaction import make_redactor
from graphmem.ingestion.transcript import (
    MessagePart,
    build_transcript,
    is_dialogue,
    render_transcript,
    split_into_windows,
)
from graphmem.jobs import Steps
from graphmem.llm.client import LanguageModel
from graphmem.llm.completion import LlmReceipt
from graphmem.llm.prompts import load_prompts
from graphmem.metrics import COMPRESSION_RATIO
from graphmem.store.driver import Graph
from graphmem.store.episodes import EpisodeStore
from graphmem.store.fact_mapping import fact_from_row
from graphmem.store.facts import FactStore

MAX_UNSUMMARIZED_MESSAGES = 50
MAX_UNSUMMARIZED_TOKENS = 4_000
"""A session with more than this unsummarized is compressed (QUINN-08)."""

RECENT_MESSAGES_NOT_SUMMARIZED = 10
"""So many of the latest messages stay out of the summary of a session that goes on."""

MIN_MESSAGES_FOR_CLOSING_SUMMARY = 10
"""A session with at least so many unsummarized messages is summed up when it is closed."""

MIN_PROMOTED_IMPORTANCE = 0.6
"""Importance from which on a memory of the session outlives it."""

Json = dict[str, Any]


class SummaryJob:
    """Handles the jobs that sum up and close sessions."""

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
        """Sum up the messages of a session up to `through`; a summary there is stands for what it summed up."""
        owner, session_id = payload.owner, payload.session_id
        if self._model is None:
            return JobOutcome(status=JobStatus.SKIPPED, reason=NO_MODEL_REASON)
        return await self._summarize(owner, session_id, payload.through, self._model, steps)

    async def close(self, payload: ClosingPayload, steps: Steps) -> JobOutcome:
        """Promote what matters beyond a closed session, and sum it up when it was long."""
        owner, session_id = payload.owner, payload.session_id
        promoted = await steps.run("promote", lambda: self._promote_memories(owner, session_id))
        actions = [MemoryAction(action="promote", memory_id=memory_id) for memory_id in promoted]
        if self._model is None or not payload.summarize:
            return JobOutcome(actions=actions)
        outcome = await self._summarize(owner, session_id, payload.through, self._model, steps)
        return JobOutcome(actions=[*actions, *outcome.actions], receipt=outcome.receipt)

    async def _summarize(
        self, owner: Owner, session_id: str, through: int, model: LanguageModel, steps: Steps
    ) -> JobOutcome:
        plan = await steps.run("split_into_windows", lambda: self._split_unsummarized(owner, session_id, through))
        summary: Summary | None = None
        cost = LlmReceipt()
        for number, parts in enumerate(plan["windows"], 1):
            earlier = summary.summary if summary else plan["summary"]
            window = [MessagePart(*part) for part in parts]
            told = await steps.run(f"summarize {number}", self._make_summarize_step(owner, window, earlier, model))
            summary = Summary.model_validate(told["summary"])
            cost += LlmReceipt(**told["receipt"])
            COMPRESSION_RATIO.set(len(summary.summary) / max(1, sum(part.end - part.start for part in window)))
        if summary is None:
            return JobOutcome(status=JobStatus.SKIPPED, reason="nothing new to sum up")
        kept = summary
        action = await steps.run("store", lambda: self._store_summary(owner, session_id, kept, through), MemoryAction)
        receipt = Receipt(
            llm_calls=cost.calls,
            prompt_tokens=cost.prompt_tokens,
            completion_tokens=cost.completion_tokens,
            embedded_texts=1,
        )
        return JobOutcome(actions=[action], receipt=receipt)

    async def _split_unsummarized(self, owner: Owner, session_id: str, through: int) -> Json:
        session = await self._episodes.get_session(owner, session_id)
        messages = await self._episodes.list_session_messages(owner, session_id, after=session.summarized_through)
        chosen = [message for message in messages if message.position <= through and is_dialogue(message)]
        windows = [
            [[part.message_id, part.start, part.end] for part in window] for window in split_into_windows(chosen)
        ]
        return {"windows": windows, "summary": session.summary or ""}

    def _make_summarize_step(
        self, owner: Owner, parts: Sequence[MessagePart], earlier: str, model: LanguageModel
    ) -> Any:
        async def summarize() -> Json:
            messages = await self._episodes.load_messages(owner, list({part.message_id: None for part in parts}))
            redact = make_redactor(self._policy.allowed_classes(owner.tenant))
            lines = build_transcript(parts, messages, await self._episodes.get_timezone(owner), self._zone, redact)
            prompt = self._prompt.render(
                earlier_summary=earlier or "(none)", conversation=render_transcript(lines) or "(none)"
            )
            answer = await model.complete_structured(prompt, Summary, use="main")
            clean = answer.value.model_copy(
                update={"title": redact(answer.value.title), "summary": redact(answer.value.summary)}
            )
            return {"summary": clean.model_dump(mode="json"), "receipt": asdict(answer.receipt)}

        return summarize

    async def _store_summary(self, owner: Owner, session_id: str, summary: Summary, through: int) -> MemoryAction:
        """Keep the summary with its session, and as a memory in the place of an earlier one."""
        session = await self._episodes.get_session(owner, session_id)
        memory = MemoryIn(
            content=summary.summary,
            type=MemoryType.CONVERSATION_SUMMARY,
            scope=Scope.EPISODIC,
            tags=list(dict.fromkeys(["summary", *validate_tags(summary.topics)])),
            importance=0.6,
            source=MemorySourceIn(session_id=session_id),
            supersedes=await self._find_earlier_summaries(owner, session, summary),
            metadata={"summary_of": session_id, "takeaways": summary.takeaways, **_ticket_metadata(session)},
        )
        (result,) = await self._memory_writer.save(owner, [memory], actor=f"session:{session_id}", kind="summary")
        await self._episodes.save_summary(
            owner,
            session_id,
            summary=summary.summary,
            title=session.title or summary.title,
            tags=self._profiles.for_tenant(owner.tenant).session_tags(validate_tags(summary.topics)),
            sentiment=summary.sentiment,
            through=through,
        )
        return _summary_action(result)

    async def _find_earlier_summaries(self, owner: Owner, session: Session, summary: Summary) -> list[str]:
        """Return the memory of an earlier summary of the session, to be superseded."""
        rows = await self._graph.fetch(
            "episodes.list_summary_facts", group_id=owner.group_id, session_id=session.session_id
        )
        facts = [fact_from_row(row) for row in rows]
        return [
            fact.memory_id
            for fact in facts
            if fact.status is MemoryStatus.ACTIVE and not fact.immutable and fact.content != summary.summary
        ]

    async def _promote_memories(self, owner: Owner, session_id: str) -> list[str]:
        """Give the important memories of a session the scope of the profile, or of their domain."""
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


def _set_scope(fact: Fact, scope: Scope) -> Any:
    def act(ledger: Ledger) -> Fact:
        return ledger.amend(fact.memory_id, {"scope": scope})

    return act


def needs_summary(messages: Sequence[Message]) -> bool:
    """Return whether so much of a session is not summed up yet that it should be (QUINN-08)."""
    if len(messages) > MAX_UNSUMMARIZED_MESSAGES:
        return True
    return (
        sum(count_tokens(message.content) for message in messages) > MAX_UNSUMMARIZED_TOKENS
        and len(messages) > RECENT_MESSAGES_NOT_SUMMARIZED
    )


def _ticket_metadata(session: Session) -> Json:
    """Return what links a summary to what it is about: the ticket its session names."""
    return {"ticket_id": session.metadata["ticket_id"]} if "ticket_id" in session.metadata else {}


def _summary_action(result: SaveResult) -> MemoryAction:
    if result.action is SaveAction.SKIP or result.memory is None:
        return MemoryAction(action="refuse", type=MemoryType.CONVERSATION_SUMMARY.value, reason=result.reason)
    return MemoryAction(action=result.action.value, memory_id=result.memory.id, type=result.memory.type.value)
