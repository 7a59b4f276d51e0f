"""A program written for mem0, over graphmem in its process and over a server."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from graphmem_api.app import create_app
from pydantic import BaseModel, SecretStr

from graphmem.app.bootstrap import Services
from graphmem.compat.mem0 import AsyncMemory, AsyncMemoryClient, Memory, MemoryClient
from graphmem.compat.mem0.local import read_model, settings_of
from graphmem.neo4j.driver import Graph
from graphmem.runtime.errors import Conflict, InvalidInput, NotConfigured, NotFound
from graphmem.runtime.settings import Settings
from graphmem.tenants.access import ApiKeyIn, KeyRole
from tests.api.conftest import serve_app
from tests.ingestion.conftest import candidate, extraction
from tests.models.scripted_server import ScriptedServer, fails, replies


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedServer]:
    """A server of a model; each test sets its answers."""
    with ScriptedServer() as server:
        yield server


@pytest.fixture(scope="module")
def configured(database: Settings, graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of a process without a language model."""
    changes = {"data_dir": tmp_path_factory.mktemp("mem0"), "webhook_delivery": False, "nightly": False}
    return database.model_copy(update=changes)


@pytest.fixture(scope="module")
def memory(configured: Settings, model: ScriptedServer) -> Iterator[Memory]:
    """A memory that has a language model."""
    settings = configured.model_copy(update={"openai_base_url": model.base_url, "openai_api_key": SecretStr("key")})
    memory = Memory(settings=settings)
    yield memory
    memory.close()


@pytest.fixture
def user() -> str:
    return "u" + uuid.uuid4().hex[:12]


def texts(found: dict[str, Any]) -> set[str]:
    return {item["memory"] for item in found["results"]}


def test_messages_are_saved_as_they_are_and_found(memory: Memory, user: str) -> None:
    added = memory.add(
        [
            {"role": "system", "content": "You are a cook."},
            {"role": "user", "content": "I love hiking in the Alps", "name": "ada"},
            {"role": "assistant", "content": [{"type": "text", "text": "The Alps are beautiful"}]},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]},
        ],
        user_id=user,
        run_id="r1",
        metadata={"category": "hobbies"},
        infer=False,
    )
    first, second = added["results"]
    assert (first["memory"], first["event"], first["role"], first["actor_id"]) == (
        *("I love hiking in the Alps", "ADD", "user", "ada"),
    )
    assert (second["memory"], second["role"], second["actor_id"]) == ("The Alps are beautiful", "assistant", None)
    best = memory.search("What do I love?", filters={"user_id": user}, top_k=1)["results"][0]
    assert (best["id"], best["memory"], best["user_id"], best["run_id"]) == (
        *(first["id"], first["memory"], user, "r1"),
    )
    assert (best["metadata"], best["role"], best["actor_id"]) == ({"category": "hobbies"}, "user", "ada")
    assert 0 < best["score"] <= 1
    assert len(best["hash"]) == 32
    assert datetime.fromisoformat(best["created_at"]).utcoffset() == timedelta(0)
    assert memory.add("I love hiking in the Alps", user_id=user, infer=False)["results"][0]["event"] == "NONE"


def test_a_memory_is_read_changed_and_deleted_by_its_id(memory: Memory, user: str) -> None:
    [added] = memory.add("I drink tea", user_id=user, infer=False, metadata={"a": 1})["results"]
    assert memory.update(added["id"], "I drink green tea", metadata={"b": 2, "role": "other"}) == {
        "message": "Memory updated successfully!"
    }
    read = memory.get(added["id"])
    assert read is not None
    assert (read["memory"], read["metadata"], read["role"]) == ("I drink green tea", {"a": 1, "b": 2}, "user")
    assert memory.update(added["id"], data="I drink white tea")["message"]
    assert memory.delete(added["id"]) == {"message": "Memory deleted successfully!"}
    assert memory.get(added["id"]) is None
    changes = [(row["event"], row["old_memory"], row["new_memory"]) for row in memory.history(added["id"])]
    assert changes == [
        ("ADD", None, "I drink tea"),
        ("UPDATE", "I drink tea", "I drink green tea"),
        ("UPDATE", "I drink green tea", "I drink white tea"),
        ("DELETE", "I drink white tea", None),
    ]
    assert [row["is_deleted"] for row in memory.history(added["id"])] == [False, False, False, True]
    with pytest.raises(ValueError, match="not found"):
        memory.delete(added["id"])
    with pytest.raises(ValueError, match="not found"):
        memory.update(added["id"], "again")
    with pytest.raises(ValueError, match="At least one of text"):
        memory.update(added["id"])


def test_unknown_ids(memory: Memory, user: str) -> None:
    unknown = f"{uuid.uuid4()}@{user}"
    assert memory.get(unknown) is None
    assert memory.history(unknown) == []
    with pytest.raises(ValueError, match="names the user after an @"):
        memory.get(str(uuid.uuid4()))


def test_an_end_can_be_set_and_removed(memory: Memory, user: str) -> None:
    today = datetime.now(UTC).date()
    past, soon = (today - timedelta(days=2)).isoformat(), (today + timedelta(days=2)).isoformat()
    [added] = memory.add("I am on a diet", user_id=user, infer=False, expiration_date=soon)["results"]
    assert [item["expiration_date"] for item in memory.get_all(user_id=user)["results"]] == [soon]
    memory.update(added["id"], expiration_date=past)
    assert memory.get_all(user_id=user) == {"results": []}
    memory.update(added["id"], expiration_date=None)
    [item] = memory.get_all(filters={"user_id": user})["results"]
    assert "expiration_date" not in item
    with pytest.raises(ValueError, match="YYYY-MM-DD"):
        memory.add("x", user_id=user, infer=False, expiration_date="soon")


def test_ids_and_metadata_narrow_what_is_read_and_deleted(memory: Memory, user: str) -> None:
    for text, agent, stars in (("I like chess", "coach", 5), ("I like poker", "coach", 2), ("I like go", None, 5)):
        memory.add(text, user_id=user, agent_id=agent, metadata={"stars": stars}, infer=False)
    memory.add("Answer in rhymes", agent_id=f"poet-{user}", infer=False)
    assert texts(memory.get_all(filters={"user_id": user, "agent_id": "coach"})) == {"I like chess", "I like poker"}
    assert texts(memory.get_all(filters={"user_id": user, "stars": 5})) == {"I like chess", "I like go"}
    found = memory.search("games I like", filters={"AND": [{"user_id": user}, {"stars": {"gt": 3}}]}, threshold=0)
    assert texts(found) == {"I like chess", "I like go"}
    either = {"OR": [{"user_id": user, "agent_id": "coach"}, {"agent_id": f"poet-{user}"}]}
    assert texts(memory.get_all(filters=either)) == {"I like chess", "I like poker", "Answer in rhymes"}
    [poem] = memory.get_all(agent_id=f"poet-{user}")["results"]
    assert (poem["agent_id"], "user_id" in poem) == (f"poet-{user}", False)
    assert (
        len(memory.get_all(user_id=user, top_k=2)["results"])
        == len(memory.get_all(user_id=user, limit=2)["results"])
        == 2
    )
    memory.delete_all(user_id=user, agent_id="coach")
    assert texts(memory.get_all(user_id=user)) == {"I like go"}
    memory.delete_all(user_id=user)
    assert memory.get_all(user_id=user) == memory.search("games", user_id=user) == {"results": []}
    memory.delete_all(agent_id=f"poet-{user}")


def test_memories_are_extracted_and_what_is_outdated_is_deleted(
    memory: Memory, model: ScriptedServer, user: str
) -> None:
    lives = {"predicate": "LIVES_IN", "single_valued": True}
    model.requests.clear()
    model.steps = [
        replies(
            json.dumps(extraction(candidate("User lives in Rome.", object={"name": "Rome", "type": "Place"}, **lives)))
        )
    ]
    [first] = memory.add(
        "I live in Rome", user_id=user, agent_id="a", run_id=f"run-{user}", metadata={"source": "chat"}
    )["results"]
    assert (first["event"], first["memory"]) == ("ADD", "User lives in Rome.")
    read = memory.get(first["id"])
    assert read is not None
    assert (read["agent_id"], read["run_id"], read["metadata"]["source"]) == ("a", f"run-{user}", "chat")
    model.requests.clear()
    moved = candidate("User lives in Oslo.", object={"name": "Oslo", "type": "Place"}, **lives)
    decision = {
        "statement": 1,
        "decision": "supersede",
        "memories": [1],
        "ended_at": None,
        "remaining": None,
        "reason": "moved",
    }
    model.steps = [
        replies(json.dumps(extraction(moved))),
        replies(json.dumps({"decisions": [decision], "names": []})),
    ]
    events = memory.add([{"role": "user", "content": "I have moved to Oslo"}], user_id=user)["results"]
    assert [(event["event"], event["memory"]) for event in events] == [
        ("ADD", "User lives in Oslo."),
        ("DELETE", "User lives in Rome."),
    ]
    assert events[1]["id"] == first["id"]
    assert texts(memory.get_all(user_id=user)) == {"User lives in Oslo."}
    model.requests.clear()
    model.steps = [replies(json.dumps(extraction()))]
    assert memory.add("Hello!", user_id=user) == {"results": []}
    assert memory.add([{"role": "system", "content": "Be brief."}], user_id=user) == {"results": []}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda memory: memory.add("x"), "must be provided"),
        (lambda memory: memory.add(7, user_id="ada"), "messages must be"),
        (lambda memory: memory.add("x", user_id="a b"), "white space"),
        (lambda memory: memory.add("x", user_id="ada", agent_id="undefined"), "not filled in"),
        (lambda memory: memory.add("x", user_id="ada", memory_type="other"), "memory_type"),
        (lambda memory: memory.search("x"), "user_id"),
        (lambda memory: memory.search(" ", user_id="ada"), "query"),
        (lambda memory: memory.search("x", user_id="ada", top_k=-1), "top_k"),
        (lambda memory: memory.search("x", user_id="ada", threshold=2), "threshold"),
        (lambda memory: memory.get_all(), "user_id"),
        (lambda memory: memory.delete_all(), "reset"),
    ],
)
def test_what_mem0_refuses_is_refused_in_the_same_way(memory: Memory, call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(memory)


def test_what_graphmem_does_not_have_says_so(memory: Memory, user: str) -> None:
    with pytest.raises(TypeError, match="colour"):
        memory.search("x", user_id=user, colour="red")
    with pytest.raises(NotImplementedError):
        memory.add("x", user_id=user, agent_id="a", memory_type="procedural_memory")
    with pytest.raises(NotImplementedError):
        memory.chat("x")
    with pytest.raises(InvalidInput):
        memory.add("x" * 9_000, user_id=user, infer=False)


def test_a_secret_is_refused_and_not_repeated(memory: Memory, user: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(InvalidInput, match="Not stored") as refusal:
        memory.add("My card number is 4111 1111 1111 1111", user_id=user, infer=False)
    assert "4111" not in caplog.text + str(refusal.value)
    assert memory.get_all(user_id=user) == {"results": []}


def test_what_a_caller_attaches_travels_with_the_messages(memory: Memory, model: ScriptedServer, user: str) -> None:
    """Also where the model cannot be reached for a while: the memory has it from its first version on."""
    model.steps = [fails(503)]
    given: Any = {"agent_id": "coach", "metadata": {"category": "drink"}, "expiration_date": "2090-01-01"}
    (pending,) = memory.add("I like green tea", user_id=user, **given)["results"]
    assert pending["status"] == "PENDING"
    model.steps = [replies(json.dumps(extraction(candidate("The user likes green tea", messages=[1]))))]
    operations = memory._run(memory._memory._operations())
    memory._run(operations._client.retry_job(pending["event_id"]))
    filters = {"AND": [{"user_id": user}, {"agent_id": "coach"}]}
    deadline = time.monotonic() + 60
    while not (found := memory.get_all(filters=filters)["results"]) and time.monotonic() < deadline:
        time.sleep(0.1)
    (item,) = found
    assert (item["memory"], item["agent_id"], item["metadata"]["category"]) == (
        *("The user likes green tea", "coach", "drink"),
    )
    assert len(memory.history(item["id"])) == 1


def test_memories_of_one_process_are_one_until_the_last_is_closed(memory: Memory, user: str) -> None:
    settings = memory._memory._settings
    other = Memory(settings=settings)
    other.add("I play the cello", user_id=user, infer=False)
    other.close()
    other.close()
    assert texts(memory.get_all(user_id=user)) == {"I play the cello"}
    with pytest.raises(RuntimeError, match="closed"):
        other.get_all(user_id=user)


async def test_the_asynchronous_memory_says_that_there_is_no_model(
    configured: Settings, memory: Memory, user: str
) -> None:
    await asyncio.to_thread(memory.close)
    async with AsyncMemory(settings=configured) as asynchronous, AsyncMemory(settings=configured) as second:
        assert await second.get_all(user_id=user) == {"results": []}
        await asynchronous.add("I play chess", user_id=user, infer=False)
        assert texts(await asynchronous.search("games", filters={"user_id": user})) == {"I play chess"}
        with pytest.raises(NotConfigured, match="infer=False"):
            await asynchronous.add("I play go", user_id=user)
        await asynchronous.delete_all(user_id=user)


def test_the_model_of_a_configuration_is_used(caplog: pytest.LogCaptureFixture) -> None:
    openai = {"provider": "openai", "config": {"model": "gpt-5-mini", "api_key": "sk-1", "temperature": 0}}
    config = {"llm": openai, "vector_store": {"provider": "qdrant"}, "version": "v1.1"}
    settings = settings_of(config, Settings())
    assert settings is not None
    assert (settings.llm_model, settings.openai_api_key) == ("gpt-5-mini", SecretStr("sk-1"))
    assert "vector_store" in caplog.text
    assert read_model({"provider": "anthropic", "config": {"model": "c"}}) == {"llm_model": "anthropic:c"}
    assert read_model({"provider": "xai", "config": {"model": "g"}})["openai_base_url"] == "https://api.x.ai/v1"
    own = {"model": "m", "vllm_base_url": "http://127.0.0.1:9/v1"}
    assert read_model({"provider": "vllm", "config": own})["openai_base_url"] == "http://127.0.0.1:9/v1"
    assert read_model({"provider": "elsewhere", "config": {"model": "m"}}) == {}
    assert settings_of(None, None) is None


@pytest.fixture(scope="module")
async def server(configured: Settings, graph: Graph) -> AsyncIterator[tuple[Services, str]]:
    """Services and the address of their server."""
    async with (
        Services.open(configured, worker=False) as services,
        serve_app(create_app(services, configured)) as address,
    ):
        yield services, address


@pytest.fixture
async def client(
    server: tuple[Services, str], tenant: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[MemoryClient]:
    """A client of a tenant of its own, whose key and server the environment names."""
    services, address = server
    key = await services.keys.create(tenant, ApiKeyIn(name="mem0", role=KeyRole.ADMIN))
    monkeypatch.setenv("MEM0_API_KEY", key.key)
    monkeypatch.setenv("GRAPHMEM_URL", address)
    client = MemoryClient()
    yield client
    await asyncio.to_thread(client.close)


class Options(BaseModel):
    """Typed options as mem0 has them."""

    filters: dict[str, Any] | None = None
    top_k: int | None = None


async def test_one_statement_of_several_costs_no_other_and_immutable_ones_stay(client: MemoryClient) -> None:
    def use() -> None:
        said = ["Ada likes figs", "x" * 9_000, "Ada likes plums"]
        with pytest.raises(InvalidInput, match=r"statement 2: .*8000"):
            client.add([{"role": "user", "content": text} for text in said], user_id="ada", infer=False)
        assert {item["memory"] for item in client.get_all(filters={"user_id": "ada"})["results"]} == {said[0], said[2]}
        [added] = client.add("Ada was born in Lund", user_id="ada", infer=False, immutable=True)["results"]
        with pytest.raises(Conflict):
            client.update(added["id"], text="Ada was born in Turin")
        with pytest.raises(NotImplementedError, match="infer=False"):
            client.add("Ada was born in Lund", user_id="ada", immutable=True)

    await asyncio.to_thread(use)


async def test_a_client_takes_arguments_of_both_versions(client: MemoryClient) -> None:
    def use() -> None:
        client.add("I collect stamps", user_id="ada", infer=False)
        client.add("I collect coins", filters={"user_id": "ada"}, infer=False, metadata={"kind": "money"})
        found = client.search("What do I collect?", Options(filters={"user_id": "ada"}, top_k=5))
        assert texts(found) == {"I collect stamps", "I collect coins"}
        earlier = client.search("What do I collect?", user_id="ada", limit=1)
        assert [item["user_id"] for item in earlier] == ["ada"]
        assert texts(client.search("coins", user_id="ada", output_format="v1.1", metadata={"kind": "money"})) == {
            "I collect coins"
        }
        assert len(client.get_all(user_id="ada")) == 2
        page = client.get_all(filters={"user_id": "ada"}, page=2, page_size=1)
        assert (page["count"], page["next"], len(page["results"])) == (2, None, 1)
        assert page["previous"]

    await asyncio.to_thread(use)


async def test_a_client_changes_lists_and_erases(client: MemoryClient) -> None:
    def use() -> None:
        for user in ("ada", "bob"):
            client.add(f"I am {user}", user_id=user, infer=False)
        client.add("Be brief", agent_id="chef", infer=False)
        listed = {(entity["type"], entity["name"]) for entity in client.users()["results"]}
        assert listed == {("user", "ada"), ("user", "bob"), ("agent", "chef")}
        [item] = client.get_all(filters={"user_id": "ada"})["results"]
        assert client.update(item["id"], text="I am Ada")["memory"] == "I am Ada"
        client.batch_update([{"memory_id": item["id"], "text": "I am Ada L."}])
        assert [row["event"] for row in client.history(item["id"])] == ["ADD", "UPDATE", "UPDATE"]
        client.batch_delete([{"memory_id": item["id"]}])
        with pytest.raises(NotFound):
            client.get(item["id"])
        client.project.update(custom_instructions="Remember what people eat.")
        assert client.delete_users(user_id="bob") == {"message": "Entity deleted successfully."}
        client.delete_all(agent_id="*")
        assert [entity["type"] for entity in client.users()["results"]] == ["user"]
        client.reset()
        assert client.users() == {"results": []}
        with pytest.raises(NotImplementedError, match="graphmem export"):
            client.create_memory_export(schema="{}")
        with pytest.raises(AttributeError):
            client.nothing()

    await asyncio.to_thread(use)


async def test_the_asynchronous_client_does_the_same(client: MemoryClient) -> None:
    async with AsyncMemoryClient(api_key=client.api_key, host=client.host) as asynchronous:
        await asynchronous.add("I collect shells", user_id="ada", infer=False)
        assert texts(await asynchronous.search("shells", filters={"user_id": "ada"})) == {"I collect shells"}
        await asynchronous.delete_all(user_id="ada")
        assert await asynchronous.get_all(user_id="ada") == []


def test_a_client_without_a_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MEM0_API_KEY", "GRAPHMEM_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="API Key"):
        MemoryClient()


MEM0_PARAMETERS = {
    "add": "messages user_id agent_id run_id metadata timestamp expiration_date infer memory_type prompt",
    "get": "memory_id",
    "get_all": "filters top_k show_expired kwargs",
    "search": "query top_k filters threshold rerank explain reference_date show_expired kwargs",
    "update": "memory_id text metadata expiration_date data",
    "delete": "memory_id",
    "delete_all": "user_id agent_id run_id",
    "history": "memory_id",
    "reset": "",
    "close": "",
    "chat": "query",
}
"""The parameters of the methods of `Memory` in mem0 2.2."""

MEM0_CLIENT_PARAMETERS = {
    "add": "messages options kwargs",
    "get": "memory_id",
    "get_all": "options kwargs",
    "search": "query options kwargs",
    "update": "memory_id options kwargs",
    "delete": "memory_id delete_linked",
    "delete_all": "options kwargs",
    "history": "memory_id",
    "users": "",
    "delete_users": "user_id agent_id app_id run_id",
    "reset": "",
    "batch_update": "memories",
    "batch_delete": "memories",
}
"""The parameters of the methods of `MemoryClient` in mem0 2.2 that graphmem has."""


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (Memory, MEM0_PARAMETERS),
        (AsyncMemory, MEM0_PARAMETERS),
        (MemoryClient, MEM0_CLIENT_PARAMETERS),
        (AsyncMemoryClient, MEM0_CLIENT_PARAMETERS),
    ],
)
def test_methods_take_the_parameters_of_mem0_in_their_order(kind: type, parameters: dict[str, str]) -> None:
    for name, expected in parameters.items():
        signature = inspect.signature(getattr(kind, name))
        taken = [parameter for parameter in signature.parameters if parameter not in ("self", "limit")]
        assert taken == expected.split(), name
