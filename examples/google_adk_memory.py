"""An agent of Google's ADK with a memory. Needs a server, `graphmem serve`, and its key in GRAPHMEM_API_KEY.

python examples/google_adk_memory.py mara "I live in Lund."
python examples/google_adk_memory.py mara "Where do I live?"
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator

from google.adk.agents import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai.types import Content, Part

from graphmem.client import AsyncClient
from graphmem.integrations.google_adk import GraphmemMemoryService

APP = "example"


class Librarian(BaseAgent):
    """Answers with what memory has; an `LlmAgent` would ask it by the tools `load_memory` or `preload_memory`."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        assert ctx.memory_service
        assert ctx.user_content
        asked = "".join(part.text or "" for part in ctx.user_content.parts or [])
        found = await ctx.memory_service.search_memory(app_name=APP, user_id=ctx.user_id, query=asked)
        known = [part.text for entry in found.memories for part in entry.content.parts or [] if part.text]
        text = "\n".join(known) or "Nothing is known about this yet."
        yield Event(author=self.name, invocation_id=ctx.invocation_id, content=Content(parts=[Part(text=text)]))


async def main(user_id: str, said: str) -> None:
    """Take one turn in a session of its own, and remember it."""
    url = os.environ.get("GRAPHMEM_URL", "http://127.0.0.1:8321")
    async with AsyncClient(os.environ["GRAPHMEM_API_KEY"], url) as client:
        sessions, memory = InMemorySessionService(), GraphmemMemoryService(client)
        runner = Runner(
            app_name=APP, agent=Librarian(name="librarian"), session_service=sessions, memory_service=memory
        )
        session = await sessions.create_session(app_name=APP, user_id=user_id)
        message = Content(role="user", parts=[Part(text=said)])
        async for event in runner.run_async(user_id=user_id, session_id=session.id, new_message=message):
            print("".join(part.text or "" for part in event.content.parts or []) if event.content else "")
        ended = await sessions.get_session(app_name=APP, user_id=user_id, session_id=session.id)
        assert ended
        await memory.add_session_to_memory(ended)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
