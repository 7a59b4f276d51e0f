"""Spaces on the command line."""

from __future__ import annotations

from typing import Any

from tests.cli.conftest import Cli


async def test_a_space_is_made_written_read_and_erased(cli_with_models: Cli, user: str) -> None:
    async def run(*arguments: str) -> Any:
        result = await cli_with_models(*arguments, "--json")
        assert result.code == 0, result.err
        return result.json

    space, reader = f"space-{user}", f"{user}-reader"
    made = await run("spaces", "put", space, "--title", "Team Atlas", "--owner", user, "--reader", reader)
    assert made["members"] == [{"user": user, "role": "owner"}, {"user": reader, "role": "reader"}]
    saved = await run("add", "--user", user, "--space", space, "The launch of Atlas is on Friday")
    assert saved["results"][0]["memory"]["space"] == space
    found = await run("search", "--user", reader, "launch")
    assert [hit["memory"]["space"] for hit in found["results"]] == [space]
    for shown in (("search", "--user", reader, "launch"), ("memories", "--user", reader)):
        assert space in (await cli_with_models(*shown)).out
    assert (await run("search", "--user", reader, "--spaces", "none", "launch"))["results"] == []
    refused = await cli_with_models("add", "--user", reader, "--space", space, "No")
    assert (refused.code, "it needs the role writer" in refused.err) == (1, True)
    assert "Team Atlas" in (await cli_with_models("spaces", "list")).out
    granted = await run("spaces", "grant", space, reader, "--role", "writer")
    assert {"user": reader, "role": "writer"} in granted["members"]
    await run("spaces", "revoke", space, reader)
    assert (await run("search", "--user", reader, "launch"))["results"] == []
    assert user in (await cli_with_models("spaces", "show", space)).out
    assert (await run("spaces", "delete", space, "--yes"))["residue"] == 0
