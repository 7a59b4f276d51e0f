"""Adapters to frameworks whose packages are too large for the development environment, or do not fit into it.

Each is tested with the real package, in an environment with the light client, against a server.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from graphmem_api.app import create_app

from graphmem.app.bootstrap import Services
from graphmem.client import AsyncClient
from graphmem.neo4j.driver import Graph
from graphmem.runtime.settings import Settings
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.api.conftest import serve_app
from tests.packaging.conftest import INSTALL_SECONDS, ROOT, create_framework_environment, run_python

pytestmark = pytest.mark.timeout(INSTALL_SECONDS + 200)


@pytest.fixture(scope="module")
async def server(database: Settings, graph: Graph) -> AsyncIterator[tuple[Services, str]]:
    """Services that run no jobs, and the address of their server."""
    async with Services.open(database, worker=False) as services, serve_app(create_app(services, database)) as address:
        yield services, address


@pytest.fixture
async def key(server: tuple[Services, str], tenant: str) -> str:
    created = await server[0].keys.create(tenant, ApiKeyIn(name="agent", role=KeyRole.AGENT))
    return created.key


@pytest.fixture
async def client(server: tuple[Services, str], key: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(key, server[1]) as client:
        yield client


@pytest.fixture(scope="module")
async def llama_index(client_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with LlamaIndex."""
    return await create_framework_environment(
        tmp_path_factory.mktemp("llama"), client_wheel, "llama-index-core==0.14.25"
    )


@pytest.fixture(scope="module")
async def google_adk(client_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with Google's Agent Development Kit."""
    return await create_framework_environment(tmp_path_factory.mktemp("adk"), client_wheel, "google-adk==2.13.0")


RUN_EXAMPLE = """
import runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
print("the example has ended")
"""
"""Runs an example in the process that looks at more of the framework: importing one takes most of the time."""


async def run(python: Path, folder: Path, server: tuple[Services, str], key: str, *arguments: str) -> str:
    """Run Python with the address and the key of the server, and return what it prints."""
    call = partial(run_python, python, *arguments, cwd=folder, GRAPHMEM_URL=server[1], GRAPHMEM_API_KEY=key)
    return await asyncio.to_thread(call)


async def run_both(
    python: Path, folder: Path, server: tuple[Services, str], key: str, example: str, more: str
) -> tuple[str, str]:
    """Run an example, which mara asks where she lives, and further code; return what each of them prints."""
    script = str(shutil.copy(ROOT / "examples" / example, folder))
    asked = (script, "mara", "Where do I live?")
    printed = await run(python, folder, server, key, "-c", RUN_EXAMPLE + more, *asked)
    by_example, by_more = printed.split("the example has ended\n")
    return by_example, by_more


async def say(client: AsyncClient, user: str) -> list[tuple[str, str]]:
    """Return what was said in all sessions of a user."""
    sessions = (await client.sessions(user)).items
    pages = [await client.session_messages(user, session.session_id) for session in reversed(sessions)]
    return [(message.role.value, message.content) for page in pages for message in page.items]


LLAMA_BLOCK = """
import asyncio, os
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory
from graphmem.client import AsyncClient
from graphmem.integrations.agent_memory import AgentMemory
from graphmem.integrations.llama_index import GraphmemMemory, GraphmemMemoryBlock

async def main():
    async with AsyncClient(os.environ["GRAPHMEM_API_KEY"], os.environ["GRAPHMEM_URL"]) as client:
        block = GraphmemMemoryBlock(agent_memory=AgentMemory(client, "lena", session_id="s"))
        memory = Memory.from_defaults(session_id="s", token_limit=60, token_flush_size=20, memory_blocks=[block])
        for number in range(8):
            await memory.aput(ChatMessage(role="user", content=f"I have seen film number {number} of the series."))
            await memory.aput(ChatMessage(role="tool", content="a result of a tool"))
        print(sum("Lena" in (message.content or "") for message in await memory.aget()))
        kept = GraphmemMemory.of(AgentMemory(client, "ada", session_id="t"), token_limit=3000)
        played = ChatMessage(role="user", content="I play chess.")
        await kept.aput_messages([played, ChatMessage(role="system", content="x")])
        print(len(await kept.aget_all()), kept.session_id)
        print(len(kept.model_dump()) > 0)

asyncio.run(main())
"""


async def test_a_llama_index_chat_is_told_what_is_known_and_a_block_gets_what_leaves_the_short_term_memory(
    llama_index: Path, server: tuple[Services, str], key: str, client: AsyncClient, tmp_path: Path
) -> None:
    await client.add("mara", {"content": "Mara lives in Lund."})
    await client.add("lena", {"content": "Lena likes long series of films."})
    chat, block = await run_both(llama_index, tmp_path, server, key, "llama_index_memory.py", LLAMA_BLOCK)
    assert "Mara lives in Lund." in chat
    assert "<graphmem>" in chat
    said = await say(client, "mara")
    assert said[0] == ("user", "Where do I live?")
    assert said[1][0] == "assistant"
    assert len(said) == 2
    with_context, kept, dumped = block.splitlines()
    assert (with_context, kept, dumped) == ("1", "2 t", "True")
    said = await say(client, "lena")
    assert said[0] == ("user", "I have seen film number 0 of the series.")
    assert {role for role, _ in said} == {"user"}
    assert len(said) < 8
    assert await say(client, "ada") == [("user", "I play chess.")]


ADK_SERVICE = """
import asyncio, os
from google.adk.events import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai.types import Content, FunctionCall, Part
from graphmem.client import AsyncClient
from graphmem.integrations.google_adk import GraphmemMemoryService

def event(author, text, **fields):
    return Event(author=author, content=Content(parts=[Part(text=text)]), **fields)

async def main():
    async with AsyncClient(os.environ["GRAPHMEM_API_KEY"], os.environ["GRAPHMEM_URL"]) as client:
        service = GraphmemMemoryService(client, shared_by_apps=True)
        who = {"app_name": "shop", "user_id": "mara"}
        events = [
            event("user", "My cat is called Momo."),
            event("cook", "What a nice name."),
            event("cook", "partial", partial=True),
            Event(author="cook", content=Content(parts=[Part(function_call=FunctionCall(name="f", args={}))])),
        ]
        session = Session(id="s1", events=events, **who)
        await service.add_session_to_memory(session)
        await service.add_session_to_memory(session)
        more = event("user", "Momo is three years old.")
        await service.add_events_to_memory(events=[more], session_id="s1", custom_metadata={"from": "app"}, **who)
        entry = MemoryEntry(content=Content(parts=[Part(text="Mara likes oolong tea.")]), custom_metadata={"a": "b"})
        await service.add_memory(memories=[entry], **who)
        mixed = [
            MemoryEntry(content=Content(parts=[Part(text="x" * 9000)])),
            MemoryEntry(
                content=Content(parts=[Part(text="Mara plays chess.")]), author="coach", timestamp="2024-05-01T10:00:00"
            ),
            MemoryEntry(content=Content(parts=[Part(text="Mara's card is 4111 1111 1111 1111.")])),
        ]
        try:
            await service.add_memory(memories=mixed, **who)
        except Exception as error:
            print("statement 1" in str(error), "statement 2" in str(error), "statement 3" in str(error))
        (kept,) = (await service.search_memory(query="Who plays chess?", **who)).memories[:1]
        print(kept.content.parts[0].text, kept.author, kept.timestamp)
        found = await service.search_memory(query="What does Mara drink?", **who)
        first = found.memories[0]
        print(first.content.parts[0].text, first.custom_metadata, bool(first.timestamp))
        told = await service.search_memory(query="What is the name of my cat?", **who)
        print(any("Momo" in entry.content.parts[0].text and not entry.id for entry in told.memories))
        print((await service.search_memory(query=" ", **who)).memories)
        await service.delete_memory(memory_id=first.id, **who)
        left = (await service.search_memory(query="What does Mara drink?", **who)).memories
        print(any(entry.id == first.id for entry in left))
        try:
            await service.delete_memory(**who)
        except ValueError as error:
            print(error)

asyncio.run(main())
"""


async def test_an_agent_of_google_remembers_and_the_memory_service_stores_each_event_once_saves_finds_and_deletes(
    google_adk: Path, server: tuple[Services, str], key: str, client: AsyncClient, tmp_path: Path
) -> None:
    await client.add("example:mara", {"content": "Mara lives in Lund."})
    agent, service = await run_both(google_adk, tmp_path, server, key, "google_adk_memory.py", ADK_SERVICE)
    assert "Mara lives in Lund." in agent
    said = await say(client, "example:mara")
    assert said[0] == ("user", "Where do I live?")
    assert said[1] == ("assistant", "Mara lives in Lund.")
    mixed, kept, saved, told, nothing, left, refused = service.splitlines()
    assert mixed == "True False True"
    assert kept == "Mara plays chess. coach 2024-05-01T10:00:00+00:00"
    assert saved == "Mara likes oolong tea. {'a': 'b'} True"
    assert (told, nothing, left) == ("True", "[]", "False")
    assert refused.startswith("Give the id of a memory")
    assert await say(client, "mara") == [
        ("user", "My cat is called Momo."),
        ("assistant", "What a nice name."),
        ("user", "Momo is three years old."),
    ]
