"""An agent with a memory, using OpenAI tool calling and any OpenAI-compatible server.

python examples/openai_agent.py mara "Please remember that I am allergic to peanuts."
python examples/openai_agent.py mara "What should I leave out when I cook for myself?"
"""

import asyncio
import json
import os
import sys
from typing import Any

from openai import AsyncOpenAI

from graphmem import GraphMemory
from graphmem.mcp import open_tool_client

MODEL = os.environ.get("GRAPHMEM_LLM_MODEL", "gpt-4.1-mini")
TOOLS = {"save_memory", "search_memory"}


async def reply(memory: GraphMemory, user_id: str, question: str) -> str | None:
    """Answer a question from the user's memory, and save what the user asks to be remembered."""
    async with open_tool_client(memory, user_id) as tools:
        functions: list[Any] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
            }
            for tool in (await tools.list_tools()).tools
            if tool.name in TOOLS
        ]
        messages: list[Any] = [
            {"role": "system", "content": tools.instructions},
            {"role": "user", "content": question},
        ]
        while True:
            completion = await AsyncOpenAI().chat.completions.create(model=MODEL, messages=messages, tools=functions)
            message = completion.choices[0].message
            calls: list[Any] | None = message.tool_calls
            if not calls:
                return message.content
            messages.append(message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
            for call in calls:
                result = await tools.call_tool(call.function.name, json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result_text(result)})


def result_text(result: Any) -> str | None:
    """Return the text of a tool's result, without the ids and times that this agent does not need."""
    text: str = result.content[0].text
    content: dict[str, Any] = {"hint": text} if result.is_error else json.loads(text)
    memories = "\n".join(memory["content"] for memory in content.get("memories", []))
    return memories or content.get("confirmation") or content.get("reason") or content.get("hint")


async def main(user_id: str, question: str) -> None:
    """Answer one question."""
    async with GraphMemory.open() as memory:
        print(await reply(memory, user_id, question))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
