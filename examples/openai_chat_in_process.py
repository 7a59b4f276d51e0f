"""The OpenAI client with a memory. The memory runs in this process.

python examples/openai_chat_in_process.py mara "I live in Lund."
python examples/openai_chat_in_process.py mara "Where do I live?"
"""

import asyncio
import sys

from openai import AsyncOpenAI

from graphmem import GraphMemory
from graphmem.integrations import memory_of, wrap_openai


async def main(user_id: str, said: str) -> None:
    """Take one turn."""
    async with GraphMemory.open() as memory:
        client = wrap_openai(AsyncOpenAI(), user=user_id, memory=memory)
        answer = await client.chat.completions.create(
            model="gpt-4.1-mini", messages=[{"role": "user", "content": said}]
        )
        print(answer.choices[0].message.content)
        await memory_of(client).flush()  # before the memory is closed


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
