"""An agent of the OpenAI Agents SDK with a memory. Needs a server, `graphmem serve`, and its key in GRAPHMEM_API_KEY.

python examples/openai_agents_memory.py mara "I live in Lund."
python examples/openai_agents_memory.py mara "Where do I live?"
"""

import asyncio
import os
import sys
import uuid

from agents import Agent, Runner, SQLiteSession

from graphmem.client import AsyncClient
from graphmem.integrations.agent_memory import AgentMemory
from graphmem.integrations.openai_agents import GraphmemSession, memory_tools, with_context


async def main(user_id: str, said: str) -> None:
    """Take one turn in a session of its own."""
    url = os.environ.get("GRAPHMEM_URL", "http://127.0.0.1:8321")
    async with AsyncClient(os.environ["GRAPHMEM_API_KEY"], url) as client:
        session_id = uuid.uuid4().hex
        memory = AgentMemory(client, user_id, session_id=session_id)
        agent = Agent(name="Assistant", instructions=with_context(memory, "Be brief."), tools=[*memory_tools(memory)])
        session = GraphmemSession(SQLiteSession(session_id), memory)
        result = await Runner.run(agent, said, session=session)
        print(result.final_output)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
