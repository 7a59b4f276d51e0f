"""The tutorials lead from nothing to a remembered answer: their commands are run in order, with a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from graphmem.client import AsyncClient
from graphmem.neo4j.driver import Graph
from graphmem.runtime.settings import Settings
from tests.cli.conftest import Cli, on_database, serving
from tests.documentation.reader import Reader
from tests.documentation.test_examples import read_page
from tests.provider_server import ProviderServer

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
async def served(
    database: Settings, graph: Graph, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Path, str]]:
    """The data folder and the address of a server that has no language model."""
    folder = tmp_path_factory.mktemp("served")
    async with serving(on_database(Cli(folder, {"GRAPHMEM_DATA_DIR": str(folder / "data")}), database)) as (url, _):
        yield folder / "data", url


@pytest.fixture
async def reader(cli: Cli, user: str, served: tuple[Path, str], provider: ProviderServer) -> AsyncIterator[Reader]:
    """Someone in an empty folder, with that server and a model at `provider`."""
    data, url = served
    (cli.folder / "data").symlink_to(data)
    # Neo4j plans the queries of the first context, for which a model call waits five seconds only.
    created = await cli("keys", "create", "first", "--role", "agent", "--json")
    async with AsyncClient(created.json["key"], url) as memory:
        said = {"role": "user", "content": "I live in Lund."}
        await memory.add_messages(f"{user}-before", [said], session_id="before", extract=False)
        for _ in range(2):
            await memory.context(f"{user}-before", "Where do I live?")
    environment = {
        "GRAPHMEM_URL": url,
        "OPENAI_API_KEY": "sk-test",
        "OPENAI_BASE_URL": f"{provider.url}/v1",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "ANTHROPIC_API_KEY": "sk-test",
        "ANTHROPIC_BASE_URL": provider.url,
    }
    yield Reader(cli, user, environment)
    assert (await cli("forget", "--user", user, "--yes")).code == 0


def assert_as_shown(seen: list[tuple[str, Any]]) -> None:
    assert seen
    assert [printed for _, printed in seen] == [shown for shown, _ in seen]


async def test_a_chat_program_remembers(reader: Reader, provider: ProviderServer) -> None:
    noted, unknown = "Noted: no peanuts.", "I do not know. Tell me, and I will keep it in mind."
    provider.prepare(noted, unknown, noted, "To peanuts.")
    assert_as_shown(await reader.follow("docs/chat-programs.md#tutorial"))
    told = [str(request.body) for request in provider.received]
    assert ["peanuts" in prompt for prompt in told] == [True, False, True, True]


async def test_an_agent_remembers(reader: Reader, provider: ProviderServer) -> None:
    provider.prepare("Noted.", "You play the cello.")
    assert_as_shown(await reader.follow("docs/agents.md#tutorial"))
    assert "I play the cello." in str(provider.received[1].body)
    assert await reader.run('graphmem search --user demo "Where was my instrument made?"')


async def test_a_program_written_for_mem0_takes_its_memories_along(reader: Reader) -> None:
    assert_as_shown(await reader.follow("docs/mem0.md#tutorial"))


def test_each_reader_is_led_to_a_tutorial() -> None:
    for tutorial in ("chat-programs.md", "agents.md", "mem0.md"):
        assert f"docs/{tutorial}" in read_page("README.md")
