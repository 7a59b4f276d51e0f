"""Commands that fail print one line and exit with the right code, without a stack trace."""

from __future__ import annotations

import asyncio
import errno
import socket

import pytest

from graphmem.cli.command import failure_of
from tests.cli.conftest import Cli, CommandResult


def assert_one_line(done: CommandResult, code: int, *words: str) -> None:
    assert done.code == code, done.err
    assert done.out == ""
    assert done.err.startswith("graphmem: ")
    assert done.err.count("\n") == 1
    assert [word for word in words if word not in done.err] == []


UNREACHABLE_NEO4J = {"GRAPHMEM_NEO4J_URI": "bolt://127.0.0.1:1"}

USAGE_ERRORS = [
    ("remember",),
    ("add", "without a user"),
    ("search", "--user", "mara"),
    ("search", "--user", "mara", "--limit", "many", "text"),
    ("export", "--user", "mara", "--format", "xml"),
]

INVALID_ARGUMENTS = {
    ("search", "--user", "mara", "where", "--valid-as-of", "2025-06-01T12:00:00"): "--valid-as-of",
    ("search", "--user", "mara", "where", "--limit", "0"): "limit",
    ("add", "--user", "mara", "She sings.", "--confidence", "2"): "confidence",
    ("add", "--user", " ", "She sings."): "user id",
    ("add", "--user", "mara", "--tenant", "No Such", "She sings."): "tenant",
    ("ingest", "--user", "mara", "missing.jsonl"): "missing.jsonl",
    ("forget", "--user", "mara"): "--yes",
    ("import", "missing.json"): "--user",
    ("export",): "--user",
    ("maintain", "polish"): "polish",
}


async def test_usage_errors_exit_with_2(cli_without_settings: Cli) -> None:
    for done in await asyncio.gather(*(cli_without_settings(*arguments) for arguments in USAGE_ERRORS)):
        assert (done.code, done.out) == (2, "")
        assert "Traceback" not in done.err


async def test_invalid_arguments_are_rejected_before_connecting(cli_without_settings: Cli) -> None:
    ended = await asyncio.gather(
        *(cli_without_settings.here(*arguments, **UNREACHABLE_NEO4J) for arguments in INVALID_ARGUMENTS)
    )
    for done, word in zip(ended, INVALID_ARGUMENTS.values(), strict=True):
        assert_one_line(done, 2, word)


async def test_invalid_line_is_reported_before_anything_is_stored(cli_without_settings: Cli) -> None:
    lines = '{"role": "user", "content": "A first line."}\n{"role": "judge", "content": "Guilty."}'
    assert_one_line(
        await cli_without_settings.here("ingest", "--user", "mara", "-", stdin=lines, **UNREACHABLE_NEO4J),
        2,
        "Line 2: role",
    )


@pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
async def test_unreachable_neo4j_is_one_line_with_advice(cli_without_settings: Cli, scheme: str) -> None:
    done = await cli_without_settings("entity", "--user", "mara", "Jonas", GRAPHMEM_NEO4J_URI=f"{scheme}://127.0.0.1:1")
    assert_one_line(done, 1, "Neo4j cannot be reached", "try again")


async def test_debug_shows_the_stack(cli_without_settings: Cli) -> None:
    done = await cli_without_settings("--debug", "entity", "--user", "mara", "Jonas", **UNREACHABLE_NEO4J)
    assert done.code == 1
    assert "Traceback" in done.err


async def test_rejected_credentials_name_the_settings(cli: Cli) -> None:
    done = await cli("entity", "--user", "mara", "Jonas", GRAPHMEM_NEO4J_USER="nobody")
    assert_one_line(done, 1, "GRAPHMEM_NEO4J_PASSWORD")


async def test_invalid_setting_is_named(cli_without_settings: Cli) -> None:
    assert_one_line(await cli_without_settings("db", "status", GRAPHMEM_PORT="high"), 2, "GRAPHMEM_PORT")


async def test_invalid_neo4j_uri_is_named(cli_without_settings: Cli) -> None:
    assert_one_line(await cli_without_settings("db", "status", GRAPHMEM_NEO4J_URI="nowhere"), 1, "GRAPHMEM_NEO4J_URI")


async def test_port_in_use_is_reported_before_anything_is_started(cli_without_settings: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = await cli_without_settings("serve", "--port", str(port), **UNREACHABLE_NEO4J)
    assert_one_line(done, 1, f"127.0.0.1:{port}", "GRAPHMEM_PORT")


async def test_db_start_fails_when_neo4j_uri_is_configured(cli_without_settings: Cli) -> None:
    assert_one_line(await cli_without_settings("db", "start", **UNREACHABLE_NEO4J), 1, "GRAPHMEM_NEO4J_URI")


async def test_input_that_is_not_utf_8_is_refused(cli_without_settings: Cli) -> None:
    done = await cli_without_settings.here("ingest", "--user", "mara", "-", stdin="\udcff\udcfe", **UNREACHABLE_NEO4J)
    assert_one_line(done, 2, "UTF-8")


async def test_missing_model_package_is_reported_before_neo4j_starts(cli_without_settings: Cli) -> None:
    done = await cli_without_settings("search", "--user", "mara", "tea", GRAPHMEM_LLM_MODEL="groq:llama-3.3-70b")
    assert done.code == 1
    assert "groq" in done.err
    assert not (cli_without_settings.folder / "data" / "neo4j").exists()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "The disk is full: free disk space, or set GRAPHMEM_DATA_DIR",
        ),
        (OSError(errno.ENOSPC, "No space left on device", "/data/x"), "The disk is full (/data/x): "),
        (OSError(errno.EROFS, "Read-only file system", "/data/x"), "A file cannot be used (/data/x): Read-only file"),
    ],
)
def test_a_folder_that_cannot_be_written_to_is_named(error: OSError, said: str) -> None:
    assert said in failure_of(error).detail
