"""Importing exports offline, by Neo4j's import tool: the graph is the one that an import through the API makes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from graphmem.app.bootstrap import Services
from graphmem.memories.memory import MemoryIn
from graphmem.models.embedder import Embedder
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.migrations import load_migrations
from graphmem.neo4j.schema import LISTS_OF_GRAPHITI
from graphmem.runtime.errors import ConfigurationError, InvalidInput
from graphmem.runtime.settings import Settings
from graphmem.search.models import SearchQuery
from graphmem.tenants.owners import Owner
from graphmem.user_data.offline_import import SIDE_FOLDER, OfflineProgress, import_offline
from tests.user_data.complete_user import fill_user

NODES = """
MATCH (n) WHERE n.group_id STARTS WITH $prefix
RETURN labels(n) AS labels, properties(n) AS properties,
       [name IN keys(n) | [name, valueType(n[name])]] AS types
"""
RELATIONSHIPS = """
MATCH (a)-[r]->(b) WHERE a.group_id STARTS WITH $prefix
RETURN type(r) AS type, properties(r) AS properties, [name IN keys(r) | [name, valueType(r[name])]] AS types,
       [n IN [a, b] | [labels(n)[0], n.group_id, coalesce(n.uuid, n.id, n.key, n.session_id)]] AS ends
"""
SCHEMA = (
    "SHOW INDEXES YIELD name, type, labelsOrTypes, properties, options "
    "RETURN name, type, labelsOrTypes, properties, options"
)
CONSTRAINTS = (
    "SHOW CONSTRAINTS YIELD name, type, labelsOrTypes, properties RETURN name, type, labelsOrTypes, properties"
)

ROOT = Path(__file__).parents[2]
KILLED_IMPORT = Path(__file__).with_name("killed_offline_import.py")

RANDOM = {"life", "last_write_at"}
"""What differs between two imports of one user: the random id of a life, and when the user was imported."""


LISTS = """
CALL () {
  MATCH (n) WHERE n.group_id STARTS WITH $prefix RETURN n AS element
  UNION ALL
  MATCH (a)-[r]->() WHERE a.group_id STARTS WITH $prefix RETURN r AS element
}
UNWIND keys(element) AS name
WITH name, element[name] AS value WHERE valueType(value) STARTS WITH 'LIST'
RETURN name, min(size(value)) AS shortest
"""


async def rows(graph: Graph, text: str, **parameters: Any) -> list[dict[str, Any]]:
    return await graph.read(lambda transaction: transaction.run_text(text, parameters))


async def describe(graph: Graph, tenant: str) -> Counter[str]:
    """Return everything of a tenant, with how often it is there: with types, without what is random."""
    found: Counter[str] = Counter()
    for row in await rows(graph, NODES, prefix=f"{tenant}:"):
        properties = {name: value for name, value in row["properties"].items() if name not in RANDOM}
        types = sorted(entry for entry in row["types"] if entry[0] not in RANDOM)
        found[repr((sorted(row["labels"]), sorted(properties.items()), types))] += 1
    for row in await rows(graph, RELATIONSHIPS, prefix=f"{tenant}:"):
        found[repr((row["type"], sorted(row["properties"].items()), sorted(row["types"]), row["ends"]))] += 1
    return found


async def describe_schema(graph: Graph) -> dict[str, str]:
    """Return the indexes and constraints of a database by name."""
    found = [*await rows(graph, SCHEMA), *await rows(graph, CONSTRAINTS)]
    return {f"{row['name']} {'options' in row}": json.dumps(row, sort_keys=True) for row in found}


def list_schema_names() -> set[str]:
    """Return the names that the migrations create and do not drop."""
    names = set()
    for migration in load_migrations():
        names |= set(re.findall(r"(?:INDEX|CONSTRAINT) (\w+) IF NOT EXISTS", migration.text))
        names -= set(re.findall(r"DROP (?:INDEX|CONSTRAINT) (\w+)", migration.text))
    return names


@pytest.fixture
async def exports(memory: Services, tenant: str, tmp_path: Path) -> Path:
    """Return a folder with the exports of two users, who were forgotten since."""
    folder = tmp_path / "exports"
    folder.mkdir()
    for name in ("mara", "jo"):
        owner = Owner(tenant, name)
        if name == "mara":
            await fill_user(memory, owner)
        else:
            lines = 'Jo said "no;\nyes", twice, \\ and left'
            await memory.memories.save(owner, [MemoryIn(content=lines, object={"name": 'Café "Sun"; \\x, y'})])
        (folder / f"{name}.json").write_bytes(await memory.exports.export(owner))
        await memory.forgetting.forget(owner)
    return folder


@pytest.fixture
def new_installation(database: Settings, tmp_path: Path) -> Settings:
    """Return the settings of a data folder without a database."""
    return database.model_copy(
        update={
            "neo4j_uri": None,
            "neo4j_password": None,
            "data_dir": tmp_path / "data",
            "bolt_port": 0,
            "http_port": 0,
        }
    )


async def test_an_offline_import_makes_the_graph_that_an_import_makes(
    memory: Services, tenant: str, exports: Path, new_installation: Settings, embedder: Embedder
) -> None:
    for name in ("mara", "jo"):
        await memory.imports.import_(Owner(tenant, name), (exports / f"{name}.json").read_bytes())
    expected = await describe(memory.components.graph, tenant)
    seen: dict[str, list[tuple[int, int]]] = {"written": [], "imported": [], "populated": []}
    progress = OfflineProgress(
        on_written=lambda done, total: seen["written"].append((done, total)),
        on_imported=lambda done, total: seen["imported"].append((done, total)),
        on_populated=lambda done, total: seen["populated"].append((done, total)),
    )
    result = await import_offline(new_installation, tenant, exports, progress)
    assert result.users == 2
    assert result.imported["versions"] == sum(
        count for element, count in expected.items() if element.startswith("('RELATES_TO'")
    )
    assert all(reports[-1][0] == reports[-1][1] for reports in seen.values())
    assert not (new_installation.data_dir / SIDE_FOLDER).exists()

    async with Services.open(new_installation, worker=False, embedder=embedder) as services:
        graph, owner = services.components.graph, Owner(tenant, "mara")
        made = await describe(graph, tenant)
        assert made == expected
        shortest = {row["name"]: row["shortest"] for row in await rows(graph, LISTS, prefix=f"{tenant}:")}
        assert {"tags", "message_ids", "aliases"} <= shortest.keys()
        assert {name for name, size in shortest.items() if size == 0} == LISTS_OF_GRAPHITI
        made_schema, schema = await describe_schema(graph), await describe_schema(memory.components.graph)
        assert made_schema.items() <= schema.items(), "a database that other tests share may have more"
        assert list_schema_names() <= {name.split()[0] for name in made_schema}
        for name in ("mara", "jo"):
            exported = await services.exports.export(Owner(tenant, name))
            assert exported == (exports / f"{name}.json").read_bytes()

        found = await services.retrieval.search(owner, SearchQuery(query="Which drink does Mara love?"))
        assert found.results[0].memory.content == "Mara loves tea"
        before = await services.retrieval.search(
            owner, SearchQuery(query="Where does Mara live?", valid_as_of=datetime(2022, 1, 1, tzinfo=UTC))
        )
        assert "Mara lives in Lund" in [hit.memory.content for hit in before.results]
        history = await services.memories.history(owner, found.results[0].memory.id)
        assert len(history) == 2
        [saved] = await services.memories.save(
            owner, [MemoryIn(content="Mara lives in Oslo", predicate="LIVES_IN", single_valued=True)]
        )
        assert saved.action == "supersede"  # of the home that was imported

    with pytest.raises(InvalidInput, match="has a database already"):
        await import_offline(new_installation, tenant, exports)


async def test_what_cannot_be_imported_leaves_no_database(
    tenant: str, exports: Path, new_installation: Settings, database: Settings
) -> None:
    folder, path = new_installation.data_dir, exports / "jo.json"
    with pytest.raises(ConfigurationError, match="GRAPHMEM_NEO4J_URI"):
        await import_offline(database.model_copy(update={"neo4j_uri": "bolt://localhost:1"}), tenant, exports)
    (exports / "copy.json").write_text(path.read_text().replace('"user_id":"jo"', '"user_id":"kim"'))
    with pytest.raises(InvalidInput, match="share ids"):
        await import_offline(new_installation, tenant, exports)
    (exports / "copy.json").unlink()
    complete = path.read_text()
    for broken, message in broken_exports(json.loads(complete)):
        path.write_text(json.dumps(broken))
        with pytest.raises(InvalidInput, match=message):
            await import_offline(new_installation, tenant, path)
    path.write_text(complete[:-20])
    with pytest.raises(InvalidInput, match="complete export"):
        await import_offline(new_installation, tenant, path)
    assert not (folder / SIDE_FOLDER).exists()
    assert not (folder / "neo4j" / "data").exists()


def broken_exports(export: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield exports that are refused, and the reason."""
    yield {**export, "embedding": {"model": "other", "dimension": 3}}, "jo.json: its vectors are of other"
    yield {**export, "memories": [{**export["memories"][0], "vector": None}]}, "do not fit together"
    yield {"format": "other"}, "jo.json"
    memory = export["memories"][0]
    tags = {**memory["properties"], "tags": ["a\x1eb"]}
    yield {**export, "memories": [{**memory, "properties": tags}]}, "cannot read"


POINTS = ("written", "imported", "populated", "data")
"""Where an import is killed: among the tables, in the tool, while a server runs, and when the database is in place."""


def processes_of(mark: str) -> list[str]:
    """Return the command lines of the processes that have a mark in their environment."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("MARK_OF_TEST") == mark:
                found.append(" ".join(process.cmdline()))
    return found


@pytest.mark.timeout(400)
async def test_a_killed_offline_import_is_completed_by_the_next(
    tenant: str, exports: Path, new_installation: Settings, embedder: Embedder
) -> None:
    folder = new_installation.data_dir
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHMEM_NEO4J_")}
    environment = {**inherited, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'api'}", "MARK_OF_TEST": tenant}
    for point in POINTS:
        if point == "data":  # as a kill before the last move leaves it
            (folder / "neo4j").mkdir()
            (folder / "neo4j" / "password").write_text("of an import that was killed")
        arguments = (str(KILLED_IMPORT), str(folder), tenant, str(exports), point)
        process = await asyncio.create_subprocess_exec(sys.executable, *arguments, env=environment)
        assert await process.wait() == -signal.SIGKILL
        assert (folder / "neo4j" / "data").exists() == (point == "data"), "there is a complete database or none"

    # The last one had moved the database to its place: there is nothing to be done again, only to be removed.
    with pytest.raises(InvalidInput, match="has a database already"):
        await import_offline(new_installation, tenant, exports)
    assert not (folder / SIDE_FOLDER).exists()
    async with asyncio.timeout(30):
        while processes_of(tenant):  # noqa: ASYNC110 - processes end by themselves
            await asyncio.sleep(0.2)
    async with Services.open(new_installation, worker=False, embedder=embedder) as services:
        for name in ("mara", "jo"):
            exported = await services.exports.export(Owner(tenant, name))
            assert exported == (exports / f"{name}.json").read_bytes()
