"""The models of an export match the stored data, and an import plan references no data of other users."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from graphmem.memories.fact import FACT_FIELDS, dedup_key
from graphmem.neo4j.queries import load_queries
from graphmem.neo4j.schema import LinkType, RecordLabel
from graphmem.runtime.errors import InvalidInput
from graphmem.runtime.field_types import content_hash
from graphmem.tenants.owners import Owner
from graphmem.user_data.export_properties import FACT_MARKS, PROPERTIES
from graphmem.user_data.export_reader import read_export
from graphmem.user_data.export_schema import export_json_schema
from graphmem.user_data.import_plan import ExistingData, ExistingNode, find_misfits, plan_import, with_ids
from graphmem.user_data.outline import ExportOutline, find_future_times, read_outline

OWNER = Owner("default", "mara")
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
NOTHING = ExistingData(entities={}, records={}, memory_ids=set(), current_statements={}, taken_ids=set())
TIME = {"$time": "2026-05-01T12:00:00+00:00"}


def make_entity(entity_id: str, name: str, **changes: Any) -> dict[str, Any]:
    properties = {
        "uuid": entity_id, "name": name, "name_key": name.lower(), "type": "Thing", "labels": ["Entity", "Thing"],
        "summary": "", "aliases": [], "alias_keys": [], "alias_text": "", "mentioned_in": [], "attributes": "{}",
        "is_user": False, "created_at": TIME, "updated_at": TIME,
    }  # fmt: skip
    return {"key": entity_id, "labels": ["Entity", "Thing"], "properties": properties | changes}


def make_version(memory_id: str = "m1", **changes: Any) -> dict[str, Any]:
    properties = {
        "memory_id": memory_id, "uuid": f"{memory_id}-v1", "version": 1, "fact": "Mara likes tea", "name": "LIKES",
        "type": "fact", "scope": "profile", "status": "active", "tags": [], "metadata": "{}", "confidence": 0.9,
        "importance": 0.5, "strength": 0.5, "decay_rate": 0.01, "access_count": 0, "created_at": TIME,
        "first_created_at": TIME, "updated_at": TIME, "immutable": False, "single_valued": False, "retired": False,
        "content_hash": "abc", "active_hash": "abc:e1", "source_kind": "user", "entity_ids": ["e1"],
    }  # fmt: skip
    return {"subject_id": "e1", "object_id": "e1", "properties": properties | changes, "vector": [1.0, 0.0]}


def make_export(**sections: Any) -> ExportOutline:
    document = {"user_id": "mara", "embedding": {"model": "m", "dimension": 2}, "entities": [make_entity("e1", "Mara")]}
    return read_outline(OWNER, read_export(document | sections))


def test_fact_properties_are_those_that_the_store_writes() -> None:
    stored = {field.property_name for field in FACT_FIELDS}
    assert set(PROPERTIES["Fact"]) == stored - {"group_id"} | {*FACT_MARKS}


JSON_TYPES = {
    str: "string",
    str | None: "string",
    dict[str, Any]: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    datetime: "object",
    datetime | None: "object",
    tuple[str, ...]: "array",
}


def test_fact_properties_have_the_types_of_the_fields_of_a_fact() -> None:
    schemas = export_json_schema()["$defs"]["FactProperties"]["properties"]
    typed = [field for field in FACT_FIELDS if field.type in JSON_TYPES and field.name != "group_id"]
    found = {field.property_name: schemas[field.property_name]["type"] for field in typed}
    assert found == {field.property_name: JSON_TYPES[field.type] for field in typed}


def test_records_and_links_of_the_queries_are_those_of_the_models() -> None:
    assert PROPERTIES.keys() == {"User", "Entity", "Fact", "Link", *RecordLabel}
    query = load_queries()["export.list_links"].text
    found = re.search(r"\(n:([\w|]+)\)", query), re.search(r"\[r:([\w|]+)\]", query)
    assert [match[1].split("|") for match in found if match] == [list(RecordLabel), list(LinkType)]


def test_an_id_in_use_is_replaced_in_every_reference() -> None:
    export = make_export(
        entities=[make_entity("e1", "Mara")],
        memories=[make_version(supersedes=["m1"], associations=["m1"])],
    )
    existing = ExistingData(entities={}, records={}, memory_ids=set(), current_statements={}, taken_ids={"e1", "m1-v1"})
    ids = plan_import(OWNER, export, existing).ids
    assert set(ids) == {"e1", "m1", "m1-v1"}
    fact = with_ids(export.facts[0], ids)
    assert (fact.memory_id, fact.uuid, fact.entity_ids) == (ids["m1"], ids["m1-v1"], (ids["e1"],))
    assert fact.supersedes == fact.associations == (ids["m1"],)


def test_references_to_what_neither_import_nor_user_has_are_found() -> None:
    export = make_export(
        entities=[make_entity("e1", "Mara", mentioned_in=["m1", "foreign memory"])],
        memories=[
            make_version(entity_ids=["e1", "own entity", "foreign entity"], supersedes=["m1", "own memory"]),
            make_version("m2", episodes=["own message", "foreign message"], associations=["foreign memory"]),
        ],
    )
    existing = ExistingData(
        entities={"bob": ExistingNode("4:1", "own entity")},
        records={("Episodic", "1"): ExistingNode("4:2", "own message")},
        memory_ids={"own memory"},
        current_statements={},
        taken_ids=set(),
    )
    lost = [(path[1], path[3], message.split(",")[0]) for path, message in find_misfits(export, existing)]
    assert lost == [
        (0, "entity_ids", "names foreign entity"),
        (1, "episodes", "names foreign message"),
        (1, "associations", "names foreign memory"),
    ]
    assert "mentioned_in" not in export.entities[0].to_graph({})


LATER = {"$time": "2026-05-02T12:00:00+00:00"}


@pytest.mark.parametrize(
    ("versions", "place"),
    [
        ([{"version": 2}], "version"),
        ([{"expired_at": LATER}, {"version": 3, "created_at": LATER, "uuid": "v3"}], "version"),
        ([{}, {"version": 2, "created_at": LATER, "uuid": "v2"}], "created_at"),
        ([{"expired_at": LATER}, {"version": 2, "uuid": "v2"}], "created_at"),
        ([{"expired_at": TIME, "end_status": "deleted"}], "expired_at"),
        ([{"expired_at": LATER}], "end_status"),
    ],
)
def test_versions_that_do_not_follow_one_another_are_refused(versions: list[dict[str, Any]], place: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        make_export(memories=[make_version(**changes) for changes in versions])
    assert [error["loc"] for error in refusal.value.errors] == [["memories", len(versions) - 1, "properties", place]]


def test_an_entity_and_a_statement_that_the_user_has_are_not_written_again() -> None:
    existing = ExistingData(
        entities={"mara": ExistingNode("4:1", "own")},
        records={},
        memory_ids={"known"},
        current_statements={dedup_key(content_hash("Mara likes tea"), "own", "LIKES", None): "known"},
        taken_ids=set(),
    )
    export = make_export(memories=[make_version()])
    plan = plan_import(OWNER, export, existing)
    assert plan.ids == {"e1": "own", "m1": "known"}
    assert not plan.is_new_node(export.entities[0])
    assert not plan.is_new_memory("m1")


@pytest.mark.parametrize(("ahead", "found"), [(timedelta(minutes=4), 0), (timedelta(minutes=6), 1)])
def test_known_times_may_be_ahead_by_minutes(ahead: timedelta, found: int) -> None:
    export = make_export(memories=[make_version(updated_at={"$time": (NOW + ahead).isoformat()})])
    assert len(list(find_future_times(export, NOW))) == found


def test_a_refusal_names_at_most_twenty_problems() -> None:
    with pytest.raises(InvalidInput) as refusal:
        make_export(memories=[make_version(f"m{index}") | {"subject_id": "nobody"} for index in range(30)])
    assert len(refusal.value.errors) == 20
