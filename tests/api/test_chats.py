"""Calls of models through the service, by the clients of the providers: what is sent on, sent back, and stored."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anthropic
import httpx
import openai
import pytest
from graphmem_api.app import create_app

from graphmem.app.bootstrap import Services
from graphmem.chats.protocol import CLOSING, OPENING
from graphmem.models.embedder import Embedder
from graphmem.runtime.settings import Settings
from graphmem.tenants.owners import Owner
from graphmem.text.token_counts import count_tokens
from tests.api.conftest import PROVIDER_KEY, Caller, serve_app
from tests.provider_server import Answer, ProviderServer

CHAT = "/openai/v1/chat/completions"
QUESTION: Any = [{"role": "user", "content": "Where do I live?"}]
ASK = {"model": "m", "messages": QUESTION}
AS_MARA = {"X-Graphmem-User": "mara"}
AS_NOBODY = {"X-Graphmem-User": f"u{uuid.uuid4().hex}", "X-Graphmem-Read-Only": "1"}

Connect = Callable[..., openai.AsyncOpenAI]


@asynccontextmanager
async def serving(settings: Settings, embedder: Embedder, **changed: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Serve with other settings, and yield a client with the first key."""
    settings = settings.model_copy(update=changed)
    assert settings.admin_key
    key = {"Authorization": f"Bearer {settings.admin_key.get_secret_value()}"}
    async with (
        Services.open(settings, worker=False, embedder=embedder) as services,
        serve_app(create_app(services, settings)) as address,
        httpx.AsyncClient(base_url=address, headers=key) as client,
    ):
        yield client


@pytest.fixture
async def connect(address: str, agent: httpx.AsyncClient) -> AsyncIterator[Connect]:
    """Make a client of OpenAI whose base URL is the service, with the key of an agent."""
    async with AsyncExitStack() as stack:

        def make(caller: httpx.AsyncClient = agent, **options: Any) -> openai.AsyncOpenAI:
            key = caller.headers["authorization"].partition(" ")[2]
            options.setdefault("default_headers", AS_MARA)
            client = openai.AsyncOpenAI(api_key=key, base_url=f"{address}/openai/v1", max_retries=0, **options)
            stack.push_async_callback(client.close)
            return client

        yield make


@pytest.fixture(scope="module", autouse=True)
async def warm(services: Services) -> AsyncIterator[None]:
    """Build the first contexts, as a server does after its start, and wait for each as long as it takes."""
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr("graphmem.chats.service.CONTEXT_SECONDS", 60.0)
    await services.warm_up.run()
    yield
    monkeypatch.undo()


@pytest.fixture
async def lund(agent: httpx.AsyncClient) -> None:
    """Mara lives in Lund."""
    saved = await agent.post("/v1/users/mara/memories", json={"memories": [{"content": "Mara lives in Lund."}]})
    saved.raise_for_status()


@pytest.fixture
def turns(agent: httpx.AsyncClient, services: Services) -> Callable[..., Awaitable[list[list[tuple[str, str]]]]]:
    """Return what was said in each session, the oldest session first, once all is stored."""

    async def list_turns(user: str = "mara") -> list[list[tuple[str, str]]]:
        await services.chats.flush()
        sessions = (await agent.get(f"/v1/users/{user}/sessions")).json()["items"]
        found = []
        for session in reversed(sessions):
            messages = await agent.get(f"/v1/users/{user}/sessions/{session['session_id']}/messages")
            found.append([(message["role"], message["content"]) for message in messages.json()["items"]])
        return found

    return list_turns


async def read(stream: openai.AsyncStream[Any]) -> str:
    """Return what the rest of a stream says."""
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])


async def test_the_next_conversation_knows_what_was_said_a_moment_ago(
    connect: Connect, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmem.chats.service.PREVIOUS_SECONDS", 60.0)
    provider.prepare("Noted.", "In Turin.")
    said: Any = [{"role": "user", "content": "I live in Turin."}]
    await connect().chat.completions.create(model="m", messages=said)
    await connect().chat.completions.create(**ASK)
    assert "I live in Turin." in provider.received[1].system


@pytest.mark.usefixtures("lund")
async def test_a_chat_completion_gets_a_context_and_its_turns_are_stored(
    connect: Connect, agent: httpx.AsyncClient, provider: ProviderServer, turns: Any
) -> None:
    provider.prepare("In Lund.", "Yes.")
    system: Any = {"role": "system", "content": "Be brief."}
    raw = await connect().chat.completions.with_raw_response.create(
        model="m", messages=[system, *QUESTION], extra_body={"of_later": {"a": [1]}}, extra_query={"beta": "true"}
    )
    assert raw.parse().choices[0].message.content == "In Lund."
    sent = provider.received[0]
    assert sent.system.startswith("Be brief.\n\n<graphmem_context>")
    assert "Mara lives in Lund." in sent.system
    assert (sent.body["of_later"], sent.body["messages"][1:], sent.query) == ({"a": [1]}, QUESTION, "beta=true")
    more: Any = [{"role": "assistant", "content": "In Lund."}, {"role": "user", "content": "In Sweden?"}]
    await connect().chat.completions.create(model="m", messages=[system, *QUESTION, *more])
    assert await turns() == [
        [
            ("user", "Where do I live?"), ("assistant", "In Lund."),
            ("user", "In Sweden?"), ("assistant", "Yes."),
        ]
    ]  # fmt: skip
    context_id = raw.headers["x-graphmem-context-id"]
    rated = await agent.post(f"/v1/users/mara/context/{context_id}/feedback", json={"score": 5})
    assert rated.json()["credited"]


async def test_the_provider_gets_its_own_key_and_no_header_of_ours(connect: Connect, provider: ProviderServer) -> None:
    provider.prepare("Hello.")
    client = connect(default_headers={**AS_MARA, "OpenAI-Organization": "org-1", "X-Forwarded-For": "10.0.0.1"})
    raw = await client.chat.completions.with_raw_response.create(model="m", messages=QUESTION)
    (sent,) = provider.received
    assert sent.headers["authorization"] == f"Bearer {PROVIDER_KEY}"
    assert (sent.headers["openai-organization"], sent.headers["accept-encoding"]) == ("org-1", "identity")
    assert not [name for name in sent.headers if name.startswith(("x-graphmem", "x-forwarded", "cookie"))]
    assert client.api_key not in json.dumps([sent.headers, sent.body])
    assert (raw.headers["x-of-provider"], raw.headers["x-upstream-request-id"][:4]) == ("kept", "req_")


@pytest.mark.usefixtures("lund")
async def test_a_stream_comes_as_it_is_sent(connect: Connect, provider: ProviderServer, turns: Any) -> None:
    provider.prepare("Slowly it comes.")
    provider.gate.clear()
    pieces: list[str | None] = []
    async for chunk in await connect().chat.completions.create(model="m", messages=QUESTION, stream=True):
        pieces.append(chunk.choices[0].delta.content)
        if pieces[-1] == "Slowly ":
            provider.gate.set()  # the rest is not sent before
    assert "".join(filter(None, pieces)) == "Slowly it comes."
    assert "Mara lives in Lund." in provider.received[0].system
    assert await turns() == [[("user", "Where do I live?"), ("assistant", "Slowly it comes.")]]


@pytest.mark.usefixtures("lund")
async def test_calls_of_tools_pass_and_the_question_keeps_its_context(
    connect: Connect, provider: ProviderServer, turns: Any
) -> None:
    provider.prepare(Answer("I look.", calls_tool=True), "It rains in Lund.")
    client = connect()
    first = await client.chat.completions.create(model="m", messages=QUESTION)
    assert first.choices[0].message.tool_calls
    said: Any = first.choices[0].message.model_dump(exclude_none=True)
    result: Any = {"role": "tool", "tool_call_id": "call_1", "content": "Rain, of which nothing is stored."}
    await client.chat.completions.create(model="m", messages=[*QUESTION, said, result])
    assert "Mara lives in Lund." in provider.received[1].system
    assert await turns() == [
        [("user", "Where do I live?"), ("assistant", "I look."), ("assistant", "It rains in Lund.")]
    ]


async def test_the_user_comes_from_the_header_the_body_or_the_key(
    caller: Caller, provider: ProviderServer, turns: Any
) -> None:
    provider.prepare(*["Yes."] * 4)
    everybody = await caller("agent")
    only_ines = await caller("agent", users=["ines"])
    two = await caller("agent", users=["ines", "ada"])

    async def status(key: httpx.AsyncClient, header: str | None = None, body: str | None = None) -> int:
        sent = {"X-Graphmem-User": header} if header else {}
        answer = await key.post(CHAT, json=ASK | ({"user": body} if body else {}), headers=sent)
        return answer.status_code

    assert await status(everybody, header="mara", body="other") == 200
    assert await status(everybody, body="ada") == 200
    assert await status(only_ines) == 200
    assert await status(everybody) == 422
    assert await status(two) == 422
    assert await status(only_ines, header="mara") == 403
    assert await status(only_ines, body="mara") == 403
    assert await status(await caller("analyst"), header="mara") == 403
    assert await status(httpx.AsyncClient(base_url=everybody.base_url), header="mara") == 401
    for user in ("mara", "ada", "ines"):
        assert await turns(user) == [[("user", "Where do I live?"), ("assistant", "Yes.")]], user
    assert await turns("other") == []
    named = await everybody.post(CHAT, json=ASK, headers=[(b"x-graphmem-user", "用户".encode())])
    assert named.status_code == 200
    assert len(await turns("用户")) == 1


async def test_headers_say_how_the_memory_is_used(
    agent: httpx.AsyncClient, provider: ProviderServer, services: Services, turns: Any
) -> None:
    memories = [{"content": f"Mara grows the tomato variety number {number}."} for number in range(40)]
    (await agent.post("/v1/users/mara/memories", json={"memories": memories})).raise_for_status()
    ask = {"model": "m", "messages": [{"role": "user", "content": "Which tomatoes do I grow?"}]}
    provider.prepare("Many.", "Many.", "Many.")
    await agent.post(CHAT, json=ask, headers={**AS_MARA, "X-Graphmem-Budget": "2000", "X-Graphmem-Read-Only": "true"})
    await agent.post(CHAT, json=ask, headers={**AS_MARA, "X-Graphmem-Budget": "60", "X-Graphmem-Session": "s"})
    small, large = (count_tokens(provider.received[index].system) for index in (1, 0))
    assert small <= 60 + count_tokens(OPENING + CLOSING) < large
    await agent.post(CHAT, json=ask, headers={**AS_MARA, "X-Graphmem-Session": "s", "X-Graphmem-Domains": "Garden,,"})
    await services.chats.flush()
    stored = (await agent.get("/v1/users/mara/sessions/s/messages")).json()["items"]
    assert [(message["content"], message["domain"]) for message in stored][:2] == [
        ("Which tomatoes do I grow?", None), ("Many.", None),
    ]  # fmt: skip
    assert len(await turns()) == 1
    many = ",".join(map(str, range(11)))
    assert (await agent.post(CHAT, json=ask, headers={**AS_MARA, "X-Graphmem-Domains": many})).status_code == 422
    refused = await agent.post(CHAT, json=ask, headers={**AS_MARA, "X-Graphmem-Budget": "many"})
    assert refused.status_code == 422
    assert "x-graphmem-budget" in refused.json()["error"]["message"]


async def make_atlas(admin: httpx.AsyncClient, **roles: str) -> None:
    """Make a space with members by their role."""
    members = [{"user": user, "role": role} for user, role in roles.items()]
    made = await admin.put("/v1/spaces/atlas", json={"title": "Team Atlas", "members": members})
    assert made.is_success, made.text


async def read_space(admin: httpx.AsyncClient, user: str) -> list[tuple[str, str, str | None]]:
    """Return who sent what, by which name, of all messages in the space, in order."""
    listed = await admin.get(f"/v1/users/{user}/sessions", params={"space": "atlas"})
    found = []
    for session in reversed(listed.json()["items"]):
        path = f"/v1/users/{user}/sessions/{session['session_id']}/messages"
        messages = (await admin.get(path, params={"space": "atlas"})).json()["items"]
        found += [(message["user_id"], message["content"], message["name"]) for message in messages]
    return found


async def test_turns_go_to_the_space_that_the_call_names(
    admin: httpx.AsyncClient, agent: httpx.AsyncClient, provider: ProviderServer, services: Services, turns: Any
) -> None:
    await make_atlas(admin, mara="writer", ines="writer", cy="reader")
    shared = {"content": "The launch of Atlas is on Friday.", "space": "atlas"}
    assert (await agent.post("/v1/users/ines/memories", json={"memories": [shared]})).is_success
    provider.prepare("On Friday.", "Yes.", "So it is.")
    in_atlas = {**AS_MARA, "X-Graphmem-Space": "atlas"}
    ask = {"model": "m", "messages": [{"role": "user", "content": "When is the launch of Atlas?"}]}
    answer = await agent.post(CHAT, json=ask, headers=in_atlas)
    assert answer.headers["x-graphmem-context-id"]
    assert "The launch of Atlas is on Friday." in provider.received[0].system
    assert "x-graphmem-space" not in provider.received[0].headers
    await services.chats.flush()
    turn = [("mara", "When is the launch of Atlas?", "mara"), ("mara", "On Friday.", None)]
    assert await read_space(admin, "ines") == turn
    assert await turns() == []

    same = [*ask["messages"], {"role": "assistant", "content": "On Friday."}, {"role": "user", "content": "Sure?"}]
    await agent.post(CHAT, json={"model": "m", "messages": same}, headers=in_atlas)
    await services.chats.flush()
    more = [("mara", "Sure?", "mara"), ("mara", "Yes.", None)]
    assert await read_space(admin, "ines") == [*turn, *more], "what is sent again is stored once"

    read_only = {"X-Graphmem-User": "cy", "X-Graphmem-Space": "atlas", "X-Graphmem-Read-Only": "true"}
    answer = await agent.post(CHAT, json=ask, headers=read_only)
    assert answer.headers["x-graphmem-context-id"], "a reader may ask"
    await services.chats.flush()
    assert await read_space(admin, "ines") == [*turn, *more]
    refused = await agent.post(CHAT, json=ask, headers={**AS_MARA, "X-Graphmem-Space": "x" * 300})
    assert refused.status_code == 422
    assert "x-graphmem-space" in refused.json()["error"]["message"]


async def test_without_a_right_to_the_space_a_call_goes_through_without_memory(
    admin: httpx.AsyncClient, agent: httpx.AsyncClient, provider: ProviderServer, services: Services, turns: Any
) -> None:
    await make_atlas(admin, mara="writer", cy="reader")
    cases = {"cy": "atlas", "dora": "atlas", "mara": "unknown"}
    provider.prepare(*["In Lund."] * len(cases))
    for number, (user, space) in enumerate(cases.items()):
        told = {"memories": [{"content": "I live in Lund."}]}
        assert (await agent.post(f"/v1/users/{user}/memories", json=told)).is_success
        answer = await agent.post(CHAT, json=ASK, headers={"X-Graphmem-User": user, "X-Graphmem-Space": space})
        assert answer.json()["choices"][0]["message"]["content"] == "In Lund.", (user, space)
        assert answer.headers["x-graphmem-memory"] == "unavailable", (user, space)
        assert "x-graphmem-context-id" not in answer.headers, (user, space)
        assert provider.received[number].body == ASK, (user, space)
        assert await turns(user) == [], f"nothing is stored where {user} did not ask for it"
    assert await read_space(admin, "mara") == []


async def test_what_a_member_says_who_is_removed_meanwhile_is_not_stored(
    connect: Connect, admin: httpx.AsyncClient, provider: ProviderServer, services: Services, turns: Any
) -> None:
    await make_atlas(admin, mara="writer", ines="owner")
    provider.prepare("Slowly it comes.")
    provider.gate.clear()
    client = connect(default_headers={**AS_MARA, "X-Graphmem-Space": "atlas"})
    stream = await client.chat.completions.create(model="m", messages=QUESTION, stream=True)
    assert (await admin.delete("/v1/spaces/atlas/members/mara")).status_code == 204
    provider.gate.set()
    assert await read(stream) == "Slowly it comes."
    await services.chats.flush()
    assert await read_space(admin, "ines") == []
    assert await turns() == []


async def test_nothing_is_stored_in_a_space_that_is_erased_and_made_again_meanwhile(
    connect: Connect, admin: httpx.AsyncClient, provider: ProviderServer, services: Services
) -> None:
    await make_atlas(admin, mara="writer")
    provider.prepare("Slowly it comes.")
    provider.gate.clear()
    client = connect(default_headers={**AS_MARA, "X-Graphmem-Space": "atlas"})
    stream = await client.chat.completions.create(model="m", messages=QUESTION, stream=True)
    assert (await admin.delete("/v1/spaces/atlas")).is_success
    await make_atlas(admin, mara="writer")
    provider.gate.set()
    assert await read(stream) == "Slowly it comes."
    await services.chats.flush()
    assert await read_space(admin, "mara") == []


async def test_errors_of_the_provider_arrive_as_they_are(
    agent: httpx.AsyncClient, provider: ProviderServer, turns: Any
) -> None:
    body = {"error": {"message": "slow down", "type": "rate", "code": "busy"}}
    provider.prepare(Answer(status=429, body=body), Answer(status=400, body=body))
    busy = await agent.post(CHAT, json=ASK, headers=AS_MARA)
    assert (busy.status_code, busy.json(), busy.headers["retry-after-ms"]) == (429, body, "1")
    assert (await agent.post(CHAT, json={**ASK, "stream": True}, headers=AS_MARA)).json() == body
    assert await turns() == []


async def test_what_is_not_understood_is_passed_on(agent: httpx.AsyncClient, provider: ProviderServer) -> None:
    provider.prepare("Hello.", "Hello.")
    odd = {"model": "m", "messages": [{"role": "system", "content": "Say hello."}], "n": 1.50, "big": 2**70}
    answer = await agent.post(CHAT, json=odd)
    assert answer.status_code == 200
    assert provider.received[0].body == odd
    assert not [name for name in answer.headers if name.startswith("x-graphmem")]
    assert (await agent.get("/openai/v1/models")).json()["data"][0]["id"] == "m"
    assert provider.received[1].path == "/v1/models"


async def test_an_answer_without_a_reason_to_finish_is_stored(
    connect: Connect, provider: ProviderServer, turns: Any
) -> None:
    provider.prepare(Answer("In Lund, it ends here and there.", breaks_off=True))
    said = await read(await connect().chat.completions.create(model="m", messages=QUESTION, stream=True))
    assert said.startswith("In Lund")
    assert await turns() == [[("user", "Where do I live?"), ("assistant", said.strip())]]


async def test_an_answer_that_breaks_off_breaks_off_for_the_caller(
    connect: Connect, provider: ProviderServer, turns: Any
) -> None:
    provider.prepare(Answer("Never.", drops=True))
    dropped = await connect().chat.completions.create(model="m", messages=QUESTION, stream=True)
    with pytest.raises(openai.APIConnectionError):
        await read(dropped)
    assert await turns() == [[("user", "Where do I live?")]]


async def test_a_caller_who_leaves_ends_the_call(connect: Connect, provider: ProviderServer, turns: Any) -> None:
    provider.prepare("Slowly it comes.")
    provider.gate.clear()
    async with await connect().chat.completions.create(model="m", messages=QUESTION, stream=True) as stream:
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
    for _ in range(100):
        if found := await turns():
            break
        await asyncio.sleep(0.05)
    provider.gate.set()
    assert found == [[("user", "Where do I live?"), ("assistant", "Slowly")]]


async def test_nothing_is_stored_of_a_user_who_is_forgotten_meanwhile(
    connect: Connect, agent: httpx.AsyncClient, provider: ProviderServer, services: Services, tenant: str, turns: Any
) -> None:
    (await agent.post("/v1/users/mara/memories", json={"memories": [{"content": "x y z"}]})).raise_for_status()
    provider.prepare("Slowly it comes.")
    provider.gate.clear()
    stream = await connect().chat.completions.create(model="m", messages=QUESTION, stream=True)
    owner = Owner(tenant, "mara")
    assert (await services.forgetting.forget(owner)).residue == 0
    provider.gate.set()
    assert await read(stream) == "Slowly it comes."
    assert await turns() == []
    assert owner not in await services.chats._users.list_owners(tenant)


async def test_without_a_provider_the_answer_says_what_to_set(settings: Settings, embedder: Embedder) -> None:
    async with serving(settings, embedder, upstream_openai_url=None, upstream_openai_key=None) as client:
        answer = await client.post(CHAT, json=ASK, headers=AS_NOBODY)
    assert (answer.status_code, answer.json()["error"]["code"]) == (501, "not_configured")
    assert "GRAPHMEM_UPSTREAM_OPENAI_KEY" in answer.json()["error"]["message"]


async def test_a_provider_that_is_away_is_a_503(settings: Settings, embedder: Embedder) -> None:
    async with serving(settings, embedder, upstream_openai_url="http://127.0.0.1:9/v1") as client:
        answer = await client.post(CHAT, json=ASK, headers=AS_NOBODY)
    assert (answer.status_code, answer.json()["error"]["type"]) == (503, "server_error")


@pytest.fixture(scope="module", params=[True, False], ids=["allowed", "not allowed"])
async def caller_keys(
    request: pytest.FixtureRequest, settings: Settings, embedder: Embedder
) -> AsyncIterator[tuple[bool, str]]:
    """Whether a server passes callers' own keys on, and its address."""
    async with serving(settings, embedder, upstream_caller_keys=request.param) as client:
        yield request.param, str(client.base_url)


async def test_a_graphmem_key_never_reaches_a_provider(
    caller_keys: tuple[bool, str], settings: Settings, provider: ProviderServer
) -> None:
    """Wherever a program puts it: in the provider's place, in both places, in a header or a parameter of its own."""
    assert settings.admin_key
    key = settings.admin_key.get_secret_value()
    bearer = f"Bearer {key}"
    given: list[dict[str, str]] = [
        {"Authorization": bearer},
        {"Authorization": bearer, "X-Graphmem-Key": ""},
        {"Authorization": bearer, "X-Graphmem-Key": key},
        {"x-api-key": key, "Authorization": bearer},
        {"Authorization": bearer, "X-Own": f"key={key}"},
        {"api-key": key},
    ]
    provider.prepare(*["Hello."] * len(given))
    async with httpx.AsyncClient(base_url=caller_keys[1]) as client:
        for headers in given:
            body = {**ASK, "metadata": {"key": key}, "api_key": key, "user": f"gm_{'x' * 43}"}
            answer = await client.post(f"{CHAT}?key={key}&beta=true", json=body, headers={**AS_NOBODY, **headers})
            assert answer.status_code == 200, headers
    assert len(provider.received) == len(given)
    for received in provider.received:
        assert key not in str(received)
        assert "gm_x" not in str(received)
        assert received.query == "beta=true"


async def test_a_callers_own_key_is_passed_on_where_it_may_be(
    caller_keys: tuple[bool, str], settings: Settings, provider: ProviderServer
) -> None:
    allowed, address = caller_keys
    provider.prepare("Hello.", "Hello.", "Hello.")
    assert settings.admin_key
    ours = settings.admin_key.get_secret_value()
    key = {"X-Graphmem-Key": ours}
    both = {**key, "Authorization": "Bearer sk-theirs"}
    async with httpx.AsyncClient(base_url=address) as client:
        for given in (both, key, {"Authorization": f"Bearer {ours}"}):
            assert (await client.post(CHAT, json=ASK, headers={**AS_NOBODY, **given})).status_code == 200
        wrong = await client.post(CHAT, json=ASK, headers={**AS_NOBODY, **both, "X-Graphmem-Key": "gm_wrong"})
        assert wrong.status_code == 401
    keys = [request.headers["authorization"] for request in provider.received]
    operators = f"Bearer {PROVIDER_KEY}"
    assert keys == ["Bearer sk-theirs" if allowed else operators, operators, operators]


async def test_errors_have_the_shape_of_the_protocol_and_name_the_next_step(
    settings: Settings, address: str, connect: Connect
) -> None:
    wrong = openai.AsyncOpenAI(api_key="gm_wrong", base_url=f"{address}/openai/v1", max_retries=0)
    with pytest.raises(openai.AuthenticationError, match="key"):
        await wrong.chat.completions.create(model="m", messages=QUESTION)
    with pytest.raises(openai.UnprocessableEntityError, match="placeholder"):
        await connect().chat.completions.create(
            model="m", messages=QUESTION, extra_headers={"X-Graphmem-User": "{{U}}"}
        )
    elsewhere = wrong.with_options(base_url=f"{address}/openai")
    for lacking in (elsewhere, wrong.with_options(base_url=f"{address}/v1"), wrong.with_options(base_url=address)):
        with pytest.raises(openai.NotFoundError, match="/openai/v1"):
            await lacking.chat.completions.create(model="m", messages=QUESTION)
    other = anthropic.AsyncAnthropic(api_key="gm_wrong", base_url=f"{address}/anthropic", max_retries=0)
    with pytest.raises(anthropic.AuthenticationError, match="key") as raised:
        await other.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "Hi"}])
    body: Any = raised.value.body
    assert (body["type"], body["error"]["type"]) == ("error", "authentication_error")


@pytest.mark.usefixtures("lund")
async def test_responses_keep_their_session_and_their_context(
    connect: Connect, provider: ProviderServer, turns: Any
) -> None:
    provider.prepare(Answer(calls_tool=True), "It rains in Lund.", "Yes.", "Right.")
    client = connect()
    result: Any = {"type": "function_call_output", "call_id": "call_1", "output": "Rain."}
    first = await client.responses.create(model="m", input="Where do I live?", instructions="Be brief.")
    second = await client.responses.create(model="m", input=[result], previous_response_id=first.id)
    assert second.output_text == "It rains in Lund."
    async with client.responses.stream(model="m", input="In Sweden?", previous_response_id=second.id) as stream:
        assert (await stream.get_final_response()).output_text == "Yes."
    assert provider.received[0].system.startswith("Be brief.\n\n<graphmem_context>")
    assert all("Mara lives in Lund." in request.system for request in provider.received)
    assert provider.received[1].body["input"] == [result]
    texts = [("user", "Where do I live?"), ("assistant", "It rains in Lund."), ("user", "In Sweden?")]
    assert await turns() == [[*texts, ("assistant", "Yes.")]]
    await client.responses.create(model="m", input="In Europe?", conversation="conv_1")
    assert await turns() == [[*texts, ("assistant", "Yes.")], [("user", "In Europe?"), ("assistant", "Right.")]]


@pytest.mark.usefixtures("lund")
async def test_messages_of_anthropic_stream_and_call_tools(
    address: str, agent: httpx.AsyncClient, provider: ProviderServer, turns: Any
) -> None:
    provider.prepare(Answer("I look.", calls_tool=True), "It rains in Lund.", "", "")
    key = agent.headers["authorization"].partition(" ")[2]
    tools: Any = [{"name": "get_weather", "input_schema": {"type": "object"}}]
    call: dict[str, Any] = {"model": "m", "max_tokens": 100, "metadata": {"user_id": "mara"}, "tools": tools}
    async with anthropic.AsyncAnthropic(api_key=key, base_url=f"{address}/anthropic", max_retries=0) as client:
        async with client.messages.stream(**call, messages=QUESTION, system="Be brief.") as stream:
            first = await stream.get_final_message()
        said: Any = {"role": "assistant", "content": first.content}
        result: Any = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Rain."}
        raw = await client.messages.with_raw_response.create(
            **call, messages=[*QUESTION, said, {"role": "user", "content": [result]}]
        )
        await client.messages.count_tokens(model="m", messages=QUESTION)
        await client.models.list()
    assert raw.headers["x-graphmem-context-id"]
    assert raw.headers["request-id"] == raw.headers["x-upstream-request-id"]
    sent = provider.received
    assert [request.path for request in sent] == [
        "/v1/messages",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/v1/models",
    ]
    assert sent[0].system.startswith("Be brief.\n\n<graphmem_context>")
    assert "Mara lives in Lund." in sent[1].system
    assert sent[2].body == {"model": "m", "messages": QUESTION}
    assert {request.headers["authorization"] for request in sent} == {f"Bearer {PROVIDER_KEY}"}
    assert {request.headers["anthropic-version"] for request in sent}
    assert await turns() == [
        [("user", "Where do I live?"), ("assistant", "I look."), ("assistant", "It rains in Lund.")]
    ]


async def test_the_key_may_be_where_clients_of_anthropic_send_theirs(
    address: str, agent: httpx.AsyncClient, provider: ProviderServer
) -> None:
    provider.prepare("Hello.")
    key = agent.headers["authorization"].partition(" ")[2]
    async with httpx.AsyncClient(base_url=address, headers={"x-api-key": key, **AS_NOBODY}) as client:
        answer = await client.post("/anthropic/v1/messages", json={**ASK, "max_tokens": 10})
    assert answer.json()["content"][0]["text"] == "Hello."
    (sent,) = provider.received
    assert sent.headers["x-api-key"] == PROVIDER_KEY
    assert "authorization" not in sent.headers


async def test_errors_of_anthropic_arrive_as_they_are(agent: httpx.AsyncClient, provider: ProviderServer) -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    provider.prepare(Answer(status=529, body=body))
    answer = await agent.post("/anthropic/v1/messages", json={**ASK, "max_tokens": 10}, headers=AS_NOBODY)
    assert (answer.status_code, answer.json()) == (529, body)
