"""Memory for the OpenAI Agents SDK: a session that learns from what is said, tools, and instructions with context.

memory = AgentMemory(client, "ada", session_id="monday")
agent = Agent(name="Assistant", instructions=with_context(memory, "Be brief."), tools=memory_tools(memory))
await Runner.run(agent, "Where do I live?", session=GraphmemSession(SQLiteSession("monday"), memory))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

from agents import Agent, FunctionTool, RunContextWrapper, TResponseInputItem, function_tool
from agents.memory import Session
from agents.memory.session import SessionABC

from graphmem.integrations.agent_memory import AgentMemory

_ROLES = ("user", "assistant")


class GraphmemSession(SessionABC):
    """A session that keeps its items in another session and sends the turns of user and agent to graphmem.

    Popped or cleared items leave the other session; memories learned from them stay until deleted or until the user is
    forgotten.
    """

    def __init__(self, session: Session, memory: AgentMemory) -> None:
        self.session_id = session.session_id
        self.session_settings = session.session_settings
        self._session = session
        self._memory = memory

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the latest `limit` items, or all, oldest first."""
        return await self._session.get_items(limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store items and send the turns among them to graphmem."""
        await self._session.add_items(items)
        await self._memory.record(_turns_of(items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the latest item."""
        return await self._session.pop_item()

    async def clear_session(self) -> None:
        """Remove all items."""
        await self._session.clear_session()


def memory_tools(memory: AgentMemory) -> list[FunctionTool]:
    """Return the tools `search_memory` and `save_memory`."""
    return [function_tool(memory.search_memory), function_tool(memory.save_memory)]


def with_context(
    memory: AgentMemory, instructions: str = ""
) -> Callable[[RunContextWrapper[Any], Agent[Any]], Awaitable[str]]:
    """Return instructions for an agent that end with known facts about the user and the latest question.

    Requests after a tool call within the same run keep the context of their question.
    """
    built: WeakKeyDictionary[RunContextWrapper[Any], tuple[str, str]] = WeakKeyDictionary()

    async def build(run: RunContextWrapper[Any], _: Agent[Any]) -> str:
        questions = [text for role, text in _turns_of(run.turn_input) if role == "user"]
        if not questions:
            return instructions
        question, context = built.get(run, ("", ""))
        if question != questions[-1]:
            context = await memory.build_context(questions[-1])
            built[run] = questions[-1], context
        return f"{instructions}\n\n{context}".strip()

    return build


def _turns_of(items: Iterable[TResponseInputItem]) -> list[tuple[str, str]]:
    """Return the role and text of items, without tool calls and reasoning."""
    turns = []
    for item in items:
        role = str(item.get("role"))
        text = _text_of(item.get("content"))
        if role in _ROLES and text.strip():
            turns.append((role, text))
    return turns


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(str(part["text"]) for part in content if isinstance(part, dict) and part.get("text"))
