"""Whole users out, in and gone, with nothing lost and nothing left."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from graphmem.bootstrap import Services
from graphmem.domain.identity import Owner
from graphmem.domain.memory import MemoryIn, MemoryPatch
from graphmem.domain.search_models import SearchQuery
from graphmem.errors import InvalidInput

LIVES = {"predicate": "LIVES_IN", "single_valued": True}


async def save_sample_memories(memory: Services, owner: Owner) -> list[str]:
    """Save, supersede, correct and delete; return the ids."""
    told = await memory.memories.save(
        owner,
        [
            MemoryIn(content="Mara lives in Lund", object={"name": "Lund"}, valid_at="2020-01-01T00:00:00Z", **LIVES),
            MemoryIn(content="Mara lives in Malmö", valid_at="2024-01-01T00:00:00Z", metadata={"at": [1]}, **LIVES),
            MemoryIn(content="Mara likes tea", tags=["temporary"], entities=[{"name": "Bob", "type": "Person"}]),
            MemoryIn(content="Mara planned a trip", type="plan"),
        ],
    )  # fmt: skip
    ids = [result.memory.id for result in told if result.memory]
    await memory.memories.patch(owner, ids[2], MemoryPatch(content="Mara loves tea", importance=0.9))
    await memory.memories.delete(owner, ids[3])
    return ids


@pytest.mark.req("QUINN-15")
@pytest.mark.parametrize("form", ["json", "yaml"])
async def test_export_after_forget_and_import_is_identical(
    memory: Services, owner: Owner, form: Literal["json", "yaml"]
) -> None:
    ids = await save_sample_memories(memory, owner)
    before = await memory.transfer.export(owner, form)
    assert (await memory.transfer.forget(owner)).residue == 0
    result = await memory.transfer.import_(owner, before)
    assert result.ids == {}
    assert not result.vectors_remade
    assert await memory.transfer.export(owner, form) == before
    assert [row.status for row in await memory.memories.history(owner, ids[0])] == ["active", "superseded"]


async def test_import_for_another_user_gets_new_ids_and_the_same_results(memory: Services, owner: Owner) -> None:
    ids = await save_sample_memories(memory, owner)
    twin = Owner(owner.tenant, "twin")
    result = await memory.transfer.import_(twin, await memory.transfer.export(owner))
    assert set(ids) <= set(result.ids)
    history = await memory.memories.history(twin, result.ids[ids[0]])
    assert history[-1].superseded_by == result.ids[ids[1]]
    answer = await memory.retrieval.search(
        twin, SearchQuery(query="where did she live?", valid_as_of=datetime(2021, 1, 1, tzinfo=UTC))
    )
    assert "Mara lives in Lund" in [hit.memory.content for hit in answer.results]


async def test_importing_the_same_export_twice_adds_nothing(memory: Services, owner: Owner) -> None:
    await save_sample_memories(memory, owner)
    before = await memory.transfer.export(owner)
    again = await memory.transfer.import_(owner, before)
    assert again.imported["versions"] == 0
    assert await memory.transfer.export(owner) == before


async def test_vectors_of_another_model_are_recomputed(memory: Services, owner: Owner) -> None:
    await save_sample_memories(memory, owner)
    before = json.loads(await memory.transfer.export(owner))
    other = before | {"embedding": {"model": "another", "dimension": 2}}
    for version in other["memories"]:
        version["vector"] = [1.0, 0.0]
    await memory.transfer.forget(owner)
    assert (await memory.transfer.import_(owner, json.dumps(other).encode())).vectors_remade
    again = json.loads(await memory.transfer.export(owner))
    assert [len(version["vector"]) for version in again["memories"]] == [384] * len(before["memories"])


async def test_a_broken_import_is_refused_and_writes_nothing(memory: Services, owner: Owner) -> None:
    await save_sample_memories(memory, owner)
    export = json.loads(await memory.transfer.export(owner))
    other = Owner(owner.tenant, "other")
    del export["memories"][-1]["properties"]["fact"]
    for raw in (b"\xff\xfe", b"[]", b'{"format": "something"}', b"{", json.dumps(export).encode()):
        with pytest.raises(InvalidInput):
            await memory.transfer.import_(other, raw)
    assert json.loads(await memory.transfer.export(other))["entities"] == []


@pytest.mark.req("QUINN-41")
async def test_forgetting_one_user_keeps_the_others(memory: Services, owner: Owner) -> None:
    other = Owner(owner.tenant, "other")
    await save_sample_memories(memory, owner)
    await save_sample_memories(memory, other)
    before = await memory.transfer.export(other)
    forgotten = await memory.transfer.forget(owner)
    assert forgotten.erased["Fact"] >= 5
    assert forgotten.residue == 0
    assert await memory.transfer.export(other) == before


def corrupt_export(export: dict[str, Any], corruption: str) -> dict[str, Any]:
    version, entity = export["memories"][0], export["entities"][0]
    if corruption == "no time":
        version["properties"]["created_at"] = {"$time": "yesterday"}
    elif corruption == "naive time":
        version["properties"]["created_at"] = {"$time": "2026-01-01T00:00:00"}
    elif corruption == "no name":
        entity["properties"]["name"] = None
    elif corruption == "short vector":
        version["vector"] = [1.0]
    elif corruption == "unknown subject":
        version["subject_id"] = "nobody"
    elif corruption == "global":
        version["properties"]["scope"] = "global"
    elif corruption == "map as property":
        entity["properties"]["summary"] = {"a": 1}
    elif corruption == "wrong kind":
        version["properties"]["confidence"] = "much"
    elif corruption == "foreign label":
        entity["labels"] = ["Entity", "ApiKey"]
    return export


@pytest.mark.parametrize(
    "corruption",
    [
        "no time",
        "naive time",
        "no name",
        "short vector",
        "unknown subject",
        "global",
        "map as property",
        "wrong kind",
        "foreign label",
    ],
)
async def test_a_malformed_import_is_rejected_entirely(memory: Services, owner: Owner, corruption: str) -> None:
    await save_sample_memories(memory, owner)
    export = corrupt_export(json.loads(await memory.transfer.export(owner)), corruption)
    other = Owner(owner.tenant, "other")
    with pytest.raises(InvalidInput):
        await memory.transfer.import_(other, json.dumps(export).encode())
    assert json.loads(await memory.transfer.export(other))["entities"] == []
