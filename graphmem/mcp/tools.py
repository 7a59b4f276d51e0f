"""The tools for memories and conversations; a model chooses between tools by their names and docstrings."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

from mcp.server.mcpserver import Context as ToolCall
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from graphmem.ask.models import AskRequest
from graphmem.client.inputs import without_none
from graphmem.context.models import (
    DEFAULT_TOKEN_BUDGET,
    AnswerScore,
    ContextFeedbackResult,
    ContextRequest,
    EnhancedReply,
    EnhanceIn,
)
from graphmem.mcp import arguments
from graphmem.mcp.arguments import Connection
from graphmem.mcp.tool_results import (
    NOTHING_FOUND_HINT,
    AnswerResult,
    ContextResult,
    EntityLookupResult,
    EntityResult,
    MemoryHistoryResult,
    MemoryResult,
    MemorySearchResult,
    MemoryVersionResult,
    SaveMemoryResult,
    SessionSummaryResult,
)
from graphmem.memories.filters import MemoryFilters
from graphmem.memories.memory import MemoryIn, MemoryPatch, MemoryStatus, MemoryType
from graphmem.runtime.errors import Forbidden, GraphmemError, InvalidInput
from graphmem.runtime.tracing import span
from graphmem.runtime.validation import validate_input
from graphmem.search.models import SearchQuery
from graphmem.tenants.scopes import ReadScope
from graphmem.tenants.spaces import SpaceRole

if TYPE_CHECKING:
    from graphmem.app.bootstrap import Services


class ConnectedTools:
    """A group of tools of one server; `get_connection` names the user of each call."""

    def __init__(
        self, get_services: Callable[[], Awaitable[Services]], get_connection: Callable[[ToolCall], Connection]
    ) -> None:
        self._get_services = get_services
        self._get_connection = get_connection


P = ParamSpec("P")
T = TypeVar("T")


def raise_tool_errors(tool: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Turn the errors of graphmem into tool errors, whose text the model reads."""

    @functools.wraps(tool)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            with span(f"tool {tool.__name__}"):
                return await tool(*args, **kwargs)
        except GraphmemError as error:
            later = f" Try again in {error.retry_after} s." if error.retry_after else ""
            raise ToolError(f"{error.title}: {error.detail}{later}") from error

    return run


class MemoryTools(ConnectedTools):
    """The tools of one server that read and write memories."""

    @raise_tool_errors
    async def save_memory(
        self,
        call: ToolCall,
        content: arguments.Content,
        type: arguments.TypeArgument = MemoryType.FACT,
        scope: arguments.UserScope = None,
        domain: arguments.DomainArgument = None,
        topic_tags: arguments.TopicTags = [],  # noqa: B006 - a schema's default, never changed
        valid_at: arguments.ValidAt = None,
        expires_at: arguments.ExpiresAt = None,
        space: arguments.SpaceArgument = None,
    ) -> SaveMemoryResult:
        """Save what the user explicitly asks you to remember: "remember …", "don't forget …".

        Afterwards tell the user so with the `confirmation` of the answer, in their language. When the answer has a
        `reason` instead, it was not saved: say why and promise nothing.
        """
        statement = {
            "content": content,
            "type": type,
            "scope": scope,
            "domain": domain,
            "tags": topic_tags,
            "valid_at": valid_at,
            "expires_at": expires_at,
            "space": space,
            "confidence": 1.0,
            "importance": 0.8,
        }
        return await self._save(call, statement, f"Noted, I'll remember: {content}")

    @raise_tool_errors
    async def upsert_memories(
        self,
        call: ToolCall,
        type: arguments.TypeArgument,
        content: arguments.Content,
        confidence: arguments.Confidence,
        topic_tags: arguments.TopicTags = [],  # noqa: B006 - a schema's default, never changed
        importance: arguments.Importance = 0.5,
        about: arguments.EntityNames = [],  # noqa: B006 - a schema's default, never changed
        domain: arguments.DomainArgument = None,
        valid_at: arguments.ValidAt = None,
        invalid_at: arguments.InvalidAt = None,
        supersedes: arguments.SupersededIds = [],  # noqa: B006 - a schema's default, never changed
        space: arguments.SpaceArgument = None,
    ) -> SaveMemoryResult:
        """Save one statement from this conversation that is worth knowing in later ones.

        Call it once for each statement; one that is known already is strengthened, not stored twice. When a statement
        makes an earlier one outdated, give that one's id in `supersedes`. Not for small talk, temporary states or
        secrets.
        """
        statement = {
            "type": type,
            "content": content,
            "confidence": confidence,
            "tags": topic_tags,
            "importance": importance,
            "entities": [{"name": name} for name in about],
            "domain": domain,
            "valid_at": valid_at,
            "invalid_at": invalid_at,
            "supersedes": supersedes,
            "space": space,
        }
        return await self._save(call, statement)

    @raise_tool_errors
    async def search_memory(
        self,
        call: ToolCall,
        query: arguments.Query,
        filters: arguments.SearchFilters | None = None,
        limit: arguments.Limit = 5,
        min_score: arguments.MinScore = 0.0,
        cut: arguments.CutArgument = "none",
        spaces: arguments.SpacesArgument = "all",
    ) -> MemorySearchResult:
        """Search what is remembered about the user, by meaning and words, before you answer.

        Use it whenever the answer may depend on the user, their people, plans, preferences or earlier conversations,
        and before you ask them something they may have told already. Look here first and in other sources only when
        nothing fits; `metadata` of a memory may point to one.
        """
        connection = self._get_connection(call)
        asked = {"query": query, "limit": limit, "min_score": min_score, "cut": cut, "reinforce": connection.can_write}
        search_query = validate_input(SearchQuery, {**_given_filters(filters), **asked})
        services = await self._get_services()
        scope = await services.rights.read_scope(connection.owner, connection.key, spaces)
        response = await services.retrieval.search(scope, search_query)
        memories = [MemoryResult.from_memory(hit.memory, round(hit.score, 4)) for hit in response.results]
        return MemorySearchResult(memories=memories, hint=None if memories else NOTHING_FOUND_HINT)

    @raise_tool_errors
    async def update_memory(
        self,
        call: ToolCall,
        memory_id: arguments.MemoryId | None = None,
        content: arguments.Content | None = None,
        type: arguments.TypeArgument | None = None,
        topic_tags: arguments.TopicTags | None = None,
        confidence: arguments.Confidence | None = None,
        importance: arguments.Importance | None = None,
        valid_at: arguments.ValidAt = None,
        invalid_at: arguments.InvalidAt = None,
        key: Annotated[str, Field(description="Instead of memory_id: an attribute, such as server_os.")] = "",
        value: Annotated[str, Field(description="With key: its value from now on, such as Ubuntu 22.")] = "",
    ) -> SaveMemoryResult:
        """Correct a memory that is wrong or incomplete, by its id; the earlier version stays in its history.

        With `key` and `value` instead, set an attribute of the user that has one value at a time; its earlier value
        stays in history. When a statement was correct but the world has changed, use upsert_memories with `supersedes`.
        """
        changes = {
            "content": content,
            "type": type,
            "tags": topic_tags,
            "confidence": confidence,
            "importance": importance,
            "valid_at": valid_at,
            "invalid_at": invalid_at,
        }
        changes = {name: change for name, change in changes.items() if change is not None}
        if memory_id is None:
            if not key or not value or changes:
                raise InvalidInput("Give memory_id and the fields to change, or only key and value.")
            return await self._save(call, _attribute_statement(key, value))
        if key or value:
            raise InvalidInput("Give memory_id and the fields to change, or only key and value, not both.")
        patch = validate_input(MemoryPatch, changes)
        services, connection, scope = await self._require_changeable(call, memory_id)
        changed = await services.memories.patch(
            scope, memory_id, patch, actor=connection.actor, kind=connection.changes_as
        )
        if changed.status is MemoryStatus.CONTESTED:
            return SaveMemoryResult(
                action="contest", memory_id=changed.id, reason="a more trusted source says otherwise: ask the user"
            )
        return SaveMemoryResult(action="update", memory_id=changed.id, confirmation=f"Noted: {changed.content}")

    @raise_tool_errors
    async def delete_memory(self, call: ToolCall, memory_id: arguments.MemoryId) -> MemoryResult:
        """End a memory when the user retracts it or asks you to forget it; it is no longer recalled.

        Find its id with search_memory first. Its history stays; only an administrator can erase it.
        """
        services, connection, scope = await self._require_changeable(call, memory_id)
        deleted = await services.memories.delete(scope, memory_id, actor=connection.actor, kind=connection.changes_as)
        return MemoryResult.from_memory(deleted)

    @raise_tool_errors
    async def lookup_entity(
        self,
        call: ToolCall,
        text: Annotated[str, Field(description="A name, or any text that names people, places or things.")],
        limit: arguments.Limit = 10,
        filters: arguments.SearchFilters | None = None,
        valid_as_of: arguments.ValidAsOf = None,
        known_as_of: arguments.KnownAsOf = None,
        spaces: arguments.SpacesArgument = "all",
    ) -> EntityLookupResult:
        """Look up what is known about the people, places and things that a text names; the fastest tool.

        Use it when a name comes up. It matches names and nicknames, not meanings: for those use search_memory.
        """
        connection = self._get_connection(call)
        services = await self._get_services()
        response = await services.retrieval.lookup(
            await services.rights.read_scope(connection.owner, connection.key, spaces),
            text,
            limit,
            filters=validate_input(
                MemoryFilters,
                {**_given_filters(filters), **without_none(valid_as_of=valid_as_of, known_as_of=known_as_of)},
            ),
            reinforce=connection.can_write,
        )
        entities = [EntityResult.from_match(match) for match in response.entities]
        return EntityLookupResult(entities=entities, hint=None if entities else NOTHING_FOUND_HINT)

    @raise_tool_errors
    async def memory_history(self, call: ToolCall, memory_id: arguments.MemoryId) -> MemoryHistoryResult:
        """Read every version of a memory, oldest first: what was believed when, why it ended, what replaced it.

        Use it when the user asks what was true before, since when something is true, or why you believe it.
        """
        services, connection = await self._get_services(), self._get_connection(call)
        scope = await services.rights.read_scope(connection.owner, connection.key)
        versions = await services.memories.history(scope, memory_id)
        return MemoryHistoryResult(versions=[MemoryVersionResult.from_version(version) for version in versions])

    async def _save(
        self, call: ToolCall, statement: dict[str, Any], confirmation: str | None = None
    ) -> SaveMemoryResult:
        connection = self._get_connection(call)
        memories = [validate_input(MemoryIn, statement)]
        services = await self._get_services()
        owner = connection.writable_owner
        named = [memory.space for memory in memories if memory.space is not None]
        spaces = await services.rights.find_places(owner, connection.key, named, SpaceRole.WRITER)
        key = connection.key
        if key is not None:
            await services.trust.check_claims(key, [memory.source.kind for memory in memories if memory.source])
        [result] = await services.memories.save(
            owner, memories, actor=connection.actor, kind=key.source_kind if key else "user", spaces=spaces
        )
        return SaveMemoryResult.from_result(result, confirmation)

    async def _require_changeable(self, call: ToolCall, memory_id: str) -> tuple[Services, Connection, ReadScope]:
        """Return what changing a memory takes: the services, the connection and the scope in which it is.

        Raises Forbidden for a global memory.
        """
        connection = self._get_connection(call)
        services = await self._get_services()
        scope = await services.rights.read_scope(connection.writable_owner, connection.key)
        if (await services.memories.get(scope, memory_id)).is_global:
            raise Forbidden("All users read this memory: only an administrator can change it.")
        return services, connection, scope


def _given_filters(filters: arguments.SearchFilters | None) -> dict[str, Any]:
    return filters.model_dump(exclude_unset=True) if filters else {}


def _attribute_statement(key: str, value: str) -> dict[str, Any]:
    """Return the statement that an attribute of the user has a value."""
    return {
        "content": f"{key.replace('_', ' ').strip()}: {value.strip()}",
        "predicate": arguments.predicate_from_key(key),
        "single_valued": True,
        "confidence": 1.0,
    }


StoredSessionId = Annotated[str, Field(description="Id of this conversation, which is stored.")]


class ConversationTools(ConnectedTools):
    """The tools of one server about a conversation."""

    @raise_tool_errors
    async def get_context(
        self,
        call: ToolCall,
        question: Annotated[
            str | None,
            Field(description="What the user has just asked, in their words; leave out before their first message."),
        ] = None,
        session_id: Annotated[str | None, Field(description="Id of this conversation, if it is stored.")] = None,
        domain: arguments.DomainArgument = None,
        token_budget: Annotated[int, Field(ge=1, le=100_000, description="Most tokens.")] = DEFAULT_TOKEN_BUDGET,
        sources: Annotated[bool, Field(description="Say of each memory when it was said.")] = False,
        recent_messages: Annotated[
            bool, Field(description="Whether to add the last messages of this conversation: not if you have them.")
        ] = True,
        valid_as_of: arguments.ValidAsOf = None,
        known_as_of: arguments.KnownAsOf = None,
        spaces: arguments.SpacesArgument = "all",
    ) -> ContextResult:
        """Get the context for a reply as one text: profile, preferences, recent messages and relevant memories.

        Use it once at the start of a conversation, even before the user's first message, or when the subject changes;
        for a single question use search_memory. Where your answer rests on something remembered, say so in passing.
        Greet with `greeting`, come back to `open_loops`, offer what `past_fixes` says worked and nothing that failed.
        """
        connection = self._get_connection(call)
        given = {
            "question": question,
            "session_id": session_id,
            "domain": domain,
            "token_budget": token_budget,
            "sources": sources,
            "recent_messages": recent_messages,
            "valid_as_of": valid_as_of,
            "known_as_of": known_as_of,
            "spaces": spaces,
        }
        request = validate_input(ContextRequest, given)
        services = await self._get_services()
        scope = await services.rights.read_scope(connection.owner, connection.key, spaces)
        response = await services.contexts.build(scope, request, reinforce=connection.can_write)
        return ContextResult.from_response(response)

    @raise_tool_errors
    async def ask_memory(
        self,
        call: ToolCall,
        question: Annotated[str, Field(description="One question about the user or what they told, in full.")],
        session_id: Annotated[str | None, Field(description="Id of this conversation, if it is stored.")] = None,
        valid_as_of: arguments.ValidAsOf = None,
        known_as_of: arguments.KnownAsOf = None,
        spaces: arguments.SpacesArgument = "all",
        min_trust: arguments.MinTrust = None,
    ) -> AnswerResult:
        """Ask memory one question and get the answer with quotes of its sources, or that memory has none.

        Use it for a question that takes several memories together, such as how many, how long, or what changed; for
        what one memory says, search_memory is faster. Nothing that it does not quote is known.
        """
        connection = self._get_connection(call)
        given = {
            "question": question,
            "session_id": session_id,
            "valid_as_of": valid_as_of,
            "known_as_of": known_as_of,
            "spaces": spaces,
            "min_trust": min_trust,
            "reinforce": connection.can_write,
        }
        request = validate_input(AskRequest, given)
        services = await self._get_services()
        scope = await services.rights.read_scope(connection.owner, connection.key, spaces)
        response = await services.answers.ask(scope, request)
        return AnswerResult.from_response(response)

    @raise_tool_errors
    async def enhance_reply(
        self,
        call: ToolCall,
        session_id: StoredSessionId,
        reply: Annotated[str, Field(description="Your draft of the reply.")],
        question: Annotated[str | None, Field(description="The question that it answers, in the user's words.")] = None,
        sources: Annotated[
            list[str], Field(description="What it rests on: ids of memories or messages, or names of other sources.")
        ] = [],  # noqa: B006 - a schema's default, never changed
    ) -> EnhancedReply:
        """Adapt a draft reply to the user: continuity with what was said, their style, follow-ups, sources.

        Use it as the last step before you answer, and send the text it returns; `applied` lists what it changed.
        """
        draft = validate_input(EnhanceIn, {"reply": reply, "question": question, "sources": sources})
        services = await self._get_services()
        return await services.contexts.enhance(self._get_connection(call).owner, session_id, draft)

    @raise_tool_errors
    async def summarize_session(self, call: ToolCall, session_id: StoredSessionId) -> SessionSummaryResult:
        """Sum up this whole conversation and remember it, when the user asks: "summarise this and remember it".

        Its takeaways are remembered, too. Afterwards tell the user so with the `confirmation` of the answer, in their
        language; when the answer has a `reason` instead, promise nothing. A conversation that is not stored: write the
        summary yourself and save it with upsert_memories, type conversation_summary.
        """
        owner = self._get_connection(call).writable_owner
        services = await self._get_services()
        job = await services.messages.summarize(owner, session_id, wait=True)
        session = await services.messages.get_session(owner, session_id)
        return SessionSummaryResult.from_job(job, session)

    @raise_tool_errors
    async def rate_answer(
        self,
        call: ToolCall,
        context_id: Annotated[str, Field(description="The `context_id` of get_context, on which the answer rests.")],
        score: Annotated[AnswerScore, Field(description="1: wrong or useless; 5: just what the user needed.")],
    ) -> ContextFeedbackResult:
        """Rate an answer that you made from a context, by what the user says about it.

        Use it when the user says or shows that the answer helped or did not. The first good rating strengthens the
        memories of the context, listed in `credited`; a bad one changes none: correct a wrong one with update_memory.
        """
        connection, services = self._get_connection(call), await self._get_services()
        scope = await services.rights.read_scope(connection.writable_owner, connection.key)
        return await services.contexts.rate(scope, context_id, score)
