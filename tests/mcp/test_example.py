from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from graphmem.bootstrap import GraphMemory
from graphmem.domain.identity import Owner
from graphmem.domain.listing import ListFilters
from graphmem.llm.replay import recording_key
from tests.llm.scripted import ScriptedServer, Step, says

AGENT = Path(__file__).parents[2] / "examples" / "openai_agent.py"
REMEMBER = "Please remember that I am allergic to peanuts."
ASK = "What should I leave out when I cook for myself?"


@pytest.fixture
def agent() -> ModuleType:
    spec = importlib.util.spec_from_file_location("openai_agent", AGENT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def calls(name: str, **arguments: Any) -> Step:
    """A completion that calls a tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return says(None, finish="tool_calls", tool_calls=[{"id": "call_0", "type": "function", "function": function}])


def script() -> ScriptedServer:
    return ScriptedServer(
        calls("save_memory", content="Mara is allergic to peanuts"),
        says("Noted, I'll remember that you are allergic to peanuts."),
        calls("search_memory", query="allergies and food preferences"),
        says("Leave out peanuts."),
    )


async def converse(agent: ModuleType, service: GraphMemory, owner: Owner) -> list[str]:
    return [await agent.reply(service, owner.user_id, asked, owner.tenant) for asked in (REMEMBER, ASK)]


@pytest.mark.req("QUINN-09", "QUINN-35")
async def test_the_agent_remembers_from_one_conversation_to_the_next(
    agent: ModuleType, service: GraphMemory, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    with script() as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        replies = await converse(agent, service, owner)
    assert replies == ["Noted, I'll remember that you are allergic to peanuts.", "Leave out peanuts."]
    [kept] = (await service.memories.page(owner, ListFilters())).items
    assert kept.content == "Mara is allergic to peanuts"
    asked, saved, asked_again, found = model.requests
    assert {tool["function"]["name"] for tool in asked["tools"]} == {"save_memory", "search_memory"}
    assert "search_memory" in asked["messages"][0]["content"]
    assert saved["messages"][-1]["content"] == "Noted, I'll remember: Mara is allergic to peanuts"
    assert [each["role"] for each in asked_again["messages"]] == ["system", "user"]
    assert found["messages"][-1]["content"] == "Mara is allergic to peanuts"


async def test_the_agent_says_the_same_to_the_model_each_time(
    agent: ModuleType, service: GraphMemory, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    for tenant in (owner.tenant, f"{owner.tenant}-2"):
        with script() as model:
            monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
            monkeypatch.setenv("OPENAI_API_KEY", "key")
            await converse(agent, service, Owner(tenant, owner.user_id))
        said.append([recording_key(request) for request in model.requests])
    assert said[0] == said[1]
