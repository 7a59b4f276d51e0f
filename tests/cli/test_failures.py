"""How commands end when they cannot do what was asked: one line, the right code, no stack trace."""

from __future__ import annotations

import asyncio
import socket

from tests.cli.conftest import Cli, Done


def assert_one_line(done: Done, code: int, *words: str) -> None:
    assert done.code == code, done.err
    assert done.out == ""
    assert done.err.startswith("graphmem: ")
    assert done.err.count("\n") == 1
    assert [word for word in words if word not in done.err] == []


NOWHERE = {"GRAPHMEM_NEO4J_URI": "bolt://127.0.0.1:1"}

WRONG_USE = [
    ("remember",),
    ("add", "without a user"),
    ("search", "--user", "mara"),
    ("search", "--user", "mara", "--limit", "many", "text"),
    ("export", "--user", "mara", "--format", "xml"),
]

UNUSABLE = {
    ("search", "--user", "mara", "where", "--valid-as-of", "2025-06-01T12:00:00"): "valid_as_of",
    ("search", "--user", "mara", "where", "--limit", "0"): "limit",
    ("add", "--user", "mara", "She sings.", "--type", "gossip"): "type",
    ("add", "--user", "mara", "She sings.", "--confidence", "2"): "confidence",
    ("add", "--user", " ", "She sings."): "user id",
    ("add", "--user", "mara", "--tenant", "No Such", "She sings."): "tenant",
    ("ingest", "--user", "mara", "missing.jsonl"): "missing.jsonl",
    ("forget", "--user", "mara"): "--yes",
    ("maintain", "polish"): "polish",
}


async def test_wrong_use_ends_with_2(bare: Cli) -> None:
    for done in await asyncio.gather(*(bare(*arguments) for arguments in WRONG_USE)):
        assert (done.code, done.out) == (2, "")
        assert "Traceback" not in done.err


async def test_data_that_cannot_be_used_is_refused_before_anything_is_opened(bare: Cli) -> None:
    ended = await asyncio.gather(*(bare(*arguments, **NOWHERE) for arguments in UNUSABLE))
    for done, word in zip(ended, UNUSABLE.values(), strict=True):
        assert_one_line(done, 2, word)


async def test_a_line_that_is_no_message_is_named_before_anything_is_stored(bare: Cli) -> None:
    lines = '{"role": "user", "content": "A first line."}\n{"role": "judge", "content": "Guilty."}'
    assert_one_line(await bare("ingest", "--user", "mara", "-", stdin=lines, **NOWHERE), 2, "Line 2: role")


async def test_a_neo4j_that_is_away_is_one_line_that_says_what_to_do(bare: Cli) -> None:
    done = await bare("entity", "--user", "mara", "Jonas", **NOWHERE)
    assert_one_line(done, 1, "Neo4j cannot be reached", "try again")


async def test_debug_shows_the_stack(bare: Cli) -> None:
    done = await bare("--debug", "entity", "--user", "mara", "Jonas", **NOWHERE)
    assert done.code == 1
    assert "Traceback" in done.err


async def test_a_refused_user_name_names_the_settings(cli: Cli) -> None:
    done = await cli("entity", "--user", "mara", "Jonas", GRAPHMEM_NEO4J_USER="nobody")
    assert_one_line(done, 1, "GRAPHMEM_NEO4J_PASSWORD")


async def test_a_setting_that_cannot_be_read_is_named(bare: Cli) -> None:
    assert_one_line(await bare("db", "status", GRAPHMEM_PORT="high"), 2, "GRAPHMEM_PORT")


async def test_an_address_that_is_none_is_named(bare: Cli) -> None:
    assert_one_line(await bare("db", "status", GRAPHMEM_NEO4J_URI="nowhere"), 1, "GRAPHMEM_NEO4J_URI")


async def test_a_taken_port_is_named_before_anything_is_started(bare: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = await bare("serve", "--port", str(port), **NOWHERE)
    assert_one_line(done, 1, f"127.0.0.1:{port}", "GRAPHMEM_PORT")


async def test_the_embedded_neo4j_is_not_started_beside_a_configured_one(bare: Cli) -> None:
    assert_one_line(await bare("db", "start", **NOWHERE), 1, "GRAPHMEM_NEO4J_URI")


async def test_input_that_is_not_utf_8_is_refused(bare: Cli) -> None:
    done = await bare("ingest", "--user", "mara", "-", stdin="\udcff\udcfe", **NOWHERE)
    assert_one_line(done, 2, "UTF-8")
