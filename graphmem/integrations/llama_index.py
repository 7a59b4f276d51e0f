"""Memory for LlamaIndex: a memory whose messages graphmem learns from, and a block with what is known.

memory = GraphmemMemory.of(AgentMemory(client, "ada", session_id="monday"))
await agent.run("Where do I live?", memory=memory)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import BaseMemoryBlock, Memory
from pydantic import Field

from graphmem.integrations.agent_memory import AgentMemory

BLOCK_NAME = "graphmem"
"""The name of the block, which the prompt shows around its text."""

_ROLES = ("user", "assistant")


class GraphmemMemoryBlock(BaseMemoryBlock[str]):
    """A block with known facts about the latest question, for any `Memory`.

    Messages that leave the short-term memory are sent to graphmem, unless `accept_short_term_memory` is false.
    """

    name: str = BLOCK_NAME
    agent_memory: Any = Field(exclude=True, description="The `AgentMemory` of a user.")

    async def _aget(self, messages: list[ChatMessage] | None = None, **_: Any) -> str:
        questions = [text for role, text in turns_of(messages or ()) if role == "user"]
        return await self.agent_memory.build_context(questions[-1]) if questions else ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await self.agent_memory.record(turns_of(messages))


class GraphmemMemory(Memory):
    """LlamaIndex's `Memory` with a graphmem block that receives every message put into it.

    After the chat history is reset or replaced, memories learned from it stay until deleted or until the user is
    forgotten.
    """

    agent_memory: Any = Field(exclude=True, description="The `AgentMemory` of a user.")

    @classmethod
    def of(cls, agent_memory: AgentMemory, **options: Any) -> GraphmemMemory:
        """Return a memory of a user; `options` are the fields of `Memory`, such as `token_limit`."""
        block = GraphmemMemoryBlock(agent_memory=agent_memory, accept_short_term_memory=False)
        blocks = [block, *options.pop("memory_blocks", ())]
        session = {"session_id": agent_memory.session_id} if agent_memory.session_id else {}
        fields = {"token_limit": Memory.model_fields["token_limit"].default, **session, **options}
        return cls(agent_memory=agent_memory, memory_blocks=blocks, **fields)

    async def aput(self, message: ChatMessage) -> None:
        """Put a message into the history and send it to graphmem."""
        await super().aput(message)
        await self.agent_memory.record(turns_of([message]))

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        """Put messages into the history and send them to graphmem."""
        await super().aput_messages(messages)
        await self.agent_memory.record(turns_of(messages))


def turns_of(messages: Iterable[ChatMessage]) -> list[tuple[str, str]]:
    """Return the role and text of messages, without tool calls and their results."""
    turns = [(message.role.value, message.content or "") for message in messages]
    return [(role, text) for role, text in turns if role in _ROLES and text.strip()]
