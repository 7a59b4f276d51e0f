"""The Anthropic client with a memory. The memory runs in this process.

python examples/anthropic_chat_in_process.py mara "I live in Lund."
python examples/anthropic_chat_in_process.py mara "Where do I live?"
"""

import asyncio
import sys

from anthropic import AsyncAnthropic

from graphmem import GraphMemory
from graphmem.integrations import memory_of, wrap_anthropic


async def main(user_id: str, said: str) -> None:
    """Take one turn."""
    async with GraphMemory.open() as memory:
        client = wrap_anthropic(AsyncAnthropic(), user=user_id, memory=memory)
        answer = await client.messages.create(
            model="claude-sonnet-5-5", max_tokens=500, messages=[{"role": "user", "content": said}]
        )
        print("".join(block.text for block in answer.content if block.type == "text"))
        await memory_of(client).flush()  # before the memory is closed


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
