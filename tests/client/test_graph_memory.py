"""`GraphMemory`: the methods of the clients in one process."""

from __future__ import annotations

import pytest

from graphmem import GraphMemory, InvalidInput, NotFound
from graphmem.app.bootstrap import Services
from graphmem.consolidation.models import ConsolidationRun, MaintenanceTask
from graphmem.conversations.session import MessagesAccepted
from graphmem.jobs.job import Job, JobStatus

MESSAGES = [
    {"role": "user", "content": "I moved to Lisbon last week."},
    {"role": "model", "content": "How do you like Lisbon?"},
]


@pytest.fixture
def memory(services: Services, tenant: str) -> GraphMemory:
    """The memory of this test's tenant."""
    return GraphMemory(services).for_tenant(tenant)


async def test_memories_are_saved_found_updated_and_read_back(memory: GraphMemory) -> None:
    [saved] = await memory.add("mara", "Mara likes oolong tea")
    assert saved.memory
    assert saved.memory.source.kind == "user"
    found = await memory.search("mara", "tea", limit=3)
    assert [hit.memory.id for hit in found.results] == [saved.memory.id]
    assert (await memory.lookup("mara", "mara")).entities
    assert "oolong" in (await memory.context("mara", "Which tea?", token_budget=500)).preamble
    changed = await memory.update("mara", saved.memory.id, if_version=1, content="Mara likes green tea")
    assert (changed.version, (await memory.memory("mara", changed.id)).content) == (2, "Mara likes green tea")
    assert [version.version for version in await memory.history("mara", changed.id)] == [1, 2]
    assert [listed.id for listed in (await memory.memories("mara", keyword="green")).items] == [changed.id]


async def test_entities_are_listed_and_graphed(memory: GraphMemory) -> None:
    await memory.add("mara", {"content": "Mara met Anna", "object": {"name": "Anna", "type": "Person"}})
    [anna] = (await memory.entities("mara", query="ann")).items
    assert (await memory.entity("mara", anna.id)).name == "Anna"
    assert [found.content for found in await memory.entity_memories("mara", anna.id)] == ["Mara met Anna"]
    assert {node.name for node in (await memory.entity_graph("mara", anna.id, depth=1)).nodes} >= {"Anna"}


async def test_a_conversation_is_stored_and_its_job_is_finished(memory: GraphMemory) -> None:
    job = await memory.add_messages("mara", MESSAGES, session_id="s", wait=True)
    assert isinstance(job, Job)
    assert job.status is JobStatus.SKIPPED
    assert (await memory.job(job.id)).id == job.id
    assert [message.content for message in (await memory.session_messages("mara", "s")).items] == [
        message["content"] for message in MESSAGES
    ]
    assert (await memory.search_messages("mara", "Lisbon"))[0].message.session_id == "s"
    assert not (await memory.close_session("mara", "s")).is_active


async def test_a_run_is_started_listed_and_read(memory: GraphMemory) -> None:
    await memory.add("mara", {"content": "Mara likes tea"})
    run = await memory.consolidate("mara", dry_run=True, wait=True)
    assert isinstance(run, ConsolidationRun)
    assert [listed.id for listed in (await memory.runs(user_id="mara")).items] == [run.id]
    assert (await memory.run(run.id)).dry_run


async def test_maintenance_and_keys_are_those_of_the_tenant(memory: GraphMemory) -> None:
    assert await memory.maintain("decay") == {MaintenanceTask.DECAY: {"faded": 0}}
    created = await memory.create_key("notebook", role="analyst", users=["mara"])
    assert [key.id for key in await memory.keys()] == [created.id]
    await memory.revoke_key(created.id)
    assert await memory.keys() == []
    assert (await memory.set_instructions("Remember allergies.")).text == "Remember allergies."
    assert (await memory.instructions()).updated_by == "python"


async def test_a_user_is_exported_imported_and_forgotten(memory: GraphMemory) -> None:
    await memory.add("mara", "Mara likes oolong tea")
    document = await memory.export("mara")
    assert (await memory.import_("copy", document.decode())).imported
    with pytest.raises(InvalidInput, match=r"not list: json\.dumps"):
        await memory.import_("copy", [{"content": "Mara likes oolong tea"}])  # pyrefly: ignore[bad-argument-type]
    assert (await memory.forget("mara")).residue == 0
    assert [listed.content for listed in (await memory.memories("copy")).items] == ["Mara likes oolong tea"]


async def test_tenants_share_nothing(memory: GraphMemory) -> None:
    other = memory.for_tenant(f"{memory.tenant}-2")
    await memory.add("mara", "Mara likes oolong tea")
    assert (await other.memories("mara")).items == []
    accepted = await memory.add_messages("mara", MESSAGES)
    assert isinstance(accepted, MessagesAccepted)
    assert accepted.job_id
    with pytest.raises(NotFound):
        await other.job(accepted.job_id)


async def test_what_a_named_actor_writes_is_from_that_actor(services: Services, tenant: str) -> None:
    memory = GraphMemory(services, tenant, actor="crm")
    [saved] = await memory.add("mara", "Mara likes oolong tea")
    assert saved.memory
    [version] = await memory.history("mara", saved.memory.id)
    assert version.actor == "crm"


async def test_the_default_tenant_needs_no_name(services: Services) -> None:
    assert GraphMemory(services).tenant == "default"
    with pytest.raises(InvalidInput):
        GraphMemory(services).for_tenant("No such tenant")


async def test_invalid_input_is_rejected(memory: GraphMemory) -> None:
    for call in (
        memory.search("mara", "tea", limit=0),
        memory.add("mara", [{"content": "x", "confidence": 2}]),
        memory.add("mara", []),
        memory.add("", "x y"),
        memory.add_messages("mara", []),
        memory.context("mara", " "),
        memory.consolidate("mara", proposals=[{"action": "DESTROY"}]),
        memory.maintain("polish"),  # pyrefly: ignore[bad-argument-type]
    ):
        with pytest.raises(InvalidInput):
            await call


async def test_the_user_may_be_named_and_answers_are_iterated(memory: GraphMemory) -> None:
    statements = [{"content": f"Mara likes {tea} tea", "object": tea} for tea in ("oolong", "green", "white")]
    saved = await memory.add(statements, user_id="mara")
    found = await memory.search("Which tea?", user_id="mara", limit=2)
    assert len(found) == 2
    assert [hit.content for hit in found] == [hit.memory.content for hit in found.results]
    assert [match.entity.name for match in await memory.lookup("oolong", user_id="mara")] == ["oolong"]
    assert saved[0].memory
    [version] = await memory.history(saved[0].memory.id, user_id="mara")
    assert version.object
    assert version.object.name == "oolong"
    assert len(await memory.memories(user_id="mara")) == 3
    assert [kept.content for kept in await memory.get_all("mara", limit=1)] == ["Mara likes white tea"]
    assert len(await memory.get_all(user_id="mara", keyword="tea")) == 3


async def test_messages_that_are_added_are_stored_and_extracted(memory: GraphMemory) -> None:
    [result] = await memory.add(MESSAGES, user_id="mara", session_id="s")
    assert (result.action, result.memory) == ("skip", None)
    assert "model" in (result.reason or "")
    assert len(await memory.session_messages("s", user_id="mara")) == len(MESSAGES)
    with pytest.raises(InvalidInput, match="mixes messages"):
        await memory.add([*MESSAGES, "Mara likes tea"], user_id="mara")
    with pytest.raises(InvalidInput, match="session_id"):
        await memory.add("Mara likes tea", user_id="mara", session_id="s")
