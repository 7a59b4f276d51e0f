"""What tools return: no more of a memory than a model needs, since it pays for every token."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, SerializerFunctionWrapHandler, model_serializer

from graphmem.ask.models import AskResponse
from graphmem.context.models import ContextResponse, Outcome
from graphmem.conversations.session import Session
from graphmem.jobs.job import Job, JobStatus
from graphmem.memories.memory import Memory, MemoryVersion, SaveAction, SaveResult
from graphmem.search.models import EntityMemories

NOTHING_FOUND_HINT = "Nothing is remembered about this: ask the user, or look in other sources."


class _CompactModel(BaseModel):
    """A model that is serialised without empty fields."""

    @model_serializer(mode="wrap")
    def _drop_empty(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value not in (None, [], {})}


class MemoryResult(_CompactModel):
    """A memory."""

    id: str
    content: str
    type: str
    status: str
    tags: list[str] = Field(default_factory=list)
    domain: str | None = None
    space: str | None = Field(None, description="the space that shares it; absent: the user's own")
    speaker: str | None = Field(None, description="the member of the space who stated it")
    confidence: float
    valid_at: datetime | None = Field(None, description="when it became true")
    invalid_at: datetime | None = Field(None, description="when it stopped being true")
    told_at: datetime = Field(description="when it was learned")
    metadata: dict[str, Any] = Field(default_factory=dict, description="may point to other sources, such as an article")
    score: float | None = None

    @classmethod
    def from_memory(cls, memory: Memory, score: float | None = None) -> Self:
        """Return the result for a memory."""
        return cls(
            **_shared_fields(memory),
            domain=memory.domain,
            space=memory.space,
            speaker=memory.source.speaker,
            metadata=memory.metadata,
            score=score,
        )


class MemoryVersionResult(_CompactModel):
    """One version of a memory."""

    version: int
    id: str
    content: str
    type: str
    status: str
    tags: list[str] = Field(default_factory=list)
    confidence: float
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    told_at: datetime
    ended_at: datetime | None = Field(None, description="when graphmem stopped believing it")
    ended_reason: str | None = None
    ended_by: str | None = Field(None, description="id of what replaced it")

    @classmethod
    def from_version(cls, version: MemoryVersion) -> Self:
        """Return the result for a version."""
        ended = {"ended_at": version.expired_at, "ended_reason": version.ended_reason, "ended_by": version.ended_by}
        return cls(**_shared_fields(version), **ended, version=version.version)


class CitationResult(_CompactModel):
    """A source of an answer, with the words quoted from it."""

    memory_id: str | None = None
    message_id: str | None = None
    quote: str
    valid_at: datetime | None = Field(None, description="since when the memory holds, or when the message was said")
    space: str | None = Field(None, description="the space that it is from; absent: the user's own")


class AnswerResult(_CompactModel):
    """An answer from memory and its citations."""

    answered: bool
    answer: str | None = None
    citations: list[CitationResult] = Field(default_factory=list)
    context_id: str = Field(description="for rate_answer")
    hint: str | None = None

    @classmethod
    def from_response(cls, response: AskResponse) -> Self:
        """Return the result for an answer."""
        return cls(
            answered=response.answered,
            answer=response.answer,
            citations=[CitationResult(**dict(citation)) for citation in response.citations],
            context_id=response.context_id,
            hint=None if response.answered else NOTHING_FOUND_HINT,
        )


class SaveMemoryResult(_CompactModel):
    """The result of saving or updating a statement."""

    action: Literal["insert", "reinforce", "supersede", "skip", "update", "contest"]
    memory_id: str | None = None
    superseded: list[str] = Field(default_factory=list, description="ids of memories it replaced")
    related: list[str] = Field(
        default_factory=list,
        description="ids of memories that it may contradict; end those that are outdated with supersedes",
    )
    reason: str | None = Field(None, description="why it was not saved, or is contested")
    confirmation: str | None = Field(None, description="what to tell the user")

    @classmethod
    def from_result(cls, result: SaveResult, confirmation: str | None = None) -> Self:
        """Return the result of a save; it has the confirmation only when the statement was saved."""
        memory = result.memory
        return cls(
            action=result.action.value,
            memory_id=memory.id if memory else None,
            superseded=result.superseded,
            related=result.related,
            reason=result.reason,
            confirmation=confirmation if memory and result.action is not SaveAction.CONTEST else None,
        )


class MemorySearchResult(_CompactModel):
    """What a search found, best first."""

    memories: list[MemoryResult] = Field(default_factory=list)
    hint: str | None = None


class EntityResult(_CompactModel):
    """An entity and what is known about it."""

    id: str
    name: str
    type: str
    aliases: list[str] = Field(default_factory=list)
    profile: str | None = Field(None, description="what is known of it in a few sentences")
    memories: list[MemoryResult] = Field(default_factory=list)

    @classmethod
    def from_match(cls, match: EntityMemories) -> Self:
        """Return the result for an entity and its memories."""
        entity = match.entity
        return cls(
            id=entity.id,
            name=entity.name,
            type=entity.type,
            aliases=entity.aliases,
            profile=match.profile.content if match.profile else None,
            memories=[MemoryResult.from_memory(memory) for memory in match.memories],
        )


class EntityLookupResult(_CompactModel):
    """The entities that a text names."""

    entities: list[EntityResult] = Field(default_factory=list)
    hint: str | None = None


class PastFixResult(BaseModel):
    """Something that was recommended or tried before."""

    content: str
    outcome: Outcome


class ContextResult(_CompactModel):
    """Context for a reply."""

    preamble: str = Field(description="what is known that is relevant to the question")
    token_count: int
    context_id: str
    sufficient: bool = Field(description="whether memory clearly holds an answer to the question")
    pointers: list[str] = Field(default_factory=list, description="other sources that memories point to")
    greeting: str | None = Field(None, description="how to greet a returning user")
    open_loops: list[str] = Field(default_factory=list, description="what the user wanted to come back to")
    past_fixes: list[PastFixResult] = Field(default_factory=list, description="what was tried or recommended before")

    @classmethod
    def from_response(cls, response: ContextResponse) -> Self:
        """Return the result for a context."""
        hints = response.personalization_hints
        return cls(
            preamble=response.preamble,
            token_count=response.token_count,
            context_id=response.context_id,
            sufficient=hints.knowledge.sufficient,
            pointers=hints.knowledge.pointers,
            greeting=hints.greeting,
            open_loops=hints.open_loops,
            past_fixes=[PastFixResult(content=fix.content, outcome=fix.outcome) for fix in hints.past_solutions],
        )


class SessionSummaryResult(_CompactModel):
    """The summary of a conversation."""

    status: str = Field(description="succeeded, skipped when nothing was added since the last summary, or still queued")
    title: str | None = None
    summary: str | None = None
    reason: str | None = Field(None, description="why there is no summary")
    confirmation: str | None = Field(None, description="what to tell the user")

    @classmethod
    def from_job(cls, job: Job, session: Session) -> Self:
        """Return the result of a job that sums up a session; it has the confirmation only when there is a summary."""
        is_stored = job.status in (JobStatus.SUCCEEDED, JobStatus.SKIPPED) and session.summary is not None
        return cls(
            status=job.status.value,
            title=session.title,
            summary=session.summary if is_stored else None,
            reason=None if is_stored else job.error or job.reason,
            confirmation=f"Noted, I'll remember: {session.summary}" if is_stored else None,
        )


class MemoryHistoryResult(BaseModel):
    """Every version of a memory, oldest first."""

    versions: list[MemoryVersionResult]


def _shared_fields(memory: Memory) -> dict[str, Any]:
    return {
        "id": memory.id,
        "content": memory.content,
        "type": memory.type.value,
        "status": memory.status.value,
        "tags": memory.tags,
        "confidence": round(memory.confidence, 2),
        "valid_at": memory.valid_at,
        "invalid_at": memory.invalid_at,
        "told_at": memory.created_at,
    }
