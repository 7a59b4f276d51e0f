"""Migrations: recorded, safe to replay, and rejected when the database does not match."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from graphmem.models.embedder import Embedder
from graphmem.models.embedding_models import EmbeddingModel
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.migrations import (
    AppliedMigration,
    Migration,
    load_migrations,
    migrate,
    oldest_compatible_version,
    pending_migrations,
)
from graphmem.runtime.errors import ConfigurationError


async def test_a_second_run_changes_nothing(graph: Graph) -> None:
    assert await migrate(graph, EmbeddingModel(name="another-model", dimension=8, embedder="openai")) == []
    state = await graph.vector_state(refresh=True)
    assert state
    assert state.model.name == "all-MiniLM-L6-v2-int8", "the vectors are still those of the first model"


async def test_every_statement_may_be_replayed(graph: Graph, embedder: Embedder) -> None:
    for migration in load_migrations():
        for statement in migration.statements(embedder.dimension):
            await graph.apply_schema(statement)


async def test_concurrent_processes_can_create_the_schema(graph: Graph) -> None:
    label = f"Race{uuid.uuid4().hex}"
    statement = f"CREATE INDEX {label} IF NOT EXISTS FOR (n:{label}) ON (n.place)"
    try:
        await asyncio.gather(*(graph.apply_schema(statement) for _ in range(12)))
    finally:
        await graph.apply_schema(f"DROP INDEX {label} IF EXISTS")


def test_a_changed_migration_is_refused() -> None:
    first = load_migrations()[0]
    with pytest.raises(ConfigurationError, match=r"V0001 differs\. Export .* start with an empty database and import"):
        pending_migrations([replace(first, checksum="other")], {1: AppliedMigration(first.checksum)})


def migrations_until(version: int, **compatible_with: int) -> list[Migration]:
    """Migrations 1 to `version`; `v3=2` declares that the third is compatible with version 2."""
    return [
        Migration(number, "title", f"checksum {number}", "", compatible_with.get(f"v{number}"))
        for number in range(1, version + 1)
    ]


def applied_of(migrations: list[Migration]) -> dict[int, AppliedMigration]:
    """What a database records that has all of these."""
    return {one.version: AppliedMigration(one.checksum, one.compatible_with) for one in migrations}


@pytest.mark.parametrize(
    "newer",
    [
        migrations_until(3),
        migrations_until(3, v3=3),
        migrations_until(4, v3=2),
        migrations_until(4, v3=2, v4=3),
    ],
    ids=["not declared", "with itself alone", "the last not declared", "the last with the one before"],
)
def test_a_database_of_a_newer_version_is_refused(newer: list[Migration]) -> None:
    version = newer[-1].version
    expected = rf"at schema version {version}, which this graphmem does not know: upgrade graphmem\."
    with pytest.raises(ConfigurationError, match=expected):
        pending_migrations(migrations_until(2), applied_of(newer))


@pytest.mark.parametrize("newer", [migrations_until(3, v3=2), migrations_until(4, v3=1, v4=2)])
def test_a_database_of_a_compatible_newer_version_is_worked_with(newer: list[Migration]) -> None:
    assert pending_migrations(migrations_until(2), applied_of(newer)) == []


def test_a_migration_of_another_build_among_the_known_ones_is_refused() -> None:
    applied = applied_of(migrations_until(3, v2=1))
    known = [migration for migration in migrations_until(3) if migration.version != 2]
    with pytest.raises(ConfigurationError, match="schema version 2, which this graphmem does not know"):
        pending_migrations(known, applied)


@pytest.mark.parametrize(
    ("migrations", "oldest"),
    [
        (migrations_until(4), 4),
        (migrations_until(4, v4=3), 3),
        (migrations_until(4, v4=2), 3),
        (migrations_until(4, v3=2, v4=2), 2),
        (migrations_until(4, v2=1, v4=3), 3),
        ([], 0),
    ],
)
def test_the_oldest_compatible_version_works_with_every_later_migration(
    migrations: list[Migration], oldest: int
) -> None:
    assert oldest_compatible_version(migrations) == oldest


def write_migration(folder: Path, *lines: str) -> None:
    (folder / "V0003__an_index.cypher").write_text("\n".join([*lines, "CREATE (:Thing);"]))


def test_a_migration_declares_with_what_it_is_compatible(tmp_path: Path) -> None:
    write_migration(tmp_path, "// An index.", "// Compatible with: V0002")
    [migration] = load_migrations(tmp_path)
    assert migration.compatible_with == 2
    assert migration.statements(8) == ["CREATE (:Thing)"]
    write_migration(tmp_path, "// An index that is not compatible with anything.")
    assert load_migrations(tmp_path)[0].compatible_with is None


@pytest.mark.parametrize(
    "lines",
    [
        ["// compatible with: V0002"],
        ["// Compatible with V0002"],
        ["// Compatible with: 2"],
        ["// Compatible with: V0003"],
        ["// Compatible with: V0002 and later"],
        ["// Compatible with: V0001", "// Compatible with: V0002"],
    ],
)
def test_a_declaration_in_another_form_is_refused(tmp_path: Path, lines: list[str]) -> None:
    write_migration(tmp_path, *lines)
    with pytest.raises(ConfigurationError, match=r"V0003__an_index\.cypher must say .* `// Compatible with: V0002`"):
        load_migrations(tmp_path)


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
