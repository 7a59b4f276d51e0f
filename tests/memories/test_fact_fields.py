"""The fields of a fact: the fragments and the memory callers see agree with them."""

from __future__ import annotations

import re
from dataclasses import fields
from datetime import UTC, datetime, timedelta

from graphmem.memories.entity import EntityRef
from graphmem.memories.fact import (
    NEXT_VECTOR_PROPERTY,
    SHADOW_PROPERTIES,
    TIME_FIELDS,
    VECTOR_PROPERTY,
    Fact,
    fact_from_row,
    fact_to_properties,
    memory_from_fact,
)
from graphmem.memories.memory import MemoryStatus, MemoryType, Scope
from graphmem.neo4j.queries import parse_fragments
from graphmem.runtime.files import cypher_root
from graphmem.runtime.times import EPOCH

FRAGMENTS = parse_fragments((cypher_root() / "fragments.cypher").read_text("utf-8"))
NOW = datetime(2026, 6, 1, 12, 0, 0, 123456, tzinfo=UTC)


def make_fact() -> Fact:
    """Return a fact whose every field differs from its default."""
    return Fact(
        uuid="u", memory_id="m", version=3, group_id="t:mara", subject_id="s", object_id="o", predicate="LIKES",
        content="Mara likes tea", content_hash="h", type=MemoryType.PLAN, scope=Scope.DOMAIN, domain="kitchen",
        created_at=NOW, first_created_at=NOW - timedelta(days=9), updated_at=NOW + timedelta(days=1), decay_rate=0.03,
        entity_ids=("s", "o"), tags=("a", "b"), confidence=0.7, importance=0.6, strength=0.4, access_count=5,
        last_accessed_at=NOW + timedelta(days=2), valid_at=NOW - timedelta(days=3), invalid_at=NOW + timedelta(days=3),
        claimed_invalid_at=NOW + timedelta(days=4), expired_at=NOW + timedelta(days=5),
        expires_at=NOW + timedelta(days=6), status=MemoryStatus.SUPERSEDED, retired=True, superseded_by="n",
        supersedes=("p",), associations=("q",), contests=("o",), derived_from=("w",), source_kind="document",
        trusted_as="user", source_quote="I like tea", speaker="mara", session_id="z", message_ids=("1", "2"),
        episodes=("e",), immutable=True, single_valued=True, metadata={"k": ["v", 1]}, active_hash="h:s",
        search_text="likes", end_status=MemoryStatus.DELETED, ended_reason="deleted", ended_by="r",
        ended_actor="key:2", actor="key:1", subtype="goal", content_data={"drink": "tea"},
    )  # fmt: skip


def test_a_fact_survives_its_way_through_properties_and_a_row() -> None:
    fact = make_fact()
    defaults = {attribute.name: attribute.default for attribute in fields(Fact)}
    assert [name for name, default in defaults.items() if getattr(fact, name) == default] == []
    ends = {"subject_id": fact.subject_id, "object_id": fact.object_id}
    properties = fact_to_properties(fact)
    assert fact_from_row({"fact": properties, **ends}) == fact
    times = [(getattr(fact, name) - EPOCH) // timedelta(microseconds=1) for name in TIME_FIELDS]
    without_times = {name: value for name, value in properties.items() if name not in TIME_FIELDS}
    assert fact_from_row({"fact": without_times, "times": times, **ends}) == fact


def test_times_are_returned_in_the_order_of_the_table() -> None:
    assert tuple(re.findall(r"r\.(\w+)", FRAGMENTS["fact_times"])) == TIME_FIELDS


def test_a_version_is_returned_without_times_shadow_bounds_and_vector() -> None:
    left_out = re.findall(r"(\w+): null", FRAGMENTS["fact_version"])
    assert left_out == [VECTOR_PROPERTY, NEXT_VECTOR_PROPERTY, "revision", *SHADOW_PROPERTIES, *TIME_FIELDS]


def test_callers_get_the_same_memory_from_the_columns_as_from_the_whole_version() -> None:
    columns = re.findall(r"[{,]\s*\.(\w+)", FRAGMENTS["memory_columns"])
    fact = make_fact()
    properties = {
        name: value
        for name, value in fact_to_properties(fact).items()
        if name in [*columns, *TIME_FIELDS] and name not in SHADOW_PROPERTIES
    }
    ends = {"subject_id": fact.subject_id, "object_id": fact.object_id}
    refs = {key: EntityRef(id=key, name=key, type="Thing") for key in fact.entity_ids}
    found = fact_from_row({"fact": properties, **ends})
    assert memory_from_fact(found, refs, NOW) == memory_from_fact(fact, refs, NOW)
