"""Errors as JSON."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.cli.conftest import Cli

FAILURES: dict[tuple[str, ...], tuple[int, str, str]] = {
    ("search", "--user", "mara", "tea", "--limit", "0"): (2, "Invalid input", "limit"),
    ("search", "--user", "mara", "tea", "--type", "no such!"): (2, "Invalid input", "type: "),
    ("add", "--user", "mara", "She sings.", "--object", " "): (2, "Invalid input", "object: "),
    ("search", "--user", "mara"): (2, "Invalid input", "'text'"),
    ("entity", "--user", "mara", "Jonas"): (1, "Unavailable", "Neo4j cannot be reached"),
    ("forget", "--user", "mara"): (2, "Invalid input", "--yes"),
}


@pytest.mark.parametrize("place", [0, -1])
async def test_errors_are_problem_documents_with_json(cli_without_settings: Cli, place: int) -> None:
    async def run(arguments: tuple[str, ...]) -> None:
        code, title, words = FAILURES[arguments]
        given = ("--json", *arguments) if place == 0 else (*arguments, "--json")
        done = await cli_without_settings(*given, GRAPHMEM_NEO4J_URI="bolt://127.0.0.1:1")
        problem = json.loads(done.err)
        assert (done.code, done.out, problem["title"]) == (code, "", title)
        assert words in problem["detail"]
        assert problem["status"] in (422, 503)

    await asyncio.gather(*map(run, FAILURES))
