"""Migrations: recorded, safe to replay, and rejected when the database does not match."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from graphmem.app.bootstrap import Services
from graphmem.memories.memory import MemoryIn
from graphmem.models.embedder import Embedder
from graphmem.models.embedding_models import EmbeddingModel
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.migrations import load_migrations, migrate, pending_migrations
from graphmem.runtime.errors import ConfigurationError
from graphmem.search.models import EntityMemoriesQuery
from graphmem.tenants.owners import Owner


async def test_a_second_run_changes_nothing(graph: Graph) -> None:
    assert await migrate(graph, EmbeddingModel(name="another-model", dimension=8, embedder="openai")) == []
    state = await graph.vector_state(refresh=True)
    assert state
    assert state.model.name == "all-MiniLM-L6-v2-int8", "the vectors are still those of the first model"


async def test_every_statement_may_be_replayed(graph: Graph, embedder: Embedder) -> None:
    for migration in load_migrations():
        for statement in migration.statements(embedder.dimension):
            await graph.apply_schema(statement)


async def test_names_and_references_of_the_first_release_are_moved(
    graph: Graph, embedder: Embedder, memory: Services, owner: Owner
) -> None:
    trip = MemoryIn(content="Mara sailed to Oslo with Bob", object={"name": "Oslo"}, entities=[{"name": "Bob"}])
    [saved] = await memory.memories.save(owner, [trip])
    assert saved.memory
    first_release = """
        MATCH (bob:Entity {group_id: $group_id, name_key: 'bob'})<-[r:REFERS_TO]-()
        SET bob.mentioned_in = [r.memory_id], bob.aliases = ['Bobby'], bob.alias_keys = ['bobby']
        DELETE r
        WITH bob MATCH ()-[fact:RELATES_TO {group_id: $group_id}]->()
        SET fact.message_ids = [at IN range(1, 300) | toString(at)]"""
    group = {"group_id": owner.group_id}
    await graph.write(lambda transaction: transaction.run_text(first_release, group))

    [migration] = [migration for migration in load_migrations() if migration.version == 4]
    for statement in migration.statements(embedder.dimension):
        await graph.apply_schema(statement)

    [bob] = await memory.components.entities.resolve_entity_ids(owner, "Bobby")
    assert [found.id for found in await memory.entities.list_memories(owner, bob, EntityMemoriesQuery())] == [
        saved.memory.id
    ]
    assert (await memory.memories.get(owner, saved.memory.id)).source.message_ids == list(map(str, range(101, 301)))
    rows = await graph.read(
        lambda transaction: transaction.run_text(
            "MATCH (e:Entity {group_id: $group_id}) WHERE e.mentioned_in IS NOT NULL RETURN e.name AS name", group
        )
    )
    assert rows == []


async def test_concurrent_processes_can_create_the_schema(graph: Graph) -> None:
    label = f"Race{uuid.uuid4().hex}"
    statement = f"CREATE INDEX {label} IF NOT EXISTS FOR (n:{label}) ON (n.place)"
    try:
        await asyncio.gather(*(graph.apply_schema(statement) for _ in range(12)))
    finally:
        await graph.apply_schema(f"DROP INDEX {label} IF EXISTS")


def test_a_changed_migration_is_refused() -> None:
    first = load_migrations()[0]
    with pytest.raises(ConfigurationError, match="migration V0001 differs"):
        pending_migrations([replace(first, checksum="other")], {1: first.checksum})


def test_a_database_from_before_the_baseline_is_refused_with_a_remedy() -> None:
    former = {version: f"checksum {version}" for version in range(1, 10)}
    with pytest.raises(ConfigurationError, match=r"V0001 differs\. Export .* start with an empty database and import"):
        pending_migrations(load_migrations(), former)


def test_a_database_of_a_newer_version_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="upgrade"):
        pending_migrations(load_migrations(), {999: "x"})


def test_a_misnamed_migration_is_refused(tmp_path: Path) -> None:
    (tmp_path / "first.cypher").write_text("RETURN 1;")
    with pytest.raises(ConfigurationError, match=r"V0001__"):
        load_migrations(tmp_path)


async def test_vector_search_with_an_empty_filter_works_after_deletions(graph: Graph) -> None:
    # Rows written in one transaction and then partly deleted leave an index of one segment with deletions.
    kind, index = f"SCRATCH_{uuid.uuid4().hex}", f"scratch_{uuid.uuid4().hex}"
    statements = [statement for migration in load_migrations() for statement in migration.statements(8)]
    [vector_index] = [statement for statement in statements if "ON r.fact_embedding" in statement]
    vector_index = vector_index.replace("RELATES_TO", kind).replace("graphmem_fact_embedding", index)
    vectors = [[float((i * j) % 7 + 1) for j in range(1, 9)] for i in range(300)]
    fill = f"""CREATE (a:Scratch {{kind: $kind}}) WITH a UNWIND range(0, 299) AS i
        CREATE (a)-[:{kind} {{group_id: 't:known', number: i, fact_embedding: $vectors[i]}}]->(a)"""
    find = f"""CYPHER 25 MATCH ()-[r:{kind}]->()
        SEARCH r IN (VECTOR INDEX {index} FOR $vector WHERE r.group_id = $group_id LIMIT 20) RETURN count(r) AS found"""
    delete = f"MATCH ()-[r:{kind}]->() WHERE r.number < 20 DELETE r"
    clean_up = "MATCH (a:Scratch {kind: $kind}) DETACH DELETE a"

    async def count_found(group_id: str) -> int:
        parameters = {"vector": vectors[250], "group_id": group_id}
        rows = await graph.read(lambda transaction: transaction.run_text(find, parameters))
        return int(rows[0]["found"])

    try:
        await graph.apply_schema(vector_index)
        await graph.fetch("schema.await_indexes")
        await graph.write(lambda transaction: transaction.run_text(fill, {"kind": kind, "vectors": vectors}))
        await graph.write(lambda transaction: transaction.run_text(delete))
        assert await count_found("t:nobody") == 0
        assert await count_found("t:known") == 20
    finally:
        await graph.apply_schema(f"DROP INDEX {index} IF EXISTS")
        await graph.write(lambda transaction: transaction.run_text(clean_up, {"kind": kind}))
