"""Pydantic AI with a memory: real agents whose model is a function."""

from __future__ import annotations

from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from graphmem.client import AsyncClient
from graphmem.integrations.agent_memory import AgentMemory
from graphmem.integrations.pydantic_ai import context_processor, memory_toolset, record_run


def contexts_in(messages: list[ModelMessage]) -> list[str]:
    return [
        part.content
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, SystemPromptPart)
    ]


async def test_tools_context_and_recording_work_in_one_conversation(client: AsyncClient) -> None:
    memory = AgentMemory(client, "ada", session_id="monday")
    asked: list[list[ModelMessage]] = []
    answers = [
        ModelResponse([ToolCallPart("save_memory", {"statement": "Ada plays the cello."})]),
        ModelResponse([ToolCallPart("search_memory", {"query": "instrument"})]),
        ModelResponse([TextPart("I will remember your cello.")]),
        ModelResponse([TextPart("The cello.")]),
    ]

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert {tool.name for tool in info.function_tools} == {"save_memory", "search_memory"}
        asked.append(list(messages))
        return answers.pop(0)

    agent = Agent(
        FunctionModel(answer),
        toolsets=[memory_toolset(memory)],
        capabilities=[ProcessHistory(context_processor(memory))],
    )
    first = await agent.run("I play the cello.")
    await record_run(memory, first.new_messages())
    second = await agent.run("What do I play?", message_history=first.all_messages())
    await record_run(memory, second.new_messages())

    assert "Ada plays the cello." in str(asked[2])
    assert [len(contexts_in(messages)) for messages in asked] == [0, 0, 0, 1], "nothing is known at first"
    assert "Ada plays the cello." in contexts_in(asked[3])[0]
    stored = (await client.session_messages("ada", "monday")).items
    assert [(message.role, message.content) for message in stored] == [
        ("user", "I play the cello."), ("assistant", "I will remember your cello."),
        ("user", "What do I play?"), ("assistant", "The cello."),
    ]  # fmt: skip


async def test_a_question_that_is_asked_again_gets_a_new_context(client: AsyncClient) -> None:
    process = context_processor(AgentMemory(client, "ada"))
    asked: list[ModelMessage] = [ModelRequest([UserPromptPart("What do I play?")])]
    assert contexts_in(await process(asked)) == []
    await client.add("ada", {"content": "Ada plays the cello."})
    (context,) = contexts_in(await process(asked))
    assert "cello" in context

    await client.add("ada", {"content": "Ada plays the viola."})
    called: list[ModelMessage] = [
        *asked,
        ModelResponse([ToolCallPart("f", {})]),
        ModelRequest([ToolReturnPart("f", "done", "1")]),
    ]
    assert contexts_in(await process(called)) == [context], "the requests of one run have the same context"


async def test_a_history_that_begins_with_the_agent_gets_a_context(client: AsyncClient) -> None:
    await client.add("ada", {"content": "Ada plays the cello."})
    process = context_processor(AgentMemory(client, "ada"))
    history: list[ModelMessage] = [
        ModelResponse([TextPart("Hello!")]),
        ModelRequest([UserPromptPart("What do I play?")]),
    ]
    (context,) = contexts_in(await process(history))
    assert "cello" in context
