"""Exporting a user and importing the export: nothing is lost, and nothing is written twice."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from graphmem.app.bootstrap import Services
from graphmem.conversations.session import MessagesIn
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import MemoryIn
from graphmem.neo4j.driver import Graph
from graphmem.neo4j.schema import LinkType, RecordLabel
from graphmem.runtime.errors import Conflict, InvalidInput
from graphmem.search.models import SearchQuery
from graphmem.tenants.owners import Owner
from tests.user_data.complete_user import fill_user

EARLIER_EXPORT = Path(__file__).with_name("export_1_0.json")
"""An export as the first schema version wrote it, with vectors of another model."""


async def export_document(memory: Services, owner: Owner) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(await memory.exports.export(owner))
    return document


async def test_an_export_has_every_label_and_link_type(memory: Services, owner: Owner) -> None:
    await fill_user(memory, owner)
    export = await export_document(memory, owner)
    assert {label for record in export["records"] for label in record["labels"]} == set(RecordLabel)
    assert {link["type"] for link in export["links"]} == set(LinkType)


@pytest.mark.parametrize("form", ["json", "yaml"])
async def test_export_after_forget_and_import_is_identical(
    memory: Services, owner: Owner, form: Literal["json", "yaml"]
) -> None:
    await fill_user(memory, owner)
    before = await memory.exports.export(owner, form)
    assert (await memory.forgetting.forget(owner)).residue == 0
    result = await memory.imports.import_(owner, before)
    assert result.ids == {}
    assert not result.vectors_remade
    assert await memory.exports.export(owner, form) == before
    contents = {item.content for item in (await memory.memories.page(owner, ListFilters())).items}
    assert contents == {"Mara lives in Malmö", "Mara loves tea", "tone: formal", "Mara plans a trip to Lund"}


async def test_import_for_another_user_gets_new_ids_and_the_same_results(memory: Services, owner: Owner) -> None:
    await fill_user(memory, owner)
    export = await export_document(memory, owner)
    twin = Owner(owner.tenant, "twin")
    result = await memory.imports.import_(twin, json.dumps(export).encode())
    memory_ids = {version["properties"]["memory_id"] for version in export["memories"]}
    assert memory_ids <= set(result.ids)
    answer = await memory.retrieval.search(
        twin, SearchQuery(query="where did she live?", valid_as_of=datetime(2021, 1, 1, tzinfo=UTC))
    )
    found = next(hit.memory for hit in answer.results if hit.memory.content == "Mara lives in Lund")
    [*_, last] = await memory.memories.history(twin, found.id)
    assert last.superseded_by in result.ids.values()
    assert last.superseded_by
    assert (await memory.memories.get(twin, last.superseded_by)).content == "Mara lives in Malmö"


async def test_importing_the_same_export_twice_adds_nothing(memory: Services, owner: Owner) -> None:
    await fill_user(memory, owner)
    before = await memory.exports.export(owner)
    again = await memory.imports.import_(owner, before)
    assert again.imported == {"versions": 0}
    assert again.ids == {}
    assert await memory.exports.export(owner) == before


async def test_an_import_as_another_user_makes_their_own_entity_the_subject(memory: Services, owner: Owner) -> None:
    await memory.memories.save(owner, [MemoryIn(content="Mara lives in Lund"), MemoryIn(content="Mara likes tea")])
    document = await memory.exports.export(owner)
    fresh, known = Owner(owner.tenant, "omar"), Owner(owner.tenant, "ida")
    await memory.memories.save(known, [MemoryIn(content="Ida rows")])
    for other in (fresh, known):
        await memory.imports.import_(other, document)
        [later] = await memory.memories.save(other, [MemoryIn(content="The user plays chess")])
        subjects = {item.subject.id for item in (await memory.memories.page(other, ListFilters())).items}
        assert later.memory
        assert subjects == {later.memory.subject.id}
        assert later.memory.subject.name == other.user_id


@pytest.mark.req("QUINN-16")
async def test_an_export_of_an_earlier_schema_version_is_imported_with_its_history(
    memory: Services, owner: Owner
) -> None:
    result = await memory.imports.import_(owner, EARLIER_EXPORT.read_bytes())
    assert (result.vectors_remade, result.imported["versions"]) == (True, 3)
    assert {item.content for item in (await memory.memories.page(owner, ListFilters())).items} == {"Mara lives in Lund"}
    old, new = (result.ids.get(memory_id, memory_id) for memory_id in ("memory-1", "memory-2"))
    [first, second] = await memory.memories.history(owner, old)
    assert (first.content, first.ended_by) == ("Mara lives in Malmö", new)
    assert (second.status, second.superseded_by) == ("superseded", new)
    assert (await export_document(memory, owner))["schema_version"] == "1.1"
    unknown = json.loads(EARLIER_EXPORT.read_bytes()) | {"schema_version": "9.0"}
    with pytest.raises(InvalidInput, match="upgrade graphmem"):
        await memory.imports.import_(owner, json.dumps(unknown).encode())


async def test_vectors_of_another_model_are_recomputed(memory: Services, owner: Owner, complete_export: bytes) -> None:
    before = json.loads(complete_export)
    other = json.loads(complete_export) | {"embedding": {"model": "another", "dimension": 2}}
    for version in other["memories"]:
        version["vector"] = [1.0, 0.0]
    for node in other["entities"]:
        node["properties"]["name_embedding"] = [1.0, 0.0]
    for node in other["records"]:
        if node["labels"] == ["Episodic"]:
            node["properties"]["content_embedding"] = [1.0, 0.0]
    assert (await memory.imports.import_(owner, json.dumps(other).encode())).vectors_remade
    again = await export_document(memory, owner)
    assert [len(version["vector"]) for version in again["memories"]] == [384] * len(before["memories"])
    assert all(len(node["properties"]["name_embedding"]) == 384 for node in again["entities"])


async def test_vectors_are_stored_with_four_bytes_a_number(
    memory: Services, owner: Owner, complete_export: bytes
) -> None:
    given = json.loads(complete_export)
    for version in given["memories"]:
        version["vector"] = [0.1] * 384
    nodes = [*given["entities"], *(node for node in given["records"] if node["labels"] == ["Episodic"])]
    for node in nodes:
        name = "content_embedding" if "content_embedding" in node["properties"] else "name_embedding"
        node["properties"][name] = [0.1] * 384
    assert not (await memory.imports.import_(owner, json.dumps(given).encode())).vectors_remade
    stored = await export_document(memory, owner)
    rounded = [float(np.float32(0.1))] * 384
    assert [version["vector"] for version in stored["memories"]] == [rounded] * len(given["memories"])
    assert [node["properties"]["name_embedding"] for node in stored["entities"]] == [rounded] * len(given["entities"])
    messages = [node["properties"] for node in stored["records"] if node["labels"] == ["Episodic"]]
    assert [message["content_embedding"] for message in messages] == [rounded] * len(messages)
    assert messages


async def test_exports_beside_writers_are_consistent(memory: Services, owner: Owner) -> None:
    is_done = asyncio.Event()

    async def keep_writing(writer: int) -> None:
        number = 0
        while not is_done.is_set():
            number += 1
            city = {"content": f"Person {writer} lives in {writer}-{number}", "subject": {"name": f"Person {writer}"}}
            place = {"predicate": "LIVES_IN", "single_valued": True, "object": {"name": f"Town {writer}-{number}"}}
            await memory.memories.save(owner, [MemoryIn.model_validate({**city, **place})])
            turn = {"role": "user", "content": f"Turn {number}"}
            batch = {"session_id": f"s{writer}-{number}", "messages": [turn], "extract": False}
            await memory.messages.add(owner, MessagesIn.model_validate(batch))

    writers = [asyncio.create_task(keep_writing(writer)) for writer in range(3)]
    try:
        exports = [await memory.exports.export(owner) for _ in range(8)]
    finally:
        is_done.set()
        await asyncio.gather(*writers)
    assert len({len(export) for export in exports}) > 1, "nothing was written meanwhile"
    for number, export in enumerate(exports):
        result = await memory.imports.import_(Owner(owner.tenant, f"copy{number}"), export)
        assert result.unchanged == {"versions": 0}


async def test_a_slow_reader_of_an_export_holds_up_no_write(memory: Services, owner: Owner) -> None:
    saves = [MemoryIn(content=f"Mara keeps the key number {number} in a box") for number in range(60)]
    await memory.memories.save(owner, saves)
    stream = memory.exports.stream(owner)
    first = await anext(stream)
    async with asyncio.timeout(60):
        await memory.memories.save(owner, [MemoryIn(content="Mara loves tea")])
    export = json.loads(first + b"".join([chunk async for chunk in stream]))
    assert len(export["memories"]) == 60


async def test_exporting_an_unknown_user_leaves_no_trace(memory: Services, owner: Owner, graph: Graph) -> None:
    assert (await export_document(memory, owner))["memories"] == []
    assert await graph.fetch("export.get_user", group_id=owner.group_id) == []


async def test_an_import_that_contradicts_a_single_value_is_refused_entirely(memory: Services, owner: Owner) -> None:
    home = {"predicate": "LIVES_IN", "single_valued": True, "subject": {"name": "Ada"}}
    other = Owner(owner.tenant, "omar")
    await memory.memories.save(owner, [MemoryIn.model_validate({"content": "Ada lives in Lund", **home})])
    await memory.memories.save(other, [MemoryIn.model_validate({"content": "Ada lives in Oslo", **home})])
    before = await memory.exports.export(other)
    with pytest.raises(Conflict, match="contradict what the user has") as refused:
        await memory.imports.import_(other, await memory.exports.export(owner))
    assert refused.value.errors[0]["loc"] == ["memories", 0]
    assert await memory.exports.export(other) == before
