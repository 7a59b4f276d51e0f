"""Sessions summed up: on request, when they grow long, and when they are closed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from graphmem.domain.actions import Summary
from graphmem.domain.belief import Ledger
from graphmem.domain.fact import Fact
from graphmem.domain.identity import Owner
from graphmem.domain.job import JobOutcome, JobStatus, Receipt
from graphmem.domain.memory import TOPIC_TAGS, Action, MemoryIn, MemoryType, SaveResult, Scope, SourceIn, Status
from graphmem.domain.policy import SecretPolicy
from graphmem.domain.session import Message, Session
from graphmem.domain.tokens import count_tokens
from graphmem.ingestion.claims import read_tags
from graphmem.ingestion.pipeline import NO_MODEL
from graphmem.ingestion.redaction import hider
from graphmem.ingestion.saving import Saving
from graphmem.ingestion.window import Piece, cut, is_spoken, lines_of, render
from graphmem.jobs import Steps
from graphmem.llm.client import LanguageModel
from graphmem.llm.completion import LlmReceipt
from graphmem.llm.prompts import load_prompts
from graphmem.metrics import COMPRESSION_RATIO
from graphmem.store.driver import Graph
from graphmem.store.episodes import EpisodeStore
from graphmem.store.facts import FactStore
from graphmem.store.rows import read_fact

SUMMARY_JOB = "summary"
"""The kind of the job that sums up a session."""

CLOSING_JOB = "session_closing"
"""The kind of the job that ends a session: what matters beyond it is promoted, the rest summed up."""

THREAD_MESSAGES = 50
THREAD_TOKENS = 4_000
"""A session with more than this unsummed is compressed (QUINN-08)."""

KEPT_MESSAGES = 10
"""So many of the latest messages stay out of the summary of a session that goes on."""

CLOSING_MESSAGES = 10
"""A session with at least so many unsummed messages is summed up when it is closed."""

HIGHLIGHT = 0.6
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
        saving: Saving,
        policy: SecretPolicy,
        model: LanguageModel | None,
        zone: str = "UTC",
    ) -> None:
        self._graph = graph
        self._episodes = episodes
        self._facts = facts
        self._saving = saving
        self._policy = policy
        self._model = model
        self._zone = zone
        self._prompt = load_prompts()["summarize"]

    async def run(self, payload: Json, steps: Steps) -> JobOutcome:
        """Sum up the messages of a session up to `through`; a summary there is stands for what it summed up."""
        owner, session_id = Owner(payload["tenant"], payload["user_id"]), payload["session_id"]
        if self._model is None:
            return JobOutcome(status=JobStatus.SKIPPED, reason=NO_MODEL)
        return await self._sum_up(owner, session_id, payload["through"], self._model, steps)

    async def close(self, payload: Json, steps: Steps) -> JobOutcome:
        """Promote what matters beyond a closed session, and sum it up when it was long."""
        owner, session_id = Owner(payload["tenant"], payload["user_id"]), payload["session_id"]
        promoted = await steps.run("promote", lambda: self._promote(owner, session_id))
        actions = [{"action": "promote", "memory_id": memory_id} for memory_id in promoted]
        if self._model is None or not payload["summarize"]:
            return JobOutcome(actions=actions)
        outcome = await self._sum_up(owner, session_id, payload["through"], self._model, steps)
        return JobOutcome(actions=[*actions, *outcome.actions], receipt=outcome.receipt)

    async def _sum_up(
        self, owner: Owner, session_id: str, through: int, model: LanguageModel, steps: Steps
    ) -> JobOutcome:
        plan = await steps.run("cut", lambda: self._cut(owner, session_id, through))
        summary: Summary | None = None
        cost = LlmReceipt()
        for number, pieces in enumerate(plan["windows"], 1):
            earlier = summary.summary if summary else plan["summary"]
            window = [Piece(*piece) for piece in pieces]
            told = await steps.run(f"summarize {number}", self._summarizing(owner, window, earlier, model))
            summary = Summary.model_validate(told["summary"])
            cost += LlmReceipt(**told["receipt"])
            COMPRESSION_RATIO.set(len(summary.summary) / max(1, sum(piece.end - piece.start for piece in window)))
        if summary is None:
            return JobOutcome(status=JobStatus.SKIPPED, reason="nothing new to sum up")
        kept = summary
        actions = await steps.run("store", lambda: self._store(owner, session_id, kept, through))
        receipt = Receipt(
            llm_calls=cost.calls,
            prompt_tokens=cost.prompt_tokens,
            completion_tokens=cost.completion_tokens,
            embedded_texts=1,
        )
        return JobOutcome(actions=actions, receipt=receipt)

    async def _cut(self, owner: Owner, session_id: str, through: int) -> Json:
        session = await self._episodes.session(owner, session_id)
        messages = await self._episodes.of_session(owner, session_id, after=session.summarized_through)
        chosen = [message for message in messages if message.position <= through and is_spoken(message)]
        windows = [[[piece.message_id, piece.start, piece.end] for piece in window] for window in cut(chosen)]
        return {"windows": windows, "summary": session.summary or ""}

    def _summarizing(self, owner: Owner, pieces: Sequence[Piece], earlier: str, model: LanguageModel) -> Any:
        async def summarize() -> Json:
            messages = await self._episodes.load(owner, list({piece.message_id: None for piece in pieces}))
            hide = hider(self._policy.allowed(owner.tenant))
            lines = lines_of(pieces, messages, await self._episodes.zone(owner), self._zone, hide)
            prompt = self._prompt.render(earlier_summary=earlier or "(none)", conversation=render(lines) or "(none)")
            answer = await model.complete_structured(prompt, Summary, use="main")
            clean = answer.value.model_copy(
                update={"title": hide(answer.value.title), "summary": hide(answer.value.summary)}
            )
            return {"summary": clean.model_dump(mode="json"), "receipt": asdict(answer.receipt)}

        return summarize

    async def _store(self, owner: Owner, session_id: str, summary: Summary, through: int) -> list[Json]:
        """Keep the summary with its session, and as a memory in the place of an earlier one."""
        session = await self._episodes.session(owner, session_id)
        memory = MemoryIn(
            content=summary.summary,
            type=MemoryType.CONVERSATION_SUMMARY,
            scope=Scope.EPISODIC,
            tags=list(dict.fromkeys(["summary", *read_tags(summary.topics)])),
            importance=0.6,
            source=SourceIn(session_id=session_id),
            supersedes=await self._earlier(owner, session, summary),
            metadata={"summary_of": session_id, "takeaways": summary.takeaways, **_ticket(session)},
        )
        (result,) = await self._saving.save(owner, [memory], actor=f"session:{session_id}", kind="summary")
        await self._episodes.keep_summary(
            owner,
            session_id,
            summary=summary.summary,
            title=session.title or summary.title,
            tags=[tag for tag in read_tags(summary.topics) if tag in TOPIC_TAGS],
            sentiment=summary.sentiment,
            through=through,
        )
        return [_told(result)]

    async def _earlier(self, owner: Owner, session: Session, summary: Summary) -> list[str]:
        """Return the memory of an earlier summary of the session, to be superseded."""
        rows = await self._graph.fetch("episodes.summary_facts", group_id=owner.group_id, session_id=session.session_id)
        facts = [read_fact(row) for row in rows]
        return [
            fact.memory_id
            for fact in facts
            if fact.status is Status.ACTIVE and not fact.immutable and fact.content != summary.summary
        ]

    async def _promote(self, owner: Owner, session_id: str) -> list[str]:
        """Give the important memories of a session the scope of the profile, or of their domain."""
        promoted = []
        rows = await self._graph.fetch("episodes.episodic_facts", group_id=owner.group_id, session_id=session_id)
        for fact in map(read_fact, rows):
            if fact.importance >= HIGHLIGHT and not fact.immutable:
                scope = Scope.DOMAIN if fact.domain else Scope.PROFILE
                await self._facts.change(owner, fact.memory_id, _to(fact, scope), actor=f"session:{session_id}")
                promoted.append(fact.memory_id)
        return promoted


def _to(fact: Fact, scope: Scope) -> Any:
    def act(ledger: Ledger) -> Fact:
        return ledger.amend(fact.memory_id, {"scope": scope})

    return act


def is_long(messages: Sequence[Message]) -> bool:
    """Return whether so much of a session is not summed up yet that it should be (QUINN-08)."""
    if len(messages) > THREAD_MESSAGES:
        return True
    return sum(count_tokens(message.content) for message in messages) > THREAD_TOKENS and len(messages) > KEPT_MESSAGES


def _ticket(session: Session) -> Json:
    """Return what links a summary to what it is about: the ticket its session names."""
    return {"ticket_id": session.metadata["ticket_id"]} if "ticket_id" in session.metadata else {}


def _told(result: SaveResult) -> Json:
    if result.action is Action.SKIP or result.memory is None:
        return {"action": "refuse", "type": "conversation_summary", "reason": result.reason}
    return {"action": result.action.value, "memory_id": result.memory.id, "type": result.memory.type.value}
