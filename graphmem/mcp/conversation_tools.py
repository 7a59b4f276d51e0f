"""The tools for a conversation: its context, the last touch of a reply, its summary."""

from __future__ import annotations

from typing import Annotated

from mcp.server.mcpserver import Context as ToolCall
from pydantic import Field

from graphmem.context.models import (
    DEFAULT_TOKEN_BUDGET,
    ContextRequest,
    EnhancedReply,
    EnhanceIn,
)
from graphmem.mcp import arguments
from graphmem.mcp.connected_tools import ConnectedTools
from graphmem.mcp.tool_errors import raise_tool_errors
from graphmem.mcp.tool_results import ContextResult, SessionSummaryResult
from graphmem.runtime.validation_domain import validate_input

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
        }
        request = validate_input(ContextRequest, given)
        services = await self._get_services()
        response = await services.contexts.build(connection.owner, request, reinforce=connection.can_write)
        return ContextResult.from_response(response)

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
