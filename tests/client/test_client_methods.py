from __future__ import annotations

import asyncio
import inspect
import re
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from fastapi import FastAPI

import graphmem
from graphmem.bootstrap import Services
from graphmem.client import AsyncClient, Client, operations
from graphmem.client.api_call import ApiCall
from graphmem.client.clients import ClientMethod, ClientMethods
from graphmem.domain.api_key import ApiKeyIn, KeyRole
from graphmem.domain.consolidation_models import ConsolidationRun
from graphmem.domain.context_models import ContextRequest
from graphmem.domain.job import Job, JobStatus
from graphmem.domain.listing import ListFilters
from graphmem.domain.memory import Memory, MemoryIn, MemoryPatch, MemoryStatus, SaveAction
from graphmem.domain.search_models import SearchQuery
from graphmem.domain.session import MessagesAccepted
from graphmem.errors import Conflict, InvalidInput
from graphmem.service.memory_api import ContextOptions, MemoryAPI, SearchOptions
from tests.client.conftest import ClientFactory

EXAMPLE_TURNS = [
    {"role": "user", "content": "I moved to Lisbon last week."},
    {"role": "model", "content": "How do you like Lisbon?"},
]


async def test_a_memory_is_added_searched_updated_and_its_history_read(agent: AsyncClient) -> None:
    saved = await agent.add("mara", [MemoryIn(content="Mara likes oolong tea", type="preference"), "Mara has a dog"])  # type: ignore[arg-type]
    assert [each.action for each in saved] == [SaveAction.INSERT, SaveAction.INSERT]
    tea = saved[0].memory
    assert isinstance(tea, Memory)
    found = await agent.search("mara", "which tea?", limit=1, types=["preference"])
    assert [hit.memory.id for hit in found.results] == [tea.id]
    changed = await agent.update_memory("mara", tea.id, if_version=1, content="Mara likes green tea", tags=["Tea"])
    assert (changed.version, changed.tags) == (2, ["tea"])
    assert (await agent.memory("mara", tea.id)).content == "Mara likes green tea"
    listed = await agent.memories("mara", type=["preference"], tag=["tea"], limit=5)
    assert [each.id for each in listed.items] == [tea.id]
    assert (await agent.delete_memory("mara", tea.id)).status is MemoryStatus.DELETED
    rows = await agent.history("mara", tea.id)
    assert [row.content for row in rows][:2] == ["Mara likes oolong tea", "Mara likes green tea"]
    assert rows[-1].ended_reason


async def test_entities_are_looked_up_listed_and_graphed(agent: AsyncClient) -> None:
    await agent.add("mara", {"content": "Mara met Anna in Lisbon", "object": {"name": "Anna", "type": "Person"}})
    looked = await agent.lookup("mara", "How is Anna?")
    [anna] = [each.entity for each in looked.entities]
    assert anna.name == "Anna"
    assert (await agent.entity("mara", anna.id)).name == "Anna"
    assert [each.name for each in (await agent.entities("mara", query="ann")).items] == ["Anna"]
    now = datetime.now(UTC)
    assert len(await agent.entity_memories("mara", anna.id, valid_as_of=now)) == 1
    assert {node.name for node in (await agent.entity_graph("mara", anna.id)).nodes} >= {"Anna"}


async def test_a_supersession_is_reverted(agent: AsyncClient) -> None:
    city = {"type": "fact", "predicate": "LIVES_IN", "single_valued": True}
    [first] = await agent.add("mara", {"content": "Mara lives in Rome", "valid_at": "2025-01-01T00:00:00Z", **city})
    [second] = await agent.add("mara", {"content": "Mara lives in Oslo", "valid_at": "2026-01-01T00:00:00Z", **city})
    assert first.memory
    assert second.superseded == [first.memory.id]
    assert (await agent.revert_memory("mara", first.memory.id)).status is MemoryStatus.ACTIVE


async def test_a_user_is_exported_imported_and_forgotten(admin: AsyncClient) -> None:
    await admin.add("mara", "Mara likes oolong tea")
    for format in ("json", "yaml"):
        document = await admin.export("mara", format=format)  # type: ignore[arg-type]
        assert b"oolong" in document
        assert (await admin.import_(f"copy-{format}", document)).imported
        assert (await admin.memories(f"copy-{format}")).items[0].content == "Mara likes oolong tea"
    assert (await admin.forget("mara")).residue == 0
    assert (await admin.memories("mara")).items == []


async def test_keys_are_created_listed_and_revoked(admin: AsyncClient, make_client: ClientFactory) -> None:
    made = await admin.create_key("notebook", "analyst", ["mara"])
    assert made.key.startswith("gm_")
    assert made.id in {key.id for key in await admin.keys()}
    assert await admin.revoke_key(made.id) is None  # type: ignore[func-returns-value]
    assert made.id not in {key.id for key in await admin.keys()}


async def test_a_memory_is_erased_by_an_admin(admin: AsyncClient) -> None:
    [saved] = await admin.add("mara", "Mara likes oolong tea")
    assert saved.memory
    assert await admin.erase_memory("mara", saved.memory.id) == 1


async def test_the_blocking_client_has_the_same_methods(address: str, service: Services, tenant: str) -> None:
    key = await service.keys.create(tenant, ApiKeyIn(name="agent", role=KeyRole.AGENT))

    def use() -> list[str]:
        with Client(key.key, address) as client:
            client.add("mara", "Mara likes oolong tea")
            return [hit.memory.content for hit in client.search("mara", "tea").results]

    assert await asyncio.to_thread(use) == ["Mara likes oolong tea"]


@pytest.mark.parametrize("user_id", [".", "..", "a/b", "100%", "a%2Fb", "q?u#", "über straße", "日本"])
async def test_a_user_id_may_hold_any_character(agent: AsyncClient, user_id: str) -> None:
    await agent.add(user_id, "Likes tea")
    assert [each.user_id for each in (await agent.memories(user_id)).items] == [user_id]


async def test_graph_memory_takes_the_same_arguments(service: Services, tenant: str) -> None:
    [saved] = await service.add("mara", "Mara likes oolong tea", tenant=tenant)
    assert saved.memory
    assert saved.memory.source.kind == "python"
    found = await service.search("mara", "tea", tenant=tenant, limit=3)
    assert [hit.memory.id for hit in found.results] == [saved.memory.id]
    assert (await service.lookup("mara", "mara", tenant=tenant)).entities
    assert "oolong" in (await service.context("mara", "Which tea?", tenant=tenant, token_budget=500)).preamble
    assert len(await service.history("mara", saved.memory.id, tenant=tenant)) == 1
    job = await service.add_messages("mara", EXAMPLE_TURNS, session_id="s", wait=True, tenant=tenant)
    assert isinstance(job, Job)
    assert job.status is JobStatus.SKIPPED
    run = await service.consolidate("mara", dry_run=True, wait=True, tenant=tenant)
    assert isinstance(run, ConsolidationRun)
    document = await service.export("mara", tenant=tenant)
    assert (await service.import_("copy", document, tenant=tenant)).imported
    assert (await service.forget("mara", tenant=tenant)).residue == 0


async def test_invalid_input_is_rejected_in_process_too(service: Services, tenant: str) -> None:
    for refused in (
        service.search("mara", "tea", limit=0, tenant=tenant),
        service.add("mara", [{"content": "x", "confidence": 2}], tenant=tenant),
        service.add("", "x y", tenant=tenant),
        service.add_messages("mara", [], tenant=tenant),
        service.context("mara", " ", tenant=tenant),
        service.consolidate("mara", proposals=[{"action": "DESTROY"}], tenant=tenant),
    ):
        with pytest.raises(InvalidInput):
            await refused


async def test_a_conversation_is_stored_read_rated_and_closed(agent: AsyncClient) -> None:
    opened = await agent.create_session("mara", "s/1", title="Moving")
    assert opened.session_id == "s/1"
    accepted = await agent.add_messages("mara", EXAMPLE_TURNS, session_id="s/1")
    assert isinstance(accepted, MessagesAccepted)
    assert accepted.job_id
    assert (await agent.job(accepted.job_id)).kind == "extraction"
    again = await agent.add_messages("mara", [{"role": "user", "content": "I sleep well there."}], wait=True)
    assert isinstance(again, Job)
    assert again.status is JobStatus.SKIPPED
    with pytest.raises(Conflict):
        await agent.retry_job(again.id)
    assert [each.content for each in (await agent.session_messages("mara", "s/1")).items] == [
        each["content"] for each in EXAMPLE_TURNS
    ]
    assert (await agent.search_messages("mara", "Lisbon"))[0].message.session_id == "s/1"
    assert (await agent.feedback("mara", accepted.message_ids[1], 5, "Short, good.")).score == 5
    assert (await agent.session("mara", "s/1")).title == "Moving"
    assert not (await agent.close_session("mara", "s/1")).is_active
    assert {each.session_id for each in (await agent.sessions("mara", active=False)).items} == {"s/1"}
    assert (await agent.summarize_session("mara", "s/1", wait=True)).kind


async def test_context_preferences_and_patterns_are_read(agent: AsyncClient) -> None:
    await agent.add("mara", "Mara likes oolong tea")
    assert "oolong" in (await agent.context("mara", "Which tea?", token_budget=500)).preamble
    await agent.add_messages("mara", [{"role": "user", "content": "Keep it short, please."}], extract=False)
    for listed in (await agent.preferences("mara"), await agent.patterns("mara"), await agent.contexts("mara")):
        assert isinstance(listed, list)


async def test_a_consolidation_is_run_read_and_rolled_back(admin: AsyncClient) -> None:
    saved = await admin.add("mara", ["Mara likes oolong tea", "Mara enjoys oolong tea"])
    ids = [each.memory.id for each in saved if each.memory]
    merge = {"action": "MERGE", "memory_ids": ids, "content": "Mara likes and enjoys oolong tea", "reason": "same"}
    run = await admin.consolidate("mara", proposals=[merge], wait=True)
    assert isinstance(run, ConsolidationRun)
    assert (await admin.run(run.id)).changes
    assert run.id in {each.id for each in (await admin.runs(user_id="mara")).items}
    assert [each.content for each in (await admin.memories("mara")).items] == ["Mara likes and enjoys oolong tea"]
    assert (await admin.rollback(run.id)).restored
    assert {each.id for each in (await admin.memories("mara")).items} == set(ids)
    assert isinstance(await admin.consolidate("mara", dry_run=True), str)


def test_in_process_and_http_methods_take_the_same_arguments() -> None:
    names = [name for name, member in vars(MemoryAPI).items() if inspect.isfunction(member)]
    assert {"add", "add_messages", "search", "lookup", "context", "history", "consolidate", "rollback"} <= set(names)
    for name in names:
        here = inspect.signature(getattr(MemoryAPI, name), eval_str=True).parameters
        there = inspect.signature(getattr(operations, name), eval_str=True).parameters
        assert [each for each in here.values() if each.name not in ("self", "tenant")] == list(there.values()), name


@pytest.mark.parametrize(
    ("typed", "model", "without"),
    [
        (SearchOptions, SearchQuery, "query"),
        (ContextOptions, ContextRequest, "question"),
        (operations.ListMemoriesOptions, ListFilters, None),
        (operations.MemoryChanges, MemoryPatch, None),
    ],
)
def test_typed_options_match_the_model_fields(typed: type, model: type, without: str | None) -> None:
    assert set(typed.__annotations__) == set(model.model_fields) - {without}  # type: ignore[attr-defined]


SAMPLE_ARGUMENTS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "update_memory": (("x", "x"), {"content": "x"}),
    "add_messages": (("x", [{"role": "user", "content": "x"}]), {}),
    "feedback": (("x", "x", 5), {}),
    "create_key": (("x", "agent"), {}),
    "import_": (("x", b"{}"), {}),
    "maintain": ((), {}),
}
"""Arguments of verbs that a text alone does not do for."""

PARAMETER_ALIASES = {"q": "text", "hard": "erase_memory"}
METHOD_EXISTS = "a verb at all"


def test_every_route_and_parameter_has_a_client_method(app: FastAPI) -> None:
    document = app.openapi()
    missing = {
        (method, path): _route_parameters(document, route)
        for path, methods in document["paths"].items()
        for method, route in methods.items()
        if path not in ("/healthz", "/readyz", "/metrics", "/v1/memories")
    }
    for name, verb in vars(ClientMethods).items():
        if not isinstance(verb, ClientMethod):
            continue
        operation = getattr(operations, name)
        parameters = inspect.signature(operation, eval_str=True).parameters.values()
        needed = [each for each in parameters if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD]
        given, more = SAMPLE_ARGUMENTS.get(name, (("x",) * len(needed), {}))
        call: ApiCall[object] = operation(*given, **more)
        matching = [
            place for place in missing if place[0].upper() == call.method and _matches_route(place[1], call.path)
        ]
        place = min(matching, key=lambda place: place[1].count("{"))
        takes = {each.name for each in parameters} | {name, METHOD_EXISTS}
        for each in parameters:
            if each.kind is each.VAR_KEYWORD:
                takes |= set(get_args(each.annotation)[0].__annotations__)
        missing[place] -= takes
    assert {place: names for place, names in missing.items() if names} == {}


def _route_parameters(document: dict[str, Any], route: dict[str, Any]) -> set[str]:
    """Return the names of what a route takes besides its path and headers, and a mark that it is there."""
    names = {each["name"] for each in route.get("parameters", ()) if each["in"] == "query"}
    content = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    for schema in (content, *content.get("anyOf", ())):
        if "$ref" in schema:
            names |= set(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"])
    return {PARAMETER_ALIASES.get(name, name) for name in names} | {METHOD_EXISTS}


def _matches_route(template: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"\{[^/]+\}", "[^/]+", template), path) is not None


def test_the_package_exports_the_public_names() -> None:
    assert graphmem.__all__ == [
        "AsyncClient",
        "Client",
        "Conflict",
        "Services",
        "GraphmemError",
        "InvalidInput",
        "Memory",
        "MemoryIn",
        "MemoryPatch",
        "MessageIn",
        "NotFound",
        "SearchResponse",
        "SearchQuery",
        "Settings",
    ]
    assert all(getattr(graphmem, name).__name__ == name for name in graphmem.__all__)
    with pytest.raises(AttributeError):
        _ = graphmem.Nothing


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import graphmem", ("pydantic", "httpx", "neo4j", "openai", "sentence_transformers")),
        ("from graphmem import Client", ("neo4j", "openai", "sentence_transformers", "fastapi", "mcp", "dbos")),
    ],
)
def test_importing_is_light(statement: str, absent: tuple[str, ...]) -> None:
    code = f"{statement}\nimport sys\nprint(*[name for name in {absent!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
