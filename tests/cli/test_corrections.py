"""Listing, correcting, deleting and restoring memories by the command line, through a running server."""

from __future__ import annotations

import json

import pytest
from rich.cells import cell_len

from graphmem.models.language_model import Receipt
from tests.cli.conftest import Cli
from tests.model_server import ModelServer

pytestmark = pytest.mark.usefixtures("served")

LIVES_IN = ("--predicate", "LIVES_IN", "--single-valued")


async def save(cli: Cli, user: str, text: str, *options: str) -> str:
    """Save a statement and return the beginning of its id."""
    saved = await cli("add", "--user", user, text, *options, "--json")
    return str(saved.json["results"][0]["memory"]["id"])[:8]


async def list_contents(cli: Cli, user: str, *filters: str) -> list[str]:
    listed = await cli("memories", "--user", user, *filters, "--json")
    assert listed.code == 0, listed.err
    return [memory["content"] for memory in listed.json["items"]]


async def test_memories_are_listed_by_attributes_and_shown_at_80_columns(cli_with_models: Cli, user: str) -> None:
    await save(cli_with_models, user, "Mara plays the cello 🎻 in a quartet.", "--tag", "music", "--importance", "0.9")
    tea = await save(cli_with_models, user, "マラは毎朝、緑茶を二杯飲みます。" * 4, "--type", "preference")
    assert await list_contents(cli_with_models, user, "--tag", "music") == ["Mara plays the cello 🎻 in a quartet."]
    assert await list_contents(cli_with_models, user, "--not-tag", "music", "--type", "preference") != []
    assert await list_contents(cli_with_models, user, "--keyword", "cello", "--min-importance", "0.95") == []
    assert (await list_contents(cli_with_models, user, "--sort", "-importance"))[0].startswith("Mara plays")

    first = await cli_with_models("memories", "--user", user, "--limit", "1", COLUMNS="80")
    cursor = first.out.split()[-1]
    rest = await cli_with_models("memories", "--user", user, "--limit", "1", "--cursor", cursor, COLUMNS="80")
    assert (tea in first.out, "cello" in first.out, "cello" in rest.out) == (True, False, True)
    for width in (80, 120):
        for command in (("memories",), ("search", "--explain", "緑茶 tea"), ("history", tea), ("diff",), ("get", tea)):
            name, *arguments = command
            shown = await cli_with_models(name, "--user", user, *arguments, COLUMNS=str(width))
            assert shown.code == 0, shown.err
            assert max(map(cell_len, shown.out.splitlines())) <= width, name
    got = (await cli_with_models("get", tea, "--user", user, "--json")).json
    assert (got["id"][:8], got["type"]) == (tea, "preference")
    assert "Mara" not in (await cli_with_models("entities", "--user", user, "nobody")).out
    assert user in (await cli_with_models("entities", "--user", user)).out


async def test_a_wrong_fact_is_corrected_deleted_and_erased(cli_with_models: Cli, user: str) -> None:
    wrong = await save(cli_with_models, user, "Mara is allergic to peanuts.", "--valid-at", "2024-01-01T00:00:00Z")
    nothing = await cli_with_models("update", wrong, "--user", user, "--json")
    assert (nothing.code, "nothing to change" in json.loads(nothing.err)["detail"]) == (2, True)
    changed = await cli_with_models(
        "update",
        wrong,
        "Mara is allergic to hazelnuts.",
        "--user",
        user,
        "--valid-at",
        "none",
        "--tag",
        "health",
        "--json",
    )
    assert (changed.json["content"], changed.json["valid_at"]) == ("Mara is allergic to hazelnuts.", None)
    stale = await cli_with_models("update", wrong, "--importance", "1", "--if-version", "1", "--user", user, "--json")
    assert (stale.code, json.loads(stale.err)["status"]) == (1, 409)
    shown = await cli_with_models("update", wrong, "--importance", "1", "--user", user)
    assert "This is version 3." in shown.out

    assert (await cli_with_models("delete", wrong, "--user", user, "--json")).json["status"] == "deleted"
    assert await list_contents(cli_with_models, user) == []
    gone = await cli_with_models("revert", wrong, "--user", user)
    assert (gone.code, "graphmem add" in gone.err) == (1, True)
    unconfirmed = await cli_with_models("delete", wrong, "--hard", "--user", user)
    assert (unconfirmed.code, "--yes" in unconfirmed.err) == (2, True)
    erased = await cli_with_models("delete", wrong, "--hard", "--yes", "--user", user, "--json")
    assert erased.json["erased"] == 3
    missing = await cli_with_models("get", wrong, "--user", user, "--json")
    assert (missing.code, json.loads(missing.err)["title"]) == (1, "Not found")


async def test_a_replacement_is_undone_by_either_id(cli_with_models: Cli, user: str) -> None:
    turin = await save(cli_with_models, user, "Mara lives in Turin.", *LIVES_IN, "--valid-at", "2019-05-01T00:00:00Z")
    unreplaced = await cli_with_models("revert", turin, "--user", user)
    assert (unreplaced.code, "graphmem update" in unreplaced.err) == (1, True)
    said = await cli_with_models(
        "add", "--user", user, "Mara lives in London.", *LIVES_IN, "--valid-at", "2024-03-01T00:00:00Z"
    )
    assert f"graphmem revert {turin} --user {user}" in said.out
    restored = await cli_with_models("revert", turin, "--user", user, "--json")
    assert (restored.json["content"], restored.json["invalid_at"]) == ("Mara lives in Turin.", None)
    rome = await save(cli_with_models, user, "Mara lives in Rome.", *LIVES_IN, "--valid-at", "2025-03-01T00:00:00Z")
    again = await cli_with_models("revert", rome, "--user", user)
    assert "Mara lives in Turin." in again.out
    assert await list_contents(cli_with_models, user, "--valid-as-of", "2026-01-01") == ["Mara lives in Turin."]


async def test_a_running_server_ingests_consolidates_and_forgets(
    cli_with_models: Cli, models: ModelServer, tenant: str
) -> None:
    own = ("--tenant", tenant)
    lines = json.dumps({"role": "user", "content": "Hello there."})
    models.completion = json.dumps(
        {"skip": True, "reason": "small talk", "keywords": [], "names": [], "candidates": []}
    )
    ingested = await cli_with_models("ingest", "--user", "mara", "-", *own, "--session", "s", "--json", stdin=lines)
    assert [job["reason"] for job in ingested.json["jobs"]] == ["small talk"]
    assert "Hello there." in (await cli_with_models("messages", "s", "--user", "mara", *own)).out
    run = await cli_with_models("consolidate", "--user", "mara", *own, "--json")
    assert (run.code, run.json["status"]) == (0, "succeeded")
    maintained = (await cli_with_models("maintain", "decay", *own, "--json")).json
    assert maintained == {"tasks": {"decay": {"faded": 0}}, "receipt": Receipt().model_dump(mode="json")}
    declared = json.dumps({"entity_types": [{"name": "Boat", "description": "A boat."}]})
    assert (await cli_with_models("types", "set", "-", *own, stdin=declared)).out == "entity type Boat: A boat.\n"
    assert "no declared types" in (await cli_with_models("types", "clear", *own)).out
    assert (await cli_with_models("forget", "--user", "mara", "--yes", *own, "--json")).json["residue"] == 0


async def test_a_contested_memory_is_listed_resolved_and_reverted(cli_with_models: Cli, user: str) -> None:
    await save(cli_with_models, user, "Mara lives in Lund.", *LIVES_IN, "--object", "Lund")
    other = await save(
        cli_with_models,
        user,
        "Mara lives in Oslo.",
        *LIVES_IN,
        "--object",
        "Oslo",
        "--said-by",
        "web",
        "--speaker",
        "a page",
    )
    assert await list_contents(cli_with_models, user) == ["Mara lives in Lund."]
    assert len(await list_contents(cli_with_models, user, "--include-contested")) == 2
    assert await list_contents(cli_with_models, user, "--include-contested", "--min-trust", "document") == [
        "Mara lives in Lund."
    ]
    assert "web (a page)" in (await cli_with_models("get", other, "--user", user)).out
    assert "contested" in (await cli_with_models("contradictions", "--user", user)).out
    resolved = await cli_with_models("resolve", other, "--user", user, "--holds")
    assert (resolved.code, "Accepted" in resolved.out) == (0, True), resolved.err
    assert await list_contents(cli_with_models, user) == ["Mara lives in Oslo."]
    undone = await cli_with_models("revert", other, "--user", user)
    assert (undone.code, "It is contested again" in undone.out) == (0, True), undone.err
    assert await list_contents(cli_with_models, user) == ["Mara lives in Lund."]
