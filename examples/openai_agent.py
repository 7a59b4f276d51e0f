"""An agent that remembers, with OpenAI tool calling and any OpenAI-compatible server.

python examples/openai_agent.py mara "Please remember that I am allergic to peanuts."
python examples/openai_agent.py mara "What should I leave out when I cook for myself?"
"""

import asyncio
import json
import os
import sys

from openai import AsyncOpenAI

from graphmem import GraphMemory
from graphmem.mcp import open_tool_client

MODEL = os.environ.get("GRAPHMEM_LLM_MODEL", "gpt-4.1-mini")
TOOLS = {"save_memory", "search_memory"}


async def reply(memory, user_id, question, tenant="default"):
    """Answer a question with what is remembered of the user; remember what they ask to be remembered."""
    async with open_tool_client(memory, user_id, tenant) as tools:
        offered = [
            {
                "type": "function",
                "function": {"name": t.name, "description": t.description, "parameters": t.input_schema},
            }
            for t in (await tools.list_tools()).tools
            if t.name in TOOLS
        ]
        talk = [{"role": "system", "content": tools.instructions}, {"role": "user", "content": question}]
        while True:
            completion = await AsyncOpenAI().chat.completions.create(model=MODEL, messages=talk, tools=offered)
            answer = completion.choices[0].message
            if not answer.tool_calls:
                return answer.content
            talk.append(answer.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
            for call in answer.tool_calls:
                result = await tools.call_tool(call.function.name, json.loads(call.function.arguments))
                talk.append({"role": "tool", "tool_call_id": call.id, "content": words(result)})


def words(result):
    """Return what a tool says in words; ids and times are of no use to this agent."""
    told = result.structured_content or {"hint": result.content[0].text}
    found = "\n".join(each["content"] for each in told.get("memories", []))
    return found or told.get("confirmation") or told.get("reason") or told.get("hint")


async def main(user_id, question):
    """Answer one question."""
    async with GraphMemory.open() as memory:
        print(await reply(memory, user_id, question))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
