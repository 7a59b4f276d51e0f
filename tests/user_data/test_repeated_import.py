"""An import that is repeated adds nothing, whichever user it is for and whatever happened to them in between."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from graphmem.app.bootstrap import Services
from graphmem.memories.memory import Memory, MemoryIn, MemoryPatch
from graphmem.runtime.field_types import name_key
from graphmem.search.models import Persona
from graphmem.tenants.owners import Owner
from tests.user_data.complete_user import fill_user
from tests.user_data.test_import_formats import EXPIRED, LONDON, NODES, TURIN

HOME: dict[str, Any] = {"predicate": "LIVES_IN", "single_valued": True, "subject": {"name": "Bob"}}
MEM0 = [{"id": "m1", "memory": "Bob rows", "created_at": "2025-01-01T00:00:00Z"}]
RECORDS = [
    {"id": "r1", "content": "Bob smoked", "active": False, "created_at": "2020-01-01", "updated_at": "2021-01-01"},
    {"id": "r2", "content": "Bob drank", "superseded_by": "r3", "created_at": "2019-01-01", "updated_at": "2020-01-01"},
    {"id": "r3", "content": "Bob is a non-smoker"},
]  # fmt: skip
CHAT = [{"role": "user", "content": "Bob rows"}, {"role": "assistant", "content": "Noted."}]


@pytest.fixture
def twin(owner: Owner) -> Owner:
    """Return another user of the tenant."""
    return Owner(owner.tenant, "twin")


async def save(memory: Services, owner: Owner, **memory_in: Any) -> Memory:
    [result] = await memory.memories.save(owner, [MemoryIn.model_validate(memory_in)])
    assert result.memory
    return result.memory


async def save_ended_memories(memory: Services, owner: Owner) -> None:
    """Save a superseded memory and its replacement, a deleted one, a corrected one and one that is current."""
    bob = {"subject": {"name": "Bob"}}
    first: list[dict[str, Any]] = [
        {"content": "Bob lives in Lund", **HOME, "object": {"name": "Lund"}},
        {"content": "Bob rows", **bob},
        {"content": "Bob drinks tea", **bob},
        {"content": "I know Bob", "object": {"name": "Bob"}},
    ]
    saved = await memory.memories.save(owner, [MemoryIn.model_validate(memory_in) for memory_in in first])
    _, deleted, corrected, _ = [result.memory.id for result in saved if result.memory]
    await save(memory, owner, content="Bob lives in Oslo", **HOME, object={"name": "Oslo"})
    await memory.memories.delete(owner, deleted)
    await memory.memories.patch(owner, corrected, MemoryPatch(content="Bob drinks coffee"))


async def import_(memory: Services, owner: Owner, export: bytes) -> dict[str, int]:
    return (await memory.imports.import_(owner, export)).imported


async def find(memory: Services, owner: Owner, content: str) -> str:
    """Return the id of the one memory of a user with a statement, ended or not."""
    export = json.loads(await memory.exports.export(owner))
    facts = [version["properties"] for version in export["memories"]]
    [memory_id] = {fact["memory_id"] for fact in facts if fact["fact"] == content}
    return str(memory_id)


async def test_a_repeated_import_as_another_user_adds_nothing(memory: Services, owner: Owner, twin: Owner) -> None:
    await fill_user(memory, owner)
    await save_ended_memories(memory, owner)
    export = await memory.exports.export(owner)
    first = await memory.imports.import_(twin, export)
    assert first.imported["versions"] > 5
    before = await memory.exports.export(twin)
    for _ in range(2):
        again = await memory.imports.import_(twin, export)
        assert again.imported == {"versions": 0}
        assert again.ids.items() <= first.ids.items()
    assert await memory.exports.export(twin) == before
    await memory.forgetting.forget(owner)
    assert await import_(memory, twin, export) == {"versions": 0}
    assert await memory.exports.export(twin) == before


async def test_a_copy_that_is_imported_back_adds_nothing(
    memory: Services, owner: Owner, twin: Owner, complete_export: bytes
) -> None:
    await import_(memory, owner, complete_export)
    await save_ended_memories(memory, owner)
    before = await memory.exports.export(owner)
    await memory.imports.import_(twin, before)
    copy = await memory.exports.export(twin)
    for _ in range(2):
        assert await import_(memory, owner, copy) == {"versions": 0}
    assert await memory.exports.export(owner) == before


async def test_a_restored_user_and_the_copy_recognise_one_another(memory: Services, owner: Owner, twin: Owner) -> None:
    await save_ended_memories(memory, owner)
    export = await memory.exports.export(owner)
    await memory.forgetting.forget(owner)
    await memory.imports.import_(twin, export)
    await memory.imports.import_(owner, export)
    for importer, exporter in ((owner, owner), (owner, twin), (twin, owner), (twin, twin)):
        assert await import_(memory, importer, await memory.exports.export(exporter)) == {"versions": 0}
        assert await import_(memory, importer, export) == {"versions": 0}


async def _delete(memory: Services, owner: Owner) -> None:
    await memory.memories.delete(owner, await find(memory, owner, "Bob lives in Oslo"))


async def _correct(memory: Services, owner: Owner) -> None:
    memory_id = await find(memory, owner, "Bob lives in Oslo")
    await memory.memories.patch(owner, memory_id, MemoryPatch(content="Bob lives in Oslo's west"))


async def _supersede(memory: Services, owner: Owner) -> None:
    await save(memory, owner, content="Bob lives in Kiel", **HOME, object={"name": "Kiel"})


async def _revert(memory: Services, owner: Owner) -> None:
    await memory.memories.revert(owner, await find(memory, owner, "Bob lives in Lund"))


async def _rename(memory: Services, owner: Owner) -> None:
    [bob] = await memory.components.entities.resolve_entity_ids(owner, "Bob")
    name = {"canonical_name": "Robert", "name_key": name_key("Robert")}
    renamed = {**name, "detail_sources": None, "vector": [0.1] * 384}
    await memory.components.graph.execute(
        "entities.rename_entity", group_id=owner.group_id, entity_id=bob, now=(await _now(memory, owner)), **renamed
    )


async def _now(memory: Services, owner: Owner) -> Any:
    return (await memory.memories.get(owner, await find(memory, owner, "I know Bob"))).updated_at


CHANGES: list[Callable[[Services, Owner], Awaitable[None]]] = [_delete, _correct, _supersede, _revert, _rename]


@pytest.mark.parametrize(
    ("change", "is_same_user"),
    [
        pytest.param(
            change,
            is_same_user,
            id=f"{change.__name__.strip('_')}-{is_same_user}",
            marks=[pytest.mark.long] if is_same_user and change is not _delete else [],
        )
        for change in CHANGES
        for is_same_user in (True, False)
    ],
)
async def test_a_repeated_import_undoes_no_change(
    memory: Services,
    owner: Owner,
    twin: Owner,
    is_same_user: bool,
    change: Callable[[Services, Owner], Awaitable[None]],
) -> None:
    importer = owner if is_same_user else twin
    await save_ended_memories(memory, owner)
    export = await memory.exports.export(owner)
    await memory.imports.import_(importer, export)
    await change(memory, importer)
    before = await memory.exports.export(importer)
    assert await import_(memory, importer, export) == {"versions": 0}
    assert await memory.exports.export(importer) == before


async def test_a_later_export_adds_only_what_is_new(memory: Services, owner: Owner, twin: Owner) -> None:
    await save_ended_memories(memory, owner)
    await memory.imports.import_(twin, await memory.exports.export(owner))
    await save(memory, owner, content="Ida sails", subject={"name": "Ida"})
    assert await import_(memory, twin, await memory.exports.export(owner)) == {"Entity": 1, "versions": 1}


async def test_the_id_of_an_earlier_import_may_have_moved_to_a_third_user(
    memory: Services, owner: Owner, twin: Owner
) -> None:
    await save_ended_memories(memory, owner)
    export = await memory.exports.export(owner)
    await memory.imports.import_(twin, export)
    copy = await memory.exports.export(twin)
    await memory.forgetting.forget(twin)
    third = Owner(owner.tenant, "third")
    await memory.imports.import_(third, copy)
    await memory.imports.import_(twin, export)
    assert await import_(memory, twin, export) == {"versions": 0}
    versions = [
        version["properties"]["uuid"]
        for user in (owner, twin, third)
        for version in json.loads(await memory.exports.export(user))["memories"]
    ]
    assert len(set(versions)) == len(versions)


@pytest.mark.parametrize(
    "document",
    [MEM0, {"nodes": NODES, "edges": [TURIN, LONDON, EXPIRED]}, RECORDS, CHAT],
    ids=["mem0", "graphiti", "records", "chat"],
)
async def test_a_repeated_import_of_another_format_adds_nothing(memory: Services, owner: Owner, document: Any) -> None:
    raw = json.dumps(document).encode()
    first = await memory.imports.import_(owner, raw)
    assert sum(first.imported.values()) == len(document["edges"] if isinstance(document, dict) else document)
    for memory_id in first.ids.values():
        before = await memory.exports.export(owner)
        again = await memory.imports.import_(owner, raw)
        assert (sum(again.imported.values()), again.refused) == (0, [])
        assert await memory.exports.export(owner) == before
        await memory.memories.delete(owner, memory_id)


async def test_what_changed_at_its_origin_since_an_import_is_listed(memory: Services, owner: Owner) -> None:
    entry = {"id": "m1", "memory": "Mara likes tea", "metadata": {"cup": 1}}
    await memory.imports.import_(owner, json.dumps([entry]).encode())
    changed = [{**entry, "memory": "Mara likes green tea", "metadata": {"cup": 2}}]
    again = await memory.imports.import_(owner, json.dumps(changed).encode())
    assert again.imported == {"memories": 0}
    assert [(entry.id, entry.reason) for entry in again.refused] == [
        ("m1", "it was imported before; not taken over: content, metadata")
    ]


async def test_a_memory_whose_id_the_user_chose_for_another_is_imported(
    memory: Services, owner: Owner, twin: Owner
) -> None:
    def records(*contents: str) -> bytes:
        return json.dumps([{"id": f"m{n}", "content": content} for n, content in enumerate(contents, 1)]).encode()

    await memory.imports.import_(owner, records("Bob rows", "Bob sings"))
    await memory.imports.import_(twin, records("Bob skis"))
    export = await memory.exports.export(owner)
    first = await memory.imports.import_(twin, export)
    assert (first.imported["versions"], first.unchanged["versions"]) == (2, 0)
    assert await find(memory, twin, "Bob skis") == "m1"
    assert await find(memory, twin, "Bob rows") == first.ids["m1"] != "m1"
    assert (await memory.imports.import_(twin, export)).imported["versions"] == 0
    assert (await memory.imports.import_(owner, export)).imported["versions"] == 0


async def test_an_entity_is_found_by_the_name_that_became_an_alias(memory: Services, owner: Owner, twin: Owner) -> None:
    await save_ended_memories(memory, owner)
    robert = await save(memory, twin, content="Bob sails", subject={"name": "Robert", "aliases": ["Bob"]})
    assert "Entity" in await import_(memory, twin, await memory.exports.export(owner))
    assert await memory.components.entities.resolve_entity_ids(twin, "Bob") == [robert.subject.id]


@pytest.mark.parametrize("in_parts", [False, True])
async def test_later_versions_and_other_settings_of_the_user_are_reported(
    memory: Services, owner: Owner, in_parts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the user has stays, and the answer says what was therefore not imported."""
    tea = await save(memory, owner, content="Bob drinks tea", subject={"name": "Bob"})
    early = await memory.exports.export(owner)
    await memory.memories.patch(owner, tea.id, MemoryPatch(content="Bob drinks coffee"))
    await memory.retrieval.set_persona(owner, Persona(weights={"plan": 2.0}))
    late = tmp_path / "late.json"
    late.write_bytes(await memory.exports.export(owner))
    await memory.forgetting.forget(owner)
    await memory.imports.import_(owner, early)
    await memory.retrieval.set_persona(owner, Persona(weights={"fact": 0.5}))

    monkeypatch.setattr("graphmem.user_data.export_reader.LARGE_BYTES", 1 if in_parts else 1 << 30)
    result = await memory.export_imports.import_file(owner, late)
    assert [(entry.loc, entry.id) for entry in result.refused] == [
        (["user", "persona"], None),
        (["memories", 1], tea.id),
    ]
    assert result.unchanged["versions"] == 1
    assert (await memory.retrieval.get_persona(owner)).weights == {"fact": 0.5}
    await memory.forgetting.forget(owner)
    assert (await memory.export_imports.import_file(owner, late)).refused == []
    assert (await memory.retrieval.get_persona(owner)).weights == {"plan": 2.0}
    assert (await memory.export_imports.import_file(owner, late)).refused == []
