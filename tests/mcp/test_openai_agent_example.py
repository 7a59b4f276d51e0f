from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from graphmem.app.bootstrap import Services
from graphmem.graph_memory import GraphMemory
from graphmem.memories.filters import ListFilters
from graphmem.models.replay import ReplayServer, load_recordings
from graphmem.tenants.owners import Owner

AGENT = Path(__file__).parents[2] / "examples" / "openai_agent.py"
RECORDINGS = Path(__file__).parent / "recordings"
REMEMBER_REQUEST = "Please remember that I am allergic to peanuts."
QUESTION = "What should I leave out when I cook for myself?"


@pytest.fixture
def agent() -> ModuleType:
    spec = importlib.util.spec_from_file_location("openai_agent", AGENT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def run_conversation(agent: ModuleType, services: Services, owner: Owner) -> list[str]:
    memory = GraphMemory(services, owner.tenant)
    return [await agent.reply(memory, owner.user_id, message) for message in (REMEMBER_REQUEST, QUESTION)]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ReplayServer]:
    """Completions of a large language model, recorded with this example; any other prompt is refused."""
    with ReplayServer(RECORDINGS) as replay:
        monkeypatch.setenv("OPENAI_BASE_URL", replay.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        yield replay


@pytest.mark.req("QUINN-09", "QUINN-35")
async def test_the_agent_remembers_from_one_conversation_to_the_next(
    agent: ModuleType, services: Services, owner: Owner, model: ReplayServer
) -> None:
    confirmed, answered = await run_conversation(agent, services, owner)
    assert confirmed.startswith("Noted, I'll remember")
    assert "peanuts" in answered
    [memory] = (await services.memories.page(owner, ListFilters())).items
    assert memory.content == "The user is allergic to peanuts."
    assert (model.missing, sum(model.calls.values())) == ([], 4)


def test_the_recordings_hold_the_expected_prompts() -> None:
    requests = [recording["request"] for recording in load_recordings(RECORDINGS).values()]
    asked, asked_again = (request for request in requests if len(request["messages"]) == 2)
    for request in (asked, asked_again):
        assert {tool["function"]["name"] for tool in request["tools"]} == {"save_memory", "search_memory"}
        assert [message["role"] for message in request["messages"]] == ["system", "user"]
        assert "search_memory" in request["messages"][0]["content"]
    tool_texts = {
        request["messages"][-1]["content"] for request in requests if request["messages"][-1]["role"] == "tool"
    }
    assert tool_texts == {"Noted, I'll remember: The user is allergic to peanuts.", "The user is allergic to peanuts."}


async def test_the_agent_sends_identical_requests_each_time(
    agent: ModuleType, services: Services, owner: Owner, model: ReplayServer
) -> None:
    for tenant in (owner.tenant, f"{owner.tenant}-2"):
        await run_conversation(agent, services, Owner(tenant, owner.user_id))
    assert {*model.calls.values()} == {2}
    assert model.missing == []
