"""Reading exports of other memory systems and chat logs, without a database."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from graphmem.runtime.errors import InvalidInput
from graphmem.user_data.foreign_formats import parse_chat_log, parse_graphiti, parse_mem0
from graphmem.user_data.formats import detect_format, parse_structured_text
from graphmem.user_data.models import ImportFormat, ParsedStatements

HI = {"role": "user", "content": "Hi"}
MEM0_MEMORY = {"id": "m1", "memory": "Mara likes tea", "created_at": "2025-03-01T09:30:00-07:00"}
MARA = {"uuid": "n1", "name": "Mara", "labels": ["Entity", "Person"]}
LUND = {"uuid": "n2", "name": "Lund", "labels": ["Entity"]}
EDGE = {
    "uuid": "e1",
    "fact": "Mara lives in Lund",
    "name": "lives in",
    "source_node_uuid": "n1",
    "target_node_uuid": "n2",
    "created_at": "2024-01-05T10:00:00.123456789Z",
}

STRUCTURES: list[tuple[Any, ImportFormat]] = [
    ({"format": "graphmem-export"}, ImportFormat.GRAPHMEM),
    ({"results": [MEM0_MEMORY]}, ImportFormat.MEM0),
    ([MEM0_MEMORY], ImportFormat.MEM0),
    ({"nodes": [], "edges": []}, ImportFormat.GRAPHITI),
    ([HI], ImportFormat.CHAT),
    ({"messages": [HI]}, ImportFormat.CHAT),
    ([{"messages": [HI]}], ImportFormat.CHAT),
    (HI, ImportFormat.CHAT),
]


@pytest.mark.parametrize(("document", "expected_format"), STRUCTURES)
def test_format_is_detected_by_structure(document: Any, expected_format: ImportFormat) -> None:
    assert detect_format(document) is expected_format


@pytest.mark.parametrize("document", [None, 1, "text", [], {}, [1], [{"text": "Hi"}]])
def test_unknown_structure_is_rejected(document: Any) -> None:
    with pytest.raises(InvalidInput, match="no known format"):
        detect_format(document)


def test_jsonl_parses_to_a_list_and_json_to_its_value() -> None:
    lines = "\n".join(json.dumps(message) for message in (HI, {"role": "assistant", "content": "Hello\n{"}))
    assert parse_structured_text(lines.encode()) == [HI, {"role": "assistant", "content": "Hello\n{"}]
    for text in (json.dumps([HI, HI]), json.dumps([HI, HI], indent=2), "\ufeff" + json.dumps([HI, HI])):
        assert parse_structured_text(text.encode()) == [HI, HI]
    assert parse_structured_text(json.dumps({"messages": [HI]}, indent=0).encode()) == {"messages": [HI]}
    assert parse_structured_text(b"results:\n- id: m1\n  memory: tea\n") == {"results": [{"id": "m1", "memory": "tea"}]}


def test_mem0_memory_keeps_times_categories_and_session() -> None:
    memory_record = {**MEM0_MEMORY, "categories": ["food & drink"], "run_id": "r1", "expiration_date": "2027-01-31"}
    [statement] = parse_mem0({"results": [memory_record]}, "mara").accepted
    assert statement.provenance.created_at == datetime(2025, 3, 1, 16, 30, tzinfo=UTC)
    assert statement.memory.tags == ["food-drink"]
    assert statement.memory.source
    assert statement.memory.source.session_id == "r1"
    assert statement.memory.expires_at == datetime(2027, 2, 1, tzinfo=UTC)


def test_mem0_export_of_several_users_yields_only_the_requested_one() -> None:
    several = [{**MEM0_MEMORY, "id": user, "user_id": user} for user in ("mara", "omar")]
    statements = parse_mem0(several, "mara")
    assert [statement.id for statement in statements.accepted] == ["mara"]
    assert [(entry.loc, entry.id) for entry in statements.rejected] == [([1], "omar")]
    assert [statement.id for statement in parse_mem0(several[1:], "mara").accepted] == ["omar"]


def test_graphiti_fact_keeps_entities_both_times_and_episodes() -> None:
    edge = {**EDGE, "valid_at": "2020-01-01T00:00:00Z", "episodes": ["ep1"], "attributes": {"via": "post"}}
    [statement] = parse_graphiti({"nodes": [MARA, LUND], "edges": [edge]}).statements.accepted
    memory = statement.memory
    assert memory.subject
    assert memory.object
    assert memory.source
    assert (memory.subject.name, memory.subject.type, memory.object.name) == ("Mara", "Person", "Lund")
    assert (memory.predicate, memory.metadata, memory.source.message_ids) == ("LIVES_IN", {"via": "post"}, ["ep1"])
    assert memory.valid_at == datetime(2020, 1, 1, tzinfo=UTC)
    assert statement.provenance.created_at == datetime(2024, 1, 5, 10, 0, 0, 123456, tzinfo=UTC)


INVALID_EDGES: list[tuple[dict[str, Any], str]] = [
    ({"target_node_uuid": "elsewhere"}, "a node at one of its ends"),
    ({"fact": " "}, "content"),
    ({"fact": "x" * 9000}, "content"),
    ({"valid_at": "2021-01-01T00:00:00Z", "invalid_at": "2020-01-01T00:00:00Z"}, "invalid_at"),
]


@pytest.mark.parametrize(("change", "word"), INVALID_EDGES)
def test_invalid_entries_are_rejected_with_location_and_the_rest_accepted(change: dict[str, Any], word: str) -> None:
    edges = [{**EDGE, **change}, {**EDGE, "uuid": "e2"}, {**EDGE, "uuid": "e2"}]
    statements = parse_graphiti({"nodes": [MARA, LUND], "edges": edges}).statements
    assert [statement.id for statement in statements.accepted] == ["e2"]
    first, duplicate = statements.rejected
    assert (first.loc, first.id) == (["edges", 0], "e1")
    assert word in first.reason
    assert duplicate.loc == ["edges", 2]


NAIVE = "2025-03-01T09:30:00"


def parse_mem0_for_mara(document: Any) -> ParsedStatements:
    return parse_mem0(document, "mara")


MALFORMED: list[tuple[Any, Any, list[Any]]] = [
    (parse_mem0_for_mara, {"results": [{"id": "m1"}]}, ["results", 0, "memory"]),
    (parse_mem0_for_mara, [{**MEM0_MEMORY, "created_at": NAIVE}], [0, "created_at"]),
    (parse_mem0_for_mara, {"memories": []}, ["results"]),
    (parse_graphiti, {"nodes": [], "edges": [{"uuid": "e1"}]}, ["edges", 0, "fact"]),
    (parse_graphiti, {"edges": []}, ["nodes"]),
    (parse_chat_log, [HI, "Hello"], [1]),
    (parse_chat_log, [{**HI, "role": "judge"}], [0, "role"]),
    (parse_chat_log, {"messages": [HI, {"role": "user", "content": 7}]}, ["messages", 1, "content", "str"]),
    (parse_chat_log, [{"messages": [HI]}, {"turns": []}], [1, "messages"]),
    (parse_chat_log, [{**HI, "timestamp": NAIVE}], [0, "timestamp"]),
]  # fmt: skip


@pytest.mark.parametrize(("parse", "document", "place"), MALFORMED)
def test_malformed_document_reports_the_location(parse: Any, document: Any, place: list[Any]) -> None:
    with pytest.raises(InvalidInput, match="does not have the form of") as error:
        parse(document)
    assert error.value.errors[0]["loc"] == place


def test_chat_log_yields_texts_and_reports_turns_without_text() -> None:
    parts = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {}},
        {"type": "text", "text": {"value": "a cat"}},
    ]
    log = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": parts, "name": "Mara", "created_at": 1735689600},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "call_0"}]},
    ]
    chat_log = parse_chat_log(log)
    [batch] = chat_log.batches
    assert [(message.role.value, message.content, message.name) for message in batch.messages] == [
        ("system", "Be brief.", None),
        ("user", "Look:\na cat", "Mara"),
    ]
    assert batch.messages[1].timestamp == datetime(2025, 1, 1, tzinfo=UTC)
    assert [entry.loc for entry in chat_log.rejected] == [[2]]


def test_each_conversation_becomes_a_session_with_stable_ids() -> None:
    log = [{"messages": [HI, HI]}, {"messages": [HI], "conversation_id": "monday"}]
    first, again = parse_chat_log(log).batches, parse_chat_log(log).batches
    assert [batch.session_id for batch in first] == [batch.session_id for batch in again]
    assert first[1].session_id == "monday"
    ids = [message.id for batch in first for message in batch.messages]
    assert ids == [message.id for batch in again for message in batch.messages]
    assert len({*ids}) == 3


def test_chat_log_without_messages_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="no messages"):
        parse_chat_log({"messages": []})


def test_long_conversation_is_split_into_batches_that_one_request_may_hold() -> None:
    log = parse_chat_log([{"role": "user", "content": f"{number} {'x' * 90_000}"} for number in range(25)])
    assert [len(batch.messages) for batch in log.batches] == [11, 11, 3]
    assert len({batch.session_id for batch in log.batches}) == 1
