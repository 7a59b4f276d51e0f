"""The loop of an agent with a memory. Needs a server, `graphmem serve`, and its key in GRAPHMEM_API_KEY.

python examples/agent_loop.py mara "I live in Lund."
python examples/agent_loop.py mara "Where do I live?"
"""

import asyncio
import os
import sys
import uuid

from graphmem.client import AsyncClient


def ask_model(system: str, question: str) -> str:
    """Call your model here; this one says what it is told."""
    return system or "Nothing is known about this yet."


async def main(user_id: str, said: str) -> None:
    """Ask for the context of a question, answer with it, and store what both sides said."""
    url = os.environ.get("GRAPHMEM_URL", "http://127.0.0.1:8321")
    async with AsyncClient(os.environ["GRAPHMEM_API_KEY"], url) as memory:
        session_id = uuid.uuid4().hex
        context = await memory.context(user_id, said, session_id=session_id, token_budget=1000)
        answer = ask_model(context.preamble, said)
        turn = [{"role": "user", "content": said}, {"role": "assistant", "content": answer}]
        await memory.add_messages(user_id, turn, session_id=session_id)
        print(answer)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
