"""An agent of Pydantic AI with a memory. Needs a server, `graphmem serve`, and its key in GRAPHMEM_API_KEY.

python examples/pydantic_ai_memory.py mara "I live in Lund."
python examples/pydantic_ai_memory.py mara "Where do I live?"
"""

import asyncio
import os
import sys
import uuid

from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory

from graphmem.client import AsyncClient
from graphmem.integrations.agent_memory import AgentMemory
from graphmem.integrations.pydantic_ai import context_processor, memory_toolset, record_run


async def main(user_id: str, said: str) -> None:
    """Take one turn in a session of its own."""
    url = os.environ.get("GRAPHMEM_URL", "http://127.0.0.1:8321")
    async with AsyncClient(os.environ["GRAPHMEM_API_KEY"], url) as client:
        memory = AgentMemory(client, user_id, session_id=uuid.uuid4().hex)
        agent = Agent(
            "openai:gpt-4.1-mini",
            instructions="Be brief.",
            toolsets=[memory_toolset(memory)],
            capabilities=[ProcessHistory(context_processor(memory))],
        )
        result = await agent.run(said)
        print(result.output)
        await record_run(memory, result.new_messages())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
