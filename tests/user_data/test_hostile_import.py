"""An import cannot break the service, change what describes the database, or reach another user's data."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from graphmem.app.bootstrap import Services
from graphmem.context.models import ContextRequest
from graphmem.conversations.session import MessageIn, MessagesIn
from graphmem.memories.filters import ListFilters
from graphmem.memories.memory import MemoryIn, MemorySourceIn
from graphmem.neo4j.migrations import check_invariants
from graphmem.runtime.errors import Conflict, InvalidInput
from graphmem.runtime.paging import PageQuery
from graphmem.tenants.owners import Owner
from graphmem.user_data.export_import import ExportImporter
from graphmem.user_data.importing import ImportService
from graphmem.user_data.records import RecordImporter

Document = dict[str, Any]
Place = tuple[Any, ...]


async def export_document(memory: Services, owner: Owner) -> Document:
    document: Document = json.loads(await memory.exports.export(owner))
    return document


async def import_document(memory: Services, owner: Owner, document: Document) -> dict[str, str]:
    return (await memory.imports.import_(owner, json.dumps(document).encode())).ids


def record(document: Document, label: str) -> Document:
    return next(node for node in document["records"] if node["labels"] == [label])


def set_in(section: str, *names: str, value: Any) -> Callable[[Document], None]:
    """Return a function that sets a field of the first entry of a section."""

    def apply(document: Document) -> None:
        target = document[section][0] if section in ("entities", "memories", "links") else document[section]
        for name in names[:-1]:
            target = target[name]
        target[names[-1]] = value

    return apply


def set_in_record(label: str, name: str, value: Any) -> Callable[[Document], None]:
    def apply(document: Document) -> None:
        record(document, label)["properties"][name] = value

    return apply


def remove(section: str, *names: str) -> Callable[[Document], None]:
    def apply(document: Document) -> None:
        target = document[section][0]
        for name in names[:-1]:
            target = target[name]
        del target[names[-1]]

    return apply


def remove_from_record(label: str, name: str) -> Callable[[Document], None]:
    def apply(document: Document) -> None:
        del record(document, label)["properties"][name]

    return apply


def _repeat_position(document: Document) -> None:
    messages = [node["properties"] for node in document["records"] if node["labels"] == ["Episodic"]]
    first = messages[0]
    other = next(message for message in messages[1:] if message["session_id"] == first["session_id"])
    other["position"] = first["position"]


def repeat_first(section: str) -> Callable[[Document], None]:
    def apply(document: Document) -> None:
        document[section].append(document[section][0])

    return apply


FUTURE = {"$time": "9998-12-31T23:59:59+00:00"}
FACT = ("memories", 0, "properties")
ENTITY = ("entities", 0, "properties")

REFUSED: dict[str, tuple[Callable[[Document], None], Place]] = {
    # Properties that describe the database, or that no label has.
    "tenant of the user": (set_in("user", "tenant", value="other"), ("user", "tenant")),
    "group of the user": (set_in("user", "group_id", value="other:mara"), ("user", "group_id")),
    "id of the user": (set_in("user", "user_id", value="omar"), ("user", "user_id")),
    "write version": (set_in("user", "write_version", value=-1), ("user", "write_version")),
    "time of the last write": (set_in("user", "last_write_at", value=FUTURE), ("user", "last_write_at")),
    "pending job": (set_in_record("Episodic", "pending_job", "job"), ("records", "pending_job")),
    "group of a message": (set_in_record("Episodic", "group_id", "other:omar"), ("records", "group_id")),
    "group of an entity": (set_in("entities", "properties", "group_id", value="x"), (*ENTITY, "group_id")),
    "shadow bound": (set_in("memories", "properties", "known_to", value=FUTURE), (*FACT, "known_to")),
    "group of a link": (set_in("links", "properties", value={"group_id": "x"}), ("links", 0, "properties", "group_id")),
    # Labels and types.
    "label of a record": (lambda document: record(document, "Session").update(labels=["ApiKey"]), ("records",)),
    "label that is a map": (lambda document: record(document, "Session").update(labels=[{}]), ("records",)),
    "two labels": (lambda document: record(document, "Session").update(labels=["Session", "Episodic"]), ("records",)),
    "label of an entity": (set_in("entities", "labels", value=["Entity", "ApiKey"]), ("entities", 0)),
    "no label of an entity": (set_in("entities", "labels", value=["Person", "Person"]), ("entities", 0)),
    "other type": (set_in("entities", "properties", "type", value="Planet"), ("entities", 0)),
    "many labels": (set_in("entities", "labels", value=["Entity", *"ABCDEFGHI"]), ("entities", 0, "labels")),
    "entity type": (set_in("entities", "properties", "type", value="Api Key"), (*ENTITY, "type")),
    "link type": (set_in("links", "type", value="OWNS"), ("links", 0, "type")),
    "fact as a link": (set_in("links", "type", value="RELATES_TO"), ("links", 0, "type")),
    # Missing and repeated ids.
    "no entity id": (remove("entities", "properties", "uuid"), (*ENTITY, "uuid")),
    "no name": (set_in("entities", "properties", "name", value=None), (*ENTITY, "name")),
    "no memory id": (remove("memories", "properties", "memory_id"), (*FACT, "memory_id")),
    "no message id": (remove_from_record("Episodic", "message_id"), ("records", "message_id")),
    "no session id": (remove_from_record("Session", "session_id"), ("records", "session_id")),
    "another key": (set_in("entities", "key", value="other"), ("entities", 0)),
    "line break in an id": (set_in("memories", "properties", "uuid", value="a\r\nb"), (*FACT, "uuid")),
    "emoji in an id": (set_in("memories", "properties", "memory_id", value="id \U0001f600"), (*FACT, "memory_id")),
    "id of 300 characters": (set_in("memories", "properties", "uuid", value="x" * 300), (*FACT, "uuid")),
    "id of a message": (set_in_record("Episodic", "uuid", "a\nb"), ("records", "uuid")),
    "entity twice": (repeat_first("entities"), ("entities", 0)),
    "version twice": (repeat_first("memories"), ("memories", 0)),
    "record twice": (repeat_first("records"), ("records", 0)),
    "link to nothing": (set_in("links", "end", value="nothing"), ("links", 0)),
    "unknown subject": (set_in("memories", "subject_id", value="nobody"), ("memories", 0)),
    # Values of another type.
    "times without marker": (set_in("memories", "properties", "created_at", value="yesterday"), (*FACT, "created_at")),
    "no time": (set_in("memories", "properties", "created_at", value={"$time": "yesterday"}), (*FACT, "created_at")),
    "naive time": (
        set_in("memories", "properties", "created_at", value={"$time": "2026-01-01T00:00:00"}), (*FACT, "created_at"),
    ),
    "year 1": (
        set_in("memories", "properties", "valid_at", value={"$time": "0001-01-01T00:00:00+14:00"}), (*FACT, "valid_at"),
    ),
    "map as text": (set_in("entities", "properties", "summary", value={"a": 1}), (*ENTITY, "summary")),
    "text as number": (set_in("memories", "properties", "confidence", value="much"), (*FACT, "confidence")),
    "flag as number": (set_in("memories", "properties", "access_count", value=True), (*FACT, "access_count")),
    "list of numbers": (set_in("memories", "properties", "tags", value=[1]), (*FACT, "tags", 0)),
    "global scope": (set_in("memories", "properties", "scope", value="global"), (*FACT, "scope")),
    "broken attributes": (set_in("entities", "properties", "attributes", value="{"), (*ENTITY, "attributes")),
    "metadata that is a list": (set_in("memories", "properties", "metadata", value="[1]"), (*FACT, "metadata")),
    "surrogate in metadata": (
        set_in("memories", "properties", "metadata", value='{"a": "\\ud800"}'), (*FACT, "metadata"),
    ),
    "infinite number in metadata": (set_in_record("Session", "metadata", '{"a": 1e999}'), ("records", "metadata")),
    "entities of a message": (set_in_record("Episodic", "entities", '{"goal": {}}'), ("records", "entities")),
    "sources of a preference": (
        set_in_record("LearnedPreference", "learned_from", '{"message_ids": 1}'), ("records", "learned_from"),
    ),
    "type of a pattern": (set_in_record("BehaviorPattern", "pattern_type", "mood"), ("records", "pattern_type")),
    "time zone": (set_in("user", "timezone", value="Mars/Olympus"), ("user", "timezone")),
    # Numbers and texts that cannot be stored or make later writes fail.
    "huge number": (set_in("memories", "properties", "access_count", value=10**400), (*FACT, "access_count")),
    "largest number": (set_in("memories", "properties", "access_count", value=2**63 - 1), (*FACT, "access_count")),
    "message count": (set_in_record("Session", "message_count", 2**63 - 1), ("records", "message_count")),
    "distance from UTC": (set_in_record("Episodic", "utc_offset_minutes", 2**40), ("records", "utc_offset_minutes")),
    "infinite number": (set_in("memories", "properties", "decay_rate", value=float("inf")), (*FACT, "decay_rate")),
    "no number": (set_in("memories", "vector", value=[float("nan")] * 384), ("memories", 0, "vector", 0)),
    "lone surrogate": (set_in("memories", "properties", "actor", value="\ud800"), (*FACT, "actor")),
    "NUL": (set_in("memories", "properties", "actor", value="\x00"), (*FACT, "actor")),
    "known in the future": (set_in("memories", "properties", "updated_at", value=FUTURE), (*FACT, "updated_at")),
    # Vectors of another length.
    "short vector": (set_in("memories", "vector", value=[1.0]), ("memories", 0, "vector")),
    "zero vector": (set_in("memories", "vector", value=[0.0] * 384), ("memories", 0, "vector")),
    "short vector of a name": (
        set_in("entities", "properties", "name_embedding", value=[1.0]), (*ENTITY, "name_embedding"),
    ),
    "short vector of a message": (
        set_in_record("Episodic", "content_embedding", [1.0]), ("records", "content_embedding"),
    ),
    # Entries that do not fit together.
    "version without the one before": (set_in("memories", "properties", "version", value=3), ("memories",)),
    "ended without a reason": (
        set_in("memories", "properties", "expired_at", value={"$time": "2020-01-01T00:00:00+00:00"}), ("memories",),
    ),
    "unknown entity": (set_in("memories", "properties", "entity_ids", value=["nobody"]), (*FACT, "entity_ids")),
    "unknown message": (set_in("memories", "properties", "episodes", value=["nothing"]), (*FACT, "episodes")),
    "unknown memory": (set_in("memories", "properties", "supersedes", value=["nothing"]), (*FACT, "supersedes")),
    "message in no session": (set_in_record("Episodic", "session_id", "nowhere"), ("records",)),
    "archived message in no session": (set_in_record("ArchivedEpisode", "session_id", "nowhere"), ("records",)),
    "position twice": (_repeat_position, ("records", "position")),
    # Parts of the document.
    "unknown section": (lambda document: document.update(keys=[]), ("keys",)),
    "other schema version": (lambda document: document.update(schema_version="9.0"), ("schema_version",)),
}  # fmt: skip


def is_at(loc: Any, place: Place) -> bool:
    """Whether an error names a place; of records, whose order is not fixed, the section and the property."""
    if place[0] == "records":
        return loc[0] == "records" and isinstance(loc[1], int) and (len(place) == 1 or place[-1] in loc)
    return tuple(loc[: len(place)]) == place


async def test_a_hostile_import_is_refused_entirely(memory: Services, owner: Owner, complete_export: bytes) -> None:
    wrong = {}
    for change, (corrupt, place) in REFUSED.items():
        document = json.loads(complete_export)
        corrupt(document)
        try:
            wrong[change] = str(await import_document(memory, owner, document))
        except InvalidInput as refusal:
            if not any(is_at(error["loc"], place) for error in refusal.errors):
                wrong[change] = str(refusal.errors)
    assert wrong == {}
    after = await export_document(memory, owner)
    assert [after[section] for section in ("entities", "memories", "records")] == [[], [], []]


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"[]", b'{"format": "something"}', b"{", b"- !!python/name:os.system"])
async def test_a_document_of_no_format_is_refused(memory: Services, owner: Owner, raw: bytes) -> None:
    with pytest.raises(InvalidInput):
        await memory.imports.import_(owner, raw)


@pytest.mark.req("QUINN-41")
async def test_names_of_other_users_entities_are_not_readable_through_an_import(memory: Services, owner: Owner) -> None:
    victim = Owner(owner.tenant, "victim")
    await memory.memories.save(victim, [MemoryIn(content="V likes tea", subject={"name": "Secret name"})])
    [foreign] = (await export_document(memory, victim))["entities"][:1]
    await memory.memories.save(owner, [MemoryIn(content="Mara likes tea")])
    document = await export_document(memory, owner)
    await memory.forgetting.forget(owner)
    entity_ids = document["memories"][0]["properties"]["entity_ids"]
    entity_ids.append(foreign["key"])
    document["entities"][0]["properties"]["mentioned_in"] = ["foreign memory"]
    with pytest.raises(InvalidInput, match="does not fit"):
        await import_document(memory, owner, document)
    entity_ids.pop()
    await import_document(memory, owner, document)
    found = await memory.memories.page(owner, ListFilters())
    context = await memory.contexts.build(owner, ContextRequest(question="Who likes tea?"))
    assert foreign["properties"]["name"] not in found.model_dump_json() + context.model_dump_json()
    after = await export_document(memory, owner)
    assert foreign["key"] not in json.dumps(after)
    assert "foreign memory" not in json.dumps(after)


async def test_messages_are_not_linked_to_another_users_message(memory: Services, owner: Owner) -> None:
    talk = MessagesIn(session_id="talk", messages=[MessageIn(role="user", content="Hello")], extract=False)
    victim = Owner(owner.tenant, "victim")
    await memory.messages.add(victim, talk)
    foreign = record(await export_document(memory, victim), "Episodic")["key"]
    await memory.messages.add(owner, talk)
    document = await export_document(memory, owner)
    await memory.forgetting.forget(owner)
    record(document, "Session")["properties"]["last_episode"] = foreign
    await import_document(memory, owner, document)
    await memory.messages.add(owner, talk.model_copy(update={"messages": [MessageIn(role="user", content="Bye")]}))
    crossing = "MATCH (a:Episodic)-[:NEXT_EPISODE]->(b) WHERE a.uuid = $id AND b.group_id <> a.group_id RETURN b.uuid"
    assert await memory.components.graph.read(lambda transaction: transaction.run_text(crossing, {"id": foreign})) == []


def talk_of(*texts: str) -> MessagesIn:
    """Return messages of one session; their ids are their texts."""
    messages = [MessageIn(id=text, role="user", content=text) for text in texts]
    return MessagesIn(session_id="talk", messages=messages, extract=False)


async def find_violations(memory: Services, owner: Owner) -> list[str]:
    checks = [check async for check in check_invariants(memory.components.graph, owner.tenant)]
    return [check.name for check in checks if check.count]


async def test_an_import_continues_a_session_and_does_not_list_a_statement_that_the_user_has(
    memory: Services, owner: Owner
) -> None:
    """One check of the invariants is for both: it reads the whole graph."""
    source = Owner(owner.tenant, "source")
    await memory.messages.add(source, talk_of("one", "two", "three"))
    await memory.messages.add(owner, talk_of("one", "two"))
    await import_document(memory, owner, await export_document(memory, source))
    session = await memory.messages.get_session(owner, "talk")
    assert session.message_count == 3
    await memory.messages.add(owner, talk_of("four"))
    page = await memory.messages.list_messages(owner, "talk", PageQuery())
    assert [message.id for message in page.items] == ["one", "two", "three", "four"]

    source, reader = Owner(owner.tenant, "second source"), Owner(owner.tenant, "reader")
    tea = MemoryIn(content="Bob likes tea", subject={"name": "Bob"})
    await memory.messages.add(source, talk_of("one"))
    told = MemorySourceIn(session_id="talk", message_ids=["one"])
    await memory.memories.save(source, [tea.model_copy(update={"source": told})])
    [known] = await memory.memories.save(reader, [tea])
    assert known.memory
    document = await export_document(memory, source)
    ids = await import_document(memory, reader, document)
    assert ids[document["memories"][0]["properties"]["memory_id"]] == known.memory.id
    assert await find_violations(memory, owner) == []


async def test_other_messages_of_a_session_that_the_user_has_are_refused(memory: Services, owner: Owner) -> None:
    source = Owner(owner.tenant, "source")
    await memory.messages.add(source, talk_of("one", "two", "three"))
    await memory.messages.add(owner, talk_of("one", "other"))
    with pytest.raises(InvalidInput, match="does not fit") as refusal:
        await import_document(memory, owner, await export_document(memory, source))
    assert {error["msg"] for error in refusal.value.errors} == {
        "is a message in another place than in the sessions that the user has"
    }
    assert (await memory.messages.get_session(owner, "talk")).message_count == 2


async def test_two_current_values_in_one_import_are_refused(memory: Services, owner: Owner) -> None:
    lives = {"predicate": "LIVES_IN", "subject": {"name": "Mara"}}
    await memory.memories.save(
        owner,
        [MemoryIn(content="Mara lives in Lund", **lives), MemoryIn(content="Mara lives in Malmö", **lives)],
    )
    document = await export_document(memory, owner)
    await memory.forgetting.forget(owner)
    for version in document["memories"]:
        version["properties"]["single_valued"] = True
    with pytest.raises(Conflict, match="one another"):
        await import_document(memory, owner, document)


async def test_a_memory_cannot_take_the_id_of_a_global_memory(memory: Services, owner: Owner) -> None:
    [rule] = await memory.memories.save(owner, [MemoryIn(content="Support closes at five", scope="global")])
    assert rule.memory
    await memory.memories.save(owner, [MemoryIn(content="Mara likes tea")])
    document = await export_document(memory, owner)
    await memory.forgetting.forget(owner)
    document["memories"][0]["properties"]["memory_id"] = rule.memory.id
    ids = await import_document(memory, owner, document)
    assert (await memory.memories.get(owner, rule.memory.id)).content == "Support closes at five"
    assert (await memory.memories.get(owner, ids[rule.memory.id])).content == "Mara likes tea"


async def test_an_import_of_too_many_entries_is_refused(memory: Services, owner: Owner) -> None:
    parts = memory.components
    limited = ImportService(
        parts.graph,
        parts.facts,
        ExportImporter(parts.graph, parts.facts, parts.embedder, max_entries=2),
        parts.memory_writer,
        memory.messages,
        memory.declared_types,
        RecordImporter(parts.facts, memory.memories),
        parts.entities,
        parts.clock,
        max_entries=2,
        max_memories_per_save=500,
    )
    log = [{"role": "user", "content": "Hi"}] * 3
    with pytest.raises(InvalidInput, match="GRAPHMEM_MAX_IMPORT_ENTRIES"):
        await limited.import_(owner, json.dumps(log).encode())
