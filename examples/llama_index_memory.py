"""A chat engine of LlamaIndex with a memory. Needs a server, `graphmem serve`, and its key in GRAPHMEM_API_KEY.

python examples/llama_index_memory.py mara "I live in Lund."
python examples/llama_index_memory.py mara "Where do I live?"
"""

import asyncio
import os
import sys

from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import MockLLM

from graphmem.client import AsyncClient
from graphmem.integrations.agent_memory import AgentMemory
from graphmem.integrations.llama_index import GraphmemMemory


async def main(user_id: str, said: str) -> None:
    """Take one turn; the model repeats its prompt, so that you see what it is told."""
    url = os.environ.get("GRAPHMEM_URL", "http://127.0.0.1:8321")
    async with AsyncClient(os.environ["GRAPHMEM_API_KEY"], url) as client:
        memory = GraphmemMemory.of(AgentMemory(client, user_id))
        engine = SimpleChatEngine.from_defaults(llm=MockLLM(), memory=memory)
        print(await engine.achat(said))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
