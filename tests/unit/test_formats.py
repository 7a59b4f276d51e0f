"""What other memories and chat logs look like from outside, read without a database."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from graphmem.domain.formats.chat import read_chat
from graphmem.domain.formats.document import Format, format_of, read_value
from graphmem.domain.formats.graphiti import read_graphiti
from graphmem.domain.formats.mem0 import read_mem0
from graphmem.domain.formats.told import Statements
from graphmem.errors import InvalidInput

HI = {"role": "user", "content": "Hi"}
REMEMBERED = {"id": "m1", "memory": "Mara likes tea", "created_at": "2025-03-01T09:30:00-07:00"}
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

SHAPES: list[tuple[Any, Format]] = [
    ({"format": "graphmem-export"}, Format.GRAPHMEM),
    ({"results": [REMEMBERED]}, Format.MEM0),
    ([REMEMBERED], Format.MEM0),
    ({"nodes": [], "edges": []}, Format.GRAPHITI),
    ([HI], Format.OPENAI),
    ({"messages": [HI]}, Format.OPENAI),
    ([{"messages": [HI]}], Format.OPENAI),
    (HI, Format.OPENAI),
]


@pytest.mark.parametrize(("document", "form"), SHAPES)
def test_a_format_is_told_by_its_shape(document: Any, form: Format) -> None:
    assert format_of(document) is form


@pytest.mark.parametrize("document", [None, 1, "text", [], {}, [1], [{"text": "Hi"}]])
def test_what_has_no_known_shape_is_refused(document: Any) -> None:
    with pytest.raises(InvalidInput, match="no known format"):
        format_of(document)


def test_lines_of_json_are_read_as_a_list_and_one_document_as_itself() -> None:
    lines = "\n".join(json.dumps(each) for each in (HI, {"role": "assistant", "content": "Hello\n{"}))
    assert read_value(lines.encode()) == [HI, {"role": "assistant", "content": "Hello\n{"}]
    for text in (json.dumps([HI, HI]), json.dumps([HI, HI], indent=2), "\ufeff" + json.dumps([HI, HI])):
        assert read_value(text.encode()) == [HI, HI]
    assert read_value(json.dumps({"messages": [HI]}, indent=0).encode()) == {"messages": [HI]}
    assert read_value(b"results:\n- id: m1\n  memory: tea\n") == {"results": [{"id": "m1", "memory": "tea"}]}


def test_a_memory_of_mem0_keeps_its_times_its_categories_and_its_session() -> None:
    told = {**REMEMBERED, "categories": ["food & drink"], "run_id": "r1", "expiration_date": "2027-01-31"}
    [brought] = read_mem0({"results": [told]}, "mara").taken
    assert brought.told.created_at == datetime(2025, 3, 1, 16, 30, tzinfo=UTC)
    assert brought.memory.tags == ["food-drink"]
    assert brought.memory.source
    assert brought.memory.source.session_id == "r1"
    assert brought.memory.expires_at == datetime(2027, 2, 1, tzinfo=UTC)


def test_an_export_of_several_users_gives_only_the_one_it_is_for() -> None:
    several = [{**REMEMBERED, "id": user, "user_id": user} for user in ("mara", "omar")]
    statements = read_mem0(several, "mara")
    assert [each.id for each in statements.taken] == ["mara"]
    assert [(each.loc, each.id) for each in statements.refused] == [([1], "omar")]
    assert [each.id for each in read_mem0(several[1:], "mara").taken] == ["omar"]


def test_a_fact_of_graphiti_keeps_its_ends_both_its_times_and_its_episodes() -> None:
    edge = {**EDGE, "valid_at": "2020-01-01T00:00:00Z", "episodes": ["ep1"], "attributes": {"via": "post"}}
    [brought] = read_graphiti({"nodes": [MARA, LUND], "edges": [edge]}).taken
    memory = brought.memory
    assert memory.subject
    assert memory.object
    assert memory.source
    assert (memory.subject.name, memory.subject.type, memory.object.name) == ("Mara", "Person", "Lund")
    assert (memory.predicate, memory.metadata, memory.source.message_ids) == ("LIVES_IN", {"via": "post"}, ["ep1"])
    assert memory.valid_at == datetime(2020, 1, 1, tzinfo=UTC)
    assert brought.told.created_at == datetime(2024, 1, 5, 10, 0, 0, 123456, tzinfo=UTC)


UNTAKEN: list[tuple[dict[str, Any], str]] = [
    ({"target_node_uuid": "elsewhere"}, "nodes"),
    ({"fact": " "}, "content"),
    ({"fact": "x" * 9000}, "content"),
    ({"valid_at": "2021-01-01T00:00:00Z", "invalid_at": "2020-01-01T00:00:00Z"}, "invalid_at"),
]


@pytest.mark.parametrize(("change", "word"), UNTAKEN)
def test_what_could_not_be_saved_is_refused_with_its_place_and_the_rest_is_taken(
    change: dict[str, Any], word: str
) -> None:
    edges = [{**EDGE, **change}, {**EDGE, "uuid": "e2"}, {**EDGE, "uuid": "e2"}]
    statements = read_graphiti({"nodes": [MARA, LUND], "edges": edges})
    assert [each.id for each in statements.taken] == ["e2"]
    first, twice = statements.refused
    assert (first.loc, first.id) == (["edges", 0], "e1")
    assert word in first.reason
    assert twice.loc == ["edges", 2]


NAIVE = "2025-03-01T09:30:00"


def of_mara(document: Any) -> Statements:
    return read_mem0(document, "mara")


MALFORMED: list[tuple[Any, Any, list[Any]]] = [
    (of_mara, {"results": [{"id": "m1"}]}, ["results", 0, "memory"]),
    (of_mara, [{**REMEMBERED, "created_at": NAIVE}], [0, "created_at"]),
    (of_mara, {"memories": []}, ["results"]),
    (read_graphiti, {"nodes": [], "edges": [{"uuid": "e1"}]}, ["edges", 0, "fact"]),
    (read_graphiti, {"edges": []}, ["nodes"]),
    (read_chat, [HI, "Hello"], [1]),
    (read_chat, [{**HI, "role": "judge"}], [0, "role"]),
    (read_chat, {"messages": [HI, {"role": "user", "content": 7}]}, ["messages", 1, "content", "str"]),
    (read_chat, [{"messages": [HI]}, {"turns": []}], [1, "messages"]),
    (read_chat, [{**HI, "timestamp": NAIVE}], [0, "timestamp"]),
]  # fmt: skip


@pytest.mark.parametrize(("read", "document", "place"), MALFORMED)
def test_a_document_that_has_not_the_form_says_where(read: Any, document: Any, place: list[Any]) -> None:
    with pytest.raises(InvalidInput, match="does not have the form of") as refusal:
        read(document)
    assert refusal.value.errors[0]["loc"] == place


def test_a_chat_log_gives_its_texts_and_says_which_turns_have_none() -> None:
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
    talks = read_chat(log)
    [batch] = talks.batches
    assert [(each.role.value, each.content, each.name) for each in batch.messages] == [
        ("system", "Be brief.", None),
        ("user", "Look:\na cat", "Mara"),
    ]
    assert batch.messages[1].timestamp == datetime(2025, 1, 1, tzinfo=UTC)
    assert [each.loc for each in talks.refused] == [[2]]


def test_each_conversation_is_a_session_and_the_same_log_is_known_again() -> None:
    log = [{"messages": [HI, HI]}, {"messages": [HI], "conversation_id": "monday"}]
    first, again = read_chat(log).batches, read_chat(log).batches
    assert [batch.session_id for batch in first] == [batch.session_id for batch in again]
    assert first[1].session_id == "monday"
    ids = [message.id for batch in first for message in batch.messages]
    assert ids == [message.id for batch in again for message in batch.messages]
    assert len({*ids}) == 3


def test_a_chat_log_without_messages_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no messages"):
        read_chat({"messages": []})
