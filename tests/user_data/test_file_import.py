"""Importing exports from files: part by part, after an interruption, and those of a folder."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphmem.app.bootstrap import Services
from graphmem.memories.entity import EntityIn
from graphmem.memories.memory import MemoryIn
from graphmem.runtime.errors import Conflict, InvalidInput
from graphmem.tenants.access import COMMAND_LINE, make_local_key
from graphmem.tenants.owners import Owner
from graphmem.tenants.spaces import SpaceIn, SpaceMember, SpaceRole
from graphmem.tenants.users import UserStore
from graphmem.user_data import export_reader
from graphmem.user_data.export_import import ExportImporter
from graphmem.user_data.export_reader import ExportReader, is_export_file, read_export
from graphmem.user_data.outline import read_outline


@pytest.fixture
def importer(memory: Services, monkeypatch: pytest.MonkeyPatch) -> ExportImporter:
    """Return an importer for which every file is large, and whose parts are small."""
    monkeypatch.setattr(export_reader, "LARGE_BYTES", 0)
    parts = memory.components
    return ExportImporter(parts.graph, parts.facts, parts.embedder, max_entries=1, part_entries=3)


@pytest.fixture
def exported(complete_export: bytes, tmp_path: Path) -> Path:
    """Return the file with the export of a user who has everything."""
    path = tmp_path / "export.json"
    path.write_bytes(complete_export)
    return path


def read(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, text: bytes) -> None:
    path.write_bytes(text)


def edited(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document), "utf-8")
    return path


async def test_parts_make_the_same_graph_as_one_transaction(
    memory: Services, owner: Owner, importer: ExportImporter, exported: Path
) -> None:
    seen: list[tuple[int, int]] = []
    result = await importer.import_file(owner, exported, progress=lambda done, total: seen.append((done, total)))
    assert await memory.exports.export(owner) == read(exported)
    entries = [len(json.loads(read(exported))[section]) for section in ("entities", "memories", "records")]
    assert sum(result.imported.values()) == sum(entries)
    assert seen[-1][0] == seen[-1][1]
    again = await importer.import_file(owner, exported)
    assert again.imported == {"versions": 0}
    assert await memory.exports.export(owner) == read(exported)


async def test_an_import_for_another_user_renames_the_own_entity(
    memory: Services, owner: Owner, importer: ExportImporter, exported: Path
) -> None:
    in_parts, at_once = Owner(owner.tenant, "parts"), Owner(owner.tenant, "at once")
    await importer.import_file(in_parts, exported)
    await memory.imports.import_(at_once, read(exported))
    names = []
    for twin in (in_parts, at_once):
        entities = json.loads(await memory.exports.export(twin))["entities"]
        names.append(sorted((entity["properties"]["name"], entity["properties"]["is_user"]) for entity in entities))
    assert [name.replace("at once", "parts") for name, _ in names[1]] == [name for name, _ in names[0]]
    assert ("parts", True) in names[0]


@pytest.mark.parametrize("parts", [pytest.param(1, marks=pytest.mark.long), 3, pytest.param(6, marks=pytest.mark.long)])
async def test_an_interrupted_import_goes_on_where_it_ended(
    memory: Services, owner: Owner, importer: ExportImporter, exported: Path, parts: int
) -> None:
    calls = 0

    def interrupt(_done: int, _total: int) -> None:
        nonlocal calls
        calls += 1
        if calls > parts:
            raise KeyError("killed")

    with pytest.raises(KeyError):
        await importer.import_file(owner, exported, progress=interrupt)
    assert await memory.exports.export(owner) != read(exported)
    resumed = await importer.import_file(owner, exported)
    assert sum(resumed.unchanged.values()) > 0
    assert await memory.exports.export(owner) == read(exported)


async def test_vectors_of_another_model_are_computed_again(
    memory: Services, owner: Owner, importer: ExportImporter, exported: Path
) -> None:
    before = read(exported)
    edited(exported, lambda document: document["embedding"].update(model="another"))
    result = await importer.import_file(owner, exported)
    assert result.vectors_remade
    assert json.loads(await memory.exports.export(owner)) == json.loads(before)


async def test_what_contradicts_the_user_is_refused_before_anything_is_written(
    memory: Services, owner: Owner, importer: ExportImporter, exported: Path
) -> None:
    home = {"predicate": "LIVES_IN", "single_valued": True, "object": {"name": "Porto"}}
    await memory.memories.save(owner, [MemoryIn.model_validate({"content": "Mara lives in Porto", **home})])
    before = await memory.exports.export(owner)
    with pytest.raises(Conflict, match="contradict"):
        await importer.import_file(owner, exported)
    assert await memory.exports.export(owner) == before


def _drop_version(document: dict[str, Any]) -> None:
    versions = [entry["properties"]["version"] for entry in document["memories"]]
    del document["memories"][versions.index(2) - 1]


def _separate_versions(document: dict[str, Any]) -> None:
    versions = [entry["properties"]["version"] for entry in document["memories"]]
    document["memories"].append(document["memories"].pop(versions.index(2)))


def _shorten_vector(document: dict[str, Any]) -> None:
    document["memories"][0]["vector"].pop()


def _lose_node(document: dict[str, Any]) -> None:
    document["records"].pop()


def _repeat_entity(document: dict[str, Any]) -> None:
    document["entities"].append(document["entities"][0])


def _misspell(document: dict[str, Any]) -> None:
    document["memories"][1]["properties"]["colour"] = "red"


MISTAKES: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (_drop_version, "memories"),
    (_separate_versions, "memories"),
    (_shorten_vector, "memories"),
    (_lose_node, "links"),
    (_repeat_entity, "entities"),
    (_misspell, "memories"),
]


async def test_a_file_with_a_mistake_is_refused_with_its_place(
    memory: Services, owner: Owner, importer: ExportImporter, complete_export: bytes, tmp_path: Path
) -> None:
    places = []
    for change, _ in MISTAKES:
        path = tmp_path / "export.json"
        path.write_bytes(complete_export)
        with pytest.raises(InvalidInput) as refused:
            await importer.import_file(owner, edited(path, change))
        places.append(cast("Sequence[str]", refused.value.errors[0]["loc"])[0])
    assert places == [place for _, place in MISTAKES]
    assert json.loads(await memory.exports.export(owner))["memories"] == []


async def test_a_file_that_ends_early_or_is_in_another_order_is_refused(
    owner: Owner, importer: ExportImporter, exported: Path
) -> None:
    document = json.loads(read(exported))
    write(exported, read(exported)[:-40])
    with pytest.raises(InvalidInput, match="not a complete export"):
        await importer.import_file(owner, exported)
    reordered = {name: document[name] for name in ("format", "schema_version", "user_id", "embedding", "user")}
    reordered |= {name: document[name] for name in ("memories", "entities", "records", "links")}
    write(exported, json.dumps(reordered).encode())
    with pytest.raises(InvalidInput, match="out of order"):
        await importer.import_file(owner, exported)


async def test_a_folder_is_imported_user_by_user_and_a_broken_file_stops_no_other(
    memory: Services, owner: Owner, importer: ExportImporter, tmp_path: Path
) -> None:
    exports = {}
    for name in ("ada", "böb", "eve/x"):
        user = Owner(owner.tenant, name)
        await memory.memories.save(user, [MemoryIn(content=f"{name} likes tea")])
        exports[name] = await memory.exports.export(user)
        (tmp_path / f"{len(exports)}.json").write_bytes(exports[name])
        await memory.forgetting.forget(user)
    (tmp_path / "broken.json").write_text('{"format": "graphmem-export", "user_id"', "utf-8")
    result = await importer.import_folder(owner.tenant, tmp_path)
    assert result.users == 3
    assert result.imported == {"Entity": 3, "versions": 3}
    assert [failed.file for failed in result.failed] == ["broken.json"]
    assert "not a complete export" in result.failed[0].reason
    assert {name: await memory.exports.export(Owner(owner.tenant, name)) for name in exports} == exports
    again = await importer.import_folder(owner.tenant, tmp_path)
    assert again.imported == {}
    assert again.unchanged == {"Entity": 3, "versions": 3}


async def test_an_export_of_a_space_in_a_folder_is_imported_into_the_space(
    memory: Services, owner: Owner, importer: ExportImporter, tmp_path: Path
) -> None:
    """As the command that exports all users names it; no user of that name comes into being."""
    space, admin = Owner.of_space(owner.tenant, "trip"), make_local_key(COMMAND_LINE, owner.tenant)
    wanted = SpaceIn(title="Trip", members=[SpaceMember(user="ada", role=SpaceRole.OWNER)])
    await memory.spaces.put(admin, "trip", wanted)
    await memory.memories.save(space, [MemoryIn(content="The tent is blue", subject=EntityIn(name="tent"))])
    (tmp_path / "%20trip.json").write_bytes(await memory.exports.export(space))
    await memory.forgetting.forget(space)
    lost = await importer.import_folder(owner.tenant, tmp_path)
    assert "graphmem spaces put" in lost.failed[0].reason
    await memory.spaces.put(admin, "trip", wanted)
    assert (await importer.import_folder(owner.tenant, tmp_path)).imported["versions"] == 1
    users = await UserStore(memory.components.graph).list_owners(owner.tenant)
    assert Owner(owner.tenant, "trip") not in users


async def test_a_folder_without_exports_is_refused(owner: Owner, importer: ExportImporter, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="contains no"):
        await importer.import_folder(owner.tenant, tmp_path)


async def test_what_is_kept_of_a_memory_while_it_is_imported_is_small(
    memory: Services, owner: Owner, tmp_path: Path
) -> None:
    note = {"note": "x" * 600}
    await memory.memories.save(owner, [MemoryIn(content=f"Mara likes tea {n}", metadata=note) for n in range(50)])
    path = tmp_path / "export.json"
    path.write_bytes(await memory.exports.export(owner))
    reader = ExportReader(path)
    tracemalloc.start()
    try:
        outline = read_outline(owner, reader, in_parts=True)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(outline.facts) == 50
    assert outline.count == 51
    assert kept / 50 < 2_500
    assert path.stat().st_size / 50 > 8_000


async def test_a_small_file_is_imported_at_once(memory: Services, owner: Owner, exported: Path) -> None:
    small = ExportImporter(memory.components.graph, memory.components.facts, memory.components.embedder, max_entries=3)
    with pytest.raises(InvalidInput, match="GRAPHMEM_MAX_IMPORT_ENTRIES"):
        await small.import_file(owner, exported)
    await memory.export_imports.import_file(owner, exported)
    assert await memory.exports.export(owner) == read(exported)


def test_an_export_is_recognised_by_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text('{ "format": "graphmem-export", "entities": []}', "utf-8")
    assert is_export_file(path)
    path.write_text('{"records": []}                 ', "utf-8")
    assert not is_export_file(path)
    assert not is_export_file(tmp_path / "missing.json")


@given(
    text=st.text(min_size=1).filter(lambda text: text.strip() and "\x00" not in text),
    chunk=st.integers(1, 400),
    indent=st.sampled_from([None, 2]),
    ascii_only=st.booleans(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_reader_finds_the_entries_whatever_their_texts_contain(
    tmp_path: Path, text: str, chunk: int, indent: int | None, ascii_only: bool
) -> None:
    document = json.loads(Path(__file__).with_name("export_1_0.json").read_bytes())
    for entity in document["entities"]:
        entity["properties"]["summary"] = text
    for version in document["memories"]:
        version["properties"]["source_quote"] = f'{text}"]}}\\'
    path = tmp_path / "export.json"
    path.write_text(json.dumps(document, indent=indent, ensure_ascii=ascii_only), "utf-8", errors="surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export_reader, "CHUNK_BYTES", chunk)
        read = [entry for _, entry in ExportReader(path).entries()]
    assert read == [entry for _, entry in read_export(document).entries()]
