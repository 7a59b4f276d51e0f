"""Importing from other memory systems: known times are kept, guards apply, a second import adds nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from graphmem.app.bootstrap import Services
from graphmem.graph_memory import GraphMemory
from graphmem.memories.filters import ListFilters
from graphmem.search.models import SearchQuery
from graphmem.tenants.owners import Owner

NODES = [
    {"uuid": "n1", "name": "Ada", "labels": ["Entity", "Person"]},
    {"uuid": "n2", "name": "Turin", "labels": ["Entity", "Place"]},
    {"uuid": "n3", "name": "London", "labels": ["Entity", "Place"]},
]


def edge(uuid: str, fact: str, target: str, **times: str) -> dict[str, Any]:
    ends = {"source_node_uuid": "n1", "target_node_uuid": target}
    return {"uuid": uuid, "fact": fact, "name": "LIVES_IN", "group_id": "g", "episodes": ["ep1"], **ends, **times}


TURIN = edge(
    "e1", "Ada lives in Turin", "n2",
    valid_at="2019-05-01T00:00:00Z", invalid_at="2024-03-01T00:00:00Z",
    created_at="2023-01-10T00:00:00Z", expired_at="2024-03-10T00:00:00Z",
)  # fmt: skip
LONDON = edge(
    "e2", "Ada lives in London", "n3", valid_at="2024-03-01T00:00:00Z", created_at="2024-03-10T00:00:00Z"
)  # fmt: skip
EXPIRED = edge("e3", "Ada lives in Paris", "n3", created_at="2023-01-10T00:00:00Z", expired_at="2023-02-01T00:00:00Z")


def at(year: int, month: int = 1, day: int = 1) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


async def search_contents(memory: Services, owner: Owner, **search_options: Any) -> set[str]:
    answer = await memory.retrieval.search(owner, SearchQuery(query="where does Ada live?", **search_options))
    return {hit.memory.content for hit in answer.results}


async def test_imported_graphiti_facts_keep_their_as_of_answers(memory: Services, owner: Owner) -> None:
    document = json.dumps({"nodes": NODES, "edges": [TURIN, LONDON, EXPIRED]}).encode()
    result = await memory.imports.import_(owner, document, actor="mover")
    assert (result.format, result.imported, result.refused) == ("graphiti", {"memories": 3}, [])
    assert await search_contents(memory, owner) == {"Ada lives in London"}
    assert await search_contents(memory, owner, valid_as_of=at(2021)) == {"Ada lives in Turin"}
    assert await search_contents(memory, owner, known_as_of=at(2023, 1, 20)) == {
        "Ada lives in Turin",
        "Ada lives in Paris",
    }
    assert await search_contents(memory, owner, known_as_of=at(2024, 3, 5), valid_as_of=at(2024, 3, 5)) == {
        "Ada lives in Turin"
    }
    assert await search_contents(memory, owner, known_as_of=at(2022)) == set()

    believed, closed = await memory.memories.history(owner, result.ids["e1"])
    assert (believed.created_at, believed.expired_at, believed.invalid_at) == (at(2023, 1, 10), at(2024, 3, 10), None)
    assert (closed.created_at, closed.expired_at, closed.invalid_at) == (at(2024, 3, 10), None, at(2024, 3))
    assert (closed.subject.name, closed.object and closed.object.name) == ("Ada", "Turin")
    assert (closed.source.kind, closed.source.message_ids, closed.actor) == ("import", ["ep1"], "mover")
    [paris] = await memory.memories.history(owner, result.ids["e3"])
    assert (paris.status, paris.expired_at) == ("deleted", at(2023, 2))


async def test_repeated_import_adds_nothing_and_export_round_trips(memory: Services, owner: Owner) -> None:
    document = json.dumps({"nodes": NODES, "edges": [TURIN, LONDON, EXPIRED]}).encode()
    first = await memory.imports.import_(owner, document)
    before = await memory.exports.export(owner)
    again = await memory.imports.import_(owner, document)
    assert (again.imported, again.unchanged, again.ids) == ({"memories": 0}, {"memories": 3}, first.ids)
    assert await memory.exports.export(owner) == before
    await memory.forgetting.forget(owner)
    await memory.imports.import_(owner, before)
    assert await memory.exports.export(owner) == before


async def test_import_of_a_known_statement_reinforces_and_keeps_its_times(memory: Services, owner: Owner) -> None:
    [saved] = await GraphMemory(memory, owner.tenant).add(owner.user_id, "Mara likes tea")
    assert saved.memory
    records = [{"id": "m1", "memory": "Mara likes tea", "created_at": "2025-01-01T00:00:00Z"}]
    result = await memory.imports.import_(owner, json.dumps(records).encode())
    assert (result.unchanged, result.ids) == ({"memories": 1}, {"m1": saved.memory.id})
    [version] = await memory.memories.history(owner, saved.memory.id)
    assert version.created_at == saved.memory.created_at


async def test_import_applies_guards_and_reports_rejected_entries(memory: Services, owner: Owner) -> None:
    records = [
        {"id": "saved", "memory": "Mara likes tea", "created_at": "2025-01-01T00:00:00Z", "metadata": {"shelf": 3}},
        {"id": "secret", "memory": "Mara's card is 4111 1111 1111 1111", "created_at": "2025-01-01T00:00:00Z"},
        {"id": "hidden", "memory": "Mara pays by card", "metadata": {"card": "4111 1111 1111 1111"}},
        {"id": "ahead", "memory": "Mara likes coffee", "created_at": "2999-01-01T00:00:00Z"},
        {"id": "blank", "memory": ""},
    ]
    result = await memory.imports.import_(owner, json.dumps({"results": records}).encode())
    assert {entry.id: entry.reason.split(":")[0] for entry in result.refused} == {
        "secret": "holds a secret",
        "hidden": "holds a secret",
        "ahead": "a known time is in the future",
        "blank": "content",
    }
    assert [entry.loc for entry in result.refused] == [["results", place] for place in (1, 2, 3, 4)]
    [saved] = (await memory.memories.page(owner, ListFilters())).items
    assert (saved.id, saved.created_at, saved.metadata) == (result.ids["saved"], at(2025), {"shelf": 3})
    assert "4111" not in result.model_dump_json()
