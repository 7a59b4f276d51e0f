"""The client of OpenAI with a memory: what it sends, what it returns, what is stored, and what failures change."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from pydantic import BaseModel

from graphmem import InvalidInput
from graphmem.client import AsyncClient, Client
from graphmem.integrations import memory_of, wrap_openai
from graphmem.runtime.errors import ConfigurationError
from tests.integrations.conftest import list_turns
from tests.provider_server import Answer, ProviderServer

QUESTION: Any = [{"role": "user", "content": "Where do I live?"}]
TOOLS: Any = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]


def connect(provider: ProviderServer, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(api_key="sk-test", base_url=f"{provider.url}/v1", **options)


def connect_async(provider: ProviderServer, **options: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="sk-test", base_url=f"{provider.url}/v1", **options)


@pytest.mark.usefixtures("lund")
async def test_a_call_gets_a_context_and_its_turns_are_stored(
    provider: ProviderServer, client: AsyncClient, blocking: Client
) -> None:
    provider.prepare("In Lund.", "Yes, in Sweden.")
    system: Any = {"role": "system", "content": "Be brief."}

    def talk() -> list[ChatCompletion]:
        with wrap_openai(connect(provider), user="mara", memory=blocking) as chat:
            assert isinstance(chat, openai.OpenAI)
            first = chat.chat.completions.create(model="m", messages=[system, *QUESTION], temperature=0.1)
            more: Any = [{"role": "assistant", "content": "In Lund."}, {"role": "user", "content": "In Sweden?"}]
            second = chat.chat.completions.create(model="m", messages=[system, *QUESTION, *more])
            return [first, second]

    first, second = await asyncio.to_thread(talk)
    assert (first.choices[0].message.content, second.choices[0].message.content) == ("In Lund.", "Yes, in Sweden.")
    sent = provider.received[0]
    assert sent.system.startswith("Be brief.\n\n<graphmem_context>")
    assert "Mara lives in Lund." in sent.system
    assert sent.body["temperature"] == 0.1
    assert sent.body["messages"][1:] == QUESTION
    assert sent.headers["authorization"] == "Bearer sk-test"
    assert await list_turns(client) == [
        [
            ("user", "Where do I live?"), ("assistant", "In Lund."),
            ("user", "In Sweden?"), ("assistant", "Yes, in Sweden."),
        ]
    ]  # fmt: skip


@pytest.mark.usefixtures("lund")
async def test_streams_and_calls_of_tools_stay_what_they_are(
    provider: ProviderServer, client: AsyncClient, blocking: Client
) -> None:
    provider.prepare(Answer("I look.", calls_tool=True), "It rains in Lund.")

    def talk(chat: openai.OpenAI) -> str:
        calls: dict[int, str] = {}
        for chunk in chat.chat.completions.create(model="m", messages=QUESTION, tools=TOOLS, stream=True):
            for call in chunk.choices[0].delta.tool_calls or []:
                assert call.function
                calls[call.index] = f"{call.function.name}({call.function.arguments})"
        assert calls == {0: 'get_weather({"city": "Lund"})'}
        said: Any = {"role": "assistant", "content": "I look.", "tool_calls": [{"id": "call_1", "type": "function"}]}
        result: Any = {"role": "tool", "tool_call_id": "call_1", "content": "Rain."}
        stream = chat.chat.completions.create(model="m", messages=[*QUESTION, said, result], stream=True)
        return "".join(chunk.choices[0].delta.content or "" for chunk in stream)

    with wrap_openai(connect(provider), user="mara", memory=blocking, session="s") as chat:
        assert await asyncio.to_thread(talk, chat) == "It rains in Lund."
        await asyncio.to_thread(memory_of(chat).flush)
    assert provider.received[0].system == provider.received[1].system
    assert "Mara lives in Lund." in provider.received[1].system
    assert await list_turns(client) == [
        [("user", "Where do I live?"), ("assistant", "I look."), ("assistant", "It rains in Lund.")]
    ]


@pytest.mark.usefixtures("lund")
async def test_helpers_parse_and_stream_raw_and_typed(provider: ProviderServer, blocking: Client) -> None:
    class Place(BaseModel):
        city: str

    provider.prepare('{"city": "Lund"}', "In Lund.", "In Lund.", "In Lund.")

    def talk() -> None:
        with wrap_openai(connect(provider), user="mara", memory=blocking) as chat:
            parsed = chat.chat.completions.parse(model="m", messages=QUESTION, response_format=Place)
            assert parsed.choices[0].message.parsed == Place(city="Lund")
            with chat.chat.completions.stream(model="m", messages=QUESTION) as stream:
                assert stream.get_final_completion().choices[0].message.content == "In Lund."
            raw = chat.with_options(timeout=9).chat.completions.with_raw_response.create(model="m", messages=QUESTION)
            assert raw.headers["x-graphmem-context-id"]
            assert raw.headers["x-of-provider"] == "kept"
            assert raw.parse().choices[0].message.content == "In Lund."
            assert blocking.rate_context("mara", raw.headers["x-graphmem-context-id"], 5).credited

    await asyncio.to_thread(talk)
    assert all("Mara lives in Lund." in request.system for request in provider.received)


@pytest.mark.usefixtures("lund")
async def test_responses_continue_their_session(
    provider: ProviderServer, client: AsyncClient, blocking: Client
) -> None:
    provider.prepare("In Lund.", "Yes.", "Right.")

    def talk() -> Response | None:
        with wrap_openai(connect(provider), user="mara", memory=blocking) as chat:
            first = chat.responses.create(model="m", input="Where do I live?", instructions="Be brief.")
            assert first.output_text == "In Lund."
            with chat.responses.stream(model="m", input="In Sweden?", previous_response_id=first.id) as stream:
                second = stream.get_final_response()
            final = None
            for event in chat.responses.create(
                model="m", input="In Europe?", previous_response_id=second.id, stream=True
            ):
                final = event.response if event.type == "response.completed" else None
            return final

    final = await asyncio.to_thread(talk)
    assert final is not None
    assert final.output_text == "Right."
    assert provider.received[0].system.startswith("Be brief.\n\n<graphmem_context>")
    assert "Mara lives in Lund." in provider.received[2].system
    assert provider.received[2].body["input"] == "In Europe?"
    texts = ["Where do I live?", "In Lund.", "In Sweden?", "Yes.", "In Europe?", "Right."]
    assert [[text for _, text in turns] for turns in await list_turns(client)] == [texts]


@pytest.mark.usefixtures("lund")
async def test_results_of_tools_continue_a_response(provider: ProviderServer, client: AsyncClient) -> None:
    provider.prepare(Answer(calls_tool=True), "It rains in Lund.")
    result: Any = {"type": "function_call_output", "call_id": "call_1", "output": "Rain."}
    async with wrap_openai(connect_async(provider), user="mara", memory=client) as chat:
        first = await chat.responses.create(model="m", input="How is the weather where I live?")
        second = await chat.responses.create(model="m", input=[result], previous_response_id=first.id)
    assert second.output_text == "It rains in Lund."
    assert provider.received[0].system == provider.received[1].system
    assert "Mara lives in Lund." in provider.received[1].system
    assert await list_turns(client) == [
        [("user", "How is the weather where I live?"), ("assistant", "It rains in Lund.")]
    ]


async def test_the_next_conversation_knows_what_was_said_a_moment_ago(
    provider: ProviderServer, client: AsyncClient, blocking: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PREVIOUS_SECONDS", "CONTEXT_SECONDS"):
        monkeypatch.setattr(f"graphmem.integrations.chat_memory.{name}", 60.0)
    said: Any = [{"role": "user", "content": "I live in Turin."}]

    def talk() -> None:
        with wrap_openai(connect(provider), user="ann", memory=blocking) as chat:
            for messages in (said, QUESTION):
                chat.chat.completions.create(model="m", messages=messages)

    provider.prepare("Noted.", "In Turin.", "Noted.", "In Turin.")
    await asyncio.to_thread(talk)
    chat = wrap_openai(connect_async(provider), user="bob", memory=client)
    for messages in (said, QUESTION):
        await chat.chat.completions.create(model="m", messages=messages)
    await chat.close()
    assert ["I live in Turin." in request.system for request in provider.received] == [False, True, False, True]


async def test_the_next_client_knows_what_was_said_to_the_one_before(
    provider: ProviderServer, client: AsyncClient, blocking: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs wrap a client for each request, or several at once: one waits for what another is storing."""
    for name in ("PREVIOUS_SECONDS", "CONTEXT_SECONDS"):
        monkeypatch.setattr(f"graphmem.integrations.chat_memory.{name}", 60.0)
    said: Any = [{"role": "user", "content": "I live in Turin."}]

    def talk() -> None:
        for messages in (said, QUESTION):
            chat = wrap_openai(connect(provider), user="ann", memory=blocking)
            chat.chat.completions.create(model="m", messages=messages)

    provider.prepare("Noted.", "In Turin.", "Noted.", "In Turin.")
    await asyncio.to_thread(talk)
    for messages in (said, QUESTION):
        chat = wrap_openai(connect_async(provider), user="bob", memory=client)
        await chat.chat.completions.create(model="m", messages=messages)
    await memory_of(chat).flush()
    assert ["I live in Turin." in request.system for request in provider.received] == [False, True, False, True]


@pytest.mark.usefixtures("lund")
async def test_an_asynchronous_client_does_the_same(provider: ProviderServer, client: AsyncClient) -> None:
    provider.prepare("In Lund.", "In Lund.", "In Lund.")
    chat = wrap_openai(connect_async(provider), user="mara", memory=client, session="s", budget=200, domains=["home"])
    assert isinstance(chat, openai.AsyncOpenAI)
    answer = await chat.chat.completions.create(model="m", messages=QUESTION)
    assert answer.choices[0].message.content == "In Lund."
    stream = await chat.chat.completions.create(model="m", messages=QUESTION, stream=True)
    assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == "In Lund."
    async with chat.responses.stream(model="m", input="Where do I live?") as events:
        assert (await events.get_final_response()).output_text == "In Lund."
    await chat.close()
    assert all("Mara lives in Lund." in request.system for request in provider.received)
    assert {message.domain for message in (await client.session_messages("mara", "s")).items} == {"home"}
    (turns,) = await list_turns(client)
    assert ("assistant", "In Lund.") in turns


async def test_a_stream_comes_as_it_is_sent(provider: ProviderServer, client: AsyncClient) -> None:
    provider.prepare("Slowly it comes.")
    provider.gate.clear()
    async with wrap_openai(connect_async(provider), user="mara", memory=client) as chat:
        stream = await chat.chat.completions.create(model="m", messages=QUESTION, stream=True)
        pieces = []
        async for chunk in stream:
            pieces.append(chunk.choices[0].delta.content)
            if pieces[-1] == "Slowly ":
                provider.gate.set()  # the rest is not sent before
        assert "".join(filter(None, pieces)) == "Slowly it comes."


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
async def test_streamed_calls_keep_their_connection(
    provider: ProviderServer, client: AsyncClient, library: Any
) -> None:
    provider.prepare(*["It comes in pieces."] * 2)
    own = library.AsyncClient()
    async with wrap_openai(connect_async(provider, http_client=own), user="mara", memory=client) as chat:
        for _ in provider.answers.copy():
            stream = await chat.chat.completions.create(model="m", messages=QUESTION, stream=True)
            assert [chunk async for chunk in stream]
    first, second = provider.received
    assert first.port == second.port


async def test_a_program_that_ends_at_once_loses_nothing(
    provider: ProviderServer, client: AsyncClient, address: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHMEM_URL", address)
    monkeypatch.setenv("GRAPHMEM_API_KEY", key)
    provider.prepare("Noted.", "Noted.")

    async def program() -> None:
        chat = wrap_openai(connect_async(provider), user="mara")
        await chat.chat.completions.create(model="m", messages=[{"role": "user", "content": "I play the cello."}])

    await asyncio.to_thread(asyncio.run, program())
    assert await list_turns(client) == [[("user", "I play the cello."), ("assistant", "Noted.")]]

    def blocking_program() -> None:
        chat = wrap_openai(connect(provider), user="ada")
        chat.chat.completions.create(model="m", messages=[{"role": "user", "content": "I play the oboe."}])
        memory_of(chat).flush()

    await asyncio.to_thread(blocking_program)
    assert await list_turns(client, "ada") == [[("user", "I play the oboe."), ("assistant", "Noted.")]]


@pytest.mark.usefixtures("lund")
async def test_read_only_stores_nothing(provider: ProviderServer, client: AsyncClient) -> None:
    provider.prepare("In Lund.")
    async with wrap_openai(connect_async(provider), user="mara", memory=client, read_only=True) as chat:
        await chat.chat.completions.create(model="m", messages=QUESTION)
    assert "Mara lives in Lund." in provider.received[0].system
    assert await list_turns(client) == []


async def test_what_is_said_for_a_space_is_shared_there_and_nowhere_else(
    provider: ProviderServer, client: AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    await client.add("mara", {"content": "Mara lives in Lund."})
    await client.put_space("atlas", title="Team Atlas", members=[{"user": "mara", "role": "owner"}])
    provider.prepare("In Lund.", "Who knows?")
    async with wrap_openai(connect_async(provider), user="mara", space="atlas", memory=client) as chat:
        await chat.chat.completions.create(model="m", messages=QUESTION)
    assert "Mara lives in Lund." in provider.received[0].system
    assert await list_turns(client) == []
    (session,) = (await client.sessions("mara", space="atlas")).items
    messages = (await client.session_messages("mara", session.session_id, space="atlas")).items
    assert [(message.name, message.content) for message in messages] == [
        ("mara", "Where do I live?"),
        (None, "In Lund."),
    ]
    await client.add("dora", {"content": "Dora lives in Oslo."})
    with caplog.at_level(logging.WARNING):
        async with wrap_openai(connect_async(provider), user="dora", space="atlas", memory=client) as chat:
            await chat.chat.completions.create(model="m", messages=QUESTION)
            assert memory_of(chat).failures.count == 1
    assert provider.received[1].body["messages"] == QUESTION, "without a right to the space there is no memory"
    assert "There is no such space." in caplog.text
    assert await list_turns(client, "dora") == []


async def test_without_graphmem_the_model_answers_and_one_warning_is_logged(
    provider: ProviderServer, caplog: pytest.LogCaptureFixture
) -> None:
    provider.prepare("Hello.", "Hello.", "Hello.")

    def talk() -> int:
        nobody = Client("gm_none", "http://127.0.0.1:9", attempts=1)
        with wrap_openai(connect(provider), user="mara", memory=nobody) as chat:
            raw = chat.chat.completions.with_raw_response.create(model="m", messages=QUESTION)
            assert raw.headers["x-graphmem-memory"] == "unavailable"
            assert raw.parse().choices[0].message.content == "Hello."
            chat.chat.completions.create(model="m", messages=QUESTION)
            memory_of(chat).flush()
            return memory_of(chat).failures.count

    with caplog.at_level(logging.WARNING, "graphmem"):
        assert await asyncio.to_thread(talk) == 4
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "a model is called without memory", "the turns of a call are not stored",
    ]  # fmt: skip
    assert provider.received[0].body == {"model": "m", "messages": QUESTION}


async def test_errors_of_the_provider_arrive_and_are_retried_as_before(
    provider: ProviderServer, client: AsyncClient
) -> None:
    busy = Answer(status=429, body={"error": {"message": "slow down", "type": "rate", "code": "busy"}})
    wrong = Answer(status=400, body={"error": {"message": "no such model", "type": "invalid", "code": "x"}})
    provider.prepare(busy, "Hello.", wrong)
    async with wrap_openai(connect_async(provider), user="mara", memory=client) as chat:
        await chat.chat.completions.create(model="m", messages=QUESTION)
        with pytest.raises(openai.BadRequestError, match="no such model") as raised:
            await chat.chat.completions.create(model="n", messages=[{"role": "user", "content": "Lost."}])
    assert raised.value.request_id
    assert len(provider.received) == 3
    assert await list_turns(client) == [[("user", "Where do I live?"), ("assistant", "Hello.")]]


async def test_a_stream_that_ends_early_is_stored_as_far_as_it_was_read(
    provider: ProviderServer, client: AsyncClient
) -> None:
    """A server may leave the reason to finish out, a program may stop reading, and it may keep the stream open."""
    provider.prepare(Answer("In Lund, near the church.", breaks_off=True), *["A cat is a fine animal."] * 2)
    async with wrap_openai(connect_async(provider), user="mara", memory=client, session="s") as chat:
        stream = await chat.chat.completions.create(model="m", messages=QUESTION, stream=True)
        assert [chunk async for chunk in stream]
        told: Any = [{"role": "user", "content": "I have a cat."}]
        async with await chat.chat.completions.create(model="m", messages=told, stream=True) as stream:
            await read_first_words(stream)
        again: Any = [{"role": "user", "content": "And a dog."}]
        kept_open = await chat.chat.completions.create(model="m", messages=again, stream=True)
        await read_first_words(kept_open)
        await memory_of(chat).flush()
    (turns,) = await list_turns(client)
    assert [role for role, _ in turns] == ["user", "assistant"] * 3
    assert turns[1][1].startswith("In Lund,")
    assert turns[3][1] == turns[5][1] == "A"


async def read_first_words(stream: Any) -> None:
    async for chunk in stream:
        if chunk.choices[0].delta.content:
            break


async def test_an_answer_whose_connection_breaks_is_not_stored(provider: ProviderServer, client: AsyncClient) -> None:
    provider.prepare(Answer("Never.", drops=True))
    async with wrap_openai(connect_async(provider), user="mara", memory=client) as chat:
        stream = await chat.chat.completions.create(model="m", messages=QUESTION, stream=True)
        with pytest.raises(openai.APIConnectionError):
            [chunk async for chunk in stream]
    assert await list_turns(client) == [[("user", "Where do I live?")]]


async def test_other_requests_pass_as_they_are(provider: ProviderServer, client: AsyncClient) -> None:
    provider.prepare("", "Hello.")
    async with wrap_openai(connect_async(provider), user="mara", memory=client) as chat:
        assert [model.id async for model in chat.models.list()] == ["m"]
        odd: Any = [{"role": "system", "content": "Say hello."}]
        await chat.chat.completions.create(model="m", messages=odd)
    assert provider.received[1].body == {"model": "m", "messages": odd}
    assert await list_turns(client) == []


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
async def test_the_callers_own_http_client_sends(provider: ProviderServer, client: AsyncClient, library: Any) -> None:
    seen: list[str] = []

    async def note(request: Any) -> None:
        seen.append(request.headers["x-of-caller"])

    provider.prepare("Hello.")
    own = library.AsyncClient(headers={"x-of-caller": "yes"}, event_hooks={"request": [note]})
    async with wrap_openai(connect_async(provider, http_client=own), user="mara", memory=client) as chat:
        stream = await chat.chat.completions.create(model="m", messages=QUESTION, stream=True)
        assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == "Hello."
    assert seen == ["yes"]
    assert own.is_closed


async def test_a_client_of_azure_has_a_memory(provider: ProviderServer, client: AsyncClient) -> None:
    provider.prepare("Hello.")
    azure = openai.AsyncAzureOpenAI(api_key="k", azure_endpoint=provider.url, api_version="2026-01-01")
    async with wrap_openai(azure, user="mara", memory=client) as chat:
        assert isinstance(chat, openai.AsyncAzureOpenAI)
        await chat.chat.completions.create(model="m", messages=QUESTION)
    assert provider.received[0].path == "/openai/deployments/m/chat/completions"
    assert await list_turns(client) == [[("user", "Where do I live?"), ("assistant", "Hello.")]]


async def test_one_client_serves_several_users_at_once(provider: ProviderServer, client: AsyncClient) -> None:
    provider.prepare(*["Hello."] * 6)
    base = connect_async(provider)
    chats = [wrap_openai(base, user=f"user-{number}", memory=client) for number in range(6)]
    await asyncio.gather(*(chat.chat.completions.create(model="m", messages=QUESTION) for chat in chats))
    for number, chat in enumerate(chats):
        await memory_of(chat).flush()
        assert await list_turns(client, f"user-{number}") == [[("user", "Where do I live?"), ("assistant", "Hello.")]]
    await base.close()


async def test_turns_of_threads_are_stored_in_their_order(
    provider: ProviderServer, client: AsyncClient, blocking: Client
) -> None:
    provider.prepare(*["Yes."] * 8)

    def talk() -> None:
        with wrap_openai(connect(provider), user="mara", memory=blocking, session="s") as chat:
            for number in range(8):
                told: Any = [{"role": "user", "content": f"Number {number}."}]
                chat.chat.completions.create(model="m", messages=told)

    await asyncio.to_thread(talk)
    (turns,) = await list_turns(client)
    assert [text for role, text in turns if role == "user"] == [f"Number {number}." for number in range(8)]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda provider, client: wrap_openai(connect(provider), user="mara", memory=client),
        lambda provider, client: wrap_openai(connect_async(provider), user=" ", memory=client),
        lambda provider, client: wrap_openai(
            wrap_openai(connect_async(provider), user="mara", memory=client), user="ada", memory=client
        ),
        lambda provider, client: wrap_openai(connect_async(provider), user="mara", memory=client, domains="home"),
        lambda provider, client: wrap_openai(connect_async(provider), user="{{user}}", memory=client),
        lambda provider, client: wrap_openai(connect_async(provider), user="mara", session="null", memory=client),
        lambda provider, client: memory_of(connect(provider)),
    ],
)
async def test_wrong_uses_say_what_to_do(
    provider: ProviderServer, client: AsyncClient, wrap: Callable[[ProviderServer, AsyncClient], Awaitable[Any] | Any]
) -> None:
    with pytest.raises(InvalidInput, match=r"^Pass |: |not filled in"):
        wrap(provider, client)


def test_without_a_key_wrapping_says_what_to_set(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRAPHMEM_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="GRAPHMEM_API_KEY"):
        wrap_openai(connect(provider), user="mara")


def test_the_wrapper_says_the_type_of_its_client() -> None:
    assert str(inspect.signature(wrap_openai).return_annotation) == "OpenAIClient"
