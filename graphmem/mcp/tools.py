"""The tools: their names and descriptions are what a model goes by when it decides what to do."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar

from mcp.server.mcpserver import Context as ToolCall
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from graphmem.domain.context import DEFAULT_BUDGET, ContextRequest
from graphmem.domain.memory import MemoryIn, MemoryPatch, MemoryType, Scope
from graphmem.domain.recall import SearchQuery
from graphmem.errors import Forbidden, GraphmemError, InvalidInput
from graphmem.mcp import arguments as given
from graphmem.mcp.answers import Found, Known, LookedUp, Preamble, Remembered, Saved, Version, Versions
from graphmem.mcp.connection import Connection
from graphmem.service.verbs import checked
from graphmem.tracing import span

if TYPE_CHECKING:
    from graphmem.bootstrap import GraphMemory

P = ParamSpec("P")
T = TypeVar("T")

KIND = "mcp"
"""How the source of what is saved here is named."""

NOTHING_FOUND = "Nothing is remembered about this: ask the user, or look in other sources."


def _told(
    tool: Callable[Concatenate[Tools, P], Awaitable[T]],
) -> Callable[Concatenate[Tools, P], Coroutine[Any, Any, T]]:
    """Make the errors of graphmem what the model reads: what is wrong, and the next step where there is one."""

    @functools.wraps(tool)
    async def run(self: Tools, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            with span(f"tool {tool.__name__}"):
                return await tool(self, *args, **kwargs)
        except GraphmemError as error:
            later = f" Try again in {error.retry_after} s." if error.retry_after else ""
            raise ToolError(f"{error.title}: {error.detail}{later}") from error

    return run


class Tools:
    """The tools of one server; `connection` tells for each call whose memory it is."""

    def __init__(
        self, memory: Callable[[], Awaitable[GraphMemory]], connection: Callable[[ToolCall], Connection]
    ) -> None:
        self._memory = memory
        self._connection = connection

    @_told
    async def save_memory(
        self,
        call: ToolCall,
        content: given.Content,
        type: given.KindOf = MemoryType.FACT,
        scope: given.OwnScope = None,
        domain: given.InDomain = None,
        topic_tags: given.TopicTags = [],  # noqa: B006 - a schema's default, never changed
        valid_at: given.ValidAt = None,
        expires_at: given.ExpiresAt = None,
    ) -> Saved:
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
            "confidence": 1.0,
            "importance": 0.8,
        }
        return await self._save(call, statement, f"Noted, I'll remember: {content}")

    @_told
    async def upsert_memories(
        self,
        call: ToolCall,
        type: given.KindOf,
        content: given.Content,
        confidence: given.Confidence,
        topic_tags: given.TopicTags = [],  # noqa: B006 - a schema's default, never changed
        importance: given.Importance = 0.5,
        about: given.About = [],  # noqa: B006 - a schema's default, never changed
        domain: given.InDomain = None,
        valid_at: given.ValidAt = None,
        invalid_at: given.InvalidAt = None,
        supersedes: given.Replaces = [],  # noqa: B006 - a schema's default, never changed
    ) -> Saved:
        """Keep one thing worth knowing in later conversations that you learned on your own in this one.

        Call it once for each statement, as often as needed; what is known already is strengthened, not doubled. When a
        statement makes an earlier one outdated, give that one's id in `supersedes`. Not for small talk, passing states
        or secrets.
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
        }
        return await self._save(call, statement)

    @_told
    async def search_memory(
        self,
        call: ToolCall,
        query: given.Query,
        filters: given.SearchFilters | None = None,
        limit: given.Limit = 5,
    ) -> Found:
        """Search what is remembered about the user, by meaning and words, before you answer.

        Use it whenever the answer may depend on the user, their people, plans, preferences or earlier conversations,
        and before you ask them something they may have told already. Look here first and in other sources only when
        nothing fits; `metadata` of a memory may point to one.
        """
        connection = self._connection(call)
        wanted = filters.model_dump(exclude_unset=True) if filters else {}
        asked = checked(SearchQuery, {**wanted, "query": query, "limit": limit, "reinforce": connection.may_write})
        answer = await (await self._memory()).retrieval.search(connection.owner, asked)
        found = [Remembered.of(hit.memory, round(hit.score, 4)) for hit in answer.results]
        return Found(memories=found, hint=None if found else NOTHING_FOUND)

    @_told
    async def update_memory(
        self,
        call: ToolCall,
        memory_id: given.MemoryId | None = None,
        content: given.Content | None = None,
        type: given.KindOf | None = None,
        topic_tags: given.TopicTags | None = None,
        confidence: given.Confidence | None = None,
        importance: given.Importance | None = None,
        valid_at: given.ValidAt = None,
        invalid_at: given.InvalidAt = None,
        key: Annotated[str, Field(description="Instead of memory_id: an attribute, such as server_os.")] = "",
        value: Annotated[str, Field(description="With key: its value from now on, such as Ubuntu 22.")] = "",
    ) -> Saved:
        """Correct a memory that is wrong or incomplete, by its id; the earlier version stays in its history.

        With `key` and `value` instead, set an attribute of the user that has one value at a time; what it was before
        becomes history. When something has changed in the world, rather than been wrong, use upsert_memories with
        `supersedes`.
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
                raise InvalidInput("Give memory_id and what to change, or key and value alone.")
            return await self._save(call, _attribute(key, value))
        if key or value:
            raise InvalidInput("Give memory_id and what to change, or key and value alone, not both.")
        patch = checked(MemoryPatch, changes)
        memory, connection = await self._changeable(call, memory_id)
        changed = await memory.memories.patch(connection.writer, memory_id, patch, actor=connection.actor)
        return Saved(action="update", memory_id=changed.id, confirmation=f"Noted: {changed.content}")

    @_told
    async def delete_memory(self, call: ToolCall, memory_id: given.MemoryId) -> Remembered:
        """End a memory when the user takes it back or asks you to forget it; it is not recalled any more.

        Find its id with search_memory first. Its history stays; only an administrator can erase it.
        """
        memory, connection = await self._changeable(call, memory_id)
        return Remembered.of(await memory.memories.delete(connection.writer, memory_id, actor=connection.actor))

    @_told
    async def lookup_entity(
        self,
        call: ToolCall,
        text: Annotated[str, Field(description="A name, or any text that names people, places or things.")],
        limit: given.Limit = 10,
    ) -> LookedUp:
        """Look up what is known about the people, places and things a text names; the fastest way to recall.

        Use it when a name comes up. It matches names and nicknames, not meanings: for those use search_memory.
        """
        connection = self._connection(call)
        answer = await (await self._memory()).retrieval.lookup(
            connection.owner, text, limit, reinforce=connection.may_write
        )
        known = [
            Known(
                id=each.entity.id,
                name=each.entity.name,
                type=each.entity.type,
                aliases=each.entity.aliases,
                memories=[Remembered.of(memory) for memory in each.memories],
            )
            for each in answer.entities
        ]
        return LookedUp(entities=known, hint=None if known else NOTHING_FOUND)

    @_told
    async def get_context(
        self,
        call: ToolCall,
        question: Annotated[str, Field(description="What the user has just asked, in their words.")],
        session_id: Annotated[str | None, Field(description="Id of this conversation, if it is stored.")] = None,
        domain: given.InDomain = None,
        token_budget: Annotated[int, Field(ge=1, le=100_000, description="Most tokens.")] = DEFAULT_BUDGET,
    ) -> Preamble:
        """Get in one text what to know before answering: profile, preferences, what was said before, what fits.

        Use it once at the start of a conversation or when the subject changes; for a single question use search_memory.
        """
        connection = self._connection(call)
        asked = {"question": question, "session_id": session_id, "domain": domain, "token_budget": token_budget}
        request = checked(ContextRequest, asked)
        memory = await self._memory()
        built = await memory.contexts.build(connection.owner, request, reinforce=connection.may_write)
        knowledge = built.personalization_hints.knowledge
        return Preamble(
            preamble=built.preamble,
            token_count=built.token_count,
            sufficient=knowledge.sufficient,
            pointers=knowledge.pointers,
        )

    @_told
    async def memory_history(self, call: ToolCall, memory_id: given.MemoryId) -> Versions:
        """Read every version of a memory, oldest first: what was believed when, why it ended, what replaced it.

        Use it when the user asks what was true before, or since when, or why you think so.
        """
        rows = await (await self._memory()).memories.history(self._connection(call).owner, memory_id)
        return Versions(versions=[Version.of(row) for row in rows])

    async def _save(self, call: ToolCall, statement: dict[str, Any], confirmation: str | None = None) -> Saved:
        connection = self._connection(call)
        memories = [checked(MemoryIn, statement)]
        [result] = await (await self._memory()).memories.save(
            connection.writer, memories, actor=connection.actor, kind=KIND
        )
        return Saved.of(result, confirmation)

    async def _changeable(self, call: ToolCall, memory_id: str) -> tuple[GraphMemory, Connection]:
        """Return the memory service and the connection for a change of a memory; raise Forbidden for a global one."""
        connection = self._connection(call)
        memory = await self._memory()
        if (await memory.memories.get(connection.writer, memory_id)).scope is Scope.GLOBAL:
            raise Forbidden("All users read this memory: only an administrator can change it.")
        return memory, connection


def _attribute(key: str, value: str) -> dict[str, Any]:
    """Return the statement that an attribute of the user has a value."""
    return {
        "content": f"{key.replace('_', ' ').strip()}: {value.strip()}",
        "predicate": given.predicate_of(key),
        "single_valued": True,
        "confidence": 1.0,
    }
