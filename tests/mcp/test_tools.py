from __future__ import annotations

import json

import pytest
from mcp_types import TextContent

from graphmem.app.bootstrap import Services
from graphmem.conversations.session import MessagesIn, SessionIn
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import MemoryIn, Scope
from graphmem.runtime.settings import Settings
from graphmem.tenants.access import ApiKeyIn, KeyRole, make_local_key
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import SpaceIn
from graphmem.text.token_counts import count_tokens
from tests.mcp.conftest import (
    call_tool,
    call_tool_error,
    http_client,
    in_process_client,
    run_memory_lifecycle,
    serve_tools,
)

TOOLS = {
    "search_memory",
    "get_context",
    "lookup_entity",
    "memory_history",
    "save_memory",
    "update_memory",
    "delete_memory",
}


async def test_a_session_saves_searches_updates_reads_history_and_deletes(services: Services, owner: Owner) -> None:
    async with in_process_client(services, owner) as client:
        await run_memory_lifecycle(client)


@pytest.mark.req("QUINN-35")
async def test_tool_descriptions_say_when_to_use_them(services: Services, owner: Owner) -> None:
    async with in_process_client(services, owner) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == TOOLS
        assert client.instructions is not None
        assert all(name in client.instructions for name in ("search_memory", "save_memory", "lookup_entity"))
    assert all(tool.description for tool in tools.values())
    listed = [
        {"name": tool.name, "description": tool.description, "input": tool.input_schema} for tool in tools.values()
    ]
    assert len(listed) < 8
    assert count_tokens(json.dumps(listed)) <= 2_300, "with the tool that asks a model, all tools take 2,500 tokens"
    assert set(tools["search_memory"].input_schema["properties"]) == {"query", "filters", "limit", "min_score", "cut"}
    assert tools["search_memory"].input_schema["required"] == ["query"]
    reads = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
    assert reads == {"search_memory", "get_context", "lookup_entity", "memory_history"}


async def test_no_tool_takes_a_user(services: Services, owner: Owner) -> None:
    async with in_process_client(services, owner) as client:
        for tool in (await client.list_tools()).tools:
            assert not {"user", "user_id", "tenant", "owner"} & set(tool.input_schema["properties"])
        refused = await call_tool_error(client, "save_memory", content="Mara likes tea", user_id="anna")
        assert "user_id: is not a field" in refused
    assert not (await services.memories.page(owner, ListFilters())).items
    assert not (await services.memories.page(Owner(owner.tenant, "anna"), ListFilters())).items


@pytest.mark.req("CASH-08")
async def test_two_calls_of_upsert_memories_make_two_memories(services: Services, owner: Owner) -> None:
    async with in_process_client(services, owner) as client:
        first = {"type": "USER_PREFERENCE", "content": "Mara prefers index funds", "confidence": 0.9}
        await call_tool(client, "upsert_memories", **first, topic_tags=["RISK_TOLERANCE"])
        await call_tool(
            client,
            "upsert_memories",
            type="fact",
            content="Mara and Tom have two children",
            confidence=0.95,
            topic_tags=["household_and_context"],
            about=["Tom"],
        )
        again = await call_tool(client, "upsert_memories", **first, topic_tags=["RISK_TOLERANCE"])
    assert again["action"] == "reinforce"
    rows = {memory.content: memory for memory in (await services.memories.page(owner, ListFilters())).items}
    assert set(rows) == {"Mara prefers index funds", "Mara and Tom have two children"}
    assert rows["Mara prefers index funds"].tags == ["RISK_TOLERANCE"]
    assert {entity.name for entity in rows["Mara and Tom have two children"].entities} >= {"Tom"}
    assert {memory.source.kind for memory in rows.values()} == {"user"}


@pytest.mark.req("UMB-19")
async def test_what_a_model_saves_is_linked_to_whom_its_text_names(services: Services, owner: Owner) -> None:
    async with in_process_client(services, owner) as client:
        for content in ("Bob works at Acme", "Bob likes green tea"):
            about = ["Bob"] if "works" in content else []
            await call_tool(client, "upsert_memories", type="fact", content=content, confidence=0.9, about=about)
        found = await call_tool(client, "lookup_entity", text="Bob")
    assert "Bob likes green tea" in json.dumps(found)


@pytest.mark.req("UMB-05")
async def test_an_interest_that_a_model_infers_is_a_memory_from_its_second_mention_on(
    services: Services, owner: Owner
) -> None:
    interest = {"type": "inferred_interest", "content": "Interested in sailing", "confidence": 0.9}
    async with in_process_client(services, owner) as client:
        first = await call_tool(client, "upsert_memories", **interest)
        second = await call_tool(client, "upsert_memories", **interest)
    assert (first["action"], second["action"]) == ("skip", "insert")


async def test_what_a_model_saves_is_the_word_of_its_key_and_no_argument_says_otherwise(
    services: Services, settings: Settings, owner: Owner
) -> None:
    bound = ApiKeyIn(name="bot", role=KeyRole.AGENT, users=[owner.user_id], source_kind="tool")
    key = (await services.keys.create(owner.tenant, bound)).key
    said = {"content": "Mara moves to Oslo", "type": "fact", "confidence": 0.9}
    async with serve_tools(services, settings) as address, http_client(f"{address}/mcp", key) as client:
        await call_tool(client, "upsert_memories", **said)
        await call_tool(client, "save_memory", content="Mara packs boxes")
        assert "is not a field" in await call_tool_error(client, "upsert_memories", **said, source_kind="user")
    rows = (await services.memories.page(owner, ListFilters())).items
    assert {memory.content: memory.source.kind for memory in rows} == {
        "Mara moves to Oslo": "tool",
        "Mara packs boxes": "tool",
    }


async def test_a_memory_supersedes_the_one_it_names(services: Services, owner: Owner) -> None:
    async with in_process_client(services, owner) as client:
        old = await call_tool(client, "upsert_memories", type="plan", content="Mara wants a cat", confidence=0.9)
        new = await call_tool(
            client,
            "upsert_memories",
            type="plan",
            content="Mara wants a dog instead of a cat",
            confidence=0.9,
            supersedes=[old["memory_id"]],
        )
        assert new["action"] == "supersede"
        assert [(memory["id"], memory["content"]) for memory in new["replaced"]] == [
            (old["memory_id"], "Mara wants a cat")
        ]
        found = await call_tool(client, "search_memory", query="pet", filters={"types": ["plan"]})
        assert [memory["id"] for memory in found["memories"]] == [new["memory_id"]]
        past = await call_tool(client, "search_memory", query="pet", filters={"include_superseded": True})
        assert {memory["id"] for memory in past["memories"]} == {old["memory_id"], new["memory_id"]}


@pytest.mark.req("QUINN-09", "QUINN-19")
async def test_remember_is_saved_in_its_scope_and_confirmed(services: Services, owner: Owner) -> None:
    async with in_process_client(services, owner) as client:
        saved = await call_tool(client, "save_memory", content="Mara cooks without garlic", domain="Cooking")
        assert saved["confirmation"].startswith("Noted, I'll remember")
        stored = await services.memories.get(owner, saved["memory_id"])
        assert (stored.scope, stored.domain, stored.confidence) == (Scope.DOMAIN, "cooking", 1.0)
        profile = await call_tool(client, "save_memory", content="Mara is called Mimi by friends", scope="profile")
        assert (await services.memories.get(owner, profile["memory_id"])).scope is Scope.PROFILE


@pytest.mark.req("QUINN-09")
async def test_a_skipped_memory_is_not_confirmed(services: Services, owner: Owner) -> None:
    async with in_process_client(services, owner) as client:
        skipped = await call_tool(client, "save_memory", content="Mara's card is 4111 1111 1111 1111")
    assert skipped["action"] == "skip"
    assert skipped["reason"]
    assert "confirmation" not in skipped


@pytest.mark.req("QUINN-36")
async def test_an_attribute_has_one_value_at_a_time(services: Services, owner: Owner) -> None:
    async with in_process_client(services, owner) as client:
        old = await call_tool(client, "update_memory", key="server_os", value="Ubuntu 20")
        new = await call_tool(client, "update_memory", key="server_os", value="Ubuntu 22")
        assert [memory["id"] for memory in new["replaced"]] == [old["memory_id"]]
        [version] = (await call_tool(client, "memory_history", memory_id=new["memory_id"]))["versions"]
        assert version["replaces"] == [old["memory_id"]]
        found = await call_tool(client, "search_memory", query="which operating system runs on the server?")
        assert [memory["content"] for memory in found["memories"]] == ["server os: Ubuntu 22"]


@pytest.mark.req("QUINN-38")
async def test_empty_results_give_a_hint_and_metadata_is_returned(services: Services, owner: Owner) -> None:
    async with in_process_client(services, owner) as client:
        assert "other sources" in (await call_tool(client, "search_memory", query="printer trouble"))["hint"]
        assert "other sources" in (await call_tool(client, "lookup_entity", text="Zanzibar"))["hint"]
        pointing = MemoryIn(content="Printer trouble was solved as described", metadata={"kb_article": "42"})
        await services.memories.save(owner, [pointing])
        found = await call_tool(client, "search_memory", query="printer trouble")
        assert found["memories"][0]["metadata"] == {"kb_article": "42"}
        assert "hint" not in found


async def test_entities_are_looked_up_by_name(services: Services, owner: Owner) -> None:
    async with in_process_client(services, owner) as client:
        await call_tool(
            client, "upsert_memories", type="fact", content="Anna is Mara's sister", confidence=0.9, about=["Anna"]
        )
        known = (await call_tool(client, "lookup_entity", text="When did I last see Anna?"))["entities"]
    assert [(entity["name"], [memory["content"] for memory in entity["memories"]]) for entity in known] == [
        ("Anna", ["Anna is Mara's sister"])
    ]


@pytest.mark.req("QUINN-47")
async def test_get_context_returns_one_text_within_the_budget_and_with_tags(services: Services, owner: Owner) -> None:
    async with in_process_client(services, owner) as client:
        await call_tool(client, "save_memory", content="Mara is allergic to peanuts")
        context = await call_tool(client, "get_context", question="What may I cook for Mara?", token_budget=500)
        saved = await call_tool(client, "save_memory", content="Mara rows", topic_tags="sport", about="Ida")
        rowing = await call_tool(client, "get_context", question="What does Mara do?", tags={"any": ["sport"]})
    assert "allergic to peanuts" in context["preamble"]
    assert count_tokens(context["preamble"]) <= 500
    assert saved["action"] == "insert"
    assert "rows" in rowing["preamble"]
    assert "peanuts" not in rowing["preamble"]


@pytest.mark.req("CASH-18", "QUINN-43")
async def test_get_context_opens_a_conversation_with_greeting_open_loops_and_past_fixes(
    services: Services, owner: Owner
) -> None:
    await services.messages.open_session(owner, SessionIn(session_id="earlier", title="the VPN"))
    statements = [
        MemoryIn(content="Mara wants to review her insurance", type="open_loop"),
        MemoryIn(content="Restarting the router did not help Mara with the VPN"),
        MemoryIn(content="Resetting the VPN profile fixed the VPN of Mara"),
    ]
    await services.memories.save(owner, statements)
    async with in_process_client(services, owner) as client:
        start = await call_tool(client, "get_context")
        asked = await call_tool(client, "get_context", question="My VPN does not connect again, what can I do?")
    assert start["greeting"] == "Welcome back! Last time we talked about the VPN."
    assert start["open_loops"] == ["Mara wants to review her insurance"]
    assert {fix["content"].split()[0]: fix["outcome"] for fix in asked["past_fixes"]} == {
        "Restarting": "failed",
        "Resetting": "worked",
    }


async def test_lookup_and_context_answer_as_of_both_times(services: Services, owner: Owner) -> None:
    statement = {"content": "Anna lives in Rome", "subject": {"name": "Anna", "type": "Person"}}
    moved = {"content": "Anna lives in Oslo", "subject": {"name": "Anna", "type": "Person"}}
    place = {"predicate": "LIVES_IN", "single_valued": True}
    for given, city, since in ((statement, "Rome", "2020-01-01"), (moved, "Oslo", "2024-01-01")):
        memory = {**given, **place, "object": {"name": city, "type": "City"}, "valid_at": f"{since}T00:00:00Z"}
        await services.memories.save(owner, [MemoryIn.model_validate(memory)])
    async with in_process_client(services, owner) as client:
        then = {"valid_as_of": "2022-01-01T00:00:00Z"}
        known = await call_tool(client, "lookup_entity", text="Anna", **then)
        assert [memory["content"] for memory in known["entities"][0]["memories"]] == ["Anna lives in Rome"]
        before = await call_tool(client, "get_context", question="Where does Anna live?", **then)
        now = await call_tool(client, "get_context", question="Where does Anna live?")
    for context, city, other in ((before, "Rome", "Oslo"), (now, "Oslo", "Rome")):
        assert city in context["preamble"]
        assert other not in context["preamble"]


async def test_tool_errors_say_what_is_wrong(services: Services, owner: Owner) -> None:
    async with in_process_client(services, owner) as client:
        assert "confidence" in await call_tool_error(
            client, "upsert_memories", type="fact", content="x y", confidence=3, topic_tags=[]
        )
        assert "Not found" in await call_tool_error(client, "memory_history", memory_id="nothing")
        assert "empty" in await call_tool_error(client, "search_memory", query="  ")
        assert "invalid_at is before" in await call_tool_error(
            client,
            "upsert_memories",
            type="fact",
            content="x y",
            confidence=1,
            valid_at="2026-05-02T00:00:00Z",
            invalid_at="2026-05-01T00:00:00Z",
        )
        assert "offset" in await call_tool_error(
            client, "search_memory", query="x", filters={"valid_as_of": "May 2026"}
        )
        assert "memory_id" in await call_tool_error(client, "update_memory", content="x")
        assert "Latin letter" in await call_tool_error(client, "update_memory", key="42", value="x")


ABSENT = (None, "", " ", "null", "None", "undefined")


async def test_optional_arguments_may_be_null_or_empty(services: Services, owner: Owner) -> None:
    """Strict function calling sends every argument, and models write words for those that they leave out."""
    async with in_process_client(services, owner) as client:
        for index, absent in enumerate(ABSENT):
            fact = f"Mara has {index} cats"
            optional = ("topic_tags", "about", "supersedes", "domain", "scope", "space", "valid_at", "expires_at")
            saved = await call_tool(client, "save_memory", content=fact, **dict.fromkeys(optional, absent))
            assert saved["action"] == "insert", absent
            found = await call_tool(client, "search_memory", query=fact, limit=absent, filters=absent, cut=absent)
            assert saved["memory_id"] in {memory["id"] for memory in found["memories"]}
            filters = {"domain": absent, "types": None}
            assert (await call_tool(client, "search_memory", query=fact, filters=filters))["memories"]
            assert (await call_tool(client, "get_context", question=absent, session_id=absent))["preamble"]
        nothing: list[object] = [[], {}]
        for empty in nothing:
            found = await call_tool(client, "search_memory", query="tea", limit=empty, filters=empty, min_score=empty)
            assert found["memories"], empty
        given = {"topic_tags": ["null", "home", ""], "about": [None, "Mara"], "supersedes": {}}
        saved = await call_tool(client, "save_memory", content="Mara has a parrot", **given)
        assert saved["action"] == "insert"
        for tool, argument in (("save_memory", "content"), ("search_memory", "query"), ("memory_history", "memory_id")):
            refused = await call_tool_error(client, tool, **{argument: None})
            assert argument in refused
            assert not {"function", "functools", "pydantic"} & set(refused.lower().split())


async def test_an_answer_is_bounded_and_says_what_it_left_out(services: Services, owner: Owner) -> None:
    long = "Mara keeps a diary about her garden. " * 18
    memories = [MemoryIn(content=f"{number} {long}") for number in range(40)]
    await services.memories.save(owner, memories)
    async with in_process_client(services, owner) as client:
        result = await client.call_tool("search_memory", {"query": "garden", "limit": 40})
    [block] = result.content
    assert isinstance(block, TextContent)
    assert len(block.text) <= 16_000
    found = json.loads(block.text)
    assert found["left_out"] > 0
    assert found["left_out"] + len(found["memories"]) == 40


async def test_without_a_memory_that_fits_messages_are_shown_as_such(services: Services, owner: Owner) -> None:
    said = ["How old is the cello?", "My cello is from 1890."]
    turns = MessagesIn.model_validate({"messages": [{"role": "user", "content": text} for text in said]})
    await services.messages.add(owner, turns.model_copy(update={"extract": False}))
    async with in_process_client(services, owner) as client:
        found = await call_tool(client, "search_memory", query="How old is the cello?")
    assert [(one["said_by"], one["content"]) for one in found["messages"]] == [
        ("user", "My cello is from 1890."), ("user", "How old is the cello?"),
    ], "what states something comes before what asks"  # fmt: skip
    assert "messages" in found["hint"]


async def test_a_save_shows_what_it_contradicts(services: Services, owner: Owner) -> None:
    async with in_process_client(services, owner) as client:
        await call_tool(client, "save_memory", content="Mara lives in Lund")
        saved = await call_tool(client, "save_memory", content="Mara lives in Oslo")
    assert [memory["content"] for memory in saved["may_contradict"]] == ["Mara lives in Lund"]


async def test_unknown_arguments_are_refused_with_the_one_that_was_meant(services: Services, owner: Owner) -> None:
    """A misplaced `valid_as_of` used to be ignored, so that it answered with today's memories."""
    async with in_process_client(services, owner) as client:
        misplaced = await call_tool_error(client, "search_memory", query="home", valid_as_of="2020-01-01T00:00:00Z")
        assert "valid_as_of: is not a field" in misplaced
        nested = await call_tool_error(client, "search_memory", query="home", filters={"type": "fact"})
        assert "type: is not a field" in nested
        assert "did you mean topic_tags?" in await call_tool_error(client, "save_memory", content="x", tags=["y"])
        assert "tags: must be an object" in await call_tool_error(
            client, "search_memory", query="home", filters={"tags": ["y"]}
        )
        assert "http" not in misplaced + nested
        for tool in (await client.list_tools()).tools:
            assert tool.title
            assert tool.input_schema["additionalProperties"] is False


async def test_immutable_and_global_memories_cannot_be_changed(services: Services, owner: Owner) -> None:
    shared = MemoryIn(content="The office closes at six", scope=Scope.GLOBAL)
    fixed = MemoryIn(content="Mara was born in Rome", immutable=True)
    saved = [result.memory for result in await services.memories.save(owner, [shared, fixed])]
    async with in_process_client(services, owner) as client:
        for memory, reason in zip(saved, ("administrator", "Immutable"), strict=True):
            assert memory
            assert reason in await call_tool_error(client, "update_memory", memory_id=memory.id, content="x y")
            assert reason in await call_tool_error(client, "delete_memory", memory_id=memory.id)


async def test_a_read_only_connection_writes_nothing(services: Services, owner: Owner) -> None:
    [saved] = await services.memories.save(owner, [MemoryIn(content="Mara likes tea")])
    assert saved.memory
    async with in_process_client(services, owner, can_write=False) as client:
        assert (await call_tool(client, "search_memory", query="tea"))["memories"]
        await call_tool(client, "get_context", question="What does Mara drink?")
        for tool, arguments in (
            ("save_memory", {"content": "x y"}),
            ("upsert_memories", {"type": "fact", "content": "x y", "confidence": 1}),
            ("update_memory", {"memory_id": saved.memory.id, "content": "x y"}),
            ("delete_memory", {"memory_id": saved.memory.id}),
        ):
            assert "Forbidden" in await call_tool_error(client, tool, **arguments)
    await services.retrieval.flush()
    assert (await services.memories.get(owner, saved.memory.id)).access_count == 0


async def test_another_users_memory_is_not_found(services: Services, owner: Owner) -> None:
    [saved] = await services.memories.save(Owner(owner.tenant, "anna"), [MemoryIn(content="Anna likes coffee")])
    assert saved.memory
    async with in_process_client(services, owner) as client:
        for tool in ("delete_memory", "memory_history"):
            assert "Not found" in await call_tool_error(client, tool, memory_id=saved.memory.id)
        assert (await call_tool(client, "search_memory", query="coffee")).get("memories", []) == []


async def test_what_is_saved_in_a_space_is_shared_with_the_members_alone(services: Services, owner: Owner) -> None:
    admin = make_local_key("admin", owner.tenant)
    members = [{"user": owner.user_id, "role": "writer"}, {"user": "cy", "role": "reader"}]
    await services.spaces.put(admin, "atlas", SpaceIn.model_validate({"title": "Team Atlas", "members": members}))
    async with in_process_client(services, owner) as client:
        await call_tool(client, "save_memory", content="The launch of Atlas is on Friday", space="atlas")
        refused = await call_tool_error(client, "save_memory", content="No", space="unknown")
        assert "There is no such space." in refused
    cy, dora = (Owner(owner.tenant, user) for user in ("cy", "dora"))
    async with in_process_client(services, cy) as client:
        (memory,) = (await call_tool(client, "search_memory", query="When is the launch?"))["memories"]
        assert (memory["space"], memory["said_by"]) == ("atlas", owner.user_id)
        assert "Team Atlas:" in (await call_tool(client, "get_context", question="When is the launch?"))["preamble"]
        for tool, arguments in (("update_memory", {"content": "No"}), ("delete_memory", {})):
            assert "needs the role writer" in await call_tool_error(client, tool, memory_id=memory["id"], **arguments)
        await services.spaces.remove_member(admin, "atlas", "cy")
        assert (await call_tool(client, "search_memory", query="When is the launch?")).get("memories", []) == []
        assert "no such memory" in await call_tool_error(client, "memory_history", memory_id=memory["id"])
    async with in_process_client(services, dora) as client:
        assert (await call_tool(client, "search_memory", query="When is the launch?")).get("memories", []) == []


@pytest.mark.req("QUINN-13")
async def test_a_kind_of_facts_that_a_model_names_is_stored_and_found_alone(services: Services, owner: Owner) -> None:
    async with in_process_client(services, owner) as client:
        await call_tool(client, "save_memory", content="Mara was born in Lund", type="personal_info")
        await call_tool(client, "save_memory", content="Mara rows on Sundays")
        found = await call_tool(client, "search_memory", query="What about Mara?", filters={"types": ["personal_info"]})
    assert [(memory["content"], memory["type"]) for memory in found["memories"]] == [
        ("Mara was born in Lund", "personal_info")
    ]
