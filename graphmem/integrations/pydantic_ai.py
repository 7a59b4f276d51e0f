"""Memory for Pydantic AI: a toolset, a history processor that adds context, and a recorder of runs.

memory = AgentMemory(client, "ada", session_id="monday")
agent = Agent(model, toolsets=[memory_toolset(memory)], capabilities=[ProcessHistory(context_processor(memory))])
result = await agent.run("Where do I live?")
await record_run(memory, result.new_messages())
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from cachetools import LRUCache
from pydantic_ai import FunctionToolset
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)

from graphmem.chats.protocol import is_context_block
from graphmem.integrations.agent_memory import AgentMemory

MAX_QUESTIONS = 100
"""Questions whose contexts a processor keeps, for as many runs at a time."""


def memory_toolset(memory: AgentMemory) -> FunctionToolset[Any]:
    """Return the tools `search_memory` and `save_memory`."""
    return FunctionToolset([memory.search_memory, memory.save_memory])


def context_processor(memory: AgentMemory) -> Callable[[list[ModelMessage]], Awaitable[list[ModelMessage]]]:
    """Return a history processor that puts known facts about the latest question before the history.

    Requests after a tool call within the same run keep the context of their question.
    """
    built: LRUCache[str, str] = LRUCache(MAX_QUESTIONS)

    async def process(messages: list[ModelMessage]) -> list[ModelMessage]:
        bare = [_without_context(message) for message in messages]
        questions = [question for message in bare if (question := _question_of(message))]
        if not questions:
            return bare
        question = questions[-1]
        context = None if _question_of(bare[-1]) else built.get(question)
        if context is None:
            context = await memory.build_context(question)
            built[question] = context
        if not context:
            return bare
        part = SystemPromptPart(context)
        if isinstance(bare[0], ModelRequest):
            return [replace(bare[0], parts=[part, *bare[0].parts]), *bare[1:]]
        return [ModelRequest([part]), *bare]

    return process


async def record_run(memory: AgentMemory, messages: Sequence[ModelMessage]) -> None:
    """Send the turns of user and agent to graphmem, without contexts, tool calls and reasoning."""
    await memory.record(_turns_of(messages))


def _turns_of(messages: Iterable[ModelMessage]) -> list[tuple[str, str]]:
    turns = []
    for message in messages:
        if isinstance(message, ModelResponse):
            text, role = "\n".join(part.content for part in message.parts if isinstance(part, TextPart)), "assistant"
        else:
            text, role = _question_of(message), "user"
        if text.strip():
            turns.append((role, text))
    return turns


def _question_of(message: ModelMessage) -> str:
    """Return the user's text in a request; empty without one."""
    if not isinstance(message, ModelRequest):
        return ""
    prompts = [part.content for part in message.parts if isinstance(part, UserPromptPart)]
    texts = [[content] if isinstance(content, str) else content for content in prompts]
    return "\n".join(text for parts in texts for text in parts if isinstance(text, str))


def _without_context(message: ModelMessage) -> ModelMessage:
    if not isinstance(message, ModelRequest):
        return message
    parts = [
        part for part in message.parts if not (isinstance(part, SystemPromptPart) and is_context_block(part.content))
    ]
    return message if len(parts) == len(message.parts) else replace(message, parts=parts)
