"""What commands work on: a server that is named, the one on the data folder, or the data itself."""

from __future__ import annotations

import json
import re
import socket
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest
import typer

from graphmem.cli.command import Flags, Output
from graphmem.cli.startup import RECORD_FILE, confirm_erasure, find_local_server, find_target, record_server
from graphmem.client import AsyncClient
from graphmem.runtime.errors import ConfigurationError, InvalidInput
from graphmem.runtime.settings import Settings
from tests.cli.conftest import Cli, serving

NOBODY = "http://127.0.0.1:9"

READS_AND_WRITES = [
    ("search", "tea", "--user", "mara"),
    ("add", "Mara likes tea.", "--user", "mara"),
    ("memories", "--user", "mara"),
    ("forget", "--user", "mara", "--yes"),
    ("users",),
    ("keys", "list"),
    ("ingest", "--user", "mara", "-"),
    ("consolidate", "--user", "mara"),
    ("reembed",),
    ("export", "--user", "mara"),
    ("import", "--user", "mara", "-"),
    ("placement", "list"),
    ("jobs", "list"),
]
LOCAL_ONLY = [("backup", "file"), ("restore", "file"), ("export", "folder"), ("import", ".")]


async def test_a_named_server_is_called_or_the_command_fails(cli: Cli) -> None:
    """No command works on local data instead; the database of `cli` would answer."""
    line = '{"role": "user", "content": "I like tea."}'
    commands = [*READS_AND_WRITES, *LOCAL_ONLY]
    named = replace(cli, environment={**cli.environment, "GRAPHMEM_URL": NOBODY, "GRAPHMEM_API_KEY": "gm_key"})
    for command in commands:
        done = await named.here(*command, stdin=line)
        assert (done.code, done.out) == (1, ""), command
        assert NOBODY in done.err, command


async def test_a_key_is_used_at_the_server_on_the_data_folder(cli_with_models: Cli, served: tuple[str, str]) -> None:
    url, _ = served
    bound = (await cli_with_models("keys", "create", "bound", "--user", "mara", "--json")).json["key"]
    for environment in ({}, {"GRAPHMEM_URL": url}):
        given = replace(cli_with_models, environment={**cli_with_models.environment, **environment})
        wrong = await given("search", "tea", "--user", "mara", GRAPHMEM_API_KEY="gm_wrong")
        assert (wrong.code, "unknown or revoked" in wrong.err) == (1, True)
        listed = await given("keys", "list", GRAPHMEM_API_KEY=bound)
        assert (listed.code, "use a key of role admin" in listed.err) == (1, True)
        assert ("unset that" in listed.err) is (not environment)
        assert (await given("memories", "--user", "mara", "--json", GRAPHMEM_API_KEY=bound)).code == 0
        other = await given("memories", "--user", "else", GRAPHMEM_API_KEY=bound)
        assert (other.code, "no access to the user 'else': it is bound to 'mara'." in other.err) == (1, True)
        assert (await given("export", "--user", "else", GRAPHMEM_API_KEY=bound)).code == 1
    for name in (f"{url}/", url.replace("127.0.0.1", "localhost")):
        assert (await cli_with_models("users", GRAPHMEM_URL=name)).code == 0, name
    bare = await cli_with_models("users", GRAPHMEM_URL=url.removeprefix("http://"), GRAPHMEM_API_KEY=bound)
    assert (bare.code, f"as in {url}" in bare.err) == (1, True)
    versioned = await cli_with_models("users", GRAPHMEM_URL=f"{url}/v1", GRAPHMEM_API_KEY=bound)
    assert (versioned.code, "has no path such as /v1" in versioned.err) == (1, True)
    without = await cli_with_models("users", GRAPHMEM_URL=NOBODY)
    assert (without.code, "GRAPHMEM_API_KEY" in without.err) == (1, True)
    assert (await cli_with_models("users", "--no-server", GRAPHMEM_URL=NOBODY, GRAPHMEM_API_KEY="x")).code == 0


async def test_forget_says_where_and_knows_no_stranger(
    cli_with_models: Cli, served: tuple[str, str], user: str
) -> None:
    url, _ = served
    admin = (await cli_with_models("keys", "create", "admin", "--role", "admin", "--json")).json["key"]
    here = f"of tenant 'default' at the server at {url}"
    await cli_with_models("add", "Mara likes tea.", "--user", user)
    unknown = await cli_with_models("forget", "--user", f"{user}x", "--yes", GRAPHMEM_API_KEY=admin)
    assert (unknown.code, f"There is no user '{user}x' {here}" in unknown.err) == (1, True)
    done = await cli_with_models("forget", "--user", user, "--yes", GRAPHMEM_URL=url, GRAPHMEM_API_KEY=admin)
    assert (done.code, f"The user '{user}' {here} is erased." in done.out) == (0, True)
    again = await cli_with_models("forget", "--user", user, "--yes", "--json")
    assert (again.code, json.loads(again.err)["title"]) == (1, "Not found")


async def test_who_owns_a_space_is_asked_before_it_is_erased(
    cli_with_models: Cli, served: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server names the tenant to admins alone; the question names the server, and the erasure goes on."""
    url, _ = served
    key = (await cli_with_models("keys", "create", "owner", "--user", "mara", "--json")).json["key"]
    asked: list[str] = []
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(typer, "confirm", lambda text, **_: asked.append(text))
    output = Output(Flags())
    output.target = find_target(Flags(), Settings(url=url, api_key=key))
    async with AsyncClient(key, url) as client:
        await confirm_erasure(client, output, "space 'trip'")
    assert asked == [f"Erase all data of the space 'trip' at the server at {url}?"]


def test_what_a_command_works_on_without_a_server(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    local = find_target(Flags(), settings, "acme")
    assert (local.server, local.tenant, local.is_remote) == (None, "acme", False)
    with_key = settings.model_copy(update={"api_key": Settings(api_key="gm_key").api_key})
    with pytest.raises(ConfigurationError, match="no server runs on the data folder"):
        find_target(Flags(), with_key)
    named = with_key.model_copy(update={"url": "http://memory.example/"})
    assert find_target(Flags(), named).server == "http://memory.example"
    assert find_target(Flags(no_server=True), named).server is None
    with pytest.raises(InvalidInput, match="tenant"):
        find_target(Flags(), named, "acme")


@pytest.mark.parametrize("options", [(), pytest.param(("--host", "0.0.0.0"), marks=pytest.mark.long)])
async def test_a_second_server_on_a_folder_names_the_first_and_ends(
    cli_with_models: Cli, served: tuple[str, str], options: tuple[str, ...]
) -> None:
    url, _ = served
    record = (cli_with_models.folder / "data" / RECORD_FILE).read_text()
    second = await cli_with_models("serve", "--port", "0", *options)
    assert (second.code, second.out) == (1, "")
    assert f"is served already, at {url}" in second.err
    assert (cli_with_models.folder / "data" / RECORD_FILE).read_text() == record
    opened = await cli_with_models("open", "--no-open", "--json")
    assert (opened.code, opened.json) == (0, {"url": f"{url}/ui"})


def test_of_two_servers_that_start_together_one_has_the_folder(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, neo4j_uri="bolt://127.0.0.1:1")
    with record_server(settings, "http://127.0.0.1:1", "secret"):
        assert find_local_server(settings) is None  # nothing answers there
        with pytest.raises(ConfigurationError, match=r"served already, at http://127\.0\.0\.1:1"):
            record_server(settings, "http://127.0.0.1:2", "other").__enter__()
        assert json.loads((tmp_path / RECORD_FILE).read_text())["url"] == "http://127.0.0.1:1"
    assert not (tmp_path / RECORD_FILE).exists()
    for left in ("{", json.dumps({**_RECORD, "pid": 2**22 - 1})):
        (tmp_path / RECORD_FILE).write_text(left, "utf-8")
        with record_server(settings, "http://127.0.0.1:3", "secret"):
            assert json.loads((tmp_path / RECORD_FILE).read_text())["url"] == "http://127.0.0.1:3"
        assert [*tmp_path.iterdir()] == []


def test_a_server_that_is_slow_to_answer_is_not_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphmem.cli.startup.HEALTH_SECONDS", 0.01)
    settings = Settings(data_dir=tmp_path, neo4j_uri="bolt://127.0.0.1:1")
    with socket.create_server(("127.0.0.1", 0)) as busy:
        url = f"http://127.0.0.1:{busy.getsockname()[1]}"
        with record_server(settings, url, "secret"):
            found = find_local_server(settings)
            assert found is not None
            assert found.url == url


def test_of_servers_that_find_the_record_of_a_killed_one_one_has_the_folder(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, neo4j_uri="bolt://127.0.0.1:1")
    begin, ended = threading.Barrier(4), threading.Barrier(4)
    refused = []

    def serve(number: int) -> None:
        begin.wait()
        try:
            with record_server(settings, f"http://127.0.0.1:{number}", "secret"):
                ended.wait()
        except ConfigurationError:
            refused.append(number)
            ended.wait()

    for _ in range(20):
        (tmp_path / RECORD_FILE).write_text(json.dumps({**_RECORD, "pid": 2**22 - 1}))
        servers = [threading.Thread(target=serve, args=(number,)) for number in range(1, 5)]
        for server in servers:
            server.start()
        for server in servers:
            server.join()
    assert len(refused) == 20 * 3


def test_a_command_does_not_open_another_database_beside_the_server_of_its_folder(tmp_path: Path) -> None:
    served = Settings(data_dir=tmp_path, neo4j_uri="bolt://127.0.0.1:1")
    with record_server(served, "http://127.0.0.1:1", "secret"):
        with pytest.raises(ConfigurationError, match=r"http://127\.0\.0\.1:1 .* another database"):
            find_target(Flags(), Settings(data_dir=tmp_path))
        assert find_target(Flags(no_server=True), Settings(data_dir=tmp_path)).server is None
    assert find_target(Flags(), Settings(data_dir=tmp_path)).server is None


_RECORD = {"url": "http://127.0.0.1:1", "pid": 1, "started": 1.0, "database": "", "secret": ""}


async def test_a_server_starts_beside_the_key_of_a_user_and_says_what_it_lacks(cli: Cli) -> None:
    """The shell in which a user's key was created starts the server again."""
    key = (await cli("keys", "create", "notes", "--user", "mara", "--only-key")).out.strip()
    refused = await cli("serve", "--port", "0", GRAPHMEM_ADMIN_KEY=key)
    assert (refused.code, "'notes' of role agent" in refused.err) == (1, True)
    caller = replace(
        cli, environment={**cli.environment, "GRAPHMEM_API_KEY": key, "GRAPHMEM_ADMIN_KEY": "the-first-key"}
    )
    log: list[str] = []
    async with serving(caller, log):
        refused = await caller("keys", "list")
        assert (refused.code, "role agent" in refused.err) == (1, True)
        listed = await cli("keys", "list", GRAPHMEM_API_KEY="the-first-key")
        assert "first GRAPHMEM_ADMIN_KEY admin all theirs" in " ".join(listed.out.split())
        revoked = await cli("keys", "revoke", "first", GRAPHMEM_API_KEY="the-first-key")
        assert (revoked.code, "GRAPHMEM_ADMIN_KEY" in revoked.err) == (1, True), revoked.err
    assert "No language model is configured" in log[0]
    assert "GRAPHMEM_ADMIN_KEY" not in log[0]


async def test_open_signs_in_by_a_page_that_only_its_owner_reads(
    cli_with_models: Cli, served: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The arguments of a process are no place for a key; the page leads to the explorer with the key of commands."""
    url, _ = served
    launched: list[str] = []
    monkeypatch.setattr(typer, "launch", launched.append)
    assert (await cli_with_models("open")).code == 0
    [page] = map(Path, launched)
    assert page.stat().st_mode & 0o777 == 0o600
    [key] = re.findall(rf'href="{re.escape(url)}/ui#key=([^"]+)"', page.read_text("utf-8"))
    async with AsyncClient(unquote(key), url) as client:
        await client.keys()
