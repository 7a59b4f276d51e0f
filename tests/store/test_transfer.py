"""Whole users out, in and gone, with nothing lost and nothing left."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from graphmem.bootstrap import GraphMemory
from graphmem.domain.identity import Owner
from graphmem.domain.memory import MemoryIn, MemoryPatch
from graphmem.domain.recall import SearchQuery
from graphmem.errors import InvalidInput

LIVES = {"predicate": "LIVES_IN", "single_valued": True}


async def tell_a_story(memory: GraphMemory, owner: Owner) -> list[str]:
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
    ids = [each.memory.id for each in told if each.memory]
    await memory.memories.patch(owner, ids[2], MemoryPatch(content="Mara loves tea", importance=0.9))
    await memory.memories.delete(owner, ids[3])
    return ids


@pytest.mark.req("QUINN-15")
@pytest.mark.parametrize("form", ["json", "yaml"])
async def test_export_forget_import_export_is_equal_to_the_letter(memory: GraphMemory, owner: Owner, form: str) -> None:
    ids = await tell_a_story(memory, owner)
    before = await memory.transfer.export(owner, form)
    assert (await memory.transfer.forget(owner)).residue == 0
    brought = await memory.transfer.import_(owner, before)
    assert brought.ids == {}
    assert not brought.vectors_remade
    assert await memory.transfer.export(owner, form) == before
    assert [row.status for row in await memory.memories.history(owner, ids[0])] == ["active", "superseded"]


async def test_an_import_beside_the_original_gets_ids_of_its_own_and_the_same_answers(
    memory: GraphMemory, owner: Owner
) -> None:
    ids = await tell_a_story(memory, owner)
    twin = Owner(owner.tenant, "twin")
    brought = await memory.transfer.import_(twin, await memory.transfer.export(owner))
    assert set(ids) <= set(brought.ids)
    history = await memory.memories.history(twin, brought.ids[ids[0]])
    assert history[-1].superseded_by == brought.ids[ids[1]]
    answer = await memory.retrieval.search(
        twin, SearchQuery(query="where did she live?", valid_as_of=datetime(2021, 1, 1, tzinfo=UTC))
    )
    assert "Mara lives in Lund" in [hit.memory.content for hit in answer.results]


async def test_importing_the_same_export_twice_adds_nothing(memory: GraphMemory, owner: Owner) -> None:
    await tell_a_story(memory, owner)
    before = await memory.transfer.export(owner)
    again = await memory.transfer.import_(owner, before)
    assert again.imported["versions"] == 0
    assert await memory.transfer.export(owner) == before


async def test_vectors_of_another_model_are_made_anew(memory: GraphMemory, owner: Owner) -> None:
    await tell_a_story(memory, owner)
    before = json.loads(await memory.transfer.export(owner))
    other = before | {"embedding": {"model": "another", "dimension": 2}}
    for version in other["memories"]:
        version["vector"] = [1.0, 0.0]
    await memory.transfer.forget(owner)
    assert (await memory.transfer.import_(owner, json.dumps(other).encode())).vectors_remade
    again = json.loads(await memory.transfer.export(owner))
    assert [len(version["vector"]) for version in again["memories"]] == [384] * len(before["memories"])


async def test_a_broken_import_is_refused_and_leaves_nothing(memory: GraphMemory, owner: Owner) -> None:
    await tell_a_story(memory, owner)
    export = json.loads(await memory.transfer.export(owner))
    other = Owner(owner.tenant, "other")
    del export["memories"][-1]["properties"]["fact"]
    for raw in (b"\xff\xfe", b"[]", b'{"format": "something"}', b"{", json.dumps(export).encode()):
        with pytest.raises(InvalidInput):
            await memory.transfer.import_(other, raw)
    assert json.loads(await memory.transfer.export(other))["entities"] == []


@pytest.mark.req("QUINN-41")
async def test_forgetting_one_user_leaves_the_others(memory: GraphMemory, owner: Owner) -> None:
    other = Owner(owner.tenant, "other")
    await tell_a_story(memory, owner)
    await tell_a_story(memory, other)
    before = await memory.transfer.export(other)
    forgotten = await memory.transfer.forget(owner)
    assert forgotten.erased["Fact"] >= 5
    assert forgotten.residue == 0
    assert await memory.transfer.export(other) == before


def hostile(export: dict, how: str) -> dict:
    version, entity = export["memories"][0], export["entities"][0]
    if how == "no time":
        version["properties"]["created_at"] = {"$time": "yesterday"}
    elif how == "naive time":
        version["properties"]["created_at"] = {"$time": "2026-01-01T00:00:00"}
    elif how == "no name":
        entity["properties"]["name"] = None
    elif how == "short vector":
        version["vector"] = [1.0]
    elif how == "unknown subject":
        version["subject_id"] = "nobody"
    elif how == "global":
        version["properties"]["scope"] = "global"
    elif how == "map as property":
        entity["properties"]["summary"] = {"a": 1}
    elif how == "wrong kind":
        version["properties"]["confidence"] = "much"
    elif how == "foreign label":
        entity["labels"] = ["Entity", "ApiKey"]
    return export


@pytest.mark.parametrize(
    "how",
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
async def test_a_hostile_import_is_refused_whole(memory: GraphMemory, owner: Owner, how: str) -> None:
    await tell_a_story(memory, owner)
    export = hostile(json.loads(await memory.transfer.export(owner)), how)
    other = Owner(owner.tenant, "other")
    with pytest.raises(InvalidInput):
        await memory.transfer.import_(other, json.dumps(export).encode())
    assert json.loads(await memory.transfer.export(other))["entities"] == []
