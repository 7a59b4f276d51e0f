"""Memories, keys, export, import and forget on the command line."""

from __future__ import annotations

import json
import re

from tests.cli.conftest import Cli


async def test_a_save_that_stored_nothing_fails(cli_with_models: Cli, user: str) -> None:
    for command in (
        ("add", "Mara's card is 4111 1111 1111 1111."),
        ("add", "Mara likes tea.", "--confidence", "0.2"),
        ("import", "-", "--format", "mem0"),
    ):
        refused = json.dumps([{"id": "m1", "memory": "Mara's card is 4111 1111 1111 1111"}])
        done = await cli_with_models(*command, "--user", user, "--json", stdin=refused)
        assert (done.code, bool(json.loads(done.out)), "Nothing was" in done.err) == (1, True, True), command
    assert (await cli_with_models("memories", "--user", user, "--json")).json["items"] == []


async def test_key_is_shown_once_listed_without_secret_and_revoked(cli_with_models: Cli, tenant: str) -> None:
    arguments = ("reader", "--role", "analyst", "--user", "mara", "--tenant", tenant)
    made = (await cli_with_models("keys", "create", *arguments, "--json")).json
    assert made["key"].startswith("gm_")
    listed = await cli_with_models("keys", "list", "--tenant", tenant, "--json")
    assert [(key["id"], key["users"]) for key in listed.json["items"]] == [(made["id"], ["mara"])]
    assert made["key"] not in listed.out
    assert (await cli_with_models("keys", "revoke", made["id"], "--tenant", tenant)).code == 0
    assert (await cli_with_models("keys", "list", "--tenant", tenant, "--json")).json == {"items": []}
    alone = await cli_with_models("keys", "create", *arguments, "--only-key")
    assert re.fullmatch(r"gm_[\w-]+\n", alone.out), "a terminal takes it as $(graphmem keys create …)"


async def test_export_forget_and_import_round_trip(cli_with_models: Cli, user: str) -> None:
    await cli_with_models("add", "--user", user, "Mara plays the cello.")
    exported = await cli_with_models("export", "--user", user, "out.yaml", "--format", "yaml")
    assert exported.code == 0
    assert re.search(r"Exporting .*(\d+)/\1 entries", exported.err)
    assert (cli_with_models.folder / "out.yaml").stat().st_mode & 0o077 == 0
    assert (await cli_with_models("forget", "--user", user, "--yes", "--json")).json["residue"] == 0
    assert (await cli_with_models("import", "--user", user, "out.yaml")).code == 0
    assert "cello" in (await cli_with_models("entity", "--user", user, user)).out


async def test_all_users_of_a_tenant_are_exported_into_a_folder_and_imported_again(
    cli_with_models: Cli, tenant: str
) -> None:
    for user in ("mara", "b/ö"):
        await cli_with_models("add", "--user", user, "--tenant", tenant, f"{user} plays the cello.")
    exported = await cli_with_models("export", "all", "--tenant", tenant, "--json")
    assert exported.json == {"folder": "all", "users": 2}
    assert sorted(path.name for path in (cli_with_models.folder / "all").iterdir()) == ["b%2F%C3%B6.json", "mara.json"]
    await cli_with_models("forget", "--user", "mara", "--tenant", tenant, "--yes")
    imported = await cli_with_models("import", "all", "--tenant", tenant, "--json")
    assert (imported.code, imported.json["users"], imported.json["imported"]["versions"]) == (0, 2, 1)
    assert "cello" in (await cli_with_models("entity", "--user", "mara", "--tenant", tenant, "mara")).out
    (cli_with_models.folder / "all" / "mara.json").write_text("{}", "utf-8")
    failed = await cli_with_models("import", "all", "--tenant", tenant)
    assert failed.code == 1
    assert "mara.json" in failed.out


async def test_mem0_import_reports_rejected_items(cli_with_models: Cli, user: str) -> None:
    statement = {"id": "m1", "memory": "Mara plays the cello.", "created_at": "2025-01-01T00:00:00Z"}
    secret = {"id": "m2", "memory": "Mara's card is 4111 1111 1111 1111"}
    done = await cli_with_models(
        "import", "--user", user, "--format", "mem0", "--json", stdin=json.dumps([statement, secret])
    )
    assert done.code == 0
    assert (done.json["format"], done.json["imported"]) == ("mem0", {"memories": 1})
    assert "not imported: 1: holds a secret: card" in done.err
    assert re.search(r"Importing .*2/2 entries", done.err)
