"""The verbs of the service in one process: `await memory.search("mara", "what tea does she like?")`.

What callers may pass is read here, so that the HTTP client takes the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack

from pydantic import BaseModel, ValidationError

from graphmem.domain.context import Context, ContextRequest
from graphmem.domain.export import Forgotten, Imported
from graphmem.domain.formats.document import Format, read_format
from graphmem.domain.identity import DEFAULT_TENANT, owner_of
from graphmem.domain.job import Job
from graphmem.domain.memory import HistoryRow, MemoryIn, MemoryType, SaveResult, Scope
from graphmem.domain.proposals import Proposal, Rollback, Run, read_proposals
from graphmem.domain.recall import LookupAnswer, SearchAnswer, SearchQuery, TagFilter
from graphmem.domain.session import Accepted, MessageIn, MessagesIn
from graphmem.errors import InvalidInput

if TYPE_CHECKING:
    from graphmem.service.consolidations import Consolidations
    from graphmem.service.context import Contexts
    from graphmem.service.memories import Memories
    from graphmem.service.messages import Conversations
    from graphmem.service.retrieval import Retrieval
    from graphmem.service.transfer import Transfer

M = TypeVar("M", bound=BaseModel)

Memorable = str | MemoryIn | Mapping[str, Any]
"""A statement to save: its text alone, or with what else is known about it."""

Said = MessageIn | Mapping[str, Any]
"""A turn of a conversation: at least `role` and `content`."""

Time = datetime | str


class SearchFilters(TypedDict, total=False):
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
    created_after: Time | None
    created_before: Time | None
    valid_as_of: Time | None
    known_as_of: Time | None
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


class Verbs:
    """What an agent does with a memory; `tenant` is the customer the user belongs to.

    Every verb raises InvalidInput for what cannot be used, and Unavailable when a part it stands on is away.
    """

    memories: Memories
    retrieval: Retrieval
    messages: Conversations
    contexts: Contexts
    consolidations: Consolidations
    transfer: Transfer

    async def add(
        self, user_id: str, memories: Memorable | Sequence[Memorable], *, tenant: str = DEFAULT_TENANT
    ) -> list[SaveResult]:
        """Save statements without a model: all of them or none."""
        return await self.memories.save(owner_of(tenant, user_id), memories_of(memories), kind="python")

    async def add_messages(
        self,
        user_id: str,
        messages: Sequence[Said],
        *,
        session_id: str | None = None,
        extract: bool = True,
        wait: bool = False,
        timezone: str | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> Accepted | Job:
        """Store turns and extract memories in the background; with `wait` return the finished job."""
        batch = batch_of(messages, session_id=session_id, extract=extract, wait=wait, timezone=timezone)
        return await self.messages.add(owner_of(tenant, user_id), batch)

    async def search(
        self, user_id: str, query: str | SearchQuery, *, tenant: str = DEFAULT_TENANT, **filters: Unpack[SearchFilters]
    ) -> SearchAnswer:
        """Return the memories that answer a query, best first."""
        return await self.retrieval.search(owner_of(tenant, user_id), query_of(query, filters))

    async def lookup(self, user_id: str, text: str, *, limit: int = 20, tenant: str = DEFAULT_TENANT) -> LookupAnswer:
        """Return the entities a text names and what is known about them; no model, no embedding."""
        return await self.retrieval.lookup(owner_of(tenant, user_id), text, limit)

    async def context(
        self,
        user_id: str,
        question: str | ContextRequest,
        *,
        tenant: str = DEFAULT_TENANT,
        **options: Unpack[ContextOptions],
    ) -> Context:
        """Return what to put before the model for a question, within a token budget."""
        return await self.contexts.build(owner_of(tenant, user_id), request_of(question, options))

    async def history(self, user_id: str, memory_id: str, *, tenant: str = DEFAULT_TENANT) -> list[HistoryRow]:
        """Return every version of a memory, oldest first, with why it ended; raise NotFound for an unknown one."""
        return await self.memories.history(owner_of(tenant, user_id), memory_id)

    async def consolidate(
        self,
        user_id: str | None = None,
        *,
        dry_run: bool = False,
        wait: bool = False,
        proposals: Sequence[Proposal | Mapping[str, Any]] | None = None,
        tenant: str = DEFAULT_TENANT,
    ) -> Run | str:
        """Start a consolidation of one user or all and return the run's id; with `wait` the finished run."""
        curated = read_proposals(proposals) if proposals is not None else None
        return await self.consolidations.start(tenant, user_id=user_id, dry_run=dry_run, wait=wait, proposals=curated)

    async def rollback(self, run_id: str, *, force: bool = False, tenant: str = DEFAULT_TENANT) -> Rollback:
        """Undo a consolidation run; raise Conflict when later writes touched the same things and not `force`."""
        return await self.consolidations.rollback(tenant, run_id, force=force)

    async def forget(self, user_id: str, *, tenant: str = DEFAULT_TENANT) -> Forgotten:
        """Erase everything of a user everywhere and count what is left of it."""
        return await self.transfer.forget(owner_of(tenant, user_id))

    async def export(
        self, user_id: str, *, format: Literal["json", "yaml"] = "json", tenant: str = DEFAULT_TENANT
    ) -> bytes:
        """Return everything of a user, history and vectors included."""
        return await self.transfer.export(owner_of(tenant, user_id), format)

    async def import_(
        self,
        user_id: str,
        document: bytes,
        *,
        format: Format | Literal["auto", "graphmem", "mem0", "graphiti", "openai"] = "auto",
        tenant: str = DEFAULT_TENANT,
    ) -> Imported:
        """Read an export back, or take what one of mem0, of Graphiti or a chat log holds; `ids` maps old to new."""
        return await self.transfer.import_(owner_of(tenant, user_id), document, form=read_format(format))


def memories_of(given: Memorable | Sequence[Memorable]) -> list[MemoryIn]:
    """Return the statements a caller means by one or several; raise InvalidInput for what is none."""
    several = [given] if isinstance(given, str | MemoryIn | Mapping) else given
    return [checked(MemoryIn, {"content": each} if isinstance(each, str) else each) for each in several]


def batch_of(messages: Sequence[Said], **options: Any) -> MessagesIn:
    """Return a batch of turns; options that are None are left out."""
    turns = [dict(each) if isinstance(each, Mapping) else each for each in messages]
    given = {name: value for name, value in options.items() if value is not None}
    return checked(MessagesIn, {"messages": turns, **given})


def query_of(query: str | SearchQuery, filters: SearchFilters) -> SearchQuery:
    """Return a query with its filters, which may also change one that is complete."""
    said = query.model_dump(exclude_unset=True) if isinstance(query, SearchQuery) else {"query": query}
    return checked(SearchQuery, {**said, **filters})


def request_of(question: str | ContextRequest, options: ContextOptions) -> ContextRequest:
    """Return a request for a context with its options, which may also change one that is complete."""
    said = question.model_dump(exclude_unset=True) if isinstance(question, ContextRequest) else {"question": question}
    return checked(ContextRequest, {**said, **options})


def checked(model: type[M], given: object) -> M:
    """Return data as a model; raise InvalidInput that names what is wrong, without the values."""
    try:
        return model.model_validate(dict(given) if isinstance(given, Mapping) else given)
    except ValidationError as error:
        raise refusal(error) from None


def refusal(error: ValidationError) -> InvalidInput:
    """Return what is wrong with given data as an error of the tree; the values are not quoted."""
    errors: list[dict[str, Any]] = [
        {"loc": list(each["loc"]), "msg": each["msg"].removeprefix("Value error, ")}
        for each in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    named = (f"{'.'.join(map(str, each['loc'])) or 'input'}: {each['msg']}" for each in errors[:5])
    return InvalidInput(f"The input cannot be used: {'; '.join(named)}.", errors=errors)
