"""What every agent framework needs of a memory: context for a question, two tools, and turns to learn from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphmem.chats.context_block import make_context_block
from graphmem.runtime.errors import GraphmemError

if TYPE_CHECKING:
    from graphmem.client import AsyncClient

DEFAULT_TOKEN_BUDGET = 1000
"""Tokens of a context in a prompt, unless the caller says otherwise."""

MAX_TOOL_RESULTS = 10
"""Memories that one call of the search tool returns."""


@dataclass(frozen=True, slots=True)
class AgentMemory:
    """The memory of one user for one agent; `client` speaks HTTP or is a `GraphMemory` in the same process.

    Turns are stored in the session `session_id`. With `space`, what the agent stores and saves is shared with the
    members of that space; it reads all spaces of the user in any case.
    """

    client: AsyncClient
    user_id: str
    session_id: str | None = None
    token_budget: int = DEFAULT_TOKEN_BUDGET
    space: str | None = None

    async def build_context(self, question: str) -> str:
        """Return what is known that may help with a question, as a block by which an adapter finds it again."""
        response = await self.client.context(
            self.user_id,
            question,
            session_id=self.session_id,
            token_budget=self.token_budget,
            space=self.space,
        )
        return make_context_block(response.preamble)

    async def search_memory(self, query: str) -> str:
        """Search what is known about the user by meaning.

        Args:
            query: What to look for, as a question or as keywords.
        """
        response = await self.client.search(self.user_id, query, limit=MAX_TOOL_RESULTS)
        return "\n".join(hit.memory.content for hit in response.results) or "Nothing is known about this."

    async def save_memory(self, statement: str) -> str:
        """Remember a statement about the user for later conversations.

        Args:
            statement: One sentence in the third person, with names instead of pronouns and dates instead of "tomorrow".
        """
        try:
            (result,) = await self.client.add(self.user_id, {"content": statement, "space": self.space})
        except GraphmemError as error:
            return f"Not saved: {error}"
        return f"Saved: {result.memory.content}" if result.memory else f"Not saved: {result.reason}"

    async def record(self, turns: Iterable[tuple[str, str]]) -> None:
        """Store turns, each a role and a text, from which memories are extracted in the background."""
        if messages := [{"role": role, "content": text} for role, text in turns]:
            await self.client.add_messages(self.user_id, messages, session_id=self.session_id, space=self.space)
