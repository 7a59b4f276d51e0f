"""Memories that mention an entity besides subject and object, and lists that stay short however often one is stated."""

from __future__ import annotations

import json
from typing import Any

from graphmem.app.bootstrap import Services
from graphmem.conversations.session import MessageIn, MessagesIn
from graphmem.conversations.stored import PreparedMessage
from graphmem.memories.memory import (
    MAX_SOURCE_MESSAGES,
    Memory,
    MemoryIn,
    MemoryPatch,
)
from graphmem.memories.saving import MAX_MESSAGE_FACTS
from graphmem.search.models import EntityMemoriesQuery
from graphmem.tenants.owners import Owner

TRIP: dict[str, Any] = {
    "content": "Mara sailed to Oslo with Bob",
    "object": {"name": "Oslo"},
    "entities": [{"name": "Bob"}],
}


async def save(memory: Services, owner: Owner, **memory_in: Any) -> Memory:
    """Save one memory."""
    [result] = await memory.memories.save(owner, [MemoryIn.model_validate(memory_in)])
    assert result.memory
    return result.memory


async def find_about(memory: Services, owner: Owner, name: str) -> list[str]:
    """Return the statements about the entity of a name, or that mention it."""
    [entity_id] = await memory.components.entities.resolve_entity_ids(owner, name)
    return [found.content for found in await memory.entities.list_memories(owner, entity_id, EntityMemoriesQuery())]


async def count(memory: Services, owner: Owner, text: str) -> int:
    """Return what a query about a user counts."""
    rows = await memory.components.graph.read(
        lambda transaction: transaction.run_text(text, {"group_id": owner.group_id})
    )
    return int(rows[0]["found"])


async def test_a_mentioned_entity_leads_to_the_memory_and_its_corrections(memory: Services, owner: Owner) -> None:
    trip = await save(memory, owner, **TRIP)
    assert await find_about(memory, owner, "Bob") == [trip.content]
    await save(memory, owner, **TRIP)
    await memory.memories.patch(owner, trip.id, MemoryPatch(content="Mara flew to Oslo with Bob"))
    assert await find_about(memory, owner, "Bob") == ["Mara flew to Oslo with Bob"]
    references = "MATCH (:Entity {group_id: $group_id})-[r:REFERS_TO]->() RETURN count(r) AS found"
    assert await count(memory, owner, references) == 1


async def test_a_hard_delete_removes_the_reference(memory: Services, owner: Owner) -> None:
    trip = await save(memory, owner, **TRIP)
    await save(memory, owner, content="Bob likes tea", subject={"name": "Bob"})
    await memory.forgetting.erase_memory(owner, trip.id)
    assert await find_about(memory, owner, "Bob") == ["Bob likes tea"]
    assert (
        await count(memory, owner, "MATCH (:Entity {group_id: $group_id})-[r:REFERS_TO]->() RETURN count(r) AS found")
        == 0
    )


async def test_an_import_finds_memories_by_what_they_mention(memory: Services, owner: Owner) -> None:
    trip = await save(memory, owner, **TRIP)
    document = json.loads(await memory.exports.export(owner))
    mentioned_in = {node["properties"]["name"]: node["properties"]["mentioned_in"] for node in document["entities"]}
    assert mentioned_in == {"mara": [], "Oslo": [], "Bob": [trip.id]}
    twin = Owner(owner.tenant, "twin")
    await memory.imports.import_(twin, json.dumps(document).encode())
    assert await find_about(memory, twin, "Bob") == [trip.content]


async def test_a_repeated_statement_names_its_latest_sources_only(memory: Services, owner: Owner) -> None:
    first, second = ([f"{part}{number}" for number in range(150)] for part in ("a", "b"))
    for message_ids in (first, second):
        repeated = await save(memory, owner, content="Mara likes tea", source={"message_ids": message_ids})
    assert repeated.source.message_ids == [*first, *second][-MAX_SOURCE_MESSAGES:]


async def test_a_message_lists_its_latest_facts_only(memory: Services, owner: Owner) -> None:
    talk = MessagesIn(
        session_id="talk", messages=[MessageIn(id="m1", role="user", content="A long list")], extract=False
    )
    await memory.messages.add(owner, talk)
    statements = [f"Mara owns the book number {number}" for number in range(MAX_MESSAGE_FACTS + 10)]
    source = {"session_id": "talk", "message_ids": ["m1"]}
    for start in (0, 55):
        part = [MemoryIn(content=text, source=source) for text in statements[start : start + 55]]
        await memory.memories.save(owner, part)
    text = """MATCH (m:Episodic {group_id: $group_id}) UNWIND m.entity_edges AS uuid
        MATCH ()-[r:RELATES_TO {uuid: uuid}]->() RETURN r.fact AS statement"""
    rows = await memory.components.graph.read(
        lambda transaction: transaction.run_text(text, {"group_id": owner.group_id})
    )
    assert [row["statement"] for row in rows] == statements[-MAX_MESSAGE_FACTS:]


async def test_a_session_lists_its_latest_intents_only(memory: Services, owner: Owner) -> None:
    vector = [0.1] * memory.components.embedder.dimension
    turns = [
        PreparedMessage(MessageIn(role="user", content=f"Turn {number}", intent=f"intent {number}"), vector)
        for number in range(210)
    ]
    await memory.components.episodes.append_messages(owner, "talk", turns)
    session = await memory.messages.get_session(owner, "talk")
    assert session.intent_sequence == [f"intent {number}" for number in range(10, 210)]
