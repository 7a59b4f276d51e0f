"""The OpenAI Agents SDK with a memory: its runner, its session and its tools, with answers of a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, Runner, SQLiteSession, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from graphmem.client import AsyncClient
from graphmem.integrations.agent_memory import AgentMemory
from graphmem.integrations.openai_agents import GraphmemSession, memory_tools, with_context
from graphmem.runtime.errors import Unauthenticated
from tests.integrations.conftest import list_turns


class ScriptedModel(Model):
    """Answers with prepared outputs and keeps what it was asked."""

    def __init__(self, *outputs: Any) -> None:
        self.outputs = list(outputs)
        self.instructions: list[str | None] = []
        self.inputs: list[Any] = []

    async def get_response(self, system_instructions: str | None, input: Any, *_: Any, **__: Any) -> ModelResponse:
        self.instructions.append(system_instructions)
        self.inputs.append(input)
        return ModelResponse(output=[self.outputs.pop(0)], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise AssertionError("no reply of these tests is streamed")


def say(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(id="m", content=[content], role="assistant", status="completed", type="message")


def call(name: str, arguments: str) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(name=name, arguments=arguments, call_id=f"call-{name}", type="function_call")


async def test_session_keeps_items_and_gives_turns_to_the_memory(client: AsyncClient) -> None:
    memory = AgentMemory(client, "ada", session_id="monday")
    session = GraphmemSession(SQLiteSession("monday"), memory)
    model = ScriptedModel(say("Noted."), say("Lund."))
    agent = Agent(name="A", model=model)
    await Runner.run(agent, "I live in Lund.", session=session)
    await Runner.run(agent, "Where do I live?", session=session)
    assert [item["content"] for item in model.inputs[1] if item.get("role") == "user"] == [
        "I live in Lund.", "Where do I live?",
    ]  # fmt: skip
    stored = (await client.session_messages("ada", "monday")).items
    assert [(message.role, message.content) for message in stored] == [
        ("user", "I live in Lund."), ("assistant", "Noted."), ("user", "Where do I live?"), ("assistant", "Lund."),
    ]  # fmt: skip
    assert await session.pop_item() is not None
    await session.clear_session()
    assert await session.get_items() == []


async def test_a_tool_call_keeps_the_context_of_its_turn_which_does_not_repeat_the_question(
    client: AsyncClient,
) -> None:
    await client.add("eva", {"content": "Eva lives in Lund"})
    memory = AgentMemory(client, "eva", session_id="monday")
    model = ScriptedModel(
        call("save_memory", '{"statement": "Eva moves to Malmo in May"}'), say("Lund."), say("Malmo.")
    )
    agent = Agent(name="A", model=model, instructions=with_context(memory, "Be brief."), tools=[*memory_tools(memory)])
    session = GraphmemSession(SQLiteSession("monday"), memory)
    await Runner.run(agent, "Where does Eva live?", session=session)
    await Runner.run(agent, "Where does Eva live?", session=session)
    first, of_tool, second = model.instructions
    assert first is not None
    assert "Eva lives in Lund" in first
    assert of_tool == first
    assert "Malmo" in (second or "")
    assert [given for given in model.instructions if "Where does Eva live?" in (given or "")] == []


async def test_tools_save_and_find_and_instructions_carry_the_context(client: AsyncClient) -> None:
    memory = AgentMemory(client, "ada")
    model = ScriptedModel(
        call("save_memory", '{"statement": "Ada is allergic to peanuts."}'),
        call("search_memory", '{"query": "allergies"}'),
        say("No peanuts."),
        say("Peanuts."),
    )
    agent = Agent(
        name="A", model=model, instructions=with_context(memory, "Be brief."), tools=list(memory_tools(memory))
    )
    result = await Runner.run(agent, "Remember that I am allergic to peanuts.")
    outputs = [item["output"] for item in model.inputs[2] if item.get("type") == "function_call_output"]
    assert outputs == ["Saved: Ada is allergic to peanuts.", "Ada is allergic to peanuts."]
    assert result.final_output == "No peanuts."
    await Runner.run(agent, "What must I not eat?")
    assert (model.instructions[-1] or "").startswith("Be brief.\n\n<graphmem_context>")
    assert "allergic to peanuts" in (model.instructions[-1] or "")


async def test_a_secret_is_not_saved_and_the_agent_hears_why(client: AsyncClient) -> None:
    said = await AgentMemory(client, "ada").save_memory("Ada's card number is 4111 1111 1111 1111.")
    assert said.startswith("Not saved: ")


async def test_half_an_emoji_is_left_out_and_the_other_turns_are_stored(client: AsyncClient) -> None:
    memory = AgentMemory(client, "mara", session_id="monday")
    await memory.record(
        [("user", "My dog is Rex"), ("user", "cut \ud83d"), ("assistant", "\ud83d"), ("user", "nul\x00")]
    )
    assert await list_turns(client) == [[("user", "My dog is Rex"), ("user", "cut"), ("user", "nul")]]


async def test_an_agent_goes_on_without_a_memory_that_is_away(caplog: pytest.LogCaptureFixture) -> None:
    async with AsyncClient("gm_any", "http://127.0.0.1:1", attempts=1) as client:
        memory = AgentMemory(client, "mara")
        assert await memory.build_context("Where do I live?") == ""
        await memory.record([("user", "I live in Lund."), ("assistant", "Noted.")])
        await memory.record([("user", "I have a cat.")])
        assert "cannot be" in await memory.search_memory("home")
    assert memory.failures.count == 3
    assert sum("not stored" in record.message for record in caplog.records) == 1


async def test_what_the_memory_refuses_is_an_error(address: str) -> None:
    async with AsyncClient("gm_wrong", address) as client:
        with pytest.raises(Unauthenticated):
            await AgentMemory(client, "mara").record([("user", "I live in Lund.")])
