"""The methods of the HTTP clients, against a running server."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from graphmem.app.bootstrap import Services
from graphmem.client import AsyncClient, Client
from graphmem.consolidation.models import ConsolidationRun, RollbackResult
from graphmem.conversations.session import MessagesAccepted
from graphmem.jobs.job import Job, JobStatus
from graphmem.memories.memory import (
    Memory,
    MemoryIn,
    MemoryStatus,
    SaveAction,
)
from graphmem.runtime.errors import Conflict, Forbidden, NotFound
from graphmem.runtime.times import utc_now
from graphmem.tenants.access import ApiKeyIn, KeyRole
from graphmem.tenants.owners import Owner
from tests.api.test_quarantine import quarantine

MESSAGES = [
    {"role": "user", "content": "I moved to Lisbon last week."},
    {"role": "model", "content": "How do you like Lisbon?"},
]


async def test_a_memory_is_added_searched_updated_and_its_history_read(agent: AsyncClient) -> None:
    saved = await agent.add("mara", [MemoryIn(content="Mara likes oolong tea", type="preference"), "Mara has a dog"])
    assert [result.action for result in saved] == [SaveAction.INSERT, SaveAction.INSERT]
    tea = saved[0].memory
    assert isinstance(tea, Memory)
    found = await agent.search("mara", "which tea?", limit=1, types=["preference"])
    assert [hit.memory.id for hit in found.results] == [tea.id]
    changed = await agent.update("mara", tea.id, if_version=1, content="Mara likes green tea", tags=["Tea"])
    assert (changed.version, changed.tags) == (2, ["tea"])
    assert (await agent.memory("mara", tea.id)).content == "Mara likes green tea"
    listed = await agent.memories("mara", type=["preference"], tag=["tea"], limit=5)
    assert [memory.id for memory in listed.items] == [tea.id]
    assert (await agent.memories("mara", metadata={"shelf": "top"})).items == []
    assert (await agent.delete("mara", tea.id)).status is MemoryStatus.DELETED
    versions = await agent.history("mara", tea.id)
    assert [version.content for version in versions][:2] == ["Mara likes oolong tea", "Mara likes green tea"]
    assert versions[-1].ended_reason


async def test_entities_are_looked_up_listed_and_graphed(agent: AsyncClient) -> None:
    await agent.add("mara", {"content": "Mara met Anna in Lisbon", "object": {"name": "Anna", "type": "Person"}})
    matches = await agent.lookup("mara", "How is Anna?")
    [anna] = [match.entity for match in matches.entities]
    assert anna.name == "Anna"
    planned = await agent.lookup("mara", "How is Anna?", type=["plan"], metadata={"file": "a.md"})
    assert [match.memories for match in planned.entities] == [[]]
    assert (await agent.entity("mara", anna.id)).name == "Anna"
    assert [entity.name for entity in (await agent.entities("mara", query="ann")).items] == ["Anna"]
    now = datetime.now(UTC)
    assert len(await agent.entity_memories("mara", anna.id, valid_as_of=now)) == 1
    assert {node.name for node in (await agent.entity_graph("mara", anna.id)).nodes} >= {"Anna"}


async def test_a_supersession_is_reverted(agent: AsyncClient) -> None:
    city = {"type": "fact", "predicate": "LIVES_IN", "single_valued": True}
    [first] = await agent.add("mara", {"content": "Mara lives in Rome", "valid_at": "2025-01-01T00:00:00Z", **city})
    [second] = await agent.add("mara", {"content": "Mara lives in Oslo", "valid_at": "2026-01-01T00:00:00Z", **city})
    assert first.memory
    assert second.superseded == [first.memory.id]
    assert (await agent.revert("mara", first.memory.id)).status is MemoryStatus.ACTIVE


@pytest.mark.parametrize("format", ["json", "yaml"])
async def test_a_user_is_exported_imported_and_forgotten(admin: AsyncClient, format: Any) -> None:
    await admin.add("mara", "Mara likes oolong tea")
    document = await admin.export("mara", format=format)
    assert b"oolong" in document
    assert (await admin.import_("copy", document)).imported
    assert (await admin.memories("copy")).items[0].content == "Mara likes oolong tea"
    assert (await admin.forget("mara")).residue == 0
    assert (await admin.memories("mara")).items == []


async def test_keys_are_created_listed_and_revoked(admin: AsyncClient) -> None:
    created = await admin.create_key("notebook", role="analyst", users=["mara"])
    assert created.key.startswith("gm_")
    assert created.id in {key.id for key in await admin.keys()}
    assert await admin.revoke_key(created.id) is None
    assert created.id not in {key.id for key in await admin.keys()}


async def test_custom_instructions_are_set_and_read(admin: AsyncClient) -> None:
    made = await admin.set_instructions("Remember allergies.")
    assert (made.text, await admin.instructions()) == ("Remember allergies.", made)
    assert (await admin.set_instructions("")).text == ""


async def test_a_memory_is_erased_by_an_admin(admin: AsyncClient) -> None:
    [saved] = await admin.add("mara", "Mara likes oolong tea")
    assert saved.memory
    assert await admin.erase_memory("mara", saved.memory.id) == 1


async def test_maintenance_returns_the_results_of_each_task(admin: AsyncClient) -> None:
    assert await admin.maintain("decay", "compress") == {"decay": {"faded": 0}, "compress": {}}


async def test_the_schema_of_an_export_is_read(agent: AsyncClient) -> None:
    assert "memories" in (await agent.export_schema())["properties"]


async def test_the_blocking_client_returns_results_directly(address: str, services: Services, tenant: str) -> None:
    key = await services.keys.create(tenant, ApiKeyIn(name="agent", role=KeyRole.AGENT))

    def use() -> list[str]:
        with Client(key.key, address) as client:
            client.add("Mara likes oolong tea", user_id="mara")
            assert [kept.content for kept in client.get_all("mara")] == ["Mara likes oolong tea"]
            return [hit.content for hit in client.search("mara", "tea")]

    assert await asyncio.to_thread(use) == ["Mara likes oolong tea"]


@pytest.mark.parametrize("user_id", [".", "..", "a/b", "100%", "a%2Fb", "q?u#", "über straße", "日本"])
async def test_a_user_id_may_hold_any_character(agent: AsyncClient, user_id: str) -> None:
    await agent.add(user_id, "Likes tea")
    assert [memory.user_id for memory in (await agent.memories(user_id)).items] == [user_id]


async def test_a_conversation_is_stored_read_rated_and_closed(agent: AsyncClient) -> None:
    opened = await agent.create_session("mara", "s/1", title="Moving")
    assert opened.session_id == "s/1"
    accepted = await agent.add_messages("mara", MESSAGES, session_id="s/1")
    assert isinstance(accepted, MessagesAccepted)
    assert accepted.job_id
    assert (await agent.job(accepted.job_id)).kind == "extraction"
    assert accepted.job_id in [job.id for job in (await agent.jobs("mara")).items]
    again = await agent.add_messages("mara", [{"role": "user", "content": "I sleep well there."}], wait=True)
    assert isinstance(again, Job)
    assert again.status is JobStatus.SKIPPED
    with pytest.raises(Conflict):
        await agent.retry_job(again.id)
    with pytest.raises(Conflict):
        await agent.retry_job(again.id, fresh=True)
    stored = (await agent.session_messages("mara", "s/1")).items
    assert [message.content for message in stored] == [message["content"] for message in MESSAGES]
    assert (await agent.search_messages("mara", "Lisbon"))[0].message.session_id == "s/1"
    assert (await agent.feedback("mara", accepted.message_ids[1], score=5, text="Short, good.")).score == 5
    assert (await agent.session("mara", "s/1")).title == "Moving"
    assert not (await agent.close_session("mara", "s/1")).is_active
    assert {session.session_id for session in (await agent.sessions("mara", active=False)).items} == {"s/1"}
    assert (await agent.summarize_session("mara", "s/1", wait=True)).status.is_final


async def test_an_extraction_is_triggered_by_an_admin(admin: AsyncClient) -> None:
    await admin.add_messages("mara", MESSAGES, session_id="s", extract=False)
    started = await admin.trigger_extraction("s", user_id="mara")
    assert started.triggered
    assert (await admin.job(started.job_id)).id == started.job_id


async def test_the_context_holds_what_was_learned(agent: AsyncClient) -> None:
    """Learning runs in the background after the messages were stored."""
    week = [
        {"role": "user", "content": f"What did I spend on food, week {day}?", "intent": "spending_analysis"}
        | {"entities": {"category": "food"}, "timestamp": (utc_now() - timedelta(days=day)).isoformat()}
        for day in range(6, 0, -1)
    ]
    last = {"role": "user", "content": "Please answer in Spanish. My budget is $400."}
    await agent.add("mara", "Mara likes oolong tea")
    await agent.add_messages("mara", [*week, last], session_id="s", extract=False)
    for _ in range(600):
        patterns = await agent.patterns("mara")
        if patterns:
            break
        await asyncio.sleep(0.1)
    assert "query_frequency" in {pattern.pattern_type for pattern in patterns}
    [preference] = await agent.preferences("mara")
    assert preference.preference_value == {"language": "Spanish"}
    assert {item.session_id for item in await agent.contexts("mara", session_id="s")} == {"s"}
    context = await agent.context("mara", "Which tea?", session_id="s", token_budget=500)
    assert "oolong" in context.preamble
    assert "Answer in Spanish." in context.preamble


async def test_a_consolidation_is_run_read_and_rolled_back(admin: AsyncClient) -> None:
    saved = await admin.add("mara", ["Mara likes oolong tea", "Mara enjoys oolong tea"])
    ids = [result.memory.id for result in saved if result.memory]
    merge = {"action": "MERGE", "memory_ids": ids, "content": "Mara likes and enjoys oolong tea", "verified": True}
    run = await admin.consolidate("mara", proposals=[merge], wait=True)
    assert isinstance(run, ConsolidationRun)
    assert (await admin.run(run.id)).changes
    assert run.id in {listed.id for listed in (await admin.runs(user_id="mara")).items}
    current = (await admin.memories("mara")).items
    assert [memory.content for memory in current] == ["Mara likes and enjoys oolong tea"]
    undone = await admin.rollback(run.id)
    assert isinstance(undone, RollbackResult)
    assert undone.restored
    assert {memory.id for memory in (await admin.memories("mara")).items} == set(ids)
    assert isinstance(await admin.consolidate("mara", dry_run=True), str)


async def test_the_quarantine_is_listed_released_and_dropped(
    admin: AsyncClient, agent: AsyncClient, services: Services, tenant: str
) -> None:
    first, second = [
        await quarantine(services, Owner(tenant, "mara"), f"User books at hotel {number}") for number in range(2)
    ]
    page = await admin.quarantine("mara", limit=1)
    assert [statement.id for statement in page] == [second]
    rest = await admin.quarantine("mara", limit=1, cursor=page.next_cursor)
    assert [(statement.id, statement.memory.content) for statement in rest] == [(first, "User books at hotel 0")]
    released = await admin.release_quarantined(first)
    assert released.memory is not None
    assert (await agent.memory("mara", released.memory.id)).content == "User books at hotel 0"
    await admin.drop_quarantined(second)
    assert (await admin.quarantine()).items == []
    with pytest.raises(NotFound):
        await admin.drop_quarantined(second)
    with pytest.raises(Forbidden):
        await agent.quarantine()
