"""The verbs of the service in one process: `await memory.search("mara", "what tea does she like?")`.

What callers may pass is read here, so that the HTTP client takes the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack

from pydantic import BaseModel, ValidationError

from graphmem.domain.consolidation_models import ConsolidationRun, Proposal, RollbackResult, parse_proposals
from graphmem.domain.context_models import ContextRequest, ContextResponse
from graphmem.domain.export import ErasureResult, ImportResult
from graphmem.domain.filters import TagFilter
from graphmem.domain.formats.document import ImportFormat, parse_format_name
from graphmem.domain.identity import DEFAULT_TENANT, make_owner
from graphmem.domain.job import Job
from graphmem.domain.memory import MemoryIn, MemoryType, MemoryVersion, SaveResult, Scope
from graphmem.domain.search_models import LookupResponse, SearchQuery, SearchResponse
from graphmem.domain.session import MessageIn, MessagesAccepted, MessagesIn
from graphmem.errors import InvalidInput

if TYPE_CHECKING:
    from graphmem.service.consolidations import ConsolidationService
    from graphmem.service.context import ContextService
    from graphmem.service.memories import MemoryService
    from graphmem.service.messages import MessageService
    from graphmem.service.retrieval import RetrievalService
    from graphmem.service.transfer import TransferService

M = TypeVar("M", bound=BaseModel)

MemoryInput = str | MemoryIn | Mapping[str, Any]
"""A statement to save: its text alone, or with what else is known about it."""

MessageInput = MessageIn | Mapping[str, Any]
"""A turn of a conversation: at least `role` and `content`."""

TimeInput = datetime | str


class SearchOptions(TypedDict, total=False):
    """What a search may be told besides the query: the fields of `SearchQuery`."""

    limit: int
    types: Sequence[MemoryType | str] | None
    tags: TagFilter | Mapping[str, Sequence[str]] | None
    domain: str | None
    scope: Scope | str | None
    entity: str | None
    min_confidence: float | None
    min_importance: float | None
    min_score: float | None
    created_after: TimeInput | None
    created_before: TimeInput | None
    valid_as_of: TimeInput | None
    known_as_of: TimeInput | None
    include_superseded: bool
    include_messages: bool
    semantic: bool
    keyword: bool
    graph: bool
    rerank: bool
    persona: Mapping[str, float]
    reinforce: bool
    explain: bool


class ContextOptions(TypedDict, total=False):
    """What a context may be told besides the question: the fields of `ContextRequest`."""

    session_id: str | None
    intent: str | None
    domain: str | None
    token_budget: int
    top: int
    sources: bool
    profile_pack: Mapping[str, Any]


class MemoryAPI:
    """What an agent does with a memory; `tenant` is the customer the user belongs to.

    Every verb raises InvalidInput for what cannot be used, and Unavailable when a part it stands on is away.
    """

    memories: MemoryService
    retrieval: RetrievalService
    messages: MessageService
    contexts: ContextService
    consolidations: ConsolidationService
    transfer: TransferService

    async def add(
        self, user_id: str, memories: MemoryInput | Sequence[MemoryInput], *, tenant: str = DEFAULT_TENANT
    ) -> list[SaveResult]:
        """Save statements without a model: all of them or none."""
        return await self.memories.save(make_owner(tenant, user_id), parse_memories(memories), kind="python")

    async def add_messages(
        self,
        user_id: str,
        messages: Sequence[MessageInput],
        *,
        session_id: str | None = None,
        extract: bool = True,
        wait: bool = False,
        timezone: str | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> MessagesAccepted | Job:
        """Store turns and extract memories in the background; with `wait` return the finished job."""
        batch = parse_messages(messages, session_id=session_id, extract=extract, wait=wait, timezone=timezone)
        return await self.messages.add(make_owner(tenant, user_id), batch)

    async def search(
        self, user_id: str, query: str | SearchQuery, *, tenant: str = DEFAULT_TENANT, **filters: Unpack[SearchOptions]
    ) -> SearchResponse:
        """Return the memories that answer a query, best first."""
        return await self.retrieval.search(make_owner(tenant, user_id), parse_search_query(query, filters))

    async def lookup(self, user_id: str, text: str, *, limit: int = 20, tenant: str = DEFAULT_TENANT) -> LookupResponse:
        """Return the entities a text names and what is known about them; no model, no embedding."""
        return await self.retrieval.lookup(make_owner(tenant, user_id), text, limit)

    async def context(
        self,
        user_id: str,
        question: str | ContextRequest,
        *,
        tenant: str = DEFAULT_TENANT,
        **options: Unpack[ContextOptions],
    ) -> ContextResponse:
        """Return what to put before the model for a question, within a token budget."""
        return await self.contexts.build(make_owner(tenant, user_id), parse_context_request(question, options))

    async def history(self, user_id: str, memory_id: str, *, tenant: str = DEFAULT_TENANT) -> list[MemoryVersion]:
        """Return every version of a memory, oldest first, with why it ended; raise NotFound for an unknown one."""
        return await self.memories.history(make_owner(tenant, user_id), memory_id)

    async def consolidate(
        self,
        user_id: str | None = None,
        *,
        dry_run: bool = False,
        wait: bool = False,
        proposals: Sequence[Proposal | Mapping[str, Any]] | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> ConsolidationRun | str:
        """Start a consolidation of one user or all and return the run's id; with `wait` the finished run."""
        curated = parse_proposals(proposals) if proposals is not None else None
        return await self.consolidations.start(tenant, user_id=user_id, dry_run=dry_run, wait=wait, proposals=curated)

    async def rollback(self, run_id: str, *, force: bool = False, tenant: str = DEFAULT_TENANT) -> RollbackResult:
        """Undo a consolidation run; raise Conflict when later writes touched the same things and not `force`."""
        return await self.consolidations.rollback(tenant, run_id, force=force)

    async def forget(self, user_id: str, *, tenant: str = DEFAULT_TENANT) -> ErasureResult:
        """Erase everything of a user everywhere and count what is left of it."""
        return await self.transfer.forget(make_owner(tenant, user_id))

    async def export(
        self, user_id: str, *, format: Literal["json", "yaml"] = "json", tenant: str = DEFAULT_TENANT
    ) -> bytes:
        """Return everything of a user, history and vectors included."""
        return await self.transfer.export(make_owner(tenant, user_id), format)

    async def import_(
        self,
        user_id: str,
        document: bytes,
        *,
        format: ImportFormat | Literal["auto", "graphmem", "mem0", "graphiti", "openai"] = "auto",
        tenant: str = DEFAULT_TENANT,
    ) -> ImportResult:
        """Read an export back, or take what one of mem0, of Graphiti or a chat log holds; `ids` maps old to new."""
        return await self.transfer.import_(
            make_owner(tenant, user_id), document, source_format=parse_format_name(format)
        )


def parse_memories(given: MemoryInput | Sequence[MemoryInput]) -> list[MemoryIn]:
    """Return the statements a caller means by one or several; raise InvalidInput for what is none."""
    several = [given] if isinstance(given, str | MemoryIn | Mapping) else given
    return [validate_input(MemoryIn, {"content": each} if isinstance(each, str) else each) for each in several]


def parse_messages(messages: Sequence[MessageInput], **options: Any) -> MessagesIn:
    """Return a batch of turns; options that are None are left out."""
    turns = [dict(each) if isinstance(each, Mapping) else each for each in messages]
    given = {name: value for name, value in options.items() if value is not None}
    return validate_input(MessagesIn, {"messages": turns, **given})


def parse_search_query(query: str | SearchQuery, filters: SearchOptions) -> SearchQuery:
    """Return a query with its filters, which may also change one that is complete."""
    given_fields = query.model_dump(exclude_unset=True) if isinstance(query, SearchQuery) else {"query": query}
    return validate_input(SearchQuery, {**given_fields, **filters})


def parse_context_request(question: str | ContextRequest, options: ContextOptions) -> ContextRequest:
    """Return a request for a context with its options, which may also change one that is complete."""
    given_fields = (
        question.model_dump(exclude_unset=True) if isinstance(question, ContextRequest) else {"question": question}
    )
    return validate_input(ContextRequest, {**given_fields, **options})


def validate_input(model: type[M], given: object) -> M:
    """Return data as a model; raise InvalidInput that names what is wrong, without the values."""
    try:
        return model.model_validate(dict(given) if isinstance(given, Mapping) else given)
    except ValidationError as error:
        raise invalid_input_from(error) from None


def invalid_input_from(error: ValidationError) -> InvalidInput:
    """Return what is wrong with given data as an error of the tree; the values are not quoted."""
    errors: list[dict[str, Any]] = [
        {"loc": list(each["loc"]), "msg": each["msg"].removeprefix("Value error, ")}
        for each in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    named = (f"{'.'.join(map(str, each['loc'])) or 'input'}: {each['msg']}" for each in errors[:5])
    return InvalidInput(f"The input cannot be used: {'; '.join(named)}.", errors=errors)
