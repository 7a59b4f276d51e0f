"""Reading exports of other memory systems and chat logs, without a database."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from graphmem.runtime.errors import InvalidInput
from graphmem.user_data import foreign, models
from graphmem.user_data.foreign import (
    detect_format,
    parse_chat_log,
    parse_document,
    parse_mem0,
    parse_structured_text,
)
from graphmem.user_data.graphiti import parse_graphiti
from graphmem.user_data.models import ImportFormat, ParsedStatements
from graphmem.user_data.records import parse_records

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
    with pytest.raises(InvalidInput, match="Unknown import format"):
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


def parse_mem0_for_mara(document: Any) -> ParsedStatements:
    return parse_mem0(document, "mara")


MALFORMED: list[tuple[Any, Any, list[Any]]] = [
    (parse_mem0_for_mara, {"results": [{"id": "m1"}]}, ["results", 0, "memory"]),
    (parse_mem0_for_mara, [{**MEM0_MEMORY, "created_at": "yesterday"}], [0, "created_at"]),
    (parse_mem0_for_mara, {"memories": []}, ["results"]),
    (parse_graphiti, {"nodes": [], "edges": [{"uuid": "e1"}]}, ["edges", 0, "fact"]),
    (parse_graphiti, {"edges": []}, ["nodes"]),
    (parse_chat_log, ["Hello"], [0]),
    (parse_chat_log, [{**HI, "role": "judge"}], [0, "role"]),
    (parse_chat_log, {"messages": [{"role": "user", "content": 7}]}, ["messages", 0, "content"]),
    (parse_chat_log, [{"messages": 1}, {"turns": []}], [0, "messages"]),
    (parse_chat_log, [{**HI, "timestamp": "soon"}], [0, "timestamp"]),
    (parse_chat_log, [{**HI, "session_id": "{{session}}"}], [0, "session_id"]),
    (parse_chat_log, [{"messages": [HI], "id": "undefined"}], [0, "id"]),
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
    assert [entry.loc for entry in chat_log.rejected] == [[1, "content", 1], [2]]


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


def test_mem0_keeps_who_a_memory_is_of_and_lists_what_it_cannot_keep() -> None:
    whose = {"agent_id": "coach", "app_id": "web", "actor_id": "kim", "role": "user", "run_id": "r1"}
    record = {**MEM0_MEMORY, **whose, "hash": "d41d8", "score": 0.5, "metadata": {"role": "owner", "shelf": 3}}
    page = {"count": 3, "next": "https://example.com/?page=2", "previous": None, "results": [record], "more": [1]}
    statements = parse_mem0(page, "mara")
    [statement] = statements.accepted
    assert statement.memory.metadata == {**whose, "role": "owner", "shelf": 3}
    assert [entry.loc for entry in statements.rejected] == [["results", 0, "role"], ["next"], ["more"]]
    assert parse_mem0({"results": [record], "next": None}, "mara").rejected[1:] == []


def test_graphiti_keeps_a_node_without_an_edge_by_its_summary() -> None:
    rex = {
        "uuid": "n3",
        "name": "Rex",
        "labels": ["Entity"],
        "summary": "Rex is Mara's dog.",
        "attributes": {"age": 14},
    }
    lone = {"uuid": "n4", "name": "Nobody", "attributes": {"age": 1}}
    graph = {"nodes": [MARA, LUND, rex, lone], "edges": [{**EDGE, "weight": 2}], "communities": [{"uuid": "c1"}]}
    parsed = parse_graphiti(graph)
    of_edge, of_node = parsed.statements.accepted
    assert of_edge.memory.metadata == {"weight": 2}
    assert (of_node.id, of_node.memory.content) == ("n3", "Rex is Mara's dog.")
    assert of_node.memory.subject
    assert of_node.memory.subject.name == "Rex"
    assert [details.attributes for details in parsed.details] == [{"age": 14}]
    assert [entry.loc for entry in parsed.statements.rejected] == [["nodes", 3], ["communities"]]


def test_a_chat_log_keeps_other_fields_of_messages_as_metadata() -> None:
    message = {**HI, "session_id": "monday", "model": "m", "metadata": {"at": 1}, "intent": "greeting", "empty": None}
    parsed = parse_chat_log([message, {**HI, "conversation_id": "tuesday"}])
    assert [batch.session_id for batch in parsed.batches] == ["monday", "tuesday"]
    [kept] = parsed.batches[0].messages
    assert (kept.metadata, kept.intent) == ({"model": "m", "at": 1}, "greeting")
    titled = parse_chat_log([{"messages": [HI], "title": "Hello"}])
    assert [entry.loc for entry in titled.rejected] == [[0, "title"]]


NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
TIMES: list[tuple[Any, datetime]] = [
    (1714564800, NOON),
    (1714564800.5, NOON + timedelta(seconds=0.5)),
    (1714564800000, NOON),
    (1714564800000000, NOON),
    ("1714564800", NOON),
    ("2024-05-01T12:00:00Z", NOON),
    ("2024-05-01T14:00:00+02:00", NOON),
    ("2024-05-01T12:00:00", NOON),
    ("2024-05-01 12:00:00", NOON),
    ("2024-05-01", NOON - timedelta(hours=12)),
    ("20240501", NOON - timedelta(hours=12)),
    (-1, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
]


@pytest.mark.parametrize(("written", "moment"), TIMES)
def test_times_are_read_in_every_format(written: Any, moment: datetime) -> None:
    [batch] = parse_chat_log([{**HI, "timestamp": written}, {**HI, "created_at": written}]).batches
    assert [message.timestamp for message in batch.messages] == [moment, moment]
    [memory] = parse_mem0([{**MEM0_MEMORY, "created_at": written}], "mara").accepted
    assert memory.provenance.created_at == moment
    graph = {"nodes": [MARA, LUND], "edges": [{**EDGE, "valid_at": written}]}
    assert parse_graphiti(graph).statements.accepted[0].memory.valid_at == moment
    record = {"id": "r1", "content": "Mara likes tea", "created_at": written, "valid_from": written}
    [statement] = parse_records([record], "mara").statements.accepted
    assert (statement.provenance.created_at, statement.memory.valid_at) == (moment, moment)


@pytest.mark.parametrize(
    "written", [True, 1e40, "1e400", float("nan"), "soon", "2024", "2024-13-01", [1], {"$date": 1}]
)
def test_what_is_no_time_costs_its_message_only(written: Any) -> None:
    parsed = parse_chat_log([HI, {**HI, "timestamp": written}, HI])
    assert [len(batch.messages) for batch in parsed.batches] == [2]
    assert [entry.loc for entry in parsed.rejected] == [[1]]


def test_a_broken_line_costs_no_other_and_is_named() -> None:
    lines = [json.dumps({**HI, "id": f"m{number}"}).encode() for number in range(1, 1_001)]
    cut = "é".encode()[:1]
    for broken in (
        lines[-1][:17],
        b'{"role": "user", "content": "' + cut + b'"}',
        b'{"role": "user", "content": "\\ud83d"}',
    ):
        for place in (0, 499, 1_000):
            text = b"\r\n".join([*lines[:place], broken, *lines[place:]])
            source_format, document = parse_document(b"\xef\xbb\xbf" + text)
            assert source_format is ImportFormat.CHAT
            parsed = parse_chat_log(document)
            assert sum(len(batch.messages) for batch in parsed.batches) == 1_000
            [entry] = parsed.rejected
            assert entry.loc == [place]
            assert f"line {place + 1} is not JSON" in entry.reason or "which is not text" in entry.reason
            json.dumps(entry.model_dump()).encode()


def test_broken_json_names_its_line() -> None:
    with pytest.raises(InvalidInput, match="line 3") as error:
        parse_document(b'{"messages": [\n{"role": "user"},\n{"role": "user", }]}')
    assert error.value.errors == [{"loc": [], "msg": "is not valid JSON at line 3, column 18"}]


MANY: list[tuple[Any, Any]] = [
    (parse_mem0_for_mara, [MEM0_MEMORY, 1, {"id": "m2"}, {**MEM0_MEMORY, "id": "m3"}]),
    (lambda value: parse_records(value, "mara").statements, [{"content": "a"}, 1, {"id": 2}, {"content": "b"}]),
    (
        lambda value: parse_graphiti({"nodes": [MARA, LUND], "edges": value}).statements,
        [EDGE, None, {"uuid": "e2"}, {**EDGE, "uuid": "e3", "fact": "Mara rows in Lund"}],
    ),
]


@pytest.mark.parametrize(("parse", "entries"), MANY)
def test_an_entry_without_the_form_costs_no_other(parse: Any, entries: list[Any]) -> None:
    statements = parse(entries)
    assert len(statements.accepted) == 2
    assert [entry.loc[-1] for entry in statements.rejected] == [1, 2]


@pytest.mark.parametrize("id", ["", "a\r\nb", "a\nb", "\x07", "\U0001f600", "x" * 256, " a", 7])
def test_ids_are_validated(id: Any) -> None:
    mem0 = parse_mem0([MEM0_MEMORY, {**MEM0_MEMORY, "id": id}], "mara")
    graph = parse_graphiti({"nodes": [MARA, LUND], "edges": [EDGE, {**EDGE, "uuid": id}]}).statements
    records = parse_records([{"content": "a"}, {"content": "b", "id": id}], "mara").statements
    for parsed in (mem0, graph, records):
        assert [entry.loc[-1] for entry in parsed.rejected] == [1]
        json.dumps([entry.model_dump() for entry in parsed.rejected]).encode()


@pytest.mark.parametrize("id", ["a\r\nb", "\x07", "x" * 256])
def test_ids_of_messages_and_sessions_are_validated(id: str) -> None:
    for name in ("id", "session_id", "conversation_id"):
        assert [entry.loc for entry in parse_chat_log([HI, {**HI, name: id}]).rejected] == [[1]]
    assert [entry.loc for entry in parse_chat_log([{"messages": [HI]}, {"id": id, "messages": [HI]}]).rejected] == [[1]]
    episode = {"uuid": "ep", "content": "Hello"}
    graph = {"nodes": [], "edges": [], "episodes": [episode, {**episode, "uuid": id}]}
    assert [entry.loc for entry in parse_graphiti(graph).statements.rejected] == [["episodes", 1]]


def test_a_document_of_another_form_is_refused_before_all_of_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "MAX_MALFORMED_ENTRIES", 3)
    for parse, document in (
        (parse_mem0_for_mara, [MEM0_MEMORY, *[{"x": 1}] * 9]),
        (parse_graphiti, {"nodes": [MARA, *[{"x": 1}] * 9], "edges": []}),
        (parse_chat_log, [HI, *[{"role": []}] * 9]),
    ):
        with pytest.raises(InvalidInput, match="More than 3 entries") as raised:
            parse(document)
        assert 3 <= len(raised.value.errors) <= 20
    assert len(parse_mem0_for_mara([MEM0_MEMORY, *[{"x": 1}] * 3]).rejected) == 3


def test_ids_in_chat_logs_may_be_numbers() -> None:
    chat = parse_chat_log([{"id": 4, "messages": [{**HI, "id": 7}]}, {"messages": [{**HI, "session_id": 5}]}])
    assert [batch.session_id for batch in chat.batches] == ["4", "5"]
    assert (chat.batches[0].messages[0].id, chat.rejected) == ("7", [])


def test_yaml_is_for_what_people_write(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "- role: user\n  content: Hi\n" * 3
    assert len(parse_structured_text(text.encode())) == 3
    monkeypatch.setattr(foreign, "MAX_YAML_EVENTS", 10)
    with pytest.raises(InvalidInput, match="use JSON"):
        parse_structured_text(text.encode())
