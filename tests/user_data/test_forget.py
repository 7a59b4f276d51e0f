"""Forgetting a user leaves nothing behind, is final, and touches nobody else."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from graphmem.app.bootstrap import Services
from graphmem.changes.models import WebhookIn
from graphmem.consolidation.maintenance import MaintenanceTasks
from graphmem.consolidation.run_store import RunStore
from graphmem.context.models import ContextRequest
from graphmem.conversations.session import MessageIn, MessagesIn, SessionIn, SessionListQuery
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import MemoryIn, Scope
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import NONE_HIDDEN_SECONDS, Graph, Transaction
from graphmem.neo4j.driver_values import Row
from graphmem.neo4j.queries import load_queries, parse_fragments
from graphmem.runtime.cache import LocalCache
from graphmem.runtime.errors import NotFound, UserBeingForgotten
from graphmem.runtime.files import cypher_root
from graphmem.runtime.settings import Settings
from graphmem.runtime.times import utc_now
from graphmem.search.models import EntityListQuery, SearchQuery
from graphmem.tenants.access import ApiKeyIn, KeyRole
from graphmem.tenants.idempotency import IdempotencyStore, IdempotentRequest, StoredResponse
from graphmem.tenants.owners import Owner
from graphmem.tenants.users import UserStore
from graphmem.user_data.forget import Erasure, ForgetService, ForgetStore
from graphmem.user_data.models import ErasureReceipt
from tests.user_data.complete_user import fill_user

T = TypeVar("T")

TEA = MemoryIn(content="Bob likes tea", subject={"name": "Bob"})
COFFEE = MemoryIn(content="Bob likes coffee", subject={"name": "Bob"})


@pytest.fixture
async def other_process(database: Settings, embedder: Embedder, graph: Graph) -> AsyncIterator[Services]:
    """The service as another process has it, with its own caches and buffers."""
    async with Services.open(database, worker=False, embedder=embedder) as services:
        yield services


async def run_cypher(graph: Graph, text: str, **parameters: Any) -> list[Row]:
    return await graph.write(lambda transaction: transaction.run_text(text, parameters))


async def count_stored(graph: Graph, owner: Owner) -> int:
    """Count everything that names a user, by scanning the whole database."""
    text = """RETURN COUNT { MATCH (n) WHERE $group_id IN [n.group_id, n.owner_group] }
                   + COUNT { MATCH ()-[r]->() WHERE r.group_id = $group_id } AS stored"""
    (row,) = await run_cypher(graph, text, group_id=owner.group_id)
    return int(row["stored"])


class DyingGraph(Graph):
    """The graph as a process has it that is killed after some transactions."""

    def __init__(self, graph: Graph, writes: int) -> None:
        self._graph = graph
        self._writes = writes

    async def write(
        self, work: Callable[[Transaction], Awaitable[T]], *, metadata: Mapping[str, Any] | None = None
    ) -> T:
        if self._writes == 0:
            raise asyncio.CancelledError
        self._writes -= 1
        return await self._graph.write(work, metadata=metadata)

    def refresh_hidden(self) -> None:
        self._graph.refresh_hidden()


async def interrupt_erasure(graph: Graph, owner: Owner) -> None:
    """Begin to forget a user and stop after a few parts, as a process that is killed does."""
    before = await count_stored(graph, owner)
    erasure = await ForgetStore(DyingGraph(graph, writes=6), utc_now, batch_size=1).begin(owner)
    with suppress(asyncio.CancelledError):
        await erasure.erase()
    assert 2 < await count_stored(graph, owner) < before


async def test_forgetting_one_user_keeps_the_others(
    memory: Services, graph: Graph, owner: Owner, complete_export: bytes
) -> None:
    other = Owner(owner.tenant, "other")
    await fill_user(memory, owner)
    await memory.imports.import_(other, complete_export)
    before = await memory.exports.export(other)
    forgotten = await memory.forgetting.forget(owner)
    assert forgotten.erased["Fact"] >= 5
    assert forgotten.residue == 0
    assert await count_stored(graph, owner) == 0
    assert await memory.exports.export(other) == before


async def test_forgetting_removes_a_user_from_keys_and_webhooks(memory: Services, graph: Graph, owner: Owner) -> None:
    await memory.memories.save(owner, [TEA])
    shared, own = [owner.user_id, "omar"], [owner.user_id]
    keys = [
        await memory.keys.create(owner.tenant, ApiKeyIn(name="key", role=KeyRole.AGENT, users=users))
        for users in (shared, own, ["omar"])
    ]
    hooks = [
        await memory.webhooks.create(owner.tenant, WebhookIn(url="https://example.com/hook", users=users), "admin")
        for users in (shared, own, ["omar"])
    ]
    forgotten = await memory.forgetting.forget(owner)
    assert (forgotten.erased["ApiKey"], forgotten.erased["Webhook"], forgotten.residue) == (2, 2, 0)
    assert {key.id: key.users for key in await memory.keys.list(owner.tenant)} == {
        keys[0].id: ["omar"], keys[2].id: ["omar"]
    }  # fmt: skip
    left = {hook.id: hook for hook in await memory.webhooks.list(owner.tenant)}
    assert [left[hook.id].users for hook in hooks] == [["omar"], [], ["omar"]]
    assert [left[hook.id].disabled_reason for hook in hooks] == [None, "all its users were forgotten", None]
    text = "MATCH (n {tenant: $tenant}) WHERE $user IN n.users RETURN n"
    assert await run_cypher(graph, text, tenant=owner.tenant, user=owner.user_id) == []


async def test_the_receipt_is_signed_and_names_nobody(
    memory: Services, database: Settings, owner: Owner, complete_export: bytes
) -> None:
    await memory.imports.import_(owner, complete_export)
    result = await memory.forgetting.forget(owner)
    receipt = result.receipt
    assert receipt
    assert receipt.user_hash == hashlib.sha256(f"{owner.tenant}:mara".encode()).hexdigest()
    assert "mara" not in receipt.model_dump_json()
    assert receipt.erased == result.erased
    assert receipt.residue == {"graph": 0, "jobs": 0, "caches": 0}
    assert receipt.begun_at <= receipt.ended_at
    key = (database.data_dir / "receipt.key").read_bytes()
    sent = ErasureReceipt.model_validate_json(result.model_dump_json(include={"receipt"})[len('{"receipt":') : -1])
    assert sent.is_signed_by(key)
    assert not sent.is_signed_by(b"another key")
    assert not sent.model_copy(update={"erased": {"Fact": 1}}).is_signed_by(key)


async def test_forgetting_in_many_parts_counts_and_erases_everything(
    memory: Services, graph: Graph, owner: Owner, complete_export: bytes
) -> None:
    await memory.imports.import_(owner, complete_export)
    nodes = "MATCH (n {group_id: $group_id}) RETURN count(n) AS stored"
    (stored,) = await run_cypher(graph, nodes, group_id=owner.group_id)
    erasure = await ForgetStore(graph, utc_now, batch_size=3).begin(owner)
    progress = await erasure.end()
    assert sum(progress.erased.values()) - progress.erased["Fact"] == stored["stored"]
    assert await count_stored(graph, owner) == 0


# A new life of the user


async def test_forgetting_a_user_empties_caches_and_buffers(memory: Services, owner: Owner) -> None:
    await memory.memories.save(owner, [TEA])
    assert (await memory.retrieval.lookup(owner, "What does Bob like?")).entities
    await memory.forgetting.forget(owner)
    await memory.memories.save(owner, [COFFEE])
    [found] = (await memory.retrieval.lookup(owner, "What does Bob like?")).entities
    assert [item.content for item in found.memories] == ["Bob likes coffee"]


async def test_caches_of_other_processes_never_answer_for_a_new_life(
    memory: Services, other_process: Services, owner: Owner
) -> None:
    core = {"scope": Scope.PROFILE, "importance": 0.9}

    async def recall() -> list[str]:
        looked_up = await other_process.retrieval.lookup(owner, "What does Bob like?", reinforce=False)
        context = await other_process.contexts.build(owner, ContextRequest(question="And Bob?"), reinforce=False)
        searched = await other_process.retrieval.search(owner, SearchQuery(query="What does Bob like?"))
        core_memories = (await other_process.retrieval.load_profile(owner)).core
        found = [memory for entity in looked_up.entities for memory in entity.memories] + core_memories
        found += [*context.memories, *(hit.memory for hit in searched.results)]
        return [memory.content for memory in found]

    await memory.memories.save(owner, [TEA.model_copy(update=core)])
    assert set(await recall()) == {"Bob likes tea"}
    await memory.forgetting.forget(owner)
    await memory.memories.save(owner, [COFFEE.model_copy(update=core)])
    recalled = await recall()
    assert set(recalled) == {"Bob likes coffee"}
    assert len(recalled) >= 4


async def test_retrievals_counted_before_a_forget_do_not_recreate_the_user(
    memory: Services, other_process: Services, graph: Graph, owner: Owner
) -> None:
    await memory.memories.save(owner, [TEA])
    for services in (memory, other_process):
        await services.retrieval.lookup(owner, "What does Bob like?")
    assert (await memory.forgetting.forget(owner)).residue == 0
    for services in (memory, other_process):
        await services.retrieval.flush()
    assert await count_stored(graph, owner) == 0


async def test_work_that_continues_a_session_does_not_create_the_user(
    memory: Services, graph: Graph, owner: Owner
) -> None:
    with pytest.raises(NotFound):
        await memory.messages.close(owner, "gone")
    with pytest.raises(NotFound):
        await memory.learner.learn_from_feedback(owner, "gone", 5, "great")
    with pytest.raises(NotFound):
        await memory.consolidations.start(owner.tenant, user_id=owner.user_id)
    assert await memory.components.episodes.get_timezone(owner) is None
    assert await count_stored(graph, owner) == 0


# While the erasure is under way, or was interrupted


async def store_something(memory: Services, owner: Owner, way: str) -> None:
    message = MessageIn(role="user", content="I like tea")
    match way:
        case "memory":
            await memory.memories.save(owner, [TEA])
        case "message":
            await memory.messages.add(owner, MessagesIn(session_id="s", messages=[message], extract=False))
        case "session":
            await memory.messages.open_session(owner, SessionIn())
        case "import":
            await memory.imports.import_(owner, b'{"messages": [{"role": "user", "content": "I like tea"}]}')
        case "consolidation":
            await memory.consolidations.start(owner.tenant, user_id=owner.user_id)


async def test_an_interrupted_erasure_hides_what_is_left_and_refuses_writes(
    memory: Services, other_process: Services, graph: Graph, owner: Owner, complete_export: bytes
) -> None:
    await memory.imports.import_(owner, complete_export)
    await interrupt_erasure(graph, owner)
    await asyncio.sleep(NONE_HIDDEN_SECONDS)
    for services in (memory, other_process):
        for way in ("memory", "message", "session", "import", "consolidation"):
            with pytest.raises(UserBeingForgotten, match="request it again") as refused:
                await store_something(services, owner, way)
            assert refused.value.retry_after
        assert (await services.memories.page(owner, ListFilters())).items == []
        assert (await services.messages.list_sessions(owner, SessionListQuery())).items == []
        assert (await services.retrieval.lookup(owner, "Where is Lund?")).entities == []
        assert (await services.retrieval.search(owner, SearchQuery(query="tea in Lund"))).results == []
        assert (await services.contexts.build(owner, ContextRequest(question="And tea?"))).memories == []
        assert not await services.contexts.list_preferences(owner)
        export = json.loads(await services.exports.export(owner))
        assert [export[section] for section in ("entities", "memories", "records", "links")] == [[], [], [], []]
    assert (await memory.forgetting.forget(owner)).residue == 0
    assert await count_stored(graph, owner) == 0
    await memory.memories.save(owner, [TEA])
    assert len((await memory.memories.page(owner, ListFilters())).items) == 1


async def test_an_interrupted_erasure_counts_all_that_it_has_erased(
    memory: Services, graph: Graph, owner: Owner, complete_export: bytes
) -> None:
    await memory.imports.import_(owner, complete_export)
    stored = await count_stored(graph, owner)
    await interrupt_erasure(graph, owner)
    forgotten = await memory.forgetting.forget(owner)
    relationships = stored - sum(forgotten.erased.values())
    assert relationships > 0, "messages and sessions are linked by relationships that no kind counts"
    assert forgotten.erased["Fact"] >= 5
    assert forgotten.erased["User"] == 1


async def test_maintenance_passes_over_a_user_being_forgotten(
    memory: Services, graph: Graph, owner: Owner, complete_export: bytes
) -> None:
    await memory.imports.import_(owner, complete_export)
    await ForgetStore(graph, utc_now).begin(owner)
    days = {"archive_days": 90, "compress_days": 30, "rollback_days": 30}
    tasks = MaintenanceTasks(graph, memory.components.facts, RunStore(graph), utc_now, **days)
    assert await UserStore(graph).list_owners(owner.tenant) == []
    assert await tasks.decay(owner) == 0


async def test_a_starting_worker_continues_an_interrupted_erasure(
    memory: Services, database: Settings, embedder: Embedder, graph: Graph, owner: Owner
) -> None:
    await memory.messages.add(
        owner, MessagesIn(session_id="s", messages=[MessageIn(role="user", content="I like tea")])
    )
    await ForgetStore(graph, utc_now).begin(owner)
    await memory.jobs.forget(owner.group_id)
    age = "MATCH (e:Erasure {group_id: $group_id}) SET e.active_at = datetime() - duration('PT1M')"
    await run_cypher(graph, age, group_id=owner.group_id)
    mark = "MATCH (e:Erasure {group_id: $group_id}) RETURN e.active_at AS active_at"
    async with Services.open(database, embedder=embedder), asyncio.timeout(60):
        while await run_cypher(graph, mark, group_id=owner.group_id):  # noqa: ASYNC110 - the worker tells nobody
            await asyncio.sleep(0.2)
    assert await count_stored(graph, owner) == 0
    await memory.memories.save(owner, [COFFEE])


async def test_forgetting_succeeds_while_others_write_and_forget(memory: Services, graph: Graph, owner: Owner) -> None:
    stop = asyncio.Event()

    async def write_on() -> int:
        refused = 0
        while not stop.is_set():
            try:
                await memory.memories.save(owner, [TEA, COFFEE])
            except UserBeingForgotten:
                refused += 1
        return refused

    writers = [asyncio.create_task(write_on()) for _ in range(3)]
    for _ in range(2):
        await asyncio.sleep(0.1)
        results = await asyncio.gather(*(memory.forgetting.forget(owner) for _ in range(2)))
        assert [result.residue for result in results] == [0, 0]
    stop.set()
    assert sum(await asyncio.gather(*writers)) > 0
    assert (await memory.forgetting.forget(owner)).residue == 0
    assert await count_stored(graph, owner) == 0


# What it reads


@pytest.mark.parametrize(
    "name", [name for name in load_queries() if name.startswith("forget.") and not name.startswith("forget.list_")]
)
async def test_forgetting_reads_nothing_of_other_users(graph: Graph, name: str) -> None:
    async with graph._driver.session() as session:
        result = await session.run(f"EXPLAIN {load_queries()[name].text}")
        plan = (await result.consume()).plan
    assert plan

    def operators(node: dict[str, Any]) -> Iterator[str]:
        yield node["operatorType"].partition("@")[0]
        for child in node.get("children", []):
            yield from operators(child)

    assert [operator for operator in operators(plan) if operator.endswith("Scan")] == []


async def test_every_label_that_is_indexed_by_user_is_erased(graph: Graph) -> None:
    text = """SHOW INDEXES YIELD name, labelsOrTypes, properties
              WHERE any(name IN ['group_id', 'owner_group'] WHERE name IN properties)
              RETURN name, labelsOrTypes[0] AS label"""
    folders = (cypher_root() / folder for folder in ("migrations", "vector_indexes"))
    statements = "".join(path.read_text("utf-8") for folder in folders for path in folder.glob("*.cypher"))
    ours = set(re.findall(r"INDEX (\w+)", statements))  # a test of Graphiti creates its own
    indexed = {row["label"] for row in await run_cypher(graph, text) if row["name"] in ours}
    assert len(indexed) > 10
    fragment = parse_fragments((cypher_root() / "fragments.cypher").read_text("utf-8"))["elements_of_user"]
    erased = set(re.findall(r":([A-Z]\w+)", fragment))
    # A reference is deleted with the entities that it joins; the user and the mark go last.
    assert indexed - {"REFERS_TO", "User", "Erasure"} <= erased


# One memory


async def test_a_hard_delete_erases_entities_that_only_the_memory_named(memory: Services, owner: Owner) -> None:
    async def entity_names() -> set[str]:
        return {entity.name for entity in (await memory.entities.page(owner, EntityListQuery())).items}

    [kept] = await memory.memories.save(owner, [MemoryIn(content="Mara likes Ada", object={"name": "Ada"})])
    named = [{"name": "Dr Holm"}, {"name": "Ada"}]
    [erased] = await memory.memories.save(
        owner, [MemoryIn(content="Mara is treated at Nord clinic", object={"name": "Nord clinic"}, entities=named)]
    )
    assert erased.memory
    assert await entity_names() == {"mara", "Ada", "Nord clinic", "Dr Holm"}
    await memory.forgetting.erase_memory(owner, erased.memory.id)
    assert await entity_names() == {"mara", "Ada"}
    assert (await memory.retrieval.lookup(owner, "Is Dr Holm at Nord clinic?")).entities == []
    assert kept.memory
    assert (await memory.memories.get(owner, kept.memory.id)).content == "Mara likes Ada"


async def test_a_hard_delete_keeps_entities_that_an_earlier_version_or_another_memory_names(
    memory: Services, owner: Owner
) -> None:
    lives = {"predicate": "LIVES_IN", "single_valued": True}
    [old, new] = await memory.memories.save(
        owner,
        [
            MemoryIn(content="Mara lives in Lund", object={"name": "Lund"}, valid_at="2020-01-01T00:00:00Z", **lives),
            MemoryIn(content="Mara lives in Malmö", object={"name": "Malmö"}, valid_at="2024-01-01T00:00:00Z", **lives),
        ],
    )
    await memory.memories.save(owner, [MemoryIn(content="Mara knows Malmö well", entities=[{"name": "Malmö"}])])
    assert new.memory
    assert old.memory
    await memory.memories.delete(owner, old.memory.id)
    await memory.forgetting.erase_memory(owner, new.memory.id)
    items = (await memory.entities.page(owner, EntityListQuery())).items
    assert {entity.name for entity in items} == {"mara", "Lund", "Malmö"}


class RefilledCache:
    """A cache into which another process puts an entry of a user again, when it was emptied for the first time."""

    def __init__(self) -> None:
        self._entries = LocalCache[str](utc_now, ttl_seconds=300)
        self._is_refilled = False

    async def discard_user(self, owner: Owner) -> None:
        await self._entries.discard(owner.group_id)
        if not self._is_refilled:
            self._is_refilled = True
            await self._entries.set(owner.group_id, "tea")

    async def count_user(self, owner: Owner) -> int:
        return await self._entries.count(owner.group_id)


async def test_an_entry_that_reaches_a_cache_late_is_removed_before_the_receipt(
    memory: Services, graph: Graph, owner: Owner
) -> None:
    await memory.memories.save(owner, [TEA])
    cache = RefilledCache()
    data = replace(memory.forgetting._data, lookup=cache)
    result = await ForgetService(graph, data, utc_now, lambda: b"key").forget(owner)
    assert await cache.count_user(owner) == 0
    assert result.residue == 0
    assert result.receipt is not None


async def test_responses_of_the_tenant_that_are_stored_all_the_time_do_not_keep_an_erasure_from_its_end(
    graph: Graph, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, responses = ForgetStore(graph, utc_now), IdempotencyStore(graph, utc_now, 30)
    erase = Erasure.erase

    async def erase_while_others_write(erasure: Erasure) -> None:
        await erase(erasure)
        request = IdempotentRequest(Owner(owner.tenant, ""), "POST /x", uuid.uuid4().hex, "f")
        claim = await responses.claim(request)
        await responses.complete(request, claim.token, StoredResponse(200, "{}"))

    monkeypatch.setattr(Erasure, "erase", erase_while_others_write)
    ended = await (await store.begin(owner)).end()
    assert (ended.has_ended, ended.residue) == (True, 0)
