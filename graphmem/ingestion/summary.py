"""Summaries of sessions: on request, when a session grows long, and when it is closed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from pydantic import BaseModel, Field

from graphmem.conversations.episode_store import EpisodeStore
from graphmem.conversations.session import TICKET_KEY, Message, Session
from graphmem.ingestion.answers import Summary
from graphmem.ingestion.candidates import EPISODIC, validate_tags
from graphmem.ingestion.jobs import NO_MODEL_REASON, ClosingPayload, MemoryAction, SummaryPayload
from graphmem.ingestion.transcript import (
    MessagePart,
    build_transcript,
    is_dialogue,
    message_ids_of,
    part_length,
    render_transcript,
    split_into_batches,
)
from graphmem.jobs.job import JobOutcome, JobStatus
from graphmem.jobs.kinds import Steps
from graphmem.memories.fact import Fact, fact_from_row
from graphmem.memories.fact_store import FactStore
from graphmem.memories.ledger import Ledger
from graphmem.memories.memory import (
    MAX_CONTENT_LENGTH,
    MemoryIn,
    MemoryPatch,
    MemorySourceIn,
    MemoryStatus,
    MemoryType,
    Scope,
)
from graphmem.memories.writer import MemoryWriter
from graphmem.models.language_model import LanguageModel, Receipt, indent_continuations, load_prompts
from graphmem.neo4j.driver import Graph
from graphmem.runtime.metrics import COMPRESSION_RATIO
from graphmem.runtime.process import read_text
from graphmem.secrets.scanner import Redactor, SecretPolicy, make_redactor, render_secret_rule
from graphmem.tenants.owners import Owner
from graphmem.tenants.trust import CONSOLIDATION
from graphmem.text.normalising import remove_unstorable

MIN_PROMOTED_IMPORTANCE = 0.6
"""Minimum importance for a session's memory to outlive it."""

SUMMARY_IMPORTANCE = 0.6
"""Importance of a summary's memories and takeaways."""

TOPIC_IMPORTANCE = 0.4
"""Importance of the memory of a conversation's topic, which does not outlive its session."""

MAX_REMEMBERED = 60
"""Maximum memories of a session in its summary prompt, the latest ones."""

MAX_TAKEAWAYS = 5
"""Maximum takeaways of a summary that become memories."""


class SummaryBatches(BaseModel):
    """The messages to summarize, in batches, and the summary of the messages before them."""

    batches: list[list[MessagePart]]
    earlier_summary: str


class BatchSummary(BaseModel):
    """The summary of a session up to the end of a batch, and the cost of its model call."""

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
        model: LanguageModel | None,
        zone: str = "UTC",
    ) -> None:
        """`zone` is the IANA zone of users without one of their own."""
        self._graph = graph
        self._episodes = episodes
        self._facts = facts
        self._memory_writer = memory_writer
        self._policy = policy
        self._model = model
        self._zone = zone
        self._prompt = load_prompts()["summarize"]

    async def run(self, payload: SummaryPayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `summary`: summarize a session from its earlier summary up to `through`."""
        if self._model is None:
            return JobOutcome(status=JobStatus.SKIPPED, reason=NO_MODEL_REASON)
        return await self._summarize(payload, self._model, steps)

    async def close(self, payload: ClosingPayload, steps: Steps) -> JobOutcome:
        """Handle a job of kind `session_closing`: promote the important memories, and summarize a long session."""
        promoted = await steps.run("promote", partial(self._promote_memories, payload.owner, payload.session_id))
        actions = [MemoryAction(action="promote", memory_id=memory_id) for memory_id in promoted]
        if self._model is None or not payload.summarize:
            return JobOutcome(actions=actions, reason=payload.reason)
        outcome = await self._summarize(payload, self._model, steps)
        return JobOutcome(actions=[*actions, *outcome.actions], reason=outcome.reason, receipt=outcome.receipt)

    async def _summarize(self, payload: SummaryPayload, model: LanguageModel, steps: Steps) -> JobOutcome:
        plan = await steps.run("split_into_batches", partial(self._split_unsummarized, payload), SummaryBatches)
        summary: Summary | None = None
        refusals: list[MemoryAction] = []
        receipt = Receipt()
        for number, parts in enumerate(plan.batches, 1):
            earlier = summary.summary if summary else plan.earlier_summary
            summarize = partial(self._summarize_batch, payload.owner, parts, earlier, model)
            batch = await steps.run(f"summarize {number}", summarize, BatchSummary)
            receipt += batch.receipt
            refusals += [MemoryAction.refused("answer", reason) for reason in batch.summary.refused]
            if batch.summary.summary:
                summary = batch.summary
                COMPRESSION_RATIO.set(len(summary.summary) / max(1, sum(part.end - part.start for part in parts)))
        if summary is None:
            reason = "the model wrote no summary" if plan.batches else "nothing new to sum up"
            return JobOutcome(status=JobStatus.SKIPPED, reason=reason, receipt=receipt)
        actions = await steps.run("store", partial(self._store_summary, payload, summary), list[MemoryAction])
        receipt += Receipt(embedded_texts=len(actions))
        return JobOutcome(actions=[*refusals, *actions], receipt=receipt)

    async def _split_unsummarized(self, payload: SummaryPayload) -> SummaryBatches:
        owner, session_id = payload.owner, payload.session_id
        session = await self._episodes.get_session(owner, session_id)
        messages = self._episodes.iter_session_messages(owner, session_id, after=session.summarized_through)
        chosen = [message async for message in messages if message.position <= payload.through and _is_said(message)]
        return SummaryBatches(batches=split_into_batches(chosen), earlier_summary=session.summary or "")

    async def _summarize_batch(
        self, owner: Owner, parts: Sequence[MessagePart], earlier: str, model: LanguageModel
    ) -> BatchSummary:
        messages = await self._episodes.load_messages(owner, message_ids_of(parts))
        allowed = self._policy.allowed_classes(owner.tenant)
        redact = make_redactor(allowed)
        zone = await self._episodes.get_timezone(owner)
        lines = await read_text(part_length(parts), lambda: build_transcript(parts, messages, zone, self._zone, redact))
        remembered = await self._list_remembered(owner, messages[0].session_id) if messages else []
        prompt = self._prompt.render(
            secrets=render_secret_rule(allowed),
            earlier_summary=earlier,
            remembered="\n".join(map(indent_continuations, remembered)),
            conversation=render_transcript(lines),
        )
        answer = await model.complete_structured(prompt, Summary, use="main")
        summary = _clean_summary(answer.value, redact)
        texts = [summary.summary, redact(" ".join(summary.takeaways))] if summary.summary else []
        # A summary that only describes passing conditions is replaced by its takeaways.
        lasting = next(filter(None, (self._memory_writer.remove_temporary_states(owner, text) for text in texts)), "")
        return BatchSummary(summary=summary.model_copy(update={"summary": lasting}), receipt=answer.receipt)

    async def _list_remembered(self, owner: Owner, session_id: str) -> list[str]:
        """Return the memories of a session, the latest last."""
        rows = await self._graph.fetch(
            "episodes.list_remembered", group_id=owner.group_id, session_id=session_id, limit=MAX_REMEMBERED
        )
        return [row["content"] for row in rows]

    async def _store_summary(self, payload: SummaryPayload, summary: Summary) -> list[MemoryAction]:
        """Store the summary with its session and, with its topic and takeaways, as memories; replace earlier ones.

        The topics label the session regardless of the tenant's profile. A takeaway that the policy rejects is left out
        on its own.
        """
        owner, session_id = payload.owner, payload.session_id
        session = await self._episodes.get_session(owner, session_id)
        tags = validate_tags(summary.topics)
        summary, refusals = self._leave_out_rejected_takeaways(owner, summary)
        earlier = await self._find_earlier_summaries(owner, session_id)
        memories = _to_memories(session, summary, tags, earlier)
        results = await self._memory_writer.save(
            owner,
            memories,
            actor=f"session:{session_id}",
            kind=CONSOLIDATION,
            trusted_as="assistant",
            creates_user=False,
        )
        await self._episodes.save_summary(
            owner,
            session_id,
            summary=summary.summary,
            title=session.title or summary.title,
            tags=tags,
            sentiment=summary.sentiment,
            through=payload.through,
        )
        actions = [
            MemoryAction.from_save(result, memory.type) for result, memory in zip(results, memories, strict=True)
        ]
        return [*actions, *refusals]

    def _leave_out_rejected_takeaways(self, owner: Owner, summary: Summary) -> tuple[Summary, list[MemoryAction]]:
        kept, refusals = [], []
        for text in [text for text in dict.fromkeys(map(str.strip, summary.takeaways)) if text][:MAX_TAKEAWAYS]:
            takeaway = MemoryIn(content=text[:MAX_CONTENT_LENGTH])
            if reason := self._memory_writer.rejection_reason(owner, takeaway):
                refusals.append(MemoryAction.refused(takeaway.type.value, reason))
            else:
                kept.append(text)
        return summary.model_copy(update={"takeaways": kept}), refusals

    async def _find_earlier_summaries(self, owner: Owner, session_id: str) -> list[Fact]:
        """Return the memories of earlier summaries that may be superseded, with their topics."""
        rows = await self._graph.fetch("episodes.list_summary_facts", group_id=owner.group_id, session_id=session_id)
        return [
            fact
            for fact in map(fact_from_row, rows)
            if fact.status is MemoryStatus.ACTIVE and not fact.immutable and fact.type in EPISODIC
        ]

    async def _promote_memories(self, owner: Owner, session_id: str) -> list[str]:
        """Move a session's important memories to the scope of their domain or of the profile; return their ids."""
        promoted = []
        rows = await self._graph.fetch("episodes.list_episodic_facts", group_id=owner.group_id, session_id=session_id)
        for fact in map(fact_from_row, rows):
            if fact.importance >= MIN_PROMOTED_IMPORTANCE and not fact.immutable:
                patch = MemoryPatch(scope=Scope.DOMAIN if fact.domain else Scope.PROFILE, domain=fact.domain)
                move = partial(Ledger.amend, memory_id=fact.memory_id, patch=patch)
                await self._facts.update_memory(owner, fact.memory_id, move, actor=f"session:{session_id}")
                promoted.append(fact.memory_id)
        return promoted


def _clean_summary(answer: Summary, redact: Redactor) -> Summary:
    """Return a summary without secrets and unstorable characters, and with a sentiment from -1 to 1."""
    sentiment = answer.sentiment
    return Summary(
        title=redact(remove_unstorable(answer.title)).strip(),
        summary=redact(remove_unstorable(answer.summary)).strip(),
        takeaways=[remove_unstorable(text) for text in answer.takeaways],
        topics=[topic for topic in map(remove_unstorable, answer.topics) if redact(topic) == topic],
        sentiment=None if sentiment is None or math.isnan(sentiment) else min(1.0, max(-1.0, sentiment)),
        refused=answer.refused,
    )


def _to_memories(session: Session, summary: Summary, tags: Sequence[str], earlier: Sequence[Fact]) -> list[MemoryIn]:
    """Return the memories of a summary: the summary, the topic of the conversation, and the takeaways."""

    def memory(content: str, type: MemoryType, importance: float, tag: str, **fields: Any) -> MemoryIn:
        content = content.strip()[:MAX_CONTENT_LENGTH]
        replaced = [fact.memory_id for fact in earlier if fact.type is type and fact.content != content]
        return MemoryIn(
            content=content,
            type=type,
            tags=list(dict.fromkeys([tag, *tags])),
            importance=importance,
            source=MemorySourceIn(session_id=session.session_id),
            supersedes=replaced,
            **fields,
        )

    origin = {"summary_of": session.session_id, **_ticket_metadata(session)}
    memories = [
        memory(
            summary.summary,
            MemoryType.CONVERSATION_SUMMARY,
            SUMMARY_IMPORTANCE,
            "summary",
            metadata={**origin, "takeaways": summary.takeaways},
            domain=session.domain,
        )
    ]
    about = ": ".join(filter(None, (summary.title.strip(), ", ".join(map(str.strip, summary.topics)))))
    if about:
        memories.append(
            memory(
                about,
                MemoryType.CONVERSATION_TOPIC,
                TOPIC_IMPORTANCE,
                "topic",
                metadata=origin,
                scope=Scope.EPISODIC,
                domain=session.domain,
            )
        )
    memories += [
        memory(text, MemoryType.FACT, SUMMARY_IMPORTANCE, "takeaway", metadata=origin, domain=session.domain)
        for text in summary.takeaways
    ]
    return memories


def _ticket_metadata(session: Session) -> dict[str, Any]:
    """Return the ticket of a session, from its metadata."""
    return {TICKET_KEY: session.metadata[TICKET_KEY]} if TICKET_KEY in session.metadata else {}


def _is_said(message: Message) -> bool:
    """Return whether a message belongs to the dialogue; summaries leave out documents that were sent."""
    return is_dialogue(message) and message.origin not in ("document", "web")
