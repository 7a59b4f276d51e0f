"""The client of Anthropic with a memory: what it sends, what it returns, and what is stored."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import anthropic
import pytest
from anthropic import beta_tool
from anthropic.types import Message
from pydantic import BaseModel

from graphmem.client import AsyncClient, Client
from graphmem.integrations import memory_of, wrap_anthropic
from tests.integrations.conftest import list_turns
from tests.provider_server import Answer, ProviderServer

CALL: dict[str, Any] = {"model": "m", "max_tokens": 100}
QUESTION: Any = [{"role": "user", "content": "Where do I live?"}]
TOOLS: Any = [{"name": "get_weather", "description": "The weather.", "input_schema": {"type": "object"}}]


def connect(provider: ProviderServer) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="sk-test", base_url=provider.url)


def connect_async(provider: ProviderServer) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(api_key="sk-test", base_url=provider.url)


@pytest.mark.usefixtures("lund")
async def test_a_call_gets_a_context_and_its_turns_are_stored(
    provider: ProviderServer, client: AsyncClient, blocking: Client
) -> None:
    provider.prepare("In Lund.", "Yes.")
    cached: Any = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    image: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}

    def talk() -> Message:
        with wrap_anthropic(connect(provider), user="mara", memory=blocking) as chat:
            assert isinstance(chat, anthropic.Anthropic)
            first: Message = chat.messages.create(**CALL, messages=QUESTION, system=cached)
            asked: Any = {"role": "user", "content": [{"type": "text", "text": "Is it this town?"}, image]}
            said: Any = {"role": "assistant", "content": first.content}
            chat.messages.create(**CALL, messages=[*QUESTION, said, asked])
            return first

    first = await asyncio.to_thread(talk)
    assert first.content[0].type == "text"
    assert first.content[0].text == "In Lund."
    sent = provider.received[0]
    assert sent.body["system"][0] == cached[0]
    assert "Mara lives in Lund." in sent.body["system"][1]["text"]
    assert (sent.body["messages"], sent.headers["authorization"]) == (QUESTION, "Bearer sk-test")
    assert await list_turns(client) == [
        [
            ("user", "Where do I live?"), ("assistant", "In Lund."),
            ("user", "Is it this town?\n[image]"), ("assistant", "Yes."),
        ]
    ]  # fmt: skip


@pytest.mark.usefixtures("lund")
async def test_streams_and_tools_stay_what_they_are(
    provider: ProviderServer, client: AsyncClient, blocking: Client
) -> None:
    provider.prepare(
        Answer("I look.", calls_tool=True), "It rains.", Answer("Again.", calls_tool=True), "Still rain.", "In Lund."
    )
    asked: list[str] = []

    @beta_tool
    def get_weather(city: str) -> str:
        """Return the weather of a city."""
        asked.append(city)
        return "Rain."

    def talk() -> None:
        with wrap_anthropic(connect(provider), user="mara", memory=blocking, session="s") as chat:
            with chat.messages.stream(**CALL, messages=QUESTION, tools=TOOLS) as stream:
                call = stream.get_final_message().content[1]
            assert call.type == "tool_use"
            assert call.input == {"city": "Lund"}
            said: Any = {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]}
            result: Any = {"type": "tool_result", "tool_use_id": call.id, "content": "Rain."}
            more: Any = [*QUESTION, said, {"role": "user", "content": [result]}]
            with chat.messages.stream(**CALL, messages=more, tools=TOOLS) as stream:
                assert "".join(stream.text_stream) == "It rains."
            told: Any = [{"role": "user", "content": "And now?"}]
            runner = chat.beta.messages.tool_runner(**CALL, messages=told, tools=[get_weather])
            assert [message.stop_reason for message in runner] == ["tool_use", "end_turn"]
            kinds = [event.type for event in chat.messages.create(**CALL, messages=QUESTION, stream=True)]
            assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")

    await asyncio.to_thread(talk)
    assert asked == ["Lund"]
    systems = [request.system for request in provider.received]
    assert "Mara lives in Lund." in systems[0]
    assert systems[0] == systems[1]
    assert "Mara lives in Lund." in systems[2]
    assert "system" not in provider.received[3].body, "the provider keeps that of the thread"
    assert await list_turns(client) == [
        [
            ("user", "Where do I live?"), ("assistant", "I look."), ("assistant", "It rains."),
            ("user", "And now?"), ("assistant", "Again."), ("assistant", "Still rain."), ("assistant", "In Lund."),
        ]
    ]  # fmt: skip


@pytest.mark.usefixtures("lund")
async def test_an_asynchronous_client_does_the_same(provider: ProviderServer, client: AsyncClient) -> None:
    class Place(BaseModel):
        city: str

    provider.prepare("In Lund.", "In Lund.", '{"city": "Lund"}')
    async with wrap_anthropic(connect_async(provider), user="mara", memory=client) as chat:
        assert isinstance(chat, anthropic.AsyncAnthropic)
        raw = await chat.messages.with_raw_response.create(**CALL, messages=QUESTION)
        assert raw.headers["x-graphmem-context-id"]
        async with chat.messages.stream(**CALL, messages=QUESTION) as stream:
            assert "".join([text async for text in stream.text_stream]) == "In Lund."
        parsed = await chat.messages.parse(**CALL, messages=QUESTION, output_format=Place)
        assert parsed.parsed_output == Place(city="Lund")
    assert all("Mara lives in Lund." in request.system for request in provider.received)
    (turns,) = await list_turns(client)
    assert turns[:2] == [("user", "Where do I live?"), ("assistant", "In Lund.")]


async def test_other_requests_and_errors_pass_as_they_are(provider: ProviderServer, client: AsyncClient) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    provider.prepare("", Answer(status=529, body=error))
    chat = wrap_anthropic(connect_async(provider), user="mara", memory=client).with_options(max_retries=0)
    await chat.messages.count_tokens(model="m", messages=QUESTION)
    with pytest.raises(anthropic.APIStatusError, match="Overloaded") as raised:
        await chat.messages.create(**CALL, messages=QUESTION)
    assert raised.value.status_code == 529
    await chat.close()
    assert provider.received[0].body == {"model": "m", "messages": QUESTION}
    assert await list_turns(client) == []


async def test_without_graphmem_the_model_answers(provider: ProviderServer) -> None:
    provider.prepare("Hello.")
    async with AsyncClient("gm_none", "http://127.0.0.1:9", attempts=1) as nobody:
        async with wrap_anthropic(connect_async(provider), user="mara", memory=nobody) as chat:
            raw = await chat.messages.with_raw_response.create(**CALL, messages=QUESTION)
        assert raw.headers["x-graphmem-memory"] == "unavailable"
        assert memory_of(chat).failures.count == 2
    assert provider.received[0].body["messages"] == QUESTION


def test_both_wrappers_take_the_same_options() -> None:
    from graphmem.integrations import wrap_openai

    openai_options, anthropic_options = (
        {name: (option.kind, option.default) for name, option in inspect.signature(wrap).parameters.items()}
        for wrap in (wrap_openai, wrap_anthropic)
    )
    assert openai_options == anthropic_options
