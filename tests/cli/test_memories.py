"""Saving and reading on the command line."""

from __future__ import annotations

import json
import re

from tests.cli.conftest import Cli


def _moves(user: str, city: str, since: str, *flags: str) -> tuple[str, ...]:
    place = ("--predicate", "LIVES_IN", "--object", city, "--single-valued", "--valid-at", since)
    return (*flags, "add", "--user", user, f"Mara lives in {city}.", *place)


async def test_what_was_added_is_found_superseded_and_answered_as_of_a_past_date(quick: Cli, user: str) -> None:
    first = (await quick(*_moves(user, "Hamburg", "2021-01-01T00:00:00Z"), "--json")).answer["results"][0]
    assert (first["action"], first["memory"]["source"]["kind"]) == ("insert", "cli")
    shown = await quick(*_moves(user, "Copenhagen", "2025-09-01T00:00:00Z"))
    assert shown.code == 0
    assert "supersede" in shown.out

    question = ("search", "--user", user, "Where does Mara live?")
    now = (await quick("--json", *question)).answer["results"]
    assert [hit["memory"]["content"] for hit in now] == ["Mara lives in Copenhagen."]
    assert "explain" not in now[0]
    then = await quick(*question, "--valid-as-of", "2025-06-01T00:00:00Z")
    assert "Hamburg" in then.out
    assert "Copenhagen" not in then.out

    rows = (await quick("history", "--user", user, first["memory"]["id"], "--json")).answer["items"]
    assert [(row["version"], row["ended_reason"]) for row in rows] == [(1, "superseded"), (2, "superseded")]
    assert "Copenhagen" in (await quick("entity", "--user", user, "What about Copenhagen?")).out


async def test_a_memory_that_is_not_this_users_is_a_failure(quick: Cli, user: str) -> None:
    done = await quick("history", "--user", user, "no-such-id")
    assert (done.code, done.out, done.err) == (1, "", "graphmem: There is no such memory.\n")


async def test_a_key_is_shown_once_listed_without_its_secret_and_revoked(quick: Cli, tenant: str) -> None:
    wanted = ("reader", "--role", "analyst", "--user", "mara", "--tenant", tenant)
    made = (await quick("keys", "create", *wanted, "--json")).answer
    assert made["key"].startswith("gm_")
    listed = await quick("keys", "list", "--tenant", tenant, "--json")
    assert [(key["id"], key["users"]) for key in listed.answer["items"]] == [(made["id"], ["mara"])]
    assert made["key"] not in listed.out
    assert (await quick("keys", "revoke", made["id"], "--tenant", tenant)).code == 0
    assert (await quick("keys", "list", "--tenant", tenant, "--json")).answer == {"items": []}


async def test_a_user_goes_out_as_a_file_comes_in_again_and_is_forgotten(quick: Cli, user: str) -> None:
    await quick("add", "--user", user, "Mara plays the cello.")
    exported = await quick("export", "--user", user, "out.yaml", "--format", "yaml")
    assert exported.code == 0
    assert re.search(r"Exporting .*(\d+)/\1 entries", exported.err)
    assert (quick.folder / "out.yaml").stat().st_mode & 0o077 == 0
    assert (await quick("forget", "--user", user, "--yes", "--json")).answer["residue"] == 0
    assert (await quick("import", "--user", user, "out.yaml")).code == 0
    assert "cello" in (await quick("entity", "--user", user, user)).out


async def test_what_another_memory_kept_is_imported_and_what_is_not_taken_is_told(quick: Cli, user: str) -> None:
    kept = {"id": "m1", "memory": "Mara plays the cello.", "created_at": "2025-01-01T00:00:00Z"}
    secret = {"id": "m2", "memory": "Mara's card is 4111 1111 1111 1111"}
    done = await quick("import", "--user", user, "--format", "mem0", "--json", stdin=json.dumps([kept, secret]))
    assert done.code == 0
    assert (done.answer["format"], done.answer["imported"]) == ("mem0", {"memories": 1})
    assert "not taken: 1: holds a secret: card" in done.err
    assert re.search(r"Importing .*2/2 entries", done.err)
